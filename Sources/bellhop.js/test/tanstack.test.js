// The bridge against the contract of QueryClient, as TanStack's own sources define it (query-core/src/queryClient.ts of
// version 5; the package itself is not installed). The double below follows these rules: `setQueryDefaults` replaces
// the defaults of one key, and applies to every key that begins with it; `queryKey` compares parts by type;
// `invalidateQueries` marks the matching queries and refetches the queries that `refetchType` selects.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { bridge } from "../../../.build-js/tanstack.js";
import { plainToken } from "./modules.js";
import { until } from "./service.js";
import { streamServer } from "./stream.js";

const begins = (key, start) => start.every((part, index) => part === key[index]);

class QueryClient {
  defaults = new Map();
  queries = [];
  fetched = [];
  listeners = new Set();
  isCleared = false;
  #options;
  constructor(defaultOptions = {}) {
    this.#options = defaultOptions;
  }
  getDefaultOptions() {
    return this.#options;
  }
  setDefaultOptions(options) {
    this.#options = options;
  }
  getQueryDefaults(key) {
    return Object.assign({}, ...[...this.defaults.values()].filter((one) => begins(key, one.key)).map(({ own }) => own));
  }
  setQueryDefaults(key, own) {
    this.defaults.set(JSON.stringify(key), { key, own });
  }
  /** Returns the staleTime of a query, as an observer sees it. */
  staleTime(key) {
    return { ...this.#options.queries, ...this.getQueryDefaults(key) }.staleTime;
  }
  clear() {
    this.isCleared = true;
    for (const query of this.queries) query.data = undefined;
  }
  async invalidateQueries(filters = {}) {
    const { queryKey = [], predicate = () => true, refetchType = "active" } = filters;
    const found = this.queries.filter((query) => begins(query.key, queryKey) && predicate({ queryKey: query.key }));
    for (const query of found) query.isInvalidated = true;
    for (const query of found) {
      if (refetchType === "none" || (refetchType !== "all" && query.isActive !== (refetchType === "active"))) continue;
      this.fetched.push(query.key.join("/"));
      query.isInvalidated = false;
    }
  }
  getMutationCache() {
    return {
      subscribe: (listener) => {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
      },
    };
  }
  /** Emits a mutation of an app to its cache. */
  mutate(meta) {
    const mutation = { meta, options: { meta } };
    for (const type of ["pending", "success"]) for (const listener of this.listeners) listener({ type: "updated",
      mutation, action: { type } });
  }
}

let server;
let bell;
before(async () => {
  server = await streamServer();
  bell = connect({ url: server.url, token: plainToken("ada"), limits: { firstMs: 20 } });
  await until(() => bell.connection.get().status === "live");
});
after(async () => {
  bell.close();
  await server.stop();
});

const cause = (originId, recordId = "7") => ({ schema: "public", table: "todos", type: "UPDATE", recordId,
  actorId: null, originId });
const invalidate = (key, causes = [cause("other")]) => server.send("query:invalidate", { keys: [key], causes,
  causesComplete: true });
function client() {
  const made = new QueryClient({ queries: { retry: 2, staleTime: 5 }, mutations: { retry: 1 } });
  made.queries = [
    { key: ["leaderboard", "c1"], isActive: true, data: 1 }, { key: ["leaderboard", "c2"], isActive: false, data: 2 },
    { key: ["students"], isActive: true, data: 3 },
  ];
  return made;
}

test("R-SCH-NFR-003, R-SCH-A-006: the service's keys stay fresh while a stream is live, and last five minutes without",
  async () => {
  const queryClient = client();
  queryClient.setQueryDefaults(["leaderboard"], { gcTime: 9 });
  const before = queryClient.getDefaultOptions();
  const stop = bridge(queryClient, bell, { keys: [["leaderboard"], ["student"]] });
  await until(() => queryClient.staleTime(["leaderboard", "c1"]) === Infinity);
  assert.equal(queryClient.staleTime(["student", 42]), Infinity);
  assert.equal(queryClient.staleTime(["weather"]), 5, "a key without change notices keeps the app's own");
  assert.equal(queryClient.getQueryDefaults(["leaderboard"]).gcTime, 9);
  const seen = [];
  const set = queryClient.setQueryDefaults.bind(queryClient);
  queryClient.setQueryDefaults = (key, options) => {
    if (key[0] === "student") seen.push(options.staleTime);
    set(key, options);
  };
  server.cut();
  await until(() => seen.length === 2);
  assert.deepEqual(seen, [300_000, Infinity]);
  stop();
  assert.equal(queryClient.staleTime(["leaderboard", "c1"]), 5);
  assert.equal(queryClient.getQueryDefaults(["leaderboard"]).gcTime, 9);
  assert.equal(queryClient.getDefaultOptions(), before);
});

test("R-SCH-FR-006: a query with a numeric id is fetched when the service names the id as text", async () => {
  const queryClient = client();
  queryClient.queries = [{ key: ["student", 42], isActive: true }, { key: ["student", 421], isActive: true }];
  const stop = bridge(queryClient, bell);
  invalidate(["student", "42"]);
  await until(() => queryClient.fetched.length > 0);
  assert.deepEqual(queryClient.fetched, ["student/42"]);
  stop();
});

test("R-SCH-FR-003: all active queries are refetched after a reconnection", async () => {
  const queryClient = client();
  const stop = bridge(queryClient, bell);
  server.cut();
  await until(() => queryClient.fetched.length === 2);
  assert.deepEqual(queryClient.fetched, ["leaderboard/c1", "students"]);
  stop();
});

test("R-SCH-FR-006, R-SCH-FR-018, R-SCH-EC1: a key prefix invalidates inactive queries too, and keeps old data",
  async () => {
  const queryClient = client();
  const stop = bridge(queryClient, bell);
  invalidate(["leaderboard"]);
  await until(() => queryClient.fetched.includes("leaderboard/c1"));
  assert.deepEqual(queryClient.fetched, ["leaderboard/c1"]);
  assert.equal(queryClient.queries[1].isInvalidated, true);
  assert.deepEqual(queryClient.queries.map(({ data }) => data), [1, 2, 3]);
  stop();
});

test("R-SCH-FR-005, R-24: own echoes invalidate nothing, others' changes of the same row are", async () => {
  const queryClient = client();
  const stop = bridge(queryClient, bell);
  const told = [];
  const off = bell.on("query:invalidate", ({ data }) => told.push(data.keys[0][0]));
  queryClient.mutate({ bellhop: { table: "todos", recordId: 7 } });
  invalidate(["students", "own"], [cause(null)]);
  invalidate(["students", "mine"], [cause(bell.clientId)]);
  queryClient.queries.push({ key: ["others"], isActive: true });
  invalidate(["others"], [cause("somebody")]);
  await until(() => queryClient.fetched.includes("others"));
  assert.equal(told.length, 3);
  assert.deepEqual(queryClient.fetched, ["others"]);
  off();
  stop();
});

test("R-SCH-FR-020: a forced refetch fetches inactive ones too", () => {
  const queryClient = client();
  const stop = bridge(queryClient, bell);
  bell.invalidation.refetch(["leaderboard"]);
  assert.deepEqual(queryClient.fetched, ["leaderboard/c1", "leaderboard/c2"]);
  stop();
  bell.invalidation.refetch(["leaderboard"]);
  assert.equal(queryClient.fetched.length, 2, "a bridge that was taken away does nothing");
});

test("R-SCH-FR-002: another user's data is not kept", () => {
  const queryClient = client();
  const stop = bridge(queryClient, bell);
  bell.signOut();
  assert.equal(queryClient.isCleared, true);
  bell.signIn("ada");
  stop();
});

test("an event that a feature cannot read is reported, and the stream continues", async () => {
  const reported = [];
  const before = globalThis.reportError;
  globalThis.reportError = (error) => void reported.push(error);
  try {
    bell.notifications.get();
    await until(() => bell.connection.get().status === "live");
    server.send("notification:updated", { ids: ["n1"] });
    server.send("badges:update", { ...(bell.badges.get() ?? {}), messages: 7, requests: 0, bell: 0, version: 9,
      epoch: "e" });
    await until(() => bell.badges.get()?.messages === 7);
    assert.equal(reported.length, 1);
  } finally {
    globalThis.reportError = before;
  }
});

test("R-SCH-FR-003, R-SCH-EC6: a query that went stale in the background is fetched at the foreground", async () => {
  let isForeground = true;
  let look = () => {};
  const lifecycle = { foreground: () => isForeground, listen: (listener) => {
    look = (next) => listener(isForeground = next);
    return () => {};
  } };
  const away = connect({ url: server.url, token: plainToken("ada"), lifecycle, limits: { firstMs: 20 } });
  away.invalidation.get();
  await until(() => away.connection.get().status === "live");
  const queryClient = client();
  const stop = bridge(queryClient, away);
  look(false);
  queryClient.fetched = [];
  invalidate(["leaderboard"]);
  await until(() => queryClient.queries[0].isInvalidated);
  assert.deepEqual(queryClient.fetched, []);
  look(true);
  assert.deepEqual(queryClient.fetched, ["leaderboard/c1"]);
  stop();
  away.close();
});

test("bad input gets a clear error", () => {
  assert.throws(() => bridge({}, bell), /takes a QueryClient and a bell/);
  assert.throws(() => bridge(new QueryClient(), null), /made by connect/);
  assert.throws(() => bridge(new QueryClient(), bell, { keys: ["students"] }), /lists of key beginnings/);
});
