import Database
import Domain
import Values

extension DJFeature {
    static let counting = Unscoped.reaction("votes of all users are counted; only the counts are returned")

    // MARK: Sessions

    /// A shop's row: its session and its budget of updates.
    struct DJShop {
        var session: DJSession
        let requiresCode: Bool
        var budget: DJUpdateBudget
    }

    private static func shop(_ row: Row) throws -> DJShop {
        DJShop(
            session: DJSession(
                shopId: try row.id(0), isActive: try row.bool(2), startedAt: try row.optionalMoment(3),
                currentItem: try row.optionalID(4), currentSince: try row.optionalMoment(5),
                version: try row.integer(6)),
            requiresCode: try row.bool(1),
            budget: DJUpdateBudget(second: Int64(try row.integer(7)), publishedCount: try row.integer(8)))
    }

    static func requireShop(_ id: ID<Shop>, _ tx: Transaction) throws -> DJShop {
        try tx.db.row(
            """
            SELECT shop_id, requires_code, is_active, started_at, current_item, current_since, version, published_second,
                published_count
            FROM \(shops, visibleTo: tx.scope) WHERE shop_id = \(id)
            """, shop
        ).required("shop")
    }

    /// Whether the table's policy lets the caller manage the shop: its staff, administrators and backends.
    static func isRunBy(_ id: ID<Shop>, _ tx: Transaction) throws -> Bool {
        try tx.db.exists("SELECT 1 FROM \(shops, writableBy: tx.scope) WHERE shop_id = \(id)")
    }

    /// Returns a shop that the caller manages.
    ///
    /// - Throws: 404 for a shop that does not exist, 403 `not_permitted` for one that the caller does not manage.
    static func requireOwnShop(_ id: ID<Shop>, _ tx: Transaction) throws -> DJShop {
        let shop = try requireShop(id, tx)
        guard try isRunBy(id, tx) else { throw notPermitted("You may not change this shop.") }
        return shop
    }

    static func notPermitted(_ detail: String) -> Failure { .forbidden(detail, code: "not_permitted") }

