// The requests to a user or by the user; newest first. The user's own answers and withdrawals show at
// once, and are reverted if the service refuses them.
import { advance, beginAnew, isTaken, problemOf, restored, badgesEvent, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import type { Outcome, StoreAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { UserRequest } from "../models.js";
import type { InputOf, MachineEvent, StoreInputOf } from "./inputs.js";
import type { Loading } from "./loading.js";

type Item = UserRequest;

/** Null: withdrawn. */
interface Pending {
  as: string;
  id: string;
  status: "accepted" | "declined" | null;
}

export interface State {
  direction: string;
  user: string | null;
  items: Item[];
  isLoaded: boolean;
  problem: Problem | null;
  hasMore: boolean;
  stored: Item[];
  pending: Pending[];
  next: string | null;
  count: number;
  isSeeingPending: boolean;
  loading: Loading;
}

type Result = Outcome<State>;

/** The requests that the device keeps for the next start: one page. */
const keptMax = 50;
/** Only the newest requests of a long list are kept in memory. */
const storedMax = 500;

export function initial(options?: { direction?: string; user?: string | null }): State {
  const { direction = "incoming", user = null } = options ?? {};
  return {
    direction, user, items: [], isLoaded: false, problem: null, hasMore: false, stored: [], pending: [], next: null,
    count: 0,
    // Whether the user has seen the requests before the first page came.
    isSeeingPending: false, loading: unloaded,
  };
}

export const snapshot = ({ items, isLoaded, problem, hasMore }: State) => ({ items, isLoaded, problem, hasMore });

/** Returns what the device keeps for the next start; null for nothing. */
export const kept = ({ loading, stored }: State) => loading.isLoaded ? { items: stored.slice(0, keptMax) } : null;

const restore = (state: State, { items = [] }: { items?: Item[] }): State => ({ ...state, stored: items });

export function receive(state: State, input: InputOf<"requests">): Result {
  if (input.type === "user") return beginAnew(receive, initial({ ...state, user: input.user }), input);
  const path = `/v1/requests?direction=${state.direction}&limit=50`;
  const events = ["request:created", "request:updated", "request:removed"];
  const held = restored(state, input, restore);
  const step = advance(held.loading, input, { as: "list", path, events });
  const actions: StoreAction[] = [...step.actions];
  let next = { ...held, loading: step.loading };
  if (step.isGone) next = restore(next, {});
  if (input.type === "start") next.user = input.user ?? next.user;
  if (step.body) {
    next = { ...next, stored: step.body.items, next: step.body.next ?? null };
    for (const one of step.since) next = handle(next, one.event);
    if (next.isSeeingPending) actions.push(...see(next.pending.reduce(overlaid, next.stored)));
    next.isSeeingPending = false;
  }
  const made = own(next, input, path);
  next = made.state;
  const isSame = next.stored === state.stored && next.pending === state.pending;
  const items = isSame ? state.items : sameList(state.items, next.pending.reduce(overlaid, next.stored));
  const { isLoaded, problem } = next.loading;
  const shown = { ...next, items, isLoaded, problem, hasMore: next.next !== null };
  return { state: same(state, shown), actions: [...actions, ...made.actions] };
}

function own(state: State, input: InputOf<"requests">, path: string): Result {
  switch (input.type) {
    case "event": return { state: handle(state, input.event), actions: [] };
    case "answer": return answered(state, input);
    case "settle": return settle(state, input);
    case "see": {
      const isSeeingPending = !state.loading.isLoaded || state.loading.isKept;
      return { state: same(state, { ...state, isSeeingPending }), actions: see(state.items) };
    }
    case "ask": {
      const { draft: body } = input;
      return { state, actions: [{ do: "send", method: "POST", path: "/v1/requests", body, as: "ask" }] };
    }
    case "more": {
      if (state.next === null) break;
      const place = `${path}&cursor=${encodeURIComponent(state.next)}`;
      return { state, actions: [{ do: "fetch", path: place, as: `more:${state.next}` }] };
    }
  }
  return { state, actions: [] };
}

function handle(state: State, { name, data }: MachineEvent): State {
  switch (name) {
    case "stream:ready": return state.user ? state : { ...state, user: data.userId };
    case "request:created": case "request:updated": return put(state, data);
    case "request:removed": return { ...state, stored: state.stored.filter((one) => one.id !== data.id) };
  }
  return state;
}

/** Adds a request, or replaces it. One of the other direction is ignored. */
function put(state: State, request: Item): State {
  const isKnown = state.stored.some((one) => one.id === request.id);
  const whose = state.direction === "incoming" ? request.toUserId : request.fromUserId;
  if (!isKnown && whose !== state.user) return state;
  // Answers are final: an older event must not open a request again.
  const isOld = request.status === "open" && state.stored.some((one) => one.id === request.id && one.status !== "open");
  if (isOld) return state;
  const stored = isKnown ? state.stored.map((one) => one.id === request.id ? request : one) : [...state.stored, request];
  return { ...state, stored: stored.sort((one, other) => (one.id < other.id ? 1 : -1)).slice(0, storedMax) };
}

function see([newest]: Item[]): StoreAction[] {
  if (!newest) return [];
  return [{ do: "send", method: "PATCH", path: "/v1/requests", body: { seenUpTo: newest.id }, as: "see" }];
}

/** Answers or withdraws a request. */
function settle(state: State, { id, status }: Extract<InputOf<"requests">, { type: "settle" }>): Result {
  const known = state.items.find((one) => one.id === id);
  if (known && known.status !== "open") return { state, actions: [] };
  const as = `settle-${state.count + 1}`;
  const path = `/v1/requests/${encodeURIComponent(id)}`;
  const next = { ...state, count: state.count + 1, pending: [...state.pending, { as, id, status }] };
  const action: StoreAction = status ? { do: "send", method: "PATCH", path, body: { status }, as }
    : { do: "send", method: "DELETE", path, as };
  return { state: next, actions: [action] };
}

function answered(state: State, input: StoreInputOf<"answer">): Result {
  const { as, status, body } = input;
  if (as === `more:${state.next}` && isTaken(status)) {
    const ids = new Set(state.stored.map((one) => one.id));
    const stored = [...state.stored, ...body.items.filter((one: Item) => !ids.has(one.id))].slice(0, storedMax);
    return { state: { ...state, stored, next: stored.length < storedMax ? body.next ?? null : null }, actions: [] };
  }
  const pending = state.pending.find((one) => one.as === as);
  if (!pending && as !== "see" && as !== "ask") return { state, actions: [] };
  const left = { ...state, pending: state.pending.filter((one) => one !== pending) };
  // Withdrawn on another device.
  const isGone = pending?.status === null && status === 404;
  if (!isTaken(status) && !isGone) {
    const data = { id: pending?.id ?? null, problem: problemOf(input) };
    return { state: left, actions: [{ do: "publish", name: "requests:refused", data }] };
  }
  const next = body?.request ? put(left, body.request)
    : pending?.status === null ? { ...left, stored: left.stored.filter((one) => one.id !== pending.id) } : left;
  return { state: next, actions: isGone ? [] : badgesEvent(body) };
}

function overlaid(items: Item[], { id, status }: Pending) {
  if (status === null) return items.filter((one) => one.id !== id);
  return items.map((one) => one.id === id && one.status === "open" ? { ...one, status } : one);
}
