// Written by .ci/client-models from openapi.yaml: change that, and run it.

/** A word that only a newer service knows. */
export type Word = string & Record<never, never>;

/** A page of a list; `next` is the cursor of the next one. */
export interface Page<Item> {
  items: Item[];
  next: string | null;
}

export type GetBadgesInclude = "conversations" | Word;

export interface Badges {
  /** Unread messages. */
  messages: number;
  /**
   * Open requests to the user that are not seen. Counted from the requests themselves, independent of the limit on
   * notifications.
   */
  requests: number;
  /** All other unseen notifications, except those of the category `message`. */
  bell: number;
  total: number;
  /** Increases with every change. Within one epoch, the larger version is the newer one. */
  version: number;
  epoch: string;
  asOf: string;
  /** Only with `include=conversations`: the conversations with unread messages. Their counts add up to `messages`. */
  conversations?: BadgesConversation[];
}

export interface BadgesConversation {
  conversationId: string;
  unread: number;
}

export interface Event {
  id: string;
  type:
    | "visit.created" | "visit.updated" | "visit.cancelled" | "visit.completed" | "auth.login" | "auth.signup"
    | "auth.password_changed" | "auth.profile_updated" | "auth.logout" | "emergency.accepted"
    | "emergency.arriving" | "emergency.completed" | "emergency.cancelled" | Word;
  userId: string;
  /** Other members are ignored and never reach a device. */
  data?: EventDetails | null;
}

/** Other members are ignored and never reach a device. */
export interface EventDetails {
  visitId?: string | null;
  visitType?: string | null;
  hospital?: string | null;
  status?: string | null;
  previousStatus?: string | null;
  emergencyId?: string | null;
  /** Names of the changes, as a list or as the keys of an object; at most 100. */
  changes?: unknown;
}

export interface Notified {
  notification: Notification | null;
}

export interface Notification {
  id: string;
  eventId: string | null;
  userId: string;
  type: string;
  category: string;
  priority: Priority;
  title: string;
  message: string;
  /** Text for the lock screen, which does not reveal the content. */
  lockScreen: string;
  data: { [name: string]: unknown };
  haptic: Haptic | null;
  sound: boolean;
  createdAt: string;
  seenAt: string | null;
  readAt: string | null;
  archivedAt: string | null;
}

export type Priority = "LOW" | "NORMAL" | "HIGH" | "URGENT" | Word;

export interface Haptic {
  notification: "success" | "warning" | "error" | Word;
  impacts: string[];
  pulses: number;
}

export type ListNotificationsState = "unseen" | "unread" | "archived" | "all" | Word;

export interface NotificationDraft {
  userId: string;
  id?: string | null;
  type?: string | null;
  category: string;
  priority: Priority;
  title: string;
  message: string;
  lockScreen?: string | null;
  /** At most 4 KiB as JSON. */
  data?: { [name: string]: unknown } | null;
}

export interface ChangeNotificationsBody {
  /** Id of the newest notification to change. */
  upTo: string;
  category?: string | null;
  set: NotificationStateChange;
}

/** At least one member is required. `seen: false` cannot be combined with `read: true` or `archived: true`. */
export interface NotificationStateChange {
  seen?: boolean | null;
  read?: boolean | null;
  archived?: boolean | null;
}

export interface ChangedCount {
  changed: number;
  badges: Badges;
}

export interface NotificationWithBadges {
  notification: Notification;
  badges: Badges;
}

export interface BadgesAfter {
  badges: Badges;
}

export interface CreateStreamTicketBody {
  topics?: string[] | null;
}

export interface StreamTicket {
  ticket: string;
  expiresAt: string;
}

export interface StreamState {
  id: string;
  topics: string[];
  tables: WantedTable[];
  events: number;
  bytes: number;
  waitingBytes: number;
}

export interface WantedTable {
  /** Id of the subscription in events. Defaults to its index in the list. */
  id?: string;
  schema?: string;
  /**
   * A declared table, or `posts` in the schema `bellhop`. Filters on `posts` can use the columns id, author_id,
   * visibility, sequence, like_count and repost_count. Its updates are delivered as `engagement_update`.
   */
  table: string;
  event?: "*" | "INSERT" | "UPDATE" | "DELETE" | Word;
  /**
   * Conditions `column=[not.]op.value`, separated by commas; all of them must hold. Operators: eq, neq, lt, lte, gt,
   * gte, in, like, ilike, is, isdistinct. `in.(…)` takes up to 1,000 values; `in.()` is the empty set. A number or a
   * time has at most 128 bytes. If the file of tables declares the types of the columns, values are compared by
   * type, and other columns are rejected.
   */
  filter?: string;
  /** Columns to send besides the primary key. Defaults to all columns. */
  select?: string[] | null;
}

export interface Subscriptions {
  topics: string[];
  tables: WantedTable[];
}

export interface ReplaceSubscriptionsBody {
  topics?: string[];
  tables?: WantedTable[];
  lastEventId?: string;
}

export interface RenewStreamTokenBody {
  token: string;
}

export interface TokenExpiry {
  expiresAt: string;
  identity: string;
}

export type RevokeBody = RevokeBodyByTokenId | RevokeBodyBySessionId | RevokeBodyByUserIdAndIssuedBefore;

export interface RevokeBodyByTokenId {
  tokenId: string;
}

export interface RevokeBodyBySessionId {
  sessionId: string;
}

export interface RevokeBodyByUserIdAndIssuedBefore {
  userId: string;
  issuedBefore: string;
}

export interface Revocation {
  revokedAt: string;
}

export interface OwnEvent {
  /** Name of the event. Its first part must not be one that the service uses for its own events. */
  event: string;
  /** Keys that receive the event, such as `user:ada`, `shop:s1:staff` or `everyone`. A receiver needs one of them. */
  to?: string[];
  /** A topic that the file of tables declares, such as `order:o1`. */
  topic?: string;
  /** Any JSON value of at most 16 KiB. */
  data: unknown;
  /**
   * Name of a state that the event carries completely. A newer event with this name replaces an older one that still
   * waits for a slow or resuming stream. Each topic has its own names; events to keys share the names of the tenant.
   */
  collapse?: string | null;
}

export interface Published {
  accepted: number;
}

export type TakeChangesFormat =
  | "supabase-webhook" | "supabase-realtime" | "broadcast-changes" | "debezium" | "cloudevents" | "batch" | Word;

export interface ChangeResult {
  accepted: number;
  duplicates: number;
  rejected: ChangeResultRejected[];
}

export interface ChangeResultRejected {
  index: number;
  pointer: string;
  reason: string;
}

export interface PushDevices {
  items: PushDevice[];
}

export interface PushDevice {
  id: string;
  platform: PushPlatform;
  /** Bundle id of the app (APNs); null for the one of the settings. */
  app: string | null;
  environment: "production" | "sandbox" | Word;
  createdAt: string;
  /** Time of the last registration. */
  registeredAt: string;
}

export type PushPlatform = "apns" | "fcm" | "webpush" | Word;

export interface PushDeviceDraft {
  platform: PushPlatform;
  /** Device token of APNs (two hexadecimal digits for each byte) or registration token of FCM. */
  token?: string;
  subscription?: PushSubscription;
  /** Bundle id of the app, for APNs. */
  app?: string | null;
  /** `sandbox` for development builds (APNs). */
  environment?: "production" | "sandbox" | Word | null;
}

/** What `PushSubscription.toJSON()` of a browser returns. */
export interface PushSubscription {
  /**
   * Must begin with `https://` and name the host of a known push service, written as in RFC 3986: a host name of
   * letters, digits, hyphens and dots, no user, no fragment, and no `.` or `..` in the path.
   */
  endpoint: string;
  expirationTime?: number | null;
  keys: PushSubscriptionKeys;
}

export interface PushSubscriptionKeys {
  /** Public key of the browser, in base64url. */
  p256dh: string;
  /** Secret of 16 bytes, in base64url. */
  auth: string;
}