    /// Records that a shop was created or changed.
    static func note(_ shopId: ID<Shop>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(shops, within: tx.tenant, .reaction("the row is created together with the shop"))
                (tenant, shop_id, requires_code, is_active, version, published_second, published_count)
            VALUES (\(tx.tenant), \(shopId), 0, 0, 0, 0, 0) ON CONFLICT (tenant, shop_id) DO NOTHING
            """)
    }

    /// Stores the session as its next version. This is not restricted to staff, because guests' votes and tracks change
    /// it too.
    static func store(_ shop: inout DJShop, _ tx: Transaction) throws {
        shop.session.version += 1
        let session = shop.session
        try tx.db.run(
            """
            UPDATE \(shops, within: tx.tenant, counting) SET is_active = \(session.isActive),
                started_at = \(session.startedAt), current_item = \(session.currentItem),
                current_since = \(session.currentSince), version = \(session.version),
                published_second = \(shop.budget.second), published_count = \(shop.budget.publishedCount)
            WHERE shop_id = \(session.shopId)
            """)
    }

    // MARK: Tracks

    private static let trackColumns = DJQueueItem.columns()

    static func queue(of session: DJSession, _ tx: Transaction) throws -> DJQueue {
        let items = try tx.db.rows(
            """
            SELECT \(trackColumns) FROM \(tracks, visibleTo: tx.scope)
            WHERE shop_id = \(session.shopId) AND removed_at IS NULL
            """, DJQueueItem.init(row:))
        return DJQueue(session, items: items)
    }

    static func findTrack(_ id: ID<DJTrack>, in shopId: ID<Shop>, _ tx: Transaction) throws -> DJQueueItem? {
        try tx.db.row(
            """
            SELECT \(trackColumns) FROM \(tracks, visibleTo: tx.scope)
            WHERE shop_id = \(shopId) AND track_id = \(id) AND removed_at IS NULL
            """, DJQueueItem.init(row:))
    }

    /// Returns the number of queued tracks, and how many of them the caller has added.
    static func countTracks(in shopId: ID<Shop>, _ tx: Transaction) throws -> (all: Int, own: Int) {
        let counts = try tx.db.row(
            """
            SELECT count(*), count(CASE WHEN added_by = \(tx.caller.userId) THEN 1 END)
            FROM \(tracks, visibleTo: tx.scope) WHERE shop_id = \(shopId) AND removed_at IS NULL
            """
        ) { (all: try $0.integer(0), own: try $0.integer(1)) }
        return counts ?? (0, 0)
    }

    static func insert(_ item: DJQueueItem, in shopId: ID<Shop>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(tracks, writableBy: tx.scope)
                (tenant, shop_id, rank_score, is_unpublished, \(trackColumns))
            VALUES (\(tx.tenant), \(shopId), \(-item.tally.score), 0, \(item.values))
            """)
    }

    /// Removes a track from the queue; its votes are pruned later. Returns false if the caller may not.
    static func remove(_ id: ID<DJQueueItem>, _ tx: Transaction) throws -> Bool {
        try tx.db.run(
            """
            UPDATE \(tracks, writableBy: tx.scope) SET removed_at = \(tx.now), is_unpublished = 0
            WHERE item_id = \(id) AND removed_at IS NULL
            """) == 1
    }

    /// Removes all tracks of a shop. A queue has few enough tracks for one statement.
    static func removeAll(of shopId: ID<Shop>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(tracks, writableBy: tx.scope) SET removed_at = \(tx.now), is_unpublished = 0
            WHERE shop_id = \(shopId) AND removed_at IS NULL
            """)
    }

    static func storeTally(of item: DJQueueItem, isPublished: Bool, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(tracks, within: tx.tenant, counting) SET upvotes = \(item.tally.upvotes),
                downvotes = \(item.tally.downvotes), rank_score = \(-item.tally.score), is_unpublished = \(!isPublished)
            WHERE item_id = \(item.id)
            """)
    }

    /// Returns the position of a track, from 1. The current track is first; the others follow by their places.
    static func position(of item: DJQueueItem, in session: DJSession, _ tx: Transaction) throws -> Int {
        guard item.id != session.currentItem else { return 1 }
        let before = try tx.db.integer(placesBefore(item, in: session, visibleTo: tx.scope)) ?? 0
        return before + (session.currentItem == nil ? 1 : 2)
    }

    static func placesBefore(_ item: DJQueueItem, in session: DJSession, visibleTo scope: Scope) -> SQL {
        let place = item.place
        return """
            SELECT count(*) FROM \(tracks, visibleTo: scope)
            WHERE shop_id = \(session.shopId) AND removed_at IS NULL
                AND (rank_score, added_at, track_id) < (\(-place.score), \(place.addedAt), \(place.trackId))
                AND item_id <> \(session.currentItem?.text ?? "")
            """
    }

    // MARK: Votes

    static func ownVote(on item: ID<DJQueueItem>, in shopId: ID<Shop>, _ tx: Transaction) throws -> DJVote {
        let side = try tx.db.integer(
            """
            SELECT side FROM \(votes, visibleTo: tx.scope)
            WHERE user_id = \(tx.caller.userId) AND shop_id = \(shopId) AND item_id = \(item)
            """)
        return DJVote(side: side) ?? .none
    }

    /// Returns the caller's votes in one shop. They may include votes on removed tracks.
    static func ownVotes(in shopId: ID<Shop>, _ tx: Transaction) throws -> [ID<DJQueueItem>: DJVote] {
        let found = try tx.db.rows(
            """
            SELECT item_id, side FROM \(votes, visibleTo: tx.scope)
            WHERE user_id = \(tx.caller.userId) AND shop_id = \(shopId)
            """
        ) { (ID<DJQueueItem>(try $0.text(0)), DJVote(side: try $0.integer(1)) ?? .none) }
        return Dictionary(found) { $1 }
    }

    static func storeVote(_ vote: DJVote, on item: ID<DJQueueItem>, in shopId: ID<Shop>, _ tx: Transaction) throws {
        let userId = tx.caller.userId
        let statement: SQL =
            if let side = vote.side {
                """
                INSERT INTO \(votes, writableBy: tx.scope) (tenant, user_id, shop_id, item_id, side)
                VALUES (\(tx.tenant), \(userId), \(shopId), \(item), \(side))
                ON CONFLICT (tenant, user_id, shop_id, item_id) DO UPDATE SET side = excluded.side
                """
            } else {
                """
                DELETE FROM \(votes, writableBy: tx.scope)
                WHERE user_id = \(userId) AND shop_id = \(shopId) AND item_id = \(item)
                """
            }
        try tx.db.run(statement)
    }

    /// Votes of one transaction of an erasure.
    private static let erasedAtOnceMax = 100

    /// Withdraws the votes of an erased person. The changed counts are published with the next updates.
    static let personStep = PersonStep.repeating("dj.votes") { person, tx in
        let found = try tx.db.rows(
            """
            SELECT shop_id, item_id, side FROM \(votes, of: person, in: tx.tenant)
            ORDER BY shop_id, item_id LIMIT \(erasedAtOnceMax)
            """
        ) { (shopId: try $0.id(0) as ID<Shop>, item: try $0.id(1) as ID<DJQueueItem>, side: try $0.integer(2)) }
        try tx.lock(found.map { .dj($0.shopId) })
        for (shopId, id, side) in found {
            try tx.db.run(
                """
                DELETE FROM \(votes, of: person, in: tx.tenant)
                WHERE shop_id = \(shopId) AND item_id = \(id)
                """)
            let item = try tx.db.row(
                """
                SELECT \(trackColumns) FROM \(tracks, within: tx.tenant, counting)
                WHERE item_id = \(id) AND removed_at IS NULL
                """, DJQueueItem.init(row:))
            guard var item else { continue }
            item.tally = item.tally.replacing(DJVote(side: side) ?? .none, by: .none)
            try storeTally(of: item, isPublished: false, tx)
            var shop = try requireShop(shopId, tx)
            try store(&shop, tx)
        }
        return !found.isEmpty
    }

    /// Marks a shop's pending updates as published, and returns their tracks.
    static func takePendingVotes(of shopId: ID<Shop>, _ tx: Transaction) throws -> [DJQueueItem] {
        try tx.db.rows(
            """
            UPDATE \(tracks, within: tx.tenant, counting) SET is_unpublished = 0
            WHERE shop_id = \(shopId) AND is_unpublished = 1 AND removed_at IS NULL
            RETURNING \(trackColumns)
            """, DJQueueItem.init(row:))
    }

    // MARK: Recount

    /// Recounts all votes, and looks for contradictions in sessions. A sound database has no differences.
    static let audit = Audit(name: "dj") { db in try recount(in: db) + contradictions(in: db) }

    private static let recounting = Unscoped.audit("a recount reads the rows of all tenants")
    private static let allShops: SQL = "\(shops, unscoped: recounting)"
    private static let allTracks: SQL = "\(tracks, unscoped: recounting)"
    private static let allVotes: SQL = "\(votes, unscoped: recounting)"

    private static func recount(in db: DatabaseConnection) throws -> [String] {
        try db.rows(
            """
            SELECT track.tenant, track.shop_id, track.track_id, track.upvotes, track.downvotes,
                coalesce(counted.up, 0), coalesce(counted.down, 0)
            FROM \(allTracks) AS track
            LEFT JOIN (
                SELECT tenant, item_id, count(CASE WHEN side = 1 THEN 1 END) AS up,
                    count(CASE WHEN side = -1 THEN 1 END) AS down
                FROM \(allVotes) GROUP BY tenant, item_id) AS counted
                ON counted.tenant = track.tenant AND counted.item_id = track.item_id
            WHERE track.removed_at IS NULL
                AND (track.upvotes <> coalesce(counted.up, 0) OR track.downvotes <> coalesce(counted.down, 0))
            LIMIT 100
            """
        ) { row in
            """
            \(try row.text(0))/\(try row.text(1)): \(try row.text(2)) is stored as +\(try row.integer(3)) \
            -\(try row.integer(4)), and is +\(try row.integer(5)) -\(try row.integer(6))
            """
        }
    }

    private static func contradictions(in db: DatabaseConnection) throws -> [String] {
        let silent = try db.rows(
            """
            SELECT shop.tenant, shop.shop_id FROM \(allShops) AS shop
            LEFT JOIN \(allTracks) AS track
                ON track.tenant = shop.tenant AND track.item_id = shop.current_item
                AND track.shop_id = shop.shop_id AND track.removed_at IS NULL
            WHERE shop.current_item IS NOT NULL AND track.item_id IS NULL LIMIT 100
            """
        ) { "\(try $0.text(0))/\(try $0.text(1)): the current track is not in the queue" }
        let closed = try db.rows(
            """
            SELECT DISTINCT shop.tenant, shop.shop_id FROM \(allShops) AS shop
            JOIN \(allTracks) AS track
                ON track.tenant = shop.tenant AND track.shop_id = shop.shop_id AND track.removed_at IS NULL
            WHERE shop.is_active = 0 LIMIT 100
            """
        ) { "\(try $0.text(0))/\(try $0.text(1)): has a queue but no session" }
        let orphaned = try db.rows(
            """
            SELECT vote.tenant, vote.shop_id, count(*) FROM \(allVotes) AS vote
            LEFT JOIN \(allTracks) AS track
                ON track.tenant = vote.tenant AND track.item_id = vote.item_id
            WHERE track.item_id IS NULL GROUP BY vote.tenant, vote.shop_id LIMIT 100
            """
        ) { "\(try $0.text(0))/\(try $0.text(1)): has \(try $0.integer(2)) votes for missing tracks" }
        return silent + closed + orphaned
    }
}
