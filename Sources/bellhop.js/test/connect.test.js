// A bell against a scripted server on a real socket.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { claims } from "../../../.build-js/tokens.js";
import { systemClock } from "../../../.build-js/stores/store.js";
import { fetchTransport } from "../../../.build-js/transport/fetch.js";
import { xhrTransport } from "../../../.build-js/transport/xhr.js";
import { movedClock } from "./clock.js";
import {
  announceSeed, badges, eventLog, json, ready, scriptedServer, seeded, sendInPieces, streamHead,
} from "./scripted.js";
import { until } from "./service.js";
import { NodeXMLHttpRequest } from "./xhr.js";

/** The objects that a test opened; they are closed after it. */
const open = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function serve(stream, others = () => false) {
  let streams = 0;
  const server = await scriptedServer((request, socket) => {
    if (others(request, socket) !== false) return;
    if (request.path.startsWith("/v1/stream") && request.method === "GET") stream(request, socket, (streams += 1));
    else if (request.path === "/v1/badges") json(socket, 200, badges, { etag: "\"0\"" });
    else json(socket, 404, { code: "not_found" });
  });
  open.push(server.stop);
  return server;
}

/** A network and a lifecycle that the test controls. */
function moved(first) {
  const listeners = new Set();
  let now = first;
  return {
    online: () => now,
    foreground: () => now,
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    tell(next, told = next) {
      now = next;
      for (const listener of listeners) listener(told);
    },
  };
}

function ring(server, options = {}) {
  const heard = [];
  const statuses = [];
  const bell = connect({
    url: server.url, token: "t1", user: "ada", storage: memoryStorage(), network: moved(true), lifecycle: moved(true),
    limits: { firstMs: 5, delayMsMax: 20, wakeMs: 5, stableMs: 50 }, ...options,
  });
  open.push(() => bell.close());
  bell.on("*", (event) => void heard.push(event));
  bell.connection.subscribe(() => void statuses.push(bell.connection.get().status));
  const becomes = (status) => until(() => bell.connection.get().status === status, `status ${status}`);
  return { bell, heard, statuses, becomes };
}

