import Database
import Domain
import Values

extension ShopsFeature {
    static let shops = Table(
        "shops", read: ["everyone"], write: ["shop:{shop_id}:staff", "tenant:admin", "tenant:service"],
        person: .nothing("shops belong to tenants"))

    static let barbers = Table(
        "barbers", read: shops.read, write: shops.write,
        person: .rows(by: ["shop_id", "barber_id"], [.step("barber_id", isBounded: false)]))

    static let bookings = Table(
        "bookings", read: ["user:{user_id}", "shop:{shop_id}:staff", "tenant:admin", "tenant:service"],
        write: ["user:{user_id}", "shop:{shop_id}:staff", "tenant:admin", "tenant:service"],
        kept: "BELLHOP_BOOKINGS_KEPT_DAYS, if set",
        person: .rows(
            by: ["id"],
            [
                .changed(
                    "user_id", where: "user_id IS NOT NULL", .null("user_id"), .null("customer_name"),
                    .empty("service"), .next("version")),
                .changedByScan("barber_id", .null("barber_id"), .next("version")),
            ], .impersonal(["shop_id", "tier", "status", "source"])))

    /// Append-only: a trigger refuses everything else.
    static let history = Table(
        "booking_history", read: ["user:{user_id}", "shop:{shop_id}:staff", "tenant:admin", "tenant:service"],
        write: [],
        kept: "BELLHOP_BOOKINGS_KEPT_DAYS, if set",
        person: .rows(
            by: ["booking_id", "version"],
            [
                .changedByScan("user_id", .null("user_id")), .changedByScan("actor_id", .pseudonym("actor_id")),
                .changedByScan("barber_id", .null("barber_id")),
            ], .impersonal(["shop_id", "actor_role", "previous_status", "status"])))

    /// The last computed queue of each shop.
    static let queues = Table(
        "shop_queues", read: ["everyone"], write: [], person: .nothing("numbers of waiting customers"))

    /// The estimates that customers received when they joined the queue, and their actual waits.
    static let estimates = Table(
        "wait_estimates", read: ["shop:{shop_id}:staff", "tenant:admin", "tenant:service"], write: [],
        kept: "BELLHOP_BOOKINGS_KEPT_DAYS, if set", person: .nothing("waits of bookings, without their customers"))

    static let migrations = [Migration("0001_shops", sql: shopTables + bookingTables + queueTables)]

    private static let shopTables: [Migration.Step] = [
        """
        CREATE TABLE shops (
            tenant TEXT NOT NULL,
            shop_id TEXT NOT NULL,
            name TEXT NOT NULL,
            time_zone TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            PRIMARY KEY (tenant, shop_id)
        ) STRICT
        """,
        """
        CREATE TABLE barbers (
            tenant TEXT NOT NULL,
            shop_id TEXT NOT NULL,
            barber_id TEXT NOT NULL,
            name TEXT,
            on_duty INTEGER NOT NULL,
            on_break INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            PRIMARY KEY (tenant, shop_id, barber_id)
        ) STRICT
        """,
    ]

    /// The condition under which a booking reserves its barber's time. The triggers repeat the service's own check. The
    /// service's check comes first because its answer names the conflicting member.
    private static let overlap = """
        NEW.barber_id IS NOT NULL AND NEW.source = 'online' AND NEW.status IN ('pending', 'confirmed', 'in-progress')
        AND EXISTS (
            SELECT 1 FROM bookings
            WHERE tenant = NEW.tenant AND shop_id = NEW.shop_id AND barber_id = NEW.barber_id AND id <> NEW.id
                AND source = 'online' AND status IN ('pending', 'confirmed', 'in-progress')
                AND scheduled_start < NEW.ends_at AND ends_at > NEW.scheduled_start
                AND scheduled_start > NEW.scheduled_start - 28800000000)
        """

