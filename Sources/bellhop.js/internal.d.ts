// Internal types that the parts of bellhop.js share. They are not for apps: they name modules without declarations.
import type { Answer, Clock, Item, Options, Provider, Saying, Status, Storage, Transport, Want } from "./types.js";

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
  /** The claims that decide what the token may do; null if unknown. */
  identity: string | null;
  /** The user and the tenant that a stream must belong to; null until known. */
  user: string | null;
  tenant: string | null;
  limits: typeof import("./machines/connection.js").defaults;
}

export interface TokenState {
  token: string | null;
  /** The user of the token. */
  user: string | null;
  /** The claims that decide what the token may do; null if unknown. */
  identity: string | null;
  /** By the device's clock; null if unknown. */
  expiresAt: number | null;
  gotAt: number;
  /** When to request the next token, while a stream uses this one. */
  refreshAt: number | null;
  asking: boolean;
  /** A token that was refused or is about to expire: the app must return another. */
  spent: string | null;
  /** The present token was refused, so it is not given out again. */
  refused: boolean;
  /** How far the service's clock is ahead of the device's. */
  skewMs: number;
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
  online: boolean;
  /** Whether the writes of an earlier start of the app have been read. */
  restored: boolean;
  /** The key of the write being sent. */
  sending: string | null;
  /** Number of consecutive failures. */
  failures: number;
  retryAt: number;
  limits: typeof import("./machines/outbox.js").defaults;
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
  /** The claims that decide what the tokens may do; null if unknown. */
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

export interface GroupParts {
  /** Name of the lock and the channels: service and identity. */
  name: string;
  tab: string;
  /** false for the worker. */
  isTab: boolean;
  clock: Clock;
  locks?: any;
  Channel?: any;
  makeHolder(parts: { emit: (saying: Saying) => void; provider: Provider; rows?: RowLine }):
    ReturnType<typeof import("./tabs/holder.js").holder>;
  /** `isMine`: whether this tab must deliver an answer to the app. */
  emit(saying: Saying, isMine: boolean): void;
  /** Only for a tab. */
  provider?: (wanted: { spent: string | null }) => Promise<string | null>;
  /** Calls back when the worker runs, or when it cannot. */
  startWorker?: (enter: () => void) => void;
  watch?: { everyMs: number; answerMs: number };
}

/** How tabs share a stream; null if they cannot. */
export type ShareTabs = (parts: { options: Options; url: string; user: string | null; identity: string | null } &
  Omit<GroupParts, "isTab" | "locks" | "Channel" | "startWorker" | "watch">) =>
  ReturnType<typeof import("./tabs/group.js").group> | null;
