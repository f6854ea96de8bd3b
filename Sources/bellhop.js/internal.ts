// Types that the parts of bellhop.js share, and that no app needs.
import type { calls } from "./calls.js";
import type { Haptic, PlayedText, Problem } from "./features.js";
import type { State as ConnectionState } from "./machines/connection.js";
import type { State as IdentityState } from "./machines/identity.js";
import type { BellInput, ConnectionInput, StoreInput, TablesInput } from "./machines/inputs.js";
import type { State as SessionState } from "./machines/session.js";
import type { run } from "./stores/store.js";
import type { subscriptions } from "./stores/subscriptions.js";
import type { group } from "./tabs/group.js";
import type { holder } from "./tabs/holder.js";
import type { Ring } from "./tabs/ring.js";
import type { tokens } from "./tokens.js";
import type {
  Answer, Bell, Clock, Connection, Event, Item, JSONValue, Lifecycle, Limits, Listeners, Network, Options, Provider,
  Refusal, Running, Delivery, SendOptions, Storage, Store, Transport, Unstamped, Interest, TokenRequest,
} from "./types.js";

/** What all tabs subscribe to on the stream. Topics and tables that are not set stay as they are. */
export interface StreamInterest {
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

/** The limits of the app, and the state of the device at the start. */
interface HolderLimits extends Limits {
  isOnline?: boolean;
  isForeground?: boolean;
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
  limits?: HolderLimits;
  provider: Provider;
  /** Subscribes to rows, on pages that show some. */
  rows?: RowLine;
  emit(delivery: Delivery): void;
}

/** Puts the row subscriptions of a stream. */
export type RowLine = (parts: RowLineParts) => { receive(input: Unstamped<TablesInput>): unknown; close(): void };

export interface RowLineParts {
  clock: Clock;
  change(id: string, body: object): Promise<Answer>;
  emit(delivery: Delivery): void;
  run: typeof run;
}

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
  Audio?: new (url: string) => { play(): void | Promise<void> };
}

/** The part of the Web Locks API that tabs use. */
export interface Locks {
  request(name: string, options: { signal?: AbortSignal; steal?: boolean; ifAvailable?: boolean },
    callback: (lock: unknown) => unknown): Promise<unknown>;
  query(): Promise<{ held?: { name?: string }[] }>;
}

/** BroadcastChannel, or a double of it. */
type ChannelType = new (name: string) => BroadcastChannel;

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
  problem?: Refusal;
}

/** Returns the service's digest of the rights of a token; rejects if the service cannot be asked. */
export type Identify = (token: string, read: Partial<IdentityState>) => Promise<string | null | undefined>;

/** A message of a tab to the holder; `from` is the tab. */
export type TabMessage = { from: string } & (
  | ({ send: "hello"; isTab: boolean; last: string } & Interest)
  | { send: "subscribe"; changes: Partial<Interest>; lastEventId?: string }
  | ({ send: "token"; ask: string } & Given)
  | { send: "add"; item: Item }
  | { send: "network"; network: NetworkState }
  | { send: "bye" | "ping" | "open" | "forget" }
);

/** A message of the holder to tabs; `from` is the holder. `n` numbers the messages to all. */
export type HolderMessage = { from: string } & (
  | { type: "holder"; at: string }
  | { type: "pong" }
  | ({ type: "ask"; ask: string } & TokenRequest)
  | { type: "event"; n: number; entry: Entry }
  | { type: "delivery"; n: number; delivery: Delivery & { for?: string } }
  | { type: "welcome"; n: number; at: string; isLost: boolean; status: Connection; waiting: number; isWorker: boolean;
      missed: Entry[] }
);

