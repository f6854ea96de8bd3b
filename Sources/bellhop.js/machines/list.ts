// What the stores of lists share: pages, order, events, the user's unanswered writes, and what a device keeps. What the
// contract says of a list is data (lists.ts). What is special stands as `Rules` beside the machine of the store.
import { advance as load, badgesEvent, isTaken, problemOf, restored } from "./loading.js";
import type { Outcome, PublishAction, StoreAction } from "../actions.js";
import type { List, ListChange } from "../lists.js";
import type { JSONValue } from "../types.js";
import type { MachineEvent, Refresh, StoreInput, StoreInputOf } from "./inputs.js";
import type { Loading } from "./loading.js";

/** `stored`: as the service sent them; `next`: the cursor of the next page. */
export interface ListState<Item> {
  stored: Item[];
  next: string | null;
  loading: Loading;
}

/** A write that is not answered yet. */
export interface PendingWrite<Change> {
  as: string;
  /** Its name in the contract. */
  write: string;
  ids: string[];
  set: Change;
  at: string;
}

/** A write that was answered while the list is fetched. The page may be older than the answer.
 * `place`: the number of events since the request. */
export interface SettledWrite<Change> {
  write: PendingWrite<Change>;
  body: JSONValue;
  isGone: boolean;
  place: number;
}

export interface WrittenState<Item, Change> extends ListState<Item> {
  pending: PendingWrite<Change>[];
  settled?: SettledWrite<Change>[];
  count: number;
}

/** What a store does by hand. */
export interface Rules<Item, State, Change = Partial<Item>> {
  list: List;
  /** Shows what the device has kept; without members, nothing. */
  restore(state: State, kept: object): State;
  /** Takes a first page; by default it replaces the list. */
  take?(state: State, body: JSONValue, before: State): State;
  /** Returns the item to store; null if it does not belong here, or is older than the held one. */
  joined?(state: State, newer: Item, held?: Item): Item | null;
  /** Returns a changed item; by default with these members. */
  changed?(item: Item, set: Change, at: string): Item;
  /** Overlays a write that does not name its items. */
  overlaid?(items: Item[], write: PendingWrite<Change>): Item[];
  /** Does what the contract does not say of an event. */
  handle?(state: State, event: MachineEvent, now: number, before: State): Outcome<State>;
  /** The number of items that the list may have; by default that of the contract. */
  countMax?(state: State): number;
}

const key = (list: List, item: unknown) => (item as Record<string, string>)[list.key];

/** Loads the list, restores it, and applies the events that came during a fetch to the fetched page.
 * @param asked the input, or what it means to this list */
export function advance<Item, State extends ListState<Item>, Change>(
  rules: Rules<Item, State, Change>, state: State, input: StoreInput, path: string, asked: StoreInput | Refresh = input,
) {
  const { as, events: all } = rules.list;
  const held = restored(state, input, rules.restore);
  const events = Object.keys(all).filter((name) => !all[name].isOnce);
  const step = load(held.loading, asked, { as, path, events });
  let next = { ...held, loading: step.loading };
  if (step.isGone) next = rules.restore(next, {});
  if (step.body) {
    next = rules.take ? rules.take(next, step.body, held)
      : { ...next, stored: step.body.items, next: step.body.next ?? null };
    const settled = (held as Partial<WrittenState<Item, Change>>).settled ?? [];
    const confirmSettled = (isMeant: (place: number) => boolean) => {
      for (const one of settled) if (isMeant(one.place)) next = { ...next, stored: confirm(rules, next, one) };
    };
    step.since.forEach((one, index) => {
      confirmSettled((place) => place === index);
      next = apply(rules, next, one).state;
    });
    confirmSettled((place) => place >= step.since.length);
  }
  const isAnswered = held.loading.isLoading && input.type === "answer" && input.as === as;
  if (isAnswered && Object.hasOwn(next, "settled")) next = Object.assign({}, next, { settled: [] });
  const actions: StoreAction[] = [...step.actions];
  return { state: next, actions, isTaken: Boolean(step.body) };
}

