// XMLHttpRequest as in React Native, on Node's own http: no EventSource, no streaming fetch, only progress events.
import http from "node:http";

const { TextDecoder } = globalThis;

export class NodeXMLHttpRequest {
  status = 0;
  readyState = 0;
  responseText = "";
  #headers = {};
  #isOver = false;

  open(method, url) {
    this.request = http.request(url, { method });
    this.readyState = 1;
  }

  setRequestHeader(name, value) {
    this.request.setHeader(name, value);
  }

  getResponseHeader(name) {
    return this.#headers[name] ?? null;
  }

  /** All headers as one text, as the standard returns them. */
  get headers() {
    return this.#headers;
  }

  send(body) {
    this.request.on("error", () => this.#fail());
    this.request.on("response", (response) => {
      this.status = response.statusCode;
      this.#headers = response.headers;
      this.#become(2);
      const decoder = new TextDecoder();
      response.on("data", (data) => {
        this.responseText += decoder.decode(data, { stream: true });
        this.#become(3);
        if (!this.#isOver) this.onprogress?.();
      });
      response.on("error", () => this.#fail());
      response.on("end", () => {
        if (this.#isOver) return;
        if (!response.complete) return this.#fail();
        this.#become(4);
        this.#isOver = true;
        this.onload?.();
      });
    });
    this.request.end(body);
  }

  abort() {
    this.#isOver = true;
    this.request.destroy();
  }

  #become(readyState) {
    if (this.#isOver) return;
    this.readyState = readyState;
    this.onreadystatechange?.();
  }

  #fail() {
    if (this.#isOver) return;
    this.#isOver = true;
    this.readyState = 4;
    this.onerror?.();
  }
}
