// The types of bellhop.js: the public types, and the types that its parts share.
import type { Outcome } from "./actions.js";
import type {
  AnswerOf, BodyAnd, Event as KnownEvent, KnownEvents, Method, PathOf, UndeclaredEvent, UndeclaredName,
} from "./contract.js";
import type { Haptic, PlayedText } from "./features.js";
import type {
  BellState, OfflineKeeper, RowParts, ShareTabs, StoreBell, TablesAnswer, WantedTable,
} from "./internal.js";
import type { StoreInput } from "./machines/inputs.js";

/** The options of `connect`. */
export interface Options {
  /** The address of the service: `https://bells.example`. */
  url: string;
  /** Called whenever a new token is needed; `fresh`: the last one is no longer valid. */
  token: string | ((request: { fresh: boolean }) => string | null | Promise<string | null>);
  /** Shared topics: `queue:s1`. */
  topics?: string[];
  /** The token's `sub`. With it, the outbox accepts writes after a start without a network, when there is no token
   * yet. */
  user?: string;
  /** By default IndexedDB, or memory where there is none. */
  storage?: Storage;
  network?: Network;
  lifecycle?: Lifecycle;
  /** Plays a notification's haptics and sound. `text` is what a local notification shows; null for a change without a
   * notification. */
  player?: (haptic: Haptic | null, sound: boolean, text: PlayedText | null) => unknown;
  transport?: "auto" | "fetch" | "xhr" | Transport;
  /** off: this tab has its own stream. For the core, pass `tabs` of bellhop.js/tabs. */
  tabs?: "auto" | "off" | Tabs;
  /** Keeps the stores' state for the next start: `offline()` of bellhop.js/offline. */
  offline?: Offline;
  fetch?: typeof fetch;
  clock?: Clock;
  /** Timeouts and retry limits. A page that sets limits does not share its stream by a worker. */
  limits?: Limits;
}

/** Times in milliseconds. */
export interface Limits {
  /**
   * How long the stream stays open in the background; null means no limit. The default is 30,000 on phones (React
   * Native and mobile browsers), where an open stream costs battery, and null elsewhere. In the foreground the stream
   * resumes after its last event.
   */
  backgroundMs?: number | null;
  /** Maximum number of consecutive failed tries: 10. */
  triesMax?: number;
  /** The first delay before a retry, which doubles: 1,000, until the stream's `retry:` sets another. */
  firstMs?: number;
  /** The longest delay: 30,000. */
  delayMsMax?: number;
  /** The longest delay that the service may request: 3,600,000. */
  serverMsMax?: number;
  /** Maximum time until a stream is ready: 10,000. */
  connectMs?: number;
  /** A stream that is silent for longer is closed: 60,000. */
  silenceMs?: number;
  /** A stream that ends sooner counts as a failed try: 10,000. */
  stableMs?: number;
  /** Minimum time between two tries caused by the network or the foreground: 1,000. */
  wakeMs?: number;
  /** When the app returns to the foreground, a stream that was silent for longer is reopened: 35,000. */
  doubtMs?: number;
  outbox?: OutboxLimits;
  polling?: PollingLimits;
}

/** Limits of the outbox. */
export interface OutboxLimits {
  /** Maximum number of queued writes: 1,000. */
  itemsMax?: number;
  /** The first delay before a retry, which doubles: 1,000. */
  firstMs?: number;
  /** The longest delay: 30,000. */
  delayMsMax?: number;
  /** The longest delay that the service may request: 3,600,000. */
  serverMsMax?: number;
  /** A write that was tried is not sent again after this time: 82,800,000 (23 hours). */
  keyMsMax?: number;
}

/** Intervals at which counts are polled. */
export interface PollingLimits {
  /** While the stream is open: 10,000. */
  connectedMs?: number;
  /** Without a stream: 90,000. */
  disconnectedMs?: number;
  /** A tab switch polls counts that are older: 15,000. */
  tabSwitchMs?: number;
  /** Minimum time between two polls: 3,000. */
  leastMs?: number;
}

/** The options of `connect` in bellhop.js, which also takes React Native's packages. */
export interface DeviceOptions extends Omit<Options, "storage" | "network" | "lifecycle"> {
  /** A Storage, an AsyncStorage or `localStorage`. By default IndexedDB, or memory where there is none. */
  storage?: Storage | AsyncStorage;
  /** A Network, or NetInfo. */
  network?: Network | NetInfo;
  /** A Lifecycle, or AppState. */
  lifecycle?: Lifecycle | AppState;
}

/** A feature that a bell can have: `bell.badges`. */
export interface Feature<Made> {
  key?(): unknown;
  /** Subscribes to rows, in a feature that shows some. */
  tables?: RowParts;
  make(bell: StoreBell): Made;
  isKeyed?: false;
  /** Whether the feature begins with the bell, not at its first use. */
  isEager?: boolean;
}

