// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct Me: Codable, Sendable, Hashable {
        public internal(set) var identity: String
        public internal(set) var userId: String
        public internal(set) var tenant: String
        public internal(set) var role: String
        public internal(set) var isService: Bool
        public internal(set) var tier: String?
        public internal(set) var scope: [String]
        public internal(set) var omittedKeys: Int
        /// Keys in the token. Present only if the scope differs because of memberships.
        public internal(set) var claims: [String]?
        /// What a backend may do. Present only if its key or its token limits it.
        public internal(set) var capabilities: [Me.Capability]?
        public internal(set) var tokenId: String?
        public internal(set) var sessionId: String?
        public internal(set) var issuedAt: Date?
        /// The end of 9999 for a service key, which does not expire.
        public internal(set) var expiresAt: Date

        public init(
            identity: String, userId: String, tenant: String, role: String, isService: Bool, tier: String? = nil,
            scope: [String], omittedKeys: Int, claims: [String]? = nil, capabilities: [Me.Capability]? = nil,
            tokenId: String? = nil, sessionId: String? = nil, issuedAt: Date? = nil, expiresAt: Date
        ) {
            self.identity = identity
            self.userId = userId
            self.tenant = tenant
            self.role = role
            self.isService = isService
            self.tier = tier
            self.scope = scope
            self.omittedKeys = omittedKeys
            self.claims = claims
            self.capabilities = capabilities
            self.tokenId = tokenId
            self.sessionId = sessionId
            self.issuedAt = issuedAt
            self.expiresAt = expiresAt
        }

        public struct Capability: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let notify = Capability(rawValue: "notify")
            public static let publish = Capability(rawValue: "publish")
            public static let rows = Capability(rawValue: "rows")
            public static let read = Capability(rawValue: "read")
            public static let erase = Capability(rawValue: "erase")
            public static let manage = Capability(rawValue: "manage")
        }
    }

    /// A feature set that is off has no members here.
    public struct Config: Codable, Sendable, Hashable {
        public internal(set) var stream: Config.Stream
        /// Limits of one stream's subscriptions and filters. Exceeding one is 422.
        public internal(set) var subscriptions: Config.Subscriptions
        /// How the service collects stale query keys before it sends them.
        public internal(set) var invalidations: Config.Invalidations
        /// Limits of a delivery of table changes.
        public internal(set) var changes: Config.Changes?
        /// Limits of the events that an app publishes.
        public internal(set) var publish: Config.Publish?
        /// Push messages to devices.
        public internal(set) var push: Config.Push
        /// The feature sets that are on. What belongs to no set is always on.
        public internal(set) var features: [Config.Feature]
        public internal(set) var polling: Config.Polling
        public internal(set) var rateLimit: Config.RateLimit
        public internal(set) var requests: Config.Requests
        public internal(set) var conversations: Config.Conversations?
        public internal(set) var userRequests: Config.UserRequests?
        public internal(set) var posts: Config.Posts?
        public internal(set) var dj: Config.Dj?
        public internal(set) var leaderboards: Config.Leaderboards?

        public init(
            stream: Config.Stream, subscriptions: Config.Subscriptions, invalidations: Config.Invalidations,
            changes: Config.Changes? = nil, publish: Config.Publish? = nil, push: Config.Push,
            features: [Config.Feature], polling: Config.Polling, rateLimit: Config.RateLimit, requests: Config.Requests,
            conversations: Config.Conversations? = nil, userRequests: Config.UserRequests? = nil,
            posts: Config.Posts? = nil, dj: Config.Dj? = nil, leaderboards: Config.Leaderboards? = nil
        ) {
            self.stream = stream
            self.subscriptions = subscriptions
            self.invalidations = invalidations
            self.changes = changes
            self.publish = publish
            self.push = push
            self.features = features
            self.polling = polling
            self.rateLimit = rateLimit
            self.requests = requests
            self.conversations = conversations
            self.userRequests = userRequests
            self.posts = posts
            self.dj = dj
            self.leaderboards = leaderboards
        }

        public struct Stream: Codable, Sendable, Hashable {
            public internal(set) var heartbeatSeconds: Int
            public internal(set) var retryMilliseconds: Int
            public internal(set) var resumableHours: Int
            public internal(set) var topicsMax: Int
            public internal(set) var perUserMax: Int

            public init(
                heartbeatSeconds: Int, retryMilliseconds: Int, resumableHours: Int, topicsMax: Int, perUserMax: Int
            ) {
                self.heartbeatSeconds = heartbeatSeconds
                self.retryMilliseconds = retryMilliseconds
                self.resumableHours = resumableHours
                self.topicsMax = topicsMax
                self.perUserMax = perUserMax
            }
        }

        /// Limits of one stream's subscriptions and filters. Exceeding one is 422.
        public struct Subscriptions: Codable, Sendable, Hashable {
            public internal(set) var perStreamMax: Int
            public internal(set) var requestBytesMax: Int
            public internal(set) var idBytesMax: Int
            public internal(set) var selectedColumnsMax: Int
            public internal(set) var filterBytesMax: Int
            public internal(set) var conditionsMax: Int
            /// Maximum number of values in one `in`. Split longer lists over several subscriptions.
            public internal(set) var valuesMax: Int
            public internal(set) var valueBytesMax: Int
            /// Bytes of a number or a time in a filter.
            public internal(set) var numberBytesMax: Int
            public internal(set) var valuesPerStreamMax: Int
            /// Maximum number of conditions such as `like.%word%`.
            public internal(set) var searchesPerStreamMax: Int
            /// Maximum number of characters between two `%` of a pattern.
            public internal(set) var patternRunMax: Int

            public init(
                perStreamMax: Int, requestBytesMax: Int, idBytesMax: Int, selectedColumnsMax: Int, filterBytesMax: Int,
                conditionsMax: Int, valuesMax: Int, valueBytesMax: Int, numberBytesMax: Int, valuesPerStreamMax: Int,
                searchesPerStreamMax: Int, patternRunMax: Int
            ) {
                self.perStreamMax = perStreamMax
                self.requestBytesMax = requestBytesMax
                self.idBytesMax = idBytesMax
                self.selectedColumnsMax = selectedColumnsMax
                self.filterBytesMax = filterBytesMax
                self.conditionsMax = conditionsMax
                self.valuesMax = valuesMax
                self.valueBytesMax = valueBytesMax
                self.numberBytesMax = numberBytesMax
                self.valuesPerStreamMax = valuesPerStreamMax
                self.searchesPerStreamMax = searchesPerStreamMax
                self.patternRunMax = patternRunMax
            }
        }

        /// How the service collects stale query keys before it sends them.
        public struct Invalidations: Codable, Sendable, Hashable {
            /// Length of the window for tables that do not declare their own.
            public internal(set) var windowMilliseconds: Int
            /// Maximum number of stale keys per window. Beyond it, the stream receives `stream:resync`.
            public internal(set) var keysPerStreamMax: Int
            /// Maximum number of causes per event. Beyond it, `causesComplete` is false.
            public internal(set) var causesPerEventMax: Int

            public init(windowMilliseconds: Int, keysPerStreamMax: Int, causesPerEventMax: Int) {
                self.windowMilliseconds = windowMilliseconds
                self.keysPerStreamMax = keysPerStreamMax
                self.causesPerEventMax = causesPerEventMax
            }
        }

        /// Limits of a delivery of table changes.
        public struct Changes: Codable, Sendable, Hashable {
            public internal(set) var bodyBytesMax: Int
            public internal(set) var itemsMax: Int
            public internal(set) var itemBytesMax: Int
            public internal(set) var duplicatesKnownSeconds: Int
            /// Number of declared tables. Their names are not public.
            public internal(set) var tables: Int

            public init(bodyBytesMax: Int, itemsMax: Int, itemBytesMax: Int, duplicatesKnownSeconds: Int, tables: Int) {
                self.bodyBytesMax = bodyBytesMax
                self.itemsMax = itemsMax
                self.itemBytesMax = itemBytesMax
                self.duplicatesKnownSeconds = duplicatesKnownSeconds
                self.tables = tables
            }
        }

        /// Limits of the events that an app publishes.
        public struct Publish: Codable, Sendable, Hashable {
            public internal(set) var eventsMax: Int
            public internal(set) var dataBytesMax: Int
            public internal(set) var keysMax: Int

            public init(eventsMax: Int, dataBytesMax: Int, keysMax: Int) {
                self.eventsMax = eventsMax
                self.dataBytesMax = dataBytesMax
                self.keysMax = keysMax
            }
        }

        /// Push messages to devices.
        public struct Push: Codable, Sendable, Hashable {
            /// Whether devices can be registered.
            public internal(set) var enabled: Bool
            /// The platforms that are set up.
            public internal(set) var platforms: [PushPlatform]
            /// The `applicationServerKey` for `PushManager.subscribe`, in base64url; null without Web Push.
            public internal(set) var webPushKey: String?

            public init(enabled: Bool, platforms: [PushPlatform], webPushKey: String? = nil) {
                self.enabled = enabled
                self.platforms = platforms
                self.webPushKey = webPushKey
            }
        }

        public struct Feature: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let bell = Feature(rawValue: "bell")
            public static let chat = Feature(rawValue: "chat")
            public static let requests = Feature(rawValue: "requests")
            public static let social = Feature(rawValue: "social")
            public static let shops = Feature(rawValue: "shops")
            public static let challenges = Feature(rawValue: "challenges")
            public static let rows = Feature(rawValue: "rows")
            public static let publish = Feature(rawValue: "publish")
        }

        public struct Polling: Codable, Sendable, Hashable {
            public internal(set) var connectedSeconds: Int
            public internal(set) var disconnectedSeconds: Int
            public internal(set) var tabSwitchStaleSeconds: Int

            public init(connectedSeconds: Int, disconnectedSeconds: Int, tabSwitchStaleSeconds: Int) {
                self.connectedSeconds = connectedSeconds
                self.disconnectedSeconds = disconnectedSeconds
                self.tabSwitchStaleSeconds = tabSwitchStaleSeconds
            }
        }

        public struct RateLimit: Codable, Sendable, Hashable {
            public internal(set) var requests: Int
            public internal(set) var windowSeconds: Int

            public init(requests: Int, windowSeconds: Int) {
                self.requests = requests
                self.windowSeconds = windowSeconds
            }
        }

        public struct Requests: Codable, Sendable, Hashable {
            public internal(set) var bodyBytesMax: Int
            public internal(set) var idempotencyKeySeconds: Int

            public init(bodyBytesMax: Int, idempotencyKeySeconds: Int) {
                self.bodyBytesMax = bodyBytesMax
                self.idempotencyKeySeconds = idempotencyKeySeconds
            }
        }

        public struct Conversations: Codable, Sendable, Hashable {
            public internal(set) var membersMax: Int
            public internal(set) var conversationsOfUserMax: Int
            public internal(set) var textBytesMax: Int
            /// Maximum number of messages that one step back of the read position can mark as unread.
            public internal(set) var rewindMax: Int
            public internal(set) var previewCharactersMax: Int

            public init(
                membersMax: Int, conversationsOfUserMax: Int, textBytesMax: Int, rewindMax: Int,
                previewCharactersMax: Int
            ) {
                self.membersMax = membersMax
                self.conversationsOfUserMax = conversationsOfUserMax
                self.textBytesMax = textBytesMax
                self.rewindMax = rewindMax
                self.previewCharactersMax = previewCharactersMax
            }
        }

        public struct UserRequests: Codable, Sendable, Hashable {
            /// Maximum number of open requests per requester.
            public internal(set) var openMax: Int
            /// Maximum number of requests that one PATCH marks as seen.
            public internal(set) var seenAtOnceMax: Int

            public init(openMax: Int, seenAtOnceMax: Int) {
                self.openMax = openMax
                self.seenAtOnceMax = seenAtOnceMax
            }
        }

        public struct Posts: Codable, Sendable, Hashable {
            public internal(set) var textBytesMax: Int
            public internal(set) var mediaMax: Int
            /// Maximum length of one media URL.
            public internal(set) var mediaBytesMax: Int
            /// Maximum number of authors that a user can follow.
            public internal(set) var followedMax: Int
            /// Maximum value of `newCount`. If there are more, `newCountIsMore` is true.
            public internal(set) var newCountMax: Int
            public internal(set) var pageMax: Int
            /// Minimum seconds between two engagement updates of a post.
            public internal(set) var tellingSeconds: Int

            public init(
                textBytesMax: Int, mediaMax: Int, mediaBytesMax: Int, followedMax: Int, newCountMax: Int, pageMax: Int,
                tellingSeconds: Int
            ) {
                self.textBytesMax = textBytesMax
                self.mediaMax = mediaMax
                self.mediaBytesMax = mediaBytesMax
                self.followedMax = followedMax
                self.newCountMax = newCountMax
                self.pageMax = pageMax
                self.tellingSeconds = tellingSeconds
            }
        }

        public struct Dj: Codable, Sendable, Hashable {
            public internal(set) var tracksMax: Int
            public internal(set) var tracksPerUserMax: Int
            /// Maximum number of vote updates per shop. Further votes are combined into one update a second.
            public internal(set) var updatesPerSecondMax: Int
            /// Seconds for which a confirmed presence is valid.
            public internal(set) var presenceSeconds: Int
            /// Seconds for which a shop displays a code.
            public internal(set) var codeSeconds: Int

            public init(
                tracksMax: Int, tracksPerUserMax: Int, updatesPerSecondMax: Int, presenceSeconds: Int, codeSeconds: Int
            ) {
                self.tracksMax = tracksMax
                self.tracksPerUserMax = tracksPerUserMax
                self.updatesPerSecondMax = updatesPerSecondMax
                self.presenceSeconds = presenceSeconds
                self.codeSeconds = codeSeconds
            }
        }

        public struct Leaderboards: Codable, Sendable, Hashable {
            public internal(set) var entriesMax: Int
            public internal(set) var topDefault: Int
            public internal(set) var topMax: Int
            /// Number of entries on each side of the caller.
            public internal(set) var aroundDefault: Int
            public internal(set) var aroundMax: Int
            /// Number of lines that subscribers of a leaderboard receive live.
            public internal(set) var watchedTop: Int
            /// Seconds between two updates of a leaderboard.
            public internal(set) var updateSeconds: Int

            public init(
                entriesMax: Int, topDefault: Int, topMax: Int, aroundDefault: Int, aroundMax: Int, watchedTop: Int,
                updateSeconds: Int
            ) {
                self.entriesMax = entriesMax
                self.topDefault = topDefault
                self.topMax = topMax
                self.aroundDefault = aroundDefault
                self.aroundMax = aroundMax
                self.watchedTop = watchedTop
                self.updateSeconds = updateSeconds
            }
        }
    }

    public struct Erasure: Codable, Sendable, Hashable {
        public internal(set) var userId: String
        public internal(set) var state: ErasureState
        public internal(set) var requestedAt: Date
        public internal(set) var doneAt: Date?

        public init(userId: String, state: ErasureState, requestedAt: Date, doneAt: Date? = nil) {
            self.userId = userId
            self.state = state
            self.requestedAt = requestedAt
            self.doneAt = doneAt
        }
    }

    public struct ErasureState: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let pending = ErasureState(rawValue: "pending")
        public static let done = ErasureState(rawValue: "done")
    }

    public struct WebhookState: Codable, Sendable, Hashable {
        /// Whether a webhook address is configured. Without one, the service stores no webhooks.
        public internal(set) var enabled: Bool
        /// Webhooks that the receiver has not accepted yet, including those not due yet.
        public internal(set) var waiting: Int
        public internal(set) var oldestDueAt: Date?
        /// Highest number of attempts among the waiting webhooks.
        public internal(set) var attemptsMax: Int
        public internal(set) var dead: Int
        /// Last error among waiting and failed webhooks: `status_` followed by the status of the receiver's answer,
        /// `private_address`, `name_not_found`, `unreachable`, `timeout`, `tls` or `no_answer`.
        public internal(set) var lastError: String?
        public internal(set) var lastErrorAt: Date?

        public init(
            enabled: Bool, waiting: Int, oldestDueAt: Date? = nil, attemptsMax: Int, dead: Int,
            lastError: String? = nil, lastErrorAt: Date? = nil
        ) {
            self.enabled = enabled
            self.waiting = waiting
            self.oldestDueAt = oldestDueAt
            self.attemptsMax = attemptsMax
            self.dead = dead
            self.lastError = lastError
            self.lastErrorAt = lastErrorAt
        }
    }

    public struct DeadWebhook: Codable, Sendable, Hashable {
        /// The `webhook-id` of the webhook.
        public internal(set) var id: String
        public internal(set) var type: WebhookType
        public internal(set) var userId: String?
        /// Id of the notification, the conversation or the booking.
        public internal(set) var subjectId: String
        public internal(set) var reason: DeadWebhook.Reason
        public internal(set) var attempts: Int
        public internal(set) var lastError: String?
        public internal(set) var createdAt: Date
        public internal(set) var triedAt: Date?
        public internal(set) var diedAt: Date

        public init(
            id: String, type: WebhookType, userId: String? = nil, subjectId: String, reason: DeadWebhook.Reason,
            attempts: Int, lastError: String? = nil, createdAt: Date, triedAt: Date? = nil, diedAt: Date
        ) {
            self.id = id
            self.type = type
            self.userId = userId
            self.subjectId = subjectId
            self.reason = reason
            self.attempts = attempts
            self.lastError = lastError
            self.createdAt = createdAt
            self.triedAt = triedAt
            self.diedAt = diedAt
        }

        public struct Reason: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let expired = Reason(rawValue: "expired")
            public static let outboxFull = Reason(rawValue: "outbox.full")
        }
    }

    public struct WebhookType: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let notificationUnreached = WebhookType(rawValue: "notification.unreached")
        public static let notificationWithdrawn = WebhookType(rawValue: "notification.withdrawn")
        public static let messageUnreached = WebhookType(rawValue: "message.unreached")
        public static let messageWithdrawn = WebhookType(rawValue: "message.withdrawn")
        public static let bookingChanged = WebhookType(rawValue: "booking.changed")
    }
}
