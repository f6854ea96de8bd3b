import Database
import Domain
import Visibility

extension DJFeature {
    static let reactions = [
        Reaction.on(ShopChanged.self) { tx, change in try note(change.shopId, tx) },
        Reaction.on(BookingChanged.self) { tx, change in try follow(change.booking, previous: change.previous, tx) },
    ]

    // MARK: Events

    private static func topicName(_ shopId: ID<Shop>) -> String { "dj:\(shopId.text)" }

    /// Everybody may hear what plays in a shop, as everybody may read it.
    private static var audience: [String] { tracks.read.audience { _ in nil } }

    /// A session has begun or ended: the queue is empty, so all of it is little.
    static func tellSession(_ session: DJSession, _ tx: Transaction) {
        tx.emit(
            "dj:session", audience: audience, topic: topicName(session.shopId),
            collapse: AudienceKey.make("dj", "session", session.shopId.text),
            data: DJQueue(session, items: []).json(votes: nil))
    }

    /// The counts of a track, as they are now: never who has voted (CUT D-4).
    static func tellVotes(_ item: DJQueueItem, position: Int, in session: DJSession, _ tx: Transaction) {
        let shopId = session.shopId
        let data = JSONWriter.object { writer in
            writer.member("shopId", shopId)
            writer.member("trackId", item.track.trackId)
            item.tally.write(membersTo: &writer)
            writer.member("position", position)
            writer.member("version", session.version)
        }
        tx.emit(
            "dj:queue_update", audience: audience, topic: topicName(shopId),
            collapse: AudienceKey.make("dj", "votes", shopId.text, item.id.text), data: data)
    }

    static func tellAdded(_ item: DJQueueItem, position: Int, in session: DJSession, _ tx: Transaction) {
        let data = JSONWriter.object { writer in
            writer.member("shopId", session.shopId)
            item.write(membersTo: &writer, position: position, vote: nil)
            writer.member("version", session.version)
        }
        tx.emit("track:added", audience: audience, topic: topicName(session.shopId), data: data)
    }

    /// - Parameter reason: `played` or `removed`.
    static func tellRemoved(_ trackId: ID<DJTrack>, _ reason: String, in session: DJSession, _ tx: Transaction) {
        let data = JSONWriter.object { writer in
            writer.member("shopId", session.shopId)
            writer.member("trackId", trackId)
            writer.member("reason", reason)
            writer.member("version", session.version)
        }
        tx.emit("track:removed", audience: audience, topic: topicName(session.shopId), data: data)
    }

    /// - Parameter track: nil: the music has stopped.
    static func tellPlaying(_ track: DJTrack?, in session: DJSession, _ tx: Transaction) {
        let data = JSONWriter.object { writer in
            writer.member("shopId", session.shopId)
            writer.member("trackId", track?.trackId)
            writer.member("trackName", track?.trackName)
            writer.member("artistName", track?.artistName)
            writer.member("albumArt", track?.albumArt)
            writer.member("startedAt", session.currentSince)
            writer.member("version", session.version)
        }
        tx.emit(
            "track:playing", audience: audience, topic: topicName(session.shopId),
            collapse: AudienceKey.make("dj", "playing", session.shopId.text), data: data)
    }

    // MARK: What comes round

    /// Votes that were more than a second's updates: told as they stand now.
    static let updatesTick = Tick(
        name: "dj.updates", everySeconds: 1, isDue: { db, _ in try isUpdateDue(in: db) }
    ) { tx in
        // In the order of their ids: nobody who holds one of them waits for another in a circle.
        for shopId in try shopsUntold(limit: shopsAtOnceMax, tx) {
            try tx.hold(.dj(shopId))
            let session = try requireShop(shopId, tx).session
            for item in try takeUntold(of: shopId, tx) {
                tellVotes(item, position: try position(of: item, in: session, tx), in: session, tx)
            }
        }
    }

    /// Shops of one tick: some thousand rows at most, a pause of the writer that nobody notices.
    private static let shopsAtOnceMax = 64

    static let votesTick = Tick(
        name: "dj.votes", everySeconds: 1, isDue: { db, _ in try isForgettingVotesDue(in: db) }
    ) { tx in try forgetRemoved(tx) }

    static let presenceTick = Tick(
        name: "dj.presence", everySeconds: 10, isDue: { db, now in try isForgettingDue(at: now, in: db) }
    ) { tx in try forgetPast(tx) }
}
