// One stream for many tabs, in one process: the locks are a double of the browser's, the channels are Node's own.
// Tests/browser does the same with real tabs.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { systemClock } from "../../../.build-js/stores/store.js";
import { group } from "../../../.build-js/tabs/group.js";
import { holder } from "../../../.build-js/tabs/holder.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { fetchTransport } from "../../../.build-js/transport/fetch.js";
import { announceSeed, badges, json, ready, scriptedServer, seeded, streamHead } from "./scripted.js";
import { until } from "./service.js";

const open = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** A double of the Web Locks standard, as far as it is used: one queue per name. */
function makeLocks() {
  const queues = new Map();
  function next(name) {
    const queue = queues.get(name) ?? [];
    const [first] = queue;
    if (!first || first.isHeld) return;
    first.isHeld = true;
    setImmediate(() => {
      Promise.resolve(first.callback({ name })).then(first.resolve, first.reject).finally(() => release(name, first));
    });
  }
  function release(name, entry) {
    const queue = queues.get(name) ?? [];
    if (queue.includes(entry)) queue.splice(queue.indexOf(entry), 1);
    next(name);
  }
  return {
    /** The lock manager of a tab; `die` releases its locks as when the tab is killed. */
    of() {
      const own = [];
      return {
        request(name, options, callback = options) {
          const { signal } = callback === options ? {} : options;
          return new Promise((resolve, reject) => {
            const entry = { name, callback, resolve, reject, isHeld: false };
            own.push(entry);
            if (!queues.has(name)) queues.set(name, []);
            if (callback !== options && options.steal) {
              const robbed = queues.get(name)[0];
              if (robbed?.isHeld) {
                queues.get(name).shift();
                robbed.reject(new Error("stolen"));
              }
              queues.get(name).unshift(entry);
              return next(name);
            }
            queues.get(name).push(entry);
            signal?.addEventListener("abort", () => {
              if (entry.isHeld) return;
              release(name, entry);
              reject(new Error("aborted"));
            });
            next(name);
          });
        },
        query: async () => ({
          held: [...queues].filter(([, queue]) => queue[0]?.isHeld).map(([name]) => ({ name })),
        }),
        die() {
          for (const entry of own) release(entry.name, entry);
        },
      };
    },
    holderOf: (name) => queues.get(name)?.find(({ isHeld }) => isHeld),
  };
}

let names = 0;

/** The devices of a tab that a browser can suspend: a suspended tab receives nothing until it wakes. */
function sleeper() {
  const channels = [];
  /** A killed tab is silent, and so is the work it had started. */
  const state = { isDead: false, isFrozen: false, isAsleep: false };
  /** Events for a suspended tab, delivered when it wakes. */
  let onWaking = [];
  const awake = (run) => state.isAsleep ? void onWaking.push(run) : run();
  class Channel extends BroadcastChannel {
    constructor(channel) {
      super(channel);
      channels.push(this);
    }

    set onmessage(listener) {
      super.onmessage = (event) => state.isFrozen || awake(() => listener(event));
    }

    postMessage(message) {
      if (!state.isDead && !state.isAsleep) super.postMessage(message);
    }
  }
  return {
    state, channels, Channel,
    clock: { ...systemClock, after: (ms, run) => systemClock.after(ms, () => awake(run)) },
    transport: (at, headers, { head, text, end }) => fetchTransport()(at, headers, {
      head: (given) => awake(() => head(given)), text: (given) => awake(() => text(given)),
      end: (given) => awake(() => end(given)),
    }),
    sleep(whether) {
      state.isAsleep = whether;
      if (whether) return;
      const late = onWaking;
      onWaking = [];
      for (const run of late) run();
    },
  };
}

/** Opens tabs of one user on a server. */
function browser(url, more = {}) {
  const name = `test ${process.pid} ${(names += 1)}`;
  const shared = { url, more, name, storage: memoryStorage(), asked: [], locks: makeLocks(), holder: null, tabs: 0 };
  const { storage, asked } = shared;
  return { name, storage, asked, holder: () => shared.holder, tab: (options) => openTab(shared, options) };
}