export interface Me {
  identity: string;
  userId: string;
  tenant: string;
  role: string;
  isService: boolean;
  tier: string | null;
  scope: string[];
  omittedKeys: number;
  /** Keys in the token. Present only if the scope differs because of memberships. */
  claims?: string[];
  /** What a backend may do. Present only if its key or its token limits it. */
  capabilities?: ("notify" | "publish" | "rows" | "read" | "erase" | "manage" | Word)[];
  tokenId: string | null;
  sessionId: string | null;
  issuedAt: string | null;
  /** The end of 9999 for a service key, which does not expire. */
  expiresAt: string;
}

/** A feature set that is off has no members here. */
export interface Config {
  stream: ConfigStream;
  /** Limits of one stream's subscriptions and filters. Exceeding one is 422. */
  subscriptions: ConfigSubscriptions;
  /** How the service collects stale query keys before it sends them. */
  invalidations: ConfigInvalidations;
  /** Limits of a delivery of table changes. */
  changes?: ConfigChanges;
  /** Limits of the events that an app publishes. */
  publish?: ConfigPublish;
  /** Push messages to devices. */
  push: ConfigPush;
  /** The feature sets that are on. What belongs to no set is always on. */
  features: ("bell" | "chat" | "requests" | "social" | "shops" | "challenges" | "rows" | "publish" | Word)[];
  polling: ConfigPolling;
  rateLimit: ConfigRateLimit;
  requests: ConfigRequests;
  conversations?: ConfigConversations;
  userRequests?: ConfigUserRequests;
  posts?: ConfigPosts;
  dj?: ConfigDj;
  leaderboards?: ConfigLeaderboards;
}

export interface ConfigStream {
  heartbeatSeconds: number;
  retryMilliseconds: number;
  resumableHours: number;
  topicsMax: number;
  perUserMax: number;
}

/** Limits of one stream's subscriptions and filters. Exceeding one is 422. */
export interface ConfigSubscriptions {
  perStreamMax: number;
  requestBytesMax: number;
  idBytesMax: number;
  selectedColumnsMax: number;
  filterBytesMax: number;
  conditionsMax: number;
  /** Maximum number of values in one `in`. Split longer lists over several subscriptions. */
  valuesMax: number;
  valueBytesMax: number;
  /** Bytes of a number or a time in a filter. */
  numberBytesMax: number;
  valuesPerStreamMax: number;
  /** Maximum number of conditions such as `like.%word%`. */
  searchesPerStreamMax: number;
  /** Maximum number of characters between two `%` of a pattern. */
  patternRunMax: number;
}

/** How the service collects stale query keys before it sends them. */
export interface ConfigInvalidations {
  /** Length of the window for tables that do not declare their own. */
  windowMilliseconds: number;
  /** Maximum number of stale keys per window. Beyond it, the stream receives `stream:resync`. */
  keysPerStreamMax: number;
  /** Maximum number of causes per event. Beyond it, `causesComplete` is false. */
  causesPerEventMax: number;
}

/** Limits of a delivery of table changes. */
export interface ConfigChanges {
  bodyBytesMax: number;
  itemsMax: number;
  itemBytesMax: number;
  duplicatesKnownSeconds: number;
  /** Number of declared tables. Their names are not public. */
  tables: number;
}

/** Limits of the events that an app publishes. */
export interface ConfigPublish {
  eventsMax: number;
  dataBytesMax: number;
  keysMax: number;
}

/** Push messages to devices. */
export interface ConfigPush {
  /** Whether devices can be registered. */
  enabled: boolean;
  /** The platforms that are set up. */
  platforms: PushPlatform[];
  /** The `applicationServerKey` for `PushManager.subscribe`, in base64url; null without Web Push. */
  webPushKey: string | null;
}

export interface ConfigPolling {
  connectedSeconds: number;
  disconnectedSeconds: number;
  tabSwitchStaleSeconds: number;
}

export interface ConfigRateLimit {
  requests: number;
  windowSeconds: number;
}

export interface ConfigRequests {
  bodyBytesMax: number;
  idempotencyKeySeconds: number;
}

export interface ConfigConversations {
  membersMax: number;
  conversationsOfUserMax: number;
  textBytesMax: number;
  /** Maximum number of messages that one step back of the read position can mark as unread. */
  rewindMax: number;
  previewCharactersMax: number;
}

export interface ConfigUserRequests {
  /** Maximum number of open requests per requester. */
  openMax: number;
  /** Maximum number of requests that one PATCH marks as seen. */
  seenAtOnceMax: number;
}

export interface ConfigPosts {
  textBytesMax: number;
  mediaMax: number;
  /** Maximum length of one media URL. */
  mediaBytesMax: number;
  /** Maximum number of authors that a user can follow. */
  followedMax: number;
  /** Maximum value of `newCount`. If there are more, `newCountIsMore` is true. */
  newCountMax: number;
  pageMax: number;
  /** Minimum seconds between two engagement updates of a post. */
  tellingSeconds: number;
}

export interface ConfigDj {
  tracksMax: number;
  tracksPerUserMax: number;
  /** Maximum number of vote updates per shop. Further votes are combined into one update a second. */
  updatesPerSecondMax: number;
  /** Seconds for which a confirmed presence is valid. */
  presenceSeconds: number;
  /** Seconds for which a shop displays a code. */
  codeSeconds: number;
}

export interface ConfigLeaderboards {
  entriesMax: number;
  topDefault: number;
  topMax: number;
  /** Number of entries on each side of the caller. */
  aroundDefault: number;
  aroundMax: number;
  /** Number of lines that subscribers of a leaderboard receive live. */
  watchedTop: number;
  /** Seconds between two updates of a leaderboard. */
  updateSeconds: number;
}

export interface AuditEntry {
  /** Number of the entry in the chain of the tenant. */
  sequence: number;
  at: string;
  actorKind: AuditActorKind;
  /** Id of the caller; null after the erasure of the person. */
  actorId: string | null;
  /** Keyed digest of the id. It stays after an erasure. */
  actorDigest: string;
  /**
   * Method and path of the operation, the command `bellhop push rotate`, or `retention` for the deletion of expired
   * entries.
   */
  action: string;
  /** Table of the rows; null if the operation concerned no row of one user. */
  targetKind: string | null;
  /** Id of the user whose data was concerned; null if there is none, and after an erasure. */
  targetId: string | null;
  /** Keyed digest of that id. */
  targetDigest: string | null;
  /** Value or digest of `X-Request-Id`; null for calls that are counted. */
  requestId: string | null;
  outcome: AuditOutcome;
  /** Number of calls or rows for which the entry stands. */
  count: number;
  /** Set if the entry notes the deletion of expired entries; otherwise null. */
  cut: AuditCut | null;
  previousHash: string;
  /** SHA-256 in hexadecimal. */
  hash: string;
}

/** `service` is a backend, `operator` a person at the command line of the service, and `bellhop` the service itself. */
export type AuditActorKind = "service" | "administrator" | "staff" | "operator" | "bellhop" | Word;

/**
 * `shown` means that rows were read (only with `auditReads`), and `accepted` that the operation wrote no row of one
 * user.
 */
export type AuditOutcome = "stored" | "changed" | "removed" | "shown" | "accepted" | Word;

export interface AuditCut {
  /** Number of the last deleted entry. */
  through: number;
  /** Hash of that entry. */
  hash: string;
  /** Newest time among the deleted entries. */
  at: string;
  /** Days for which entries were kept. */
  keptDays: number;
}

/** A conversation as the caller sees it. `readPosition` and `unread` are null for a backend. */
export interface Conversation {
  id: string;
  kind: "direct" | "group" | Word;
  title: string | null;
  /** Null if a backend created the conversation. */
  createdBy: string | null;
  createdAt: string;
  memberCount: number;
  /** Sequence number of the newest message. */
  lastSequence: number;
  /** Sort key of the conversation list, in descending order. */
  order: string;
  lastMessage: ConversationSummaryLastMessage | null;
  readPosition: number | null;
  /** Messages after the read position, without the caller's own and deleted ones. */
  unread: number | null;
}

