// The inputs of the machines. Each store's machine also receives what concerns others, and ignores it.
import type { Problem } from "../features.js";
import type { BodyOf, BookingStatus, Events } from "../models.js";
import type { PushStatus } from "../push.js";
import type { Answer, Event, Item, JSONValue, Refusal, Row, Status, Unstamped } from "../types.js";
import type { Entries } from "./offline.js";
import type { Known } from "./session.js";

type KeysOf<Union> = Union extends unknown ? keyof Union : never;
type Filled<Union, Keys extends PropertyKey> = Union extends unknown
  ? Union & { [Key in Exclude<Keys, keyof Union>]?: undefined } : never;
/** A union whose members have each other's keys, as undefined: `input.event` is known for every input. */
type OneOf<Union> = Filled<Union, KeysOf<Union>>;
/** `now`: milliseconds since 1970. */
type At = { now: number };
/** `random`: from 0 to 1. */
type AtRandom = At & { random: number };

/** The events of the stream, and those of other stores. */
interface AllEvents extends Events {
  "topic:refused": { topic: string; problem: Refusal };
  "message:sending": Unsent & { conversationId: string };
  "post:engaged": Events["engagement_update"];
  "message:sent": { conversationId: string; id: string };
  "message:refused": { conversationId: string; id: string };
}

type KeysOfData = KeysOf<AllEvents[keyof AllEvents]>;
export type MachineEvent = {
  [Name in keyof AllEvents]: { name: Name; data: Filled<AllEvents[Name], KeysOfData>; id?: string }
}[keyof AllEvents];
export type EventOf<Name extends keyof AllEvents> = Extract<MachineEvent, { name: Name }>;

export interface Unsent {
  id: string;
  text: string;
  sentAt: string;
}

/** The answer to the action with this `as`; status 0: there was no answer. As "reconcile" come the counts that were just
 * polled by `GET /v1/badges`. */
export type AnswerInput = {
  type: "answer";
  as: string;
  status: number;
  headers?: Record<string, string>;
  body: JSONValue;
  /** The action; `of` is the user that it was for. */
  action?: { do: string; of?: number };
};

export type NotificationChange = { seen?: boolean; read?: boolean; archived?: boolean };
export type BookingChange = { status?: BookingStatus | null; [field: string]: unknown };
export type EngagementChange = { liked?: boolean; reposted?: boolean };
export type RequestDraft = BodyOf<"POST", "/v1/requests">;
type TrackDraft = { trackId: string; trackName: string; artistName: string; albumArt?: string | null };

/** The commands of the user or the app, by the file of the machine. */
export interface Commands {
  booking: { type: "change"; set: BookingChange };
  conversation:
    | { type: "send"; id: string; text: string }
    | { type: "retry" | "discard" | "delete"; id: string }
    | { type: "read"; sequence?: number }
    | { type: "earlier" };
  conversations: { type: "more" };
  counts: { type: "expect"; as: string; by: { messages?: number; requests?: number; bell?: number } };
  dj: { type: "vote"; trackId: string; vote: "up" | "down" | "none" } | { type: "add"; track: TrackDraft };
  feed: { type: "more" | "showNew" } | { type: "engage"; postId: string; set: EngagementChange };
  invalidation:
    | { type: "mutated"; table: string; recordId: string | number }
    | { type: "watch-query"; id: string; key: string[]; isVisible?: boolean }
    | { type: "unwatch-query"; id: string }
    | { type: "refetch"; key?: string[] };
  leaderboard: never;
  notifications:
    | { type: "more" }
    | { type: "change"; id: string; set: NotificationChange }
    | { type: "changeAll"; upTo?: string; category?: string; set: NotificationChange }
    | { type: "remove"; id: string }
    | { type: "prefer"; set: Record<string, unknown> };
  push:
    | { type: "device"; id: string }
    | { type: "status"; status: PushStatus; problem?: Problem | null }
    | { type: "register"; draft: object }
    | { type: "unregister" }
    | { type: "message"; payload: JSONValue };
  queue: never;
  requests:
    | { type: "more" }
    | { type: "settle"; id: string; status: "accepted" | "declined" | null }
    | { type: "see" }
    | { type: "ask"; draft: RequestDraft };
  rows: { type: "apply"; row: Row } | { type: "load"; rows: readonly Row[] };
  "visible-rows":
    | { type: "apply"; row: Row }
    | { type: "show"; ids: (string | number)[] }
    | { type: "pause" | "resume" | "stop" };
}
/** A store's machine. The one of push messages runs by itself. */
export type StoreName = Exclude<keyof Commands, "push">;

/** What all stores' machines receive. */
type SharedInput =
  /** The first input. */
  | { type: "start"; user?: string | null; connection: Status }
  /** An event of the stream or of another store; `id` is "" if it is not replayed. */
  | { type: "event"; event: MachineEvent }
  | AnswerInput
  /** `reconnected`: the stream is live after a break, so the state is outdated. */
  | { type: "connection"; status: Status; reconnected?: boolean }
  | { type: "lifecycle"; foreground: boolean }
  /** The first listener came, or the last one left. */
  | { type: "watch"; watched: boolean }
  /** A timer that an action has set. */
  | { type: "timer"; name: string }
  /** Another user signed in, or the user signed out: the machine drops its state. */
  | { type: "user"; user: string | null; signedIn: boolean }
  /** What `kept` returned at the end of the last start. */
  | { type: "restore"; kept: unknown }
  | { type: "tabSwitch" }
  /** Fetches the state again. */
  | { type: "refresh" };

