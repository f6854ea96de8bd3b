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
  /** Open requests to the user that are not seen, counted by their own rows: no bound of notifications touches them. */
  requests: number;
  /** All other unseen notifications but those of category `message`. */
  bell: number;
  total: number;
  /** Grows with every change; the larger one of an epoch is the newer. */
  version: number;
  epoch: string;
  asOf: string;
  /** With `include=conversations`, those with unread messages, which add up to `messages`. */
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
  /** Other members are ignored, and never reach a device. */
  data?: EventDetails | null;
}

/** Other members are ignored, and never reach a device. */
export interface EventDetails {
  visitId?: string | null;
  visitType?: string | null;
  hospital?: string | null;
  status?: string | null;
  previousStatus?: string | null;
  emergencyId?: string | null;
  /** The names of what changed, as a list or as the keys of an object; at most 100. */
  changes?: any;
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
  /** Says nothing of the matter. */
  lockScreen: string;
  data: { [name: string]: any };
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
  data?: { [name: string]: any } | null;
}

export interface ChangeNotificationsBody {
  /** The id of the last notification that is meant. */
  upTo: string;
  category?: string | null;
  set: NotificationStateChange;
}

/** At least one of them. `seen: false` goes with neither of the others being true. */
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

/** As the caller sees it; a backend has read nothing, and has nothing unread. */
export interface Conversation {
  id: string;
  kind: "direct" | "group" | Word;
  title: string | null;
  /** Null if a backend made it. */
  createdBy: string | null;
  createdAt: string;
  memberCount: number;
  /** The newest message's number. */
  lastSequence: number;
  /** Conversations are listed by it; the greatest first. */
  order: string;
  lastMessage: ConversationSummaryLastMessage | null;
  readPosition: number | null;
  /** The last sequence, less the read position, less what is the caller's own or deleted behind it. */
  unread: number | null;
}

export interface ConversationSummary {
  id: string;
  kind: "direct" | "group" | Word;
  title: string | null;
  /** Null if a backend made it. */
  createdBy: string | null;
  createdAt: string;
  memberCount: number;
  /** The newest message's number. */
  lastSequence: number;
  /** Conversations are listed by it; the greatest first. */
  order: string;
  lastMessage: ConversationSummaryLastMessage | null;
}

export interface ConversationSummaryLastMessage {
  id: string;
  sequence: number;
  senderId: string;
  /** One line; null if it is deleted. */
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
  /** Null if a backend made it. */
  createdBy: string | null;
  createdAt: string;
  memberCount: number;
  /** The newest message's number. */
  lastSequence: number;
  /** Conversations are listed by it; the greatest first. */
  order: string;
  lastMessage: ConversationSummaryLastMessage | null;
  readPosition: number | null;
  /** The last sequence, less the read position, less what is the caller's own or deleted behind it. */
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
  /** Empty if it is deleted. */
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
  /** Null for a backend. */
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
  /** What it is about, such as a group. */
  aboutId: string | null;
  status: "open" | "accepted" | "declined" | Word;
  createdAt: string;
  answeredAt: string | null;
}

export interface CreateRequestBody {
  kind: RequestKind;
  toUserId: string;
  fromUserId?: string | null;
  /** How the one who asks is called, for the notification. */
  fromName?: string | null;
  aboutId?: string | null;
}

export interface UserRequestWithBadges {
  request: UserRequest;
  badges: Badges;
}

export interface SeeRequestsBody {
  /** The id of the last request on the screen. */
  seenUpTo: string;
}

export interface AnswerRequestBody {
  status: "accepted" | "declined" | Word;
}

export interface Preferences {
  sound: boolean;
  haptics: boolean;
  quietHours: QuietHours | null;
  timeZone: string;
}

export interface QuietHours {
  start: string;
  /** Not the start. */
  end: string;
}