    private static let bookingTables: [Migration.Step] = [
        """
        CREATE TABLE bookings (
            tenant TEXT NOT NULL,
            id TEXT NOT NULL,
            user_id TEXT,
            shop_id TEXT NOT NULL,
            barber_id TEXT,
            service TEXT NOT NULL,
            scheduled_start INTEGER NOT NULL,
            ends_at INTEGER NOT NULL,
            duration_minutes INTEGER NOT NULL CHECK (duration_minutes BETWEEN 5 AND 480),
            tier TEXT NOT NULL,
            status TEXT NOT NULL,
            version INTEGER NOT NULL,
            source TEXT NOT NULL,
            customer_name TEXT,
            arrived_at INTEGER,
            started_at INTEGER,
            completed_at INTEGER,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            PRIMARY KEY (tenant, id),
            FOREIGN KEY (tenant, shop_id) REFERENCES shops (tenant, shop_id)
        ) STRICT
        """,
        "CREATE INDEX bookings_of_shop ON bookings (tenant, shop_id, scheduled_start, id)",
        "CREATE INDEX bookings_of_user ON bookings (tenant, user_id, scheduled_start, id) WHERE user_id IS NOT NULL",
        """
        CREATE INDEX bookings_of_barber ON bookings (tenant, shop_id, barber_id, scheduled_start)
        WHERE status IN ('pending', 'confirmed', 'in-progress')
        """,
        """
        CREATE INDEX bookings_completed ON bookings (tenant, shop_id, completed_at) WHERE completed_at IS NOT NULL
        """,
        .sqlite(
            """
            CREATE TRIGGER bookings_insert_overlap BEFORE INSERT ON bookings WHEN \(overlap)
            BEGIN SELECT RAISE(ABORT, 'the barber is booked'); END
            """),
        .sqlite(
            """
            CREATE TRIGGER bookings_update_overlap BEFORE UPDATE ON bookings WHEN \(overlap)
            BEGIN SELECT RAISE(ABORT, 'the barber is booked'); END
            """),
        // PostgreSQL's triggers call functions. A customer's policy hides other customers' bookings, so the function
        // opens the table for its own query.
        .postgreSQL(
            """
            CREATE FUNCTION bookings_overlap() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE
                opened text := current_setting('bellhop.unscoped', true);
                is_booked boolean;
            BEGIN
                PERFORM set_config('bellhop.unscoped', '{bookings}', true);
                is_booked := \(overlap);
                PERFORM set_config('bellhop.unscoped', coalesce(opened, ''), true);
                IF is_booked THEN
                    RAISE EXCEPTION 'the barber is booked' USING ERRCODE = 'integrity_constraint_violation';
                END IF;
                RETURN NEW;
            END $$
            """),
        .postgreSQL(
            """
            CREATE TRIGGER bookings_overlap BEFORE INSERT OR UPDATE ON bookings
            FOR EACH ROW EXECUTE FUNCTION bookings_overlap()
            """),
        """
        CREATE TABLE booking_history (
            tenant TEXT NOT NULL,
            booking_id TEXT NOT NULL,
            version INTEGER NOT NULL,
            user_id TEXT,
            shop_id TEXT NOT NULL,
            at INTEGER NOT NULL,
            actor_id TEXT NOT NULL,
            actor_role TEXT NOT NULL,
            previous_status TEXT,
            status TEXT NOT NULL,
            scheduled_start INTEGER NOT NULL,
            duration_minutes INTEGER NOT NULL,
            barber_id TEXT,
            PRIMARY KEY (tenant, booking_id, version)
        ) STRICT
        """,
        // The history forgets erased persons, and is deleted after its booking.
        .sqlite(
            """
            CREATE TRIGGER booking_history_is_append_only BEFORE UPDATE ON booking_history WHEN NOT (\(forgets("IS")))
            BEGIN SELECT RAISE(ABORT, 'history is append-only'); END
            """),
        .sqlite(
            """
            CREATE TRIGGER booking_history_is_kept BEFORE DELETE ON booking_history
            WHEN EXISTS (SELECT 1 FROM bookings WHERE tenant = OLD.tenant AND id = OLD.booking_id)
            BEGIN SELECT RAISE(ABORT, 'history is append-only'); END
            """),
        .postgreSQL(
            """
            CREATE FUNCTION booking_history_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE
                opened text := current_setting('bellhop.unscoped', true);
                is_kept boolean;
            BEGIN
                IF TG_OP = 'UPDATE' AND \(forgets("IS NOT DISTINCT FROM")) THEN RETURN NEW; END IF;
                IF TG_OP = 'DELETE' THEN
                    PERFORM set_config('bellhop.unscoped', '{bookings}', true);
                    is_kept := EXISTS (SELECT 1 FROM bookings WHERE tenant = OLD.tenant AND id = OLD.booking_id);
                    PERFORM set_config('bellhop.unscoped', coalesce(opened, ''), true);
                    IF NOT is_kept THEN RETURN OLD; END IF;
                END IF;
                RAISE EXCEPTION 'history is append-only' USING ERRCODE = 'integrity_constraint_violation';
            END $$
            """),
        .postgreSQL(
            """
            CREATE TRIGGER booking_history_is_append_only BEFORE UPDATE OR DELETE ON booking_history
            FOR EACH ROW EXECUTE FUNCTION booking_history_is_append_only()
            """),
    ]

