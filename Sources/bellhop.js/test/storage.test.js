// IndexedDB as browsers have it: they may close its connection at any time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { indexedDBStorage } from "../../../.build-js/storage/indexeddb.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { backgroundMs } from "../../../.build-js/adapters/browser.js";
import { json, ready, scriptedServer, streamHead } from "./scripted.js";
import { until } from "./service.js";

/** As much of IndexedDB as the storage uses. `lose()` ends the connections as a browser does while a page sleeps: they
 * refuse transactions, and no event says so. */
function fakeIndexedDB() {
  const values = new Map();
  const it = { opened: 0, isBroken: false, lose: () => { it.isLost = true; } };
  const later = (request, name) => queueMicrotask(() => request[name]?.());
  it.open = () => {
    const request = {};
    it.opened += 1;
    it.isLost = false;
    const mine = it.opened;
    if (it.isBroken) {
      request.error = new Error("UnknownError");
      later(request, "onerror");
      return request;
    }
    request.result = {
      createObjectStore() {},
      transaction() {
        if (it.isLost || it.isBroken || mine !== it.opened) throw new Error("InvalidStateError: connection lost");
        const transaction = { objectStore: () => ({
          get: (key) => ({ result: values.get(key) }), put: (value, key) => ({ result: values.set(key, value) && key }),
          delete: (key) => ({ result: void values.delete(key) }), getAllKeys: () => ({ result: [...values.keys()] }),
        }) };
        setImmediate(() => transaction.oncomplete());
        return transaction;
      },
    };
    later(request, "onsuccess");
    return request;
  };
  return it;
}

async function withIndexedDB(run) {
  const fake = globalThis.indexedDB = fakeIndexedDB();
  globalThis.IDBKeyRange = { bound: () => null };
  try {
    await run(fake);
  } finally {
    delete globalThis.indexedDB;
    delete globalThis.IDBKeyRange;
  }
}

test("R-VIS-NFR-2.3: a lost connection of IndexedDB is opened again, and no write is lost", () => withIndexedDB(async (fake) => {
  const storage = indexedDBStorage();
  await storage.set("a", "1");
  for (let n = 0; n < 5; n += 1) {
    fake.lose();
    await storage.set(`k${n}`, "2");
  }
  assert.equal(await storage.get("k4"), "2");
  assert.equal(fake.opened, 6);
}));

test("R-VIS-NFR-2.3: the app hears that nothing can be stored, once, and that it can again", async () => {
  const server = await scriptedServer((request, socket) =>
    request.path.startsWith("/v1/stream") ? socket.write(streamHead + ready("s1")) : json(socket, 503, { code: "busy" }));
  const memory = memoryStorage();
  let isBroken = false;
  const broken = (name) => (...given) => isBroken ? Promise.reject(new Error("UnknownError: lost")) : memory[name](...given);
  const storage = Object.fromEntries(["get", "set", "remove", "keys"].map((name) => [name, broken(name)]));
  const bell = connect({ url: server.url, token: "t1", user: "ada", storage, features: {} });
  const received = [];
  for (const name of ["storage:failed", "storage:restored"]) bell.on(name, (event) => received.push([event.name, event.data]));
  await until(() => bell.connection.get().status === "live");
  isBroken = true;
  bell.send("POST", "/v1/w", { n: 1 }).catch(() => {});
  bell.send("POST", "/v1/w", { n: 2 }).catch(() => {});
  await until(() => received.length === 1);
  assert.deepEqual(received, [["storage:failed", { detail: "Error: UnknownError: lost" }]]);
  isBroken = false;
  bell.send("POST", "/v1/w", { n: 3 }).catch(() => {});
  await until(() => received.length === 2);
  assert.equal(received[1][0], "storage:restored");
  bell.close();
  await server.stop();
});

test("R-SCH-SC-003: an iPad, whose Safari calls itself a Mac, counts as a phone", () => {
  const ipad = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15";
  assert.equal(backgroundMs({ userAgent: ipad, product: "Gecko", maxTouchPoints: 5 }), 30_000);
  assert.equal(backgroundMs({ userAgent: ipad, product: "Gecko", maxTouchPoints: 0 }), null);
  const windows = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/140";
  assert.equal(backgroundMs({ userAgent: windows, product: "Gecko", maxTouchPoints: 10 }), null);
});

test("R-CUT-N-3: a network may report a Boolean, as a lifecycle does", async () => {
  const server = await scriptedServer((request, socket) =>
    request.path.startsWith("/v1/stream") ? socket.write(streamHead + ready("s1")) : json(socket, 404, null));
  let tell;
  const network = { online: () => true, listen: (listener) => { tell = listener; return () => {}; } };
  const bell = connect({ url: server.url, token: "t1", user: "ada", storage: memoryStorage(), network, features: {},
    limits: { firstMs: 5, wakeMs: 5 } });
  const becomes = (status) => until(() => bell.connection.get().status === status);
  await becomes("live");
  server.isDown = true;
  tell(false);
  for (const socket of server.sockets) socket.destroy();
  await becomes("offline");
  server.isDown = false;
  tell(true);
  await becomes("live");
  bell.close();
  await server.stop();
});

test("a 101st topic is refused to its store, with a reason, and breaks nothing else", async () => {
  const { queue } = await import("../../../.build-js/features.js");
  const server = await scriptedServer((request, socket) =>
    request.path.startsWith("/v1/stream") ? socket.write(streamHead + ready("s1")) : json(socket, 404, { code: "not_found" }));
  const bell = connect({ url: server.url, token: "t1", user: "ada", storage: memoryStorage(), features: { queue } });
  const refused = [];
  bell.on("topic:refused", ({ data }) => refused.push(data));
  for (let n = 0; n < 101; n += 1) bell.queue(`s${n}`).subscribe(() => {});
  assert.deepEqual(refused, [{ topic: "queue:s100", problem: { code: "topics.full", detail: "a stream has at most 100 topics" } }]);
  assert.throws(() => bell.subscribe(["queue:more"]), RangeError);
  bell.close();
  await server.stop();
});

test("the first call without an answer is explained once, with the name of the setting", async () => {
  globalThis.location = { origin: "https://app.example", href: "https://app.example/" };
  const warned = [];
  const { warn } = console;
  console.warn = (text) => warned.push(text);
  try {
    const { calls } = await import("../../../.build-js/calls.js?page");
    const { systemClock } = await import("../../../.build-js/stores/store.js");
    const refuse = () => Promise.reject(new TypeError("Failed to fetch"));
    const http = calls({ url: "https://bells.example", token: async () => "t1", fetch: refuse, clock: systemClock, clientId: "c" });
    for (let n = 0; n < 3; n += 1) assert.equal((await http.attempt("GET", "/v1/badges")).status, 0);
  } finally {
    console.warn = warn;
    delete globalThis.location;
  }
  assert.equal(warned.length, 1);
  assert.match(warned[0], /corsOrigins name https:\/\/app\.example/);
});