export interface LeaderParts extends GroupParts {
  locks: Locks;
  Channel: ChannelType;
  /** The channel to all tabs. */
  all: BroadcastChannel;
  ring: Ring;
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
  makeHolder(parts: { emit: (delivery: Delivery) => void; provider: Provider; rows?: RowLine }):
    ReturnType<typeof holder>;
  /** `isMine`: whether this tab must deliver an answer to the app. */
  emit(delivery: Delivery, isMine: boolean): void;
  /** Only for a tab. */
  provider?: (request: TokenRequest) => Promise<string | null>;
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
  http: ReturnType<typeof calls>;
  /** The part that a feature with rows brings, and the combined tables of all stores. */
  tables?: RowParts;
  rows?: RowSubscriptions;
  /** The combined topics of all stores. */
  topics: ReturnType<typeof subscriptions>;
  receive(delivery: Delivery, isMine?: boolean): void;
  /** The stores. */
  attached: Set<Attached>;
  /** The listeners of the app by the name of their event. */
  named: Map<string, Listeners<Event>>;
  connection: Value<Connection>;
  outbox: Value<{ waiting: number }>;
  user: string | null;
  isSignedIn: boolean;
  /** Absent until a user has signed in. */
  token?: ReturnType<typeof tokens>;
  owner: Owner;
  /** The last answer of the service to the question for a token's identity. */
  known?: { claims: string; identity?: string | null; userId?: string | null };
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
  adopt(name: string, names: unknown[], place: string, keep: Keepable | undefined): void;
  release(place: string): void;
  from(of: object, cause: Unstamped<StoreInput>, key: string): Item["from"];
  resume(): Promise<void>;
  answered(key: string): void;
}

/** A store whose state the device can keep. */
export interface Keepable {
  run: object;
  kept(): object | null;
  receive(input: Unstamped<StoreInput>): unknown;
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
  session: SessionState;
  /** Resolves when the device's list of identities was looked at. */
  shown: Promise<void>;
  /** What the last token says of itself. */
  read: Partial<IdentityState> | null;
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
interface Attached {
  receive(input: BellInput): unknown;
  /** Called at sign-out, with the token of the user who leaves. */
  leave?(token: string | null): Promise<unknown>;
  close?(): void;
}

/** A stream as a tab uses it: its own, or the one that all tabs share. */
export interface Line {
  start(): unknown;
  subscribe(interest: StreamInterest): void;
  network(network: NetworkState): void;
  lifecycle(foreground: boolean): void;
  open(): void;
  forget(): void;
  add(item: Item): void;
  close(): void;
}

/** The combined tables of all stores of a tab. */
interface RowSubscriptions {
  all(): WantedTable[];
  set(of: object, filter: TablesFilter | null): Promise<Answer>;
  answered(answer: TablesAnswer): void;
  seenBy(of: object | null, event: Event): Event | null;
}

/** The tables that a store subscribes to. */
export interface TablesFilter {
  tables: WantedTable[];
  lastEventId?: string;
}

/** The answer to the tables of a stream, with why the service refused some, by id. */
export interface TablesAnswer {
  status: number;
  body: JSONValue;
  refused: Record<string, Problem>;
}

/** A bell whose calls and events the contract does not type. */
export interface CoreBell extends Omit<StoreBell, "get" | "call" | "send" | "on"> {
  get(path: string): Promise<Answer>;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  send(method: string, path: string, body?: unknown, how?: SendOptions): Promise<Answer>;
  on(name: string, listener: (event: Event) => void): () => void;
}

/** What the bell needs of a store to drop it, and to keep its state. */
export interface Closable {
  keep?: Keepable;
  isWatched(): boolean;
  close(): void;
}

/** The part that a feature with rows brings to the core. */
export interface RowParts {
  subscriptions(tab: string, changed: (filter: TablesFilter) => void): RowSubscriptions;
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
  setTopics(of: object, topics: string[] | null): void;
  /** Undefined if no feature shows rows. */
  tables?: RowSubscriptions;
  /** Passes an event to the listeners of the app. */
  publish(name: string, data: unknown, id?: string): void;
  /** Sends a call; status 0 if there was no answer. */
  attempt(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Sends a write through the outbox; status 0 if it was not sent. */
  deliver(method: string, path: string, body: unknown, how: { key?: string; headers?: Record<string, string> },
    of: object, cause: Unstamped<StoreInput>): Promise<Answer>;
  play(haptic: Haptic | null, sound: boolean, text: PlayedText | null): unknown;
}

/** The state of the stream of a holder. */
export interface StreamState extends HolderParts {
  token: ReturnType<typeof tokens>;
  line: Running<ConnectionState, ConnectionInput>;
  http: ReturnType<typeof calls>;
  /** The row subscriptions, on pages that show rows. */
  table?: ReturnType<RowLine>;
  /** The last change of the subscriptions. */
  changing: Promise<unknown>;
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
  refusal?: Refusal | null;
  /** The id of the last event, and the last stored one. */
  cursor: string;
  stored?: string;
}

/** How tabs share a stream; null if they cannot. */
export type ShareTabs = (parts: { options: Options; url: string; user: string | null; identity: string | null } &
  Omit<GroupParts, "isTab" | "locks" | "Channel" | "startWorker" | "watch">) =>
  ReturnType<typeof group> | null;
