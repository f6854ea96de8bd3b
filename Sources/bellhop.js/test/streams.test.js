// Both clients read these streams: Tests/Fixtures/Streams. The parser and whole connections are held to them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { fetchTransport } from "../../../.build-js/transport/fetch.js";
import { parser } from "../../../.build-js/transport/sse.js";
import { xhrTransport } from "../../../.build-js/transport/xhr.js";
import { movedClock } from "./clock.js";
import { json, scriptedServer } from "./scripted.js";
import { until } from "./service.js";
import { NodeXMLHttpRequest } from "./xhr.js";

const folder = new URL("../../../Tests/Fixtures/Streams/", import.meta.url);
const cases = (name) => JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8")).cases;

/** A piece is a text, a text so many times, bytes in hex, or the event that makes a stream ready. */
function bytes(piece) {
  if (typeof piece === "string") return Buffer.from(piece);
  if (piece.hex) return Buffer.from(piece.hex, "hex");
  if (piece.text) return Buffer.from(piece.text.repeat(piece.times));
  return Buffer.from(`event: stream:ready\ndata: {"streamId":"${piece.ready}","userId":"ada","topics":[]}\n\n`);
}

const joined = (pieces) => Buffer.concat(pieces.map(bytes));

/** The ways in which a network may deliver a stream. */
function deliveries(stream) {
  const pieces = stream.map(bytes);
  const whole = Buffer.concat(pieces);
  // A long stream byte by byte would take seconds.
  return [pieces, [whole], ...whole.length < 10_000 ? [[...whole].map((byte) => Buffer.from([byte]))] : []];
}

for (const one of cases("parsing")) {
  test(`a stream is interpreted as the standard says: ${one.name}`, () => {
    const expected = one.events.map(([id, name, data, hasId]) =>
      ({ id, name, data: Array.isArray(data) ? joined(data).toString() : data, hasId }));
    for (const pieces of deliveries(one.stream)) {
      const it = parser(one.cursor, one.limit);
      // As the transport does: it drops a byte order mark.
      const decoder = new TextDecoder();
      const found = [];
      const read = () => {
        for (const piece of pieces) found.push(...it.feed(decoder.decode(piece, { stream: true })));
      };
      if (one.isRefused) {
        assert.throws(read, RangeError);
        continue;
      }
      read();
      assert.deepEqual(found, expected);
      assert.equal(it.lastId(), one.lastId ?? "");
      assert.equal(it.retryMs(), one.retryMs ?? null);
    }
  });
}

/** Two servers that answer each stream's request with the next turn, and then with 204. */
async function serve({ turns, isWhole }) {
  const left = turns.flatMap((turn) => turn.isEndless ? [] : Array.from({ length: turn.times ?? 1 }, () => turn));
  const endless = turns.filter((turn) => turn.isEndless);
  const places = {};
  const mistakes = [];
  const answer = (at) => (request, socket) => {
    if (request.path === "/v1/badges") return json(socket, 404, { code: "not_found" });
    const turn = endless.find(({ path }) => path === request.path) ?? left.shift();
    if (!turn && isWhole) mistakes.push(`a request after the end: ${request.path}`);
    if (!turn) return json(socket, 204, null);
    if ((turn.at ?? "service") !== at) mistakes.push(`a request at ${at} instead of ${turn.at}`);
    if (turn.path && turn.path !== request.path) mistakes.push(`${request.path} instead of ${turn.path}`);
    for (const [name, value] of Object.entries(turn.sends ?? {})) {
      const sent = request.headers[name] ?? null;
      if (sent !== value) mistakes.push(`${name}: ${sent} instead of ${value}`);
    }
    return send(turn, socket, places.other.url);
  };
  places.service = await scriptedServer(answer("service"));
  places.other = await scriptedServer(answer("other"));
  return {
    url: places.service.url,
    left,
    mistakes,
    async stop() {
      await places.service.stop();
      await places.other.stop();
    },
  };
}

function send(turn, socket, other) {
  const lines = Object.entries(turn.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const body = Buffer.from(turn.body ?? "");
  const head = turn.status
    ? `HTTP/1.1 ${turn.status}\r\n${lines.replace("{other}", other)}connection: close\r\ncontent-length: ${body.length}\r\n\r\n`
    : "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
  const pieces = turn.raw ?? [...turn.status ? [head, body.toString()] : [head, ...turn.stream]];
  const left = pieces.map(bytes).filter(({ length }) => length > 0);
  (function next() {
    if (socket.destroyed) return;
    const piece = left.shift();
    // The client reads each piece on its own.
    if (piece) socket.write(piece, () => setImmediate(next));
    else if (turn.then === "reset") socket.resetAndDestroy();
    else if (turn.then !== "open") socket.end();
  })();
}

/** The moment at which the clocks of both clients stand. */
const begin = Date.parse("2026-01-10T09:00:00.000Z");

for (const transport of ["fetch", "xhr"]) {
  // React Native follows redirects below JavaScript.
  for (const one of cases("connecting").filter(({ redirects }) => transport === "fetch" || !redirects)) {
    test(`a stream connects as its vectors say: ${one.name} (${transport})`, async () => {
      const server = await serve(one);
      const clock = { ...movedClock({ isStanding: true, begin }), random: () => 0.5 };
      const waits = [];
      const heard = [];
      let token = 0;
      const bell = connect({
        url: server.url, user: one.user ?? null, storage: memoryStorage(), clock,
        token: ({ fresh }) => one.tokens ? one.tokens[fresh ? (token += 1) : token] : "t",
        transport: transport === "xhr" ? xhrTransport(NodeXMLHttpRequest) : fetchTransport(),
      });
      try {
        bell.on("*", ({ id, name, data }) => {
          if (name !== "stream:ready") heard.push([id, name, data]);
        });
        let shown = null;
        bell.connection.subscribe(() => {
          const { status, retryAt } = bell.connection.get();
          if (status !== "waiting" || retryAt === shown) return;
          shown = retryAt;
          waits.push(retryAt - clock.now());
          setImmediate(() => clock.skip(retryAt - clock.now()));
        });
        const ends = one.ends ?? "closed";
        await until(() => bell.connection.get().status === ends, `status ${ends}`);
        assert.deepEqual(server.mistakes, []);
        assert.equal(server.left.length, 0, "not all answers were asked for");
        const expected = one.events.map(([id, name, data]) => [id, name, data?.text ? bytes(data).toString() : data]);
        if (!one.mayLose || heard.length > 0) assert.deepEqual(heard, expected);
        assert.deepEqual(waits, one.waits ?? []);
        if (one.reason) assert.equal(bell.connection.get().reason.code, one.reason);
      } finally {
        bell.close();
        await server.stop();
      }
    });
  }
}