export interface ConversationSummary {
  id: string;
  kind: "direct" | "group" | Word;
  title: string | null;
  /** Null if a backend created the conversation. */
  createdBy: string | null;
  createdAt: string;
  memberCount: number;
  /** Sequence number of the newest message. */
  lastSequence: number;
  /** Sort key of the conversation list, in descending order. */
  order: string;
  lastMessage: ConversationSummaryLastMessage | null;
}

export interface ConversationSummaryLastMessage {
  id: string;
  sequence: number;
  senderId: string;
  /** Preview in one line; null if the message is deleted. */
  preview: string | null;
  sentAt: string;
}

export interface CreateConversationBody {
  id?: string | null;
  kind?: "direct" | "group" | Word | null;
  memberIds: string[];
  title?: string | null;
}

export interface ConversationWithMembers {
  id: string;
  kind: "direct" | "group" | Word;
  title: string | null;
  /** Null if a backend created the conversation. */
  createdBy: string | null;
  createdAt: string;
  memberCount: number;
  /** Sequence number of the newest message. */
  lastSequence: number;
  /** Sort key of the conversation list, in descending order. */
  order: string;
  lastMessage: ConversationSummaryLastMessage | null;
  readPosition: number | null;
  /** Messages after the read position, without the caller's own and deleted ones. */
  unread: number | null;
  members: string[];
}

export interface ChangeConversationBody {
  title: string | null;
}

export interface Message {
  id: string;
  conversationId: string;
  sequence: number;
  senderId: string;
  /** Empty if the message is deleted. */
  text: string;
  sentAt: string;
  deletedAt: string | null;
}

export interface SendMessageBody {
  id?: string | null;
  /** At most 4,000 bytes, and not blank. */
  text: string;
}

export interface SentMessage {
  message: Message;
  /** Unread messages of the sender in the conversation; null for a backend. */
  unread: number | null;
  badges: Badges;
}

export interface ReadConversationBody {
  sequence: number;
  allowRewind?: boolean | null;
}

export interface ReadPosition {
  conversationId: string;
  readPosition: number;
  unread: number;
  badges: Badges;
}

export type ListRequestsDirection = "incoming" | "outgoing" | Word;

export type ListRequestsStatus = "open" | "accepted" | "declined" | Word;

export type RequestKind = "follow" | "friend" | "booking" | "group" | Word;

export interface UserRequest {
  id: string;
  kind: RequestKind;
  fromUserId: string;
  toUserId: string;
  fromName: string | null;
  /** Id of the subject of the request, such as a group. */
  aboutId: string | null;
  status: "open" | "accepted" | "declined" | Word;
  createdAt: string;
  answeredAt: string | null;
}

export interface CreateRequestBody {
  kind: RequestKind;
  toUserId: string;
  fromUserId?: string | null;
  /** Name of the requester, shown in the notification. */
  fromName?: string | null;
  aboutId?: string | null;
}

export interface UserRequestWithBadges {
  request: UserRequest;
  badges: Badges;
}

export interface SeeRequestsBody {
  /** Id of the newest request on the screen. */
  seenUpTo: string;
}

export interface AnswerRequestBody {
  status: "accepted" | "declined" | Word;
}

export interface PostView {
  id: string;
  authorId: string;
  /** Sequence number of the post within the tenant. Feeds are ordered by it. */
  sequence: number;
  visibility: "public" | "followers" | Word;
  text: string;
  media: string[];
  createdAt: string;
  likeCount: number;
  repostCount: number;
  /** True if the caller likes the post. */
  liked: boolean;
  /** True if the caller has reposted the post. */
  reposted: boolean;
}

export interface Post {
  id: string;
  authorId: string;
  /** Sequence number of the post within the tenant. Feeds are ordered by it. */
  sequence: number;
  visibility: "public" | "followers" | Word;
  text: string;
  media: string[];
  createdAt: string;
  likeCount: number;
  repostCount: number;
}

export interface CreatePostBody {
  authorId?: string | null;
  visibility?: "public" | "followers" | Word | null;
  /** At most 4000 bytes. Must not be blank unless the post has media. */
  text?: string | null;
  /** URLs of pictures and videos. The service does not fetch them. */
  media?: string[] | null;
}

export interface Engagement {
  postId: string;
  likeCount: number;
  repostCount: number;
  liked: boolean;
  reposted: boolean;
}

export interface Feed {
  items: PostView[];
  next: string | null;
  /** Sequence number of the newest post of the tenant. */
  newest: number;
  /** Number of new posts by others. Present only with `since`. */
  newCount?: number;
  /** True if the number of new posts exceeds `newCount`. */
  newCountIsMore?: boolean;
}

export interface UserProfile {
  userId: string;
  followerCount: number;
  followingCount: number;
  postCount: number;
  /** True if the caller follows the user. */
  followed: boolean;
  /** True if the user follows the caller. */
  followsYou: boolean;
}

export interface Erasure {
  userId: string;
  state: ErasureState;
  requestedAt: string;
  doneAt: string | null;
}

export type ErasureState = "pending" | "done" | Word;

export interface Following {
  followerId: string;
  authorId: string;
  followedAt: string;
}

export interface Followed {
  followerId: string;
  authorId: string;
  followedAt: string;
  followerCount: number;
}

export interface Shop {
  id: string;
  name: string;
  timeZone: string;
  createdAt: string;
  updatedAt: string;
}

export interface ReplaceShopBody {
  name: string;
  timeZone: string;
}

export interface Barber {
  id: string;
  shopId: string;
  name: string | null;
  onDuty: boolean;
  onBreak: boolean;
  updatedAt: string;
}

export interface ReplaceBarberBody {
  onDuty: boolean;
  onBreak?: boolean | null;
  name?: string | null;
}

export interface QueueStatus {
  shopId: string;
  /** Number of today's confirmed bookings. */
  queueLength: number;
  /** ceil(queueLength / barbers × average service time). */
  avgWaitTime: number;
  /** Number of barbers on duty. */
  currentlyServing: number;
  /** Number of bookings in progress. */
  inService: number;
  /**
   * `paused`: all barbers on duty are on a break. The estimate assumes that a break lasts 15 minutes, and at least 5
   * more from now. `unstaffed`: no barber is on duty, and there is no estimate.
   */
  state: "open" | "paused" | "unstaffed" | Word;
  estimatedWaitTimes: QueueStatusEstimatedWaitTimes;
  estimate: QueueStatusEstimate | null;
  updatedAt: string;
}

export interface QueueStatusEstimatedWaitTimes {
  standard: number;
  blackCard: number;
}

export interface QueueStatusEstimate {
  standard: Wait;
  blackCard: Wait;
  method: string;
  sampleSize: number;
}

/** Whole minutes, rounded up. */
export interface Wait {
  /** Median: half of the waits are shorter. */
  p50: number;
  /** 90th percentile: nine of ten waits are shorter. */
  p90: number;
}

export interface QueueEntry {
  bookingId: string;
  userId: string | null;
  customerName: string | null;
  status: BookingStatus;
  lane: Tier;
  /** Null if the customer is in service or not due within 15 minutes. */
  position: number | null;
  wait: Wait | null;
  barberId: string | null;
  service: string;
  scheduledStart: string;
  arrivedAt: string | null;
  startedAt: string | null;
}

export type BookingStatus = "pending" | "confirmed" | "in-progress" | "completed" | "cancelled" | "no-show" | Word;

export type Tier = "standard" | "blackCard" | Word;

export interface AddWalkInBody {
  service: string;
  durationMinutes?: number | null;
  barberId?: string | null;
  tier?: Tier | null;
  userId?: string | null;
  customerName?: string | null;
}