    private static let queueTables: [Migration.Step] = [
        """
        CREATE TABLE shop_queues (
            tenant TEXT NOT NULL,
            shop_id TEXT NOT NULL,
            content TEXT NOT NULL,
            updated_at INTEGER NOT NULL,
            is_moving INTEGER NOT NULL,
            calibration REAL NOT NULL,
            PRIMARY KEY (tenant, shop_id)
        ) STRICT
        """,
        """
        CREATE TABLE wait_estimates (
            tenant TEXT NOT NULL,
            booking_id TEXT NOT NULL,
            shop_id TEXT NOT NULL,
            lane TEXT NOT NULL,
            p50 REAL NOT NULL,
            p90 REAL NOT NULL,
            formula REAL NOT NULL,
            joined_at INTEGER NOT NULL,
            waited_minutes REAL,
            PRIMARY KEY (tenant, booking_id)
        ) STRICT
        """,
        """
        CREATE INDEX wait_estimates_done ON wait_estimates (tenant, shop_id, joined_at)
        WHERE waited_minutes IS NOT NULL
        """,
    ]

    /// The condition under which a row of the history may change: it forgets a person. `\(same)` compares two values that
    /// may be null.
    private static func forgets(_ same: String) -> String {
        let kept = [
            "tenant", "booking_id", "version", "shop_id", "at", "actor_role", "previous_status", "status",
            "scheduled_start", "duration_minutes",
        ]
        return kept.map { "NEW.\($0) \(same) OLD.\($0)" }.joined(separator: " AND ")
            + " AND (NEW.user_id \(same) OLD.user_id OR NEW.user_id IS NULL)"
            + " AND (NEW.barber_id \(same) OLD.barber_id OR NEW.barber_id IS NULL)"
            + " AND (NEW.actor_id = OLD.actor_id OR NEW.actor_id = '\(ID<User>.erased)')"
    }

    // MARK: Shops

    private static let shopColumns = Shop.columns()
    private static let shopReplacement = Shop.replacement(keeping: ["shop_id", "created_at"])

    static func findShop(_ id: ID<Shop>, _ tx: Transaction) throws -> Shop? {
        try tx.cached("shop:\(id)") { try tx.db.row(query(id, visibleTo: tx.scope), Shop.init(row:)) }
    }

    static func query(_ id: ID<Shop>, visibleTo scope: Scope) -> SQL {
        "SELECT \(shopColumns) FROM \(shops, visibleTo: scope) WHERE shop_id = \(id)"
    }

    /// Discards this transaction's computations for a changed shop.
    static func dropComputed(_ id: ID<Shop>, _ tx: Transaction) {
        for name in ["queue", "samples"] { tx.dropCached("\(name):\(id)") }
    }

    @discardableResult
    static func requireShop(_ id: ID<Shop>, _ tx: Transaction) throws -> Shop {
        try findShop(id, tx).required("shop")
    }

