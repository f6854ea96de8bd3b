// Types that the parts of bellhop.js share and no app meets: they name modules that have no declarations.
import type { Answer, Clock, Item, Options, Provider, Saying, Status, Storage, Transport, Want } from "./types.js";

export interface ConnectionState {
  status: Status;
  /** Those asked for. */
  topics: string[];
  online: boolean;
  foreground: boolean;
  /** The number of the connection; what an earlier one still says is not heard. */
  attempt: number;
  /** That failed in a row. */
  tries: number;
  triedAt: number;
  /** The last byte. */
  heardAt: number;
  /** From `stream:ready` on. */
  streamId: string | null;
  /** The topics that the stream has. */
  ready: string[];
  retryAt: number | null;
  /** The stream's own `retry:`, in place of the first wait. */
  retryMs: number | null;
  /** What `stream:closing` said. */
  closing: { reason?: string; retryAfterMs?: number } | null;
  /** No try before this: the server asked for it. */
  serverAt: number;
  /** The last token was refused once. */
  fresh: boolean;
  /** Why the service refused a topic. */
  refused: Record<string, any>;
  /** Those that are asked for once more. */
  again: string[];
  /** The topics of the last `subscribe`. */
  asked: string[];
  /** How many new topics are asked for at once, while it is not known which one is refused; null: all. */
  limit: number | null;
  /** The stream was refused with its topics: it is opened without any. */
  bare: boolean;
  /** Why it is not live: {code, status?, detail?}. */
  reason: any;
  /** The claims that decide what the token may do; null: unknown. */
  identity: string | null;
  /** The user and the tenant that a stream must be of; null: not known yet. */
  user: string | null;
  tenant: string | null;
  limits: typeof import("./machines/connection.js").defaults;
}

export interface TokenState {
  token: string | null;
  /** Whose it is. */
  user: string | null;
  /** The claims that decide what it may do; null: unknown. */
  identity: string | null;
  /** By this device's clock; null: unknown. */
  expiresAt: number | null;
  gotAt: number;
  /** When the next one is asked for, while a stream lives by this one. */
  refreshAt: number | null;
  asking: boolean;
  /** A token that the service refused, or that runs out: the answer must be another. */
  spent: string | null;
  /** The token that there is was refused: nobody is given it any more. */
  refused: boolean;
  /** How far the service's clock is ahead of this device's. */
  skewMs: number;
  streamId: string | null;
  /** The token that the open stream lives by. */
  streamToken: string | null;
  renewing: boolean;
  /** Why there is none. */
  problem: any;
}

export interface ReconciliationState {
  connected: boolean;
  foreground: boolean;
  etag: string | null;
  askedAt: number;
  /** The last answer that was good. */
  syncedAt: number;
  asking: boolean;
  /** Asked for while one was under way. */
  due: boolean;
  /** What the service asked for. */
  notBefore: number;
  limits: typeof import("./machines/reconciliation.js").defaults;
}

export interface OutboxState {
  /** Items of another identity are not sent. */
  identity: string | null;
  /** In order. */
  items: Item[];
  online: boolean;
  /** What an earlier start of the app left has been read. */
  restored: boolean;
  /** The key. */
  sending: string | null;
  /** In a row. */
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
  /** The prefix of what is stored: service and identity. */
  scope: string;
  user: string | null;
  /** The claims that decide what its tokens may do; null: unknown. */
  identity: string | null;
  clientId: string;
  limits?: any;
  provider: Provider;
  /** What subscribes to rows, where a page shows some. */
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
  /** Of the lock and the channels: service and identity. */
  name: string;
  tab: string;
  /** false: the worker. */
  isTab: boolean;
  clock: Clock;
  locks?: any;
  Channel?: any;
  makeHolder(parts: { emit: (saying: Saying) => void; provider: Provider; rows?: RowLine }):
    ReturnType<typeof import("./tabs/holder.js").holder>;
  /** `isMine`: of an answer, that this tab is to tell the app. */
  emit(saying: Saying, isMine: boolean): void;
  /** Of a tab. */
  provider?: (wanted: { spent: string | null }) => Promise<string | null>;
  /** Calls back when it runs, or will not. */
  startWorker?: (enter: () => void) => void;
  watch?: { everyMs: number; answerMs: number };
}

/** How tabs share a stream; null where they cannot. */
export type ShareTabs = (parts: { options: Options; url: string; user: string | null; identity: string | null } &
  Omit<GroupParts, "isTab" | "locks" | "Channel" | "startWorker" | "watch">) =>
  ReturnType<typeof import("./tabs/group.js").group> | null;