export interface Booking {
  id: string;
  userId: string | null;
  shopId: string;
  /** Null means any barber. */
  barberId: string | null;
  service: string;
  scheduledStart: string;
  durationMinutes: number;
  tier: Tier;
  status: BookingStatus;
  version: number;
  epoch: string;
  source: "online" | "walkIn" | Word;
  customerName: string | null;
  arrivedAt: string | null;
  startedAt: string | null;
  completedAt: string | null;
  /** The start plus the median service time, learned from the shop's completed bookings. */
  estimatedCompletion: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface QueueAccuracy {
  standard: LaneAccuracy;
  blackCard: LaneAccuracy;
  overall: LaneAccuracy;
}

export interface LaneAccuracy {
  n: number;
  /** Mean absolute error in minutes. */
  meanAbsoluteError: number | null;
  /** Mean error in minutes. A positive value means that waits were shorter than estimated. */
  bias: number | null;
  shareUnderP90: number | null;
  formula: LaneAccuracyFormula;
  /** Share of the formula's error that the estimate avoids. */
  improvement: number | null;
}

export interface LaneAccuracyFormula {
  n: number;
  /** Mean absolute error in minutes. */
  meanAbsoluteError: number | null;
  /** Mean error in minutes. A positive value means that waits were shorter than estimated. */
  bias: number | null;
  shareUnderEstimate: number | null;
}

export interface ErrorSummary {
  n: number;
  /** Mean absolute error in minutes. */
  meanAbsoluteError: number | null;
  /** Mean error in minutes. A positive value means that waits were shorter than estimated. */
  bias: number | null;
}

export interface CreateBookingBody {
  shopId: string;
  barberId?: string | null;
  service: string;
  scheduledStart: string;
  durationMinutes: number;
  tier?: Tier | null;
  userId?: string | null;
  customerName?: string | null;
}

export interface ChangeBookingBody {
  status?: BookingStatus | null;
  scheduledStart?: string | null;
  durationMinutes?: number | null;
  barberId?: string | null;
  arrived?: true | null;
}

export interface BookingHistoryEntry {
  version: number;
  at: string;
  actorId: string;
  actorRole: string;
  from: BookingStatus | null;
  to: BookingStatus;
  scheduledStart: string;
  durationMinutes: number;
  barberId: string | null;
}

export interface PresenceRule {
  shopId: string;
  codeRequired: boolean;
  /** Seconds for which a confirmed presence is valid. */
  lifetimeSeconds: number;
}

export interface ReplacePresenceRuleBody {
  codeRequired: boolean;
}

export interface PresenceCode {
  shopId: string;
  code: string;
  /** Time to display the next code. */
  rotatesAt: string;
  /** Time from which the code is no longer accepted. */
  expiresAt: string;
}

export interface Presence {
  shopId: string;
  isPresent: boolean;
  source: "code" | "claim" | "booking" | Word | null;
  since: string | null;
  expiresAt: string | null;
  codeRequired: boolean;
}

export interface ShowPresenceBody {
  /** Code as displayed. Case, hyphens and spaces are ignored; O is read as 0, I and L as 1. */
  code?: string | null;
}

export interface DJSession {
  shopId: string;
  isActive: boolean;
  currentTrack: DJSessionCurrentTrack | null;
  queue: DJItemView[];
  startedAt: string | null;
  version: number;
  epoch: string;
}

export interface DJSessionCurrentTrack {
  trackId: string;
  trackName: string;
  artistName: string;
  albumArt: string | null;
  startedAt: string;
}

export interface DJTrack {
  trackId: string;
  trackName: string;
  artistName: string;
  albumArt: string | null;
}

/** A track in the queue, with the caller's own vote. */
export interface DJItemView {
  trackId: string;
  trackName: string;
  artistName: string;
  albumArt: string | null;
  addedBy: string;
  upvotes: number;
  downvotes: number;
  /** upvotes − downvotes. */
  score: number;
  addedAt: string;
  position: number;
  userVote: DJVote;
}

/** A track in the queue. Votes are counted, but the voters stay secret. */
export interface DJItem {
  trackId: string;
  trackName: string;
  artistName: string;
  albumArt: string | null;
  addedBy: string;
  upvotes: number;
  downvotes: number;
  /** upvotes − downvotes. */
  score: number;
  addedAt: string;
  position: number;
}

export type DJVote = "up" | "down" | "none" | Word;

export interface ReplaceDJSessionBody {
  isActive: boolean;
}

export interface PlayNextTrackBody {
  after?: string | null;
}

export interface PlayTrackBody {
  trackId: string | null;
}

export interface AddTrackBody {
  trackId: string;
  trackName: string;
  artistName: string;
  albumArt?: string | null;
}

export interface DJItemAnswer {
  trackId: string;
  trackName: string;
  artistName: string;
  albumArt: string | null;
  addedBy: string;
  upvotes: number;
  downvotes: number;
  /** upvotes − downvotes. */
  score: number;
  addedAt: string;
  position: number;
  userVote: DJVote;
  version: number;
  epoch: string;
}

export interface VoteOnTrackBody {
  vote: DJVote;
}

export interface Challenge {
  id: string;
  name: string;
  /** Shop whose staff manages the challenge. */
  shopId: string | null;
  startsAt: string;
  endsAt: string;
  mode: "add" | "best" | Word;
  order: "descending" | "ascending" | Word;
  createdAt: string;
  updatedAt: string;
}

export interface ReplaceChallengeBody {
  name: string;
  shopId?: string | null;
  startsAt: string;
  /** End of the challenge, after `startsAt`. */
  endsAt: string;
  mode: "add" | "best" | Word;
  order?: "descending" | "ascending" | Word | null;
}

export interface AddScoreBody {
  /** User to add the score for. Required for backends; defaults to the caller for other tokens. */
  userId?: string | null;
  score: number;
  /** Name shown beside the score. If omitted, the name stays as it is. */
  displayName?: string | null;
}

export interface AddedScore {
  challengeId: string;
  userId: string;
  displayName: string | null;
  score: number;
  rank: number;
  position: number;
  /** False if the score did not change. */
  changed: boolean;
  entries: number;
  /** Number of changes of the leaderboard. */
  version: number;
  epoch: string;
}

export type GetLeaderboardAround = "me" | Word;

export interface Leaderboard {
  challengeId: string;
  entries: number;
  /** Number of changes of the leaderboard. */
  version: number;
  epoch: string;
  items: LeaderboardItem[];
  me: LeaderboardItem | null;
}

export interface LeaderboardItem {
  userId: string;
  displayName: string | null;
  score: number;
  /** Number of better scores, plus one. */
  rank: number;
  /** Unique position, also among equal scores. */
  position: number;
}

export interface ExplainBody {
  eventId: string;
  token?: string;
  claims?: { [name: string]: unknown };
  topics?: string[];
  tables?: WantedTable[];
}

export interface Explanation {
  delivered: boolean;
  reason: string;
  event: ExplanationEvent;
  caller: ExplanationCaller;
  /** All keys that could deliver the event. */
  keys: ExplanationKey[];
  /** The queries that the change makes stale. */
  invalidations?: ExplanationInvalidation[];
  row?: { [name: string]: unknown } | null;
  subscriptions?: { [name: string]: unknown }[];
}

export interface ExplanationEvent {
  id: string;
  name: string;
  topic?: string | null;
  audience?: string[];
}

export interface ExplanationCaller {
  tenant: string;
  userId: string;
  role: string;
}

export interface ExplanationKey {
  key: string;
  /** Whether the caller has the key. */
  granted: boolean;
  origin: "claim" | "membership" | "refuted" | Word | null;
  membership: string | null;
}

export interface ExplanationInvalidation {
  /** The key of the query. */
  key: string[];
  /** Whether the caller's streams get it. */
  received: boolean;
  /** The caller's key that lets it through. */
  by: string | null;
  /** Whether they also get the changed row's id. */
  causeReceived: boolean;
  audience: string[];
}

export interface Preferences {
  sound: boolean;
  haptics: boolean;
  quietHours: QuietHours | null;
  timeZone: string;
}

export interface QuietHours {
  start: string;
  /** Must differ from `start`. */
  end: string;
}

export interface PreferencesDraft {
  sound?: boolean | null;
  haptics?: boolean | null;
  quietHours?: QuietHours | null;
  timeZone?: string | null;
}

export interface WebhookState {
  /** Whether a webhook address is configured. Without one, the service stores no webhooks. */
  enabled: boolean;
  /** Webhooks that the receiver has not accepted yet, including those not due yet. */
  waiting: number;
  oldestDueAt: string | null;
  /** Highest number of attempts among the waiting webhooks. */
  attemptsMax: number;
  dead: number;
  /**
   * Last error among waiting and failed webhooks: `status_` followed by the status of the receiver's answer,
   * `private_address`, `name_not_found`, `unreachable`, `timeout`, `tls` or `no_answer`.
   */
  lastError: string | null;
  lastErrorAt: string | null;
}

export interface DeadWebhook {
  /** The `webhook-id` of the webhook. */
  id: string;
  type: WebhookType;
  userId: string | null;
  /** Id of the notification, the conversation or the booking. */
  subjectId: string;
  reason: "expired" | "outbox.full" | Word;
  attempts: number;
  lastError: string | null;
  createdAt: string;
  triedAt: string | null;
  diedAt: string;
}

export type WebhookType =
  | "notification.unreached" | "notification.withdrawn" | "message.unreached" | "message.withdrawn"
  | "booking.changed" | Word;

export interface NotificationUpdated {
  ids: string[];
  state: NotificationStateChange;
}

export interface NotificationRemoved {
  ids: string[];
}

export interface StreamReady {
  streamId: string;
  userId: string;
  /** The tenant of the token. */
  tenant: string;
  identity: string;
  topics: string[];
  replayed: number;
  omittedKeys?: number;
  badges: Badges;
  serverTime: string;
}

export interface StreamResync {
  reason: "gap" | "epoch" | "overflow" | Word;
}

export interface StreamScope {
  /** First keys in lexical order. GET /v1/me returns all of them. */
  scope: string[];
  /** Number of all keys of the stream. */
  keyCount: number;
  omittedKeys: number;
}

export interface StreamExpiring {
  expiresAt: string;
}

export interface StreamClosing {
  reason: "expired" | "revoked" | "shutdown" | "unavailable" | "slow" | Word;
  retryAfterMs: number;
}

export interface QueryInvalidate {
  keys: string[][];
  causes: ChangeCause[];
  /** False if a cause is withheld or left out. The client must then not treat the event as an echo of its own change. */
  causesComplete: boolean;
}

/** A change that made query keys stale. It contains no column of the row. */
export interface ChangeCause {
  schema: string;
  table: string;
  type: "INSERT" | "UPDATE" | "DELETE" | Word;
  recordId: string | null;
  actorId: string | null;
  /** The `X-Client-Id` of the client that made the change. */
  originId: string | null;
}

export interface TableChange {
  subscriptionIds: string[];
  schema: string;
  table: string;
  type: "INSERT" | "UPDATE" | "DELETE" | Word;
  /** Effect on the subscriber, considering the filter and the subscriber's access. */
  change: "enter" | "update" | "leave" | Word;
  /** The selected columns; null if the row left. */
  record: { [name: string]: unknown } | null;
  /** The previous row. For a row that left, only its primary key. */
  oldRecord: { [name: string]: unknown } | null;
  commitTimestamp: string | null;
}

export interface MessageCreated {
  conversationId: string;
  message: Message;
  preview: string;
  /** New sort key of the conversation in the list. */
  order: string;
  /** Unread messages of the receiver in this conversation. */
  unread: number;
  badges: Badges;
}

/** `unread` and `badges` are present only if they changed. */
export interface MessageDeleted {
  conversationId: string;
  messageId: string;
  sequence: number;
  unread?: number;
  badges?: Badges;
}

/** The conversation is new, or its title or members changed. */
export interface ConversationUpdated {
  conversation: ConversationSummary;
  joined: string[];
  left: string[];
}

/** The user is no longer a member. `badges` is present only if it changed. */
export interface ConversationRemoved {
  conversationId: string;
  badges?: Badges;
}

export interface EngagementUpdate {
  postIds: string[];
  /** Counts by record id, with the names that the table declares. */
  updates: { [name: string]: { [name: string]: unknown } };
}

/**
 * Sent to the followers of the author that are connected at that moment, and to the author's other devices.
 * `postId`, `barberId` and `timestamp` repeat `id`, `authorId` and `createdAt` for apps that use those names.
 * `barberId` is absent if the author is neither a barber nor a shop's staff.
 */
export interface FeedNewPost {
  id: string;
  authorId: string;
  /** Sequence number of the post within the tenant. Feeds are ordered by it. */
  sequence: number;
  visibility: "public" | "followers" | Word;
  text: string;
  media: string[];
  createdAt: string;
  likeCount: number;
  repostCount: number;
  type: "new_post";
  postId: string;
  barberId?: string;
  timestamp: string;
}

export interface FeedPostRemoved {
  postId: string;
}

/** Sent to the follower's own streams. From then on, they receive or no longer receive the author's posts. */
export interface FollowChanged {
  authorId: string;
  followerId: string;
  followed: boolean;
}

export interface BookingStatusChange {
  bookingId: string;
  status: BookingStatus;
  previousStatus: BookingStatus | null;
  version: number;
  epoch: string;
  estimatedCompletion: string | null;
}

/**
 * Sent at most 20 times a second per shop. Votes beyond that rate are combined: the current state follows once a
 * second. Clients derive the positions of the other tracks from the scores.
 */
export interface DjQueueUpdate {
  shopId: string;
  trackId: string;
  upvotes: number;
  downvotes: number;
  score: number;
  position: number;
  version: number;
  epoch: string;
}

export interface TrackAdded {
  trackId: string;
  trackName: string;
  artistName: string;
  albumArt: string | null;
  addedBy: string;
  upvotes: number;
  downvotes: number;
  /** upvotes − downvotes. */
  score: number;
  addedAt: string;
  position: number;
  shopId: string;
  version: number;
  epoch: string;
}

/** The members that describe the track are null when the music stops. */
export interface TrackPlaying {
  shopId: string;
  trackId: string | null;
  trackName: string | null;
  artistName: string | null;
  albumArt: string | null;
  startedAt: string | null;
  version: number;
  epoch: string;
}

export interface TrackRemoved {
  shopId: string;
  trackId: string;
  reason: "played" | "removed" | Word;
  version: number;
  epoch: string;
}

/**
 * Sent at most once a second per challenge, to two groups of receivers.
 *
 * Each user whose rank, position or score changed receives their own standing. These events have no id and are not
 * replayed. A new stream starts with the standings in challenges that changed within the last hour.
 *
 * Subscribers of `leaderboard:{challengeId}` first receive the top 100 as last published, then only changes to it. A
 * change usually has a few hundred bytes; it has 10 KB if all lines move, and 35 KB with the longest ids and names.
 * Apply a change only if you hold the version `since`. If your version is newer than `version`, ignore the change.
 * If it is any other version, your client fell behind: subscribe to the topic again to receive the full state.
 */
export type LeaderboardUpdate = OwnRank | LeaderboardTop | LeaderboardChange;

export interface OwnRank {
  challengeId: string;
  rank: number;
  position: number;
  score: number;
  /** Number of changes that the event combines; 0 at the start of a stream. */
  changed: number;
  version: number;
  epoch: string;
}

export interface LeaderboardTop {
  challengeId: string;
  entries: number;
  top: LeaderboardItem[];
  /** Number of changes that the event combines; 0 at the start of a stream. */
  changed: number;
  version: number;
  epoch: string;
}

export interface LeaderboardChange {
  challengeId: string;
  entries: number;
  /** Version that the changes apply to. */
  since: number;
  /**
   * Lines that are new, changed or moved. A line without a score keeps its score and name; only its rank or position
   * changed.
   */
  moved: LeaderboardChangeMoved[];
  /** Users that left the first lines. */
  left: string[];
  /** Number of changes that the event combines. */
  changed: number;
  version: number;
  epoch: string;
}

export interface LeaderboardChangeMoved {
  userId: string;
  displayName?: string | null;
  score?: number;
  rank: number;
  position: number;
}

/** What a refusal says (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /**
   * Stable code for programs. `x-codes` lists all codes. Later versions may add codes; handle an unknown code by its
   * status.
   */
  code: ProblemCode;
  instance: string;
  requestId: string;
  allowed?: string[];
  /** The invalid parts of the request. If there are more than 128, `detail` has their number. */
  errors?: ProblemError[];
}

