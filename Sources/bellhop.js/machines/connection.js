// When the stream is opened, given up and tried again (CUT N-1…N-4, SCH FR-003, VIS Q2, NFR-2.2, decisions 14 and 28).

import { differs } from "./token.js";

/**
 * @typedef {import("../internal").ConnectionState} State
 * @typedef {import("../types").Status} Status
 */

export const defaults = {
  triesMax: 10,
  firstMs: 1000,
  delayMsMax: 30_000,
  // A server that asks for more is misconfigured, and a client that obeyed would look dead.
  serverMsMax: 3_600_000,
  connectMs: 10_000,
  silenceMs: 60_000,
  // A connection that breaks sooner counts as one more failure, or one that flaps would be tried every second for ever.
  stableMs: 10_000,
  // The least time between two tries that a returning network or foreground causes.
  wakeMs: 1000,
  // A return to the foreground after so long a silence, two heartbeats, does not trust the connection that it finds.
  doubtMs: 35_000,
  // How long the stream stays open in the background; null: for ever.
  /** @type {number | null} */
  backgroundMs: null,
};

/** @param {Partial<typeof defaults> & {topics?: string[], online?: boolean, foreground?: boolean,
 *   user?: string | null}} [options]
 * @returns {State} */
export function initial(options = {}) {
  const { topics = [], online = true, foreground = true, user = null, ...limits } = options;
  return {
    status: "closed", topics, online, foreground, attempt: 0, tries: 0, triedAt: -Infinity, heardAt: 0, streamId: null,
    ready: [], retryAt: null, retryMs: null, closing: null, serverAt: 0, fresh: false,
    reason: null, user, tenant: null, limits: { ...defaults, ...limits },
  };
}

/** What the app is shown: nothing that changes while nothing happens.
 * @param {State} state */
export function view({ status, tries, retryAt, streamId, ready, reason }) {
  return { status, tries, retryAt, streamId, topics: ready, reason };
}

const none = { name: "retry", at: null };
const timers = ["retry", "connect", "silence", "stable"].map((name) => ({ do: "timer", name, at: null }));

/** @param {State} state @param {any} input
 * @returns {{state: State, actions: any[]}} */
export function receive(state, input) {
  const { now } = input;
  switch (input.type) {
    case "open": return open({ ...state, tries: 0, fresh: false }, now);
    case "close": return stop(state, "closed", null);
    case "retry": return { state: { ...state, retryMs: input.milliseconds }, actions: [] };
    case "topics": return topics(state, input.topics, now);
    case "network": return network(state, input, now);
    case "lifecycle": return lifecycle(state, input.foreground, now);
    case "timer": return timer(state, input);
  }
  // What is left comes from a connection: from the present one, or nobody waits for it any more.
  if (input.attempt !== state.attempt || !isTrying(state)) return { state, actions: [] };
  switch (input.type) {
    case "bytes": return { state: { ...state, heardAt: now }, actions: [] };
    case "head": return head(state, input);
    case "ready": return ready(state, input);
    case "subscribed": return subscribed(state, input);
    case "closing": return { state: { ...state, closing: input }, actions: [] };
    // By plan: what the transport has collected is large, or the stream's token could not be renewed.
    case "again": return open({ ...state, fresh: input.fresh === true }, now);
    case "ended": return fail(state, input, lost(state, input));
    default: return { state, actions: [] };
  }
}

/** @param {State} state */
const isTrying = (state) => state.status === "connecting" || state.status === "live";

/** @param {State} state @param {number} now */
function open(state, now) {
  if (!state.online) return stop(state, "offline", { code: "offline" });
  const attempt = state.attempt + 1;
  /** @type {State} */
  const next = {
    ...state, status: "connecting", attempt, triedAt: now, heardAt: now, streamId: null, ready: [], retryAt: null,
    closing: null,
  };
  return {
    state: next,
    actions: [
      ...(isTrying(state) ? [{ do: "disconnect" }] : []),
      ...timers.slice(2),
      { do: "timer", ...none },
      { do: "timer", name: "connect", at: now + state.limits.connectMs },
      { do: "connect", attempt, topics: state.topics, fresh: state.fresh },
    ],
  };
}

