// The requests to a user or by the user; newest first. The user's own answers and withdrawals show at
// once, and are reverted if the service refuses them.
import { advance, apply, fetchMore, refused, send, settle, shown, takeMore } from "./list.js";
import { badgesEvent, beginAnew, isTaken, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import { requests as list } from "../lists.js";
import type { Outcome, StoreAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { UserRequest } from "../models.js";
import type { InputOf, StoreInputOf } from "./inputs.js";
import type { Rules, WrittenState } from "./list.js";

type Item = UserRequest;

/** Null: withdrawn. */
interface Change {
  status: "accepted" | "declined" | null;
}

export interface State extends WrittenState<Item, Change> {
  direction: string;
  user: string | null;
  items: Item[];
  isLoaded: boolean;
  problem: Problem | null;
  hasMore: boolean;
  isSeeingPending: boolean;
}

type Result = Outcome<State>;

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
export const kept = ({ loading, stored }: State) => loading.isLoaded ? { items: stored.slice(0, list.keptMax) } : null;

const rules: Rules<Item, State, Change> = {
  list,
  restore: (state, { items = [] }: { items?: Item[] }) => ({ ...state, stored: items }),
  /** One of the other direction is ignored. Answers are final: an older event must not open a request again. */
  joined(state, newer, held) {
    if (held) return newer.status === "open" && held.status !== "open" ? null : newer;
    return (state.direction === "incoming" ? newer.toUserId : newer.fromUserId) === state.user ? newer : null;
  },
  changed: (item, { status }) => item.status === "open" && status ? { ...item, status } : item,
  handle(state, event) {
    const user = event.name === "stream:ready" ? event.data.userId : null;
    return { state: { ...state, user: state.user ?? user ?? null }, actions: [] };
  },
};

export function receive(state: State, input: InputOf<"requests">): Result {
  if (input.type === "user") return beginAnew(receive, initial({ ...state, user: input.user }), input);
  const path = list.path.replace("{direction}", state.direction);
  const step = advance(rules, state, input, path);
  const { actions } = step;
  let next = step.state;
  if (input.type === "start") next.user = input.user ?? next.user;
  if (step.isTaken) {
    if (next.isSeeingPending) actions.push(...see(shown(rules, next)));
    next.isSeeingPending = false;
  }
  const made = own(next, input, path);
  next = made.state;
  const isSame = next.stored === state.stored && next.pending === state.pending;
  const items = isSame ? state.items : sameList(state.items, shown(rules, next));
  const { isLoaded, problem } = next.loading;
  const whole = { ...next, items, isLoaded, problem, hasMore: next.next !== null };
  return { state: same(state, whole), actions: [...actions, ...made.actions] };
}

function own(state: State, input: InputOf<"requests">, path: string): Result {
  switch (input.type) {
    case "event": return apply(rules, state, input);
    case "answer": return answered(state, input);
    case "settle": {
      const { id, status, now } = input;
      const known = state.items.find((one) => one.id === id);
      if (known && known.status !== "open") break;
      if (status === null) return send(rules, state, "withdraw", [id], { status }, now);
      return send(rules, state, "answer", [id], { status }, now, { status });
    }
    case "see": {
      const isSeeingPending = !state.loading.isLoaded || state.loading.isKept;
      return { state: same(state, { ...state, isSeeingPending }), actions: see(state.items) };
    }
    case "ask": {
      const { draft: body } = input;
      return { state, actions: [{ do: "send", method: "POST", path: "/v1/requests", body, as: "ask" }] };
    }
    case "more": return { state, actions: fetchMore(list, state, path) };
  }
  return { state, actions: [] };
}

function see([newest]: Item[]): StoreAction[] {
  if (!newest) return [];
  return [{ do: "send", method: "PATCH", path: "/v1/requests", body: { seenUpTo: newest.id }, as: "see" }];
}

function answered(state: State, input: StoreInputOf<"answer">): Result {
  const { as, status, body } = input;
  const longer = takeMore(list, state, input);
  if (longer) return { state: longer, actions: [] };
  if (as !== "see" && as !== "ask") return settle(rules, state, input) ?? { state, actions: [] };
  if (!isTaken(status)) return { state, actions: [refused(list, [], input)] };
  return { state, actions: badgesEvent(body) };
}
