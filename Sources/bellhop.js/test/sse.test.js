// The parser against the WHATWG's rules ("Interpreting an event stream").
import assert from "node:assert/strict";
import { test } from "node:test";
import { parser } from "../../../.build-js/transport/sse.js";
import { announceSeed, seeded } from "./scripted.js";

const all = (text) => parser().feed(text).map(({ id, name, data }) => [id, name, data]);

const rows = [
  ["data: a\n\n", [["", "message", "a"]]],
  ["data:a\r\rdata:b\r\n\r\n", [["", "message", "a"], ["", "message", "b"]]],
  ["data: YHOO\ndata: +2\ndata: 10\n\n", [["", "message", "YHOO\n+2\n10"]]],
  [": test stream\n\ndata: first\nid: 1\n\ndata:second\nid\n\ndata:  third\n\n",
    [["1", "message", "first"], ["", "message", "second"], ["", "message", " third"]]],
  ["data\n\ndata\ndata\n\ndata:", [["", "message", ""], ["", "message", "\n"]]],
  ["data:test\n\ndata: test\n\n", [["", "message", "test"], ["", "message", "test"]]],
  ["event: add\ndata: 1\n\ndata: 2\n\n", [["", "add", "1"], ["", "message", "2"]]],
  ["event: lost\n\ndata: 2\n\n", [["", "message", "2"]]],
  ["id: 7\n\ndata: a\n\n", [["7", "message", "a"]]],
  ["id: 1\nid: 2\u0000\ndata: a\n\n", [["1", "message", "a"]]],
  ["unknown: x\nDATA: x\ndata : x\n\n", []],
  ["data: unfinished\n", []],
  [":\n:\n\n", []],
];
rows.forEach(([text, expected], index) => {
  test(`a stream is interpreted as the standard says, ${index + 1}`, () => assert.deepEqual(all(text), expected));
});

test("retry counts only as digits", () => {
  const it = parser();
  it.feed("retry: 1500\n\nretry: 2s\nretry:\nretry: -1\nretry: +3\n");
  assert.equal(it.retryMs(), 1500);
});

test("the id of an unfinished event does not move the cursor", () => {
  const it = parser("3");
  it.feed("id: 4\ndata: half");
  assert.equal(it.lastId(), "3");
});

test("an id without an event moves the cursor silently", () => {
  const it = parser("3");
  assert.deepEqual(it.feed("id: 4\n\n"), []);
  assert.equal(it.lastId(), "4");
});

test("an event tells whether its id is its own", () => {
  const [first, second] = parser().feed("id: 4\ndata: a\n\ndata: b\n\n");
  assert.deepEqual([first.id, first.hasId, second.id, second.hasId], ["4", true, "4", false]);
});

test("an endless line is refused", () => {
  assert.throws(() => parser("", 10).feed("data: 0123456789"), RangeError);
});

test("an endless event is refused", () => {
  const it = parser("", 100);
  assert.throws(() => {
    for (let line = 0; line < 100; line += 1) it.feed("data: 0123456789\n");
  }, RangeError);
});

test("events do not depend on how the network splits a stream", () => {
  const random = seeded(announceSeed("sse"));
  const atoms = ["data", "id", "event", "retry", ":", " ", "\n", "\r", "\r\n", "\n\n", "é", "🛎", "\u0000", "x", "12"];
  for (let round = 0; round < 500; round += 1) {
    const text = Array.from({ length: 300 }, () => atoms[Math.floor(random() * atoms.length)]).join("");
    const whole = parser();
    const expected = whole.feed(text);
    const bytes = new TextEncoder().encode(text);
    const pieces = parser();
    // Decodes as the transport does: pieces may end within a character.
    const decoder = new TextDecoder();
    const found = [];
    for (let start = 0; start < bytes.length;) {
      const end = Math.min(bytes.length, start + 1 + Math.floor(random() * 7));
      found.push(...pieces.feed(decoder.decode(bytes.subarray(start, end), { stream: true })));
      start = end;
    }
    assert.deepEqual(found, expected);
    assert.equal(pieces.lastId(), whole.lastId());
    assert.equal(pieces.retryMs(), whole.retryMs());
  }
});