for (const transport of ["fetch", "xhr"]) {
  const options = () => transport === "xhr" ? { transport: xhrTransport(NodeXMLHttpRequest) } : { transport };

  test(`R-VIS-NFR-2.1: cut at any byte, each event arrives once and in order (${transport})`, async () => {
    const random = seeded(announceSeed(`cuts, ${transport}`));
    const log = eventLog(400, random);
    let cuts = 0;
    const server = await serve((request, socket, nth) => {
      const text = ready(`s${nth}`) + log.after(request.headers["last-event-id"] ?? "");
      const bytes = Buffer.concat([Buffer.from(streamHead), Buffer.from(text)]);
      const limit = Math.floor(random() * 6000);
      sendInPieces(socket, bytes, limit, random, () => {
        if (limit >= bytes.length) return;
        cuts += 1;
        socket.destroy();
      });
    });
    const { heard, bell } = ring(server, { ...options(), limits: { firstMs: 1, delayMsMax: 2, triesMax: 1000 } });
    const seen = () => heard.filter(({ name }) => name === "test");
    await until(() => seen().length >= 400, "400 events");
    await until(() => bell.connection.get().status === "live");
    assert.deepEqual(seen().map(({ data }) => data.n), log.events.map(({ n }) => n));
    assert.deepEqual(seen().map(({ data }) => data.text), log.events.map(({ text }) => text));
    assert.ok(cuts > 5, `${cuts} cuts`);
  });

  test(`R-CUT-N-4: options are sent with the request (${transport})`, async () => {
    const topics = ["personal", "queue:s1", "dj:ä"];
    const server = await serve((request, socket) => socket.write(streamHead + ready("s1", topics)));
    const { becomes } = ring(server, { ...options(), topics: ["queue:s1", "dj:ä"] });
    await becomes("live");
    const [{ path, headers }] = server.streams();
    assert.equal(path, "/v1/stream?topics=queue%3As1,dj%3A%C3%A4");
    assert.equal(headers.authorization, "Bearer t1");
    assert.equal(headers["last-event-id"], undefined);
  });

  test(`R-CUT-N-4: a refusal is final with its reason, until the app acts (${transport})`, async () => {
    const server = await serve((request, socket, nth) =>
      nth === 1 ? json(socket, 403, { code: "forbidden", detail: "Not you." }) : socket.write(streamHead + ready()));
    const { bell, becomes } = ring(server, options());
    await becomes("refused");
    assert.deepEqual(bell.connection.get().reason, { code: "forbidden", status: 403, detail: "Not you." });
    bell.retry();
    await becomes("live");
    assert.equal(server.streams().length, 2);
  });

  test(`R-CUT-N-1: 204 ends the stream (${transport})`, async () => {
    const server = await serve((request, socket) => json(socket, 204, null));
    const { bell, becomes } = ring(server, options());
    await becomes("closed");
    assert.equal(bell.connection.get().reason.status, 204);
  });

  test(`R-CUT-N-1: Retry-After is respected (${transport})`, async () => {
    const clock = movedClock({ isStanding: true });
    const server = await serve((request, socket, nth) => {
      if (nth === 1) return json(socket, 503, { code: "unavailable" }, { "retry-after": "1" });
      socket.write(streamHead + ready());
    });
    const { bell, becomes } = ring(server, { ...options(), clock });
    await becomes("waiting");
    clock.skip(999);
    assert.equal(bell.connection.get().status, "waiting", "the client came before the server had asked it to");
    clock.skip(bell.connection.get().retryAt - clock.now());
    await becomes("live");
    assert.equal(server.streams().length, 2);
  });

  test(`R-CUT-N-2: a server that does not answer times out (${transport})`, async () => {
    const server = await serve((request, socket, nth) => nth > 1 && socket.write(streamHead + ready()));
    const { becomes, statuses } = ring(server, { ...options(), limits: { connectMs: 50, firstMs: 5 } });
    await becomes("live");
    assert.ok(statuses.includes("waiting"));
    await until(() => server.sockets.size === 2 || server.streams().length === 2);
  });

  test(`R-CUT-N-2: a server that answers byte by byte does not time out (${transport})`, async () => {
    const server = await serve((request, socket) => {
      const bytes = Buffer.from(streamHead + ready());
      sendInPieces(socket, bytes, bytes.length, () => 0);
    });
    const { becomes, statuses } = ring(server, options());
    await becomes("live");
    assert.ok(!statuses.includes("waiting"));
  });

  test(`R-CUT-N-2: a silent stream times out, one with heartbeats does not (${transport})`, async () => {
    const clock = movedClock({ isStanding: true });
    const silenceMs = 60_000;
    const stream = transport === "xhr" ? xhrTransport(NodeXMLHttpRequest) : fetchTransport();
    let pieces = 0;
    let newest;
    const server = await serve((request, socket, nth) => {
      newest = socket;
      socket.write(streamHead + ready(`s${nth}`));
    });
    const { bell, becomes } = ring(server, {
      clock, limits: { silenceMs },
      transport: (at, headers, heard) => stream(at, headers, { ...heard, text(text) {
        heard.text(text);
        pieces += 1;
      } }),
    });
    await becomes("live");
    clock.skip(silenceMs);
    assert.equal(bell.connection.get().status, "waiting", "the silent stream was not given up");
    clock.skip(bell.connection.get().retryAt - clock.now());
    await until(() => bell.connection.get().streamId === "s2", "the second stream");
    // The heartbeats span several times the silence that ends a stream.
    for (let beat = 0; beat < 5; beat += 1) {
      clock.skip(silenceMs * 0.9);
      const before = pieces;
      newest.write(":\n\n");
      await until(() => pieces > before, "the heartbeat");
    }
    assert.equal(bell.connection.get().status, "live");
    assert.equal(bell.connection.get().streamId, "s2");
    clock.skip(silenceMs);
    assert.equal(bell.connection.get().status, "waiting", "the stream was not given up when its heartbeats ended");
  });

  test(`R-CUT-N-1: an answer of another type is retried (${transport})`, async () => {
    const server = await serve((request, socket, nth) =>
      nth === 1 ? json(socket, 200, { portal: "please log in" }) : socket.write(streamHead + ready()));
    const { becomes, statuses } = ring(server, options());
    await becomes("live");
    assert.ok(statuses.includes("waiting"));
  });

  test(`an event without an end is dropped with its connection (${transport})`, async () => {
    const server = await serve((request, socket, nth) => {
      if (nth > 1) return socket.write(streamHead + ready());
      socket.write(streamHead);
      const piece = `data: ${"x".repeat(65_536)}`;
      (function more() {
        // The client reads the received piece before the next one is sent.
        if (!socket.destroyed) socket.write(piece, () => setImmediate(more));
      })();
    });
    const { becomes, bell } = ring(server, options());
    await becomes("live");
    assert.equal(bell.connection.get().streamId, "s1");
  });

  test(`closing a bell closes its requests (${transport})`, async () => {
    const streams = [];
    const server = await serve((request, socket) => {
      streams.push(socket);
      socket.write(streamHead + ready());
    });
    const { bell, becomes } = ring(server, options());
    await becomes("live");
    bell.close();
    assert.equal(bell.connection.get().status, "closed");
    await until(() => streams.length === 1 && streams[0].destroyed, "the stream's socket is closed");
  });
}

