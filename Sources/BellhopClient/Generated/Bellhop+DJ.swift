// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct PresenceRule: Codable, Sendable, Hashable {
        public internal(set) var shopId: String
        public internal(set) var codeRequired: Bool
        /// Seconds for which a confirmed presence is valid.
        public internal(set) var lifetimeSeconds: Int

        public init(shopId: String, codeRequired: Bool, lifetimeSeconds: Int) {
            self.shopId = shopId
            self.codeRequired = codeRequired
            self.lifetimeSeconds = lifetimeSeconds
        }
    }

    public struct ReplacePresenceRuleBody: Codable, Sendable, Hashable {
        public var codeRequired: Bool

        public init(codeRequired: Bool) {
            self.codeRequired = codeRequired
        }
    }

    public struct PresenceCode: Codable, Sendable, Hashable {
        public internal(set) var shopId: String
        public internal(set) var code: String
        /// Time to display the next code.
        public internal(set) var rotatesAt: Date
        /// Time from which the code is no longer accepted.
        public internal(set) var expiresAt: Date

        public init(shopId: String, code: String, rotatesAt: Date, expiresAt: Date) {
            self.shopId = shopId
            self.code = code
            self.rotatesAt = rotatesAt
            self.expiresAt = expiresAt
        }
    }

    public struct Presence: Codable, Sendable, Hashable {
        public internal(set) var shopId: String
        public internal(set) var isPresent: Bool
        public internal(set) var source: Presence.Source?
        public internal(set) var since: Date?
        public internal(set) var expiresAt: Date?
        public internal(set) var codeRequired: Bool

        public init(
            shopId: String, isPresent: Bool, source: Presence.Source? = nil, since: Date? = nil, expiresAt: Date? = nil,
            codeRequired: Bool
        ) {
            self.shopId = shopId
            self.isPresent = isPresent
            self.source = source
            self.since = since
            self.expiresAt = expiresAt
            self.codeRequired = codeRequired
        }

        public struct Source: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let code = Source(rawValue: "code")
            public static let claim = Source(rawValue: "claim")
            public static let booking = Source(rawValue: "booking")
        }
    }

    public struct ShowPresenceBody: Codable, Sendable, Hashable {
        /// Code as displayed. Case, hyphens and spaces are ignored; O is read as 0, I and L as 1.
        public var code: String?

        public init(code: String? = nil) {
            self.code = code
        }
    }

    public struct DJSession: Codable, Sendable, Hashable {
        public internal(set) var shopId: String
        public internal(set) var isActive: Bool
        public internal(set) var currentTrack: DJSession.CurrentTrack?
        public internal(set) var queue: [DJItemView]
        public internal(set) var startedAt: Date?
        public internal(set) var version: Int
        public internal(set) var epoch: String

        public init(
            shopId: String, isActive: Bool, currentTrack: DJSession.CurrentTrack? = nil, queue: [DJItemView],
            startedAt: Date? = nil, version: Int, epoch: String
        ) {
            self.shopId = shopId
            self.isActive = isActive
            self.currentTrack = currentTrack
            self.queue = queue
            self.startedAt = startedAt
            self.version = version
            self.epoch = epoch
        }

        public struct CurrentTrack: Codable, Sendable, Hashable {
            public internal(set) var trackId: String
            public internal(set) var trackName: String
            public internal(set) var artistName: String
            public internal(set) var albumArt: String?
            public internal(set) var startedAt: Date

            public init(
                trackId: String, trackName: String, artistName: String, albumArt: String? = nil, startedAt: Date
            ) {
                self.trackId = trackId
                self.trackName = trackName
                self.artistName = artistName
                self.albumArt = albumArt
                self.startedAt = startedAt
            }
        }
    }

    public struct DJTrack: Codable, Sendable, Hashable {
        public internal(set) var trackId: String
        public internal(set) var trackName: String
        public internal(set) var artistName: String
        public internal(set) var albumArt: String?

        public init(trackId: String, trackName: String, artistName: String, albumArt: String? = nil) {
            self.trackId = trackId
            self.trackName = trackName
            self.artistName = artistName
            self.albumArt = albumArt
        }
    }

    /// A track in the queue, with the caller's own vote.
    public struct DJItemView: Codable, Sendable, Hashable {
        public internal(set) var trackId: String
        public internal(set) var trackName: String
        public internal(set) var artistName: String
        public internal(set) var albumArt: String?
        public internal(set) var addedBy: String
        public internal(set) var upvotes: Int
        public internal(set) var downvotes: Int
        /// upvotes − downvotes.
        public internal(set) var score: Int
        public internal(set) var addedAt: Date
        public internal(set) var position: Int
        public internal(set) var userVote: DJVote

        public init(
            trackId: String, trackName: String, artistName: String, albumArt: String? = nil, addedBy: String,
            upvotes: Int, downvotes: Int, score: Int, addedAt: Date, position: Int, userVote: DJVote
        ) {
            self.trackId = trackId
            self.trackName = trackName
            self.artistName = artistName
            self.albumArt = albumArt
            self.addedBy = addedBy
            self.upvotes = upvotes
            self.downvotes = downvotes
            self.score = score
            self.addedAt = addedAt
            self.position = position
            self.userVote = userVote
        }
    }

    /// A track in the queue. Votes are counted, but the voters stay secret.
    public struct DJItem: Codable, Sendable, Hashable {
        public internal(set) var trackId: String
        public internal(set) var trackName: String
        public internal(set) var artistName: String
        public internal(set) var albumArt: String?
        public internal(set) var addedBy: String
        public internal(set) var upvotes: Int
        public internal(set) var downvotes: Int
        /// upvotes − downvotes.
        public internal(set) var score: Int
        public internal(set) var addedAt: Date
        public internal(set) var position: Int

        public init(
            trackId: String, trackName: String, artistName: String, albumArt: String? = nil, addedBy: String,
            upvotes: Int, downvotes: Int, score: Int, addedAt: Date, position: Int
        ) {
            self.trackId = trackId
            self.trackName = trackName
            self.artistName = artistName
            self.albumArt = albumArt
            self.addedBy = addedBy
            self.upvotes = upvotes
            self.downvotes = downvotes
            self.score = score
            self.addedAt = addedAt
            self.position = position
        }
    }

    public struct DJVote: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let up = DJVote(rawValue: "up")
        public static let down = DJVote(rawValue: "down")
        public static let nothing = DJVote(rawValue: "none")
    }

    public struct ReplaceDJSessionBody: Codable, Sendable, Hashable {
        public var isActive: Bool

        public init(isActive: Bool) {
            self.isActive = isActive
        }
    }

    public struct PlayNextTrackBody: Codable, Sendable, Hashable {
        public var after: String?

        public init(after: String? = nil) {
            self.after = after
        }
    }

    public struct PlayTrackBody: Codable, Sendable, Hashable {
        public var trackId: String?

        public init(trackId: String? = nil) {
            self.trackId = trackId
        }

        /// Null is said, since leaving it out would be another wish.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(trackId, forKey: .trackId)
        }
    }

    public struct AddTrackBody: Codable, Sendable, Hashable {
        public var trackId: String
        public var trackName: String
        public var artistName: String
        public var albumArt: String?

        public init(trackId: String, trackName: String, artistName: String, albumArt: String? = nil) {
            self.trackId = trackId
            self.trackName = trackName
            self.artistName = artistName
            self.albumArt = albumArt
        }
    }

    public struct DJItemAnswer: Codable, Sendable, Hashable {
        public internal(set) var trackId: String
        public internal(set) var trackName: String
        public internal(set) var artistName: String
        public internal(set) var albumArt: String?
        public internal(set) var addedBy: String
        public internal(set) var upvotes: Int
        public internal(set) var downvotes: Int
        /// upvotes − downvotes.
        public internal(set) var score: Int
        public internal(set) var addedAt: Date
        public internal(set) var position: Int
        public internal(set) var userVote: DJVote
        public internal(set) var version: Int
        public internal(set) var epoch: String

        public init(
            trackId: String, trackName: String, artistName: String, albumArt: String? = nil, addedBy: String,
            upvotes: Int, downvotes: Int, score: Int, addedAt: Date, position: Int, userVote: DJVote, version: Int,
            epoch: String
        ) {
            self.trackId = trackId
            self.trackName = trackName
            self.artistName = artistName
            self.albumArt = albumArt
            self.addedBy = addedBy
            self.upvotes = upvotes
            self.downvotes = downvotes
            self.score = score
            self.addedAt = addedAt
            self.position = position
            self.userVote = userVote
            self.version = version
            self.epoch = epoch
        }
    }

    public struct VoteOnTrackBody: Codable, Sendable, Hashable {
        public var vote: DJVote

        public init(vote: DJVote) {
            self.vote = vote
        }
    }

    /// Sent at most 20 times a second per shop. Votes beyond that rate are combined: the current state follows once a
    /// second. Clients derive the positions of the other tracks from the scores.
    public struct DjQueueUpdate: Codable, Sendable, Hashable {
        public internal(set) var shopId: String
        public internal(set) var trackId: String
        public internal(set) var upvotes: Int
        public internal(set) var downvotes: Int
        public internal(set) var score: Int
        public internal(set) var position: Int
        public internal(set) var version: Int
        public internal(set) var epoch: String

        public init(
            shopId: String, trackId: String, upvotes: Int, downvotes: Int, score: Int, position: Int, version: Int,
            epoch: String
        ) {
            self.shopId = shopId
            self.trackId = trackId
            self.upvotes = upvotes
            self.downvotes = downvotes
            self.score = score
            self.position = position
            self.version = version
            self.epoch = epoch
        }
    }

    public struct TrackAdded: Codable, Sendable, Hashable {
        public internal(set) var trackId: String
        public internal(set) var trackName: String
        public internal(set) var artistName: String
        public internal(set) var albumArt: String?
        public internal(set) var addedBy: String
        public internal(set) var upvotes: Int
        public internal(set) var downvotes: Int
        /// upvotes − downvotes.
        public internal(set) var score: Int
        public internal(set) var addedAt: Date
        public internal(set) var position: Int
        public internal(set) var shopId: String
        public internal(set) var version: Int
        public internal(set) var epoch: String

        public init(
            trackId: String, trackName: String, artistName: String, albumArt: String? = nil, addedBy: String,
            upvotes: Int, downvotes: Int, score: Int, addedAt: Date, position: Int, shopId: String, version: Int,
            epoch: String
        ) {
            self.trackId = trackId
            self.trackName = trackName
            self.artistName = artistName
            self.albumArt = albumArt
            self.addedBy = addedBy
            self.upvotes = upvotes
            self.downvotes = downvotes
            self.score = score
            self.addedAt = addedAt
            self.position = position
            self.shopId = shopId
            self.version = version
            self.epoch = epoch
        }
    }

    /// The members that describe the track are null when the music stops.
    public struct TrackPlaying: Codable, Sendable, Hashable {
        public internal(set) var shopId: String
        public internal(set) var trackId: String?
        public internal(set) var trackName: String?
        public internal(set) var artistName: String?
        public internal(set) var albumArt: String?
        public internal(set) var startedAt: Date?
        public internal(set) var version: Int
        public internal(set) var epoch: String

        public init(
            shopId: String, trackId: String? = nil, trackName: String? = nil, artistName: String? = nil,
            albumArt: String? = nil, startedAt: Date? = nil, version: Int, epoch: String
        ) {
            self.shopId = shopId
            self.trackId = trackId
            self.trackName = trackName
            self.artistName = artistName
            self.albumArt = albumArt
            self.startedAt = startedAt
            self.version = version
            self.epoch = epoch
        }
    }

    public struct TrackRemoved: Codable, Sendable, Hashable {
        public internal(set) var shopId: String
        public internal(set) var trackId: String
        public internal(set) var reason: TrackRemoved.Reason
        public internal(set) var version: Int
        public internal(set) var epoch: String

        public init(shopId: String, trackId: String, reason: TrackRemoved.Reason, version: Int, epoch: String) {
            self.shopId = shopId
            self.trackId = trackId
            self.reason = reason
            self.version = version
            self.epoch = epoch
        }

        public struct Reason: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let played = Reason(rawValue: "played")
            public static let removed = Reason(rawValue: "removed")
        }
    }
}
