// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct TakeChangesFormat: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let supabaseWebhook = TakeChangesFormat(rawValue: "supabase-webhook")
        public static let supabaseRealtime = TakeChangesFormat(rawValue: "supabase-realtime")
        public static let broadcastChanges = TakeChangesFormat(rawValue: "broadcast-changes")
        public static let debezium = TakeChangesFormat(rawValue: "debezium")
        public static let cloudevents = TakeChangesFormat(rawValue: "cloudevents")
        public static let batch = TakeChangesFormat(rawValue: "batch")
    }

    public struct ChangeResult: Codable, Sendable, Hashable {
        public internal(set) var accepted: Int
        public internal(set) var duplicates: Int
        public internal(set) var rejected: [ChangeResult.Rejected]

        public init(accepted: Int, duplicates: Int, rejected: [ChangeResult.Rejected]) {
            self.accepted = accepted
            self.duplicates = duplicates
            self.rejected = rejected
        }

        public struct Rejected: Codable, Sendable, Hashable {
            public internal(set) var index: Int
            public internal(set) var pointer: String
            public internal(set) var reason: String

            public init(index: Int, pointer: String, reason: String) {
                self.index = index
                self.pointer = pointer
                self.reason = reason
            }
        }
    }

    public struct ExplainBody: Codable, Sendable, Hashable {
        public var eventId: String
        public var token: String?
        public var claims: JSON?
        public var topics: [String]?
        public var tables: [WantedTable]?

        public init(
            eventId: String, token: String? = nil, claims: JSON? = nil, topics: [String]? = nil,
            tables: [WantedTable]? = nil
        ) {
            self.eventId = eventId
            self.token = token
            self.claims = claims
            self.topics = topics
            self.tables = tables
        }
    }

    public struct Explanation: Codable, Sendable, Hashable {
        public internal(set) var delivered: Bool
        public internal(set) var reason: String
        public internal(set) var event: Explanation.Event
        public internal(set) var caller: Explanation.Caller
        /// All keys that could deliver the event.
        public internal(set) var keys: [Explanation.Key]
        /// The queries that the change makes stale.
        public internal(set) var invalidations: [Explanation.Invalidation]?
        public internal(set) var row: JSON?
        public internal(set) var subscriptions: [JSON]?

        public init(
            delivered: Bool, reason: String, event: Explanation.Event, caller: Explanation.Caller,
            keys: [Explanation.Key], invalidations: [Explanation.Invalidation]? = nil, row: JSON? = nil,
            subscriptions: [JSON]? = nil
        ) {
            self.delivered = delivered
            self.reason = reason
            self.event = event
            self.caller = caller
            self.keys = keys
            self.invalidations = invalidations
            self.row = row
            self.subscriptions = subscriptions
        }

        public struct Event: Codable, Sendable, Hashable {
            public internal(set) var id: String
            public internal(set) var name: String
            public internal(set) var topic: String?
            public internal(set) var audience: [String]?

            public init(id: String, name: String, topic: String? = nil, audience: [String]? = nil) {
                self.id = id
                self.name = name
                self.topic = topic
                self.audience = audience
            }
        }

        public struct Caller: Codable, Sendable, Hashable {
            public internal(set) var tenant: String
            public internal(set) var userId: String
            public internal(set) var role: String

            public init(tenant: String, userId: String, role: String) {
                self.tenant = tenant
                self.userId = userId
                self.role = role
            }
        }

        public struct Key: Codable, Sendable, Hashable {
            public internal(set) var key: String
            /// Whether the caller has the key.
            public internal(set) var granted: Bool
            public internal(set) var origin: Explanation.Key.Origin?
            public internal(set) var membership: String?

            public init(key: String, granted: Bool, origin: Explanation.Key.Origin? = nil, membership: String? = nil) {
                self.key = key
                self.granted = granted
                self.origin = origin
                self.membership = membership
            }

            public struct Origin: Word {
                public let rawValue: String

                public init(rawValue: String) { self.rawValue = rawValue }

                public static let claim = Origin(rawValue: "claim")
                public static let membership = Origin(rawValue: "membership")
                public static let refuted = Origin(rawValue: "refuted")
            }
        }

        public struct Invalidation: Codable, Sendable, Hashable {
            /// The key of the query.
            public internal(set) var key: [String]
            /// Whether the caller's streams get it.
            public internal(set) var received: Bool
            /// The caller's key that lets it through.
            public internal(set) var by: String?
            /// Whether they also get the changed row's id.
            public internal(set) var causeReceived: Bool
            public internal(set) var audience: [String]

            public init(key: [String], received: Bool, by: String? = nil, causeReceived: Bool, audience: [String]) {
                self.key = key
                self.received = received
                self.by = by
                self.causeReceived = causeReceived
                self.audience = audience
            }
        }
    }

    public struct QueryInvalidate: Codable, Sendable, Hashable {
        public internal(set) var keys: [[String]]
        public internal(set) var causes: [ChangeCause]
        /// False if a cause is withheld or left out. The client must then not treat the event as an echo of its own
        /// change.
        public internal(set) var causesComplete: Bool

        public init(keys: [[String]], causes: [ChangeCause], causesComplete: Bool) {
            self.keys = keys
            self.causes = causes
            self.causesComplete = causesComplete
        }
    }

    /// A change that made query keys stale. It contains no column of the row.
    public struct ChangeCause: Codable, Sendable, Hashable {
        public internal(set) var schema: String
        public internal(set) var table: String
        public internal(set) var type: ChangeCause.Kind
        public internal(set) var recordId: String?
        public internal(set) var actorId: String?
        /// The `X-Client-Id` of the client that made the change.
        public internal(set) var originId: String?

        public init(
            schema: String, table: String, type: ChangeCause.Kind, recordId: String? = nil, actorId: String? = nil,
            originId: String? = nil
        ) {
            self.schema = schema
            self.table = table
            self.type = type
            self.recordId = recordId
            self.actorId = actorId
            self.originId = originId
        }

        public struct Kind: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let insert = Kind(rawValue: "INSERT")
            public static let update = Kind(rawValue: "UPDATE")
            public static let delete = Kind(rawValue: "DELETE")
        }
    }

    public struct TableChange: Codable, Sendable, Hashable {
        public internal(set) var subscriptionIds: [String]
        public internal(set) var schema: String
        public internal(set) var table: String
        public internal(set) var type: TableChange.Kind
        /// Effect on the subscriber, considering the filter and the subscriber's access.
        public internal(set) var change: TableChange.Change
        /// The selected columns; null if the row left.
        public internal(set) var record: JSON?
        /// The previous row. For a row that left, only its primary key.
        public internal(set) var oldRecord: JSON?
        public internal(set) var commitTimestamp: Date?

        public init(
            subscriptionIds: [String], schema: String, table: String, type: TableChange.Kind,
            change: TableChange.Change, record: JSON? = nil, oldRecord: JSON? = nil, commitTimestamp: Date? = nil
        ) {
            self.subscriptionIds = subscriptionIds
            self.schema = schema
            self.table = table
            self.type = type
            self.change = change
            self.record = record
            self.oldRecord = oldRecord
            self.commitTimestamp = commitTimestamp
        }

        public struct Kind: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let insert = Kind(rawValue: "INSERT")
            public static let update = Kind(rawValue: "UPDATE")
            public static let delete = Kind(rawValue: "DELETE")
        }

        /// Effect on the subscriber, considering the filter and the subscriber's access.
        public struct Change: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let enter = Change(rawValue: "enter")
            public static let update = Change(rawValue: "update")
            public static let leave = Change(rawValue: "leave")
        }
    }
}
