// Parses the text of a `text/event-stream` into events as the WHATWG standard defines, in whatever pieces it arrives.
import type { ServerSentEvent } from "../types.js";

/** Limit of one event. Without it, a server that never ends a line would fill the client's memory. */
const eventCharsMax = 4 << 20;

/** The body of a refusal only serves as a message, so transports stop reading it here. */
export const problemCharsMax = 65_536;

/** The longest time that a timer can wait. */
const retryMsMax = 2 ** 31 - 1;

/** @param cursor the id of the last event of the connection before */
export function parser(cursor = "", charsMax = eventCharsMax) {
  let lastId = cursor;
  let line = "";
  let isAfterReturn = false;
  let id = cursor;
  let hasId = false;
  let name = "";
  let data: string[] = [];
  let dataChars = 0;
  let retryMs: number | null = null;

  function endLine(events: ServerSentEvent[]) {
    if (line === "") {
      // Only a complete block moves the cursor, even one without data.
      lastId = id;
      if (data.length > 0) events.push({ name: name || "message", data: data.join("\n"), id, hasId });
      name = "";
      data = [];
      dataChars = 0;
      hasId = false;
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    line = "";
    if (field === "data") {
      data.push(value);
      dataChars += value.length;
    } else if (field === "event") name = value;
    else if (field === "id" && !value.includes("\0")) {
      id = value;
      hasId = true;
    } else if (field === "retry" && /^[0-9]+$/.test(value)) retryMs = Math.min(Number(value), retryMsMax);
  }

  return {
    feed(text: string): ServerSentEvent[] {
      const events: ServerSentEvent[] = [];
      if (text === "") return events;
      let start = isAfterReturn && text[0] === "\n" ? 1 : 0;
      isAfterReturn = text[text.length - 1] === "\r";
      const end = /\r\n?|\n/g;
      end.lastIndex = start;
      for (let match = end.exec(text); match; match = end.exec(text)) {
        line += text.slice(start, match.index);
        endLine(events);
        start = end.lastIndex;
      }
      line += text.slice(start);
      if (line.length + dataChars > charsMax) throw new RangeError(`an event is longer than ${charsMax}`);
      return events;
    },
    lastId: () => lastId,
    retryMs: () => retryMs,
  };
}
