// Decides when to open, abandon and retry the stream (R-CUT-N-1 to R-CUT-N-4, R-SCH-FR-003, R-VIS-Q2, R-VIS-NFR-2.2,
//

import { differs } from "./token.js";
import type { ConnectionAction, Outcome, TimerAction } from "../actions.js";
import type { Connection, Refusal, Status } from "../types.js";
import type { ConnectionInput, ConnectionInputOf, ProblemBody } from "./inputs.js";

export interface State {
  status: Status;
  /** The requested topics. */
  topics: string[];
  isOnline: boolean;
  isForeground: boolean;
  /** Number of the connection; input from earlier connections is ignored. */
  attempt: number;
  /** Number of consecutive failed tries. */
  tries: number;
  triedAt: number;
  /** Time of the last received byte. */
  receivedAt: number;
  /** Set by `stream:ready`. */
  streamId: string | null;
  /** The topics that the stream is subscribed to. */
  ready: string[];
  retryAt: number | null;
  /** The stream's own `retry:`, which replaces the first delay. */
  retryMs: number | null;
  /** Contents of `stream:closing`. */
  closing: { reason?: string; retryAfterMs?: number } | null;
  /** No try before this time: the server asked for the delay. */
  serverAt: number;
  /** The last token was refused once. */
  isFresh: boolean;
  /** Why the service refused a topic, by topic. */
  refused: Record<string, Refusal>;
  /** Refused topics that are requested once more. */
  again: string[];
  /** The topics of the last subscription request. */
  asked: string[];
  /** Maximum number of new topics per request while bisecting for the refused one; null means all. */
  limit: number | null;
  /** The stream was refused together with its topics, so it is opened without any. */
  isBare: boolean;
  /** Why the stream is not live: {code, status?, detail?}. */
  reason: Refusal | null;
  /** The service's digest of the token's rights; null until known. */
  identity: string | null;
  /** The user that a stream must belong to; null if unknown. */
  user: string | null;
  limits: typeof defaults;
}

type Result = Outcome<State, ConnectionAction>;

export const defaults = {
  triesMax: 10,
  firstMs: 1000,
  delayMsMax: 30_000,
  // A server that requests a longer delay is misconfigured, and a client that complied would appear dead.
  serverMsMax: 3_600_000,
  connectMs: 10_000,
  silenceMs: 60_000,
  // A connection that breaks sooner counts as one more failure. Otherwise a flapping connection would be retried every
  // second forever.
  stableMs: 10_000,
  // Minimum time between two tries caused by a returning network or foreground.
  wakeMs: 1000,
  // When the app returns to the foreground after this much silence (two heartbeats), the existing connection is not
  // trusted.
  doubtMs: 35_000,
  // How long the stream stays open in the background; null means no limit.
  backgroundMs: null as number | null,
};

export function initial(
  options: Partial<typeof defaults> & Partial<Pick<State, "topics" | "isOnline" | "isForeground" | "user" | "identity">>
    = {},
): State {
  const { topics = [], isOnline = true, isForeground = true, user = null, identity = null, ...limits } = options;
  return {
    status: "closed", topics, isOnline, isForeground, attempt: 0, tries: 0, triedAt: -Infinity,
    receivedAt: 0, streamId: null, ready: [], retryAt: null, retryMs: null, closing: null, serverAt: 0, isFresh: false,
    refused: {}, again: [], asked: [], limit: null, isBare: false,
    reason: null, user, identity, limits: { ...defaults, ...limits },
  };
}

/** Returns the state that the app sees. It only changes when something happens. */
export function snapshot({ status, tries, retryAt, streamId, ready, reason, refused }: State) {
  return { status, tries, retryAt, streamId, topics: ready, reason, refused };
}

/** Returns what the app sees without a stream. */
export const unconnected = (status: Status, reason: Refusal | null = null): Connection =>
  ({ ...snapshot(initial()), status, reason });

const timers = ["retry", "connect", "silence", "stable"].map((name): TimerAction => ({ do: "timer", name, at: null }));

