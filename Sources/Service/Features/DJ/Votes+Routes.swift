import Domain
import MicroHTTP
import Values

extension DJFeature {
    static let voteEndpoints = [
        Endpoint(.post, "/v1/shops/{id}/dj/tracks", access: .bearer, adds: true, addTrack),
        Endpoint(.delete, "/v1/shops/{id}/dj/tracks/{trackId}", access: .bearer, removeTrack),
        Endpoint(.put, "/v1/shops/{id}/dj/tracks/{trackId}/vote", access: .bearer, adds: true, vote),
    ]

    /// `POST …/tracks`: adds a track, with an up-vote of the caller. If it is already queued, votes it up.
    private static func addTrack(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        let track = try call.body(DJTrack.init(reading:))
        return .write(locking: .dj(id)) { tx in
            var shop = try requireShop(id, tx)
            // The managers of the shop can fill its queue from anywhere.
            let isOwn = try isRunBy(id, tx)
            guard try isOwn || presence(in: id, tx) != nil else { throw absent("Must be at shop to add a track") }
            try requireActive(shop.session)
            if let known = try findTrack(track.trackId, in: id, tx) {
                return try cast(.up, on: known, of: &shop, tx)
            }
            try checkRoom(in: id, isOwn: isOwn, tx)
            let item = DJQueueItem.added(track, as: tx.makeID(DJQueueItem.self), by: tx.caller.userId, at: tx.now)
            try insert(item, in: id, tx)
            try storeVote(.up, on: item.id, in: id, tx)
            try store(&shop, tx)
            let position = try position(of: item, in: shop.session, tx)
            publishAdded(item, position: position, in: shop.session, tx)
            return response(201, in: shop.session, tx) { item.write(membersTo: &$0, position: position, vote: .up) }
        }
    }

    private static func checkRoom(in shopId: ID<Shop>, isOwn: Bool, _ tx: Transaction) throws {
        let count = try countTracks(in: shopId, tx)
        guard count.all < DJLimits.tracksMax else {
            throw Failure(
                .conflict, "dj.queue_full", "The queue is full: it can have at most \(DJLimits.tracksMax) tracks.")
        }
        guard isOwn || count.own < DJLimits.tracksPerUserMax else {
            throw Failure(
                .conflict, "dj.too_many_tracks",
                "You already have \(DJLimits.tracksPerUserMax) tracks in the queue. Wait until one has been played.")
        }
    }

    /// `DELETE …/tracks/{trackId}`: for the user that added it, and the shop.
    private static func removeTrack(_ call: Call) throws -> Answer {
        let (id, trackId) = try (call.pathID(0, Shop.self), call.pathID(1, DJTrack.self))
        return .write(locking: .dj(id)) { tx in
            var shop = try requireShop(id, tx)
            let item = try findTrack(trackId, in: id, tx).required("track")
            guard item.id != shop.session.currentItem else {
                throw Failure(
                    .conflict, "dj.playing",
                    "The track is playing. Set another current track, or null, before you remove it.")
            }
            guard try remove(item.id, tx) else {
                throw notPermitted("Only the user who added the track, or the shop, may remove it.")
            }
            try store(&shop, tx)
            publishRemoved(trackId, "removed", in: shop.session, tx)
            return .noContent
        }
    }

    /// `PUT …/tracks/{trackId}/vote` `{"vote": "up" | "down" | "none"}`.
    private static func vote(_ call: Call) throws -> Answer {
        let (id, trackId) = try (call.pathID(0, Shop.self), call.pathID(1, DJTrack.self))
        let vote = try call.body { $0.word("vote", DJVote.self) }
        return .write(locking: .dj(id)) { tx in
            var shop = try requireShop(id, tx)
            guard try presence(in: id, tx) != nil else { throw absent("Must be at shop to vote") }
            try requireActive(shop.session)
            return try cast(vote, on: findTrack(trackId, in: id, tx).required("track"), of: &shop, tx)
        }
    }

    private static func absent(_ detail: String) -> Failure { .forbidden(detail, code: "dj.not_present") }

    /// Stores the caller's vote and returns the track. It touches a few rows, regardless of the number of votes.
    private static func cast(
        _ vote: DJVote, on item: DJQueueItem, of shop: inout DJShop, _ tx: Transaction
    ) throws -> Response {
        var item = item
        let before = try ownVote(on: item.id, in: shop.session.shopId, tx)
        let isPublished = before != vote && shop.budget.take(at: tx.now)
        if before != vote {
            item.tally = item.tally.replacing(before, by: vote)
            try storeVote(vote, on: item.id, in: shop.session.shopId, tx)
            try storeTally(of: item, isPublished: isPublished, tx)
            try store(&shop, tx)
        }
        let position = try position(of: item, in: shop.session, tx)
        if isPublished { publishVotes(item, position: position, in: shop.session, tx) }
        return response(200, in: shop.session, tx) { item.write(membersTo: &$0, position: position, vote: vote) }
    }

    private static func response(
        _ status: Int, in session: DJSession, _ tx: Transaction, _ track: (inout JSONWriter) -> Void
    ) -> Response {
        Response.json(status) { writer in
            track(&writer)
            writer.version(session.version, in: tx.epoch)
        }
    }
}