/** Fetches the list again. */
export function refresh<Item, State extends ListState<Item>, Change>(
  { list: { as } }: Rules<Item, State, Change>, state: State, path: string,
): Outcome<State> {
  const { loading, actions } = load(state.loading, { type: "refresh" }, { as, path });
  return { state: { ...state, loading }, actions };
}

/** Applies an event: as the contract says, and by hand. */
export function apply<Item, State extends ListState<Item>, Change>(
  rules: Rules<Item, State, Change>, state: State, input: StoreInputOf<"event">,
): Outcome<State> {
  const { event, now } = input;
  const { name, data } = event;
  const what = rules.list.events[name];
  const members = data as Record<string, JSONValue>;
  if (what?.in && members[what.in] !== (state as Record<string, unknown>)[what.in]) return { state, actions: [] };
  const at = new Date(now).toISOString();
  const next = what && what.do !== "byHand" ? { ...state, stored: change(rules, state, what, members, at) } : state;
  return rules.handle?.(next, event, now, state) ?? { state: next, actions: [] };
}

function change<Item, State extends ListState<Item>, Change>(
  rules: Rules<Item, State, Change>, state: State, what: ListChange, data: Record<string, JSONValue>, at: string,
): Item[] {
  const { stored } = state;
  const idOf = (item: Item) => key(rules.list, item);
  const value = what.of ? data[what.of] : data;
  const ids = [data[what.by ?? ""]].flat();
  switch (what.do) {
    case "add": return stored.some((item) => idOf(item) === idOf(value)) ? stored : put(rules, state, value);
    case "upsert": return put(rules, state, value);
    case "remove": return stored.filter((item) => !ids.includes(idOf(item)));
    case "patchEach": return stored.map((item) => value[idOf(item)] ? changed(rules, item, value[idOf(item)], at) : item);
  }
  const set = what.set ? picked(data, what.set) : value;
  return stored.map((item) => ids.includes(idOf(item)) ? changed(rules, item, set, at) : item);
}

const picked = (data: Record<string, JSONValue>, names: string[]) =>
  Object.fromEntries(names.map((name) => [name, data[name]])) as JSONValue;

const changed = <Item, State, Change>(rules: Rules<Item, State, Change>, item: Item, set: Change, at: string) =>
  rules.changed ? rules.changed(item, set, at) : { ...item, ...set };

/** Adds an item, or replaces it. */
export function put<Item, State extends ListState<Item>, Change>(
  rules: Rules<Item, State, Change>, state: State, newer: Item,
): Item[] {
  const held = state.stored.find((one) => key(rules.list, one) === key(rules.list, newer));
  const item = rules.joined ? rules.joined(state, newer, held) : newer;
  return item ? merged(rules.list, state.stored, [item], rules.countMax?.(state)) : state.stored;
}

/** Returns both in the list's order; of an item in both, the newer one. */
export function merged<Item>(list: List, stored: Item[], newer: Item[], countMax = list.storedMax): Item[] {
  const { order, isAscending } = list;
  const keys = new Set(newer.map((one) => key(list, one)));
  const place = (item: Item) => (item as Record<string, string | number>)[order];
  const all = [...newer, ...stored.filter((one) => !keys.has(key(list, one)))].sort((one, other) => {
    const [first, second] = isAscending ? [one, other] : [other, one];
    return place(first) < place(second) ? -1 : place(first) > place(second) ? 1 : 0;
  });
  return isAscending ? all.slice(-countMax) : all.slice(0, countMax);
}

// Pages

const moreName = (list: List, next: string | null) => list.more.replace("{next}", next ?? "");

export function fetchMore<Item>(list: List, { next }: ListState<Item>, path: string): StoreAction[] {
  if (next === null) return [];
  return [{ do: "fetch", path: `${path}&cursor=${encodeURIComponent(next)}`, as: moreName(list, next) }];
}