function openTab(shared, { isTab = true, token = "t" } = {}) {
  const { url, more, name, storage, asked } = shared;
  const id = `tab${(shared.tabs += 1)}`;
  const received = [];
  const deliveries = [];
  const own = shared.locks.of();
  const { state, channels, Channel, clock, transport, sleep } = sleeper();
  let held = null;
  const me = { id, received, deliveries, isHolder: () => shared.holder === me };
  const provider = async ({ spent }) => {
    asked.push([id, spent]);
    return state.isDead ? new Promise(() => {}) : token;
  };
  const it = group({
    name, tab: id, isTab, clock, locks: own, Channel,
    emit(delivery, isMine) {
      if (state.isDead) return;
      deliveries.push({ ...delivery, isMine });
      if (delivery.type === "event") received.push(delivery.event);
    },
    provider: isTab ? provider : undefined,
    makeHolder(parts) {
      shared.holder = me;
      held = holder({
        url, clock, transport, storage, scope: `${name} `, user: "ada", clientId: id,
        limits: { firstMs: 5, delayMsMax: 20 }, ...parts,
      });
      return held;
    },
    ...more,
  });
  it.start();
  it.subscribe({ foreground: true });
  const kill = () => {
    state.isDead = true;
    for (const channel of channels) channel.close();
    held?.close();
    own.die();
  };
  open.push(() => {
    it.close();
    kill();
  });
  return Object.assign(me, {
    it, kill, sleep,
    freeze: (whether) => void (state.isFrozen = whether),
    tests: () => received.filter((event) => event.name === "test").map(({ data }) => data.n),
    status: () => deliveries.filter(({ type }) => type === "status").at(-1)?.status.status,
  });
}

/** A service whose log the test extends. */
async function logServer() {
  const log = [];
  const streams = new Set();
  let count = 0;
  let topics = [];
  const line = ({ id, n }) => `id: ${id}\nevent: test\ndata: {"n":${n}}\n\n`;
  const server = await scriptedServer((request, socket) => {
    if (request.path === "/v1/badges") return json(socket, 200, badges);
    if (request.method === "PUT") ({ topics } = request.body);
    if (request.method !== "GET") return json(socket, 200, { topics: ["personal", ...topics] });
    const since = request.headers["last-event-id"];
    const from = since ? Number(since.slice(2)) : log.length;
    count += 1;
    topics = decodeURIComponent(request.path.split("topics=")[1] ?? "").split(",").filter(Boolean);
    const begin = ready(`s${count}`, ["personal", ...topics], `e-${from}`);
    socket.write(streamHead + begin + log.slice(from).map(line).join(""));
    streams.add(socket);
    socket.on("close", () => streams.delete(socket));
  });
  open.push(server.stop);
  return {
    ...server, streams, log,
    opened: () => count,
    topics: () => topics,
    add() {
      const entry = { id: `e-${log.length + 1}`, n: log.length + 1 };
      log.push(entry);
      for (const socket of streams) socket.write(line(entry));
    },
  };
}

const upTo = (n) => Array.from({ length: n }, (_, index) => index + 1);

test("fifty tabs share one stream, and each receives every event", async () => {
  const server = await logServer();
  const { tab } = browser(server.url);
  const tabs = upTo(50).map(() => tab());
  await until(() => tabs.every(({ status }) => status() === "live"));
  for (let n = 0; n < 20; n += 1) server.add();
  await until(() => tabs.every(({ tests }) => tests().length >= 20));
  for (const { tests } of tabs) assert.deepEqual(tests(), upTo(20));
  assert.equal(server.opened(), 1);
});