/** @param {State} state @param {any} input */
const lost = ({ closing }, { code = "lost", detail = null }) => closing
  ? { code: "closed", detail: closing.reason ?? null } : { code, detail };

/** @param {State} state @param {Status} status @param {any} reason */
function stop(state, status, reason) {
  return {
    state: { ...state, status, reason, streamId: null, ready: [], retryAt: null, fresh: false },
    actions: [...(isTrying(state) ? [{ do: "disconnect" }] : []), ...timers],
  };
}

/** @param {State} state @param {{now: number, random: number}} input @param {any} reason @param {number} [serverMs] */
function fail(state, { now, random }, reason, serverMs = state.closing?.retryAfterMs ?? 0) {
  const { limits } = state;
  const tries = state.tries + 1;
  if (tries > limits.triesMax) return stop({ ...state, tries: limits.triesMax }, "unreachable", reason);
  const own = backoff(state.retryMs ?? limits.firstMs, tries - 1, limits.delayMsMax, random);
  const serverAt = now + Math.min(serverMs, limits.serverMsMax);
  const retryAt = Math.max(now + own, serverAt);
  const stopped = stop(state, "waiting", reason);
  return {
    state: { ...stopped.state, tries, retryAt, serverAt, fresh: state.fresh },
    actions: [...stopped.actions, { do: "timer", name: "retry", at: retryAt }],
  };
}

/** Doubles with each failure. A fifth more or less, so that the clients of a server that restarts do not come back in the
 * same instant.
 * @param {number} firstMs @param {number} failures @param {number} msMax @param {number} random */
export const backoff = (firstMs, failures, msMax, random) => Math.min(
  Math.trunc(Math.min(firstMs * 2 ** failures, msMax) * (0.8 + 0.4 * Math.min(Math.max(random, 0), 1))), msMax);

/** @param {State} state @param {any} input */
function head(state, input) {
  const { status, retryAfterMs = 0 } = input;
  const reason = refusal(input);
  if (status === 200) return { state: { ...state, heardAt: input.now, fresh: false }, actions: [] };
  if (status === 204) return stop(state, "closed", reason);
  if (status === 401) {
    // Once at once with another token; what refuses that one too is waited for.
    return state.fresh ? fail(state, input, reason, retryAfterMs) : open({ ...state, fresh: true }, input.now);
  }
  const isFinal = status >= 400 && status < 500 && ![408, 425, 429].includes(status);
  return isFinal ? stop(state, "refused", reason) : fail(state, input, reason, retryAfterMs);
}

/** @param {{status: number, problem?: any}} answer */
const refusal = ({ status, problem }) =>
  ({ code: problem?.code ?? `http.${status}`, status, detail: problem?.detail ?? null });

/** @param {State} state @param {any} input */
function ready(state, input) {
  const { userId = state.user, tenant = state.tenant } = input;
  // A stream of somebody else, or of another tenant, is nobody's here.
  if (differs(state.user, userId) || differs(state.tenant, tenant)) return stop(state, "refused", { code: "stream.other" });
  /** @type {State} */
  const next = {
    ...state, streamId: input.streamId, ready: input.topics, tenant,
    // What was reached is not unreachable, however often it breaks.
    tries: Math.min(state.tries, state.limits.triesMax - 1),
  };
  return settle(next, input.now, [
    { do: "timer", name: "silence", at: input.now + state.limits.silenceMs },
    { do: "timer", name: "stable", at: input.now + state.limits.stableMs },
  ]);
}

/**
 * Live is who has the topics asked for (CNT §13.1); the stream's are replaced where it has others. Who is live stays so
 * while one more topic is on its way, for as long as a connection may take.
 * @param {State} state @param {number} now @param {any[]} actions
 */
function settle(state, now, actions) {
  const has = state.ready.filter(isShared);
  const wants = state.topics.filter(isShared);
  const isLive = wants.every((topic) => has.includes(topic));
  const isSame = isLive && has.length === wants.length;
  const connect = { do: "timer", name: "connect", at: isLive ? null : now + state.limits.connectMs };
  const subscribe = { do: "subscribe", attempt: state.attempt, streamId: state.streamId, topics: state.topics };
  return {
    state: isLive ? { ...state, status: /** @type {Status} */ ("live"), reason: null } : state,
    actions: [...actions, connect, ...(isSame ? [] : [subscribe])],
  };
}

