// The types of bellhop.js: those that an app meets, and those that its parts share.

/** What `connect` is given. */
export interface Options {
  /** Where the service is: `https://bells.example`. */
  url: string;
  /** Asked for whenever a new one is needed; `fresh`: the last one does not serve any more. */
  token: string | ((wanted: { fresh: boolean }) => string | null | Promise<string | null>);
  /** Shared topics: `queue:s1`. */
  topics?: string[];
  /** The token's `sub`. With it, writes survive a start without a network, when there is no token yet. */
  user?: string;
  /** A Storage, or an AsyncStorage; else IndexedDB, else memory. */
  storage?: any;
  /** A Network, or NetInfo. */
  network?: any;
  /** A Lifecycle, or AppState. */
  lifecycle?: any;
  /** Plays a notification's haptics and sound. */
  player?: (haptic: any, sound: boolean) => void;
  transport?: "auto" | "fetch" | "xhr" | Transport;
  /** off: a stream of this tab's own. To the core, `tabs` of bellhop.js/tabs is given. */
  tabs?: "auto" | "off" | Tabs;
  fetch?: typeof fetch;
  clock?: Clock;
  /** How the client behaves on a bad network. A page with limits does not share its stream by a worker. */
  limits?: Limits;
}

/** Times in milliseconds. */
export interface Limits {
  /**
   * How long the stream stays open in the background; null: for ever. The default is 30,000 on phones (React Native and
   * mobile browsers), where an open stream costs battery, and null elsewhere. At the foreground the stream resumes behind
   * its last event.
   */
  backgroundMs?: number | null;
  /** Tries that may fail in a row: 10. */
  triesMax?: number;
  /** The first wait before another try, which doubles: 1,000, until the stream's `retry:` names another. */
  firstMs?: number;
  /** The longest wait: 30,000. */
  delayMsMax?: number;
  /** The longest wait that the service may ask for: 3,600,000. */
  serverMsMax?: number;
  /** The longest time until a stream is ready: 10,000. */
  connectMs?: number;
  /** A stream that is silent for longer is given up: 60,000. */
  silenceMs?: number;
  /** A stream that ends sooner counts as a failed try: 10,000. */
  stableMs?: number;
  /** The least time between two tries that the network or the foreground causes: 1,000. */
  wakeMs?: number;
  /** At the foreground, a stream that was silent for longer is opened again: 35,000. */
  doubtMs?: number;
  /** Limits of the outbox (machines/outbox.js). */
  outbox?: { [name: string]: number };
  /** Limits of the polling of counts (machines/reconciliation.js). */
  polling?: { [name: string]: number };
}

/** A feature that a bell may have: `bell.badges`. */
export interface Feature<Made> {
  key?(): any;
  /** What subscribes to rows, of a feature that shows some. */
  tables?: any;
  make(bell: any): Made;
  isKeyed?: false;
}
/** One store for each of what it is called with: `bell.queue("s1")`. */
export interface KeyedFeature<Names extends any[], Made> {
  tables?: any;
  /** What tells two stores apart, where that is not the names as they are given. */
  key?(...names: Names): any;
  make(bell: any, ...names: Names): Made;
  isKeyed: true;
}
export type AnyFeature = Feature<any> | KeyedFeature<any[], any>;
/** What a bell has of the features that it is given. */
export type StoresOf<Given> = {
  readonly [Name in keyof Given]: Given[Name] extends KeyedFeature<infer Names, infer Made>
    ? (...names: Names) => Made : Given[Name] extends Feature<infer Made> ? Made : never;
};

export interface Event {
  name: string;
  data: any;
  /** "" where the event is not replayed. */
  id: string;
}

/** Status 0: not answered at all. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: any;
  /** What the service asks to wait. */
  retryAfterMs?: number;
}

export interface Clock {
  now(): number;
  random(): number;
  /** Returns what cancels it. */
  after(ms: number, run: () => void): () => void;
}

// MARK: Machines and stores

/** Each has `now` (ms since 1970) and `random` (0 to 1). A feature's machine receives, beside what its store's commands
 * give to `receive`:
 *
 *     {type: "start", user, connection}         once, first
 *     {type: "event", event: {name, data, id}}  from the stream; `id` is "" where the event is not replayed
 *     {type: "answer", as, status, headers, body, action}  to an action named `as`; status 0: not answered at all.
 *                                               as "reconcile": the counts of GET /v1/badges as they were just polled
 *     {type: "connection", status, reconnected} `reconnected`: live again after a break, so what is shown is old
 *     {type: "lifecycle", foreground}           the app was opened, or left
 *     {type: "watch", watched}                  the first listener came, or the last one left
 *     {type: "timer", name}                     that an action set
 *     {type: "user", user, signedIn}            somebody else is signed in, or nobody: forget everything
 */
export interface Input {
  type: string;
  [member: string]: any;
}

/** What a feature's machine may ask for:
 *
 *     {do: "fetch", path, as, headers?}         GET
 *     {do: "call", method, path, body?, headers?, as}  now or not at all
 *     {do: "send", method, path, body?, headers?, key?, as}  through the outbox: in order, and also after a restart
 *     {do: "timer", name, at}                   one of each name; `at: null` takes it back
 *     {do: "subscribe", topics}                 the topics of this store, in place of those before
 *     {do: "tables", tables, lastEventId?, as?} the tables of this store's subscriptions, in place of those before; put
 *                                               again on each new stream. `lastEventId`: what changed since comes first
 *     {do: "play", haptic, sound}               to the app's player
 *     {do: "tell", name, data}                  to those who listen with `bell.on`
 */