test("the holder is killed repeatedly: the next one continues, without loss or duplicates", async () => {
  const random = seeded(announceSeed("group"));
  const server = await logServer();
  const { tab, holder: holderNow } = browser(server.url);
  const tabs = upTo(5).map(() => tab());
  await until(() => tabs.every(({ status }) => status() === "live"));
  const firsts = new Map(tabs.map((one) => [one, 0]));
  for (let round = 0; round < 40; round += 1) {
    for (let n = Math.floor(random() * 5); n > 0; n -= 1) server.add();
    const dead = holderNow();
    if (random() < 0.5) await new Promise((done) => setImmediate(done));
    dead.kill();
    tabs.splice(tabs.indexOf(dead), 1);
    for (let n = Math.floor(random() * 5); n > 0; n -= 1) server.add();
    await until(() => tabs.some((one) => one.isHolder()) && tabs.every(({ status }) => status() === "live") &&
      tabs.every((one) => firsts.get(one) + one.tests().length >= server.log.length), "the next one goes on");
    const added = tab();
    await until(() => added.status() === "live");
    firsts.set(added, server.log.length);
    tabs.push(added);
  }
  for (const one of tabs) assert.deepEqual(one.tests(), upTo(server.log.length).slice(firsts.get(one)));
});

test("a worker holds the stream; the token is a tab's, and another tab's where that one is gone", async () => {
  const server = await logServer();
  const { tab, holder: holderNow, asked } = browser(server.url);
  const worker = tab({ isTab: false });
  await until(() => holderNow() === worker);
  const first = tab({ token: null });
  const second = tab({ token: "t2" });
  await until(() => second.status() === "live" && first.status() === "live");
  assert.deepEqual(asked.map(([id]) => id), [first.id, second.id]);
  assert.equal(server.requests[0].headers.authorization, "Bearer t2");
  server.add();
  await until(() => first.tests().length === 1 && second.tests().length === 1);
  worker.kill();
  await until(() => holderNow() !== worker);
  server.add();
  await until(() => first.tests().length === 2 && second.tests().length === 2);
  assert.deepEqual(second.tests(), [1, 2]);
});

test("the stream has the topics of all tabs, and drops those of a closed tab", async () => {
  const server = await logServer();
  const { tab } = browser(server.url);
  const [first, second, third] = [tab(), tab(), tab()];
  const has = (...topics) => until(() => JSON.stringify([...server.topics()].sort()) === JSON.stringify(topics));
  second.it.subscribe({ topics: ["queue:s1"] });
  third.it.subscribe({ topics: ["queue:s1", "dj:s1"] });
  await has("dj:s1", "queue:s1");
  await until(() => [first, second, third].every(({ status }) => status() === "live"));
  third.kill();
  await has("queue:s1");
  second.it.subscribe({ topics: [] });
  await has();
  assert.equal(server.opened(), third.isHolder() ? 2 : 1);
});

test("a write's answer goes to the tab that made it, or to another where that one is gone", async () => {
  const server = await logServer();
  const { tab } = browser(server.url);
  const [first, second] = [tab(), tab()];
  await until(() => first.status() === "live" && second.status() === "live");
  const item = (n, of) => ({ key: `k${n}`, order: `o${n}`, method: "POST", path: `/p/${n}`, tried: null, tab: of });
  const told = (one, key) => one.deliveries.filter((delivery) =>
    delivery.type === "answered" && delivery.item.key === key && delivery.isMine);
  second.it.add(item(1, second.id));
  first.it.add(item(2, "a tab of yesterday"));
  await until(() => [first, second].every((one) => one.deliveries.filter(({ type }) => type === "answered").length === 2));
  assert.equal(told(first, "k1").length, 0);
  assert.equal(told(second, "k1").length, 1);
  assert.equal(told(first, "k2").length + told(second, "k2").length, 1);
});

test("R-VIS-NFR-2.3: signing out in one tab makes the holder of any tab drop waiting writes", async () => {
  const server = await logServer();
  const { tab, holder: holderNow } = browser(server.url);
  const tabs = [tab(), tab()];
  await until(() => tabs.every(({ status }) => status() === "live"));
  const writer = tabs.find((one) => one !== holderNow());
  writer.it.network({ online: false });
  const item = (n) => ({ key: `k${n}`, order: `o${n}`, method: "POST", path: `/p/${n}`, tried: null, tab: writer.id });
  for (const n of [1, 2]) writer.it.add(item(n));
  await until(() => tabs.every(({ deliveries }) => deliveries.filter(({ type }) => type === "waiting").at(-1)?.count === 2));
  writer.it.forget();
  await until(() => tabs.every(({ deliveries }) => deliveries.filter(({ type }) => type === "answered").length === 2));
  const codes = writer.deliveries.filter(({ type }) => type === "answered").map(({ answer }) => answer.body.code);
  assert.deepEqual(codes, ["outbox.signed_out", "outbox.signed_out"]);
  writer.it.network({ online: true });
  await until(() => writer.status() === "live");
  assert.equal(server.requests.filter(({ path }) => path.startsWith("/p/")).length, 0);
});

