// The features that a bell can have: `connect({ url, token, features: { badges, queue } })` of bellhop.js/core.
// Payloads have the service's own types: see /openapi.yaml.
import type { Answer } from "./contract.js";
import type { Refusal, Row } from "./types.js";
import type * as models from "./models.js";

export { badges } from "./stores/badges.js";
export { feed, leaderboard } from "./stores/community.js";
export { conversation, conversations } from "./stores/conversations.js";
export { notifications } from "./stores/notifications.js";
export { requests } from "./stores/requests.js";
export { invalidation, rows, visibleRows } from "./stores/rows.js";
export { booking, dj, queue } from "./stores/shop.js";

/** The interface of every store, as React's `useSyncExternalStore` expects it. */
export interface Store<Snapshot> {
  /** Returns the same object until it changes. */
  get(): Snapshot;
  subscribe(listener: () => void): () => void;
  /** Fetches the current state from the service. The shown state stays until the answer comes. */
  refresh(): Promise<Answer | null>;
}

/** The service's answer; null if there was nothing to request. */
export type Answered = Promise<Answer | null>;
/** Why the service refused; `status` is 0 if it could not be reached. */
export interface Problem {
  status: number;
  code: string;
  detail: string;
  /** The place that the service refused in the request, for tables: `/tables/0/filter`. */
  pointer?: string;
}

interface Loaded {
  isLoaded: boolean;
  problem: Problem | null;
}

/** The state of a store with a topic, which the service may refuse. */
interface Watched {
  isLoaded: boolean;
  problem: Problem | Refusal | null;
}

export interface Badges {
  messages: number;
  requests: number;
  bell: number;
  total: number;
  version: number;
  epoch: string;
  asOf: string;
}

export interface BadgesStore extends Store<Badges | null> {
  expect<T>(by: { messages?: number; requests?: number; bell?: number }, write: Promise<T>): Promise<T>;
}

export interface Haptic {
  notification: models.Haptic["notification"];
  impacts: string[];
  pulses: number;
}

/** The text of a notification that is played, for a local notification of the app. */
export interface PlayedText {
  id: string;
  title: string;
  text: string;
  /** A text without details, for a locked screen. */
  lockScreen: string;
}

export interface Notification {
  id: string;
  eventId: string | null;
  userId: string;
  type: string;
  category: string;
  priority: models.Priority;
  title: string;
  message: string;
  lockScreen: string;
  data: { [name: string]: unknown };
  haptic: Haptic | null;
  sound: boolean;
  createdAt: string;
  seenAt: string | null;
  readAt: string | null;
  archivedAt: string | null;
}

export interface Preferences {
  sound: boolean;
  haptics: boolean;
  quietHours: { start: string; end: string } | null;
  timeZone: string;
}

export interface Notifications extends Loaded {
  items: readonly Notification[];
  preferences: Preferences;
  /** Whether `more` can load older ones. */
  hasMore: boolean;
}

type Which = { upTo?: string; category?: string };
export interface NotificationCommands {
  /** Loads the next older notifications. */
  more(): Answered;
  markSeen(id: string): Answered;
  markUnseen(id: string): Answered;
  markRead(id: string): Answered;
  markUnread(id: string): Answered;
  archive(id: string): Answered;
  unarchive(id: string): Answered;
  remove(id: string): Answered;
  markAllSeen(which?: Which): Answered;
  markAllRead(which?: Which): Answered;
  archiveAll(which?: Which): Answered;
  setPreferences(set: Partial<Preferences>): Answered;
}

export interface LastMessage {
  id: string;
  /** Null while the message is being sent. */
  sequence: number | null;
  /** Null if the user sends it before the stream has named the user. */
  senderId: string | null;
  preview: string | null;
  sentAt: string;
}
export interface Conversation {
  id: string;
  kind: models.Conversation["kind"];
  title: string | null;
  createdBy: string | null;
  createdAt: string;
  memberCount: number;
  lastSequence: number;
  order: string;
  lastMessage: LastMessage | null;
  readPosition: number | null;
  unread: number | null;
}

export interface Conversations extends Loaded {
  items: readonly Conversation[];
  hasMore: boolean;
}

export interface Message {
  id: string;
  conversationId: string;
  sequence: number;
  senderId: string;
  text: string;
  sentAt: string;
  deletedAt: string | null;
}

type Unsent = { id: string; text: string; sentAt: string };
export interface Thread extends Loaded {
  conversationId: string;
  messages: readonly Message[];
  sending: readonly Unsent[];
  refused: readonly (Unsent & { problem: Problem })[];
  unread: number | null;
  isRemoved: boolean;
  hasEarlier: boolean;
}

export interface ThreadCommands {
  send(text: string, message?: { id?: string }): Answered;
  read(sequence?: number): Answered;
  earlier(): Answered;
  remove(messageId: string): Answered;
  retry(messageId: string): Answered;
  discard(messageId: string): Answered;
}

export interface Requests extends Loaded {
  items: readonly models.UserRequest[];
  hasMore: boolean;
}

export interface RequestCommands {
  accept(id: string): Promise<Answer<models.UserRequestWithBadges, 200> | null>;
  decline(id: string): Promise<Answer<models.UserRequestWithBadges, 200> | null>;
  /** Takes back an open request of the user. */
  withdraw(id: string): Answered;
  /** Marks the requests to the user as seen, up to the newest that is shown. */
  markSeen(): Answered;
  /** Asks another user. */
  ask(draft: models.BodyOf<"POST", "/v1/requests">): Answered;
  more(): Answered;
}

