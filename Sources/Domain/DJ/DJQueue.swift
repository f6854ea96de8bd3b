import Values

/// A track in a shop's queue, from its addition until it is played or removed.
public struct DJQueueItem: Sendable, Hashable {
    /// The id of this addition. The same track may be added again after it was played.
    public var id: ID<DJQueueItem> = ""
    public var track = DJTrack()
    public var addedBy: ID<User> = ""
    public var addedAt = Timestamp(microseconds: 0)
    public var tally = DJTally()

    public init() {}

    public init(id: ID<DJQueueItem>, track: DJTrack, addedBy: ID<User>, addedAt: Timestamp, tally: DJTally) {
        self.id = id
        self.track = track
        self.addedBy = addedBy
        self.addedAt = addedAt
        self.tally = tally
    }

    /// Creates the item for a track that a user adds now. Adding a track also votes it up (R-CUT-D-5).
    ///
    /// The timestamp is stored as it is published, in milliseconds, because clients also sort by it.
    public static func added(
        _ track: DJTrack, as id: ID<DJQueueItem>, by userId: ID<User>, at now: Timestamp
    ) -> DJQueueItem {
        let milliseconds = now.microseconds / 1000
        return DJQueueItem(
            id: id, track: track, addedBy: userId, addedAt: Timestamp(microseconds: milliseconds * 1000),
            tally: DJTally().replacing(.none, by: .up))
    }

    public var place: DJPlace { DJPlace(score: tally.score, addedAt: addedAt, trackId: track.trackId) }

    /// Writes the members that R-CUT-D-1 specifies, with counts instead of lists of voters (R-CUT-D-4).
    ///
    /// - Parameters:
    ///   - position: The position in the queue, from 1.
    ///   - vote: The reader's own vote; nil if many readers get the same JSON.
    public func write(membersTo writer: inout JSONWriter, position: Int, vote: DJVote?) {
        write(membersTo: &writer)
        writer.member("position", position)
        if let vote { writer.member("userVote", vote.rawValue) }
    }
}

extension DJQueueItem: Record {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.hidden("itemId", &id)
        track.visit(&members)
        members.member("addedBy", &addedBy)
        tally.visit(&members)
        members.member("addedAt", &addedAt)
    }
}

/// The sort key of a track in the queue: descending score, then time of addition, then track id.
///
/// The order is total, because a queue contains a track only once. It is stable, because only votes move a track. Ids
/// are compared by their bytes, as both databases do.
public struct DJPlace: Sendable, Hashable, Comparable {
    public let score: Int
    public let addedAt: Timestamp
    public let trackId: ID<DJTrack>

    public static func < (left: Self, right: Self) -> Bool {
        if left.score != right.score { return left.score > right.score }
        if left.addedAt != right.addedAt { return left.addedAt < right.addedAt }
        return left.trackId.text.utf8.lexicographicallyPrecedes(right.trackId.text.utf8)
    }
}

/// A shop's music session: whether guests choose the music, and which track plays.
public struct DJSession: Sendable, Hashable {
    public let shopId: ID<Shop>
    public var isActive: Bool
    /// The start of the current session; nil if there is no session.
    public var startedAt: Timestamp?
    /// The playing track. It stays at the top of the queue until the next track plays.
    public var currentItem: ID<DJQueueItem>?
    public var currentSince: Timestamp?
    /// The version, which grows with every change of the session, its queue and its votes.
    public var version: Int

    public init(
        shopId: ID<Shop>, isActive: Bool = false, startedAt: Timestamp? = nil, currentItem: ID<DJQueueItem>? = nil,
        currentSince: Timestamp? = nil, version: Int = 0
    ) {
        self.shopId = shopId
        self.isActive = isActive
        self.startedAt = startedAt
        self.currentItem = currentItem
        self.currentSince = currentSince
        self.version = version
    }
}

/// A session with its tracks in order: the playing track, then the others by their places.
public struct DJQueue: Sendable, Hashable {
    public let session: DJSession
    public let items: [DJQueueItem]

    /// Creates a queue.
    ///
    /// - Parameter items: All tracks of the session, in any order.
    public init(_ session: DJSession, items: some Sequence<DJQueueItem>) {
        self.session = session
        self.items = items.sorted { left, right in
            let current = session.currentItem
            if (left.id == current) != (right.id == current) { return left.id == current }
            return left.place < right.place
        }
    }

    public var current: DJQueueItem? {
        guard let first = items.first, first.id == session.currentItem else { return nil }
        return first
    }

    /// The track that plays after the current one.
    public var next: DJQueueItem? { items.first { $0.id != session.currentItem } }

    /// Returns the position of a track, from 1; nil if the track is not in the queue.
    public func position(of id: ID<DJQueueItem>) -> Int? { items.firstIndex { $0.id == id }.map { $0 + 1 } }

    /// Returns the queue as JSON.
    ///
    /// - Parameters:
    ///   - votes: The reader's own votes; nil if many readers get the same JSON.
    ///   - epoch: The epoch to which the version belongs.
    public func json(votes: [ID<DJQueueItem>: DJVote]?, epoch: String) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("shopId", session.shopId)
            writer.member("isActive", session.isActive)
            writer.key("currentTrack")
            if let current {
                writer.object { writer in
                    current.track.write(membersTo: &writer)
                    writer.member("startedAt", session.currentSince)
                }
            } else {
                writer.null()
            }
            writer.key("queue")
            writer.array { writer in
                for (index, item) in items.enumerated() {
                    let vote = votes.map { $0[item.id] ?? .none }
                    writer.object { item.write(membersTo: &$0, position: index + 1, vote: vote) }
                }
            }
            writer.member("startedAt", session.startedAt)
            writer.version(session.version, in: epoch)
        }
    }
}
