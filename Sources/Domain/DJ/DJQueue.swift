import Values

/// A track in a shop's queue, from its addition until it was played or taken out.
public struct DJQueueItem: Sendable, Hashable {
    /// The id of this addition: the same track may be added again after it was played.
    public let id: ID<DJQueueItem>
    public let track: DJTrack
    public let addedBy: ID<User>
    public let addedAt: Timestamp
    public var tally: DJTally

    public init(id: ID<DJQueueItem>, track: DJTrack, addedBy: ID<User>, addedAt: Timestamp, tally: DJTally) {
        self.id = id
        self.track = track
        self.addedBy = addedBy
        self.addedAt = addedAt
        self.tally = tally
    }

    /// A track that somebody adds now, and thereby votes up (CUT D-5).
    ///
    /// The moment is stored as it is published, in milliseconds: clients order by it too.
    public static func added(
        _ track: DJTrack, as id: ID<DJQueueItem>, by userId: ID<User>, at now: Timestamp
    ) -> DJQueueItem {
        let milliseconds = now.microseconds / 1000
        return DJQueueItem(
            id: id, track: track, addedBy: userId, addedAt: Timestamp(microseconds: milliseconds * 1000),
            tally: DJTally().replacing(.none, by: .up))
    }

    public var place: DJPlace { DJPlace(score: tally.score, addedAt: addedAt, trackId: track.trackId) }

    /// The document's members (CUT D-1), with counts where it lists voters (D-4).
    ///
    /// - Parameters:
    ///   - position: from 1.
    ///   - vote: the reader's own; nil where many read the same.
    public func write(membersTo writer: inout JSONWriter, position: Int, vote: DJVote?) {
        track.write(membersTo: &writer)
        writer.member("addedBy", addedBy)
        tally.write(membersTo: &writer)
        writer.member("addedAt", addedAt)
        writer.member("position", position)
        if let vote { writer.member("userVote", vote.rawValue) }
    }
}

/// The place of a track in the queue: score falling, then added first, then track id (decision 10).
///
/// Total, since a queue contains a track once; and stable, since nothing but votes moves it. Ids are compared by their
/// bytes, as both databases do.
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

/// A shop's music session: whether guests choose the music, and what plays.
public struct DJSession: Sendable, Hashable {
    public let shopId: ID<Shop>
    public var isActive: Bool
    /// The start of the present session; nil while there is none.
    public var startedAt: Timestamp?
    /// The track that plays; it stays in the queue, on top, until the next one does.
    public var currentItem: ID<DJQueueItem>?
    public var currentSince: Timestamp?
    /// Grows with every change of the session, its queue and its votes.
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

/// A session with its tracks in order: the one that plays, then the others by their places.
public struct DJQueue: Sendable, Hashable {
    public let session: DJSession
    public let items: [DJQueueItem]

    /// - Parameter items: all tracks of the session, in any order.
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

    /// What plays when the current track ends.
    public var next: DJQueueItem? { items.first { $0.id != session.currentItem } }

    /// The position of a track, from 1; nil if it is not queued.
    public func position(of id: ID<DJQueueItem>) -> Int? { items.firstIndex { $0.id == id }.map { $0 + 1 } }

    /// - Parameters:
    ///   - votes: the reader's own; nil where many read the same.
    ///   - epoch: what the version counts in.
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