test("a response that became large is resumed on a new connection, with nothing lost (xhr)", async () => {
  const log = eventLog(300, () => 0);
  const server = await serve((request, socket, nth) => {
    const text = streamHead + ready(`s${nth}`) + log.after(request.headers["last-event-id"] ?? "");
    sendInPieces(socket, Buffer.from(text), Infinity, () => 0.9);
  });
  const { heard } = ring(server, { transport: xhrTransport(NodeXMLHttpRequest, 5000) });
  await until(() => heard.filter(({ name }) => name === "test").length >= 300, "300 events");
  const seen = heard.filter(({ name }) => name === "test").map(({ data }) => data.n);
  assert.deepEqual(seen, log.events.map(({ n }) => n));
  assert.ok(server.streams().length > 2, `${server.streams().length} streams`);
});

test("stream:resync is delivered, and stream:closing sets the delay", async () => {
  const server = await serve((request, socket, nth) => {
    socket.write(streamHead + ready(`s${nth}`) + "event: stream:resync\ndata: {\"reason\":\"gap\"}\n\n");
    if (nth === 1) socket.end("event: stream:closing\ndata: {\"reason\":\"shutdown\",\"retryAfterMs\":700}\n\n");
  });
  const clock = movedClock({ isStanding: true });
  const { heard, bell, becomes } = ring(server, { clock });
  await becomes("waiting");
  const { retryAt, reason } = bell.connection.get();
  assert.deepEqual(reason, { code: "closed", detail: "shutdown" });
  const waitMs = retryAt - clock.now();
  assert.ok(waitMs >= 700, `${waitMs} ms`);
  clock.skip(waitMs);
  await becomes("live");
  assert.deepEqual(heard.filter(({ name }) => name === "stream:resync").map(({ data }) => data.reason), ["gap", "gap"]);
});

test("R-CUT-N-3, R-VIS-NFR-2.2: offline is shown after a failure, and a stream opens within a second of the network's return",
  async () => {
  const network = moved(true);
  const clock = movedClock({ isStanding: true });
  const server = await serve((request, socket, nth) => socket.write(streamHead + ready(`s${nth}`)));
  const { bell, becomes } = ring(server, { clock, network, limits: {} });
  await becomes("live");
  server.isDown = true;
  clock.skip(1000);
  network.tell(false, { online: false });
  await becomes("offline");
  server.isDown = false;
  network.tell(true, { online: true });
  clock.skip(1000);
  assert.equal(bell.connection.get().status, "connecting");
  await becomes("live");
});

test("R-VIS-NFR-2.2: a report of no network does not keep the stream of a service that answers from opening", async () => {
  const server = await serve((request, socket, nth) => socket.write(streamHead + ready(`s${nth}`)));
  const { bell, becomes } = ring(server, { network: moved(false) });
  await becomes("live");
  assert.equal((await bell.get("/v1/badges")).status, 200);
});

test("R-28: unreachable retries when the app returns to the foreground", async () => {
  const lifecycle = moved(true);
  let isUp = false;
  const server = await serve((request, socket) => isUp ? socket.write(streamHead + ready()) : socket.destroy());
  const { becomes } = ring(server, { lifecycle, limits: { firstMs: 1, delayMsMax: 2, wakeMs: 1 } });
  await becomes("unreachable");
  assert.equal(server.streams().length, 11);
  isUp = true;
  lifecycle.tell(false);
  lifecycle.tell(true);
  await becomes("live");
});

