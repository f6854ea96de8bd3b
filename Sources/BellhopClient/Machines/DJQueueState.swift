/// A shop's DJ queue as an app shows it: updated by the events of the topic `dj:{shopId}`. The user's own votes show
/// before the service answers (`R-CUT-D-1`).
///
/// ```swift
/// var queue = DJQueueState(shopId: "s1")
/// for try await event in client.events(topics: ["dj:s1"]) where queue.merge(event) { draw(queue) }
///
/// queue.show(.up, on: "t1")
/// let answer = try await client.put("/v1/shops/s1/dj/tracks/t1/vote", ["vote": "up"])
/// if !queue.merge(track: answer.json) { queue.withdraw("t1") }
/// ```
///
/// Events to many subscribers carry no individual votes. Votes from the user's other devices arrive with the next whole
/// session.
public struct DJQueueState: Sendable, Hashable {
    /// The user's own vote.
    public enum Vote: String, Sendable, Hashable, CaseIterable {
        case up, down, none
    }

    public struct Track: Sendable, Hashable {
        public let trackId: String
        public let trackName: String
        public let artistName: String
        public let albumArt: String?
        public let addedBy: String
        /// RFC 3339 in UTC with milliseconds, so that texts sort in the order of time.
        public let addedAt: String
        /// The counts that the service sent last, with their version.
        fileprivate var counted: Counts
        /// The user's own vote as the service sent it last.
        fileprivate var confirmed: Vote
        /// The vote that is shown until the service answers.
        fileprivate var pending: Vote?

        public var vote: Vote { pending ?? confirmed }
        public var upvotes: Int { counted.upvotes + share(of: .up) }
        public var downvotes: Int { counted.downvotes + share(of: .down) }
        public var score: Int { upvotes - downvotes }

        /// Returns the difference that the shown vote makes to a side's count.
        private func share(of side: Vote) -> Int { (vote == side ? 1 : 0) - (confirmed == side ? 1 : 0) }

        /// Returns whether this track sorts first: higher score, then added earlier, then the bytes of the id.
        fileprivate func precedes(_ other: Track) -> Bool {
            if score != other.score { return score > other.score }
            if addedAt != other.addedAt { return addedAt < other.addedAt }
            return trackId.utf8.lexicographicallyPrecedes(other.trackId.utf8)
        }
    }

    /// Votes on a track, and the session version they belong to.
    fileprivate struct Counts: Sendable, Hashable {
        let upvotes: Int
        let downvotes: Int
        fileprivate(set) var version: Int
    }

    public let shopId: String
    public private(set) var isActive = false
    /// The track that is playing; it is the first of ``tracks``.
    public private(set) var currentTrackId: String?
    /// In order.
    public private(set) var tracks: [Track] = []
    /// The version of the last whole session. Events before it are ignored.
    private var version = 0
    /// The epoch that versions belong to; nil before the first one.
    private var epoch: String?

    public init(shopId: String) {
        self.shopId = shopId
    }

    // MARK: State from the service

    /// Applies an event of the shop's topic. Returns whether anything changed.
    public mutating func merge(_ event: ServerSentEvent) -> Bool {
        let json = event.json
        let before = self
        guard json["shopId"].string == shopId, let version = enter(json), version >= self.version else {
            self = before
            return false
        }
        switch event.name {
        case "dj:session": return merge(session: json)
        case "track:added": add(json, version: version)
        case "track:removed": tracks.removeAll { $0.trackId == json["trackId"].string }
        case "track:playing": currentTrackId = json["trackId"].string
        case "dj:queue_update": count(json, version: version)
        default:
            self = before
            return false
        }
        order()
        return self != before
    }

    /// Applies a whole session: the topic's first event, or the answer to `GET /v1/shops/{id}/dj`. Returns false for an
    /// older session and for any other document.
    public mutating func merge(session json: JSON) -> Bool {
        let before = self
        guard json["shopId"].string == shopId, let isActive = json["isActive"].bool, let queue = json["queue"].array,
            let version = enter(json), version >= self.version
        else {
            self = before
            return false
        }
        self.isActive = isActive
        self.version = version
        currentTrackId = json["currentTrack"]["trackId"].string
        let known = tracks
        tracks = queue.compactMap { item in
            Self.track(item, known: known.first { $0.trackId == item["trackId"].string }, version: version)
        }
        order()
        return true
    }

    /// Applies the answer to a vote or to an added track, which replaces the optimistic state. Returns false for any
    /// other document, such as a refusal.
    public mutating func merge(track json: JSON) -> Bool {
        guard let trackId = json["trackId"].string, json["userVote"].string != nil, let version = enter(json)
        else { return false }
        withdraw(trackId)
        add(json, version: version)
        order()
        return true
    }

    // MARK: Actions of the user

    /// Shows a vote before it is answered. Does nothing for an unknown track.
    public mutating func show(_ vote: Vote, on trackId: String) {
        guard let index = tracks.firstIndex(where: { $0.trackId == trackId }) else { return }
        tracks[index].pending = vote
        order()
    }

    /// Reverts a vote that the service refused to the last state from the service.
    public mutating func withdraw(_ trackId: String) {
        guard let index = tracks.firstIndex(where: { $0.trackId == trackId }) else { return }
        tracks[index].pending = nil
        order()
    }

    // MARK: Parts

    /// Returns the version of a payload. In another epoch, any payload is newer than the known state.
    private mutating func enter(_ json: JSON) -> Int? {
        guard let version = json["version"].int else { return nil }
        let epoch = json["epoch"].string ?? ""
        if epoch != self.epoch {
            self.epoch = epoch
            self.version = 0
            for index in tracks.indices { tracks[index].counted.version = 0 }
        }
        return version
    }

    /// Returns nil if the document is not a track of a queue.
    private static func track(_ json: JSON, known: Track?, version: Int) -> Track? {
        guard let trackId = json["trackId"].string, let trackName = json["trackName"].string,
            let artistName = json["artistName"].string, let addedBy = json["addedBy"].string,
            let addedAt = json["addedAt"].string, let sent = counts(json, version: version)
        else { return nil }
        let vote = json["userVote"].string.flatMap(Vote.init(rawValue:))
        // An event of a later vote may overtake an answer.
        let counted = known.map { $0.counted.version > version ? $0.counted : sent } ?? sent
        return Track(
            trackId: trackId, trackName: trackName, artistName: artistName, albumArt: json["albumArt"].string,
            addedBy: addedBy, addedAt: addedAt, counted: counted, confirmed: vote ?? known?.confirmed ?? .none,
            pending: known?.pending)
    }

    private static func counts(_ json: JSON, version: Int) -> Counts? {
        guard let upvotes = json["upvotes"].int, let downvotes = json["downvotes"].int else { return nil }
        return Counts(upvotes: upvotes, downvotes: downvotes, version: version)
    }

    private mutating func add(_ json: JSON, version: Int) {
        let index = tracks.firstIndex { $0.trackId == json["trackId"].string }
        guard let track = Self.track(json, known: index.map { tracks[$0] }, version: version) else { return }
        if let index { tracks[index] = track } else { tracks.append(track) }
    }

    private mutating func count(_ json: JSON, version: Int) {
        guard let index = tracks.firstIndex(where: { $0.trackId == json["trackId"].string }),
            let counts = Self.counts(json, version: version), version >= tracks[index].counted.version
        else { return }
        tracks[index].counted = counts
    }

    private mutating func order() {
        let current = currentTrackId
        tracks.sort { left, right in
            if (left.trackId == current) != (right.trackId == current) { return left.trackId == current }
            return left.precedes(right)
        }
    }
}