/** The input of one store's machine: what all receive, and its commands. */
export type InputOf<Name extends StoreName> = At & {
  /** Returns the answer to the command's write, which an earlier start has made. */
  resume?: () => Promise<Answer>;
} & OneOf<SharedInput | Commands[Name]>;
/** The input of any store's machine. */
export type StoreInput = InputOf<StoreName>;
/** A command of one store, as its interface gives it. */
export type CommandOf<Name extends StoreName> = Commands[Name] | { type: "refresh" };
/** The inputs that all stores receive. */
export type BellInput = Unstamped<StoreInputOf<"event" | "connection" | "lifecycle" | "user" | "tabSwitch">>;
/** A refresh that a machine asks of itself. */
export type Refresh = { type: "refresh"; now?: number };
/** A store's input of one type. */
export type StoreInputOf<Type extends StoreInput["type"]> = Extract<StoreInput, { type: Type }>;

/** A refusal of the service, with the places of its errors in the request. */
export interface ProblemBody {
  code?: string;
  detail?: string;
  errors?: { pointer: string; detail?: string }[];
}

/** The input of machines/connection.ts. Inputs of a connection carry its number. */
export type ConnectionInput = AtRandom & OneOf<
  | { type: "open" | "close" | "scope" }
  | { type: "retry"; milliseconds: number }
  | { type: "topics"; topics: string[] }
  | { type: "network"; online: boolean; changed?: boolean }
  | { type: "lifecycle"; foreground: boolean }
  | { type: "timer"; name: string }
  | { type: "bytes"; attempt: number }
  | { type: "head"; attempt: number; status: number; retryAfterMs?: number; problem?: ProblemBody }
  | { type: "ready"; attempt: number; streamId: string; userId?: string; identity?: string; topics?: string[] }
  | { type: "subscribed"; attempt: number; asked: string[]; status: number; topics?: string[]; problem?: ProblemBody;
      retryAfterMs?: number }
  | { type: "closing"; attempt: number; reason?: string; retryAfterMs?: number }
  | { type: "again"; attempt: number; isFresh?: boolean }
  | { type: "ended"; attempt: number; code?: string; detail?: string | null; status?: number }
>;
export type ConnectionInputOf<Type extends ConnectionInput["type"]> = Extract<ConnectionInput, { type: Type }>;

/** The input of machines/token.ts. */
export type TokenInput = At & OneOf<
  | { type: "need"; spent?: string | null; problem?: Refusal | null }
  | { type: "token"; token: string; subject?: string | null; identity?: string | null; lifeMs?: number | null }
  | { type: "refused"; token: string; problem: Refusal }
  | { type: "assume"; identity: string | null }
  | { type: "failed"; problem?: Refusal }
  | { type: "timer"; name: string }
  | { type: "ready"; streamId: string; token: string }
  | { type: "lost" | "expiring" }
  | { type: "renewed"; streamId: string; token: string; status: number }
>;
export type TokenInputOf<Type extends TokenInput["type"]> = Extract<TokenInput, { type: Type }>;

/** The input of machines/session.ts. */
export type SessionInput = At & OneOf<
  | { type: "begin"; holder: string | null; person: string | null; known: Known[] }
  | { type: "identity"; identity: string; holder: string | null; person: string | null }
  | { type: "user" }
>;

/** The input of machines/offline.ts. A place is the text that names a store: `conversation ["c1"]`. */
export type OfflineInput = At & OneOf<
  | { type: "loaded"; entries: Entries }
  | { type: "changed"; place: string }
  | { type: "timer"; name: string }
  | { type: "sized"; sizes: Record<string, number> }
  | { type: "flush" | "forget" }
>;

/** The input of machines/push.ts. */
export type PushInput = At & OneOf<
  | Commands["push"]
  | { type: "timer"; name: string }
  | { type: "connection"; status: Status; reconnected?: boolean }
  | { type: "user"; user: string | null; signedIn: boolean }
  | { type: "event"; event: { name: string; data: JSONValue } }
  | { type: "lifecycle"; foreground: boolean }
  | { type: "tabSwitch" }
  | AnswerInput
>;

/** The input of machines/outbox.ts. */
export type OutboxInput = AtRandom & OneOf<
  | { type: "restored"; items: Item[] }
  | { type: "add" | "marked"; item: Item }
  | { type: "network"; online: boolean; changed?: boolean }
  | { type: "connection"; status: Status }
  | { type: "timer"; name: string }
  | { type: "forget" }
  | ({ type: "answer"; key: string } & Answer)
>;
export type OutboxInputOf<Type extends OutboxInput["type"]> = Extract<OutboxInput, { type: Type }>;

/** The input of machines/reconciliation.ts. */
export type ReconciliationInput = At & OneOf<
  | { type: "start"; connection?: Status }
  | { type: "connection"; status: Status; reconnected?: boolean }
  | { type: "lifecycle"; foreground: boolean }
  | { type: "answer"; asked: number; status: number; etag: string | null; retryAfterMs: number; body: unknown }
  | { type: "timer"; name: string }
  | { type: "user"; user: string | null; signedIn: boolean }
  | { type: "refresh" | "tabSwitch" | "force" }
  | { type: "event"; event: MachineEvent }
>;
export type ReconciliationInputOf<Type extends ReconciliationInput["type"]> = Extract<ReconciliationInput, { type: Type }>;

/** The input of machines/tables.ts. */
export type TablesInput = At & OneOf<
  | { type: "subscribe"; tables: Table[]; lastEventId?: string | null }
  | { type: "ready"; streamId: string; since?: string | null }
  | { type: "lost" }
  | { type: "timer"; name: string }
  | { type: "answer"; count: number; status: number; body?: ProblemBody | null; retryAfterMs?: number }
  | { type: "seen"; prefixes: string[]; event: Event }
>;
export type TablesInputOf<Type extends TablesInput["type"]> = Extract<TablesInput, { type: Type }>;
export interface Table {
  id: string;
  [member: string]: unknown;
}