export function receive(state: State, input: ConnectionInput): Result {
  const { now } = input;
  switch (input.type) {
    case "open": return open({ ...state, tries: 0, isFresh: false, refused: {}, isBare: false }, now);
    case "close": return stop(state, "closed", null);
    case "retry": return { state: { ...state, retryMs: input.milliseconds }, actions: [] };
    case "topics": return topics(state, input.topics, now);
    // The user's access changed, or the token did: refused topics are requested again.
    case "scope": {
      const next = again(state);
      return next.again.length > 0 && state.streamId !== null ? settle(next, now, []) : { state, actions: [] };
    }
    case "network": return network(state, input, now);
    case "lifecycle": return lifecycle(state, input.foreground, now);
    case "timer": return timer(state, input);
  }
  // The remaining inputs come from a connection. Inputs of an earlier connection are ignored.
  if (input.attempt !== state.attempt || !isTrying(state)) return { state, actions: [] };
  switch (input.type) {
    case "bytes": return { state: { ...state, receivedAt: now }, actions: [] };
    case "head": return head(state, input);
    case "ready": return ready(state, input);
    case "subscribed": return subscribed(state, input);
    case "closing": return { state: { ...state, closing: input }, actions: [] };
    // A planned reconnection: the transport has collected too much, or the stream's token could not be renewed.
    case "again": return open({ ...state, isFresh: input.isFresh === true }, now);
    case "ended": return fail(state, input, lost(state, input));
    default: return { state, actions: [] };
  }
}

const isTrying = (state: State) => state.status === "connecting" || state.status === "live";

function open(state: State, now: number): Result {
  const attempt = state.attempt + 1;
  const next: State = {
    ...state, status: "connecting", attempt, triedAt: now, receivedAt: now, streamId: null, ready: [], retryAt: null,
    closing: null,
  };
  return {
    state: next,
    actions: [
      ...(isTrying(state) ? [{ do: "disconnect" } as const] : []),
      ...timers.slice(2),
      timers[0],
      { do: "timer", name: "connect", at: now + state.limits.connectMs },
      { do: "connect", attempt, topics: opening(state), isFresh: state.isFresh },
    ],
  };
}

/** The topics to open the stream with. None after a refusal: the user's own events must always be delivered. */
const opening = ({ topics, refused, isBare }: State) => isBare ? [] : topics.filter((topic) => !refused[topic]);

const again = (state: State) => ({ ...state, again: Object.keys(state.refused) });

const filtered = ({ refused }: State, isKept: (topic: string) => boolean) =>
  Object.fromEntries(Object.entries(refused).filter(([topic]) => isKept(topic)));

const lost = ({ closing }: State, { code = "lost", detail = null, status }: ConnectionInput) => closing
  ? { code: "closed", detail: closing.reason ?? null } : { code, detail, status };

function stop(state: State, status: Status, reason: State["reason"]): Result {
  return {
    state: { ...state, status, reason, streamId: null, ready: [], retryAt: null, isFresh: false },
    actions: [...(isTrying(state) ? [{ do: "disconnect" } as const] : []), ...timers],
  };
}

function fail(
  state: State, { now, random }: { now: number; random: number }, reason: State["reason"],
  serverMs: number = state.closing?.retryAfterMs ?? 0,
): Result {
  const { limits } = state;
  // The device reports no network, and nothing answered: the next tries are slow, and do not count.
  const isOffline = !state.isOnline && reason?.status === undefined && !state.closing;
  const tries = isOffline ? state.tries : state.tries + 1;
  if (!isOffline && tries > limits.triesMax) return stop({ ...state, tries: limits.triesMax }, "unreachable", reason);
  const firstMs = isOffline ? limits.delayMsMax : state.retryMs ?? limits.firstMs;
  const own = backoff(firstMs, Math.max(0, tries - 1), limits.delayMsMax, random);
  const serverAt = now + Math.min(serverMs, limits.serverMsMax);
  const retryAt = Math.max(now + own, serverAt);
  const stopped = stop(state, isOffline ? "offline" : "waiting", reason);
  return {
    state: { ...stopped.state, tries, retryAt, serverAt, isFresh: state.isFresh },
    actions: [...stopped.actions, { do: "timer", name: "retry", at: retryAt }],
  };
}

/** Doubles the delay with each failure, with a jitter of ±20%, so that clients of a restarting server do not all
 * reconnect at the same instant. A server may ask for no delay at all; it gets a millisecond, which doubles. */
