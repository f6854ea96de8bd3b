// The wait in a shop, updated by its topic. Without the topic the last state stays, and `isLive` is false.
import { advance, beginAnew, restored, unloaded } from "./loading.js";
import { same } from "./same.js";
import { topicProblem, watchTopic } from "./watching.js";

/**
 * @typedef {{shopId: string, status: any, isLive: boolean, isLoaded: boolean, problem: any, refusal: any,
 *   isWanted: boolean, loading: import("./loading.js").Loading}} State
 */

/** @param {{shopId: string}} options @returns {State} */
export function initial({ shopId }) {
  return {
    shopId, status: null, isLive: false, isLoaded: false, problem: null, refusal: null, isWanted: false,
    loading: unloaded,
  };
}

/** @param {State} state */
export const view = ({ status, isLive, isLoaded, problem }) => ({ status, isLive, isLoaded, problem });

/** @param {State} state @param {import("./inputs").StoreInput} input @returns {{state: State, actions: any[]}} */
export function receive(state, input) {
  if (input.type === "user") return beginAnew(receive, { ...initial(state), isWanted: state.isWanted }, input);
  const path = `/v1/shops/${encodeURIComponent(state.shopId)}/queue`;
  const held = restored(state, input, withKept);
  const step = advance(held.loading, input, { as: "queue", path });
  const subject = `queue:${state.shopId}`;
  const topic = watchTopic(state.isWanted, input, subject);
  const refusal = topicProblem(state.refusal, input, subject);
  let next = { ...held, loading: step.loading, refusal, isWanted: topic.isWanted };
  // The service's clock may be behind what the device has kept, after a restore of its database.
  if (step.isGone || (step.body && state.loading.isKept && !state.isLive)) next = withKept(next, {});
  if (step.body) next = told(next, step.body);
  const { name, data } = input.event ?? {};
  // The topic sends the current state; an event from before the stream broke is not current.
  if (name === "queue:update" && data.shopId === state.shopId) {
    next = { ...told(next, data), isLive: true, refusal: null };
  }
  if ((input.type === "connection" && input.status !== "live") || !topic.isWanted) next.isLive = false;
  next.isLoaded = next.status !== null;
  next.problem = next.loading.problem ?? next.refusal;
  return { state: same(state, next), actions: [...topic.actions, ...step.actions] };
}

/** Returns what the device keeps for the next start; null for nothing.
 * @param {State} state */
export const kept = ({ status }) => status && { status };

/** @param {State} state @param {any} kept @returns {State} */
const withKept = (state, { status = null }) => ({ ...state, status });

/** Timestamps are RFC 3339 in UTC with milliseconds, so that they sort as texts.
 * @param {State} state @param {import("../models").QueueStatus} status */
function told(state, status) {
  return state.status && status.updatedAt < state.status.updatedAt ? state : { ...state, status };
}
