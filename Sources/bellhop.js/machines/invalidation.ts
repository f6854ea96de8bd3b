// Decides which queries an app has to refetch. The service sends the stale keys. The machine ignores the client's own
// changes and reports each key at most once per second. Invisible queries are only marked as stale, and refetched when
// they become visible.
import { same } from "./same.js";
import type { Outcome, StoreAction, TimerAction } from "../actions.js";
import type { QueryInvalidate } from "../models.js";
import type { InputOf, MachineEvent, StoreInputOf } from "./inputs.js";

type Key = string[];

interface Query {
  id: string;
  key: Key;
  isVisible: boolean;
  isStale: boolean;
}

export interface State {
  clientId: string | null;
  windowMs: number;
  staleMs: number;
  scopeKeys: Key[];
  isStale: boolean;
  missed: Key[];
  staleKeys: Key[];
  queries: Query[];
  windows: Record<string, { key: Key; endsAt: number; isWaiting: boolean }>;
  mutations: { table: string; recordId: string; at: number }[];
  isLive: boolean;
  isForeground: boolean;
  refreshedAt: number | null;
}

type Result = Outcome<State>;

/** How long the echo of an own change is expected, if the event does not identify its author (R-SCH-FR-005, R-24). */
const echoMs = 2000;
/** A user does not make more own changes than this within two seconds. */
const mutationsMax = 1000;
/** The maximum number of keys that the service sends a stream in one window. Beyond it, everything is refetched. */
const keysMax = 512;
/** The empty key, a prefix of every key. */
const everything = "[]";

export function initial(
  options?: { clientId?: string | null; windowMs?: number; staleMs?: number; scopeKeys?: Key[] },
): State {
  const { clientId = null, windowMs = 1000, staleMs = 300_000, scopeKeys = [["profile"], ["classes"]] } = options ?? {};
  return {
    clientId, windowMs, staleMs, scopeKeys, isStale: false, missed: [], staleKeys: [], queries: [], windows: {},
    mutations: [],
    isLive: false, isForeground: true, refreshedAt: null,
  };
}

export const snapshot = ({ isLive, isStale, staleKeys }: State) => ({ isLive, isStale, staleKeys });

export function receive(state: State, input: InputOf<"invalidation">): Result {
  const made = own(state, input);
  const staleKeys = made.state.queries.filter((query) => query.isStale).map((query) => query.key);
  const isSame = JSON.stringify(staleKeys) === JSON.stringify(state.staleKeys);
  const next = { ...made.state, staleKeys: isSame ? state.staleKeys : staleKeys };
  return { state: same(state, next), actions: made.actions };
}

function own(state: State, input: InputOf<"invalidation">): Result {
  const { now } = input;
  switch (input.type) {
    case "start": return connection(state, input.connection, now);
    case "connection": return connection(state, input.status, now);
    case "lifecycle": return lifecycle(state, input.foreground, now);
    case "event": return handle(state, input.event, now);
    case "timer": return timer(state, input);
    case "user": {
      const { queries, isForeground } = state;
      return refetch({ ...initial(state), queries, isForeground }, [], "user", now);
    }
    case "mutated": {
      const mutations = state.mutations.filter(({ at }) => now - at < echoMs).slice(1 - mutationsMax);
      const { table, recordId } = input;
      const mutation = { table, recordId: String(recordId), at: now };
      return { state: { ...state, mutations: [...mutations, mutation] }, actions: [] };
    }
    case "watch-query": {
      const { id, key, isVisible = true } = input;
      const others = state.queries.filter((query) => query.id !== id);
      const held = state.queries.find((query) => query.id === id);
      const query = { id, key, isVisible, isStale: held?.isStale ?? false };
      if (!isVisible || !query.isStale) return { state: { ...state, queries: [...others, query] }, actions: [] };
      // It became stale while it was not visible.
      return {
        state: { ...state, queries: [...others, { ...query, isStale: false }] },
        actions: [{ do: "publish", name: "query:refetch", data: { ids: [id], reason: "shown" } }],
      };
    }
    case "unwatch-query":
      return { state: { ...state, queries: state.queries.filter((query) => query.id !== input.id) }, actions: [] };
    // A forced refetch by the user skips the window, the echo filter and the visibility check (R-SCH-FR-020).
    case "refetch": return refetch(state, input.key ?? [], "forced", now);
  }
  return { state, actions: [] };
}

