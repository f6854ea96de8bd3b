// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct CreateStreamTicketBody: Codable, Sendable, Hashable {
        public var topics: [String]?

        public init(topics: [String]? = nil) {
            self.topics = topics
        }
    }

    public struct StreamTicket: Codable, Sendable, Hashable {
        public internal(set) var ticket: String
        public internal(set) var expiresAt: Date

        public init(ticket: String, expiresAt: Date) {
            self.ticket = ticket
            self.expiresAt = expiresAt
        }
    }

    public struct StreamState: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var topics: [String]
        public internal(set) var tables: [WantedTable]
        public internal(set) var events: Int
        public internal(set) var bytes: Int
        public internal(set) var waitingBytes: Int

        public init(id: String, topics: [String], tables: [WantedTable], events: Int, bytes: Int, waitingBytes: Int) {
            self.id = id
            self.topics = topics
            self.tables = tables
            self.events = events
            self.bytes = bytes
            self.waitingBytes = waitingBytes
        }
    }

    public struct WantedTable: Codable, Sendable, Hashable {
        /// Id of the subscription in events. Defaults to its index in the list.
        public internal(set) var id: String?
        public internal(set) var schema: String?
        /// A declared table, or `posts` in the schema `bellhop`. Filters on `posts` can use the columns id, author_id,
        /// visibility, sequence, like_count and repost_count. Its updates are delivered as `engagement_update`.
        public internal(set) var table: String
        public internal(set) var event: WantedTable.Event?
        /// Conditions `column=[not.]op.value`, separated by commas; all of them must hold. Operators: eq, neq, lt, lte,
        /// gt, gte, in, like, ilike, is, isdistinct. `in.(…)` takes up to 1,000 values; `in.()` is the empty set. A
        /// number or a time has at most 128 bytes. If the file of tables declares the types of the columns, values are
        /// compared by type, and other columns are rejected.
        public internal(set) var filter: String?
        /// Columns to send besides the primary key. Defaults to all columns.
        public internal(set) var select: [String]?

        public init(
            id: String? = nil, schema: String? = nil, table: String, event: WantedTable.Event? = nil,
            filter: String? = nil, select: [String]? = nil
        ) {
            self.id = id
            self.schema = schema
            self.table = table
            self.event = event
            self.filter = filter
            self.select = select
        }

        public struct Event: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let any = Event(rawValue: "*")
            public static let insert = Event(rawValue: "INSERT")
            public static let update = Event(rawValue: "UPDATE")
            public static let delete = Event(rawValue: "DELETE")
        }
    }

    public struct Subscriptions: Codable, Sendable, Hashable {
        public internal(set) var topics: [String]
        public internal(set) var tables: [WantedTable]

        public init(topics: [String], tables: [WantedTable]) {
            self.topics = topics
            self.tables = tables
        }
    }

    public struct ReplaceSubscriptionsBody: Codable, Sendable, Hashable {
        public var topics: [String]?
        public var tables: [WantedTable]?
        public var lastEventId: String?

        public init(topics: [String]? = nil, tables: [WantedTable]? = nil, lastEventId: String? = nil) {
            self.topics = topics
            self.tables = tables
            self.lastEventId = lastEventId
        }
    }

    public struct RenewStreamTokenBody: Codable, Sendable, Hashable {
        public var token: String

        public init(token: String) {
            self.token = token
        }
    }

    public struct TokenExpiry: Codable, Sendable, Hashable {
        public internal(set) var expiresAt: Date
        public internal(set) var identity: String

        public init(expiresAt: Date, identity: String) {
            self.expiresAt = expiresAt
            self.identity = identity
        }
    }

    public enum RevokeBody: Codable, Sendable, Hashable {
        case tokenId(RevokeBody.ByTokenId)
        case sessionId(RevokeBody.BySessionId)
        case userIdAndIssuedBefore(RevokeBody.ByUserIdAndIssuedBefore)

        public init(from decoder: any Decoder) throws {
            let json = try JSON(from: decoder)
            if json.has("userId", "issuedBefore") {
                self = .userIdAndIssuedBefore(try RevokeBody.ByUserIdAndIssuedBefore(from: decoder))
            } else if json.has("tokenId") {
                self = .tokenId(try RevokeBody.ByTokenId(from: decoder))
            } else if json.has("sessionId") {
                self = .sessionId(try RevokeBody.BySessionId(from: decoder))
            } else {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath, debugDescription: "no variant matches"))
            }
        }

        public func encode(to encoder: any Encoder) throws {
            switch self {
            case .tokenId(let value): try value.encode(to: encoder)
            case .sessionId(let value): try value.encode(to: encoder)
            case .userIdAndIssuedBefore(let value): try value.encode(to: encoder)
            }
        }

        public struct ByTokenId: Codable, Sendable, Hashable {
            public var tokenId: String

            public init(tokenId: String) {
                self.tokenId = tokenId
            }
        }

        public struct BySessionId: Codable, Sendable, Hashable {
            public var sessionId: String

            public init(sessionId: String) {
                self.sessionId = sessionId
            }
        }

        public struct ByUserIdAndIssuedBefore: Codable, Sendable, Hashable {
            public var userId: String
            public var issuedBefore: Date

            public init(userId: String, issuedBefore: Date) {
                self.userId = userId
                self.issuedBefore = issuedBefore
            }
        }
    }

    public struct Revocation: Codable, Sendable, Hashable {
        public internal(set) var revokedAt: Date

        public init(revokedAt: Date) {
            self.revokedAt = revokedAt
        }
    }

    public struct StreamReady: Codable, Sendable, Hashable {
        public internal(set) var streamId: String
        public internal(set) var userId: String
        /// The tenant of the token.
        public internal(set) var tenant: String
        public internal(set) var identity: String
        public internal(set) var topics: [String]
        public internal(set) var replayed: Int
        public internal(set) var omittedKeys: Int?
        public internal(set) var badges: Badges
        public internal(set) var serverTime: Date

        public init(
            streamId: String, userId: String, tenant: String, identity: String, topics: [String], replayed: Int,
            omittedKeys: Int? = nil, badges: Badges, serverTime: Date
        ) {
            self.streamId = streamId
            self.userId = userId
            self.tenant = tenant
            self.identity = identity
            self.topics = topics
            self.replayed = replayed
            self.omittedKeys = omittedKeys
            self.badges = badges
            self.serverTime = serverTime
        }
    }

    public struct StreamResync: Codable, Sendable, Hashable {
        public internal(set) var reason: StreamResync.Reason

        public init(reason: StreamResync.Reason) {
            self.reason = reason
        }

        public struct Reason: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let gap = Reason(rawValue: "gap")
            public static let epoch = Reason(rawValue: "epoch")
            public static let overflow = Reason(rawValue: "overflow")
        }
    }

    public struct StreamScope: Codable, Sendable, Hashable {
        /// First keys in lexical order. GET /v1/me returns all of them.
        public internal(set) var scope: [String]
        /// Number of all keys of the stream.
        public internal(set) var keyCount: Int
        public internal(set) var omittedKeys: Int

        public init(scope: [String], keyCount: Int, omittedKeys: Int) {
            self.scope = scope
            self.keyCount = keyCount
            self.omittedKeys = omittedKeys
        }
    }

    public struct StreamExpiring: Codable, Sendable, Hashable {
        public internal(set) var expiresAt: Date

        public init(expiresAt: Date) {
            self.expiresAt = expiresAt
        }
    }

    public struct StreamClosing: Codable, Sendable, Hashable {
        public internal(set) var reason: StreamClosing.Reason
        public internal(set) var retryAfterMs: Int

        public init(reason: StreamClosing.Reason, retryAfterMs: Int) {
            self.reason = reason
            self.retryAfterMs = retryAfterMs
        }

        public struct Reason: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let expired = Reason(rawValue: "expired")
            public static let revoked = Reason(rawValue: "revoked")
            public static let shutdown = Reason(rawValue: "shutdown")
            public static let unavailable = Reason(rawValue: "unavailable")
            public static let slow = Reason(rawValue: "slow")
        }
    }
}
