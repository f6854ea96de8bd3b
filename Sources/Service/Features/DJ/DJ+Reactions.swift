import Database
import Domain
import Values
import Visibility

extension DJFeature {
    static let reaction: Reaction = { tx, fact in
        switch fact {
        case .shopChanged(let shopId): try note(shopId, tx)
        case .bookingChanged(let booking, let previous): try follow(booking, previous: previous, tx)
        default: break
        }
    }

    // MARK: Events

    /// Publishes an event about a shop's music to all watchers. The playing music is public.
    ///
    /// - Parameter collapse: The name of the state that the event carries completely; nil for an event that must not be
    ///   dropped.
    private static func publish(
        _ name: StaticString, in session: DJSession, collapse: String? = nil, _ tx: Transaction,
        _ members: (inout JSONWriter) -> Void
    ) {
        tx.publish(
            name, audience: audience, topic: "dj:\(session.shopId)", collapse: collapse,
            data: JSONWriter.object { writer in
                writer.member("shopId", session.shopId)
                members(&writer)
                writer.version(session.version, in: tx.epoch)
            })
    }

    private static var audience: [String] { tracks.read.audience { _ in nil } }

    /// Publishes the session when it begins or ends. The queue is empty then, so the event carries all of it.
    static func publishSession(_ session: DJSession, _ tx: Transaction) {
        tx.publish(
            "dj:session", audience: audience, topic: "dj:\(session.shopId)",
            collapse: AudienceKey.make("dj", "session", session.shopId.text),
            data: DJQueue(session, items: []).json(votes: nil, epoch: tx.epoch))
    }

    /// Publishes the current counts of a track, never the voters (R-CUT-D-4).
    static func publishVotes(_ item: DJQueueItem, position: Int, in session: DJSession, _ tx: Transaction) {
        publish(
            "dj:queue_update", in: session,
            collapse: AudienceKey.make("dj", "votes", session.shopId.text, item.id.text), tx
        ) { writer in
            writer.member("trackId", item.track.trackId)
            item.tally.write(membersTo: &writer)
            writer.member("position", position)
        }
    }

    static func publishAdded(_ item: DJQueueItem, position: Int, in session: DJSession, _ tx: Transaction) {
        publish("track:added", in: session, tx) { item.write(membersTo: &$0, position: position, vote: nil) }
    }

    /// Publishes that a track has left the queue.
    ///
    /// - Parameter reason: `played` or `removed`.
    static func publishRemoved(_ trackId: ID<DJTrack>, _ reason: String, in session: DJSession, _ tx: Transaction) {
        publish("track:removed", in: session, tx) { writer in
            writer.member("trackId", trackId)
            writer.member("reason", reason)
        }
    }

    /// Publishes the playing track.
    ///
    /// - Parameter track: Nil if the music has stopped.
    static func publishPlaying(_ track: DJTrack?, in session: DJSession, _ tx: Transaction) {
        publish("track:playing", in: session, collapse: AudienceKey.make("dj", "playing", session.shopId.text), tx) {
            writer in
            writer.member("trackId", track?.trackId)
            writer.member("trackName", track?.trackName)
            writer.member("artistName", track?.artistName)
            writer.member("albumArt", track?.albumArt)
            writer.member("startedAt", session.currentSince)
        }
    }

    // MARK: Ticks

    /// Publishes the counts of tracks whose votes exceeded the budget of a second.
    static let updatesTick = Tick(
        name: "dj.updates", everySeconds: 1,
        due: { _ in "SELECT tenant FROM \(tracks, unscoped: counting) WHERE is_unpublished = 1" }
    ) { tx in
        // Ordered by id, so that transactions that lock several shops cannot deadlock.
        let shopIds: [ID<Shop>] = try tx.db.rows(
            """
            SELECT DISTINCT shop_id FROM \(tracks, within: tx.tenant, counting)
            WHERE is_unpublished = 1 ORDER BY shop_id LIMIT \(shopsAtOnceMax)
            """
        ) { try $0.id(0) }
        for shopId in shopIds {
            try tx.lock(.dj(shopId))
            let session = try requireShop(shopId, tx).session
            for item in try takePendingVotes(of: shopId, tx) {
                publishVotes(item, position: try position(of: item, in: session, tx), in: session, tx)
            }
        }
    }

    /// Shops of one tick: at most some thousand rows, a negligible pause of the writer.
    private static let shopsAtOnceMax = 64

    /// Deletes votes on removed tracks in small steps, and removed tracks without votes.
    static let votesTick = Tick(
        name: "dj.votes", everySeconds: 1,
        due: { _ in "SELECT tenant FROM \(tracks, unscoped: counting) WHERE removed_at IS NOT NULL" },
        isTidying: true
    ) { tx in
        let pruned = try tx.db.run(pruningVotes(tenant: tx.tenant))
        guard pruned < Limits.prunedAtOnceMax else { return }
        try tx.db.run(
            """
            DELETE FROM \(tracks, within: tx.tenant, counting) WHERE item_id IN (
                SELECT track.item_id FROM \(tracks, within: tx.tenant, counting) AS track
                WHERE track.removed_at IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM \(votes, within: tx.tenant, counting) AS vote
                    WHERE vote.item_id = track.item_id)
                LIMIT \(Limits.prunedAtOnceMax))
            """)
    }

    static func pruningVotes(tenant: ID<Tenant>) -> SQL {
        """
        DELETE FROM \(votes, within: tenant, counting) WHERE (user_id, shop_id, item_id) IN (
            SELECT vote.user_id, vote.shop_id, vote.item_id FROM \(votes, within: tenant, counting) AS vote
            WHERE vote.item_id IN (
                SELECT item_id FROM \(tracks, within: tenant, counting) WHERE removed_at IS NOT NULL)
            LIMIT \(Limits.prunedAtOnceMax))
        """
    }

    private static let pruning = Unscoped.bookkeeping("expired rows are deleted for all users")

    /// Deletes expired presences and attempts in small steps. Until then they have no effect.
    static let presenceTick = Tick.forgetting(
        name: "dj.presence", everySeconds: 10,
        due: { age in
            """
            SELECT tenant FROM \(presences, unscoped: pruning) WHERE expires_at <= \(age.now)
            UNION ALL SELECT tenant FROM \(attempts, unscoped: pruning) WHERE since <= \(oldestAttempt(age))
            """
        },
        body: { age, tx in
            try tx.db.run(
                """
                DELETE FROM \(presences, within: tx.tenant, pruning) WHERE (user_id, booking_id) IN (
                    SELECT user_id, booking_id FROM \(presences, within: tx.tenant, pruning)
                    WHERE expires_at <= \(age.now)
                    ORDER BY expires_at LIMIT \(Limits.prunedAtOnceMax))
                """)
            try tx.db.run(
                """
                DELETE FROM \(attempts, within: tx.tenant, pruning) WHERE user_id IN (
                    SELECT user_id FROM \(attempts, within: tx.tenant, pruning)
                    WHERE since <= \(oldestAttempt(age)) LIMIT \(Limits.prunedAtOnceMax))
                """)
        })

    private static func oldestAttempt(_ age: AgeTime) -> Timestamp {
        age.end(ofSeconds: PresenceLimits.wrongCodesSeconds)
    }
}