function connection(state: State, status: string, now: number): Result {
  const isLive = status === "live";
  if (isLive === state.isLive && (isLive || state.refreshedAt !== null)) return { state, actions: [] };
  const at = isLive ? null : now + state.staleMs;
  const stale: TimerAction = { do: "timer", name: "stale", at };
  return { state: { ...state, isLive, isStale: false, refreshedAt: now }, actions: [stale] };
}

function lifecycle(state: State, isForeground: boolean, now: number): Result {
  const next = { ...state, isForeground };
  if (!isForeground || state.isForeground) return { state: next, actions: [] };
  // Without a stream, the shown data may have aged past the limit.
  const isOld = !state.isLive && now - (state.refreshedAt ?? now) >= state.staleMs;
  if (isOld) return timer(next, { name: "stale", now });
  const reason = "foreground";
  const ids = state.queries.filter((query) => query.isStale && query.isVisible).map((query) => query.id);
  const queries = state.queries.map((query) => ids.includes(query.id) ? { ...query, isStale: false } : query);
  // Keys that became stale in the background are reported again: an app that fetches by keys did not fetch then.
  const stale: StoreAction = { do: "publish", name: "query:stale", data: { keys: state.missed, reason, isForeground } };
  const fetched: StoreAction = { do: "publish", name: "query:refetch", data: { ids, reason } };
  const actions: StoreAction[] = [...(state.missed.length ? [stale] : []), ...(ids.length ? [fetched] : [])];
  return { state: { ...next, queries, missed: [] }, actions };
}

function handle(state: State, { name, data }: MachineEvent, now: number): Result {
  switch (name) {
    case "query:invalidate":
      return isEcho(state, data, now) ? { state, actions: [] } : offer(state, data.keys, name, now);
    // Changes before the stream opened were not delivered, so everything is stale.
    case "stream:ready": return offer({ ...state, isLive: true, isStale: false, refreshedAt: now }, [[]], name, now);
    case "stream:resync": return offer(state, [[]], name, now);
    case "stream:scope": {
      const made = offer(state, state.scopeKeys, name, now);
      return { state: made.state, actions: [...made.actions, { do: "publish", name: "scope:changed", data }] };
    }
  }
  return { state, actions: [] };
}

/** Returns true only if all causes are own changes. A cause by another client or an unknown one needs a refetch. */
function isEcho(state: State, { causes, causesComplete }: QueryInvalidate, now: number) {
  if (!causesComplete || causes.length === 0) return false;
  return causes.every(({ table, recordId, originId }) => {
    if (originId != null) return originId === state.clientId;
    return state.mutations.some((one) => {
      return one.table === table && one.recordId === String(recordId) && now - one.at < echoMs;
    });
  });
}

/** Throttles each key on the leading edge, with one trailing repeat if the key was offered again within its window.
 * The window has a fixed length: if each event extended it, a key that changes constantly would never be reported. */
function offer(state: State, keys: Key[], reason: string, now: number): Result {
  const windows = { ...state.windows };
  const due: Key[] = [];
  const isAll = Object.keys(windows).length + keys.length > keysMax;
  for (const key of isAll ? [[]] : keys) {
    const text = JSON.stringify(key);
    // After the key for everything was reported, other keys wait for the end of its window.
    const open = [windows[text], windows[everything]].find((one) => one && now < one.endsAt);
    if (open) windows[text] = { key, endsAt: open.endsAt, isWaiting: true };
    else {
      windows[text] = { key, endsAt: now + state.windowMs, isWaiting: false };
      due.push(key);
    }
  }
  const made = publish({ ...state, windows }, due, reason, now);
  return { state: made.state, actions: [...made.actions, windowTimer(windows)] };
}

