// A bell against the real service.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { xhrTransport } from "../../../.build-js/transport/xhr.js";
import { cuttingProxy } from "./proxy.js";
import { announceSeed, seeded } from "./scripted.js";
import { binary, PATIENCE_MS, startService, until } from "./service.js";
import { NodeXMLHttpRequest } from "./xhr.js";

const options = { skip: binary ? false : "no binary of the service: set BELLHOP_BIN" };
let service;
let backend;
const open = [];

before(async () => {
  if (!binary) return;
  service = await startService({ flags: { "rate-limit-user": 0 } });
  backend = service.token("backend", "--role", "service_role");
});
after(() => service?.stop());
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** Makes a call of the app's backend, and repeats it until it succeeds. */
async function post(path, body, token = backend) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const once = async () => {
    const answer = await fetch(service.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return answer.status < 500 && { status: answer.status, body: await answer.json() };
  };
  return until(() => once().catch(() => false));
}

const notify = (user, id) => post("/v1/events", { id, type: "auth.signup", userId: user, data: {} });

function ring(user, more = {}) {
  const heard = [];
  const bell = connect({
    url: service.url, token: more.token ?? service.token(user), storage: memoryStorage(),
    limits: { firstMs: 20, delayMsMax: 200, triesMax: 1000, outbox: { firstMs: 5, delayMsMax: 50 } }, ...more,
  });
  open.push(() => bell.close());
  bell.on("*", (event) => void heard.push(event));
  const of = (name) => heard.filter((event) => event.name === name);
  const live = () => until(() => bell.connection.get().status === "live", "live");
  return { bell, heard, of, live };
}

