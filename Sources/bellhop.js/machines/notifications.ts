// A user's newest notifications. The service's events update them. The user's own changes show at once, and are
// reverted if the service refuses them. Each new notification is passed to the app's player as it arrives.
import { advance, apply, fetchMore, merged, refresh, refused, send, settle, shown } from "./list.js";
import { beginAnew, isTaken, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import { notifications as list } from "../lists.js";
import type { Outcome, StoreAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { Notification, NotificationStateChange, Page, Preferences } from "../models.js";
import type { InputOf, MachineEvent, StoreInputOf } from "./inputs.js";
import type { PendingWrite, Rules, WrittenState } from "./list.js";

type Item = Notification;

/** A change of all notifications up to one, or of these. */
type Change = NotificationStateChange & { upTo?: string; category?: string };

/** `isWhole`: the list need not be filled up; `isCut`: a listed one has been dropped, so that `next` would leave a gap. */
export interface State extends WrittenState<Item, Change> {
  items: Item[];
  preferences: Preferences;
  isLoaded: boolean;
  problem: Problem | null;
  known: string[];
  storedPreferences: Preferences;
  preferenceWrites: { as: string; set: Partial<Preferences> }[];
  clockAheadMs: number;
  isWhole: boolean;
  isCut: boolean;
  isMorePending: boolean;
  countMax: number;
  hasMore: boolean;
  hasPreferences: boolean;
  hasNewerPreferences: boolean;
}

type Command = Extract<InputOf<"notifications">, { type: "change" | "changeAll" | "remove" | "prefer" }>;

interface Kept {
  items?: Item[];
  preferences?: Preferences;
}

type Result = Outcome<State>;

/** Older ones beyond this number are not loaded, so that a long list does not fill the memory. */
const loadedMax = 1000;
/** More ids than the service keeps notifications of a user: a notification that arrives again must not sound again. */
const knownMax = 1000;
/** Older events that arrive late, after a time offline, do not sound. */
const freshMs = 60_000;

export function initial(): State {
  const preferences = { sound: true, haptics: true, quietHours: null, timeZone: "UTC" };
  return {
    items: [], preferences, isLoaded: false, problem: null, stored: [], known: [], pending: [],
    storedPreferences: preferences, preferenceWrites: [], clockAheadMs: 0, count: 0, isWhole: true,
    next: null, isCut: false, isMorePending: false, countMax: list.storedMax, hasMore: false, hasPreferences: false,
    hasNewerPreferences: false, loading: unloaded,
  };
}

export const snapshot = ({ items, preferences, isLoaded, problem, hasMore }: State) =>
  ({ items, preferences, isLoaded, problem, hasMore });

const rules: Rules<Item, State, Change> = {
  list,
  restore,
  take: (state, body: Page<Item>) => ({
    ...state, stored: body.items, known: remember(state.known, body.items.map((item) => item.id)), isWhole: !body.next,
    next: body.next ?? null, isCut: false, countMax: list.storedMax,
  }),
  joined: (_, newer, held) => held ? newer : null,
  changed,
  overlaid: (items, write) => items.map((item, index) =>
    isCovered(write, items, item, index) ? changed(item, write.set, write.at) : item),
  handle,
  countMax: ({ countMax }) => countMax,
};

export function receive(state: State, input: InputOf<"notifications">): Result {
  if (input.type === "user") return beginAnew(receive, initial(), input);
  // A known id is not new, even if the notification was archived or has dropped out of the list.
  const { name, data } = input.event ?? {};
  if (name === "notification:created" && state.known.includes(data.id)) return { state, actions: [] };
  const { state: held, actions, isTaken: isListed } = advance(rules, state, input, list.path);
  let next = held;
  if (actions.some((one) => one.do === "fetch")) {
    next.hasNewerPreferences = false;
    actions.push({ do: "fetch", path: "/v1/preferences", as: "preferences" });
  }
  const made = own(next, input);
  actions.push(...made.actions);
  next = show(made.state);
  // If the user's archiving leaves the list short, older ones are fetched. A freshly fetched list is complete.
  const isShort = !next.isWhole && !isListed && next.items.length < list.storedMax / 2;
  if (isShort && !next.loading.isLoading && !next.pending.length) {
    const more = receive({ ...next, isWhole: true }, { type: "refresh", now: input.now });
    return { state: more.state, actions: [...actions, ...more.actions] };
  }
  return { state: same(state, next), actions };
}

/** Returns what the device keeps for the next start; null for nothing. */
export const kept = ({ loading, stored, storedPreferences }: State) =>
  loading.isLoaded ? { items: stored.slice(0, list.keptMax), preferences: storedPreferences } : null;

/** The preferences are not complete before the service has sent them: a PUT of kept ones could undo another device's. */
function restore(state: State, { items = [], preferences = state.storedPreferences }: Kept): State {
  const known = remember(state.known, items.map((item: Item) => item.id));
  return { ...state, stored: items, storedPreferences: preferences, known };
}

function own(state: State, input: InputOf<"notifications">): Result {
  switch (input.type) {
    case "event": return apply(rules, state, input);
    case "answer": return answered(state, input);
    case "more": return older(state);
    case "change": case "changeAll": case "remove": case "prefer": return command(state, input as Command);
  }
  return { state, actions: [] };
}

function handle(state: State, { name, data }: MachineEvent, now: number): Result {
  switch (name) {
    case "stream:ready":
      return { state: { ...state, clockAheadMs: Date.parse(data.serverTime) - now || 0 }, actions: [] };
    case "preferences:update":
      return { state: { ...state, storedPreferences: data, hasNewerPreferences: true }, actions: [] };
    case "notification:created": {
      const isHeld = state.stored.some((item) => item.id === data.id);
      const next = isHeld ? state : { ...state, ...newest(state, data), known: remember(state.known, [data.id]) };
      return { state: next, actions: play(state, data, now) };
    }
    case "notification:updated": {
      // Unarchived on another device: the notification is not in the list yet, so it is fetched.
      const isMissing = (id: string) => !state.stored.some((one) => one.id === id);
      if (data.state.archived === false && data.ids.some(isMissing)) return refresh(rules, state, list.path);
      break;
    }
    case "notification:removed": return { state: { ...state, known: remember(state.known, data.ids) }, actions: [] };
  }
  return { state, actions: [] };
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
  const { now } = input;
  switch (input.type) {
    case "prefer": {
      const count = state.count + 1;
      const preferenceWrites = [...state.preferenceWrites, { as: `change-${count}`, set: input.set }];
      return putPreferences({ ...state, count, preferenceWrites });
    }
    case "remove": return send(rules, state, "remove", [input.id], {}, now);
    case "change": {
      const item = state.items.find((one) => one.id === input.id);
      // A change that is already in effect needs no request.
      if (item && has(item, input.set)) return { state, actions: [] };
      return send(rules, state, "change", [input.id], input.set, now, input.set);
    }
  }
  // Limited to the newest notification on the screen, so that later arrivals are not marked by mistake.
  const { upTo = state.items[0]?.id, category, set } = input;
  if (!upTo) return { state, actions: [] };
  const body = category ? { upTo, category, set } : { upTo, set };
  return send(rules, state, "changeAll", [], { ...set, upTo, category }, now, body);
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
    if (!isDone) return { state: left, actions: [refused(list, [], input)] };
    return { state: { ...left, storedPreferences: body ?? state.storedPreferences }, actions: [] };
  }
  return settle(rules, state, input) ?? { state, actions: [] };
}

/** Fetches the next older notifications. After one was dropped, the list is fetched first, or there would be a gap. */
function older(state: State): Result {
  if (state.isCut && !state.isMorePending) {
    return refresh(rules, { ...state, isMorePending: true }, list.path);
  }
  const next = { ...state, isMorePending: false };
  return { state: next, actions: state.stored.length < loadedMax ? fetchMore(list, state, list.path) : [] };
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

/** Overlays the unanswered changes on the state from the service. */
function show(state: State): State {
  const items = shown(rules, state).filter((item) => !item.archivedAt);
  const { isLoaded, problem } = state.loading;
  const preferences = same(state.preferences, preferred(state.storedPreferences, state.preferenceWrites));
  const hasMore = (state.next !== null && state.stored.length < loadedMax) || state.isCut;
  return { ...state, items: sameList(state.items, items), preferences, isLoaded, problem, hasMore };
}

function isCovered({ set: { upTo = "", category } }: PendingWrite<Change>, items: Item[], item: Item, index: number) {
  if (category && category !== item.category) return false;
  const place = items.findIndex((one) => one.id === upTo);
  // Ids grow with time, so an id that is no longer in the list still defines the order.
  return place >= 0 ? index >= place : item.id <= upTo;
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
  const items = merged(list, stored, [item], countMax + 1);
  const isFull = items.length > countMax;
  return { stored: items.slice(0, countMax), next: isFull ? null : next, isCut: isCut || isFull };
}

function remember(known: string[], ids: string[]) {
  return [...known, ...ids.filter((id) => !known.includes(id))].slice(-knownMax);
}
