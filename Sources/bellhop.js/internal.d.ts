// Internal types that the parts of bellhop.js share. They are not for apps: they name modules without declarations.
import type { Haptic, PlayedText } from "./features.js";
import type {
  Answer, Bell, Clock, Connection, Event, Input, Item, Lifecycle, Limits, Listeners, Network, Options, Provider, Running,
  Saying, Status, Storage, Store, Transport, Want,
} from "./types.js";

export interface ConnectionState {
  status: Status;
  /** The requested topics. */
  topics: string[];
  online: boolean;
  foreground: boolean;
  /** Number of the connection; input from earlier connections is ignored. */
  attempt: number;
  /** Number of consecutive failed tries. */
  tries: number;
  triedAt: number;
  /** Time of the last received byte. */
  heardAt: number;
  /** Set by `stream:ready`. */
  streamId: string | null;
  /** The topics that the stream is subscribed to. */
  ready: string[];
  retryAt: number | null;
  /** The stream's own `retry:`, which replaces the first delay. */
  retryMs: number | null;
  /** Contents of `stream:closing`. */
  closing: { reason?: string; retryAfterMs?: number } | null;
  /** No try before this time: the server asked for the delay. */
  serverAt: number;
  /** The last token was refused once. */
  fresh: boolean;
  /** Why the service refused a topic, by topic. */
  refused: Record<string, any>;
  /** Refused topics that are requested once more. */
  again: string[];
  /** The topics of the last subscription request. */
  asked: string[];
  /** Maximum number of new topics per request while bisecting for the refused one; null means all. */
  limit: number | null;
  /** The stream was refused together with its topics, so it is opened without any. */
  bare: boolean;
  /** Why the stream is not live: {code, status?, detail?}. */
  reason: any;
  /** The service's digest of the token's rights; null until known. */
  identity: string | null;
  /** The user that a stream must belong to; null if unknown. */
  user: string | null;
  limits: typeof import("./machines/connection.js").defaults;
}

export interface TokenState {
  token: string | null;
  /** The user of the token. */
  user: string | null;
  /** The service's digest of the token's rights; null if unknown. */
  identity: string | null;
  /** When the token's life ends, counted from its receipt; null if unknown. */
  expiresAt: number | null;
  gotAt: number;
  /** When to request the next token, while a stream uses this one. */
  refreshAt: number | null;
  asking: boolean;
  /** A token that was refused or is about to expire: the app must return another. */
  spent: string | null;
  /** Why the present token was refused, so that it is not given out again. */
  refused: import("./types").Refusal | null;
  streamId: string | null;
  /** The token that the open stream uses. */
  streamToken: string | null;
  renewing: boolean;
  /** Why there is no token. */
  problem: any;
}

export interface ReconciliationState {
  connected: boolean;
  foreground: boolean;
  etag: string | null;
  askedAt: number;
  /** Time of the last successful answer. */
  syncedAt: number;
  asking: boolean;
  /** Requested while another fetch was running. */
  due: boolean;
  /** Earliest time of the next fetch, set by the service. */
  notBefore: number;
  limits: typeof import("./machines/reconciliation.js").defaults;
}

export interface OutboxState {
  /** Writes of another identity are not sent. */
  identity: string | null;
  /** Queued writes, in order. */
  items: Item[];
  /** What the device reports of its network. An open stream is better evidence. */
  online: boolean;
  live: boolean;
  /** Whether the writes of an earlier start of the app have been read. */
  restored: boolean;
  /** The key of the write being sent. */
  sending: string | null;
  /** Number of consecutive failures. */
  failures: number;
  retryAt: number;
  limits: typeof import("./machines/outbox.js").defaults;
}

/** The actions of machines/connection.js, beside timers. */
export interface ConnectAction {
  do: "connect";
  attempt: number;
  topics: string[];
  /** The last token was refused: another one is needed. */
  fresh: boolean;
}
export interface SubscribeAction {
  do: "subscribe";
  attempt: number;
  streamId: string;
  topics: string[];
}
export type ConnectionAction = ConnectAction | SubscribeAction | { do: "disconnect" };

/** The actions of machines/outbox.js, beside timers. */
export type OutboxAction =
  | { do: "mark"; item: Item }
  | { do: "remove"; item: Item }
  | { do: "request"; item: Item }
  | { do: "answered"; item: Item; answer: Answer };