export interface Action {
  do: string;
  as?: string;
  [member: string]: any;
}

export interface Machine<State, Options> {
  initial(options: Options): State;
  receive(state: State, input: any): { state: State; actions: Action[] };
  /** What `get` shows, where it is not the whole state. */
  view?(state: State): any;
}

export interface Listeners<Value> {
  tell(value: Value): void;
  add(listener: (value: Value) => void): () => void;
  size(): number;
}

/** A machine at work. */
export interface Running<State> {
  get(): State;
  /** The promise is that of the answers to what the machine asked for. */
  receive(input: Input): Promise<any[]>;
  onChange(listener: (state: State) => void): () => void;
  close(): void;
}

export type Status = "connecting" | "live" | "waiting" | "unreachable" | "offline" | "refused" | "closed";

/** A write in the outbox. */
export interface Item {
  /** The claims that decide what its tokens may do; absent: unknown. */
  identity?: string | null;
  /** The Idempotency-Key. */
  key: string;
  /** Where it stands among the others, also those of other tabs: texts in the order of their making. */
  order: string;
  method: string;
  path: string;
  body?: any;
  headers?: Record<string, string>;
  /** Since when it may have been done; null: it has never left. */
  tried: number | null;
  /** The tab that made it. */
  tab?: string;
}

// MARK: The stream

export interface ServerSentEvent extends Event {
  /** The id is its own, not that of an event before. */
  hasId: boolean;
}

/** What a transport tells of one connection, `end` at most once and last. */
export interface Heard {
  head(head: { status: number; type: string; retryAfter: string | null; body: () => Promise<string> }): void;
  text(text: string): void;
  end(end: { detail: string; isFull?: boolean }): void;
}

/** Returns how to abort. */
export type Transport = (url: string, headers: Record<string, string>, heard: Heard) => () => void;

/** What the holder of the stream says to all tabs. */
export type Saying =
  | { say: "event"; event: Event }
  | { say: "cursor"; id: string }
  | { say: "status"; status: any }
  | { say: "answered"; item: Item; answer: any }
  | { say: "waiting"; count: number }
  | { say: "tables"; answer: { status: number; body: any; refused: Record<string, any> } };

/** Gives a token other than the spent one, or null. */
export type Provider = (wanted: { spent: string | null }) => string | null | Promise<string | null>;

export interface Want {
  topics: string[];
  tables: any[];
  foreground: boolean;
}

export interface Member extends Want {
  isTab: boolean;
  line: any;
  gone: AbortController;
}

/** How tabs share a stream: what bellhop.js/tabs exports. */
export type Tabs = (parts: any) => any;

// MARK: The device

/** In the shape of React Native's AsyncStorage. */
export interface Storage {
  get(key: string): Promise<string | null>;
  /** strict: also when the power fails. */
  set(key: string, value: string, durability?: "strict"): Promise<void>;
  remove(key: string): Promise<void>;
  /** In the order of their texts. */
  keys(prefix: string): Promise<string[]>;
}

export interface Network {
  online(): boolean;
  /** `changed`: it is another network, on which the old connections are dead. */
  listen(listener: (network: { online: boolean; changed?: boolean }) => void): () => void;
}

export interface Lifecycle {
  foreground(): boolean;
  listen(listener: (foreground: boolean) => void): () => void;
}

// MARK: The bell

/** In the contract of React's `useSyncExternalStore`. */
export interface Store<Snapshot> {
  /** The same object until it changes. */
  get(): Snapshot;
  subscribe(listener: () => void): () => void;
}

export interface Connection {
  status: Status;
  /** That failed in a row. */
  tries: number;
  /** When it is tried again (ms since 1970), while it waits. */
  retryAt: number | null;
  streamId: string | null;
  /** Those that the stream has. */
  topics: string[];
  /** Why it is not live. */
  reason: Refusal | null;
  /** Topics that the service refused, and why. They are asked for again when the user may hear of something else. */
  refused: Record<string, Refusal>;
}

export interface Refusal {
  code: string;
  status?: number;
  detail?: string | null;
}

export interface Bell {
  readonly user: string | null;
  readonly connection: Store<Connection>;
  /** The writes that wait. */
  readonly outbox: Store<{ waiting: number }>;
  /** Events of the stream by their name, or all by "*"; and "outbox:sent", "outbox:refused", and what stores tell. */
  on(name: string, listener: (event: Event) => void): () => void;
  get(path: string): Promise<Answer>;
  /** Rejects where nothing was answered; a refusal is an answer. */
  call(method: string, path: string, body?: any, headers?: Record<string, string>): Promise<Answer>;
  /** Through the outbox: in order, also after a restart. */
  send(method: string, path: string, body?: any, how?: { key?: string; headers?: Record<string, string> }):
    Promise<Answer>;
  /** `refused` is called for each of the topics that the service refuses; the others come all the same. */
  subscribe(topics: string[], refused?: (refusal: { topic: string; problem: Refusal }) => void): () => void;
  /** Tries again at once what was refused, or could not be reached. */
  retry(): void;
  /** The app shows another of its screens: counts that are old are asked for. */
  tabSwitch(): void;
  signIn(user?: string | null): void;
  /** Nobody is signed in. Writes that were not sent are deleted from the storage; the promise has them, in their order. One
   * whose `tried` is not null may have been done. */
  signOut(): Promise<Item[]>;
  close(): void;
  /** For `X-Client-Id` of the app's own writes to its backend, so that their echo is known (R-SCH-FR-005). */
  readonly clientId: string;
}