function windowTimer(windows: State["windows"]): TimerAction {
  const ends = Object.values(windows).map((one) => one.endsAt);
  return { do: "timer", name: "window", at: ends.length ? Math.min(...ends) : null };
}

function timer(state: State, { name, now }: Pick<StoreInputOf<"timer">, "name" | "now">): Result {
  if (name === "stale") {
    if (state.isLive) return { state, actions: [] };
    const again: TimerAction = { do: "timer", name, at: now + state.staleMs };
    if (!state.isForeground) return { state: { ...state, isStale: true }, actions: [] };
    const made = publish({ ...state, isStale: true, refreshedAt: now }, [[]], "stale", now);
    return { state: made.state, actions: [...made.actions, again] };
  }
  if (name !== "window") return { state, actions: [] };
  const windows: State["windows"] = {};
  const due: Key[] = [];
  for (const [text, one] of Object.entries(state.windows)) {
    if (now < one.endsAt) windows[text] = one;
    else if (one.isWaiting) {
      due.push(one.key);
      windows[text] = { ...one, endsAt: now + state.windowMs, isWaiting: false };
    }
  }
  const made = publish({ ...state, windows }, due, "query:invalidate", now);
  const isOpen = Object.keys(windows).length > 0;
  return { state: made.state, actions: isOpen ? [...made.actions, windowTimer(windows)] : made.actions };
}

function publish(state: State, keys: Key[], reason: string, now: number): Result {
  if (keys.length === 0) return { state, actions: [] };
  const isAll = keys.some((key) => JSON.stringify(key) === everything);
  const published = isAll ? [[]] : keys;
  const meant = (query: Query) => published.some((key) => isPrefix(key, query.key));
  const isSeen = (query: Query) => query.isVisible && state.isForeground;
  const ids = state.queries.filter((query) => meant(query) && isSeen(query)).map(({ id }) => id);
  const queries = state.queries.map((query) => {
    if (!meant(query)) return query;
    const isStale = !ids.includes(query.id);
    return isStale === query.isStale ? query : { ...query, isStale };
  });
  const { isForeground } = state;
  const actions: StoreAction[] = [{ do: "publish", name: "query:stale", data: { keys: published, reason, isForeground } }];
  if (ids.length > 0) actions.push({ do: "publish", name: "query:refetch", data: { ids, reason } });
  return { state: { ...state, queries, missed: state.isForeground ? [] : miss(state.missed, published) }, actions };
}

/** Adds keys that became stale in the background; too many are replaced by the key that matches everything. */
function miss(missed: Key[], published: Key[]): Key[] {
  const all = new Map([...missed, ...published].map((key) => [JSON.stringify(key), key]));
  return all.has(everything) || all.size > keysMax ? [[]] : [...all.values()];
}

function refetch(state: State, key: Key, reason: string, now: number): Result {
  const ids = state.queries.filter((query) => isPrefix(key, query.key)).map((query) => query.id);
  const queries = state.queries.map((query) => ids.includes(query.id) ? { ...query, isStale: false } : query);
  const actions: StoreAction[] = [{ do: "publish", name: "query:stale", data: { keys: [key], reason, isForced: true } }];
  if (ids.length > 0) actions.push({ do: "publish", name: "query:refetch", data: { ids, reason } });
  return { state: { ...state, queries, refreshedAt: now }, actions };
}

/** Returns whether a key begins with another: `["leaderboard"]` also matches `["leaderboard", "c1"]`. */
export function isPrefix(prefix: readonly unknown[], key: readonly unknown[]) {
  return prefix.length <= key.length && prefix.every((part, index) => String(part) === String(key[index]));
}