export const backoff = (firstMs: number, failures: number, msMax: number, random: number) =>
  Math.min(Math.max(1, Math.trunc(
    Math.min(Math.max(1, firstMs) * 2 ** failures, msMax) * (0.8 + 0.4 * Math.min(Math.max(random, 0), 1)))), msMax);

function head(state: State, input: ConnectionInputOf<"head">): Result {
  const { status, retryAfterMs = 0 } = input;
  const reason = refusal(input);
  if (status === 200) return { state: { ...state, receivedAt: input.now, isFresh: false }, actions: [] };
  if (status === 204) return stop(state, "closed", reason);
  if (status === 401) {
    // The first 401 is retried immediately with another token; a second one backs off.
    return state.isFresh ? fail(state, input, reason, retryAfterMs) : open({ ...state, isFresh: true }, input.now);
  }
  const isFinal = status >= 400 && status < 500 && ![408, 425, 429].includes(status);
  if (!isFinal) return fail(state, input, reason, retryAfterMs);
  // One of the topics may be the reason: the stream opens without any, and then each is asked for.
  return opening(state).length > 0
    ? open({ ...state, isBare: true, isFresh: false }, input.now) : stop(state, "refused", reason);
}

const refusal = ({ status, problem }: { status: number; problem?: ProblemBody }): Refusal =>
  ({ code: problem?.code ?? `http.${status}`, status, detail: problem?.detail ?? null });

function ready(state: State, input: ConnectionInputOf<"ready">): Result {
  const { userId = state.user, identity = state.identity } = input;
  // A stream of another user, or with other rights, is not used.
  if (differs(state.user, userId) || differs(state.identity, identity)) {
    return stop(state, "refused", { code: "stream.other" });
  }
  const next: State = {
    ...again(state), streamId: input.streamId, ready: input.topics ?? [], identity, isBare: false, limit: null,
    // A service that was reached does not count as unreachable, however often the connection breaks.
    tries: Math.min(state.tries, state.limits.triesMax - 1),
  };
  return settle(next, input.now, [
    { do: "timer", name: "silence", at: input.now + state.limits.silenceMs },
    { do: "timer", name: "stable", at: input.now + state.limits.stableMs },
  ]);
}

/** Live is who has the topics asked for (R-CNT-13.1), but for the refused ones; the stream's are replaced where it has
 * others. Who is live stays so while one more topic is on its way, for as long as a connection may take. */
function settle(state: State, now: number, actions: ConnectionAction[], mayAsk = true): Result {
  const { refused, attempt, streamId } = state;
  const has = state.ready.filter(isShared);
  const due = state.topics.filter((topic) => isShared(topic) && (!refused[topic] || state.again.includes(topic)));
  const missing = due.filter((topic) => !has.includes(topic));
  const topics = due.filter((topic) => !missing.slice(state.limit ?? Infinity).includes(topic));
  const isLive = missing.every((topic) => refused[topic]);
  const isSame = missing.length === 0 && has.length === topics.length;
  const connect: TimerAction = { do: "timer", name: "connect", at: isLive ? null : now + state.limits.connectMs };
  const next = { ...state, ...(isSame ? { limit: null } : { asked: topics }) };
  return {
    state: isLive ? { ...next, status: "live" as Status, reason: null } : next,
    actions: [
      ...actions, connect,
      ...(isSame || !mayAsk ? [] : [{ do: "subscribe", attempt, streamId: streamId as string, topics } as const]),
    ],
  };
}

const isShared = (topic: string) => topic !== "personal";

/** Handles the answer to a subscription request. */
function subscribed(state: State, input: ConnectionInputOf<"subscribed">): Result {
  const { asked, status, now, topics = [] } = input;
  // A newer request has its own answer.
  if (!isSame(asked, state.asked)) return { state, actions: [] };
  if (status === 200) {
    const refused = filtered(state, (topic) => !topics.includes(topic));
    // If the service confirms the request but leaves a topic out, this connection does not request it again.
    const isGiven = asked.every((topic: string) => topics.includes(topic));
    return settle({ ...state, ready: topics, refused, limit: state.limit && state.limit * 2 }, now, [], isGiven);
  }
  if (![400, 403, 422].includes(status) || asked.length === 0) {
    return fail(state, input, refusal(input), input.retryAfterMs);
  }
  // Marks the topics that the service names as refused. If it names no topic, tries half of the new ones.
  const named = (input.problem?.errors ?? []).map(({ pointer }) =>
    asked[((/^\/topics\/(\d+)$/.exec(pointer)?.[1] as unknown) as number)]).filter(Boolean);
  const missing = asked.filter((topic: string) => !state.ready.includes(topic));
  const unknown = missing.length > 0 ? missing : asked;
  if (named.length === 0 && unknown.length > 1) {
    return settle({ ...state, ready: missing.length > 0 ? state.ready : [], limit: unknown.length >> 1 }, now, []);
  }
  const left = named.length > 0 ? named : unknown;
  const refused = { ...state.refused };
  for (const topic of left) refused[topic] = refusal(input);
  return settle({ ...state, refused, again: state.again.filter((topic) => !left.includes(topic)) }, now, []);
}