/** What all tabs want from the stream. Topics and tables that are not set stay as they are. */
export interface HolderWant {
  topics?: string[];
  tables?: WantedTable[];
  lastEventId?: string;
}

export interface NetworkState {
  online: boolean;
  changed?: boolean;
}

/** A table as a stream subscribes to it; its owner chose the id. */
export interface WantedTable {
  id: string;
  [member: string]: unknown;
}

export interface HolderParts {
  url: string;
  clock: Clock;
  fetch?: typeof fetch;
  transport: Transport;
  storage: Storage;
  /** Prefix of the storage keys: service and identity. */
  scope: string;
  user: string | null;
  /** The service's digest of the rights that every token must have; null if unknown. */
  identity: string | null;
  clientId: string;
  limits?: any;
  provider: Provider;
  /** Subscribes to rows, on pages that show some. */
  rows?: RowLine;
  emit(saying: Saying): void;
}

/** Puts the row subscriptions of a stream. */
export type RowLine = (parts: {
  clock: Clock;
  change(id: string, body: object): Promise<Answer>;
  emit(saying: Saying): void;
  run: typeof import("./stores/store.js").run;
}) => { receive(input: any): any; close(): void };

/** What bellhop.js uses of the global object. Each environment lacks some of it. */
export interface Globals extends EventTarget {
  document?: EventTarget & { visibilityState?: string };
  location?: { href: string };
  navigator?: {
    onLine?: boolean;
    userAgent: string;
    maxTouchPoints: number;
    product: string;
    locks?: Locks;
    vibrate?(pattern: number[]): boolean;
  };
  BroadcastChannel?: ChannelType;
  Audio?: new (url: string) => { play(): unknown };
}

/** The actions of machines/reconciliation.js, beside timers. */
export type PollingAction =
  | { do: "fetch"; path: string; headers: Record<string, string>; asked: number; status?: undefined; body?: undefined }
  | { do: "reconciled"; status: number; body: unknown; path?: undefined; headers?: undefined; asked?: undefined };

/** The actions of machines/tables.js, beside timers. */
export type TablesLineAction = { do: string; streamId: string; count: number } & TablesAction & TablesAnswer;

/** The part of the Web Locks API that tabs use. */
export interface Locks {
  request(name: string, options: { signal?: AbortSignal; steal?: boolean; ifAvailable?: boolean },
    callback: (lock: unknown) => unknown): Promise<unknown>;
  query(): Promise<{ held?: { name?: string }[] }>;
}

/** BroadcastChannel, or a double of it. */
export type ChannelType = new (name: string) => BroadcastChannel;

/** An event as tabs pass it on; a position without an event has `event: null`. */
export interface Entry {
  id: string;
  event: Event | null;
}

/** A message without its sender. */
export type Unsigned<Message> = Message extends unknown ? Omit<Message, "from"> : never;

/** The answer to the request for a token. */
export interface Given {
  token: string | null;
  /** Why there is none. */
  problem?: import("./types").Refusal;
}

/** Returns the service's digest of the rights of a token; rejects if the service cannot be asked. */
export type Identify = (token: string, read: Partial<import("./machines/identity.js").State>) => Promise<string | null>;

/** A message of a tab to the holder; `from` is the tab. */
export type TabMessage = { from: string } & (
  | ({ tell: "hello"; isTab: boolean; last: string } & Want)
  | { tell: "want"; want: Partial<Want>; lastEventId?: string }
  | ({ tell: "token"; ask: string } & Given)
  | { tell: "add"; item: Item }
  | { tell: "network"; network: NetworkState }
  | { tell: "bye" | "ping" | "open" | "forget" }
);

/** A message of the holder to tabs; `from` is the holder. `n` numbers the messages to all. */
export type HolderMessage = { from: string } & (
  | { say: "holder"; at: string }
  | { say: "pong" }
  | ({ say: "ask"; ask: string } & import("./types").Wanted)
  | { say: "event"; n: number; entry: Entry }
  | { say: "saying"; n: number; saying: Saying & { for?: string } }
  | { say: "welcome"; n: number; at: string; isLost: boolean; status: Connection; waiting: number; isWorker: boolean;
      missed: Entry[] }
);

