// The single source of an app's badge counts: whichever way counts arrive, the newest version wins. A message that
// arrives without counts adds one at once. The expected effect of an own write is subtracted once the write has
// succeeded. Both adjustments last only until the service sends counts, which include them.
import { isTaken } from "./loading.js";
import { isNewer } from "./version.js";
import type { FetchAction, Outcome } from "../actions.js";
import type { Badges } from "../features.js";
import type { Badges as ServiceBadges } from "../models.js";
import type { InputOf, MachineEvent, StoreInputOf } from "./inputs.js";

interface Adjustment {
  key: string;
  by: { messages?: number; requests?: number; bell?: number };
  isShown: boolean;
}

export interface State {
  user: string | null;
  badges: Badges | null;
  confirmed: Badges | null;
  adjustments: Adjustment[];
}

type Result = Outcome<State>;

const names = ["messages", "requests", "bell"] as const;
const fetch: FetchAction = { do: "fetch", path: "/v1/badges", as: "badges" };
/** Beyond this number of adjustments without counts from the service, the oldest are dropped. */
const adjustmentsMax = 100;

export function initial(options?: { user?: string | null }): State {
  const user = options?.user ?? null;
  return { user, badges: null, confirmed: null, adjustments: [] };
}

export const snapshot = (state: State) => state.badges;

/** Returns what the device keeps for the next start; null for nothing. */
export const kept = ({ confirmed }: State) => confirmed && { badges: confirmed };

export function receive(state: State, input: InputOf<"counts">): Result {
  switch (input.type) {
    case "start": {
      const next = { ...state, user: input.user ?? state.user };
      // The open stream sent its counts before this machine existed, so they are fetched.
      return { state: next, actions: input.connection === "live" ? [fetch] : [] };
    }
    case "user": return only(initial(input));
    case "restore": return only(state.confirmed ? state : merge(state, (input.kept as { badges?: unknown }).badges));
    case "event": return only(handle(state, input.event));
    // Registers a write named `as` that will change the counts by this much.
    case "expect": return only(adjust(state, { key: input.as, by: input.by, isShown: false }));
    case "answer": return answered(state, input);
  }
  return only(state);
}

function handle(state: State, { name, data }: MachineEvent) {
  if (name === "stream:ready" && !state.user) state = { ...state, user: data.userId };
  if (name === "badges:update") return merge(state, data);
  if (isBadges(data?.badges)) return merge(state, data.badges);
  if (name === "message:deleted") return drop(state, data.messageId);
  if (name !== "message:created" || !state.user || data.message.senderId === state.user) return state;
  return adjust(state, { key: data.message.id, by: { messages: 1 }, isShown: true });
}

function answered(state: State, { as, status, body }: StoreInputOf<"answer">): Result {
  if (as === "badges" || as === "reconcile") {
    if (!isTaken(status) && status !== 304) return only(state);
    // A 304 answers another client's cached state; without local counts they are fetched in full.
    if (status === 304 && !state.confirmed) return { state, actions: [fetch] };
    // Counts fetched from the service replace all adjustments, even if their version is the present one.
    return only(merge(show({ ...state, adjustments: state.adjustments.filter((one) => !one.isShown) }), body));
  }
  if (!isTaken(status)) return only(drop(state, as));
  if (isBadges(body?.badges)) return only(merge(drop(state, as), body.badges));
  if (!state.adjustments.some((one) => one.key === as)) return only(state);
  const adjustments = state.adjustments.map((one) => one.key === as ? { ...one, isShown: true } : one);
  return { state: show({ ...state, adjustments }), actions: [fetch] };
}

function merge(state: State, offered: unknown) {
  if (!isBadges(offered) || !isNewer(state.confirmed, offered)) return state;
  const { messages, requests, bell, version, epoch = "", asOf = "" } = offered;
  const confirmed = { messages, requests, bell, total: messages + requests + bell, version, epoch, asOf };
  // Adjustments of unanswered writes stay; the applied ones are included in these counts.
  return show({ ...state, confirmed, adjustments: state.adjustments.filter((one) => !one.isShown) });
}

function adjust(state: State, adjustment: Adjustment) {
  if (state.adjustments.some((one) => one.key === adjustment.key)) return state;
  return show({ ...state, adjustments: [...state.adjustments, adjustment].slice(-adjustmentsMax) });
}

function drop(state: State, key: string) {
  const adjustments = state.adjustments.filter((one) => one.key !== key);
  return adjustments.length === state.adjustments.length ? state : show({ ...state, adjustments });
}

function show(state: State): State {
  const shown = state.adjustments.filter((one) => one.isShown);
  if (!state.confirmed || shown.length === 0) return { ...state, badges: state.confirmed };
  const badges = { ...state.confirmed };
  for (const name of names) {
    badges[name] = Math.max(0, shown.reduce((sum, one) => sum + (one.by[name] ?? 0), badges[name]));
  }
  badges.total = badges.messages + badges.requests + badges.bell;
  return { ...state, badges };
}

function isBadges(value: unknown): value is ServiceBadges {
  const { messages, requests, bell, version } = ((value ?? {}) as Partial<ServiceBadges>);
  return [messages, requests, bell, version].every(Number.isSafeInteger);
}

const only = (state: State): Result => ({ state, actions: [] });