export interface ProblemError {
  /** A JSON pointer into the body, `?name` of a query parameter, or the name of a header. */
  pointer: string;
  detail: string;
}

export type ProblemCode =
  | "barber.booked" | "body_budget" | "booking.in_past" | "booking.invalid_transition" | "booking.not_changeable"
  | "booking.overlap" | "booking.staff_only" | "booking.tier_not_claimed" | "challenge.ended" | "challenge.full"
  | "challenge.has_scores" | "challenge.not_started" | "challenge.too_many" | "changes.congested"
  | "changes.format_contradicted" | "changes.not_a_batch" | "changes.not_an_event" | "changes.too_large"
  | "changes.too_many" | "contact.refused" | "contact_budget" | "conversation.direct" | "conversation.full"
  | "conversation.id_taken" | "conversation.not_yours" | "conversation.too_many" | "device.too_many"
  | "dj.not_active" | "dj.not_present" | "dj.playing" | "dj.queue_full" | "dj.too_many_tracks" | "erasure.closing"
  | "erasure.too_many" | "event_budget" | "explain.token_pending" | "feature.off" | "follow.self"
  | "follow.too_many" | "idempotency.key_reused" | "idempotency.malformed_key" | "idempotency.missing_key"
  | "insufficient_scope" | "internal" | "invalid_token" | "invalid_token.expired" | "invalid_token.not_ours"
  | "invalid_token.not_yet_valid" | "invalid_token.revoked" | "keys.unavailable" | "message.id_taken"
  | "message.not_yours" | "not_found" | "not_permitted" | "not_ready" | "origin.not_allowed" | "post.not_yours"
  | "post.too_many" | "precondition.required" | "precondition.stale" | "presence.code_required"
  | "presence.no_code" | "presence.too_many_codes" | "presence.wrong_code" | "push.off" | "rate_limited"
  | "request.answered" | "request.content_encoding" | "request.invalid" | "request.malformed"
  | "request.malformed_json" | "request.media_type" | "request.no_room" | "request.not_yours" | "request.too_large"
  | "request.too_many" | "request.too_many_effects" | "request.too_slow" | "revocations.unknown"
  | "route.method_not_allowed" | "route.not_found" | "score.not_judge" | "score.overflow" | "shop.full"
  | "storage.full" | "storage.moved" | "stream.capacity" | "stream.ticket_invalid" | "stream.token_pending"
  | "stream.too_many" | "stream.unanswered" | "subscriptions.full" | "subscriptions.too_many"
  | "tenant.rate_limited" | "tenant.storage_full" | "tenant.too_many_streams" | "topic.forbidden"
  | "unauthenticated" | "unavailable" | "unavailable.undecided" | "user.is_service" | "validation" | "webhook.off"
  | "webhook.refused" | Word;

