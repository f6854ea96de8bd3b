// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct Challenge: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var name: String
        /// Shop whose staff manages the challenge.
        public internal(set) var shopId: String?
        public internal(set) var startsAt: Date
        public internal(set) var endsAt: Date
        public internal(set) var mode: Challenge.Mode
        public internal(set) var order: Challenge.Order
        public internal(set) var createdAt: Date
        public internal(set) var updatedAt: Date

        public init(
            id: String, name: String, shopId: String? = nil, startsAt: Date, endsAt: Date, mode: Challenge.Mode,
            order: Challenge.Order, createdAt: Date, updatedAt: Date
        ) {
            self.id = id
            self.name = name
            self.shopId = shopId
            self.startsAt = startsAt
            self.endsAt = endsAt
            self.mode = mode
            self.order = order
            self.createdAt = createdAt
            self.updatedAt = updatedAt
        }

        public struct Mode: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let add = Mode(rawValue: "add")
            public static let best = Mode(rawValue: "best")
        }

        public struct Order: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let descending = Order(rawValue: "descending")
            public static let ascending = Order(rawValue: "ascending")
        }
    }

    public struct ReplaceChallengeBody: Codable, Sendable, Hashable {
        public var name: String
        public var shopId: String?
        public var startsAt: Date
        /// End of the challenge, after `startsAt`.
        public var endsAt: Date
        public var mode: ReplaceChallengeBody.Mode
        public var order: ReplaceChallengeBody.Order?

        public init(
            name: String, shopId: String? = nil, startsAt: Date, endsAt: Date, mode: ReplaceChallengeBody.Mode,
            order: ReplaceChallengeBody.Order? = nil
        ) {
            self.name = name
            self.shopId = shopId
            self.startsAt = startsAt
            self.endsAt = endsAt
            self.mode = mode
            self.order = order
        }

        public struct Mode: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let add = Mode(rawValue: "add")
            public static let best = Mode(rawValue: "best")
        }

        public struct Order: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let descending = Order(rawValue: "descending")
            public static let ascending = Order(rawValue: "ascending")
        }
    }

    public struct AddScoreBody: Codable, Sendable, Hashable {
        /// User to add the score for. Required for backends; defaults to the caller for other tokens.
        public var userId: String?
        public var score: Int64
        /// Name shown beside the score. If omitted, the name stays as it is.
        public var displayName: String?

        public init(userId: String? = nil, score: Int64, displayName: String? = nil) {
            self.userId = userId
            self.score = score
            self.displayName = displayName
        }
    }

    public struct AddedScore: Codable, Sendable, Hashable {
        public internal(set) var challengeId: String
        public internal(set) var userId: String
        public internal(set) var displayName: String?
        public internal(set) var score: Int64
        public internal(set) var rank: Int
        public internal(set) var position: Int
        /// False if the score did not change.
        public internal(set) var changed: Bool
        public internal(set) var entries: Int
        /// Number of changes of the leaderboard.
        public internal(set) var version: Int
        public internal(set) var epoch: String

        public init(
            challengeId: String, userId: String, displayName: String? = nil, score: Int64, rank: Int, position: Int,
            changed: Bool, entries: Int, version: Int, epoch: String
        ) {
            self.challengeId = challengeId
            self.userId = userId
            self.displayName = displayName
            self.score = score
            self.rank = rank
            self.position = position
            self.changed = changed
            self.entries = entries
            self.version = version
            self.epoch = epoch
        }
    }

    public struct GetLeaderboardAround: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let me = GetLeaderboardAround(rawValue: "me")
    }

    public struct Leaderboard: Codable, Sendable, Hashable {
        public internal(set) var challengeId: String
        public internal(set) var entries: Int
        /// Number of changes of the leaderboard.
        public internal(set) var version: Int
        public internal(set) var epoch: String
        public internal(set) var items: [LeaderboardItem]
        public internal(set) var me: LeaderboardItem?

        public init(
            challengeId: String, entries: Int, version: Int, epoch: String, items: [LeaderboardItem],
            me: LeaderboardItem? = nil
        ) {
            self.challengeId = challengeId
            self.entries = entries
            self.version = version
            self.epoch = epoch
            self.items = items
            self.me = me
        }
    }

    public struct LeaderboardItem: Codable, Sendable, Hashable {
        public internal(set) var userId: String
        public internal(set) var displayName: String?
        public internal(set) var score: Int64
        /// Number of better scores, plus one.
        public internal(set) var rank: Int
        /// Unique position, also among equal scores.
        public internal(set) var position: Int

        public init(userId: String, displayName: String? = nil, score: Int64, rank: Int, position: Int) {
            self.userId = userId
            self.displayName = displayName
            self.score = score
            self.rank = rank
            self.position = position
        }
    }

    /// Sent at most once a second per challenge, to two groups of receivers.
    ///
    /// Each user whose rank, position or score changed receives their own standing. These events have no id and are not
    /// replayed. A new stream starts with the standings in challenges that changed within the last hour.
    ///
    /// Subscribers of `leaderboard:{challengeId}` first receive the top 100 as last published, then only changes to it.
    /// A change usually has a few hundred bytes; it has 10 KB if all lines move, and 35 KB with the longest ids and
    /// names. Apply a change only if you hold the version `since`. If your version is newer than `version`, ignore the
    /// change. If it is any other version, your client fell behind: subscribe to the topic again to receive the full
    /// state.
    public enum LeaderboardUpdate: Codable, Sendable, Hashable {
        case ownRank(OwnRank)
        case leaderboardTop(LeaderboardTop)
        case leaderboardChange(LeaderboardChange)
        /// What only a newer service knows.
        case other(JSON)

        public init(from decoder: any Decoder) throws {
            let json = try JSON(from: decoder)
            if json.has("challengeId", "entries", "since", "moved", "left", "changed", "version", "epoch") {
                self = .leaderboardChange(try LeaderboardChange(from: decoder))
            } else if json.has("challengeId", "rank", "position", "score", "changed", "version", "epoch") {
                self = .ownRank(try OwnRank(from: decoder))
            } else if json.has("challengeId", "entries", "top", "changed", "version", "epoch") {
                self = .leaderboardTop(try LeaderboardTop(from: decoder))
            } else {
                self = .other(json)
            }
        }

        public func encode(to encoder: any Encoder) throws {
            switch self {
            case .ownRank(let value): try value.encode(to: encoder)
            case .leaderboardTop(let value): try value.encode(to: encoder)
            case .leaderboardChange(let value): try value.encode(to: encoder)
            case .other(let value): try value.encode(to: encoder)
            }
        }
    }

    public struct OwnRank: Codable, Sendable, Hashable {
        public internal(set) var challengeId: String
        public internal(set) var rank: Int
        public internal(set) var position: Int
        public internal(set) var score: Int64
        /// Number of changes that the event combines; 0 at the start of a stream.
        public internal(set) var changed: Int
        public internal(set) var version: Int
        public internal(set) var epoch: String

        public init(
            challengeId: String, rank: Int, position: Int, score: Int64, changed: Int, version: Int, epoch: String
        ) {
            self.challengeId = challengeId
            self.rank = rank
            self.position = position
            self.score = score
            self.changed = changed
            self.version = version
            self.epoch = epoch
        }
    }

    public struct LeaderboardTop: Codable, Sendable, Hashable {
        public internal(set) var challengeId: String
        public internal(set) var entries: Int
        public internal(set) var top: [LeaderboardItem]
        /// Number of changes that the event combines; 0 at the start of a stream.
        public internal(set) var changed: Int
        public internal(set) var version: Int
        public internal(set) var epoch: String

        public init(
            challengeId: String, entries: Int, top: [LeaderboardItem], changed: Int, version: Int, epoch: String
        ) {
            self.challengeId = challengeId
            self.entries = entries
            self.top = top
            self.changed = changed
            self.version = version
            self.epoch = epoch
        }
    }

    public struct LeaderboardChange: Codable, Sendable, Hashable {
        public internal(set) var challengeId: String
        public internal(set) var entries: Int
        /// Version that the changes apply to.
        public internal(set) var since: Int
        /// Lines that are new, changed or moved. A line without a score keeps its score and name; only its rank or
        /// position changed.
        public internal(set) var moved: [LeaderboardChange.Moved]
        /// Users that left the first lines.
        public internal(set) var left: [String]
        /// Number of changes that the event combines.
        public internal(set) var changed: Int
        public internal(set) var version: Int
        public internal(set) var epoch: String

        public init(
            challengeId: String, entries: Int, since: Int, moved: [LeaderboardChange.Moved], left: [String],
            changed: Int, version: Int, epoch: String
        ) {
            self.challengeId = challengeId
            self.entries = entries
            self.since = since
            self.moved = moved
            self.left = left
            self.changed = changed
            self.version = version
            self.epoch = epoch
        }

        public struct Moved: Codable, Sendable, Hashable {
            public internal(set) var userId: String
            public internal(set) var displayName: String?
            public internal(set) var score: Int64?
            public internal(set) var rank: Int
            public internal(set) var position: Int

            public init(userId: String, displayName: String? = nil, score: Int64? = nil, rank: Int, position: Int) {
                self.userId = userId
                self.displayName = displayName
                self.score = score
                self.rank = rank
                self.position = position
            }
        }
    }
}
