// The types that tie `on`, `get`, `call` and `send` to the service's contract.
import type { Problem as FeatureProblem } from "./features.js";
import type { AnswerTo, BodyOf, Events, OperationOf, OwnEvents, Problem, StreamScope } from "./models.js";
import type { Refusal } from "./types.js";

/** The events that bellhop.js itself sends to the listeners of `bell.on`. */
export interface ClientEvents {
  /** The service accepted a write of the outbox. */
  "outbox:sent": Written & { answer: Taken<unknown> };
  /** The service refused a write of the outbox, or the write was lost (status 0). */
  "outbox:refused": Written & { answer: Refused };
  "topic:refused": { topic: string; problem: Refusal };
  /** The scope of the stream changed: the user can see other data than before. */
  "scope:changed": StreamScope;
  "message:sending": { conversationId: string; id: string; text: string; sentAt: string };
  "message:sent": { conversationId: string; id: string };
  "message:refused": { conversationId: string; id: string; text: string; problem: FeatureProblem };
  "conversation:refused": { conversationId: string; what: "read" | "delete"; problem: FeatureProblem };
  "notifications:refused": { ids: string[]; problem: FeatureProblem };
  /** `allowed` lists the statuses that the booking can change to. */
  "booking:refused": { bookingId: string; problem: FeatureProblem & { allowed?: string[] } };
  "dj:refused": { shopId: string; trackId: string | null; problem: FeatureProblem };
  /** The user has liked or reposted a post: its counts as the feed shows them. */
  "post:engaged": { postIds: string[]; updates: Record<string, { likeCount: number; repostCount: number }> };
  /** The user has tapped on a push message; `data` has its type and ids. */
  "push:click": { tag: string; data: { [name: string]: unknown } };
  "requests:refused": { id: string | null; problem: FeatureProblem };
  "feed:refused": { postId: string; problem: FeatureProblem };
  /** The queries whose keys begin with one of `keys` are stale. */
  "query:stale": { keys: string[][]; reason: string; isForeground?: boolean; isForced?: boolean };
  "query:refetch": { ids: string[]; reason: string };
  /** The device can store nothing: writes that wait end with the page. */
  "storage:failed": { detail: string };
  "storage:restored": null;
  "visible-rows:refused": { problem: FeatureProblem };
  /** So many rows are on the screen that another way to follow them costs less. */
  "visible-rows:warning": { above: number; code: string; text: string; count: number };
}

interface Written {
  /** The Idempotency-Key. */
  key: string;
  method: string;
  path: string;
  body?: unknown;
}

/** All events with a known name, with their data. */
export type KnownEvents = Events & ClientEvents & OwnEvents;

/** An event of one of the given names; without names, of any known name. */
export type Event<Name extends keyof KnownEvents = keyof KnownEvents> = {
  [Each in Name]: {
    name: Each;
    data: KnownEvents[Each];
    /** "" if the event is not replayed. */
    id: string;
  };
}[Name];

/** An event of your app whose name `OwnEvents` does not declare. */
export interface UndeclaredEvent {
  name: string;
  data: unknown;
  id: string;
}

type FirstWord<Name extends string> = Name extends `${infer First}:${string}` ? First : Name;

/** A name that an app may give to an event of its own; never if `OwnEvents` declares other names, or if the name
 * begins with a word that Bellhop uses. */
export type UndeclaredName<Name extends string> = [keyof OwnEvents] extends [never]
  ? FirstWord<Name> extends FirstWord<keyof Events | keyof ClientEvents> | "bellhop" ? never : Name
  : string extends Name ? Name : never;

/** An answer that carries out the call. */
export interface Taken<Body, Status = 200 | 201 | 202 | 204> {
  status: Status;
  headers: Record<string, string>;
  body: Body;
  /** The delay that the service requests. */
  retryAfterMs?: number;
}

/** An answer without the requested content. Status 304: the content is unchanged. Status 0: there was no answer. */
export interface Refused {
  status:
    | 0 | 304 | 400 | 401 | 403 | 404 | 405 | 408 | 409 | 412 | 413 | 414 | 415 | 422 | 428 | 429 | 431 | 500 | 502 | 503
    | 504;
  headers: Record<string, string>;
  /** The service's reason; a proxy's answer may have none. */
  body?: Partial<Problem>;
  /** The delay that the service requests. */
  retryAfterMs?: number;
}

/** The service's answer. Compare `status` with a number to narrow the type of `body`. */
export type Answer<Body = unknown, Status = 200 | 201 | 202 | 204> = Taken<Body, Status> | Refused;

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

type ParameterName<Text extends string> = Text extends `${infer Name}=${string}` ? Name : Text;
type NamesIn<Query extends string> = Query extends `${infer First}&${infer Rest}`
  ? ParameterName<First> | NamesIn<Rest>
  : ParameterName<Query>;
type NamesOf<Path extends string> = Path extends `${string}?${infer Query}` ? NamesIn<Query> : never;
// A parameter whose name is not known while compiling is of the type `string`.
type Literals<Name extends string> = Name extends string ? (string extends Name ? never : Name) : never;
type NamesAllowed<Operation> = Operation extends { query: infer Query } ? keyof Query : never;

/** A path that the service has for the method, with query parameters of that operation; never for another path below
 * `/v1/`. Paths of the type `string` are not checked. */
export type PathOf<Given extends Method, Path extends string> = [OperationOf<Given, Path>] extends [never]
  ? Path extends `/v1/${string}` ? never : Path
  : Literals<NamesOf<Path>> extends NamesAllowed<OperationOf<Given, Path>> ? Path : never;

export type AnswerOf<Given extends Method, Path extends string> = [OperationOf<Given, Path>] extends [never]
  ? Answer
  : Answer<AnswerTo<Given, Path>, OperationOf<Given, Path>["status"]>;

/** The arguments of a call after its path: the body, which some operations require, and one more. */
export type BodyAnd<Given extends Method, Path extends string, Last> = [OperationOf<Given, Path>] extends [never]
  ? [body?: unknown, last?: Last]
  : undefined extends BodyOf<Given, Path>
  ? [body?: BodyOf<Given, Path>, last?: Last]
  : [body: BodyOf<Given, Path>, last?: Last];