/** The events of a stream, by their names, with their data. */
export interface Events {
  "badges:update": Badges;
  "notification:created": Notification;
  "notification:updated": NotificationUpdated;
  "notification:removed": NotificationRemoved;
  "preferences:update": Preferences;
  "stream:ready": StreamReady;
  "stream:resync": StreamResync;
  "stream:scope": StreamScope;
  "stream:expiring": StreamExpiring;
  "stream:closing": StreamClosing;
  "query:invalidate": QueryInvalidate;
  "table:change": TableChange;
  "message:created": MessageCreated;
  "message:deleted": MessageDeleted;
  "conversation:read": ReadPosition;
  "conversation:updated": ConversationUpdated;
  "conversation:removed": ConversationRemoved;
  "request:created": UserRequest;
  "request:updated": UserRequest;
  "request:removed": UserRequest;
  "engagement_update": EngagementUpdate;
  "feed:new_post": FeedNewPost;
  "feed:post_removed": FeedPostRemoved;
  "follow:changed": FollowChanged;
  "queue:update": QueueStatus;
  "booking:status_change": BookingStatusChange;
  "dj:session": DJSession;
  "dj:queue_update": DjQueueUpdate;
  "track:added": TrackAdded;
  "track:playing": TrackPlaying;
  "track:removed": TrackRemoved;
  "leaderboard:update": LeaderboardUpdate;
}

/**
 * The events that your app publishes, by their names, with their data. Empty, it allows every name that is not one of
 * Bellhop's, with unknown data. Declare your events to have both checked:
 *
 *     declare module "bellhop.js/models" {
 *       interface OwnEvents {
 *         "order:ready": { orderId: string };
 *       }
 *     }
 */
export interface OwnEvents {}

