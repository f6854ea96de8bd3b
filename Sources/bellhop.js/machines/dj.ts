// A shop's DJ queue in the service's order, with the user's own votes shown before they are answered. Events to many
// subscribers carry no individual votes; votes from the user's other devices arrive with the next whole session.
import { advance, beginAnew, isTaken, problemOf, restored, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import { topicProblem, watchTopic } from "./watching.js";
import type { Outcome, StoreAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { DJItem, DJItemAnswer, DJSession, DJVote, TrackAdded } from "../models.js";
import type { Refusal } from "../types.js";
import type { InputOf, MachineEvent, StoreInputOf } from "./inputs.js";
import type { Loading } from "./loading.js";

/** A track as the service knows it. */
interface Track extends Pick<DJItem, "trackId" | "trackName" | "artistName" | "albumArt" | "addedBy" | "addedAt"> {
  upvotes: number;
  downvotes: number;
  userVote: DJVote;
  version: number;
}

/** A track as the app sees it, with the user's unanswered vote. */
interface Shown extends Omit<Track, "version"> {
  score: number;
}

type TrackItem = DJItem | TrackAdded | DJItemAnswer;

type Item = TrackItem & { userVote?: DJVote };

export interface State {
  shopId: string;
  isActive: boolean;
  currentTrackId: string | null;
  tracks: Shown[];
  isLive: boolean;
  isLoaded: boolean;
  problem: Problem | Refusal | null;
  refusal: Refusal | null;
  stored: Track[];
  pending: Record<string, { as: string; vote: string }>;
  version: number;
  epoch: string | null;
  count: number;
  isSubscribed: boolean;
  loading: Loading;
}

interface Kept extends Partial<Pick<State, "isActive" | "currentTrackId" | "version" | "epoch">> {
  tracks?: Track[];
}

type Result = Outcome<State>;

export function initial({ shopId }: { shopId: string }): State {
  return {
    shopId, isActive: false, currentTrackId: null, tracks: [], isLive: false, isLoaded: false, problem: null,
    refusal: null,
    stored: [], pending: {}, version: 0, epoch: null, count: 0, isSubscribed: false, loading: unloaded,
  };
}

export const snapshot = ({ isActive, currentTrackId, tracks: queue, isLive, isLoaded, problem }: State) => {
  return { isActive, currentTrackId, queue, isLive, isLoaded, problem };
};

export function receive(state: State, input: InputOf<"dj">): Result {
  if (input.type === "user") return beginAnew(receive, { ...initial(state), isSubscribed: state.isSubscribed }, input);
  const held = restored(state, input, restore);
  const step = advance(held.loading, input, { as: "dj", path: path(state) });
  const subject = `dj:${state.shopId}`;
  const topic = watchTopic(state.isSubscribed, input, subject);
  const actions: StoreAction[] = [...topic.actions, ...step.actions];
  const refusal = topicProblem(state.refusal, input, subject);
  let next = { ...held, loading: step.loading, refusal, isSubscribed: topic.isSubscribed };
  if (step.isGone) next = restore(next, {});
  if (step.body) next = session(next, step.body);
  if (input.type === "event") next = handle(next, input.event);
  const made = input.type === "vote" ? vote(next, input) : input.type === "add" ? add(next, input)
    : input.type === "answer" ? answered(next, input) : { state: next, actions: [] };
  next = made.state;
  if ((input.type === "connection" && input.status !== "live") || !topic.isSubscribed) next = { ...next, isLive: false };
  if (next.isLive) next = { ...next, refusal: null };
  const { isLoaded } = next.loading;
  const problem = next.loading.problem ?? next.refusal;
  return { state: same(state, { ...order(next, state), isLoaded, problem }), actions: [...actions, ...made.actions] };
}

/** Returns what the device keeps for the next start; null for nothing. */
export const kept = ({ isActive, currentTrackId, stored, version, epoch }: State) =>
  epoch === null ? null : { isActive, currentTrackId, tracks: stored, version, epoch };

const restore = (
  state: State, { isActive = false, currentTrackId = null, tracks = [], version = 0, epoch = null }: Kept,
): State => ({ ...state, isActive, currentTrackId, stored: tracks, version, epoch });

const path = (state: State) => `/v1/shops/${encodeURIComponent(state.shopId)}/dj`;

/** In another epoch, any payload is newer than the known state. */
function enter(state: State, { epoch = "" }: { epoch?: string }): State {
  if (epoch === state.epoch) return state;
  return { ...state, epoch, version: 0, stored: state.stored.map((track) => ({ ...track, version: 0 })) };
}

function handle(state: State, { name, data }: MachineEvent): State {
  if (data?.shopId !== state.shopId || !Number.isInteger(data.version)) return state;
  const next = enter(state, data);
  if ((data.version as number) < next.version) return state;
  switch (name) {
    case "dj:session": return { ...session(state, data), isLive: true };
    case "track:added": return put(next, data);
    case "track:removed": return { ...next, stored: next.stored.filter((track) => track.trackId !== data.trackId) };
    case "track:playing": return { ...next, currentTrackId: data.trackId };
    case "dj:queue_update": {
      const { upvotes, downvotes, version } = data;
      const stored = next.stored.map((track) => {
        const isMeant = track.trackId === data.trackId && version >= track.version;
        return isMeant ? { ...track, upvotes, downvotes, version } : track;
      });
      return { ...next, stored };
    }
  }
  return state;
}

function session(state: State, data: DJSession): State {
  if (data.shopId !== state.shopId || !Array.isArray(data.queue)) return state;
  const next = enter(state, data);
  if (data.version < next.version) return state;
  const stored = data.queue.map((item) => track(next, item, data.version));
  const { isActive, version } = data;
  return { ...next, isActive, version, stored, currentTrackId: data.currentTrack?.trackId ?? null };
}

function track(state: State, item: Item, version: number): Track {
  const known = state.stored.find((one) => one.trackId === item.trackId);
  const { trackId, trackName, artistName, albumArt = null, addedBy, addedAt } = item;
  // An event of a later vote may overtake an answer.
  const counted = known && known.version > version ? known : { ...item, version };
  return {
    trackId, trackName, artistName, albumArt, addedBy, addedAt, upvotes: counted.upvotes, downvotes: counted.downvotes,
    version: counted.version, userVote: item.userVote ?? known?.userVote ?? "none",
  };
}

function put(state: State, item: Item & { version: number }): State {
  const next = track(state, item, item.version);
  const isThere = state.stored.some((one) => one.trackId === next.trackId);
  const stored = isThere ? state.stored.map((one) => one.trackId === next.trackId ? next : one)
    : [...state.stored, next];
  return { ...state, stored };
}

function vote(state: State, { trackId, vote: side }: Extract<InputOf<"dj">, { type: "vote" }>): Result {
  const shown = state.tracks.find((one) => one.trackId === trackId);
  if (!shown || shown.userVote === side) return { state, actions: [] };
  const as = `vote-${state.count + 1}`;
  const place = `${path(state)}/tracks/${encodeURIComponent(trackId)}/vote`;
  return {
    state: { ...state, count: state.count + 1, pending: { ...state.pending, [trackId]: { as, vote: side } } },
    actions: [{ do: "send", method: "PUT", path: place, body: { vote: side }, as }],
  };
}

function add(
  state: State, { track: { trackId, trackName, artistName, albumArt = null } }: Extract<InputOf<"dj">, { type: "add" }>,
): Result {
  const as = `add-${state.count + 1}`;
  const body = { trackId, trackName, artistName, albumArt };
  return {
    state: { ...state, count: state.count + 1 },
    actions: [{ do: "send", method: "POST", path: `${path(state)}/tracks`, body, as }],
  };
}

function answered(state: State, input: StoreInputOf<"answer">): Result {
  const { as, status, body } = input;
  if (!/^(vote|add)-/.test(as)) return { state, actions: [] };
  const trackId = Object.keys(state.pending).find((id) => state.pending[id].as === as);
  // If the user voted again meanwhile, the later vote stays shown, whatever the answer to the earlier one.
  const { [trackId ?? ""]: _, ...others } = state.pending;
  const next = trackId ? { ...state, pending: others } : state;
  if (!isTaken(status)) {
    const data = { shopId: state.shopId, trackId: trackId ?? null, problem: problemOf(input) };
    return { state: next, actions: [{ do: "publish", name: "dj:refused", data }] };
  }
  const entering = enter(next, body);
  return { state: body.version >= entering.version ? put(entering, body) : next, actions: [] };
}

/** Sorts the playing track first, then by score, then by the time of adding, then by id. */
function order(state: State, before: State): State {
  if (before.stored === state.stored && before.pending === state.pending
    && before.currentTrackId === state.currentTrackId) return { ...state, tracks: before.tracks };
  const tracks = state.stored.map((track) => show(track, state.pending[track.trackId]?.vote));
  tracks.sort((one, other) => {
    const isCurrent = Number(other.trackId === state.currentTrackId) - Number(one.trackId === state.currentTrackId);
    return isCurrent || other.score - one.score || compare(one.addedAt, other.addedAt)
      || compare(one.trackId, other.trackId);
  });
  return { ...state, tracks: sameList(before.tracks, tracks) };
}

/** Compares by code points: the order of the texts' UTF-8 bytes, which is the service's order. */
function compare(one: string, other: string) {
  const [left, right] = [[...one], [...other]];
  const place = left.findIndex((character, index) => character !== right[index]);
  if (place < 0) return left.length - right.length;
  return (left[place].codePointAt(0) ?? 0) - (right[place]?.codePointAt(0) ?? -1);
}

function show({ version, ...track }: Track, vote?: DJVote): Shown {
  const userVote = vote ?? track.userVote;
  const share = (side: string) => Number(userVote === side) - Number(track.userVote === side);
  const upvotes = track.upvotes + share("up");
  const downvotes = track.downvotes + share("down");
  return { ...track, userVote, upvotes, downvotes, score: upvotes - downvotes };
}
