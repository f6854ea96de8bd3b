import Database
import Domain
import Values
import Visibility

extension DJFeature {
    static let reactions = [
        Reaction.on(ShopChanged.self) { tx, change in try note(change.shopId, tx) },
        Reaction.on(BookingChanged.self) { tx, change in try follow(change.booking, previous: change.previous, tx) },
    ]

    // MARK: Events

    private static func topicName(_ shopId: ID<Shop>) -> String { "dj:\(shopId.text)" }

    /// Everybody may receive what plays in a shop, as everybody may read it.
    private static var audience: [String] { tracks.read.audience { _ in nil } }

    /// Publishes the session when it begins or ends; the queue is empty then, so the event carries all of it.
    static func publishSession(_ session: DJSession, _ tx: Transaction) {
        tx.publish(
            "dj:session", audience: audience, topic: topicName(session.shopId),
            collapse: AudienceKey.make("dj", "session", session.shopId.text),
            data: DJQueue(session, items: []).json(votes: nil))
    }

    /// Publishes the present counts of a track, never who has voted (CUT D-4).
    static func publishVotes(_ item: DJQueueItem, position: Int, in session: DJSession, _ tx: Transaction) {
        let shopId = session.shopId
        let data = JSONWriter.object { writer in
            writer.member("shopId", shopId)
            writer.member("trackId", item.track.trackId)
            item.tally.write(membersTo: &writer)
            writer.member("position", position)
            writer.member("version", session.version)
        }
        tx.publish(
            "dj:queue_update", audience: audience, topic: topicName(shopId),
            collapse: AudienceKey.make("dj", "votes", shopId.text, item.id.text), data: data)
    }

    static func publishAdded(_ item: DJQueueItem, position: Int, in session: DJSession, _ tx: Transaction) {
        let data = JSONWriter.object { writer in
            writer.member("shopId", session.shopId)
            item.write(membersTo: &writer, position: position, vote: nil)
            writer.member("version", session.version)
        }
        tx.publish("track:added", audience: audience, topic: topicName(session.shopId), data: data)
    }

    /// - Parameter reason: `played` or `removed`.
    static func publishRemoved(_ trackId: ID<DJTrack>, _ reason: String, in session: DJSession, _ tx: Transaction) {
        let data = JSONWriter.object { writer in
            writer.member("shopId", session.shopId)
            writer.member("trackId", trackId)
            writer.member("reason", reason)
            writer.member("version", session.version)
        }
        tx.publish("track:removed", audience: audience, topic: topicName(session.shopId), data: data)
    }

    /// - Parameter track: nil: the music has stopped.
    static func publishPlaying(_ track: DJTrack?, in session: DJSession, _ tx: Transaction) {
        let data = JSONWriter.object { writer in
            writer.member("shopId", session.shopId)
            writer.member("trackId", track?.trackId)
            writer.member("trackName", track?.trackName)
            writer.member("artistName", track?.artistName)
            writer.member("albumArt", track?.albumArt)
            writer.member("startedAt", session.currentSince)
            writer.member("version", session.version)
        }
        tx.publish(
            "track:playing", audience: audience, topic: topicName(session.shopId),
            collapse: AudienceKey.make("dj", "playing", session.shopId.text), data: data)
    }

    // MARK: Ticks

    /// Publishes the counts of tracks whose votes exceeded the budget of a second.
    static let updatesTick = Tick(
        name: "dj.updates", everySeconds: 1, isDue: { db, _ in try isUpdateDue(in: db) }
    ) { tx in
        // In the order of their ids, so that no two transactions that lock several of them can deadlock.
        for shopId in try shopsWithPendingVotes(limit: shopsAtOnceMax, tx) {
            try tx.lock(.dj(shopId))
            let session = try requireShop(shopId, tx).session
            for item in try takePendingVotes(of: shopId, tx) {
                publishVotes(item, position: try position(of: item, in: session, tx), in: session, tx)
            }
        }
    }

    /// Shops of one tick: some thousand rows at most, an unnoticeable pause of the writer.
    private static let shopsAtOnceMax = 64

    static let votesTick = Tick(
        name: "dj.votes", everySeconds: 1, isDue: { db, _ in try isPruningVotesDue(in: db) }
    ) { tx in try pruneRemoved(tx) }

    static let presenceTick = Tick(
        name: "dj.presence", everySeconds: 10, isDue: { db, now in try isPruningDue(at: now, in: db) }
    ) { tx in try prunePast(tx) }
}
