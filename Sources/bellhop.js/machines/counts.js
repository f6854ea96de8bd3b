// The single source of an app's badge counts: whichever way counts arrive, the newest version wins. A message that
// arrives without counts adds one at once. The expected effect of an own write is subtracted once the write has
// succeeded. Both adjustments last only until the service sends counts, which include them.
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
/** Beyond this number of adjustments without counts from the service, the oldest are dropped. */
const adjustmentsMax = 100;

/** @param {{user?: string | null}} [options] @returns {State} */
export function initial(options) {
  const user = options?.user ?? null;
  return { user, badges: null, confirmed: null, adjustments: [] };
}

/** @param {State} state */
export const view = (state) => state.badges;

/** Returns what the device keeps for the next start; null for nothing.
 * @param {State} state */
export const kept = ({ confirmed }) => confirmed && { badges: confirmed };

/** @param {State} state @param {import("./inputs").StoreInput} input @returns {Result} */
export function receive(state, input) {
  switch (input.type) {
    case "start": {
      const next = { ...state, user: input.user ?? state.user };
      // The open stream sent its counts before this machine existed, so they are fetched.
      return { state: next, actions: input.connection === "live" ? [fetch] : [] };
    }
    case "user": return only(initial(input));
    case "restore": return only(state.confirmed ? state : merge(state, input.kept.badges));
    case "event": return only(event(state, input.event));
    // Registers a write named `as` that will change the counts by this much.
    case "expect": return only(adjust(state, { key: input.as, by: input.by, isShown: false }));
    case "answer": return answer(state, input);
  }
  return only(state);
}

/** @param {State} state @param {import("./inputs").MachineEvent} event */
function event(state, { name, data }) {
  if (name === "stream:ready" && !state.user) state = { ...state, user: data.userId };
  if (name === "badges:update") return merge(state, data);
  if (isBadges(data?.badges)) return merge(state, data.badges);
  if (name === "message:deleted") return drop(state, data.messageId);
  if (name !== "message:created" || !state.user || data.message.senderId === state.user) return state;
  return adjust(state, { key: data.message.id, by: { messages: 1 }, isShown: true });
}

/** @param {State} state @param {import("./inputs").StoreInputOf<"answer">} input @returns {Result} */
function answer(state, { as, status, body }) {
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

/** @param {State} state @param {unknown} offered */
function merge(state, offered) {
  if (!isBadges(offered) || !isNewer(state.confirmed, offered)) return state;
  const { messages, requests, bell, version, epoch = "", asOf = "" } = offered;
  const confirmed = { messages, requests, bell, total: messages + requests + bell, version, epoch, asOf };
  // Adjustments of unanswered writes stay; the applied ones are included in these counts.
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

/** @param {unknown} value @returns {value is import("../models").Badges} */
function isBadges(value) {
  const { messages, requests, bell, version } = /** @type {Partial<import("../models").Badges>} */ (value ?? {});
  return [messages, requests, bell, version].every(Number.isSafeInteger);
}

/** @param {State} state @returns {Result} */
const only = (state) => ({ state, actions: [] });
