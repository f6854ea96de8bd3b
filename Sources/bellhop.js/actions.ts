// The actions that the machines request. `run` sets the timers; the owner of a machine performs the others.
import type { ClientEvents } from "./contract.js";
import type { Haptic } from "./features.js";
import type { TablesAnswer, TablesFilter, WantedTable } from "./internal.js";
import type { Entries } from "./machines/offline.js";
import type { Known } from "./machines/session.js";
import type { Events } from "./models.js";
import type { Answer, Event, Item } from "./types.js";

/** What a machine returns for an input. */
export interface Outcome<State, Action = StoreAction> {
  state: State;
  actions: Action[];
}

/** Sets the timer of that name; `at: null` stops it. */
export interface TimerAction {
  do: "timer";
  name: string;
  at: number | null;
}

/** Sends a GET. Its answer is an input with the same `as`. */
export interface FetchAction {
  do: "fetch";
  path: string;
  as: string;
  headers?: Record<string, string>;
}

/** Sends a request at once; it is never queued. */
export interface CallAction {
  do: "call";
  method: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  as: string;
}

/** Sends a write through the outbox: in order, even after a restart. */
interface SendAction {
  do: "send";
  method: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  key?: string;
  as: string;
}

/** Replaces the topics of the store. */
interface SubscribeAction {
  do: "subscribe";
  topics: string[];
}

/** Replaces the tables of the store, which are put again on each new stream. Rows that changed since `lastEventId` are
 * sent first. */
interface TablesOfStoreAction extends TablesFilter {
  do: "tables";
  as?: string;
}

/** Plays with the app's player. Two events of one change have the same key, and play once. */
export interface PlayAction {
  do: "play";
  haptic: Haptic | null;
  sound: boolean;
  key: string;
}

interface Published extends ClientEvents {
  "badges:update": Events["badges:update"];
}

/** Emits an event to the listeners of `bell.on`. */
export type PublishAction = {
  [Name in keyof Published]: { do: "publish"; name: Name; data: Published[Name] }
}[keyof Published];

/** The actions of the stores' machines. */
export type StoreAction =
  | TimerAction | FetchAction | CallAction | SendAction | SubscribeAction | TablesOfStoreAction | PlayAction
  | PublishAction;

/** The actions of machines/connection.ts. */
export type ConnectionAction =
  | TimerAction
  | OpenAction
  | { do: "disconnect" }
  | TopicsAction;
/** Opens the stream. `isFresh`: the last token was refused, so another one is needed. */
export interface OpenAction {
  do: "connect";
  attempt: number;
  topics: string[];
  isFresh: boolean;
}

/** Replaces the topics of the open stream. */
export interface TopicsAction {
  do: "subscribe";
  attempt: number;
  streamId: string;
  topics: string[];
}

/** The actions of machines/token.ts. */
export type TokenAction =
  | TimerAction
  | { do: "ask"; spent: string | null }
  | { do: "give"; token: string | null }
  | { do: "user"; user: string | null }
  | { do: "renew"; streamId: string; token: string }
  | { do: "reconnect" };

/** The actions of machines/session.ts. */
export type SessionAction =
  | { do: "open"; identity: string }
  | { do: "close" }
  | { do: "keep"; known: Known }
  | { do: "confirm"; identity: string };

/** The actions of machines/outbox.ts. */
export type OutboxAction =
  | TimerAction
  | { do: "mark" | "remove" | "request"; item: Item }
  | { do: "answered"; item: Item; answer: Answer };

/** The actions of machines/reconciliation.ts. */
export type ReconciliationAction =
  | TimerAction
  | { do: "fetch"; path: string; headers: Record<string, string>; asked: number }
  | { do: "reconciled"; status: number; body: unknown };

/** The actions of machines/tables.ts. */
export type TablesAction =
  | TimerAction
  | { do: "put"; streamId: string; count: number; tables: WantedTable[]; lastEventId?: string }
  | ({ do: "answered" } & TablesAnswer)
  | { do: "seen"; event: Event | null };

/** The actions of machines/offline.ts. */
export type OfflineAction =
  | TimerAction
  | { do: "measure"; places: string[] }
  | { do: "write"; write: string[]; remove: string[]; entries: Entries };

/** What a device does with a push message. */
export type MessageAction =
  | { do: "show"; title: string; body: string; tag: string; silent: boolean; data: Record<string, unknown> }
  | { do: "close"; tags: string[] }
  | { do: "badge"; count: number };

/** The actions of machines/push.ts. */
export type PushAction = TimerAction | CallAction | MessageAction;