test("R-VIS-NFR-2.3: a write that its page only stored is sent by the next page", async () => {
  const server = await logServer();
  const { tab, storage, name } = browser(server.url);
  const first = tab();
  await until(() => first.status() === "live");
  const item = { key: "k1", order: "o1", method: "POST", path: "/p/1", tried: null, tab: "a page before" };
  await storage.set(`${name} outbox/o1`, JSON.stringify(item));
  const second = tab();
  await until(() => [first, second].some(({ deliveries }) => deliveries.some(({ type }) => type === "answered")));
  assert.equal(server.requests.filter(({ path }) => path === "/p/1").length, 1);
  assert.equal(server.requests.find(({ path }) => path === "/p/1").headers["idempotency-key"], "k1");
  await until(async () => (await storage.keys(`${name} outbox/`)).length === 0);
});

test("R-VIS-NFR-2.3: writes passed to a dying holder are sent by the next one, in order", async () => {
  const server = await logServer();
  const { tab, holder: holderNow } = browser(server.url);
  const tabs = [tab(), tab()];
  await until(() => tabs.every(({ status }) => status() === "live"));
  const writer = tabs.find((one) => one !== holderNow());
  holderNow().sleep(true);
  for (let n = 1; n <= 5; n += 1) {
    writer.it.add({ key: `k${n}`, order: `o${n}`, method: "POST", path: `/p/${n}`, tried: null, tab: writer.id });
  }
  holderNow().kill();
  await until(() => writer.deliveries.filter(({ type }) => type === "answered").length === 5);
  const written = server.requests.filter(({ path }) => path.startsWith("/p/")).map(({ path }) => path);
  assert.deepEqual(written, ["/p/1", "/p/2", "/p/3", "/p/4", "/p/5"]);
});

test("a frozen tab catches up; one frozen beyond the retention gets a resync", async () => {
  const server = await logServer();
  const { tab, holder: holderNow } = browser(server.url);
  const tabs = [tab(), tab()];
  await until(() => tabs.every(({ status }) => status() === "live"));
  server.add();
  await until(() => tabs.every(({ tests }) => tests().length === 1));
  const away = tabs.find((one) => holderNow() !== one);
  away.freeze(true);
  for (let n = 0; n < 20; n += 1) server.add();
  await until(() => holderNow().tests().length === 21);
  away.freeze(false);
  server.add();
  await until(() => away.tests().length === 22);
  assert.deepEqual(away.tests(), upTo(22));
  away.freeze(true);
  for (let n = 0; n < 1200; n += 1) server.add();
  await until(() => holderNow().tests().length === 1222);
  away.freeze(false);
  server.add();
  await until(() => away.received.some(({ name }) => name === "stream:resync"));
  server.add();
  await until(() => away.tests().includes(1224));
  assert.equal(new Set(away.tests()).size, away.tests().length);
});

test("a suspended holder is replaced, and steps down when it resumes", async () => {
  const server = await logServer();
  const { tab, holder: holderNow } = browser(server.url, { watch: { everyMs: 100, answerMs: 100 } });
  const tabs = [tab(), tab(), tab()];
  await until(() => tabs.every(({ status }) => status() === "live"));
  server.add();
  await until(() => tabs.every(({ tests }) => tests().length === 1));
  const asleep = holderNow();
  asleep.sleep(true);
  await until(() => holderNow() !== asleep);
  const others = tabs.filter((one) => one !== asleep);
  server.add();
  await until(() => others.every(({ tests }) => tests().length === 2));
  asleep.sleep(false);
  server.add();
  await until(() => tabs.every(({ tests }) => tests().length === 3));
  for (const { tests } of tabs) assert.deepEqual(tests(), upTo(3));
  await until(() => server.streams.size === 1, "one stream");
});
