// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct WebhookState: Codable, Sendable, Hashable {
        /// Whether a webhook address is configured. Without one, the service stores no webhooks.
        public let enabled: Bool
        /// Webhooks that the receiver has not accepted yet, including those not due yet.
        public let waiting: Int
        public let oldestDueAt: Date?
        /// Highest number of attempts among the waiting webhooks.
        public let attemptsMax: Int
        public let dead: Int
        /// Last error among waiting and failed webhooks: `status_` followed by the status of the receiver's answer,
        /// `private_address`, `name_not_found`, `unreachable`, `timeout`, `tls` or `no_answer`.
        public let lastError: String?
        public let lastErrorAt: Date?

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
        public let id: String
        public let type: WebhookType
        public let userId: String?
        /// Id of the notification or the booking.
        public let subjectId: String
        public let reason: DeadWebhook.Reason
        public let attempts: Int
        public let lastError: String?
        public let createdAt: Date
        public let triedAt: Date?
        public let diedAt: Date

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
        public static let bookingChanged = WebhookType(rawValue: "booking.changed")
    }

    public struct Me: Codable, Sendable, Hashable {
        public let userId: String
        public let tenant: String
        public let role: String
        public let isService: Bool
        public let tier: String?
        public let scope: [String]
        public let omittedKeys: Int
        /// Keys in the token. Present only if the scope differs because of memberships.
        public let claims: [String]?
        public let tokenId: String?
        public let sessionId: String?
        public let issuedAt: Date?
        public let expiresAt: Date

        public init(
            userId: String, tenant: String, role: String, isService: Bool, tier: String? = nil, scope: [String],
            omittedKeys: Int, claims: [String]? = nil, tokenId: String? = nil, sessionId: String? = nil,
            issuedAt: Date? = nil, expiresAt: Date
        ) {
            self.userId = userId
            self.tenant = tenant
            self.role = role
            self.isService = isService
            self.tier = tier
            self.scope = scope
            self.omittedKeys = omittedKeys
            self.claims = claims
            self.tokenId = tokenId
            self.sessionId = sessionId
            self.issuedAt = issuedAt
            self.expiresAt = expiresAt
        }
    }

    public struct Config: Codable, Sendable, Hashable {
        public let polling: Config.Polling
        public let rateLimit: Config.RateLimit
        public let stream: Config.Stream
        public let requests: Config.Requests
        public let conversations: Config.Conversations
        public let userRequests: Config.UserRequests
        public let posts: Config.Posts
        public let dj: Config.Dj
        public let leaderboards: Config.Leaderboards
        /// Limits of one stream's subscriptions and filters. Exceeding one is 422.
        public let subscriptions: Config.Subscriptions
        /// How the service collects stale query keys before it sends them.
        public let invalidations: Config.Invalidations
        /// Limits of a delivery of table changes.
        public let changes: Config.Changes
        /// Limits of the events that an app publishes.
        public let publish: Config.Publish

        public init(
            polling: Config.Polling, rateLimit: Config.RateLimit, stream: Config.Stream, requests: Config.Requests,
            conversations: Config.Conversations, userRequests: Config.UserRequests, posts: Config.Posts, dj: Config.Dj,
            leaderboards: Config.Leaderboards, subscriptions: Config.Subscriptions, invalidations: Config.Invalidations,
            changes: Config.Changes, publish: Config.Publish
        ) {
            self.polling = polling
            self.rateLimit = rateLimit
            self.stream = stream
            self.requests = requests
            self.conversations = conversations
            self.userRequests = userRequests
            self.posts = posts
            self.dj = dj
            self.leaderboards = leaderboards
            self.subscriptions = subscriptions
            self.invalidations = invalidations
            self.changes = changes
            self.publish = publish
        }

        public struct Polling: Codable, Sendable, Hashable {
            public let connectedSeconds: Int
            public let disconnectedSeconds: Int
            public let tabSwitchStaleSeconds: Int

            public init(connectedSeconds: Int, disconnectedSeconds: Int, tabSwitchStaleSeconds: Int) {
                self.connectedSeconds = connectedSeconds
                self.disconnectedSeconds = disconnectedSeconds
                self.tabSwitchStaleSeconds = tabSwitchStaleSeconds
            }
        }

        public struct RateLimit: Codable, Sendable, Hashable {
            public let requests: Int
            public let windowSeconds: Int

            public init(requests: Int, windowSeconds: Int) {
                self.requests = requests
                self.windowSeconds = windowSeconds
            }
        }

        public struct Stream: Codable, Sendable, Hashable {
            public let heartbeatSeconds: Int
            public let retryMilliseconds: Int
            public let resumableHours: Int
            public let topicsMax: Int
            public let perUserMax: Int

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

        public struct Requests: Codable, Sendable, Hashable {
            public let bodyBytesMax: Int
            public let idempotencyKeySeconds: Int

            public init(bodyBytesMax: Int, idempotencyKeySeconds: Int) {
                self.bodyBytesMax = bodyBytesMax
                self.idempotencyKeySeconds = idempotencyKeySeconds
            }
        }

        public struct Conversations: Codable, Sendable, Hashable {
            public let membersMax: Int
            public let conversationsOfUserMax: Int
            public let textBytesMax: Int
            /// Maximum number of messages that one step back of the read position can mark as unread.
            public let rewindMax: Int
            public let previewCharactersMax: Int

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
            public let openMax: Int
            /// Maximum number of requests that one PATCH marks as seen.
            public let seenAtOnceMax: Int

            public init(openMax: Int, seenAtOnceMax: Int) {
                self.openMax = openMax
                self.seenAtOnceMax = seenAtOnceMax
            }
        }

        public struct Posts: Codable, Sendable, Hashable {
            public let textBytesMax: Int
            public let mediaMax: Int
            /// Maximum length of one media URL.
            public let mediaBytesMax: Int
            /// Maximum number of authors that a user can follow.
            public let followedMax: Int
            /// Maximum value of `newCount`. If there are more, `newCountIsMore` is true.
            public let newCountMax: Int
            public let pageMax: Int
            /// Minimum seconds between two engagement updates of a post.
            public let tellingSeconds: Int

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
            public let tracksMax: Int
            public let tracksPerUserMax: Int
            /// Maximum number of vote updates per shop. Further votes are combined into one update a second.
            public let updatesPerSecondMax: Int
            /// Seconds for which a confirmed presence is valid.
            public let presenceSeconds: Int
            /// Seconds for which a shop displays a code.
            public let codeSeconds: Int

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
            public let entriesMax: Int
            public let topDefault: Int
            public let topMax: Int
            /// Number of entries on each side of the caller.
            public let aroundDefault: Int
            public let aroundMax: Int
            /// Number of lines that subscribers of a leaderboard receive live.
            public let watchedTop: Int
            /// Seconds between two updates of a leaderboard.
            public let updateSeconds: Int

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

        /// Limits of one stream's subscriptions and filters. Exceeding one is 422.
        public struct Subscriptions: Codable, Sendable, Hashable {
            public let perStreamMax: Int
            public let requestBytesMax: Int
            public let idBytesMax: Int
            public let selectedColumnsMax: Int
            public let filterBytesMax: Int
            public let conditionsMax: Int
            /// Maximum number of values in one `in`. Split longer lists over several subscriptions.
            public let valuesMax: Int
            public let valueBytesMax: Int
            /// Bytes of a number or a time in a filter.
            public let numberBytesMax: Int
            public let valuesPerStreamMax: Int
            /// Maximum number of conditions such as `like.%word%`.
            public let searchesPerStreamMax: Int
            /// Maximum number of characters between two `%` of a pattern.
            public let patternRunMax: Int

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
            public let windowMilliseconds: Int
            /// Maximum number of stale keys per window. Beyond it, the stream receives `stream:resync`.
            public let keysPerStreamMax: Int
            /// Maximum number of causes per event. Beyond it, `causesComplete` is false.
            public let causesPerEventMax: Int

            public init(windowMilliseconds: Int, keysPerStreamMax: Int, causesPerEventMax: Int) {
                self.windowMilliseconds = windowMilliseconds
                self.keysPerStreamMax = keysPerStreamMax
                self.causesPerEventMax = causesPerEventMax
            }
        }

        /// Limits of a delivery of table changes.
        public struct Changes: Codable, Sendable, Hashable {
            public let bodyBytesMax: Int
            public let itemsMax: Int
            public let itemBytesMax: Int
            public let duplicatesKnownSeconds: Int
            /// Number of declared tables. Their names are not public.
            public let tables: Int

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
            public let eventsMax: Int
            public let dataBytesMax: Int
            public let keysMax: Int

            public init(eventsMax: Int, dataBytesMax: Int, keysMax: Int) {
                self.eventsMax = eventsMax
                self.dataBytesMax = dataBytesMax
                self.keysMax = keysMax
            }
        }
    }
}