/** Returns the current messages of a conversation. */
async function texts(conversation, token) {
  const found = [];
  for (let since = 0; ;) {
    const answer = await fetch(`${service.url}/v1/conversations/${conversation}/messages?since=${since}&limit=100`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    const { items } = await answer.json();
    if (items.length === 0) return found;
    found.push(...items.map(({ text }) => text));
    since = items.at(-1).sequence;
  }
}

for (const [name, transport] of [["fetch", "fetch"], ["xhr", xhrTransport(NodeXMLHttpRequest)]]) {
  test(`R-VIS-NFR-2.1: the service is killed repeatedly, and each event arrives once (${name})`, options, async () => {
    const user = `killed-${name}`;
    const { of, live } = ring(user, { transport });
    await live();
    const sent = [];
    for (let round = 0; round < 5; round += 1) {
      for (let one = 0; one < 10; one += 1) {
        sent.push(`${user}-${round}-${one}`);
        await notify(user, sent.at(-1));
      }
      await service.kill();
      await service.restart();
    }
    await notify(user, "last");
    await until(() => of("notification:created").some(({ data }) => data.eventId === "last"), "the last event");
    assert.deepEqual(of("notification:created").map(({ data }) => data.eventId), [...sent, "last"]);
  });
}

test("R-VIS-NFR-2.3: the outbox loses nothing when a connection is cut or the service is killed", options, async () => {
  const seed = announceSeed("outbox");
  const random = seeded(seed);
  let isCutting = true;
  const proxy = await cuttingProxy(service.url, random, () => isCutting);
  open.push(proxy.stop);
  const [ada, ben] = [`ada-${seed}`, `ben-${seed}`];
  const conversation = `talk-${seed}`;
  await post("/v1/conversations", { id: conversation, memberIds: [ada, ben] });
  const reader = ring(ben, { url: proxy.url });
  await reader.live();
  const storage = memoryStorage();
  const token = service.token(ada);
  let writer = ring(ada, { url: proxy.url, storage, token });
  const wanted = [];
  for (let n = 0; n < 120; n += 1) {
    wanted.push(`message ${n}`);
    writer.bell.send("POST", `/v1/conversations/${conversation}/messages`, { text: wanted.at(-1) }).catch(() => {});
    if (n % 40 === 20) {
      await until(async () => (await storage.keys("")).filter((key) => key.includes("outbox/")).length >= 1);
      await service.kill();
      await service.restart();
    }
    if (n % 40 === 39) {
      // The app is closed and opened again, and continues from its stored state.
      await until(async () => {
        const stored = await Promise.all((await storage.keys("")).map((key) => storage.get(key)));
        const safe = new Set([...stored.map((item) => item?.startsWith("{") && JSON.parse(item).body?.text),
          ...await texts(conversation, token)]);
        return wanted.every((text) => safe.has(text));
      });
      writer.bell.close();
      writer = ring(ada, { url: proxy.url, storage, token });
    }
  }
  // On a slow machine many writes share a connection, and few are cut.
  while (proxy.cutCount() <= 20) {
    wanted.push(`message ${wanted.length}`);
    await writer.bell.send("POST", `/v1/conversations/${conversation}/messages`, { text: wanted.at(-1) });
  }
  await until(async () => (await storage.keys("")).every((key) => !key.includes("outbox/")), "an empty outbox");
  isCutting = false;
  assert.deepEqual(await texts(conversation, token), wanted);
  await until(() => reader.of("message:created").length >= wanted.length, "all messages are heard");
  const sequences = reader.of("message:created").map(({ data }) => data.message.sequence);
  assert.deepEqual(sequences, wanted.map((_, index) => index + 1));
});

test("R-VIS-NFR-2.3: a refusal is reported to the app, and later writes continue", options, async () => {
  const { bell, of, live } = ring("refused");
  await live();
  const [refused, done] = await Promise.all([
    bell.send("PUT", "/v1/preferences", { sound: "loud" }), bell.send("PUT", "/v1/preferences", { sound: false }),
  ]);
  assert.equal(refused.status, 422);
  assert.equal(done.status, 200);
  assert.equal(of("outbox:refused").length, 1);
  assert.equal(of("outbox:refused")[0].data.answer.status, 422);
});

/** Opens a stream by `fetch` and resolves once the service has closed it. */
async function closed(token) {
  const answer = await fetch(`${service.url}/v1/stream`, {
    headers: { Authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(PATIENCE_MS),
  });
  assert.equal(answer.status, 200);
  const text = await answer.text();
  assert.match(text, /stream:closing/);
}

/** Lets a stream outlive a token of that many seconds. Returns false if this machine was too slow to renew it in
 * time. */
async function outlives(seconds) {
  const user = `renewed-${seconds}`;
  const first = service.token(user, "--lifetime", `${seconds}s`);
  const endsAt = JSON.parse(Buffer.from(first.split(".")[1], "base64url").toString()).exp * 1000;
  const given = [];
  let renewedAt = Infinity;
  const { bell, of, live } = ring(user, {
    token() {
      given.push(given.length === 0 ? first : service.token(user, "--lifetime", "1h"));
      return given.at(-1);
    },
    async fetch(url, init) {
      const answer = await fetch(url, init);
      if (init?.method === "PUT" && String(url).endsWith("/token") && answer.ok) renewedAt = Date.now();
      return answer;
    },
  });
  await live();
  const { streamId } = bell.connection.get();
  if (Date.now() > endsAt) return false;
  // The same token opens a stream that is not renewed. When the service closes that stream, the token has expired.
  await closed(first).catch(() => until(() => Date.now() > endsAt));
  if (renewedAt > endsAt) return false;
  assert.equal(bell.connection.get().status, "live");
  assert.equal(bell.connection.get().streamId, streamId);
  assert.equal(given.length, 2, "the app was asked for a token more often than it was needed");
  await notify(user, "after the first token's end");
  await until(() => of("notification:created").length === 1, "an event after the first token's end");
  assert.equal(bell.connection.get().streamId, streamId);
  return true;
}

test("R-SCH-FR-002: a stream outlives its token by renewing it in place", options, async () => {
  // The longer lifetimes are for a machine that is too busy to renew a short one in time.
  for (const seconds of [2, 4, 8, 16, 32, 64]) if (await outlives(seconds)) return;
  assert.fail("no token was renewed before its end");
});

test("R-CNT-13.1: topics are added and removed without a new stream", options, async () => {
  const { bell, live, heard } = ring("topics");
  await live();
  const { streamId } = bell.connection.get();
  await post("/v1/conversations", { id: "unrelated", memberIds: ["topics"] });
  const off = bell.subscribe(["queue:s1", "dj:s1"]);
  await until(() => bell.connection.get().topics.length === 3);
  off();
  await until(() => bell.connection.get().topics.length === 1);
  assert.equal(bell.connection.get().streamId, streamId);
  assert.ok(heard.length > 0);
});

test("R-CUT-N-4: an unknown topic is refused with its reason; the bell and other topics continue",
  options, async () => {
  const { bell, of, live } = ring("nonsense", { topics: ["nonsense:s1", "queue:s1"] });
  const refused = [];
  const off = bell.subscribe(["nothing:s2", "dj:s1"], (refusal) => refused.push(refusal));
  await live();
  await until(() => bell.connection.get().topics.length === 3);
  assert.deepEqual(bell.connection.get().topics, ["personal", "queue:s1", "dj:s1"]);
  assert.deepEqual(Object.keys(bell.connection.get().refused).sort(), ["nonsense:s1", "nothing:s2"]);
  assert.equal(bell.connection.get().refused["nonsense:s1"].status, 422);
  assert.deepEqual(refused.map(({ topic, problem }) => [topic, problem.code]), [["nothing:s2", "request.invalid"]]);
  assert.equal(of("topic:refused").length, 2);
  await notify("nonsense", "in-spite-of-it");
  await until(() => of("notification:created").length === 1);
  await until(() => bell.badges.get()?.bell === 1);
  off();
  await until(() => !bell.connection.get().refused["nothing:s2"]);
});

test("R-SCH-NFR-004: a wrong token does not become live, and shows the reason", options, async () => {
  const { bell } = ring("wrong", { token: "not.a.token" });
  await until(() => bell.connection.get().tries > 1);
  assert.notEqual(bell.connection.get().status, "live");
  assert.equal(bell.connection.get().reason.status, 401);
});

test("R-CNT-RECON-4: an unchanged count is a 304", options, async () => {
  const statuses = [];
  const counting = async (url, init) => {
    const answer = await fetch(url, init);
    if (String(url).endsWith("/v1/badges")) statuses.push([answer.status, init.headers["If-None-Match"] !== undefined]);
    return answer;
  };
  const { bell, live } = ring("counted", { fetch: counting, limits: { polling: { connectedMs: 50, leastMs: 10 } } });
  const counts = [];
  bell.badges.subscribe(() => counts.push(bell.badges.get()));
  await live();
  await until(() => statuses.filter(([status]) => status === 304).length >= 3);
  assert.deepEqual(statuses[0], [200, false]);
  assert.equal(counts[0].bell, 0);
  await notify("counted", "one");
  await until(() => counts.some(({ bell }) => bell === 1));
});

test("R-SCH-EC4: two users of one device share nothing", options, async () => {
  const storage = memoryStorage();
  const first = ring("first", { storage });
  await first.live();
  await notify("first", "of the first");
  await until(() => first.of("notification:created").length === 1);
  first.bell.close();
  const second = ring("second", { storage });
  await second.live();
  await notify("second", "of the second");
  await until(() => second.of("notification:created").length === 1);
  assert.equal(second.of("stream:resync").length, 0);
  second.bell.close();
  const again = ring("first", { storage });
  await again.live();
  await notify("first", "again");
  await until(() => again.of("notification:created").length === 1);
  assert.equal(again.of("notification:created")[0].data.eventId, "again");
});