test("R-SCH-NFR-004: a 401 requests another token from the app, once for stream and calls", async () => {
  const asked = [];
  const server = await serve((request, socket) => {
    if (request.headers.authorization === "Bearer t1") return json(socket, 401, { code: "unauthenticated" });
    socket.write(streamHead + ready());
  }, (request, socket) => {
    if (request.path !== "/v1/x") return false;
    if (request.headers.authorization === "Bearer t2") return json(socket, 401, { code: "unauthenticated" });
    json(socket, 200, { userId: "ada" });
  });
  let tokens = 0;
  const token = async ({ fresh }) => {
    asked.push(fresh);
    return `t${(tokens += 1)}`;
  };
  const { bell, becomes } = ring(server, { token });
  await becomes("live");
  assert.deepEqual(asked, [false, true]);
  const answers = await Promise.all([bell.get("/v1/x"), bell.get("/v1/x"), bell.get("/v1/x")]);
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200]);
  assert.deepEqual(asked, [false, true, true]);
});

test("R-SCH-FR-002: signing out empties and closes, another user begins without the old cursor", async () => {
  let user = "ada";
  const server = await serve((request, socket, nth) =>
    socket.write(streamHead + ready(`s${nth}`, [], null, user) + `id: e-${nth}\nevent: test\ndata: {"n":${nth}}\n\n`));
  const { bell, becomes, heard } = ring(server, { token: async () => unsigned(user) });
  const inputs = [];
  bell.attach({ receive: (input) => inputs.push(input) });
  await until(() => heard.some(({ name }) => name === "test"));
  bell.signOut();
  assert.equal(bell.connection.get().status, "closed");
  assert.deepEqual(inputs.at(-1), { type: "user", user: null, signedIn: false });
  await assert.rejects(bell.send("PUT", "/v1/x", {}), { code: "outbox.signed_out" });
  user = "bob";
  bell.signIn("bob");
  assert.equal(bell.user, "bob");
  await becomes("live");
  const last = server.streams().at(-1);
  assert.equal(claims(last.headers.authorization).subject, "bob");
  assert.equal(last.headers["last-event-id"], undefined);
  assert.ok(inputs.some(({ type, user: who, signedIn }) => type === "user" && who === "bob" && signedIn));
});

test("R-VIS-NFR-2.3: signing out deletes unsent writes, and returns them to the app", async () => {
  const storage = memoryStorage();
  // Without a network, the bell still tries now and then. A stream would prove that the service is there.
  const server = await serve((request, socket) => socket.destroy());
  const network = moved(false);
  const { bell } = ring(server, { storage, network, token: () => unsigned("ada") });
  const sent = [1, 2, 3].map((n) => bell.send("POST", "/v1/secret", { n }, { key: `k${n}` }));
  const settled = Promise.allSettled(sent);
  await until(async () => (await storage.keys("")).filter((key) => key.includes("outbox/")).length === 3);
  const unsent = await bell.signOut();
  assert.deepEqual(unsent.map(({ key, path, body, tried }) => [key, path, body, tried]),
    [1, 2, 3].map((n) => [`k${n}`, "/v1/secret", { n }, null]));
  for (const { reason } of await settled) assert.equal(reason.code, "outbox.signed_out");
  assert.deepEqual((await storage.keys("")).filter((key) => !key.endsWith("cursor")), []);
});

test("R-VIS-NFR-2.3: a key repeated before its answer is the same write's", async () => {
  const answers = [];
  const server = await serve((request, socket, nth) => socket.write(streamHead + ready(`s${nth}`)), (request, socket) => {
    if (request.path !== "/v1/x") return false;
    answers.push(() => json(socket, 201, {}));
  });
  const { bell, becomes } = ring(server);
  await becomes("live");
  const first = bell.send("POST", "/v1/x", { n: 1 }, { key: "k" });
  await until(() => answers.length === 1);
  const again = bell.send("POST", "/v1/x", { n: 1 }, { key: "k" });
  await assert.rejects(bell.send("POST", "/v1/x", { n: 2 }, { key: "k" }), /in use/);
  answers[0]();
  assert.deepEqual([(await first).status, (await again).status, answers.length], [201, 201, 1]);
});

