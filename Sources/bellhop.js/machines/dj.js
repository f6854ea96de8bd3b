// A shop's DJ queue in the service's order, with the user's own votes shown before they are answered. Events to many
// subscribers carry no individual votes; votes from the user's other devices arrive with the next whole session.
import { advance, beginAnew, isTaken, problemOf, restored, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import { topicProblem, watchTopic } from "./watching.js";

/**
 * @typedef {Record<string, any>} Track
 * @typedef {import("../models").DJItem | import("../models").TrackAdded | import("../models").DJItemAnswer} TrackItem
 * @typedef {TrackItem & {userVote?: string}} Item
 * @typedef {{shopId: string, isActive: boolean, currentTrackId: string | null, tracks: Track[], isLive: boolean,
 *   isLoaded: boolean, problem: any, refusal: any, stored: Track[], pending: Record<string, {as: string, vote: string}>,
 *   version: number, epoch: string | null, count: number, isWanted: boolean,
 *   loading: import("./loading.js").Loading}} State
 * @typedef {{state: State, actions: any[]}} Result
 */

/** @param {{shopId: string}} options @returns {State} */
export function initial({ shopId }) {
  return {
    shopId, isActive: false, currentTrackId: null, tracks: [], isLive: false, isLoaded: false, problem: null,
    refusal: null,
    stored: [], pending: {}, version: 0, epoch: null, count: 0, isWanted: false, loading: unloaded,
  };
}

/** @param {State} state */
export const view = ({ isActive, currentTrackId, tracks: queue, isLive, isLoaded, problem }) => {
  return { isActive, currentTrackId, queue, isLive, isLoaded, problem };
};

/** @param {State} state @param {import("./inputs").StoreInput} input @returns {Result} */
export function receive(state, input) {
  if (input.type === "user") return beginAnew(receive, { ...initial(state), isWanted: state.isWanted }, input);
  const held = restored(state, input, withKept);
  const step = advance(held.loading, input, { as: "dj", path: path(state) });
  const subject = `dj:${state.shopId}`;
  const topic = watchTopic(state.isWanted, input, subject);
  const actions = [...topic.actions, ...step.actions];
  const refusal = topicProblem(state.refusal, input, subject);
  let next = { ...held, loading: step.loading, refusal, isWanted: topic.isWanted };
  if (step.isGone) next = withKept(next, {});
  if (step.body) next = session(next, step.body);
  if (input.type === "event") next = event(next, input.event);
  const made = input.type === "vote" ? vote(next, input) : input.type === "add" ? add(next, input)
    : input.type === "answer" ? answer(next, input) : { state: next, actions: [] };
  next = made.state;
  if ((input.type === "connection" && input.status !== "live") || !topic.isWanted) next = { ...next, isLive: false };
  if (next.isLive) next = { ...next, refusal: null };
  const { isLoaded } = next.loading;
  const problem = next.loading.problem ?? next.refusal;
  return { state: same(state, { ...ordered(next, state), isLoaded, problem }), actions: [...actions, ...made.actions] };
}

/** Returns what the device keeps for the next start; null for nothing.
 * @param {State} state */
export const kept = ({ isActive, currentTrackId, stored, version, epoch }) =>
  epoch === null ? null : { isActive, currentTrackId, tracks: stored, version, epoch };

/** @param {State} state @param {any} kept @returns {State} */
const withKept = (state, { isActive = false, currentTrackId = null, tracks = [], version = 0, epoch = null }) =>
  ({ ...state, isActive, currentTrackId, stored: tracks, version, epoch });

/** @param {State} state */
const path = (state) => `/v1/shops/${encodeURIComponent(state.shopId)}/dj`;

/** In another epoch, any payload is newer than the known state.
 * @param {State} state @param {{epoch?: string}} data @returns {State} */
function entered(state, { epoch = "" }) {
  if (epoch === state.epoch) return state;
  return { ...state, epoch, version: 0, stored: state.stored.map((track) => ({ ...track, version: 0 })) };
}

/** @param {State} state @param {import("./inputs").MachineEvent} event @returns {State} */
function event(state, { name, data }) {
  if (data?.shopId !== state.shopId || !Number.isInteger(data.version)) return state;
  const next = entered(state, data);
  if (/** @type {number} */ (data.version) < next.version) return state;
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

/** @param {State} state @param {import("../models").DJSession} data @returns {State} */
function session(state, data) {
  if (data.shopId !== state.shopId || !Array.isArray(data.queue)) return state;
  const next = entered(state, data);
  if (data.version < next.version) return state;
  const stored = data.queue.map((item) => track(next, item, data.version));
  const { isActive, version } = data;
  return { ...next, isActive, version, stored, currentTrackId: data.currentTrack?.trackId ?? null };
}

/** @param {State} state @param {Item} item @param {number} version @returns {Track} */
function track(state, item, version) {
  const known = state.stored.find((one) => one.trackId === item.trackId);
  const { trackId, trackName, artistName, albumArt = null, addedBy, addedAt } = item;
  // An event of a later vote may overtake an answer.
  const counted = known && known.version > version ? known : { ...item, version };
  return {
    trackId, trackName, artistName, albumArt, addedBy, addedAt, upvotes: counted.upvotes, downvotes: counted.downvotes,
    version: counted.version, userVote: item.userVote ?? known?.userVote ?? "none",
  };
}

/** @param {State} state @param {Item & {version: number}} item @returns {State} */
function put(state, item) {
  const next = track(state, item, item.version);
  const isThere = state.stored.some((one) => one.trackId === next.trackId);
  const stored = isThere ? state.stored.map((one) => one.trackId === next.trackId ? next : one)
    : [...state.stored, next];
  return { ...state, stored };
}

/** @param {State} state @param {import("./inputs").StoreInputOf<"vote">} input @returns {Result} */
function vote(state, { trackId, vote: side }) {
  const shown = state.tracks.find((one) => one.trackId === trackId);
  if (!shown || shown.userVote === side) return { state, actions: [] };
  const as = `vote-${state.count + 1}`;
  const place = `${path(state)}/tracks/${encodeURIComponent(trackId)}/vote`;
  return {
    state: { ...state, count: state.count + 1, pending: { ...state.pending, [trackId]: { as, vote: side } } },
    actions: [{ do: "send", method: "PUT", path: place, body: { vote: side }, as }],
  };
}

/** @param {State} state @param {import("./inputs").StoreInputOf<"add">} input @returns {Result} */
function add(state, { track: { trackId, trackName, artistName, albumArt = null } }) {
  const as = `add-${state.count + 1}`;
  const body = { trackId, trackName, artistName, albumArt };
  return {
    state: { ...state, count: state.count + 1 },
    actions: [{ do: "send", method: "POST", path: `${path(state)}/tracks`, body, as }],
  };
}

/** @param {State} state @param {import("./inputs").StoreInputOf<"answer">} input @returns {Result} */
function answer(state, input) {
  const { as, status, body } = input;
  if (!/^(vote|add)-/.test(as)) return { state, actions: [] };
  const trackId = Object.keys(state.pending).find((id) => state.pending[id].as === as);
  // If the user voted again meanwhile, the later vote stays shown, whatever the answer to the earlier one.
  const { [trackId ?? ""]: _, ...others } = state.pending;
  const next = trackId ? { ...state, pending: others } : state;
  if (!isTaken(status)) {
    const data = { shopId: state.shopId, trackId: trackId ?? null, problem: problemOf(input) };
    return { state: next, actions: [{ do: "tell", name: "dj:refused", data }] };
  }
  const entering = entered(next, body);
  return { state: body.version >= entering.version ? put(entering, body) : next, actions: [] };
}

/** Sorts the playing track first, then by score, then by the time of adding, then by id.
 * @param {State} state @param {State} before @returns {State} */
function ordered(state, before) {
  if (before.stored === state.stored && before.pending === state.pending
    && before.currentTrackId === state.currentTrackId) return { ...state, tracks: before.tracks };
  const tracks = state.stored.map((track) => shown(track, state.pending[track.trackId]?.vote));
  tracks.sort((one, other) => {
    const isCurrent = Number(other.trackId === state.currentTrackId) - Number(one.trackId === state.currentTrackId);
    return isCurrent || other.score - one.score || compare(one.addedAt, other.addedAt)
      || compare(one.trackId, other.trackId);
  });
  return { ...state, tracks: sameList(before.tracks, tracks) };
}

/** Compares by code points: the order of the texts' UTF-8 bytes, which is the service's order.
 * @param {string} one @param {string} other */
function compare(one, other) {
  const [left, right] = [[...one], [...other]];
  const place = left.findIndex((character, index) => character !== right[index]);
  if (place < 0) return left.length - right.length;
  return (left[place].codePointAt(0) ?? 0) - (right[place]?.codePointAt(0) ?? -1);
}

/** @param {Track} track @param {string} [wanted] @returns {Track} */
function shown({ version, ...track }, wanted) {
  const userVote = wanted ?? track.userVote;
  /** @param {string} side */
  const share = (side) => Number(userVote === side) - Number(track.userVote === side);
  const upvotes = track.upvotes + share("up");
  const downvotes = track.downvotes + share("down");
  return { ...track, userVote, upvotes, downvotes, score: upvotes - downvotes };
}
