import Domain
import MicroHTTP
import Values

extension DJFeature {
    static let sessionEndpoints = [
        Endpoint(.get, "/v1/shops/{id}/dj", access: .bearer, showSession),
        Endpoint(.put, "/v1/shops/{id}/dj", access: .staffOrService, setSession),
        Endpoint(.put, "/v1/shops/{id}/dj/current-track", access: .staffOrService, play),
        Endpoint(.post, "/v1/shops/{id}/dj/current-track", access: .staffOrService, playNext),
    ]

    /// A topic that any user can watch. Its first event is the whole session.
    static let topic = TopicKind(prefix: "dj") { tx, id in
        let shop = try requireShop(ID(id), tx)
        return ("dj:session", try json(shop.session, tx))
    }

    /// Returns the session as the caller sees it.
    private static func json(_ session: DJSession, _ tx: Transaction) throws -> [UInt8] {
        try queue(of: session, tx).json(votes: ownVotes(in: session.shopId, tx), epoch: tx.epoch)
    }

    private static func showSession(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        return .read { tx in try response(200, try requireShop(id, tx).session, tx) }
    }

    /// `PUT /v1/shops/{id}/dj`: starts a session in which guests choose the music, or ends it together with its queue.
    private static func setSession(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        let isActive = try call.body { $0.bool("isActive") }
        return .write(locking: .dj(id)) { tx in
            var shop = try requireOwnShop(id, tx)
            guard shop.session.isActive != isActive else { return try response(200, shop.session, tx) }
            shop.session.isActive = isActive
            shop.session.startedAt = isActive ? tx.now : nil
            (shop.session.currentItem, shop.session.currentSince) = (nil, nil)
            try removeAll(of: id, tx)
            try store(&shop, tx)
            publishSession(shop.session, tx)
            return try response(200, shop.session, tx)
        }
    }

    /// `PUT …/current-track` `{"trackId": …}`: plays a queued track now; null stops the music.
    private static func play(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        let trackId = try call.body { fields in
            if !fields.has("trackId") {
                fields.reject("trackId", "is missing: name a track, or null to stop the music")
            }
            return fields.optionalID("trackId", DJTrack.self)
        }
        return .write(locking: .dj(id)) { tx in
            var shop = try requireOwnShop(id, tx)
            try requireActive(shop.session)
            let item = try trackId.flatMap { try findTrack($0, in: id, tx) }
            guard item?.track.trackId == trackId else { throw Failure.invalid("/trackId", "is not in the queue") }
            try setCurrent(item, of: &shop, tx)
            return try response(200, shop.session, tx)
        }
    }

    /// `POST …/current-track`: plays the next track in order. With `{"after": …}`, only if that track is still playing.
    /// So two players that both report its end do not skip the following track.
    private static func playNext(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        let (hasExpectation, expected) = try call.optionalBody { fields in
            (fields.has("after"), fields.optionalID("after", DJTrack.self))
        }
        return .write(locking: .dj(id)) { tx in
            var shop = try requireOwnShop(id, tx)
            try requireActive(shop.session)
            let queue = try queue(of: shop.session, tx)
            guard !hasExpectation || queue.current?.track.trackId == expected else {
                return try response(200, shop.session, tx)
            }
            try setCurrent(queue.next, of: &shop, tx)
            return try response(200, shop.session, tx)
        }
    }

    /// Sets the playing track. The previous track leaves the queue; setting the same track again changes nothing.
    private static func setCurrent(_ item: DJQueueItem?, of shop: inout DJShop, _ tx: Transaction) throws {
        let before = try queue(of: shop.session, tx).current
        guard before?.id != item?.id else { return }
        shop.session.currentItem = item?.id
        shop.session.currentSince = item == nil ? nil : tx.now
        try store(&shop, tx)
        if let before {
            guard try remove(before.id, tx) else { throw notPermitted("You may not change this track.") }
            publishRemoved(before.track.trackId, "played", in: shop.session, tx)
        }
        publishPlaying(item?.track, in: shop.session, tx)
    }

    static func requireActive(_ session: DJSession) throws {
        guard session.isActive else {
            throw Failure(.conflict, "dj.not_active", "The shop's guests cannot choose the music at the moment.")
        }
    }

    private static func response(_ status: Int, _ session: DJSession, _ tx: Transaction) throws -> Response {
        Response.json(status, try json(session, tx), tag: tx.tag(session.version))
    }
}