export interface LeaderParts extends GroupParts {
  locks: Locks;
  Channel: ChannelType;
  /** The channel to all tabs. */
  all: BroadcastChannel;
  ring: import("./tabs/ring.js").Ring;
  /** Passes a message to this tab. */
  receive(message: HolderMessage): void;
}

export interface GroupParts {
  /** Name of the lock and the channels: service and identity. */
  name: string;
  tab: string;
  /** false for the worker. */
  isTab: boolean;
  clock: Clock;
  locks?: Locks;
  Channel?: ChannelType;
  makeHolder(parts: { emit: (saying: Saying) => void; provider: Provider; rows?: RowLine }):
    ReturnType<typeof import("./tabs/holder.js").holder>;
  /** `isMine`: whether this tab must deliver an answer to the app. */
  emit(saying: Saying, isMine: boolean): void;
  /** Only for a tab. */
  provider?: (wanted: import("./types").Wanted) => Promise<string | null>;
  /** Calls back when the worker runs, or when it cannot. */
  startWorker?: (enter: () => void) => void;
  watch?: { everyMs: number; answerMs: number };
}

/** The state of a bell, which the functions in bell/ share. */
export interface BellState {
  options: Options;
  url: string;
  clock: Clock;
  fetch?: typeof fetch;
  clientId: string;
  tab: string;
  network: Network;
  lifecycle: Lifecycle;
  transport: Transport;
  storage: Storage;
  http: ReturnType<typeof import("./calls.js").calls>;
  /** The part that a feature with rows brings, and the combined tables of all stores. */
  tables?: RowParts;
  rows?: RowSubscriptions;
  /** The combined topics of all stores. */
  wanted: ReturnType<typeof import("./stores/subscriptions.js").subscriptions>;
  receive(saying: Saying, isMine?: boolean): void;
  /** The stores. */
  attached: Set<Attached>;
  /** The listeners of the app by the name of their event. */
  named: Map<string, Listeners<Event>>;
  connection: Value<Connection>;
  outbox: Value<{ waiting: number }>;
  user: string | null;
  isSignedIn: boolean;
  /** Absent until a user has signed in. */
  token?: ReturnType<typeof import("./tokens.js").tokens>;
  owner: Owner;
  /** The last answer of the service to the question for a token's identity. */
  told?: { claims: string; identity: string | null };
  /** The stream, of this tab or of all. */
  line?: Line;
  /** The id of the last live stream. */
  streamId: string | null;
  /** Writes without an answer, by key. */
  pending: Map<string, PendingWrite>;
  /** The last write that is being stored. */
  adding?: Promise<unknown>;
  /** The position of the last write. */
  order: number;
  /** Keeps the stores' state on the device, if the app has asked for it. */
  offline?: OfflineKeeper;
}

/** What bellhop.js/offline does for a bell. */
export interface OfflineKeeper {
  readonly ready: Promise<void>;
  begin(): void;
  show(identity: string | null): void;
  identify(identity: string | null): Promise<void>;
  end(): void;
  /** true at once, if the app need not be asked. */
  mayLeave(): true | Promise<boolean>;
  forget(gone: Promise<string[]>): Promise<void>;
  adopt(name: string, names: any[], place: string, keep: Keepable | undefined): void;
  release(place: string): void;
  from(of: object, cause: Input, key: string): Item["from"];
  resume(): Promise<void>;
  answered(key: string): void;
}

/** A store whose state the device can keep. */
export interface Keepable {
  run: object;
  kept(): object | null;
  receive(input: Input): unknown;
  onChange(listener: () => void): () => void;
}

/** A store of one value. */
export interface Value<Content> {
  get(): Content;
  /** Returns whether the value changed. */
  set(next: Content): boolean;
  store: Store<Content>;
}

/** The owner of the writes: one user's write must never be stored as another user's. */
export interface Owner {
  /** Prefix of the storage keys; "" until the identity is known. */
  scope: string;
  identity: string | null;
  start(): void;
  /** Resolves when the identity is known, or when the user has left. */
  started: Promise<void>;
  /** Which identity shows, and whether the service has confirmed it. */
  session: import("./machines/session.js").State;
  /** Resolves when the device's list of identities was looked at. */
  shown: Promise<void>;
  /** What the last token says of itself. */
  read: Partial<import("./machines/identity.js").State> | null;
}