test("R-VIS-NFR-2.3: the limit of a body counts bytes, as the service's is", async () => {
  const server = await serve((request, socket, nth) => socket.write(streamHead + ready(`s${nth}`)));
  const { bell } = ring(server, { network: moved(false) });
  const send = (text) => bell.send("POST", "/v1/x", text);
  for (const [letter, count] of [["x", (1 << 18) - 2], ["ü", (1 << 17) - 1]]) send(letter.repeat(count)).catch(() => {});
  for (const [letter, count] of [["x", (1 << 18) - 1], ["ü", 1 << 17]]) {
    await assert.rejects(send(letter.repeat(count)), RangeError);
  }
});

test("R-CNT-13.1: a 200 without topics ends nothing", async () => {
  const server = await serve((request, socket, nth) => socket.write(streamHead + ready(`s${nth}`)), (request, socket) => {
    if (!request.path.endsWith("/subscriptions")) return false;
    json(socket, 200, null);
  });
  const { bell, becomes } = ring(server, { limits: { firstMs: 5, connectMs: 50, delayMsMax: 20 } });
  await becomes("live");
  bell.subscribe(["queue:s1"]);
  await until(() => bell.connection.get().reason?.code === "timeout");
  await until(() => server.streams().length > 1);
});

const unsigned = (sub) => {
  const claims = JSON.stringify({ sub, exp: Date.now() / 1000 + 3600 });
  return `x.${Buffer.from(claims).toString("base64url")}.x`;
};

test("R-SCH-FR-001: a token of another user resets all shown and stored state", async () => {
  let user = "ada";
  const of = { ada: unsigned("ada"), bób: unsigned("bób") };
  const server = await serve((request, socket, nth) => {
    if (request.headers.authorization !== `Bearer ${of[user]}`) return json(socket, 401, { code: "unauthenticated" });
    socket.write(streamHead + ready(`s${nth}`, [], null, user) + `id: e-${nth}\nevent: test\ndata: {}\n\n`);
  });
  const { bell, becomes, heard } = ring(server, { user: undefined, token: () => of[user] });
  const inputs = [];
  bell.attach({ receive: (input) => inputs.push(input) });
  await until(() => heard.some(({ name }) => name === "test"));
  assert.equal(bell.user, "ada");
  user = "bób";
  for (const socket of server.sockets) socket.destroy();
  await until(() => bell.user === "bób");
  await becomes("live");
  assert.ok(inputs.some(({ type, user: who, signedIn }) => type === "user" && who === "bób" && signedIn));
  assert.equal(server.streams().at(-1).headers["last-event-id"], undefined);
});

