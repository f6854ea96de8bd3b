// The stream by XMLHttpRequest's progress events, where fetch does not stream: React Native.
import { problemCharsMax } from "./sse.js";
import type { Transport } from "../types.js";

/** All text of a response stays in its `responseText`, so beyond this size the stream resumes on a new connection.
 * The limit exceeds what the service replays at once (1 MiB), so that each connection makes progress. */
const textCharsMax = 4 << 20;

type RequestType = new () => XMLHttpRequest;

export function xhrTransport(Request: RequestType = globalThis.XMLHttpRequest, charsMax = textCharsMax): Transport {
  return (url, headers, listener) => {
    const request = new Request();
    let seen = 0;
    let isOver = false;
    let isReceived = false;
    let pending: ((text: string) => void) | null = null;
    const end = (detail: string, isFull = false) => {
      if (!isOver) listener.end({ detail, isFull });
      isOver = true;
    };
    const stop = () => {
      isOver = true;
      request.abort();
    };
    function head() {
      if (isReceived || isOver || request.status === 0) return;
      isReceived = true;
      listener.head({
        status: request.status,
        type: request.getResponseHeader("content-type") ?? "",
        retryAfter: request.getResponseHeader("retry-after"),
        body: () => new Promise((resolve) => {
          if (request.readyState === 4) resolve(request.responseText);
          else pending = resolve;
        }),
      });
    }
    // Ends a refusal with as much of its body as came.
    const refuse = (text = request.responseText) => {
      pending?.(text);
      stop();
    };
    function read() {
      head();
      if (isOver) return;
      if (request.status !== 200) {
        if (request.responseText.length >= problemCharsMax) refuse();
        return;
      }
      const text = request.responseText.slice(seen);
      seen += text.length;
      if (text !== "") listener.text(text);
      if (!isOver && seen > charsMax) {
        end("the response has become large", true);
        request.abort();
      }
    }
    request.open("GET", url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.responseType = "text";
    request.onreadystatechange = () => {
      if (request.readyState === 2) head();
      // React Native reports progress here as well; other environments only in `onprogress`.
      if (request.readyState === 3) read();
    };
    request.onprogress = read;
    request.onload = () => {
      read();
      if (request.status === 200) end("the stream ended");
      else refuse();
    };
    // A refusal whose body breaks off is passed on without its body.
    request.onerror = () => pending ? refuse("") : end("the connection broke");
    request.ontimeout = request.onerror;
    request.send();
    return stop;
  };
}