/** All calls by method and path: what each is given, and its answer and status if it succeeds. */
export interface Operations {
  /** Get badge counts */
  "GET /v1/badges": {
    query: { include?: GetBadgesInclude };
    body: undefined;
    status: 200;
    answer: Badges;
  };
  /** Create an event */
  "POST /v1/events": {
    query: {};
    body: Event;
    status: 200 | 201;
    answer: Notified;
  };
  /** List notifications */
  "GET /v1/notifications": {
    query: { category?: string; state?: ListNotificationsState; priority?: Priority; limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Page<Notification>;
  };
  /** Create a notification */
  "POST /v1/notifications": {
    query: {};
    body: NotificationDraft;
    status: 200 | 201;
    answer: Notified;
  };
  /** Update notifications in bulk */
  "PATCH /v1/notifications": {
    query: {};
    body: ChangeNotificationsBody;
    status: 200;
    answer: ChangedCount;
  };
  /** Get a notification */
  "GET /v1/notifications/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: NotificationWithBadges;
  };
  /** Update a notification's state */
  "PATCH /v1/notifications/{id}": {
    query: {};
    body: NotificationStateChange;
    status: 200;
    answer: NotificationWithBadges;
  };
  /** Delete a notification */
  "DELETE /v1/notifications/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: BadgesAfter;
  };
  /** Create a stream ticket */
  "POST /v1/stream-tickets": {
    query: {};
    body: CreateStreamTicketBody | undefined;
    status: 201;
    answer: StreamTicket;
  };
  /** Get a stream */
  "GET /v1/streams/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: StreamState;
  };
  /** Get a stream's subscriptions */
  "GET /v1/streams/{id}/subscriptions": {
    query: {};
    body: undefined;
    status: 200;
    answer: Subscriptions;
  };
  /** Replace a stream's subscriptions */
  "PUT /v1/streams/{id}/subscriptions": {
    query: {};
    body: ReplaceSubscriptionsBody;
    status: 200;
    answer: Subscriptions;
  };
  /** Renew a stream's token */
  "PUT /v1/streams/{id}/token": {
    query: {};
    body: RenewStreamTokenBody;
    status: 200;
    answer: TokenExpiry;
  };
  /** Revoke tokens */
  "POST /v1/revocations": {
    query: {};
    body: RevokeBody;
    status: 201;
    answer: Revocation;
  };
  /** Lift a revocation */
  "DELETE /v1/revocations": {
    query: { tokenId?: string; sessionId?: string; userId?: string };
    body: undefined;
    status: 204;
    answer: undefined;
  };
  /** Publish events */
  "POST /v1/publish": {
    query: {};
    body: OwnEvent | OwnEvent[];
    status: 202;
    answer: Published;
  };
  /** Submit table changes */
  "POST /v1/changes": {
    query: { format?: TakeChangesFormat };
    body: unknown;
    status: 202;
    answer: ChangeResult;
  };
  /** List devices */
  "GET /v1/devices": {
    query: {};
    body: undefined;
    status: 200;
    answer: PushDevices;
  };
  /** Get a device */
  "GET /v1/devices/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: PushDevice;
  };
  /** Register a device */
  "PUT /v1/devices/{id}": {
    query: {};
    body: PushDeviceDraft;
    status: 200 | 201;
    answer: PushDevice;
  };
  /** Remove a device */
  "DELETE /v1/devices/{id}": {
    query: {};
    body: undefined;
    status: 204;
    answer: undefined;
  };
  /** Send a test message to a device */
  "POST /v1/devices/{id}/test": {
    query: {};
    body: undefined;
    status: 202;
    answer: PushDevice;
  };
  /** Get the caller's identity */
  "GET /v1/me": {
    query: {};
    body: undefined;
    status: 200;
    answer: Me;
  };
  /** Get client configuration */
  "GET /v1/config": {
    query: {};
    body: undefined;
    status: 200;
    answer: Config;
  };
  /** List audit entries */
  "GET /v1/audit": {
    query: {
      actor?: string;
      target?: string;
      action?: string;
      from?: string;
      to?: string;
      limit?: number;
      cursor?: string;
    };
    body: undefined;
    status: 200;
    answer: Page<AuditEntry>;
  };
  /** List conversations */
  "GET /v1/conversations": {
    query: { unread?: boolean; limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Page<Conversation>;
  };
  /** Create a conversation */
  "POST /v1/conversations": {
    query: {};
    body: CreateConversationBody;
    status: 200 | 201;
    answer: ConversationWithMembers;
  };
  /** Get a conversation */
  "GET /v1/conversations/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: ConversationWithMembers;
  };
  /** Rename a conversation */
  "PATCH /v1/conversations/{id}": {
    query: {};
    body: ChangeConversationBody;
    status: 200;
    answer: ConversationWithMembers;
  };
  /** Add a member to a conversation */
  "PUT /v1/conversations/{id}/members/{userId}": {
    query: {};
    body: undefined;
    status: 200;
    answer: ConversationWithMembers;
  };
  /** Remove a member from a conversation */
  "DELETE /v1/conversations/{id}/members/{userId}": {
    query: {};
    body: undefined;
    status: 200;
    answer: BadgesAfter;
  };
  /** List messages */
  "GET /v1/conversations/{id}/messages": {
    query: { since?: number; limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Page<Message>;
  };
  /** Send a message */
  "POST /v1/conversations/{id}/messages": {
    query: {};
    body: SendMessageBody;
    status: 200 | 201;
    answer: SentMessage;
  };
  /** Delete a message */
  "DELETE /v1/conversations/{id}/messages/{messageId}": {
    query: {};
    body: undefined;
    status: 200;
    answer: BadgesAfter;
  };
  /** Set the read position */
  "PUT /v1/conversations/{id}/read-position": {
    query: {};
    body: ReadConversationBody;
    status: 200;
    answer: ReadPosition;
  };
  /** List requests */
  "GET /v1/requests": {
    query: {
      direction?: ListRequestsDirection;
      status?: ListRequestsStatus;
      kind?: RequestKind;
      limit?: number;
      cursor?: string;
    };
    body: undefined;
    status: 200;
    answer: Page<UserRequest>;
  };
  /** Create a request */
  "POST /v1/requests": {
    query: {};
    body: CreateRequestBody;
    status: 200 | 201;
    answer: UserRequestWithBadges;
  };
  /** Mark requests as seen */
  "PATCH /v1/requests": {
    query: {};
    body: SeeRequestsBody;
    status: 200;
    answer: ChangedCount;
  };
  /** Get a request */
  "GET /v1/requests/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: UserRequest;
  };
  /** Answer a request */
  "PATCH /v1/requests/{id}": {
    query: {};
    body: AnswerRequestBody;
    status: 200;
    answer: UserRequestWithBadges;
  };
  /** Withdraw a request */
  "DELETE /v1/requests/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: BadgesAfter;
  };
  /** List posts */
  "GET /v1/posts": {
    query: { authorId?: string; limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Page<PostView>;
  };
  /** Create a post */
  "POST /v1/posts": {
    query: {};
    body: CreatePostBody;
    status: 201;
    answer: PostView;
  };
  /** Get a post */
  "GET /v1/posts/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: PostView;
  };
  /** Delete a post */
  "DELETE /v1/posts/{id}": {
    query: {};
    body: undefined;
    status: 204;
    answer: undefined;
  };
  /** Like a post */
  "PUT /v1/posts/{id}/likes/{userId}": {
    query: {};
    body: undefined;
    status: 200;
    answer: Engagement;
  };
  /** Unlike a post */
  "DELETE /v1/posts/{id}/likes/{userId}": {
    query: {};
    body: undefined;
    status: 200 | 204;
    answer: Engagement | undefined;
  };
  /** Repost a post */
  "PUT /v1/posts/{id}/reposts/{userId}": {
    query: {};
    body: undefined;
    status: 200;
    answer: Engagement;
  };
  /** Remove a repost */
  "DELETE /v1/posts/{id}/reposts/{userId}": {
    query: {};
    body: undefined;
    status: 200 | 204;
    answer: Engagement | undefined;
  };
  /** Get the feed */
  "GET /v1/feed": {
    query: { since?: number; limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Feed;
  };
  /** Get a user's profile counts */
  "GET /v1/users/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: UserProfile;
  };
  /** Erase a user */
  "DELETE /v1/users/{id}": {
    query: {};
    body: undefined;
    status: 202;
    answer: Erasure;
  };
  /** List followers */
  "GET /v1/users/{id}/followers": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Page<Following>;
  };
  /** List followed users */
  "GET /v1/users/{id}/following": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Page<Following>;
  };
  /** Get a follower */
  "GET /v1/users/{id}/followers/{followerId}": {
    query: {};
    body: undefined;
    status: 200;
    answer: Following;
  };
  /** Follow a user */
  "PUT /v1/users/{id}/followers/{followerId}": {
    query: {};
    body: undefined;
    status: 200 | 201;
    answer: Followed;
  };
  /** Unfollow a user */
  "DELETE /v1/users/{id}/followers/{followerId}": {
    query: {};
    body: undefined;
    status: 204;
    answer: undefined;
  };
  /** List shops */
  "GET /v1/shops": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Page<Shop>;
  };
  /** Get a shop */
  "GET /v1/shops/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: Shop;
  };
  /** Create or replace a shop */
  "PUT /v1/shops/{id}": {
    query: {};
    body: ReplaceShopBody;
    status: 200 | 201;
    answer: Shop;
  };
  /** List barbers */
  "GET /v1/shops/{id}/barbers": {
    query: {};
    body: undefined;
    status: 200;
    answer: Page<Barber>;
  };
  /** Create or update a barber */
  "PUT /v1/shops/{id}/barbers/{barberId}": {
    query: {};
    body: ReplaceBarberBody;
    status: 200 | 201;
    answer: Barber;
  };
  /** Remove a barber */
  "DELETE /v1/shops/{id}/barbers/{barberId}": {
    query: {};
    body: undefined;
    status: 204;
    answer: undefined;
  };
  /** Get the queue status */
  "GET /v1/shops/{id}/queue": {
    query: {};
    body: undefined;
    status: 200;
    answer: QueueStatus;
  };
  /** List queue entries */
  "GET /v1/shops/{id}/queue/entries": {
    query: {};
    body: undefined;
    status: 200;
    answer: Page<QueueEntry>;
  };
  /** Add a walk-in customer */
  "POST /v1/shops/{id}/queue/entries": {
    query: {};
    body: AddWalkInBody;
    status: 201;
    answer: Booking;
  };
  /** Get queue estimate accuracy */
  "GET /v1/shops/{id}/queue/accuracy": {
    query: {};
    body: undefined;
    status: 200;
    answer: QueueAccuracy;
  };
  /** List bookings */
  "GET /v1/bookings": {
    query: {
      shopId?: string;
      status?: BookingStatus;
      barberId?: string;
      userId?: string;
      day?: string;
      limit?: number;
      cursor?: string;
    };
    body: undefined;
    status: 200;
    answer: Page<Booking>;
  };
  /** Create a booking */
  "POST /v1/bookings": {
    query: {};
    body: CreateBookingBody;
    status: 201;
    answer: Booking;
  };
  /** Get a booking */
  "GET /v1/bookings/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: Booking;
  };
  /** Update a booking */
  "PATCH /v1/bookings/{id}": {
    query: {};
    body: ChangeBookingBody;
    status: 200;
    answer: Booking;
  };
  /** Get a booking's history */
  "GET /v1/bookings/{id}/history": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Page<BookingHistoryEntry>;
  };
  /** Get the presence rule */
  "GET /v1/shops/{id}/presence": {
    query: {};
    body: undefined;
    status: 200;
    answer: PresenceRule;
  };
  /** Replace the presence rule */
  "PUT /v1/shops/{id}/presence": {
    query: {};
    body: ReplacePresenceRuleBody;
    status: 200;
    answer: PresenceRule;
  };
  /** Get the presence code */
  "GET /v1/shops/{id}/presence/code": {
    query: {};
    body: undefined;
    status: 200;
    answer: PresenceCode;
  };
  /** Get the caller's presence */
  "GET /v1/shops/{id}/presence/me": {
    query: {};
    body: undefined;
    status: 200;
    answer: Presence;
  };
  /** Confirm the caller's presence */
  "PUT /v1/shops/{id}/presence/me": {
    query: {};
    body: ShowPresenceBody | undefined;
    status: 200;
    answer: Presence;
  };
  /** End the caller's presence */
  "DELETE /v1/shops/{id}/presence/me": {
    query: {};
    body: undefined;
    status: 204;
    answer: undefined;
  };
  /** Get the DJ session */
  "GET /v1/shops/{id}/dj": {
    query: {};
    body: undefined;
    status: 200;
    answer: DJSession;
  };
  /** Start or end the DJ session */
  "PUT /v1/shops/{id}/dj": {
    query: {};
    body: ReplaceDJSessionBody;
    status: 200;
    answer: DJSession;
  };
  /** Play the next track */
  "POST /v1/shops/{id}/dj/current-track": {
    query: {};
    body: PlayNextTrackBody | undefined;
    status: 200;
    answer: DJSession;
  };
  /** Play a queued track */
  "PUT /v1/shops/{id}/dj/current-track": {
    query: {};
    body: PlayTrackBody;
    status: 200;
    answer: DJSession;
  };
  /** Add a track to the queue */
  "POST /v1/shops/{id}/dj/tracks": {
    query: {};
    body: AddTrackBody;
    status: 200 | 201;
    answer: DJItemAnswer;
  };
  /** Remove a track from the queue */
  "DELETE /v1/shops/{id}/dj/tracks/{trackId}": {
    query: {};
    body: undefined;
    status: 204;
    answer: undefined;
  };
  /** Vote on a track */
  "PUT /v1/shops/{id}/dj/tracks/{trackId}/vote": {
    query: {};
    body: VoteOnTrackBody;
    status: 200;
    answer: DJItemAnswer;
  };
  /** List challenges */
  "GET /v1/challenges": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Page<Challenge>;
  };
  /** Get a challenge */
  "GET /v1/challenges/{id}": {
    query: {};
    body: undefined;
    status: 200;
    answer: Challenge;
  };
  /** Create or replace a challenge */
  "PUT /v1/challenges/{id}": {
    query: {};
    body: ReplaceChallengeBody;
    status: 200 | 201;
    answer: Challenge;
  };
  /** Delete a challenge */
  "DELETE /v1/challenges/{id}": {
    query: {};
    body: undefined;
    status: 204;
    answer: undefined;
  };
  /** Add a score */
  "POST /v1/challenges/{id}/scores": {
    query: {};
    body: AddScoreBody;
    status: 200;
    answer: AddedScore;
  };
  /** Withdraw a score */
  "DELETE /v1/challenges/{id}/scores/{userId}": {
    query: {};
    body: undefined;
    status: 204;
    answer: undefined;
  };
  /** Get a leaderboard */
  "GET /v1/challenges/{id}/leaderboard": {
    query: { limit?: number; around?: GetLeaderboardAround };
    body: undefined;
    status: 200;
    answer: Leaderboard;
  };
  /** Get the erasure of a user */
  "GET /v1/users/{id}/erasure": {
    query: {};
    body: undefined;
    status: 200;
    answer: Erasure;
  };
  /** Explain a delivery */
  "POST /v1/explain": {
    query: {};
    body: ExplainBody;
    status: 200;
    answer: Explanation;
  };
  /** Get preferences */
  "GET /v1/preferences": {
    query: {};
    body: undefined;
    status: 200;
    answer: Preferences;
  };
  /** Replace preferences */
  "PUT /v1/preferences": {
    query: {};
    body: PreferencesDraft;
    status: 200;
    answer: Preferences;
  };
  /** Get the webhook state */
  "GET /v1/webhooks": {
    query: {};
    body: undefined;
    status: 200;
    answer: WebhookState;
  };
  /** List failed webhooks */
  "GET /v1/webhooks/dead": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    status: 200;
    answer: Page<DeadWebhook>;
  };
  /** Retry a failed webhook */
  "POST /v1/webhooks/dead/{id}/retry": {
    query: {};
    body: undefined;
    status: 202;
    answer: DeadWebhook;
  };
}