/** A feature with one store per argument list: `bell.queue("s1")`. */
export interface KeyedFeature<Names extends unknown[], Made> {
  tables?: RowParts;
  /** Returns the key that distinguishes two stores; by default the arguments themselves. */
  key?(...names: Names): unknown;
  make(bell: StoreBell, ...names: Names): Made;
  isKeyed: true;
}

export type AnyFeature = Feature<unknown> | KeyedFeature<unknown[], unknown>;
/** The stores that a bell gets from the given features. */
export type StoresOf<Given> = {
  readonly [Name in keyof Given]: Given[Name] extends KeyedFeature<infer Names, infer Made>
    ? (...names: Names) => Made : Given[Name] extends Feature<infer Made> ? Made : never;
};

/** JSON that the service has sent. Its reader knows its type: bellhop.js/models has the types of the contract. */
export type JSONValue = any;

/** A row of a table of the app, which knows its columns. */
export type Row = Record<string, any>;

export interface Event {
  name: string;
  data: JSONValue;
  /** "" if the event is not replayed. */
  id: string;
}

/** Status 0: there was no answer. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: JSONValue;
  /** The delay that the service requests. */
  retryAfterMs?: number;
}

export interface Clock {
  now(): number;
  random(): number;
  /** Returns a function that cancels it. */
  after(ms: number, run: () => void): () => void;
}

// MARK: Machines and stores

/** A pure state machine. */
export interface Machine<State, Options, Input, Action, Snapshot = unknown> {
  initial(options: Options): State;
  receive(state: State, input: Input): Outcome<State, Action>;
  /** Returns the state that `get` shows, if it is not the whole state. */
  snapshot?(state: State): Snapshot;
  /** Returns what the device keeps for the next start; null for nothing. */
  kept?(state: State): object | null;
}

/** An input without what `run` adds. */
export type Unstamped<Input> = Input extends unknown ? Omit<Input, "now" | "random"> & { now?: number } : never;

export interface Listeners<Value> {
  emit(value: Value): void;
  add(listener: (value: Value) => void): () => void;
  size(): number;
}

/** A running machine. */
export interface Running<State, Input> {
  get(): State;
  /** Resolves with the answers to the machine's actions. */
  receive(input: Unstamped<Input>): Promise<unknown[]>;
  onChange(listener: (state: State) => void): () => void;
  close(): void;
}

export type Status = "connecting" | "live" | "waiting" | "unreachable" | "offline" | "refused" | "closed";

/** A write in the outbox. */
export interface Item {
  /** The claims that decide what the tokens may do; absent if unknown. */
  identity?: string | null;
  /** The Idempotency-Key. */
  key: string;
  /** Position in the queue, across tabs, as a text that sorts in the order of creation. */
  order: string;
  method: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** Time of the first try, from which on the write may have been executed; null if it was never sent. */
  tried: number | null;
  /** The tab that made it. */
  tab?: string;
  /** The command of a store that caused it. */
  from?: { place: string; name: string; names: unknown[]; input: Unstamped<StoreInput> };
}

// MARK: The stream

export interface ServerSentEvent extends Event {
  /** Whether the event has its own id, not that of an earlier event. */
  hasId: boolean;
}

/** The callbacks of a transport for one connection; `end` is called at most once, and last. */
export interface StreamListener {
  head(head: { status: number; type: string; retryAfter: string | null; body: () => Promise<string> }): void;
  text(text: string): void;
  end(end: { detail: string; isFull?: boolean }): void;
}

/** Returns a function that aborts the connection. */
export type Transport = (url: string, headers: Record<string, string>, listener: StreamListener) => () => void;

/** The messages of the holder to all tabs. */
export type Delivery =
  | { type: "event"; event: Event }
  | { type: "cursor"; id: string }
  | { type: "status"; status: Connection }
  | { type: "answered"; item: Item; answer: Answer }
  | { type: "waiting"; count: number }
  | { type: "tables"; answer: TablesAnswer };

/** What kind of token is needed: `fresh`, another one than the spent one, which was refused because of the problem. */
export interface TokenRequest {
  fresh: boolean;
  spent: string | null;
  problem: Refusal | null;
}

/** Returns a token other than the spent one, or null. */
export type Provider = (request: TokenRequest) => string | null | Promise<string | null>;

export interface Interest {
  topics: string[];
  tables: WantedTable[];
  foreground: boolean;
}

export interface Member extends Interest {
  isTab: boolean;
  line: BroadcastChannel | null;
  gone: AbortController;
}

/** How tabs share a stream, exported by bellhop.js/tabs. */
export type Tabs = ShareTabs;

