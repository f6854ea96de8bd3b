// The wait in a shop, updated by its topic. Without the topic the last state stays, and `isLive` is false.
import { advance, beginAnew, restored, unloaded } from "./loading.js";
import { same } from "./same.js";
import { topicProblem, watchTopic } from "./watching.js";
import type { Outcome } from "../actions.js";
import type { Problem } from "../features.js";
import type { QueueStatus } from "../models.js";
import type { Refusal } from "../types.js";
import type { InputOf } from "./inputs.js";
import type { Loading } from "./loading.js";

export interface State {
  shopId: string;
  status: QueueStatus | null;
  isLive: boolean;
  isLoaded: boolean;
  problem: Problem | Refusal | null;
  refusal: Refusal | null;
  isSubscribed: boolean;
  loading: Loading;
}

export function initial({ shopId }: { shopId: string }): State {
  return {
    shopId, status: null, isLive: false, isLoaded: false, problem: null, refusal: null, isSubscribed: false,
    loading: unloaded,
  };
}

export const snapshot = ({ status, isLive, isLoaded, problem }: State) => ({ status, isLive, isLoaded, problem });

export function receive(state: State, input: InputOf<"queue">): Outcome<State> {
  if (input.type === "user") return beginAnew(receive, { ...initial(state), isSubscribed: state.isSubscribed }, input);
  const path = `/v1/shops/${encodeURIComponent(state.shopId)}/queue`;
  const held = restored(state, input, restore);
  const step = advance(held.loading, input, { as: "queue", path });
  const subject = `queue:${state.shopId}`;
  const topic = watchTopic(state.isSubscribed, input, subject);
  const refusal = topicProblem(state.refusal, input, subject);
  let next = { ...held, loading: step.loading, refusal, isSubscribed: topic.isSubscribed };
  // The service's clock may be behind what the device has kept, after a restore of its database.
  if (step.isGone || (step.body && state.loading.isKept && !state.isLive)) next = restore(next, {});
  if (step.body) next = take(next, step.body);
  const { name, data } = input.event ?? {};
  // The topic sends the current state; an event from before the stream broke is not current.
  if (name === "queue:update" && data.shopId === state.shopId) {
    next = { ...take(next, data), isLive: true, refusal: null };
  }
  if ((input.type === "connection" && input.status !== "live") || !topic.isSubscribed) next.isLive = false;
  next.isLoaded = next.status !== null;
  next.problem = next.loading.problem ?? next.refusal;
  return { state: same(state, next), actions: [...topic.actions, ...step.actions] };
}

/** Returns what the device keeps for the next start; null for nothing. */
export const kept = ({ status }: State) => status && { status };

const restore = (state: State, { status = null }: { status?: QueueStatus | null }): State => ({ ...state, status });

/** Timestamps are RFC 3339 in UTC with milliseconds, so that they sort as texts. */
function take(state: State, status: QueueStatus) {
  return state.status && status.updatedAt < state.status.updatedAt ? state : { ...state, status };
}