/** A write without an answer. */
export interface PendingWrite {
  item: Item;
  text: string;
  answer: Promise<Answer>;
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

/** A running machine of a store, or another part that receives what the stores receive. */
export interface Attached {
  receive(input: Input): unknown;
  /** Called at sign-out, with the token of the user who leaves. */
  leave?(token: string | null): Promise<unknown>;
  close?(): void;
}

/** A stream as a tab uses it: its own, or the one that all tabs share. */
export interface Line {
  start(): unknown;
  want(wanted: HolderWant): void;
  network(network: NetworkState): void;
  lifecycle(foreground: boolean): void;
  open(): void;
  forget(): void;
  add(item: Item): void;
  close(): void;
}

/** The combined tables of all stores of a tab. */
export interface RowSubscriptions {
  all(): WantedTable[];
  set(of: object, want: TablesAction | null): Promise<Answer>;
  answered(answer: TablesAnswer): void;
  seenBy(of: object | null, event: Event): Event | null;
}

export interface TablesAction {
  tables: WantedTable[];
  lastEventId?: string;
}

export type TablesAnswer = Extract<Saying, { say: "tables" }>["answer"];

/** What the bell needs of a store to drop it, and to keep its state. */
export interface Closable {
  keep?: Keepable;
  isWatched(): boolean;
  close(): void;
}

/** The part that a feature with rows brings to the core. */
export interface RowParts {
  subscriptions(tab: string, changed: (want: TablesAction) => void): RowSubscriptions;
  line: RowLine;
}

/** A bell as its stores use it. */
export interface StoreBell extends Bell {
  url: string;
  storage: Storage;
  clock: Clock;
  limits: Limits;
  isSignedIn(): boolean;
  isForeground(): boolean;
  /** Passes inputs to a store until the returned function is called. */
  attach(store: Attached): () => void;
  /** Replaces the topics of a store; null removes them. */
  want(of: object, topics: string[] | null): void;
  /** Undefined if no feature shows rows. */
  tables?: RowSubscriptions;
  /** Passes an event to the listeners of the app. */
  publish(name: string, data: unknown, id?: string): void;
  /** Sends a call; status 0 if there was no answer. */
  attempt(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Sends a write through the outbox; status 0 if it was not sent. */
  deliver(method: string, path: string, body: unknown, how: { key?: string; headers?: Record<string, string> },
    of: object, cause: Input): Promise<Answer>;
  play(haptic: Haptic | null, sound: boolean, text: PlayedText | null): unknown;
}

/** What the machines of stores ask for; types.d.ts describes each action. */
export type StoreAction =
  | { do: "fetch"; path: string; as: string; headers?: Record<string, string> }
  | { do: "call"; method: string; path: string; body?: unknown; headers?: Record<string, string>; as: string }
  | { do: "send"; method: string; path: string; body?: unknown; headers?: Record<string, string>; key?: string;
      as: string }
  | { do: "subscribe"; topics: string[] }
  | ({ do: "tables"; as?: string } & TablesAction)
  | { do: "tell"; name: string; data: unknown }
  | PlayAction;

/** `key`: two events of one change have the same key, and play once. */
export interface PlayAction {
  do: "play";
  haptic: Haptic | null;
  sound: boolean;
  key: string;
}

/** The state of the stream of a holder. */
export interface StreamState extends HolderParts {
  token: ReturnType<typeof import("./tokens.js").tokens>;
  line: Running<ConnectionState>;
  http: ReturnType<typeof import("./calls.js").calls>;
  /** The row subscriptions, on pages that show rows. */
  table?: ReturnType<RowLine>;
  /** The last change of the subscriptions. */
  changing: Promise<any>;
  /** Aborts the connection. */
  stop(): void;
  shown: Connection;
  isStarted?: boolean;
  isClosed?: boolean;
  /** Whether the position is being written. */
  isStoring?: boolean;
  /** The open stream, and its token. */
  streamId?: string;
  bearer?: string;
  /** Why the last token was refused. */
  refusal?: any;
  /** The id of the last event, and the last stored one. */
  cursor: string;
  stored?: string;
}

/** How tabs share a stream; null if they cannot. */
export type ShareTabs = (parts: { options: Options; url: string; user: string | null; identity: string | null } &
  Omit<GroupParts, "isTab" | "locks" | "Channel" | "startWorker" | "watch">) =>
  ReturnType<typeof import("./tabs/group.js").group> | null;