const isSame = (a: string[], b: string[]) => a.length === b.length && a.every((topic) => b.includes(topic));

function topics(state: State, requested: string[], now: number): Result {
  if (isSame(requested, state.topics)) return { state, actions: [] };
  const refused = filtered(state, (topic) => requested.includes(topic));
  const next = { ...state, topics: requested, refused, limit: null };
  return state.streamId !== null ? settle(next, now, []) : { state: next, actions: [] };
}

function network(state: State, { online, changed = false }: { online: boolean; changed?: boolean }, now: number): Result {
  const next = { ...state, isOnline: online };
  const isNew = changed || online !== state.isOnline;
  // On another network the old connection is dead, and no error reports it. Without a network a new try fails at once,
  // unless the report is wrong, as with some virtual networks.
  const isPaused = !state.isForeground && state.reason?.code === "background";
  return isNew && !isSettled(state) && !isPaused ? wake(next, now) : { state: next, actions: [] };
}

/** Returns whether only the app can leave this state. */
const isSettled = (state: State) => state.status === "closed" || state.status === "refused";

function lifecycle(state: State, foreground: boolean, now: number): Result {
  const { backgroundMs, doubtMs } = state.limits;
  const next = { ...state, isForeground: foreground };
  const pause = (at: number | null): TimerAction => ({ do: "timer", name: "background", at });
  if (!foreground) return { state: next, actions: backgroundMs === null ? [] : [pause(now + backgroundMs)] };
  const actions: ConnectionAction[] = backgroundMs === null ? [] : [pause(null)];
  const isDoubtful = state.status === "live" && now - state.receivedAt > doubtMs;
  if (isSettled(state) || (isTrying(state) && !isDoubtful)) return { state: next, actions };
  const woken = wake(next, now);
  return { state: woken.state, actions: [...actions, ...woken.actions] };
}

/** tries immediately and resets the failure count. At most one try per second, however often the network comes
 * and goes, and none before the server's `Retry-After` has passed. */
function wake(state: State, now: number): Result {
  const next = { ...state, tries: 0, isFresh: false };
  const soonest = Math.max(state.triedAt + state.limits.wakeMs, state.serverAt);
  // An earlier scheduled try is not postponed.
  const at = Math.min(soonest, state.retryAt ?? soonest);
  if (now >= at) return open(next, now);
  const stopped = stop(next, "waiting", state.reason);
  return {
    state: { ...stopped.state, retryAt: at },
    actions: [...stopped.actions, { do: "timer", name: "retry", at }],
  };
}

function timer(state: State, input: ConnectionInputOf<"timer">): Result {
  const { now, name } = input;
  switch (name) {
    case "retry":
      return state.status === "waiting" || state.status === "offline" ? open(state, now) : { state, actions: [] };
    case "connect":
      return isTrying(state) ? fail(state, input, { code: "timeout" }) : { state, actions: [] };
    case "stable": return { state: state.streamId !== null ? { ...state, tries: 0 } : state, actions: [] };
    case "silence": {
      if (state.streamId === null) return { state, actions: [] };
      const at = state.receivedAt + state.limits.silenceMs;
      return now < at ? { state, actions: [{ do: "timer", name, at }] } : fail(state, input, { code: "silence" });
    }
    case "background":
      return state.isForeground || isSettled(state) || state.status === "unreachable"
        ? { state, actions: [] } : stop(state, "waiting", { code: "background" });
    default: return { state, actions: [] };
  }
}
