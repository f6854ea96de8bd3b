// A server on a real socket that a test scripts: it can cut a stream at any byte, answer slowly, or stop.
import { createHash } from "node:crypto";
import { createServer } from "node:net";

/** Returns a generator of reproducible pseudo-random numbers (mulberry32). */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The seed of this run, printed so that a failure can be repeated: SEED=… node --test. */
export function announceSeed(name) {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`${name}: SEED=${seed}`);
  return seed;
}

/** Returns an identity for the claims of a token, other than its times; one for all tokens that are not JWTs. */
export function identityOf(token) {
  const [, payload] = token.split(".");
  if (!payload) return "identity-of-opaque-1234";
  const { iat, exp, nbf, jti, ...rest } = JSON.parse(Buffer.from(payload, "base64url"));
  return createHash("sha256").update(JSON.stringify(rest)).digest("base64url").slice(0, 22);
}

/** `answer(request, socket)` is called with each request: {method, path, headers, body}; `me` answers who a token is. */
export async function scriptedServer(answer, me = identityOf) {
  const requests = [];
  /** While it is down, connections end without an answer. */
  const it = { isDown: false };
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let received = Buffer.alloc(0);
    socket.on("data", (data) => {
      received = Buffer.concat([received, data]);
      const end = received.indexOf("\r\n\r\n");
      if (end < 0) return;
      const [first, ...lines] = received.subarray(0, end).toString().split("\r\n");
      const headers = Object.fromEntries(lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }));
      const length = Number(headers["content-length"] ?? 0);
      if (received.length < end + 4 + length) return;
      const body = received.subarray(end + 4, end + 4 + length).toString();
      received = received.subarray(end + 4 + length);
      const [method, path] = first.split(" ");
      if (it.isDown) return socket.destroy();
      const request = { method, path, headers, body: body && JSON.parse(body) };
      if (path === "/v1/me" && me) return json(socket, 200, { identity: me(headers.authorization.slice(7)) });
      requests.push(request);
      answer(request, socket);
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return Object.assign(it, {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    streams: () => requests.filter(({ path }) => path.startsWith("/v1/stream")),
    sockets,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  });
}

export function json(socket, status, body, headers = {}) {
  const text = body === null ? "" : JSON.stringify(body);
  const length = Buffer.byteLength(text);
  const lines = Object.entries({ "content-type": "application/json", "content-length": length, ...headers });
  socket.write(`HTTP/1.1 ${status} X\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${text}`);
}

export const streamHead =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncache-control: no-store\r\n\r\n";

export const badges = {
  messages: 0, requests: 0, bell: 0, total: 0, version: 0, epoch: "e", asOf: "2026-01-01T00:00:00.000Z",
};

export function ready(streamId = "s1", topics = ["personal"], id = null, userId = "ada") {
  const data = { streamId, userId, topics, replayed: 0, badges, serverTime: new Date().toISOString() };
  return `retry: 10\n\n${id ? `id: ${id}\n` : ""}event: stream:ready\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A log of events that a stream replays after `Last-Event-ID`, as the service does. Texts contain characters of two
 * to four bytes, and lines end in all three ways, so that a cut can fall within any of them. */
export function eventLog(count, random) {
  const ends = ["\n", "\r\n", "\r"];
  const events = Array.from({ length: count }, (_, index) => (
    { id: `e-${index + 1}`, n: index + 1, text: "é🛎\u2028ü".repeat(1 + index % 3) }));
  return {
    events,
    /** @param {string} since */
    after(since) {
      const from = since ? Number(since.slice(2)) : 0;
      return events.slice(from).map(({ id, n, text }) => {
        const end = ends[Math.floor(random() * 3)];
        return [`id: ${id}`, "event: test", `data: ${JSON.stringify({ n, text })}`, "", ""].join(end);
      }).join("");
    },
  };
}

/** Sends bytes in pieces of random size, and cuts the connection after `limit` bytes. */
export function sendInPieces(socket, bytes, limit, random, done) {
  let sent = 0;
  const end = Math.min(limit, bytes.length);
  (function next() {
    if (socket.destroyed) return;
    if (sent >= end) return done?.();
    const piece = bytes.subarray(sent, Math.min(end, sent + 1 + Math.floor(random() * 200)));
    sent += piece.length;
    socket.write(piece);
    setImmediate(next);
  })();
}