/** Returns the state with a further page; null for another answer. What the list holds is not older than the page. */
export function takeMore<Item, State extends ListState<Item>>(
  list: List, state: State, { as, status, body }: StoreInputOf<"answer">,
): State | null {
  if (as !== moreName(list, state.next) || !isTaken(status)) return null;
  const stored = merged(list, body.items as Item[], state.stored);
  return { ...state, stored, next: stored.length < list.storedMax ? body.next ?? null : null };
}

// The user's writes

/** Sends a write, which shows until it is answered. */
export function send<Item, State extends WrittenState<Item, Change>, Change>(
  { list }: Rules<Item, State, Change>, state: State, write: string, ids: string[], set: Change, now: number,
  body?: unknown,
): Outcome<State> {
  const { method, path, as: prefix } = (list.writes ?? {})[write];
  const count = state.count + 1;
  const as = `${prefix}-${count}`;
  const pending = [...state.pending, { as, write, ids, set, at: new Date(now).toISOString() }];
  const place = path.replace("{id}", encodeURIComponent(ids[0]));
  return { state: { ...state, count, pending }, actions: [{ do: "send", method, path: place, body, as }] };
}

/** Overlays a write on the items. */
function overlaid<Item, State, Change>(
  rules: Rules<Item, State, Change>, items: Item[], write: PendingWrite<Change>,
): Item[] {
  const isMeant = (item: Item) => write.ids.includes(key(rules.list, item));
  if (rules.list.writes?.[write.write].do === "remove") return items.filter((item) => !isMeant(item));
  if (write.ids.length === 0 && rules.overlaid) return rules.overlaid(items, write);
  return items.map((item) => isMeant(item) ? changed(rules, item, write.set, write.at) : item);
}

/** Returns the items with the unanswered writes. */
export function shown<Item, State extends WrittenState<Item, Change>, Change>(
  rules: Rules<Item, State, Change>, { stored, pending }: State,
): Item[] {
  return pending.reduce((items, one) => overlaid(rules, items, one), stored);
}

/** Confirms or reverts a write; null if the answer is another one's. */
export function settle<Item, State extends WrittenState<Item, Change>, Change>(
  rules: Rules<Item, State, Change>, state: State, input: StoreInputOf<"answer">,
): Outcome<State> | null {
  const { as, status, body } = input;
  const write = state.pending.find((one) => one.as === as);
  if (!write) return null;
  const left = { ...state, pending: state.pending.filter((one) => one !== write) };
  const isGone = status === 404 && (rules.list.writes ?? {})[write.write].missing === "remove";
  if (!isTaken(status) && !isGone) return { state: left, actions: [refused(rules.list, write.ids, input)] };
  const { isLoading, since } = state.loading;
  const one = { write, body, isGone, place: since.length };
  const settled = isLoading ? { settled: [...state.settled ?? [], one] } : {};
  return { state: { ...left, ...settled, stored: confirm(rules, left, one) }, actions: badgesEvent(body) };
}

/** Returns the items with an answered write. */
function confirm<Item, State extends ListState<Item>, Change>(
  rules: Rules<Item, State, Change>, state: State, { write, body, isGone }: SettledWrite<Change>,
): Item[] {
  const { answer = "", members } = (rules.list.writes ?? {})[write.write];
  if (isGone) return state.stored.filter((item) => !write.ids.includes(key(rules.list, item)));
  if (body?.[answer]) return put(rules, state, body[answer]);
  return overlaid(rules, state.stored, members && body ? { ...write, set: picked(body, members) } : write);
}

/** Reports a refusal to the app. */
export function refused({ refused: said }: List, ids: string[], answer: StoreInputOf<"answer">): PublishAction {
  const { event: name, id, ids: all } = said ?? { event: "" };
  const meant = id ? { [id]: ids[0] ?? null } : { [all ?? ""]: ids };
  return { do: "publish", name, data: { ...meant, problem: problemOf(answer) } } as unknown as PublishAction;
}