    static func listShops(after: String?, limit: Int, _ tx: Transaction) throws -> [Shop] {
        try tx.db.rows(
            """
            SELECT \(shopColumns) FROM \(shops, visibleTo: tx.scope)
            WHERE shop_id > \(after ?? "") ORDER BY shop_id LIMIT \(limit)
            """, Shop.init(row:))
    }

    /// Stores a shop.
    ///
    /// - Throws: 403 if the shop exists and the caller may not change it, because the write policy skips such rows.
    static func store(_ shop: Shop, _ tx: Transaction) throws {
        dropComputed(shop.id, tx)
        tx.dropCached("shop:\(shop.id)")
        try change(
            """
            INSERT INTO \(shops, writableBy: tx.scope) (tenant, \(shopColumns))
            VALUES (\(tx.tenant), \(shop.values))
            ON CONFLICT (tenant, shop_id) DO UPDATE SET \(shopReplacement)
            """, tx)
    }

    /// Runs a statement that must change one row. A scoped statement skips rows that the caller may not write.
    static func change(_ sql: SQL, _ tx: Transaction) throws {
        guard try tx.db.run(sql) == 1 else {
            throw Failure.forbidden("You may not change this shop.", code: "not_permitted")
        }
    }

    // MARK: Barbers

    private static let barberColumns = Barber.columns()
    private static let barberReplacement = Barber.replacement(keeping: ["barber_id", "shop_id"])

    static func listBarbers(of shopId: ID<Shop>, _ tx: Transaction) throws -> [Barber] {
        try tx.db.rows(barberQuery(of: shopId, tx))
    }

    static func barberQuery(of shopId: ID<Shop>, _ tx: Transaction) -> RowQuery<Barber> {
        RowQuery(
            """
            SELECT \(barberColumns) FROM \(barbers, visibleTo: tx.scope)
            WHERE shop_id = \(shopId) ORDER BY barber_id LIMIT \(barbersMax)
            """, Barber.init(row:))
    }

    /// Returns the condition that the shop has a barber on duty.
    static func hasBarberOnDuty(_ shopId: ID<Shop>, _ tx: Transaction) -> SQL {
        """
        EXISTS (SELECT 1 FROM \(barbers, within: tx.tenant, .reaction("only whether the shop is open is used"))
            WHERE barbers.shop_id = \(shopId) AND barbers.on_duty = 1)
        """
    }

    /// Barbers of one shop. The estimate uses at most 64.
    static let barbersMax = 200

    /// Returns a barber, or nil for a new one.
    ///
    /// - Throws: 404 for a shop that does not exist.
    static func findBarber(_ id: ID<Barber>, of shopId: ID<Shop>, _ tx: Transaction) throws -> Barber? {
        let (shops, barbers) = try tx.db.rows(
            RowQuery(query(shopId, visibleTo: tx.scope), Shop.init(row:)),
            RowQuery(
                """
                SELECT \(barberColumns) FROM \(barbers, visibleTo: tx.scope)
                WHERE shop_id = \(shopId) AND barber_id = \(id)
                """, Barber.init(row:)))
        _ = try tx.cached("shop:\(shopId)") { try shops.first.required("shop") }
        return barbers.first
    }

    static func store(_ barber: Barber, _ tx: Transaction) throws {
        dropComputed(barber.shopId, tx)
        try change(
            """
            INSERT INTO \(barbers, writableBy: tx.scope) (tenant, \(barberColumns))
            VALUES (\(tx.tenant), \(barber.values))
            ON CONFLICT (tenant, shop_id, barber_id) DO UPDATE SET \(barberReplacement)
            """, tx)
    }

    static func removeBarber(_ id: ID<Barber>, of shopId: ID<Shop>, _ tx: Transaction) throws {
        dropComputed(shopId, tx)
        try change(
            "DELETE FROM \(barbers, writableBy: tx.scope) WHERE shop_id = \(shopId) AND barber_id = \(id)", tx)
    }
}
