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
    public enum Vote: String, Sendable, Hashable, CaseIterable, Codable {
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

    /// A document of the service: a session, a track, or a change. The topic's events carry no individual votes.
    private struct Document: Decodable {
        let shopId: String?
        let version: Int
        let epoch: String?
        let isActive: Bool?
        let currentTrack: Playing?
        let queue: LoadedItems<Sent>?
        let trackId: String?
        let userVote: String?
        let upvotes: Int?
        let downvotes: Int?

        struct Playing: Decodable { let trackId: String? }
    }

    /// A track as the service sends it.
    private struct Sent: Decodable {
        let trackId: String
        let trackName: String
        let artistName: String
        let albumArt: String?
        let addedBy: String
        let addedAt: String
        let upvotes: Int
        let downvotes: Int
        let userVote: String?
    }

    /// Applies an event of the shop's topic. Returns whether anything changed.
    public mutating func merge(_ event: ServerSentEvent) -> Bool { merge(event.name, event.json) }

    mutating func merge(_ name: String, _ json: JSON) -> Bool {
        let before = self
        guard name != "dj:session" else { return merge(session: json) }
        guard ["track:added", "track:removed", "track:playing", "dj:queue_update"].contains(name),
            let document = json.model(Document.self), document.shopId == shopId
        else { return false }
        enter(document)
        guard document.version >= version else {
            self = before
            return false
        }
        switch name {
        case "track:added": json.model(Sent.self).map { add($0, version: document.version) }
        case "track:removed": tracks.removeAll { $0.trackId == document.trackId }
        case "track:playing": currentTrackId = document.trackId
        default: count(document)
        }
        order()
        return self != before
    }

    /// Applies a whole session: the topic's first event, or the answer to `GET /v1/shops/{id}/dj`. Returns false for an
    /// older session and for any other document.
    public mutating func merge(session json: JSON) -> Bool {
        let before = self
        guard let session = json.model(Document.self), session.shopId == shopId, let isActive = session.isActive,
            let queue = session.queue
        else { return false }
        enter(session)
        guard session.version >= version else {
            self = before
            return false
        }
        (self.isActive, version, currentTrackId) = (isActive, session.version, session.currentTrack?.trackId)
        let known = Dictionary(tracks.map { ($0.trackId, $0) }, uniquingKeysWith: { first, _ in first })
        tracks = queue.items.map { Self.track($0, known: known[$0.trackId], version: session.version) }
        order()
        return true
    }

    /// Applies the answer to a vote or to an added track, which replaces the optimistic state. Returns false for any
    /// other document, such as a refusal.
    public mutating func merge(track json: JSON) -> Bool {
        guard let document = json.model(Document.self), let trackId = document.trackId, document.userVote != nil
        else { return false }
        enter(document)
        withdraw(trackId)
        json.model(Sent.self).map { add($0, version: document.version) }
        order()
        return true
    }

    // MARK: Kept state

    /// The queue as a device keeps it, without votes that the service has not answered.
    struct Kept: Codable, Sendable {
        let isActive: Bool
        let currentTrackId: String?
        let tracks: [KeptTrack]
        let version: Int
        let epoch: String
    }

    struct KeptTrack: Codable, Sendable {
        let trackId, trackName, artistName: String
        let albumArt: String?
        let addedBy, addedAt: String
        let upvotes, downvotes, version: Int
        let userVote: Vote
    }

    /// Nil before the first document of the service.
    var kept: Kept? {
        epoch.map { epoch in
            let kept = tracks.map { track in
                KeptTrack(
                    trackId: track.trackId, trackName: track.trackName, artistName: track.artistName,
                    albumArt: track.albumArt, addedBy: track.addedBy, addedAt: track.addedAt,
                    upvotes: track.counted.upvotes, downvotes: track.counted.downvotes,
                    version: track.counted.version, userVote: track.confirmed)
            }
            return Kept(
                isActive: isActive, currentTrackId: currentTrackId, tracks: kept, version: version, epoch: epoch)
        }
    }

    mutating func restore(_ kept: Kept) {
        (isActive, currentTrackId, version, epoch) = (kept.isActive, kept.currentTrackId, kept.version, kept.epoch)
        tracks = kept.tracks.map { track in
            Track(
                trackId: track.trackId, trackName: track.trackName, artistName: track.artistName,
                albumArt: track.albumArt, addedBy: track.addedBy, addedAt: track.addedAt,
                counted: Counts(upvotes: track.upvotes, downvotes: track.downvotes, version: track.version),
                confirmed: track.userVote)
        }
        order()
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

    /// Enters the epoch of a document. In another epoch, any document is newer than the known state.
    private mutating func enter(_ document: Document) {
        let epoch = document.epoch ?? ""
        guard epoch != self.epoch else { return }
        (self.epoch, version) = (epoch, 0)
        for index in tracks.indices { tracks[index].counted.version = 0 }
    }

    private static func track(_ sent: Sent, known: Track?, version: Int) -> Track {
        let counts = Counts(upvotes: sent.upvotes, downvotes: sent.downvotes, version: version)
        // An event of a later vote may overtake an answer.
        let counted = known.map { $0.counted.version > version ? $0.counted : counts } ?? counts
        return Track(
            trackId: sent.trackId, trackName: sent.trackName, artistName: sent.artistName, albumArt: sent.albumArt,
            addedBy: sent.addedBy, addedAt: sent.addedAt, counted: counted,
            confirmed: sent.userVote.flatMap(Vote.init) ?? known?.confirmed ?? .none, pending: known?.pending)
    }

    private mutating func add(_ sent: Sent, version: Int) {
        let index = tracks.firstIndex { $0.trackId == sent.trackId }
        let track = Self.track(sent, known: index.map { tracks[$0] }, version: version)
        if let index { tracks[index] = track } else { tracks.append(track) }
    }

    private mutating func count(_ document: Document) {
        guard let index = tracks.firstIndex(where: { $0.trackId == document.trackId }),
            let upvotes = document.upvotes, let downvotes = document.downvotes,
            document.version >= tracks[index].counted.version
        else { return }
        tracks[index].counted = Counts(upvotes: upvotes, downvotes: downvotes, version: document.version)
    }

    private mutating func order() {
        let current = currentTrackId
        tracks.sort { left, right in
            if (left.trackId == current) != (right.trackId == current) { return left.trackId == current }
            return left.precedes(right)
        }
    }
}