export interface PreferencesWish {
  sound?: boolean | null;
  haptics?: boolean | null;
  quietHours?: QuietHours | null;
  timeZone?: string | null;
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
  /** By it events name the subscription; its place if absent. */
  id?: string;
  schema?: string;
  /**
   * A declared table, or `posts` of the schema `bellhop`, with the columns of its filters id, author_id, visibility,
   * sequence, like_count and repost_count; updates of it are told as `engagement_update`.
   */
  table: string;
  event?: "*" | "INSERT" | "UPDATE" | "DELETE" | Word;
  /**
   * Conditions `column=[not.]op.value`, joined by commas, all of which must hold. Operators: eq, neq, lt, lte, gt,
   * gte, in, like, ilike, is, isdistinct. `in.(…)` takes up to 1,000 values; `in.()` is the empty set. A number or a
   * time has at most 128 bytes. Where the file of tables names the columns' types, values are compared by them, and
   * other columns are refused.
   */
  filter?: string;
  /** Columns that are sent, beside the primary key; all if absent. */
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

export interface OwnEvent {
  /** Its name, which does not begin as the service's own events do. */
  event: string;
  /** The keys of which a receiver holds one, such as `user:ada`, `shop:s1:staff` or `everyone`. */
  to?: string[];
  /** A topic that the file of tables declares, such as `order:o1`. */
  topic?: string;
  /** Any JSON, of at most 16 KiB. */
  data: any;
  /**
   * Names a state that the event carries whole; where it waits for a slow or resuming stream, the next one replaces
   * it. Each topic has names of its own, and so have events to keys.
   */
  collapse?: string | null;
}

export interface Published {
  accepted: number;
}

export interface WebhookState {
  /** Whether an address is set. Without one nothing is stored. */
  enabled: boolean;
  /** Not accepted yet, those included whose time has not come. */
  waiting: number;
  oldestDueAt: string | null;
  /** The most attempts that one of them has had. */
  attemptsMax: number;
  dead: number;
  /**
   * Of what waits or is dead: `status_` and the receiver's answer, `private_address`, `name_not_found`,
   * `unreachable`, `timeout`, `tls` or `no_answer`.
   */
  lastError: string | null;
  lastErrorAt: string | null;
}

export interface DeadWebhook {
  /** Its `webhook-id`. */
  id: string;
  type: WebhookType;
  userId: string | null;
  /** The id of the notification or the booking. */
  subjectId: string;
  reason: "expired" | "outbox.full" | Word;
  attempts: number;
  lastError: string | null;
  createdAt: string;
  triedAt: string | null;
  diedAt: string;
}

export type WebhookType = "notification.unreached" | "notification.withdrawn" | "booking.changed" | Word;

export interface ExplainBody {
  eventId: string;
  token?: string;
  claims?: { [name: string]: any };
  topics?: string[];
  tables?: WantedTable[];
}

export interface Explanation {
  delivered: boolean;
  reason: string;
  event: ExplanationEvent;
  caller: ExplanationCaller;
  /** Every key by which the event could be heard or seen. */
  keys: ExplanationKey[];
  invalidations?: { [name: string]: any }[];
  row?: { [name: string]: any } | null;
  subscriptions?: { [name: string]: any }[];
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
  held: boolean;
  origin: "claim" | "membership" | "refuted" | Word | null;
  membership?: string | null;
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
  /** Today's confirmed bookings. */
  queueLength: number;
  /** ceil(queueLength / barbers × average service time). */
  avgWaitTime: number;
  /** Barbers on duty. */
  currentlyServing: number;
  /** Bookings in progress. */
  inService: number;
  /**
   * `paused`: all who are on duty are on a break. The estimate takes it that a break lasts 15 minutes, and at least
   * 5 more. `unstaffed`: nobody is on duty, and there is no estimate.
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

/** Minutes, whole, rounded up. */
export interface Wait {
  /** As likely longer as shorter. */
  p50: number;
  /** Nine waits of ten are shorter. */
  p90: number;
}

export interface QueueEntry {
  bookingId: string;
  userId: string | null;
  customerName: string | null;
  status: BookingStatus;
  lane: Tier;
  /** Null in service, or not due within 15 minutes. */
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
  /** Null is any barber. */
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
  /** Minutes. */
  meanAbsoluteError: number | null;
  /** Minutes; positive: waits were shorter than told. */
  bias: number | null;
  shareUnderP90: number | null;
  formula: LaneAccuracyFormula;
  /** Share of the formula's error that is avoided. */
  improvement: number | null;
}

export interface LaneAccuracyFormula {
  n: number;
  /** Minutes. */
  meanAbsoluteError: number | null;
  /** Minutes; positive: waits were shorter than told. */
  bias: number | null;
  shareUnderEstimate: number | null;
}

export interface ErrorSummary {
  n: number;
  /** Minutes. */
  meanAbsoluteError: number | null;
  /** Minutes; positive: waits were shorter than told. */
  bias: number | null;
}

export interface PresenceRule {
  shopId: string;
  codeRequired: boolean;
  /** How long it counts to have shown it once. */
  lifetimeSeconds: number;
}

export interface ReplacePresenceRuleBody {
  codeRequired: boolean;
}

export interface PresenceCode {
  shopId: string;
  code: string;
  /** When to show the next one. */
  rotatesAt: string;
  /** When it is accepted no more. */
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
  /** In any case, with hyphens and spaces; O reads as 0, I and L as 1. */
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

/** A track in the queue. Votes are counted; who has voted is never told. */
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

export interface Challenge {
  id: string;
  name: string;
  /** The shop whose staff keeps it. */
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
  /** Behind startsAt. */
  endsAt: string;
  mode: "add" | "best" | Word;
  order?: "descending" | "ascending" | Word | null;
}

export interface AddScoreBody {
  /** Backends must name it; others are themselves. */
  userId?: string | null;
  score: number;
  /** Shown beside the score; left out, it stays as it is. */
  displayName?: string | null;
}

export interface AddedScore {
  challengeId: string;
  userId: string;
  displayName: string | null;
  score: number;
  rank: number;
  position: number;
  /** False: the score stayed as it was. */
  changed: boolean;
  entries: number;
  /** Counts the changes of the leaderboard. */
  version: number;
  epoch: string;
}

export type GetLeaderboardAround = "me" | Word;

export interface Leaderboard {
  challengeId: string;
  entries: number;
  /** Counts the changes of the leaderboard. */
  version: number;
  epoch: string;
  items: LeaderboardItem[];
  me: LeaderboardItem | null;
}

export interface LeaderboardItem {
  userId: string;
  displayName: string | null;
  score: number;
  /** One more than the number of better scores. */
  rank: number;
  /** Of each alone. */
  position: number;
}

export interface PostView {
  id: string;
  authorId: string;
  /** Its place among the tenant's posts; feeds are ordered by it. */
  sequence: number;
  visibility: "public" | "followers" | Word;
  text: string;
  media: string[];
  createdAt: string;
  likeCount: number;
  repostCount: number;
  /** By the caller. */
  liked: boolean;
  /** By the caller. */
  reposted: boolean;
}

export interface Post {
  id: string;
  authorId: string;
  /** Its place among the tenant's posts; feeds are ordered by it. */
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
  /** At most 4000 bytes; not blank without media. */
  text?: string | null;
  /** Addresses of pictures and films, which the service does not look at. */
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
  /** The number of the newest post of the tenant. */
  newest: number;
  /** With `since`: new posts of others. */
  newCount?: number;
  /** There are more than are counted. */
  newCountIsMore?: boolean;
}

export interface UserProfile {
  userId: string;
  followerCount: number;
  followingCount: number;
  postCount: number;
  /** The caller follows them. */
  followed: boolean;
  /** They follow the caller. */
  followsYou: boolean;
}

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

export interface Me {
  userId: string;
  tenant: string;
  role: string;
  isService: boolean;
  tier: string | null;
  scope: string[];
  omittedKeys: number;
  /** The keys that the token claims, where memberships say otherwise. */
  claims?: string[];
  tokenId: string | null;
  sessionId: string | null;
  issuedAt: string | null;
  expiresAt: string;
}

export interface Config {
  polling: ConfigPolling;
  rateLimit: ConfigRateLimit;
  stream: ConfigStream;
  requests: ConfigRequests;
  conversations: ConfigConversations;
  userRequests: ConfigUserRequests;
  posts: ConfigPosts;
  dj: ConfigDj;
  leaderboards: ConfigLeaderboards;
  /** What one stream may subscribe to, and the bounds of a filter; above them 422. */
  subscriptions: ConfigSubscriptions;
  /** How stale query keys are gathered before they are told. */
  invalidations: ConfigInvalidations;
  /** What a delivery of table changes may hold. */
  changes: ConfigChanges;
  /** What events of an app's own may hold. */
  publish: ConfigPublish;
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

export interface ConfigStream {
  heartbeatSeconds: number;
  retryMilliseconds: number;
  resumableHours: number;
  topicsMax: number;
  perUserMax: number;
}

export interface ConfigRequests {
  bodyBytesMax: number;
  idempotencyKeySeconds: number;
}

export interface ConfigConversations {
  membersMax: number;
  conversationsOfUserMax: number;
  textBytesMax: number;
  /** Messages that one step back of a read position may mark unread. */
  rewindMax: number;
  previewCharactersMax: number;
}

export interface ConfigUserRequests {
  /** Open requests of one who asks. */
  openMax: number;
  /** Requests that one PATCH marks as seen. */
  seenAtOnceMax: number;
}

export interface ConfigPosts {
  textBytesMax: number;
  mediaMax: number;
  /** Of the address of one of them. */
  mediaBytesMax: number;
  /** Authors that a user can follow. */
  followedMax: number;
  /** More new posts are said to be more. */
  newCountMax: number;
  pageMax: number;
  /** Engagement of a post is told once in this time at most. */
  tellingSeconds: number;
}

export interface ConfigDj {
  tracksMax: number;
  tracksPerUserMax: number;
  /** Of a shop's votes; more are told once a second. */
  updatesPerSecondMax: number;
  /** How long who has shown to be there counts as there. */
  presenceSeconds: number;
  /** How long a shop's code is shown. */
  codeSeconds: number;
}

export interface ConfigLeaderboards {
  entriesMax: number;
  topDefault: number;
  topMax: number;
  /** On each side of the caller. */
  aroundDefault: number;
  aroundMax: number;
  /** Lines of a board that those who watch it see live. */
  watchedTop: number;
  /** The pause between two updates of one board. */
  updateSeconds: number;
}

/** What one stream may subscribe to, and the bounds of a filter; above them 422. */
export interface ConfigSubscriptions {
  perStreamMax: number;
  requestBytesMax: number;
  idBytesMax: number;
  selectedColumnsMax: number;
  filterBytesMax: number;
  conditionsMax: number;
  /** Values of one `in`; split longer lists over several subscriptions. */
  valuesMax: number;
  valueBytesMax: number;
  valuesPerStreamMax: number;
  /** Conditions such as `like.%word%`. */
  searchesPerStreamMax: number;
  /** Characters between two `%` of a pattern. */
  patternRunMax: number;
}

/** How stale query keys are gathered before they are told. */
export interface ConfigInvalidations {
  /** Of tables that declare no other. */
  windowMilliseconds: number;
  /** Of more within a window a stream is told to fetch everything. */
  keysPerStreamMax: number;
  /** Of more `causesComplete` is false. */
  causesPerEventMax: number;
}

/** What a delivery of table changes may hold. */
export interface ConfigChanges {
  bodyBytesMax: number;
  itemsMax: number;
  itemBytesMax: number;
  duplicatesKnownSeconds: number;
  /** How many tables are declared; their names are not for everyone. */
  tables: number;
}

/** What events of an app's own may hold. */
export interface ConfigPublish {
  eventsMax: number;
  dataBytesMax: number;
  keysMax: number;
}

export interface StreamReady {
  streamId: string;
  userId: string;
  /** The tenant of the token. A client compares it and `userId` with its own token. */
  tenant: string;
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
  /** The first keys in the order of their texts; GET /v1/me has all. */
  scope: string[];
  /** All keys that the stream has. */
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

export interface NotificationUpdated {
  ids: string[];
  state: NotificationStateChange;
}

export interface NotificationRemoved {
  ids: string[];
}

export interface MessageCreated {
  conversationId: string;
  message: Message;
  preview: string;
  /** The conversation's new place in the list. */
  order: string;
  /** The receiver's own, in this conversation. */
  unread: number;
  badges: Badges;
}

/** The counts are there where they have changed. */
export interface MessageDeleted {
  conversationId: string;
  messageId: string;
  sequence: number;
  unread?: number;
  badges?: Badges;
}

/** It is new, or has another title or other members. */
export interface ConversationUpdated {
  conversation: ConversationSummary;
  joined: string[];
  left: string[];
}

/** The user is in it no more; the counts are there if they have changed. */
export interface ConversationRemoved {
  conversationId: string;
  badges?: Badges;
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
 * At most 20 a second of a shop at once; what is voted beyond them is told once a second, as it stands. The
 * positions of the other tracks follow from the scores.
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

/** The track's members are null when the music stops. */
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
 * At most once a second and challenge. To everybody whose rank, position or score has changed: the own ones. To
 * those who watch `leaderboard:{challengeId}`: the first 100 lines once, as they were published last, and then what
 * has become of them: some hundred bytes as a rule, 10 KB where all have moved, 35 with the longest ids and names. A
 * change belongs to whoever has the version `since`. Who has a larger one than `version` has it already; who has
 * another one was too slow, and names the topic anew, which sends the state. The own ones have no id and are not
 * replayed; a stream begins with those of the challenges that have moved within the last hour.
 */
export type LeaderboardUpdate = OwnRank | LeaderboardTop | LeaderboardChange;

export interface OwnRank {
  challengeId: string;
  rank: number;
  position: number;
  score: number;
  /** Changes that it tells of; 0 at the beginning of a stream. */
  changed: number;
  version: number;
  epoch: string;
}

export interface LeaderboardTop {
  challengeId: string;
  entries: number;
  top: LeaderboardItem[];
  /** Changes that it tells of; 0 at the beginning of a stream. */
  changed: number;
  version: number;
  epoch: string;
}

export interface LeaderboardChange {
  challengeId: string;
  entries: number;
  /** The version whose lines these change. */
  since: number;
  /**
   * Lines that came, or are not what or where they were. Without a score it and the name are as they were, and
   * others have passed.
   */
  moved: LeaderboardChangeMoved[];
  /** Users who are not among the first lines any more. */
  left: string[];
  /** Changes that it tells of. */
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

export interface QueryInvalidate {
  keys: string[][];
  causes: ChangeCause[];
  /** False where a cause is withheld or left out; then it must not be taken for one's own echo. */
  causesComplete: boolean;
}

/** A change that made keys stale; no column of its row. */
export interface ChangeCause {
  schema: string;
  table: string;
  type: "INSERT" | "UPDATE" | "DELETE" | Word;
  recordId: string | null;
  actorId: string | null;
  /** The `X-Client-Id` of the client that made it. */
  originId: string | null;
}

export interface TableChange {
  subscriptionIds: string[];
  schema: string;
  table: string;
  type: "INSERT" | "UPDATE" | "DELETE" | Word;
  /** What it means for those who asked, by their filter and by what they may see. */
  change: "enter" | "update" | "leave" | Word;
  /** The selected columns; null of a row that left. */
  record: { [name: string]: any } | null;
  /** Of a row that left the primary key alone. */
  oldRecord: { [name: string]: any } | null;
  commitTimestamp: string | null;
}

export interface EngagementUpdate {
  postIds: string[];
  /** By record, its counts by the names that the table declares. */
  updates: { [name: string]: { [name: string]: any } };
}

/**
 * To connected followers of its author, as they are at that moment, and to the author's other devices. `postId`,
 * `barberId` and `timestamp` are the post's `id`, `authorId` and `createdAt` once more, for apps that know them by
 * these names.
 */
export interface FeedNewPost {
  id: string;
  authorId: string;
  /** Its place among the tenant's posts; feeds are ordered by it. */
  sequence: number;
  visibility: "public" | "followers" | Word;
  text: string;
  media: string[];
  createdAt: string;
  likeCount: number;
  repostCount: number;
  type: "new_post";
  postId: string;
  barberId: string;
  timestamp: string;
}

export interface FeedPostRemoved {
  postId: string;
}

/** To the follower's own streams; from here on they hear the author's posts, or do not any more. */
export interface FollowChanged {
  authorId: string;
  followerId: string;
  followed: boolean;
}

/** What a refusal says (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /**
   * Stable: programs go by it. All there are stand in `x-codes`; a later version may have more, to be taken by their
   * status.
   */
  code: ProblemCode;
  instance: string;
  requestId: string;
  allowed?: string[];
  errors?: ProblemError[];
}

export interface ProblemError {
  /** A JSON pointer, ?name of a query item, or a header. */
  pointer: string;
  detail: string;
}

export type ProblemCode =
  | "barber.booked" | "booking.in_past" | "booking.invalid_transition" | "booking.not_changeable"
  | "booking.overlap" | "booking.staff_only" | "booking.tier_not_claimed" | "challenge.ended" | "challenge.full"
  | "challenge.has_scores" | "challenge.not_started" | "challenge.too_many" | "changes.congested"
  | "changes.format_contradicted" | "changes.not_a_batch" | "changes.not_an_event" | "changes.too_large"
  | "changes.too_many" | "conversation.direct" | "conversation.full" | "conversation.id_taken"
  | "conversation.not_yours" | "conversation.too_many" | "dj.not_active" | "dj.not_present" | "dj.playing"
  | "dj.queue_full" | "dj.too_many_tracks" | "event_budget" | "explain.token_pending" | "follow.self"
  | "follow.too_many" | "idempotency.key_reused" | "idempotency.malformed_key" | "idempotency.missing_key"
  | "insufficient_scope" | "internal" | "invalid_token" | "invalid_token.expired" | "invalid_token.not_ours"
  | "invalid_token.not_yet_valid" | "invalid_token.revoked" | "keys.unavailable" | "message.id_taken"
  | "message.not_yours" | "not_found" | "not_permitted" | "not_ready" | "origin.not_allowed" | "post.not_yours"
  | "post.too_many" | "precondition.required" | "precondition.stale" | "presence.code_required"
  | "presence.no_code" | "presence.too_many_codes" | "presence.wrong_code" | "rate_limited" | "request.answered"
  | "request.invalid" | "request.malformed" | "request.malformed_json" | "request.media_type" | "request.not_yours"
  | "request.too_large" | "request.too_many" | "request.too_slow" | "revocations.unknown"
  | "route.method_not_allowed" | "route.not_found" | "score.not_judge" | "score.overflow" | "shop.full"
  | "storage.full" | "storage.moved" | "stream.capacity" | "stream.ticket_invalid" | "stream.token_pending"
  | "stream.too_many" | "stream.unanswered" | "subscriptions.full" | "subscriptions.too_many" | "topic.forbidden"
  | "unauthenticated" | "unavailable" | "unavailable.undecided" | "validation" | "webhook.off" | "webhook.refused"
  | Word;

/** The events of a stream, by their names, with their data. */
export interface Events {
  "stream:ready": StreamReady;
  "stream:resync": StreamResync;
  "stream:scope": StreamScope;
  "stream:expiring": StreamExpiring;
  "stream:closing": StreamClosing;
  "badges:update": Badges;
  "notification:created": Notification;
  "notification:updated": NotificationUpdated;
  "notification:removed": NotificationRemoved;
  "preferences:update": Preferences;
  "message:created": MessageCreated;
  "message:deleted": MessageDeleted;
  "conversation:read": ReadPosition;
  "conversation:updated": ConversationUpdated;
  "conversation:removed": ConversationRemoved;
  "request:created": UserRequest;
  "request:updated": UserRequest;
  "request:removed": UserRequest;
  "booking:status_change": BookingStatusChange;
  "queue:update": QueueStatus;
  "dj:session": DJSession;
  "dj:queue_update": DjQueueUpdate;
  "track:added": TrackAdded;
  "track:playing": TrackPlaying;
  "track:removed": TrackRemoved;
  "leaderboard:update": LeaderboardUpdate;
  "query:invalidate": QueryInvalidate;
  "table:change": TableChange;
  "engagement_update": EngagementUpdate;
  "feed:new_post": FeedNewPost;
  "feed:post_removed": FeedPostRemoved;
  "follow:changed": FollowChanged;
}

/** All calls by method and path: what each is given, and what it brings. */
export interface Operations {
  /** All counts of the caller in one call. */
  "GET /v1/badges": {
    query: { include?: GetBadgesInclude };
    body: undefined;
    answer: Badges;
  };
  /** Something happened to a user; they are told. For backends. */
  "POST /v1/events": {
    query: {};
    body: Event;
    answer: Notified;
  };
  /** The caller's notifications, newest first. */
  "GET /v1/notifications": {
    query: { category?: string; state?: ListNotificationsState; priority?: Priority; limit?: number; cursor?: string };
    body: undefined;
    answer: Page<Notification>;
  };
  /** A notification that is no event. For backends. */
  "POST /v1/notifications": {
    query: {};
    body: NotificationDraft;
    answer: Notified;
  };
  /** The same for all up to one that was on the screen. */
  "PATCH /v1/notifications": {
    query: {};
    body: ChangeNotificationsBody;
    answer: ChangedCount;
  };
  /** One notification, with the counts. */
  "GET /v1/notifications/{id}": {
    query: {};
    body: undefined;
    answer: NotificationWithBadges;
  };
  /** Seen, read or archived, or the undoing of it. */
  "PATCH /v1/notifications/{id}": {
    query: {};
    body: NotificationStateChange;
    answer: NotificationWithBadges;
  };
  /** Removes it for good, with its badge. */
  "DELETE /v1/notifications/{id}": {
    query: {};
    body: undefined;
    answer: BadgesAfter;
  };
  /** The caller's conversations, the one with the newest message first. */
  "GET /v1/conversations": {
    query: { unread?: boolean; limit?: number; cursor?: string };
    body: undefined;
    answer: Page<Conversation>;
  };
  /** A conversation of the caller with others. */
  "POST /v1/conversations": {
    query: {};
    body: CreateConversationBody;
    answer: ConversationWithMembers;
  };
  /** One conversation, with its members, and what of it is unread to the caller. */
  "GET /v1/conversations/{id}": {
    query: {};
    body: undefined;
    answer: ConversationWithMembers;
  };
  /** Another title; null for none. */
  "PATCH /v1/conversations/{id}": {
    query: {};
    body: ChangeConversationBody;
    answer: ConversationWithMembers;
  };
  /** Adds somebody to a group, who has nothing unread from before. */
  "PUT /v1/conversations/{id}/members/{userId}": {
    query: {};
    body: undefined;
    answer: ConversationWithMembers;
  };
  /** Leaves a conversation; its unread messages leave the badge. */
  "DELETE /v1/conversations/{id}/members/{userId}": {
    query: {};
    body: undefined;
    answer: BadgesAfter;
  };
  /** Messages, the newest first; with `since`, the oldest first from behind that number. */
  "GET /v1/conversations/{id}/messages": {
    query: { since?: number; limit?: number; cursor?: string };
    body: undefined;
    answer: Page<Message>;
  };
  /** Sends a message. */
  "POST /v1/conversations/{id}/messages": {
    query: {};
    body: SendMessageBody;
    answer: SentMessage;
  };
  /** Takes a message's text away; it is unread no more. */
  "DELETE /v1/conversations/{id}/messages/{messageId}": {
    query: {};
    body: undefined;
    answer: BadgesAfter;
  };
  /** How far the caller has read. */
  "PUT /v1/conversations/{id}/read-position": {
    query: {};
    body: ReadConversationBody;
    answer: ReadPosition;
  };
  /** What waits for the caller, or what the caller waits for; newest first. */
  "GET /v1/requests": {
    query: {
      direction?: ListRequestsDirection;
      status?: ListRequestsStatus;
      kind?: RequestKind;
      limit?: number;
      cursor?: string;
    };
    body: undefined;
    answer: Page<UserRequest>;
  };
  /** Asks somebody. */
  "POST /v1/requests": {
    query: {};
    body: CreateRequestBody;
    answer: UserRequestWithBadges;
  };
  /** The caller has seen the open requests up to one. */
  "PATCH /v1/requests": {
    query: {};
    body: SeeRequestsBody;
    answer: ChangedCount;
  };
  /** One request, for its two users and backends. */
  "GET /v1/requests/{id}": {
    query: {};
    body: undefined;
    answer: UserRequest;
  };
  /** Accepts or declines; by whoever was asked, or a backend. */
  "PATCH /v1/requests/{id}": {
    query: {};
    body: AnswerRequestBody;
    answer: UserRequestWithBadges;
  };
  /** Withdraws an open request, with its notification. */
  "DELETE /v1/requests/{id}": {
    query: {};
    body: undefined;
    answer: BadgesAfter;
  };
  /** How the caller wants to be reached. */
  "GET /v1/preferences": {
    query: {};
    body: undefined;
    answer: Preferences;
  };
  /** Replaces all of them; what is left out takes its default. */
  "PUT /v1/preferences": {
    query: {};
    body: PreferencesWish;
    answer: Preferences;
  };
  /** A ticket that opens one stream within 30 seconds. */
  "POST /v1/stream-tickets": {
    query: {};
    body: CreateStreamTicketBody | undefined;
    answer: StreamTicket;
  };
  /** What one of the caller's streams subscribed to, and what it was given. */
  "GET /v1/streams/{id}": {
    query: {};
    body: undefined;
    answer: StreamState;
  };
  /** The topics and tables of an open stream of the caller. */
  "GET /v1/streams/{id}/subscriptions": {
    query: {};
    body: undefined;
    answer: Subscriptions;
  };
  /** Replaces them at once, without reconnecting. */
  "PUT /v1/streams/{id}/subscriptions": {
    query: {};
    body: ReplaceSubscriptionsBody;
    answer: Subscriptions;
  };
  /** An open stream lives on with a new token of the same user. */
  "PUT /v1/streams/{id}/token": {
    query: {};
    body: RenewStreamTokenBody;
    answer: TokenExpiry;
  };
  /** Revokes a token, a session, or what a user was issued before a moment. For backends. */
  "POST /v1/revocations": {
    query: {};
    body: RevokeBody;
    answer: Revocation;
  };
  /** Rows that changed in an app's own database. For backends and webhooks. */
  "POST /v1/changes": {
    query: { format?: TakeChangesFormat };
    body: any;
    answer: ChangeResult;
  };
  /** Events of an app's own, one or several in their order. For backends. */
  "POST /v1/publish": {
    query: {};
    body: OwnEvent | OwnEvent[];
    answer: Published;
  };
  /** What waits to be sent to the app's own address. For backends. */
  "GET /v1/webhooks": {
    query: {};
    body: undefined;
    answer: WebhookState;
  };
  /** Webhooks that are tried no more, the newest first. For backends. */
  "GET /v1/webhooks/dead": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    answer: Page<DeadWebhook>;
  };
  /** Has a dead webhook be tried for another day, from now on. For backends. */
  "POST /v1/webhooks/dead/{id}/retry": {
    query: {};
    body: undefined;
    answer: DeadWebhook;
  };
  /** Why an event reached, or did not reach, the holder of a token. For backends. */
  "POST /v1/explain": {
    query: {};
    body: ExplainBody;
    answer: Explanation;
  };
  /** The shops of the caller's tenant, by id. */
  "GET /v1/shops": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    answer: Page<Shop>;
  };
  /** One shop. */
  "GET /v1/shops/{id}": {
    query: {};
    body: undefined;
    answer: Shop;
  };
  /** Makes or changes a shop. For backends, administrators and the shop's staff. */
  "PUT /v1/shops/{id}": {
    query: {};
    body: ReplaceShopBody;
    answer: Shop;
  };
  /** The shop's barbers, by id. */
  "GET /v1/shops/{id}/barbers": {
    query: {};
    body: undefined;
    answer: Page<Barber>;
  };
  /** A barber comes, goes, or takes a break. */
  "PUT /v1/shops/{id}/barbers/{barberId}": {
    query: {};
    body: ReplaceBarberBody;
    answer: Barber;
  };
  /** Removes a barber who has no bookings any more. */
  "DELETE /v1/shops/{id}/barbers/{barberId}": {
    query: {};
    body: undefined;
    answer: undefined;
  };
  /** How long the wait is; never older than a minute. */
  "GET /v1/shops/{id}/queue": {
    query: {};
    body: undefined;
    answer: QueueStatus;
  };
  /** The line, as far as the caller may see it. */
  "GET /v1/shops/{id}/queue/entries": {
    query: {};
    body: undefined;
    answer: Page<QueueEntry>;
  };
  /** A customer without a booking joins the line. For staff and backends. */
  "POST /v1/shops/{id}/queue/entries": {
    query: {};
    body: AddWalkInBody;
    answer: Booking;
  };
  /** How good past estimates were, and the plain formula's beside them. For staff and backends. */
  "GET /v1/shops/{id}/queue/accuracy": {
    query: {};
    body: undefined;
    answer: QueueAccuracy;
  };
  /** How guests show that they are at the shop. */
  "GET /v1/shops/{id}/presence": {
    query: {};
    body: undefined;
    answer: PresenceRule;
  };
  /** Whether guests must give the shop's code. For backends, administrators and the shop's staff. */
  "PUT /v1/shops/{id}/presence": {
    query: {};
    body: ReplacePresenceRuleBody;
    answer: PresenceRule;
  };
  /** The code to show in the shop now. For backends, administrators and the shop's staff. */
  "GET /v1/shops/{id}/presence/code": {
    query: {};
    body: undefined;
    answer: PresenceCode;
  };
  /** Whether the caller is at the shop. */
  "GET /v1/shops/{id}/presence/me": {
    query: {};
    body: undefined;
    answer: Presence;
  };
  /** The caller is at the shop, for the next ten minutes. */
  "PUT /v1/shops/{id}/presence/me": {
    query: {};
    body: ShowPresenceBody | undefined;
    answer: Presence;
  };
  /** The caller has left the shop. */
  "DELETE /v1/shops/{id}/presence/me": {
    query: {};
    body: undefined;
    answer: undefined;
  };
  /** What plays, and what is to come, in order. */
  "GET /v1/shops/{id}/dj": {
    query: {};
    body: undefined;
    answer: DJSession;
  };
  /** Lets guests choose the music, or ends it. For backends, administrators and the shop's staff. */
  "PUT /v1/shops/{id}/dj": {
    query: {};
    body: ReplaceDJSessionBody;
    answer: DJSession;
  };
  /** The next track by order plays. For backends, administrators and the shop's staff. */
  "POST /v1/shops/{id}/dj/current-track": {
    query: {};
    body: PlayNextTrackBody | undefined;
    answer: DJSession;
  };
  /** A queued track plays now; null stops the music. For backends, administrators and the shop's staff. */
  "PUT /v1/shops/{id}/dj/current-track": {
    query: {};
    body: PlayTrackBody;
    answer: DJSession;
  };
  /** Adds a track, voted up by who adds it; one that is queued already is voted up. */
  "POST /v1/shops/{id}/dj/tracks": {
    query: {};
    body: AddTrackBody;
    answer: DJItemAnswer;
  };
  /** Takes a track out of the queue. For who has added it, and who runs the shop. */
  "DELETE /v1/shops/{id}/dj/tracks/{trackId}": {
    query: {};
    body: undefined;
    answer: undefined;
  };
  /** The caller's vote on a track; one side at a time, none takes it back. */
  "PUT /v1/shops/{id}/dj/tracks/{trackId}/vote": {
    query: {};
    body: VoteOnTrackBody;
    answer: DJItemAnswer;
  };
  /** The bookings the caller may see, latest start first. */
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
    answer: Page<Booking>;
  };
  /** Books a time. */
  "POST /v1/bookings": {
    query: {};
    body: CreateBookingBody;
    answer: Booking;
  };
  /** One booking; its ETag begins with its version. */
  "GET /v1/bookings/{id}": {
    query: {};
    body: undefined;
    answer: Booking;
  };
  /** Another status, time or barber, or that the customer is there. */
  "PATCH /v1/bookings/{id}": {
    query: {};
    body: ChangeBookingBody;
    answer: Booking;
  };
  /** Who changed what, when; oldest first. Nothing in it is ever changed. */
  "GET /v1/bookings/{id}/history": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    answer: Page<BookingHistoryEntry>;
  };
  /** The challenges of the caller's tenant, by id. */
  "GET /v1/challenges": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    answer: Page<Challenge>;
  };
  /** One challenge. */
  "GET /v1/challenges/{id}": {
    query: {};
    body: undefined;
    answer: Challenge;
  };
  /** Makes or changes a challenge. For backends, administrators and the staff of its shop. */
  "PUT /v1/challenges/{id}": {
    query: {};
    body: ReplaceChallengeBody;
    answer: Challenge;
  };
  /** Removes a challenge with all its scores. */
  "DELETE /v1/challenges/{id}": {
    query: {};
    body: undefined;
    answer: undefined;
  };
  /** A score of whom a backend or an administrator names. */
  "POST /v1/challenges/{id}/scores": {
    query: {};
    body: AddScoreBody;
    answer: AddedScore;
  };
  /** Takes a user off the leaderboard. One's own; anybody's for backends and administrators. */
  "DELETE /v1/challenges/{id}/scores/{userId}": {
    query: {};
    body: undefined;
    answer: undefined;
  };
  /** The top, or those around the caller; the caller's own place always. */
  "GET /v1/challenges/{id}/leaderboard": {
    query: { limit?: number; around?: GetLeaderboardAround };
    body: undefined;
    answer: Leaderboard;
  };
  /** Posts of one author, or the public ones of all, the newest first. */
  "GET /v1/posts": {
    query: { authorId?: string; limit?: number; cursor?: string };
    body: undefined;
    answer: Page<PostView>;
  };
  /** Posts. */
  "POST /v1/posts": {
    query: {};
    body: CreatePostBody;
    answer: PostView;
  };
  /** One post. */
  "GET /v1/posts/{id}": {
    query: {};
    body: undefined;
    answer: PostView;
  };
  /** Removes a post. Its author, an administrator or a backend does. */
  "DELETE /v1/posts/{id}": {
    query: {};
    body: undefined;
    answer: undefined;
  };
  /** Likes a post. Doing it again changes nothing. */
  "PUT /v1/posts/{id}/likes/{userId}": {
    query: {};
    body: undefined;
    answer: Engagement;
  };
  /** Takes it back. */
  "DELETE /v1/posts/{id}/likes/{userId}": {
    query: {};
    body: undefined;
    answer: Engagement | undefined;
  };
  /** Reposts a post. Doing it again changes nothing. */
  "PUT /v1/posts/{id}/reposts/{userId}": {
    query: {};
    body: undefined;
    answer: Engagement;
  };
  /** Takes it back. */
  "DELETE /v1/posts/{id}/reposts/{userId}": {
    query: {};
    body: undefined;
    answer: Engagement | undefined;
  };
  /** Posts of those whom the caller follows, and the own ones, the newest first. */
  "GET /v1/feed": {
    query: { since?: number; limit?: number; cursor?: string };
    body: undefined;
    answer: Feed;
  };
  /** How many follow a user, are followed and were posted; `me` is the caller. */
  "GET /v1/users/{id}": {
    query: {};
    body: undefined;
    answer: UserProfile;
  };
  /** Those who follow a user, as far as the caller is one of the two. */
  "GET /v1/users/{id}/followers": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    answer: Page<Following>;
  };
  /** Those whom a user follows, as far as the caller is one of the two. */
  "GET /v1/users/{id}/following": {
    query: { limit?: number; cursor?: string };
    body: undefined;
    answer: Page<Following>;
  };
  /** Since when one follows the other. */
  "GET /v1/users/{id}/followers/{followerId}": {
    query: {};
    body: undefined;
    answer: Following;
  };
  /** Follows a user. Doing it again changes nothing. */
  "PUT /v1/users/{id}/followers/{followerId}": {
    query: {};
    body: undefined;
    answer: Followed;
  };
  /** Follows no longer. An author lets go of a follower by the same. */
  "DELETE /v1/users/{id}/followers/{followerId}": {
    query: {};
    body: undefined;
    answer: undefined;
  };
  /** The token as the service reads it. */
  "GET /v1/me": {
    query: {};
    body: undefined;
    answer: Me;
  };
  /** The constants that clients poll, wait and draw by. */
  "GET /v1/config": {
    query: {};
    body: undefined;
    answer: Config;
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

/** The body that a call is given. */
export type BodyOf<Method extends string, Path extends string> = OperationOf<Method, Path>["body"];

/** An event of a stream with its data read; `id` is where to resume. */
export type StreamEvent = { [Name in keyof Events]: { name: Name; data: Events[Name]; id: string } }[keyof Events];
