// The top lines of a challenge's leaderboard, and the user's own row wherever it is on the board. The topic sends all
// lines once and then the changes. After a missed change the machine fetches the lines again, and reports them as
// behind until they fit.
import { advance, beginAnew, restored, unloaded } from "./loading.js";
import { same } from "./same.js";
import { isNewer } from "./version.js";
import { topicProblem, watchTopic } from "./watching.js";
import type { Outcome, StoreAction } from "../actions.js";
import type { Leaderboard as Board, Line, Problem } from "../features.js";
import type { Leaderboard, LeaderboardChange } from "../models.js";
import type { Refusal } from "../types.js";
import type { EventOf, InputOf } from "./inputs.js";
import type { Loading } from "./loading.js";
import type { Versioned } from "./version.js";

type Kept = Partial<Pick<State, "lines" | "me" | "entries" | "version" | "epoch">>;

type OwnLine = Omit<Line, "userId" | "displayName"> & Held & { displayName?: string | null };

interface Held {
  version: number | null;
  epoch: string | null;
}

export interface State {
  challengeId: string;
  user: string | null;
  lines: Line[];
  me: Board["me"];
  entries: number;
  version: number | null;
  epoch: string | null;
  isBehind: boolean;
  isLive: boolean;
  isLoaded: boolean;
  problem: Problem | Refusal | null;
  refusal: Refusal | null;
  isSubscribed: boolean;
  published: (Held & { lines: Line[]; entries: number }) | null;
  fetchedAt: number;
  loading: Loading;
}

/** Minimum time between two fetches of lines that do not fit: on a busy board, mismatches occur every second. */
const againMs = 5000;

export function initial({ challengeId, user = null }: { challengeId: string; user?: string | null }): State {
  return {
    challengeId, user, lines: [], me: null, entries: 0, version: null, epoch: null, isBehind: false, isLive: false,
    isLoaded: false, problem: null, refusal: null, isSubscribed: false,
    // The lines of the topic, while newer fetched ones show. The next change follows these.
    published: null, fetchedAt: -againMs, loading: unloaded,
  };
}

export const snapshot = ({ lines, me, entries, isBehind, isLive, isLoaded, problem }: State) => {
  return { lines, me, entries, isBehind, isLive, isLoaded, problem };
};

export function receive(state: State, input: InputOf<"leaderboard">): Outcome<State> {
  if (input.type === "user") {
    const { challengeId, isSubscribed: isSubscribed } = state;
    return beginAnew(receive, { ...initial({ challengeId, user: input.user }), isSubscribed }, input);
  }
  const path = `/v1/challenges/${encodeURIComponent(state.challengeId)}/leaderboard`;
  const opened = restored(state, input, restore);
  const step = advance(opened.loading, input, { as: "leaderboard", path });
  const subject = `leaderboard:${state.challengeId}`;
  const topic = watchTopic(state.isSubscribed, input, subject);
  const actions: StoreAction[] = [...topic.actions, ...step.actions];
  const refusal = topicProblem(state.refusal, input, subject);
  let next = { ...opened, loading: step.loading, refusal, isSubscribed: topic.isSubscribed };
  if (step.isGone) next = restore(next, {});
  if (input.type === "start") next.user = input.user ?? next.user;
  if (step.body) next = { ...take(next, step.body), fetchedAt: input.now };
  const { name, data } = input.event ?? {};
  if (name === "stream:ready") next.user ??= data.userId;
  if (name === "leaderboard:update" && data.challengeId === state.challengeId) {
    next = handle(next, data);
    const at = Math.max(input.now, next.fetchedAt + againMs);
    if (next.isBehind && !state.isBehind) actions.push({ do: "timer", name: "leaderboard", at });
    if (!next.isBehind && state.isBehind) actions.push({ do: "timer", name: "leaderboard", at: null });
  }
  if ((input.type === "connection" && input.status !== "live") || !topic.isSubscribed) next.isLive = false;
  if (next.isLive) next.refusal = null;
  const { isLoaded, problem } = next.loading;
  const shown = { ...next, isLoaded: isLoaded || next.version !== null, problem: problem ?? next.refusal };
  return { state: same(state, shown), actions };
}

/** Returns what the device keeps for the next start; null for nothing. */
export const kept = ({ lines, me, entries, version, epoch }: State) =>
  version === null ? null : { lines, me, entries, version, epoch };

const restore = (state: State, { lines = [], me = null, entries = 0, version = null, epoch = null }: Kept): State =>
  ({ ...state, lines, me, entries, version, epoch });

/** Applies a fetched board, unless the topic's lines are live and not behind. */
function take(state: State, body: Leaderboard): State {
  const { items, entries, version, epoch, me } = body;
  const isNeeded = !state.isLive || state.isBehind;
  const isTaken = isNeeded && isNewer(held(state), { version, epoch });
  const lines = { lines: items, entries, version, epoch };
  const next = { ...state, ...(isTaken ? lines : {}), isBehind: false };
  return own(next, me ? { ...me, version, epoch } : null, { version, epoch });
}

function handle(state: State, data: EventOf<"leaderboard:update">["data"]): State {
  const { version, epoch } = data;
  if (data.top) {
    const { top: lines, entries } = data;
    const published = { lines, entries, version, epoch };
    // A fetched board may be newer than the topic's first event.
    if (!isNewer(held(state), data) && state.version !== version) return { ...state, published, isLive: true };
    return mine({ ...state, ...published, published: null, isBehind: false, isLive: true });
  }
  if (!data.moved) return own(state, data, data);
  const published = state.published && merge(state.published, data);
  // Events that the state already includes are ignored.
  if (!isNewer(held(state), data)) return same(state, { ...state, published });
  // The topic's own lines are the base of its changes. A line that entered and left in between is in no change.
  const next = published ?? merge(state, data);
  if (!next) return { ...state, published: null, isBehind: true };
  return mine({ ...state, ...next, published: null, isBehind: false, isLive: true });
}

const held = ({ version, epoch }: State) => version === null ? null : { version, epoch };

/** Applies a change; null for one that does not follow the lines. The moved lines are complete, so a change that began
 * earlier applies too. */
function merge({ lines, version, epoch }: Held & { lines: Line[] }, change: LeaderboardChange) {
  if (version === null || epoch !== change.epoch || change.since > version) return null;
  const { entries } = change;
  return { lines: apply(lines, change.moved, new Set(change.left)), entries, version: change.version, epoch };
}

/** Applies moved lines. A line without a score and a name keeps its own: only its position changed. */
function apply(lines: Line[], changes: LeaderboardChange["moved"], left: Set<string>) {
  const known = new Map(lines.filter((line) => !left.has(line.userId)).map((line) => [line.userId, line]));
  for (const change of changes) {
    const line = known.get(change.userId);
    if (line || change.score !== undefined) known.set(change.userId, { displayName: null, ...line, ...change } as Line);
  }
  return [...known.values()].sort((one, other) => one.position - other.position);
}

/** Updates the user's own row from the lines, if they are newer. */
function mine(state: State): State {
  const line = state.lines.find((one) => one.userId === state.user);
  return line ? own(state, { ...line, version: state.version, epoch: state.epoch }, held(state)) : state;
}

/** @param me null: the user has no score */
function own(state: State, me: OwnLine | null, at: ReturnType<typeof held>): State {
  if (state.me && !isNewer(state.me, at as Versioned)) return state;
  if (!me) return { ...state, me: null };
  const { rank, position, score, version, epoch, displayName = state.me?.displayName ?? null } = me;
  return { ...state, me: { userId: state.user, displayName, rank, position, score, version, epoch } as State["me"] };
}
