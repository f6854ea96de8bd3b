// A runtime like React Native's, against the real service. It has XMLHttpRequest, a fetch that does not stream,
// AppState, NetInfo and AsyncStorage. It has no document, IndexedDB, locks, channels or TextDecoder.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { binary, startService, until } from "./service.js";
import { NodeXMLHttpRequest } from "./xhr.js";

const options = { skip: binary ? false : "no binary of the service: set BELLHOP_BIN" };
const nodeFetch = globalThis.fetch;
let service;
let connect;
const open = [];

before(async () => {
  if (!binary) return;
  service = await startService({ flags: { "rate-limit-user": 0 } });
  globalThis.XMLHttpRequest = NodeXMLHttpRequest;
  for (const name of ["BroadcastChannel", "crypto", "EventSource", "TextDecoder"]) {
    Object.defineProperty(globalThis, name, { value: undefined, configurable: true });
  }
  // React Native's fetch is built on XMLHttpRequest, and its Response has no readable body.
  globalThis.Response = class Response {};
  globalThis.fetch = fetchByXHR;
  ({ connect } = await import("../../../.build-js/index.js"));
});
after(() => service?.stop());
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

function fetchByXHR(url, { method = "GET", headers = {}, body, signal } = {}) {
  return new Promise((resolve, reject) => {
    const request = new NodeXMLHttpRequest();
    request.open(method, url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.onload = () => resolve({
      status: request.status, ok: request.status === 200, headers: new Headers(request.headers), text: async () => request.responseText,
    });
    request.onerror = () => reject(new TypeError("Network request failed"));
    signal?.addEventListener("abort", () => {
      request.abort();
      reject(new Error("Aborted"));
    });
    request.send(body);
  });
}

/** AsyncStorage. */
function asyncStorage() {
  const values = new Map();
  return {
    values,
    getItem: async (key) => values.get(key) ?? null,
    setItem: async (key, value) => void values.set(key, value),
    removeItem: async (key) => void values.delete(key),
    getAllKeys: async () => [...values.keys()],
  };
}

function device() {
  const states = new Set();
  const networks = new Set();
  const appState = {
    currentState: "active",
    addEventListener(_, listener) {
      states.add(listener);
      return { remove: () => states.delete(listener) };
    },
  };
  return {
    appState,
    netInfo: {
      addEventListener(listener) {
        networks.add(listener);
        listener({ isConnected: true, type: "wifi" });
        return () => networks.delete(listener);
      },
    },
    become(state) {
      appState.currentState = state;
      for (const listener of states) listener(state);
    },
    join: (type) => {
      for (const listener of networks) listener({ isConnected: type !== "none", type });
    },
  };
}

function ring(user, { storage = asyncStorage(), phone = device() } = {}) {
  const heard = [];
  const bell = connect({
    url: service.url, token: async () => service.token(user), user, storage, network: phone.netInfo,
    lifecycle: phone.appState, limits: { firstMs: 20, wakeMs: 5, polling: { leastMs: 10 } },
  });
  open.push(() => bell.close());
  bell.on("notification:created", ({ data }) => void heard.push(data.eventId));
  return { bell, heard, storage, phone, becomes: (status) => until(() => bell.connection.get().status === status) };
}

async function notify(user, id) {
  const headers = {
    Authorization: `Bearer ${service.token("backend", "--role", "service_role")}`, "Content-Type": "application/json",
  };
  const body = JSON.stringify({ id, type: "auth.signup", userId: user, data: {} });
  assert.equal((await nodeFetch(`${service.url}/v1/events`, { method: "POST", headers, body })).status, 201);
}

test("R-CUT-N-3: after a change or loss of the network, the stream resumes at its cursor", options, async () => {
  const { bell, heard, phone, becomes } = ring("moves");
  await becomes("live");
  await notify("moves", "one");
  await until(() => heard.length === 1);
  const { streamId } = bell.connection.get();
  phone.join("cellular");
  await until(() => bell.connection.get().status === "live" && bell.connection.get().streamId !== streamId);
  phone.join("none");
  await notify("moves", "two");
  phone.join("wifi");
  await until(() => heard.length === 2);
  assert.deepEqual(heard, ["one", "two"]);
});

test("R-VIS-NFR-2.3: writes made offline survive the app's end, in AsyncStorage", options, async () => {
  const first = ring("writes");
  await first.becomes("live");
  await service.kill();
  first.phone.join("none");
  await first.becomes("offline");
  first.bell.send("PUT", "/v1/preferences", { sound: false }).catch(() => {});
  first.bell.send("PUT", "/v1/preferences", { haptics: false }).catch(() => {});
  await until(() => [...first.storage.values.keys()].filter((key) => key.includes("outbox/")).length === 2);
  first.bell.close();
  await service.restart();
  const second = ring("writes", { storage: first.storage });
  const sent = [];
  second.bell.on("outbox:sent", ({ data }) => void sent.push(data.body));
  await until(() => sent.length === 2);
  assert.deepEqual(sent, [{ sound: false }, { haptics: false }]);
  const { body } = await second.bell.get("/v1/preferences");
  // A PUT replaces all fields, so the last one wins.
  assert.deepEqual([body.sound, body.haptics], [true, false]);
  assert.equal([...second.storage.values.keys()].some((key) => key.includes("outbox/")), false);
});

test("R-CNT-RECON-1: counts are fetched when the app enters the foreground", options, async () => {
  let polls = 0;
  globalThis.fetch = (url, init) => {
    if (url.endsWith("/v1/badges")) polls += 1;
    return fetchByXHR(url, init);
  };
  open.push(() => void (globalThis.fetch = fetchByXHR));
  const { bell, phone, becomes } = ring("returns");
  const counts = [];
  bell.badges.subscribe(() => counts.push(bell.badges.get()));
  await becomes("live");
  await until(() => counts.length >= 1 && polls >= 1);
  phone.become("background");
  await notify("returns", "meanwhile");
  const before = polls;
  phone.become("active");
  await until(() => polls > before && counts.at(-1).bell === 1);
});