/** Keeps the stores' state on the device, made by bellhop.js/offline. */
export type Offline = (it: BellState, bell: StoreBell) => OfflineKeeper;

// MARK: The device

/** The part of React Native's AsyncStorage that bellhop.js uses. */
export interface AsyncStorage {
  getItem(key: string): string | null | undefined | Promise<string | null | undefined>;
  setItem(key: string, value: string): unknown;
  removeItem(key: string): unknown;
  getAllKeys?(): readonly string[] | Promise<readonly string[]>;
}

/** The part of React Native's NetInfo that bellhop.js uses. */
export interface NetInfo {
  addEventListener(listener: (state: { isConnected: boolean | null; type: string }) => void): () => void;
}

/** The part of React Native's AppState that bellhop.js uses. */
export interface AppState {
  readonly currentState: string;
  addEventListener(type: "change", listener: (state: string) => void): { remove(): void };
}

/** Where a bell keeps its state between two starts. */
export interface Storage {
  get(key: string): Promise<string | null>;
  /** strict: survives a power failure. */
  set(key: string, value: string, durability?: "strict"): Promise<void>;
  remove(key: string): Promise<void>;
  /** Returns the keys in sorted order. */
  keys(prefix: string): Promise<string[]>;
}

export interface Network {
  online(): boolean;
  /** `changed`: the device switched to another network, on which the old connections are dead. */
  listen(listener: (network: boolean | { online: boolean; changed?: boolean }) => void): () => void;
}

export interface Lifecycle {
  foreground(): boolean;
  listen(listener: (foreground: boolean) => void): () => void;
}

// MARK: The bell

/** The interface that React's `useSyncExternalStore` expects. */
export interface Store<Snapshot> {
  /** Returns the same object until it changes. */
  get(): Snapshot;
  subscribe(listener: () => void): () => void;
}

export interface Connection {
  status: Status;
  /** Number of consecutive failed tries. */
  tries: number;
  /** Time of the next try (ms since 1970), while waiting for it. */
  retryAt: number | null;
  streamId: string | null;
  /** The topics that the stream is subscribed to. */
  topics: string[];
  /** Why the stream is not live. */
  reason: Refusal | null;
  /** Topics that the service refused, with the reason. They are requested again when the user's access may have
   * changed. */
  refused: Record<string, Refusal>;
}

export interface Refusal {
  code: string;
  status?: number;
  detail?: string | null;
}

export interface SendOptions {
  /** The Idempotency-Key. */
  key?: string;
  headers?: Record<string, string>;
}

export interface Bell {
  readonly user: string | null;
  readonly connection: Store<Connection>;
  /** The number of writes that wait to be sent. */
  readonly outbox: Store<{ waiting: number }>;
  /** Subscribes to events of the stream, "outbox:sent", "outbox:refused" and events of stores, by name. */
  on<Name extends keyof KnownEvents>(name: Name, listener: (event: KnownEvent<Name>) => void): () => void;
  /** Subscribes to all events, including events of the app that `OwnEvents` does not declare. */
  on(name: "*", listener: (event: KnownEvent) => void): () => void;
  on<Name extends string>(name: Name & UndeclaredName<Name>, listener: (event: UndeclaredEvent) => void): () => void;
  /** Rejects if there was no answer; a refusal is an answer. */
  get<Path extends string>(path: PathOf<"GET", Path>): Promise<AnswerOf<"GET", Path>>;
  /** Rejects if there was no answer; a refusal is an answer. The last argument holds the headers. */
  call<Given extends Method, Path extends string>(
    method: Given, path: PathOf<Given, Path>, ...more: BodyAnd<Given, Path, Record<string, string>>
  ): Promise<AnswerOf<Given, Path>>;
  /** Sends a write through the outbox: in order, even after a restart. */
  send<Given extends Method, Path extends string>(
    method: Given, path: PathOf<Given, Path>, ...more: BodyAnd<Given, Path, SendOptions>
  ): Promise<AnswerOf<Given, Path>>;
  /** `refused` is called for each topic that the service refuses; the other topics are still delivered. */
  subscribe(topics: string[], refused?: (refusal: { topic: string; problem: Refusal }) => void): () => void;
  /** Retries refused and unreachable connections immediately. */
  retry(): void;
  /** Reports that the app shows another of its screens: outdated counts are fetched. */
  tabSwitch(): void;
  signIn(user?: string | null): void;
  /** Signs the user out. Unsent writes are deleted from the storage, and the promise returns them in order. A write
   * whose `tried` is not null may have been executed. Resolves with null if `mayDiscard` of `offline` returned false. */
  signOut(): Promise<Item[] | null>;
  close(): void;
  /** For the `X-Client-Id` of the app's own writes to its backend, so that their echoes are recognized
   * (R-SCH-FR-005). */
  readonly clientId: string;
}