const signed = (claims) => `x.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;

test("R-SCH-FR-001: one person in two tenants shares neither the cursor nor the writes", async () => {
  const storage = memoryStorage();
  const tokens = Object.fromEntries(["north", "south"].map((tenant) => [tenant, signed({ sub: "ada", tenant })]));
  const written = [];
  let isUp = true;
  let failed = 0;
  const server = await serve((request, socket, nth) => {
    socket.write(streamHead + ready(`s${nth}`) + `id: e-${nth}\nevent: test\ndata: {}\n\n`);
  }, (request, socket) => {
    if (!request.path.startsWith("/p/")) return false;
    if (!isUp) {
      failed += 1;
      return socket.destroy();
    }
    written.push([request.path, request.headers.authorization]);
    return json(socket, 200, {});
  });
  const north = ring(server, { storage, token: tokens.north });
  await until(() => north.heard.some(({ name }) => name === "test"));
  await until(async () => (await storage.keys("")).some((key) => key.endsWith("cursor")));
  isUp = false;
  north.bell.send("POST", "/p/north", {}).catch(() => {});
  await until(() => failed === 1);
  north.bell.close();
  isUp = true;
  const south = ring(server, { storage, token: tokens.south });
  await south.becomes("live");
  await south.bell.send("POST", "/p/south", {});
  assert.equal(server.streams().at(-1).headers["last-event-id"], undefined);
  assert.deepEqual(written, [["/p/south", `Bearer ${tokens.south}`]]);
  south.bell.close();
  const again = ring(server, { storage, token: tokens.north });
  await until(() => written.length === 2);
  assert.deepEqual(written[1], ["/p/north", `Bearer ${tokens.north}`]);
  assert.equal(server.streams().at(-1).headers["last-event-id"], "e-1");
  again.bell.close();
});

test("R-VIS-NFR-2.3: a write made before the first token is sent with it", async () => {
  const written = [];
  const server = await serve((request, socket, nth) => socket.write(streamHead + ready(`s${nth}`)),
    (request, socket) => {
      if (!request.path.startsWith("/p/")) return false;
      if (!request.headers.authorization) return json(socket, 401, { code: "unauthenticated" });
      written.push(request.path);
      return json(socket, 200, {});
    });
  let token = null;
  const { bell, becomes } = ring(server, { user: "ada", token: () => token, limits: { firstMs: 20 } });
  const sent = bell.send("POST", "/p/1", {});
  await until(() => bell.outbox.get().waiting === 1);
  token = signed({ sub: "ada", tenant: "north" });
  await becomes("live");
  assert.equal((await sent).status, 200);
  assert.deepEqual(written, ["/p/1"]);
});

test("R-VIS-NFR-2.3: writes keep their order when the clock is set back between two starts", async () => {
  const storage = memoryStorage();
  const written = [];
  const server = await serve((request, socket, nth) => socket.write(streamHead + ready(`s${nth}`)),
    (request, socket) => {
      if (!request.path.startsWith("/p/")) return false;
      written.push(request.path);
      return json(socket, 200, {});
    });
  const token = signed({ sub: "ada" });
  const stored = async (count) => (await storage.keys("")).filter((key) => key.includes("outbox/")).length === count;
  // The device learns the identity: without one nothing can be stored.
  const before = ring(server, { storage, token });
  await before.becomes("live");
  before.bell.close();
  server.isDown = true;
  const first = ring(server, { storage, token });
  first.bell.send("POST", "/p/1", {}).catch(() => {});
  await until(() => stored(1));
  first.bell.close();
  const clock = { ...systemClock, now: () => Date.now() - 3_600_000 };
  const second = ring(server, { storage, token, clock });
  second.bell.send("POST", "/p/2", {}).catch(() => {});
  await until(() => stored(2));
  server.isDown = false;
  second.bell.retry();
  await until(() => written.length === 2);
  assert.deepEqual(written, ["/p/1", "/p/2"]);
});

test("a reload resumes after the last event, from the storage", async () => {
  const storage = memoryStorage();
  const server = await serve((request, socket, nth) =>
    socket.write(streamHead + ready(`s${nth}`) + `id: e-${nth}\nevent: test\ndata: {"n":${nth}}\n\n`));
  const first = ring(server, { storage });
  await until(() => first.heard.some(({ name }) => name === "test"));
  await until(async () => (await storage.keys("")).some((key) => key.endsWith("cursor")));
  first.bell.close();
  const second = ring(server, { storage });
  await second.becomes("live");
  assert.equal(server.streams()[1].headers["last-event-id"], "e-1");
});

test("R-SCH-FR-003: a reconnection after a break is reported once", async () => {
  const server = await serve((request, socket, nth) => {
    socket.write(streamHead + ready(`s${nth}`));
    if (nth === 1) socket.end();
  });
  const { bell } = ring(server);
  const inputs = [];
  bell.attach({ receive: (input) => input.type === "connection" && inputs.push(input) });
  await until(() => bell.connection.get().streamId === "s2");
  const lives = inputs.filter(({ status }) => status === "live").map(({ reconnected }) => reconnected);
  assert.deepEqual(lives, [false, true]);
});

test("mistakes of the app get clear errors", () => {
  assert.throws(() => connect(), /token must be/);
  assert.throws(() => connect({ url: "ftp://x", token: "t" }), /must begin with http/);
  assert.throws(() => connect({ url: "nonsense", token: "t" }), /must begin with http/);
  assert.throws(() => connect({ url: "http://x" }), /token must be/);
  assert.throws(() => connect({ url: "http://x", token: "t", storage: {} }), /storage must have/);
  assert.throws(() => connect({ url: "http://x", token: "t", network: {} }), /network must have/);
  assert.throws(() => connect({ url: "http://x", token: "t", lifecycle: {} }), /lifecycle must have/);
  assert.throws(() => connect({ url: "http://x", token: "t", topics: ["a b"] }), /a topic is text/);
  assert.throws(() => connect({ url: "http://x", token: "t", topics: "queue:s1" }), /a topic is text/);
  assert.throws(() => connect({ url: "http://x", token: "t", transport: "carrier pigeon" }), /transport/);
});
