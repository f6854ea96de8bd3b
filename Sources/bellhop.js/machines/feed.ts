// Posts by the users that the user follows, newest first. New posts wait behind a banner with their number, until the
// user requests them or five seconds have passed. Likes and reposts show at once, and are reverted if the service
// refuses them.
import { advance, apply, fetchMore, merged, send, settle, shown, takeMore } from "./list.js";
import { beginAnew, isTaken, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import { feed as list } from "../lists.js";
import type { Outcome, StoreAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { Feed, PostView as Post } from "../models.js";
import type { InputOf, MachineEvent, Refresh, StoreInputOf } from "./inputs.js";
import type { Rules, WrittenState } from "./list.js";

export interface State extends WrittenState<Post, Partial<Post>> {
  user: string | null;
  posts: Post[];
  newCount: number;
  isMore: boolean;
  hasMore: boolean;
  isLoaded: boolean;
  problem: Problem | null;
  waiting: Post[];
  newest: number | null;
  isWatched: boolean;
  isForeground: boolean;
  placed: string;
  lastEventId: string | null;
  since: string | null;
}

type Result = Outcome<State>;

/** After this time the banner's posts show by themselves (R-CUT-F-1). */
const bannerMs = 5000;
/** If more posts wait behind the banner, the first page is fetched instead of them. */
const waitingMax = 50;
/** Posts whose counts are followed: more are not on a screen. */
const followedMax = 200;

export function initial(options?: { user?: string | null }): State {
  return {
    user: options?.user ?? null, posts: [], newCount: 0, isMore: false, hasMore: false, isLoaded: false, problem: null,
    stored: [], waiting: [], newest: null, next: null, pending: [], isWatched: false, isForeground: true,
    placed: "", lastEventId: null, since: null, count: 0, loading: unloaded,
  };
}

export const snapshot = ({ posts, newCount, isMore, hasMore, isLoaded, problem }: State) => {
  return { posts, newCount, isMore, hasMore, isLoaded, problem };
};

const rules: Rules<Post, State> = {
  list,
  /** Without `newest`, the first answer is the whole first page: likes have changed, and posts were removed. */
  restore: (state, { posts = [] }: { posts?: Post[] }) => ({ ...state, stored: posts }),
  take,
  handle,
};

export function receive(state: State, input: InputOf<"feed">): Result {
  if (input.type === "user") {
    const { isWatched, isForeground, placed } = state;
    const begun = beginAnew(receive, { ...initial(input), isWatched, isForeground, placed }, input);
    return { state: begun.state, actions: [{ do: "timer", name: "banner", at: null }, ...begun.actions] };
  }
  // Posts are only delivered as they are made, so posts made while the stream was down are fetched.
  const { name } = input.event ?? {};
  const isReconnected = name === "stream:ready" && state.loading.isLoaded && state.loading.isCovered;
  const asked: InputOf<"feed"> | Refresh = isReconnected ? { type: "refresh", now: input.now } : input;
  const path = state.newest === null ? list.path : `${list.path}&since=${state.newest}`;
  const { state: held, actions } = advance(rules, state, input, path, asked);
  let next = held;
  if (input.type === "start") next.user = input.user ?? next.user;
  const made = own(next, input);
  next = made.state;
  actions.push(...made.actions);
  const at = input.now + bannerMs;
  if (next.newCount > 0 && state.newCount === 0) actions.push({ do: "timer", name: "banner", at });
  if (next.newCount === 0 && state.newCount > 0) actions.push({ do: "timer", name: "banner", at: null });
  const { isLoaded, problem } = next.loading;
  const posts = sameList(state.posts, show(next, state));
  const placing = follow({ ...next, posts, isLoaded, problem, hasMore: next.next !== null }, input);
  return { state: same(state, placing.state), actions: [...actions, ...placing.actions] };
}

const followed = ({ waiting, stored }: State) =>
  [...waiting, ...stored].slice(0, followedMax).map((post) => post.id).sort();

/** Subscribes to the counts of the shown posts while a screen watches them. The next filter begins with the changes
 * since the last one. */
function follow(state: State, input: InputOf<"feed">): Result {
  let next = state;
  if (input.type === "event" && input.event.id && state.isWatched) next = { ...next, lastEventId: input.event.id };
  if (input.type === "watch") next = { ...next, isWatched: input.watched };
  if (input.type === "lifecycle") next = { ...next, isForeground: input.foreground };
  if (input.type === "answer" && input.as === "tables" && isTaken(input.status)) next = { ...next, since: null };
  const ids = next.isWatched && next.isForeground ? followed(next) : [];
  const placed = ids.join(",");
  if (placed === state.placed) return { state: next, actions: [] };
  const since = next.since ?? next.lastEventId;
  const filter = `id=in.(${placed})`;
  const tables = placed ? [{ id: "posts", schema: "bellhop", table: "posts", event: "UPDATE", filter }] : [];
  // Without a filter, the next one begins at this position, so that it misses no change.
  const missed = placed && state.placed === "" && since ? { lastEventId: since } : {};
  const action: StoreAction = { do: "tables", tables, as: "tables", ...missed };
  return { state: { ...next, placed, since: placed ? next.since : since }, actions: [action] };
}

/** Returns what the device keeps for the next start: the first page; null for nothing. */
export const kept = ({ loading, stored }: State) => loading.isLoaded ? { posts: stored.slice(0, list.keptMax) } : null;

function own(state: State, input: InputOf<"feed">): Result {
  switch (input.type) {
    case "event": return apply(rules, state, input);
    case "answer": return answered(state, input);
    case "timer": return input.name === "banner" ? showNew(state) : { state, actions: [] };
    case "showNew": return showNew(state);
    case "engage": return engage(state, input);
    case "more": return { state, actions: fetchMore(list, state, list.path) };
  }
  return { state, actions: [] };
}

function take(state: State, body: Feed): State {
  const newest = Math.max(body.newest, state.newest ?? 0);
  if (body.newCount === undefined) {
    return { ...state, stored: body.items, next: body.next ?? null, newest, waiting: [], newCount: 0, isMore: false };
  }
  // New posts of others go behind the banner. The user's own posts, made on another device, show directly.
  const isOwn = (post: Post) => post.authorId === state.user;
  const others = body.items.filter((post: Post) => !isOwn(post));
  const known = [...state.stored, ...state.waiting];
  const fresh = others.filter((post: Post) => !has(known, post.id));
  // The service's count includes posts that are not on the page.
  const newCount = state.newCount + fresh.length + Math.max(0, body.newCount - others.length);
  return {
    ...state, newest, newCount, isMore: state.isMore || Boolean(body.newCountIsMore),
    stored: merged(list, state.stored, body.items.filter(isOwn)),
    waiting: merged(list, state.waiting, fresh, waitingMax),
  };
}

function handle(state: State, { name, data }: MachineEvent): Result {
  switch (name) {
    case "stream:ready": return { state: state.user ? state : { ...state, user: data.userId ?? null }, actions: [] };
    case "feed:new_post": {
      if (has(state.stored, data.id) || has(state.waiting, data.id)) break;
      const { type, postId, barberId, timestamp, ...members } = data;
      const post = { liked: false, reposted: false, ...members };
      const newest = state.newest === null ? null : Math.max(state.newest, post.sequence);
      const isOwn = post.authorId === state.user;
      const place = isOwn ? { stored: merged(list, state.stored, [post]) }
        : { waiting: merged(list, state.waiting, [post], waitingMax), newCount: state.newCount + 1 };
      return { state: { ...state, newest, ...place }, actions: [] };
    }
    case "feed:post_removed": {
      const waiting = state.waiting.filter((post) => post.id !== data.postId);
      const newCount = has(state.waiting, data.postId) ? state.newCount - 1 : state.newCount;
      return { state: { ...state, waiting, newCount }, actions: [] };
    }
    case "engagement_update": return { state: { ...state, waiting: counted(state.waiting, data.updates) }, actions: [] };
  }
  return { state, actions: [] };
}

function counted(posts: Post[], updates: Record<string, Partial<Post>>) {
  return sameList(posts, posts.map((post) => updates[post.id] ? { ...post, ...updates[post.id] } : post));
}

function showNew(state: State): Result {
  if (state.newCount === 0) return { state, actions: [] };
  const isWhole = state.waiting.length === state.newCount && !state.isMore;
  const stored = merged(list, state.stored, state.waiting);
  const next = { ...state, stored, waiting: [], newCount: 0, isMore: false };
  if (isWhole) return { state: next, actions: [] };
  // More posts waited than were kept: the list restarts with the first page, so that it has no gap.
  return { state: { ...next, newest: null }, actions: [{ do: "fetch", path: list.path, as: "anew" }] };
}

function engage(state: State, { postId, set, now }: Extract<InputOf<"feed">, { type: "engage" }>): Result {
  const post = state.posts.find((one) => one.id === postId);
  const name = "liked" in set ? "liked" : "reposted";
  if (!post || post[name] === set[name]) return { state, actions: [] };
  const write = `${set[name] ? "" : "un"}${name === "liked" ? "like" : "repost"}`;
  return send(rules, state, write, [postId], set, now);
}

function answered(state: State, input: StoreInputOf<"answer">): Result {
  const longer = takeMore(list, state, input);
  if (longer) return { state: longer, actions: [] };
  if (input.as === "anew" && isTaken(input.status)) return { state: take(state, input.body), actions: [] };
  return settle(rules, state, input) ?? { state, actions: [] };
}

/** Overlays the user's unanswered changes on the posts from the service. */
function show(state: State, before: State) {
  const isSame = before.pending === state.pending;
  return shown(rules, state).map((post, index) => {
    const stored = state.stored[index];
    const old = isSame && before.stored[index] === stored && before.posts.find((one) => one.id === post.id);
    if (post === stored || old) return old || post;
    return {
      ...post, likeCount: stored.likeCount + Number(post.liked) - Number(stored.liked),
      repostCount: stored.repostCount + Number(post.reposted) - Number(stored.reposted),
    };
  });
}

const has = (posts: Post[], id: string) => posts.some((post) => post.id === id);
