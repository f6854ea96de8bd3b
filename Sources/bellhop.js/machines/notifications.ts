// A user's newest notifications. The service's events update them. The user's own changes show at once, and are
// reverted if the service refuses them. Each new notification is passed to the app's player as it arrives.
import { advance, beginAnew, isTaken, problemOf, restored, badgesEvent, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import type { Outcome, StoreAction, PublishAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { Notification, NotificationStateChange as Change, Page, Preferences } from "../models.js";
import type { InputOf, StoreInputOf } from "./inputs.js";
import type { Loading } from "./loading.js";

type Item = Notification;

/** A change that is not answered yet. */
interface Pending {
  as: string;
  ids?: string[];
  upTo?: string;
  category?: string;
  set?: Change;
  isRemoval?: boolean;
  at: string;
}

/** `isWhole`: the list need not be filled up; `isCut`: a listed one has been dropped, so that `next` would leave a gap. */
export interface State {
  items: Item[];
  preferences: Preferences;
  isLoaded: boolean;
  problem: Problem | null;
  stored: Item[];
  known: string[];
  pending: Pending[];
  storedPreferences: Preferences;
  preferenceWrites: { as: string; set: Partial<Preferences> }[];
  clockAheadMs: number;
  count: number;
  isWhole: boolean;
  next: string | null;
  isCut: boolean;
  isMorePending: boolean;
  countMax: number;
  hasMore: boolean;
  hasPreferences: boolean;
  hasNewerPreferences: boolean;
  loading: Loading;
}

type Command = Extract<InputOf<"notifications">, { type: "change" | "changeAll" | "remove" | "prefer" }>;

interface Kept {
  items?: Item[];
  preferences?: Preferences;
}

type Result = Outcome<State>;

/** The number of notifications that a device keeps (R-VIS-NFR-1.4), beside the older ones that the user asks for. */
const storedMax = 50;
/** Older ones beyond this number are not loaded, so that a long list does not fill the memory. */
const loadedMax = 1000;
/** More ids than the service keeps notifications of a user: a notification that arrives again must not sound again. */
const knownMax = 1000;
/** Older events that arrive late, after a time offline, do not sound. */
const freshMs = 60_000;
const page = {
  as: "list", path: `/v1/notifications?limit=${storedMax}`,
  events: ["notification:created", "notification:updated", "notification:removed"],
};

export function initial(): State {
  const preferences = { sound: true, haptics: true, quietHours: null, timeZone: "UTC" };
  return {
    items: [], preferences, isLoaded: false, problem: null, stored: [], known: [], pending: [],
    storedPreferences: preferences, preferenceWrites: [], clockAheadMs: 0, count: 0, isWhole: true,
    next: null, isCut: false, isMorePending: false, countMax: storedMax, hasMore: false, hasPreferences: false,
    hasNewerPreferences: false, loading: unloaded,
  };
}

export const snapshot = ({ items, preferences, isLoaded, problem, hasMore }: State) =>
  ({ items, preferences, isLoaded, problem, hasMore });

export function receive(state: State, input: InputOf<"notifications">): Result {
  if (input.type === "user") return beginAnew(receive, initial(), input);
  // A known id is not new, even if the notification was archived or has dropped out of the list.
  const { name, data } = input.event ?? {};
  if (name === "notification:created" && state.known.includes(data.id)) return { state, actions: [] };
  const held = restored(state, input, restore);
  const step = advance(held.loading, input, page);
  const actions: StoreAction[] = [...step.actions];
  let next = { ...held, loading: step.loading };
  if (step.isGone) next = restore(next, {});
  if (step.actions.some((one) => one.do === "fetch")) {
    next.hasNewerPreferences = false;
    actions.push({ do: "fetch", path: "/v1/preferences", as: "preferences" });
  }
  if (step.body) next = listed(next, step.body, step.since);
  const made = own(next, input);
  actions.push(...made.actions);
  next = show(made.state);
  // If the user's archiving leaves the list short, older ones are fetched. A freshly fetched list is complete.
  const isShort = !next.isWhole && !step.body && next.items.length < storedMax / 2;
  if (isShort && !next.loading.isLoading && !next.pending.length) {
    const more = receive({ ...next, isWhole: true }, { type: "refresh", now: input.now });
    return { state: more.state, actions: [...actions, ...more.actions] };
  }
  return { state: same(state, next), actions };
}

/** Returns what the device keeps for the next start; null for nothing. */
export const kept = ({ loading, stored, storedPreferences }: State) =>
  loading.isLoaded ? { items: stored.slice(0, storedMax), preferences: storedPreferences } : null;

/** The preferences are not complete before the service has sent them: a PUT of kept ones could undo another device's. */
const restore = (state: State, { items = [], preferences = state.storedPreferences }: Kept): State => ({
  ...state, stored: items, storedPreferences: preferences,
  known: remember(state.known, items.map((item: Item) => item.id)),
});

function own(state: State, input: InputOf<"notifications">): Result {
  switch (input.type) {
    case "event": return handle(state, input);
    case "answer": return answered(state, input);
    case "more": return older(state);
    case "change": case "changeAll": case "remove": case "prefer": return command(state, input as Command);
  }
  return { state, actions: [] };
}

function listed(state: State, body: Page<Item>, since: StoreInputOf<"event">[]): State {
  const known = remember(state.known, body.items.map((item: Item) => item.id));
  const next = {
    ...state, stored: body.items, known, isWhole: !body.next, next: body.next ?? null, isCut: false, countMax: storedMax,
  };
  return since.reduce((all, input) => ({ ...all, ...apply(all, input) }), next);
}

function handle(state: State, input: StoreInputOf<"event">): Result {
  const { event, now } = input;
  const { name, data } = event;
  if (name === "stream:ready") {
    return { state: { ...state, clockAheadMs: Date.parse(data.serverTime) - now || 0 }, actions: [] };
  }
  if (name === "preferences:update") {
    const newer = { ...state, storedPreferences: data, hasNewerPreferences: true };
    return { state: newer, actions: [] };
  }
  const next = { ...state, ...apply(state, input) };
  if (name === "notification:created") return { state: next, actions: play(state, data, now) };
  // Unarchived on another device: the notification is not in the list yet, so it is fetched.
  const isMissing = name === "notification:updated" && data.state.archived === false
    && data.ids.some((id: string) => !next.stored.some((one) => one.id === id));
  if (!isMissing) return { state: next, actions: [] };
  const step = advance(next.loading, { type: "refresh", now }, page);
  return { state: { ...next, loading: step.loading }, actions: step.actions };
}

/** Applies an event to the stored notifications. */
function apply(state: State, { event, now }: StoreInputOf<"event">) {
  const { name, data } = event;
  const at = new Date(now).toISOString();
  switch (name) {
    case "notification:created":
      if (state.stored.some((item) => item.id === data.id)) return {};
      return { ...newest(state, data), known: remember(state.known, [data.id]) };
    case "notification:updated":
      return { stored: overlaid(state.stored, { as: "", ids: data.ids, set: data.state, at }) };
    case "notification:removed": {
      const known = remember(state.known, data.ids);
      return { stored: state.stored.filter((item) => !data.ids.includes(item.id)), known };
    }
  }
  return {};
}

/** Plays the notification, in the foreground and in the background (R-VIS-FR-4.2, R-VIS-FR-4.3). */
function play(state: State, item: Item, now: number): StoreAction[] {
  const isOld = now + state.clockAheadMs - Date.parse(item.createdAt) > freshMs;
  if (isOld || item.seenAt) return [];
  const haptic = state.preferences.haptics === false ? null : item.haptic ?? null;
  const sound = state.preferences.sound !== false && item.sound === true;
  if (!haptic && !sound) return [];
  // A booking change arrives as two events; the shared key makes the phone vibrate once for both.
  const { bookingId, status } = item.data ?? {};
  const key = item.category === "booking" && bookingId ? `booking:${bookingId}:${status}` : `notification:${item.id}`;
  return [{ do: "play", haptic, sound, key }];
}

function command(state: State, input: Command): Result {
  const count = state.count + 1;
  const as = `change-${count}`;
  const at = new Date(input.now).toISOString();
  const place = `/v1/notifications/${encodeURIComponent(input.id ?? "")}`;
  const send = (pending: Pending, method: string, path: string, body?: unknown): Result => ({
    state: { ...state, count, pending: [...state.pending, pending] }, actions: [{ do: "send", method, path, body, as }],
  });
  if (input.type === "prefer") {
    return putPreferences({ ...state, count, preferenceWrites: [...state.preferenceWrites, { as, set: input.set }] });
  }
  if (input.type === "remove") return send({ as, ids: [input.id], isRemoval: true, at }, "DELETE", place);
  if (input.type === "change") {
    const item = state.items.find((one) => one.id === input.id);
    // A change that is already in effect needs no request.
    if (item && has(item, input.set)) return { state, actions: [] };
    return send({ as, ids: [input.id], set: input.set, at }, "PATCH", place, input.set);
  }
  // Limited to the newest notification on the screen, so that later arrivals are not marked by mistake.
  const { upTo = state.items[0]?.id, category, set } = input;
  if (!upTo) return { state, actions: [] };
  const body = category ? { upTo, category, set } : { upTo, set };
  return send({ as, upTo, category, set, at }, "PATCH", "/v1/notifications", body);
}

function answered(state: State, input: StoreInputOf<"answer">): Result {
  const { as, status, body } = input;
  const isDone = isTaken(status);
  if (as === "list" && isDone && state.isMorePending) return older(state);
  if (as.startsWith("more:")) {
    return isDone && as === `more:${state.next}` ? lengthen(state, body) : { state, actions: [] };
  }
  if (as === "preferences") {
    if (!isDone) return { state, actions: [] };
    // Preferences that the stream sent since the request are not older than the answer.
    const storedPreferences = state.hasNewerPreferences ? state.storedPreferences : body;
    const known = { ...state, storedPreferences, hasPreferences: true };
    const isDue = !state.hasPreferences && state.preferenceWrites.length > 0;
    return isDue ? putPreferences(known) : { state: known, actions: [] };
  }
  const answered = state.preferenceWrites.findIndex((one) => one.as === as);
  if (answered >= 0) {
    // The last of several queued changes carried the earlier ones too.
    const left = { ...state, preferenceWrites: state.preferenceWrites.slice(answered + 1) };
    if (!isDone) return { state: left, actions: [refused([], input)] };
    return { state: { ...left, storedPreferences: body ?? state.storedPreferences }, actions: [] };
  }
  const pending = state.pending.find((one) => one.as === as);
  if (!pending) return { state, actions: [] };
  const left = { ...state, pending: state.pending.filter((one) => one !== pending) };
  const isGone = status === 404 && Boolean(pending.ids);
  if (!isDone && !isGone) return { state: left, actions: [refused(pending.ids ?? [], input)] };
  const stored = isGone ? overlaid(left.stored, { ...pending, isRemoval: true })
    : body?.notification ? left.stored.map((item) => item.id === body.notification.id ? body.notification : item)
      : overlaid(left.stored, pending);
  return { state: { ...left, stored }, actions: badgesEvent(body) };
}

/** Fetches the next older notifications. After one was dropped, the list is fetched first, or there would be a gap. */
function older(state: State): Result {
  if (state.isCut && !state.isMorePending) {
    const step = advance(state.loading, { type: "refresh" }, page);
    return { state: { ...state, isMorePending: true, loading: step.loading }, actions: step.actions };
  }
  const next = { ...state, isMorePending: false };
  if (state.next === null || state.stored.length >= loadedMax) return { state: next, actions: [] };
  const path = `${page.path}&cursor=${encodeURIComponent(state.next)}`;
  return { state: next, actions: [{ do: "fetch", path, as: `more:${state.next}` }] };
}

function lengthen(state: State, body: Page<Item>): Result {
  const items = body.items.filter((item) => !state.stored.some((one) => one.id === item.id));
  const stored = [...state.stored, ...items];
  const known = remember(state.known, items.map((item) => item.id));
  const countMax = Math.max(state.countMax, stored.length);
  return { state: { ...state, stored, known, countMax, next: body.next ?? null }, actions: [] };
}

/** Sends all preferences in one PUT. They must be loaded first; otherwise the unset ones would be reset to their
 * defaults. */
function putPreferences(state: State): Result {
  if (!state.hasPreferences) return { state, actions: [{ do: "fetch", path: "/v1/preferences", as: "preferences" }] };
  const { as } = state.preferenceWrites[state.preferenceWrites.length - 1];
  const body = preferred(state.storedPreferences, state.preferenceWrites);
  return { state, actions: [{ do: "send", method: "PUT", path: "/v1/preferences", body, as }] };
}

function refused(ids: string[], answer: StoreInputOf<"answer">): PublishAction {
  return { do: "publish", name: "notifications:refused", data: { ids, problem: problemOf(answer) } };
}

/** Overlays the unanswered changes on the state from the service. */
function show(state: State): State {
  const items = state.pending.reduce(overlaid, state.stored).filter((item) => !item.archivedAt);
  const { isLoaded, problem } = state.loading;
  const preferences = same(state.preferences, preferred(state.storedPreferences, state.preferenceWrites));
  const hasMore = (state.next !== null && state.stored.length < loadedMax) || state.isCut;
  return { ...state, items: sameList(state.items, items), preferences, isLoaded, problem, hasMore };
}

function overlaid(items: Item[], pending: Pending) {
  if (pending.isRemoval) return items.filter((item) => !pending.ids?.includes(item.id));
  return items.map((item, index) => {
    return isCovered(pending, items, item, index) ? changed(item, pending.set ?? {}, pending.at) : item;
  });
}

function isCovered(pending: Pending, items: Item[], item: Item, index: number) {
  if (pending.ids) return pending.ids.includes(item.id);
  if (pending.category && pending.category !== item.category) return false;
  const place = items.findIndex((one) => one.id === pending.upTo);
  // Ids grow with time, so an id that is no longer in the list still defines the order.
  return place >= 0 ? index >= place : item.id <= (pending.upTo ?? "");
}

/** Reading or archiving a notification also marks it as seen; clearing `seen` clears both. */
function changed(item: Item, change: Change, at: string) {
  if (has(item, change)) return item;
  let { seenAt, readAt, archivedAt } = item;
  if (change.seen === false) seenAt = readAt = archivedAt = null;
  if (change.read === false) readAt = null;
  if (change.archived === false) archivedAt = null;
  if (change.read) readAt ??= at;
  if (change.archived) archivedAt ??= at;
  if (change.seen || change.read || change.archived) seenAt ??= at;
  return { ...item, seenAt, readAt, archivedAt };
}

function has(item: Item, change: Change) {
  const places = [["seen", "seenAt"], ["read", "readAt"], ["archived", "archivedAt"]] as const;
  return places.every(([name, at]) => change[name] == null || change[name] === Boolean(item[at]));
}

function preferred(stored: Preferences, changes: { set: Partial<Preferences> }[]) {
  return changes.reduce((all, one) => ({ ...all, ...one.set }), stored);
}

/** Adds a notification to the list. Beyond its bound the oldest one is dropped. */
function newest({ stored, countMax, next, isCut }: State, item: Item) {
  const items = [item, ...stored].sort((one, other) => (one.id < other.id ? 1 : one.id > other.id ? -1 : 0));
  const isFull = items.length > countMax;
  return { stored: items.slice(0, countMax), next: isFull ? null : next, isCut: isCut || isFull };
}

function remember(known: string[], ids: string[]) {
  return [...known, ...ids.filter((id) => !known.includes(id))].slice(-knownMax);
}
