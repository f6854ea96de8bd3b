// Posts by the users that the user follows, newest first. New posts wait behind a banner with their number, until the
// user requests them or five seconds have passed. Likes and reposts show at once, and are reverted if the service
// refuses them.
import { advance, beginAnew, isTaken, problemOf, restored, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import type { Outcome, StoreAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { Feed, PostView as Post } from "../models.js";
import type { InputOf, MachineEvent, Refresh, StoreInputOf } from "./inputs.js";
import type { Loading } from "./loading.js";

interface Pending {
  as: string;
  postId: string;
  set: { liked?: boolean; reposted?: boolean };
}

export interface State {
  user: string | null;
  posts: Post[];
  newCount: number;
  isMore: boolean;
  hasMore: boolean;
  isLoaded: boolean;
  problem: Problem | null;
  stored: Post[];
  waiting: Post[];
  newest: number | null;
  next: string | null;
  pending: Pending[];
  isWatched: boolean;
  isForeground: boolean;
  placed: string;
  lastEventId: string | null;
  since: string | null;
  count: number;
  loading: Loading;
}

type Result = Outcome<State>;

/** After this time the banner's posts show by themselves (R-CUT-F-1). */
const bannerMs = 5000;
/** Only the newest posts of a long list are kept; the rest is fetched again when the user scrolls there. */
const storedMax = 500;
/** If more posts wait behind the banner, the first page is fetched instead of them. */
const waitingMax = 50;
/** The posts that the device keeps for the next start: one page. */
const keptMax = 50;
/** Posts whose counts are followed: more are not on a screen. */
const followedMax = 200;
const first = "/v1/feed?limit=50";

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
  const path = state.newest === null ? first : `${first}&since=${state.newest}`;
  const events = ["feed:new_post", "feed:post_removed"];
  const held = restored(state, input, restore);
  const step = advance(held.loading, asked, { as: "feed", path, events });
  const actions: StoreAction[] = [...step.actions];
  let next = { ...held, loading: step.loading };
  if (step.isGone) next = restore(next, {});
  if (input.type === "start") next.user = input.user ?? next.user;
  if (step.body) {
    next = take(next, step.body);
    for (const one of step.since) next = handle(next, one.event);
  }
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
export const kept = ({ loading, stored }: State) => loading.isLoaded ? { posts: stored.slice(0, keptMax) } : null;

/** Without `newest`, the first answer is the whole first page: likes have changed, and posts were removed. */
const restore = (state: State, { posts = [] }: { posts?: Post[] }): State => ({ ...state, stored: posts });

function own(state: State, input: InputOf<"feed">): Result {
  switch (input.type) {
    case "event": return { state: handle(state, input.event), actions: [] };
    case "answer": return answered(state, input);
    case "timer": return input.name === "banner" ? showNew(state) : { state, actions: [] };
    case "showNew": return showNew(state);
    case "engage": return engage(state, input);
    case "more": {
      if (state.next === null) break;
      const path = `${first}&cursor=${encodeURIComponent(state.next)}`;
      return { state, actions: [{ do: "fetch", path, as: "more" }] };
    }
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
    stored: merged(state.stored, body.items.filter(isOwn), storedMax),
    waiting: merged(state.waiting, fresh, waitingMax),
  };
}

function handle(state: State, { name, data }: MachineEvent): State {
  switch (name) {
    case "stream:ready": return state.user ? state : { ...state, user: data.userId };
    case "feed:new_post": {
      if (has(state.stored, data.id) || has(state.waiting, data.id)) return state;
      const { type, postId, barberId, timestamp, ...members } = data;
      const post = { liked: false, reposted: false, ...members };
      const newest = state.newest === null ? null : Math.max(state.newest, post.sequence);
      if (post.authorId === state.user) return { ...state, newest, stored: merged(state.stored, [post], storedMax) };
      return { ...state, newest, waiting: merged(state.waiting, [post], waitingMax), newCount: state.newCount + 1 };
    }
    case "feed:post_removed": {
      const without = (posts: Post[]) => posts.filter((post) => post.id !== data.postId);
      const newCount = has(state.waiting, data.postId) ? state.newCount - 1 : state.newCount;
      return { ...state, stored: without(state.stored), waiting: without(state.waiting), newCount };
    }
    case "engagement_update":
      return { ...state, stored: counted(state.stored, data.updates), waiting: counted(state.waiting, data.updates) };
  }
  return state;
}

function counted(posts: Post[], updates: Record<string, Partial<Post>>) {
  return sameList(posts, posts.map((post) => updates[post.id] ? { ...post, ...updates[post.id] } : post));
}

function showNew(state: State): Result {
  if (state.newCount === 0) return { state, actions: [] };
  const isWhole = state.waiting.length === state.newCount && !state.isMore;
  const stored = merged(state.stored, state.waiting, storedMax);
  const next = { ...state, stored, waiting: [], newCount: 0, isMore: false };
  if (isWhole) return { state: next, actions: [] };
  // More posts waited than were kept: the list restarts with the first page, so that it has no gap.
  return { state: { ...next, newest: null }, actions: [{ do: "fetch", path: first, as: "anew" }] };
}

function engage(state: State, { postId, set }: Extract<InputOf<"feed">, { type: "engage" }>): Result {
  const post = state.posts.find((one) => one.id === postId);
  const name = "liked" in set ? "liked" : "reposted";
  if (!post || post[name] === set[name]) return { state, actions: [] };
  const as = `engage-${state.count + 1}`;
  const path = `/v1/posts/${encodeURIComponent(postId)}/${name === "liked" ? "likes" : "reposts"}/me`;
  return {
    state: { ...state, count: state.count + 1, pending: [...state.pending, { as, postId, set }] },
    actions: [{ do: "send", method: set[name] ? "PUT" : "DELETE", path, as }],
  };
}

function answered(state: State, input: StoreInputOf<"answer">): Result {
  const { as, status, body } = input;
  if (as === "more" && isTaken(status)) {
    const stored = merged(state.stored, body.items, storedMax);
    return { state: { ...state, stored, next: stored.length < storedMax ? body.next ?? null : null }, actions: [] };
  }
  if (as === "anew" && isTaken(status)) return { state: take(state, body), actions: [] };
  const pending = state.pending.find((one) => one.as === as);
  if (!pending) return { state, actions: [] };
  const left = { ...state, pending: state.pending.filter((one) => one !== pending) };
  if (!isTaken(status)) {
    const data = { postId: pending.postId, problem: problemOf(input) };
    return { state: left, actions: [{ do: "publish", name: "feed:refused", data }] };
  }
  const { likeCount, repostCount, liked, reposted } = body ?? {};
  const changes = body ? { likeCount, repostCount, liked, reposted } : pending.set;
  return { state: { ...left, stored: counted(left.stored, { [pending.postId]: changes }) }, actions: [] };
}

/** Overlays the user's unanswered changes on the posts from the service. */
function show(state: State, before: State) {
  const others = new Map(before.pending === state.pending ? before.posts.map((post) => [post.id, post]) : []);
  return state.stored.map((post, index) => {
    const changes = state.pending.filter((one) => one.postId === post.id);
    if (changes.length === 0) return post;
    if (before.stored[index] === post && others.has(post.id)) return others.get(post.id) as Post;
    const { liked, reposted } = changes.reduce((all, one) => ({ ...all, ...one.set }), post);
    return {
      ...post, liked, reposted, likeCount: post.likeCount + Number(liked) - Number(post.liked),
      repostCount: post.repostCount + Number(reposted) - Number(post.reposted),
    };
  });
}

const has = (posts: Post[], id: string) => posts.some((post) => post.id === id);

function merged(posts: Post[], newer: Post[], countMax: number) {
  const ids = new Set(newer.map((post) => post.id));
  const all = [...newer, ...posts.filter((post) => !ids.has(post.id))];
  return all.sort((one, other) => other.sequence - one.sequence).slice(0, countMax);
}