type Steps<Path extends string> = Path extends `${infer Step}/${infer Rest}` ? [Step, ...Steps<Rest>] : [Path];
type WithoutQuery<Path extends string> = Path extends `${infer Bare}?${string}` ? Bare : Path;
type Fits<Given, Known> = Given extends [infer Step, ...infer Rest]
  ? Known extends [infer Place, ...infer Places]
    ? Place extends `{${string}}`
      ? Fits<Rest, Places>
      : Step extends Place
      ? Fits<Rest, Places>
      : false
    : false
  : Known extends []
  ? true
  : false;

/** What the contract says of a call, `OperationOf<"GET", "/v1/shops/s1/queue">`, or never. */
export type OperationOf<Method extends string, Path extends string> = {
  [Name in keyof Operations]: Name extends `${Method} ${infer Known}`
    ? Fits<Steps<WithoutQuery<Path>>, Steps<Known>> extends true
      ? Operations[Name]
      : never
    : never;
}[keyof Operations];

/** The body of an answer that is no refusal. */
export type AnswerTo<Method extends string, Path extends string> = OperationOf<Method, Path>["answer"];

/** The body that a call is given. It has only words that this version of the contract knows. */
export type BodyOf<Method extends string, Path extends string> = Exact<OperationOf<Method, Path>["body"]>;

// `string` and Word are assignable to each other, so only this comparison tells them apart.
type IsWord<Given> = (<T>() => T extends Given ? 1 : 2) extends <T>() => T extends Word ? 1 : 2 ? true : false;
type Exact<Given> = Given extends string
  ? IsWord<Given> extends true
    ? never
    : Given
  : Given extends (infer Item)[]
  ? Exact<Item>[]
  : Given extends object
  ? { [Name in keyof Given]: Exact<Given[Name]> }
  : Given;

/** An event of a stream with its data read; `id` is where to resume. */
export type StreamEvent = { [Name in keyof Events]: { name: Name; data: Events[Name]; id: string } }[keyof Events];