export interface Queue extends Watched {
  /** As returned by `GET /v1/shops/{id}/queue`; null until the first answer. */
  status: models.QueueStatus | null;
  isLive: boolean;
}

export interface Booking extends Loaded {
  /** As returned by `GET /v1/bookings/{id}`. An event that comes before the first answer has only some members. */
  booking: (Pick<models.Booking, "id" | "status" | "version" | "epoch" | "estimatedCompletion"> &
    Partial<models.Booking>) | null;
  isPending: boolean;
}

export interface BookingCommands {
  cancel(): Promise<Answer<models.Booking, 200> | null>;
  /** Does nothing while another change is pending. */
  change(set: models.BodyOf<"PATCH", "/v1/bookings/{id}">): Promise<Answer<models.Booking, 200> | null>;
}

export interface Track {
  trackId: string;
  trackName: string;
  artistName: string;
  albumArt: string | null;
  addedBy: string;
  addedAt: string;
  upvotes: number;
  downvotes: number;
  score: number;
  userVote: models.DJVote;
}

export interface DJ extends Watched {
  isActive: boolean;
  currentTrackId: string | null;
  queue: readonly Track[];
  isLive: boolean;
}

export interface DJCommands {
  vote(trackId: string, vote: "up" | "down" | "none"): Answered;
  add(track: { trackId: string; trackName: string; artistName: string; albumArt?: string | null }): Answered;
}

export interface Line {
  userId: string;
  displayName: string | null;
  score: number;
  rank: number;
  position: number;
}

export interface Leaderboard extends Watched {
  lines: readonly Line[];
  me: (Line & { version: number; epoch: string }) | null;
  entries: number;
  isBehind: boolean;
  isLive: boolean;
}

export interface Post {
  id: string;
  authorId: string;
  sequence: number;
  visibility: models.Post["visibility"];
  text: string;
  media: string[];
  createdAt: string;
  likeCount: number;
  repostCount: number;
  liked: boolean;
  reposted: boolean;
}

export interface Feed extends Loaded {
  posts: readonly Post[];
  newCount: number;
  isMore: boolean;
  hasMore: boolean;
}

export interface FeedCommands {
  showNew(): Answered;
  more(): Answered;
  like(postId: string): Answered;
  unlike(postId: string): Answered;
  repost(postId: string): Answered;
  unrepost(postId: string): Answered;
}

export interface VisibleRows {
  ids: readonly string[];
  rows: Readonly<Record<string, Row>>;
  isLive: boolean;
  problem: Problem | null;
}

export interface VisibleRowsStore extends Store<VisibleRows> {
  show(ids: (string | number)[]): Answered;
  /** Shows the user's own write of a row at once, before its event comes. */
  apply(row: Row): Answered;
  pause(): Answered;
  resume(): Answered;
  stop(): Answered;
}

export interface RowOptions {
  schema?: string;
  column?: string;
  event?: "*" | "INSERT" | "UPDATE" | "DELETE";
  select?: string[];
}

export interface FilteredRows<Row> {
  /** By id, in no particular order. */
  rows: Readonly<Record<string, Row>>;
  /** Whether the service has accepted the filter on the present stream. */
  isLive: boolean;
  /** Whether changes were missed: fetch the rows again, and call `load`. */
  isStale: boolean;
  problem: Problem | null;
}

export interface FilteredRowsStore<Row> extends Omit<Store<FilteredRows<Row>>, "refresh"> {
  /** Replaces the rows by those that the app has fetched. Newer rows of the stream stay. */
  load(rows: readonly Row[]): Answered;
  /** Shows the user's own write of a row at once, before its event comes. */
  apply(row: Partial<Row>): Answered;
}

export interface FilterOptions extends RowOptions {
  /** A filter of PostgREST's grammar, such as `list_id=eq.7`. */
  filter: string;
}

export interface Invalidation {
  isLive: boolean;
  isStale: boolean;
  staleKeys: readonly (readonly unknown[])[];
}

export interface InvalidationStore extends Omit<Store<Invalidation>, "refresh"> {
  watch(key: readonly unknown[], refetch: (reason: string) => void, how?: { isVisible?: boolean }): {
    show(): void;
    hide(): void;
    stop(): void;
  };
  mutated(table: string, recordId: string | number): void;
  refetch(key?: readonly unknown[]): void;
}

export interface Features {
  readonly badges: BadgesStore;
  readonly notifications: Store<Notifications> & NotificationCommands;
  readonly conversations: Store<Conversations> & { more(): Answered };
  conversation(id: string): Store<Thread> & ThreadCommands;
  /** The requests to the user, by default, or those that the user has made. */
  requests(direction?: "incoming" | "outgoing"): Store<Requests> & RequestCommands;
  queue(shopId: string): Store<Queue>;
  booking(id: string): Store<Booking> & BookingCommands;
  dj(shopId: string): Store<DJ> & DJCommands;
  leaderboard(challengeId: string): Store<Leaderboard>;
  feed(): Store<Feed> & FeedCommands;
  visibleRows(table: string, options?: RowOptions): VisibleRowsStore;
  /** The rows of a table that match a filter, kept up to date while the store has a listener. */
  rows<Each extends Row = Row>(table: string, options: FilterOptions): FilteredRowsStore<Each>;
  readonly invalidation: InvalidationStore;
}
