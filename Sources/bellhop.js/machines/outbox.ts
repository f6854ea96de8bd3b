// A queue of writes that wait for the network, sent one after another, each executed once (R-VIS-NFR-2.3, R-CUT-N-3).
// Each has its `Idempotency-Key` from the start, so that resending a write whose answer was lost does not execute it
// twice.
import { backoff } from "./connection.js";
import type { OutboxAction, Outcome, TimerAction } from "../actions.js";
import type { Answer, Item } from "../types.js";
import type { OutboxInput, OutboxInputOf } from "./inputs.js";

export interface State {
  /** Writes of another identity are not sent. */
  identity: string | null;
  /** Queued writes, in order. */
  items: Item[];
  /** What the device reports of its network. An open stream is better evidence. */
  isOnline: boolean;
  isLive: boolean;
  /** Whether the writes of an earlier start of the app have been read. */
  isRestored: boolean;
  /** The key of the write being sent. */
  sending: string | null;
  /** Number of consecutive failures. */
  failures: number;
  retryAt: number;
  limits: typeof defaults;
}

type Result = Outcome<State, OutboxAction>;

export const defaults = {
  // Bound on queued writes: a phone that stays offline must not collect writes without end.
  itemsMax: 1000,
  firstMs: 1000,
  delayMsMax: 30_000,
  serverMsMax: 3_600_000,
  // The service keeps answers for 24 hours. After this time it is uncertain whether a tried write was executed, so it
  // is not resent.
  keyMsMax: 23 * 3_600_000,
};

export function initial(
  options: Partial<typeof defaults> & { isOnline?: boolean; isRestored?: boolean; identity?: string | null } = {},
): State {
  const { isOnline = true, isRestored = true, identity = null, ...limits } = options;
  return {
    identity, items: [], isOnline, isLive: false, isRestored, sending: null, failures: 0, retryAt: 0,
    limits: { ...defaults, ...limits },
  };
}

export function receive(state: State, input: OutboxInput): Result {
  const { now } = input;
  switch (input.type) {
    case "restored": return next({ ...insert(state, input.items), isRestored: true }, now);
    case "add": {
      if (!isOwn(state, input.item)) return { state, actions: [] };
      const known = state.items.find((item) => item.key === input.item.key);
      // If the key belongs to a write of an earlier start, its answer serves both, and only one stays stored.
      if (known) return { state, actions: known.order === input.item.order ? [] : [{ do: "remove", item: input.item }] };
      if (state.items.length < state.limits.itemsMax) return next(insert(state, [input.item]), now);
      return { state, actions: drop(input.item, { status: 0, body: { code: "outbox.full" } }) };
    }
    case "network": return next({ ...state, isOnline: input.online, ...(input.online ? fresh : {}) }, now);
    // A reopened stream proves that the service is reachable, so the back-off ends.
    case "connection": {
      const isLive = input.status === "live";
      return next({ ...state, isLive, ...(isLive ? fresh : {}) }, now);
    }
    case "marked": return mark(state, input);
    case "answer": return answered(state, input);
    case "timer": return next(state, now);
    // The user signed out, and the caller takes the stored writes.
    case "forget": {
      const actions = state.items.map((item) => drop(item, { status: 0, body: { code: "outbox.signed_out" } })[1]);
      return { state: { ...state, items: [], sending: null }, actions };
    }
    default: return { state, actions: [] };
  }
}

const fresh = { failures: 0, retryAt: 0 };

const timer = (at: number | null): TimerAction => ({ do: "timer", name: "outbox", at });

/** Returns whether the write has this identity. A write of another identity stays in the storage for that identity. */
const isOwn = (state: State, item: Item) => (item.identity ?? null) === state.identity;

function insert(state: State, added: Item[]) {
  const known = new Set(state.items.map((item) => item.key));
  const items = [...state.items, ...added.filter((item) => isOwn(state, item) && !known.has(item.key))];
  items.sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
  // The bound does not apply here: a write left in the storage would be sent at the next start, behind newer ones.
  return { ...state, items };
}

type Lost = Pick<Answer, "status" | "body"> & Partial<Answer>;
const drop = (item: Item, { status, headers = {}, body }: Lost): OutboxAction[] => [
  { do: "remove", item },
  { do: "answered", item, answer: { status, headers, body } },
];

/** Sends the first write in the queue, unless one is being sent. */
function next(state: State, now: number): Result {
  const [item] = state.items;
  // Writes from before a restart precede the writes since. Without a network nothing is tried: a tried write is only
  // resent within the time for which the service remembers its key.
  const isReady = state.sending === null && (state.isOnline || state.isLive) && state.isRestored;
  if (!item || !isReady) return { state, actions: [] };
  if (item.tried !== null && now - item.tried > state.limits.keyMsMax) {
    const after = next({ ...state, items: state.items.slice(1) }, now);
    const lost = drop(item, { status: 0, body: { code: "outbox.uncertain" } });
    return { state: after.state, actions: [...lost, ...after.actions] };
  }
  if (now < state.retryAt) return { state, actions: [timer(state.retryAt)] };
  const sending = { ...state, sending: item.key };
  // The try is stored before the write is sent: after a crash, only this note shows that it may have been executed.
  if (item.tried === null) return { state: sending, actions: [{ do: "mark", item: { ...item, tried: now } }] };
  return { state: sending, actions: [timer(null), { do: "request", item }] };
}

function mark(state: State, { item }: { item: Item }): Result {
  // The write was discarded while it was being stored.
  if (state.sending !== item.key) return { state, actions: [{ do: "remove", item }] };
  const items = state.items.map((other) => (other.key === item.key ? item : other));
  return { state: { ...state, items }, actions: [timer(null), { do: "request", item }] };
}

function answered(state: State, input: OutboxInputOf<"answer">): Result {
  const { now, random, key, status } = input;
  const item = state.items.find((other) => other.key === key);
  if (state.sending !== key || !item) return { state, actions: [] };
  const idle = { ...state, sending: null };
  const isLater = status === 0 || status >= 500 || [401, 408, 425, 429].includes(status);
  if (!isLater) {
    // Executed, or refused for good: the app is notified, and the next write follows.
    const after = next({ ...idle, ...fresh, items: state.items.filter((other) => other.key !== key) }, now);
    return { state: after.state, actions: [...drop(item, input), ...after.actions] };
  }
  const own = backoff(state.limits.firstMs, state.failures, state.limits.delayMsMax, random);
  const retryAt = now + Math.max(own, Math.min(input.retryAfterMs ?? 0, state.limits.serverMsMax));
  return next({ ...idle, failures: state.failures + 1, retryAt }, now);
}
