// The one place an app reads its badge counts from: whatever way they come, the newest version wins. A message that
// came without counts adds one at once, and what an app expects of its own write is subtracted once that has
// succeeded; both stand only until counts of the service come, which include them.
import { isTaken } from "./loading.js";
import { isNewer } from "./version.js";

/**
 * @typedef {{messages: number, requests: number, bell: number, total: number, version: number, epoch: string,
 *   asOf: string}} Badges
 * @typedef {{key: string, by: {messages?: number, requests?: number, bell?: number}, isShown: boolean}} Adjustment
 * @typedef {{user: string | null, badges: Badges | null, confirmed: Badges | null, adjustments: Adjustment[]}} State
 * @typedef {{state: State, actions: any[]}} Result
 */

const names = /** @type {const} */ (["messages", "requests", "bell"]);
const fetch = { do: "fetch", path: "/v1/badges", as: "badges" };
/** With more than that and no word of the service, only its own counts help. */
const adjustmentsMax = 100;

/** @param {{user?: string | null}} [options] @returns {State} */
export function initial(options) {
  const user = options?.user ?? null;
  return { user, badges: null, confirmed: null, adjustments: [] };
}

/** @param {State} state */
export const view = (state) => state.badges;

/** @param {State} state @param {any} input @returns {Result} */
export function receive(state, input) {
  switch (input.type) {
    case "start": {
      const next = { ...state, user: input.user ?? state.user };
      // A stream that is there has told its counts already, and nobody kept them.
      return { state: next, actions: input.connection === "live" ? [fetch] : [] };
    }
    case "user": return only(initial(input));
    case "event": return only(event(state, input.event));
    // A write named `as` is on its way that will change the counts by so much.
    case "expect": return only(adjust(state, { key: input.as, by: input.by, isShown: false }));
    case "answer": return answer(state, input);
  }
  return only(state);
}

/** @param {State} state @param {any} event */
function event(state, { name, data }) {
  if (name === "stream:ready" && !state.user) state = { ...state, user: data.userId };
  if (name === "badges:update") return merge(state, data);
  if (isBadges(data?.badges)) return merge(state, data.badges);
  if (name === "message:deleted") return drop(state, data.messageId);
  if (name !== "message:created" || !state.user || data.message.senderId === state.user) return state;
  return adjust(state, { key: data.message.id, by: { messages: 1 }, isShown: true });
}

/** @param {State} state @param {any} input @returns {Result} */
function answer(state, { as, status, body }) {
  if (as === "badges" || as === "reconcile") {
    if (!isTaken(status) && status !== 304) return only(state);
    // They are as they were when somebody else heard them: here they were never heard.
    if (status === 304 && !state.confirmed) return { state, actions: [fetch] };
    // The service was asked for its counts: nothing stands beside them, also where their version is the one there is.
    return only(merge(show({ ...state, adjustments: state.adjustments.filter((one) => !one.isShown) }), body));
  }
  if (!isTaken(status)) return only(drop(state, as));
  if (isBadges(body?.badges)) return only(merge(drop(state, as), body.badges));
  if (!state.adjustments.some((one) => one.key === as)) return only(state);
  const adjustments = state.adjustments.map((one) => one.key === as ? { ...one, isShown: true } : one);
  return { state: show({ ...state, adjustments }), actions: [fetch] };
}

/** @param {State} state @param {any} offered */
function merge(state, offered) {
  if (!isBadges(offered) || !isNewer(state.confirmed, offered)) return state;
  const { messages, requests, bell, version, epoch = "", asOf = "" } = offered;
  const confirmed = { messages, requests, bell, total: messages + requests + bell, version, epoch, asOf };
  // What is not answered yet is subtracted when it is; what was shown is in these counts.
  return show({ ...state, confirmed, adjustments: state.adjustments.filter((one) => !one.isShown) });
}

/** @param {State} state @param {Adjustment} adjustment */
function adjust(state, adjustment) {
  if (state.adjustments.some((one) => one.key === adjustment.key)) return state;
  return show({ ...state, adjustments: [...state.adjustments, adjustment].slice(-adjustmentsMax) });
}

/** @param {State} state @param {string} key */
function drop(state, key) {
  const adjustments = state.adjustments.filter((one) => one.key !== key);
  return adjustments.length === state.adjustments.length ? state : show({ ...state, adjustments });
}

/** @param {State} state @returns {State} */
function show(state) {
  const shown = state.adjustments.filter((one) => one.isShown);
  if (!state.confirmed || shown.length === 0) return { ...state, badges: state.confirmed };
  const badges = { ...state.confirmed };
  for (const name of names) {
    badges[name] = Math.max(0, shown.reduce((sum, one) => sum + (one.by[name] ?? 0), badges[name]));
  }
  badges.total = badges.messages + badges.requests + badges.bell;
  return { ...state, badges };
}

/** @param {any} value */
function isBadges(value) {
  return [value?.messages, value?.requests, value?.bell, value?.version].every(Number.isSafeInteger);
}

/** @param {State} state @returns {Result} */
const only = (state) => ({ state, actions: [] });