const isShared = (/** @type {string} */ topic) => topic !== "personal";

// The answer to `subscribe`.
/** @param {State} state @param {any} input */
function subscribed(state, input) {
  // What was asked for since has an answer of its own.
  if (!sameTopics(input.asked, state.topics)) return { state, actions: [] };
  if (input.status !== 200) {
    const isFinal = input.status === 400 || input.status === 403 || input.status === 422;
    return isFinal ? stop(state, "refused", refusal(input)) : fail(state, input, refusal(input), input.retryAfterMs);
  }
  const next = settle({ ...state, ready: input.topics }, input.now, []);
  return { state: next.state, actions: next.actions.filter((action) => action.do === "timer") };
}

/** @param {string[]} a @param {string[]} b */
const sameTopics = (a, b) => a.length === b.length && a.every((topic) => b.includes(topic));

/** @param {State} state @param {string[]} wanted @param {number} now */
function topics(state, wanted, now) {
  if (sameTopics(wanted, state.topics)) return { state, actions: [] };
  const next = { ...state, topics: wanted };
  return state.streamId !== null ? settle(next, now, []) : { state: next, actions: [] };
}

/** @param {State} state @param {{online: boolean, changed?: boolean}} input @param {number} now */
function network(state, { online, changed = false }, now) {
  const next = { ...state, online };
  if (isSettled(state)) return { state: next, actions: [] };
  if (!online) return stop(next, "offline", { code: "offline" });
  // On another network the old connection is dead, and nothing will say so.
  return (changed || !state.online) && !isPaused(state) ? wake(next, now) : { state: next, actions: [] };
}

// What only the app can end.
/** @param {State} state */
const isSettled = (state) => state.status === "closed" || state.status === "refused";

/** @param {State} state */
const isPaused = (state) => !state.foreground && state.reason?.code === "background";

/** @param {State} state @param {boolean} foreground @param {number} now */
function lifecycle(state, foreground, now) {
  const { backgroundMs, doubtMs } = state.limits;
  const next = { ...state, foreground };
  const pause = (/** @type {number | null} */ at) => ({ do: "timer", name: "background", at });
  if (!foreground) return { state: next, actions: backgroundMs === null ? [] : [pause(now + backgroundMs)] };
  const actions = backgroundMs === null ? [] : [pause(null)];
  const isDoubtful = state.status === "live" && now - state.heardAt > doubtMs;
  if (isSettled(state) || !state.online || (isTrying(state) && !isDoubtful)) return { state: next, actions };
  const woken = wake(next, now);
  return { state: woken.state, actions: [...actions, ...woken.actions] };
}

/**
 * Decision 14: an immediate try, counted anew; but one a second, however often the network comes and goes, and none
 * before a server that asked for patience wants it.
 * @param {State} state @param {number} now */
function wake(state, now) {
  const next = { ...state, tries: 0, fresh: false };
  const soonest = Math.max(state.triedAt + state.limits.wakeMs, state.serverAt);
  // Nor does it put off a try that is nearer.
  const at = Math.min(soonest, state.retryAt ?? soonest);
  if (now >= at) return open(next, now);
  const stopped = stop(next, "waiting", state.reason);
  return {
    state: { ...stopped.state, retryAt: at },
    actions: [...stopped.actions, { do: "timer", name: "retry", at }],
  };
}

/** @param {State} state @param {any} input */
function timer(state, input) {
  const { now, name } = input;
  switch (name) {
    case "retry": return state.status === "waiting" ? open(state, now) : { state, actions: [] };
    case "connect":
      return isTrying(state) ? fail(state, input, { code: "timeout" }) : { state, actions: [] };
    case "stable": return { state: state.streamId !== null ? { ...state, tries: 0 } : state, actions: [] };
    case "silence": {
      if (state.streamId === null) return { state, actions: [] };
      const at = state.heardAt + state.limits.silenceMs;
      return now < at ? { state, actions: [{ do: "timer", name, at }] } : fail(state, input, { code: "silence" });
    }
    case "background":
      return state.foreground || !isTrying(state) && state.status !== "waiting"
        ? { state, actions: [] } : stop(state, "waiting", { code: "background" });
    default: return { state, actions: [] };
  }
}
