// The stream by `fetch`, where its body can be read as it arrives: browsers, Node, Deno, Bun, Expo.
import { problemCharsMax } from "./sse.js";
import type { Transport } from "../types.js";

/** Returns whether fetch streams. Where it does not, its Response has no readable body. */
export const fetchStreams = (fetch?: typeof globalThis.fetch) => Boolean(fetch ||
  (typeof ReadableStream === "function" && typeof Response === "function" && "body" in Response.prototype));

export function fetchTransport(request = globalThis.fetch): Transport {
  return (url, headers, listener) => {
    const abort = new AbortController();
    let isOver = false;
    const end = (error: Error | string) => {
      if (!isOver) listener.end({ detail: String((error as Error)?.message ?? error) });
      isOver = true;
    };
    const stop = () => {
      isOver = true;
      abort.abort();
    };
    read().catch(end);
    return stop;

    async function read() {
      const response = await request(url, {
        headers, signal: abort.signal, cache: "no-store", credentials: "omit",
      });
      if (isOver) return;
      const reader = response.body?.getReader();
      if (!reader && response.status === 200) throw new Error("this fetch does not stream");
      const decoder = new TextDecoder();
      const type = response.headers.get("content-type") ?? "";
      const retryAfter = response.headers.get("retry-after");
      listener.head({ status: response.status, type, retryAfter, body });
      if (response.status !== 200 || !reader) return;
      // One piece at a time: unread bytes stay in the network's buffers, not in memory.
      while (!isOver) {
        const { done, value } = await reader.read();
        if (done) return end("the stream ended");
        const text = decoder.decode(value, { stream: true });
        if (!isOver && text !== "") listener.text(text);
      }

      async function body() {
        let text = "";
        while (reader && text.length < problemCharsMax) {
          const { done, value } = await reader.read();
          if (done) break;
          text += decoder.decode(value, { stream: true });
        }
        stop();
        return text;
      }
    }
  };
}
