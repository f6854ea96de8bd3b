import Database
import Values

/// What transactions of other features write.
extension Outbox {
    /// Adds messages, and wakes the senders after the commit.
    static func add(_ drafts: [OutboxDraft], _ tx: Transaction) throws {
        guard !drafts.isEmpty else { return }
        try add(drafts, of: tx.tenant, at: tx.now, in: tx.db)
        tx.wakeSenders()
    }

    /// Adds messages. A message with the slot of one that still waits leaves that one at its place, because the content
    /// is read when it is sent; after one that was sent, or is on its way, it is sent again.
    static func add(
        _ drafts: [OutboxDraft], of tenant: ID<Tenant>, at now: Timestamp, in db: DatabaseConnection
    ) throws {
        var values: [SQLValue] = []
        values.reserveCapacity(drafts.count * 18)
        for draft in drafts {
            values += [
                .text(tenant.text), .text(draft.lane.name), .text(draft.lane.route), .text(draft.id),
                draft.userId.sqlValue, draft.device.sqlValue, .text(draft.type), .text(draft.subject),
                draft.slot.sqlValue, .utf8(draft.data), .integer(0), .integer(1), now.sqlValue, draft.dueAt.sqlValue,
                (draft.patientUntil ?? Timestamp(microseconds: 0)).sqlValue,
                draft.dueAt.adding(seconds: OutboxLimits.secondsToLive).sqlValue, .integer(0), .integer(0),
            ]
        }
        try db.run(insertion.statements(of: values, within: tenant))
        try open(drafts.map { ($0.lane, $0.userId, $0.dueAt) }, of: tenant, at: now, by: opening, in: db)
    }

    private static let isUntouched: SQL = "outbox.state = 0 AND outbox.lease = 0"

    private static let insertion = Insertion(
        """
        INSERT INTO \(messages, within: .boundLater, adding)
            (tenant, lane, route, id, user_id, device_id, type, subject, slot, data, state, version, created_at, due_at,
            patient_until, gives_up_at, attempts, lease)
        """, columns: 18,
        """
        ON CONFLICT (tenant, user_id, slot, lane) DO UPDATE SET
            state = 0, version = outbox.version + 1, route = excluded.route, data = excluded.data,
            gives_up_at = excluded.gives_up_at, error = NULL, reason = NULL, settled_at = NULL,
            id = CASE WHEN outbox.attempts = 0 THEN outbox.id ELSE excluded.id END,
            created_at = CASE WHEN \(isUntouched) THEN outbox.created_at ELSE excluded.created_at END,
            due_at = CASE WHEN \(isUntouched) THEN outbox.due_at ELSE excluded.due_at END,
            patient_until = CASE WHEN \(isUntouched) THEN outbox.patient_until ELSE excluded.patient_until END
        """)

    // MARK: Lanes

    /// Notes that messages wait in lanes. A lane whose attempt runs, or whose receiver asked for a pause, keeps its time.
    private static func open(
        _ lanes: [(lane: OutboxLane, userId: ID<User>?, dueAt: Timestamp)], of tenant: ID<Tenant>, at now: Timestamp,
        by insertion: Insertion, in db: DatabaseConnection
    ) throws {
        var earliest: [String: (lane: OutboxLane, userId: ID<User>?, dueAt: Timestamp)] = [:]
        for lane in lanes {
            guard let known = earliest[lane.lane.name] else {
                earliest[lane.lane.name] = lane
                continue
            }
            if lane.dueAt < known.dueAt { earliest[lane.lane.name] = lane }
        }
        var values: [SQLValue] = []
        values.reserveCapacity(earliest.count * 8)
        // In one order, so that transactions do not deadlock.
        for (_, lane) in earliest.sorted(by: { $0.key < $1.key }) {
            values += [
                .text(tenant.text), .text(lane.lane.name), .text(lane.lane.route), lane.userId.sqlValue,
                lane.dueAt.sqlValue, now.sqlValue, .integer(0), .integer(0),
            ]
        }
        try db.run(insertion.statements(of: values, within: tenant))
    }

    private static let laneColumns: SQL = """
        INSERT INTO \(lanes, within: .boundLater, adding)
            (tenant, lane, route, user_id, next_at, waits_from, lease, failures)
        """

    /// The later of two times, because ``correct(at:in:)`` looks for lanes that were written while the clock was ahead.
    /// A lease is measured from the begin of its attempt.
    private static let laterWaits: SQL = """
        waits_from = CASE WHEN outbox_lanes.lease = 0 AND outbox_lanes.waits_from < excluded.waits_from
            THEN excluded.waits_from ELSE outbox_lanes.waits_from END
        """

    private static let opening = Insertion(
        laneColumns, columns: 8,
        """
        ON CONFLICT (tenant, lane) DO UPDATE SET
            route = excluded.route, \(laterWaits),
            next_at = CASE WHEN outbox_lanes.lease = 0 AND outbox_lanes.failures = 0
                AND outbox_lanes.next_at > excluded.next_at THEN excluded.next_at ELSE outbox_lanes.next_at END
        """)

    /// Also ends the pause after a failure: what failed is not sent any more.
    private static let reopening = Insertion(
        laneColumns, columns: 8,
        """
        ON CONFLICT (tenant, lane) DO UPDATE SET
            route = excluded.route, \(laterWaits),
            failures = CASE WHEN outbox_lanes.lease = 0 THEN 0 ELSE outbox_lanes.failures END,
            next_at = CASE WHEN outbox_lanes.lease = 0 AND outbox_lanes.next_at > excluded.next_at
                THEN excluded.next_at ELSE outbox_lanes.next_at END
        """)

    // MARK: Withdrawal of seen messages

    /// A message that was sent, or may have been.
    struct Sent: Sendable {
        let number: Int
        let lane: OutboxLane
        let slot: String
        let dueAt: Timestamp
    }

    /// Removes the messages about subjects that a user has seen. A message that was sent, or may have been, becomes its
    /// withdrawal.
    ///
    /// The lease of a running attempt stays with its lane. So the withdrawal cannot overtake the message, nor an older
    /// number a newer one.
    ///
    /// - Parameter replacement: Returns the withdrawal of a message; nil leaves the message as it is.
    static func withdraw(
        _ slots: [String], of userId: ID<User>, _ tx: Transaction, by replacement: (Sent) -> OutboxWithdrawal?
    ) throws {
        // A sender that begins an attempt at this moment waits, or has begun it.
        try tx.lock(.user(userId))
        for part in RowParts.ranges(of: slots.count, most: OutboxLimits.rowsAtOnceMax) {
            let found = try tx.db.rows(
                """
                SELECT number, lane, route, slot, due_at, attempts FROM \(messages, of: userId, in: tx.tenant)
                WHERE slot IN \(values: Array(slots[part])) ORDER BY number
                """
            ) { row in
                let sent = Sent(
                    number: try row.integer(0), lane: OutboxLane(name: try row.text(1), route: try row.text(2)),
                    slot: try row.text(3), dueAt: try row.moment(4))
                return (message: sent, isMaybeSent: try row.integer(5) > 0)
            }
            let unsent = found.filter { !$0.isMaybeSent }.map(\.message.number)
            if !unsent.isEmpty {
                try tx.db.run("DELETE FROM \(messages, of: userId, in: tx.tenant) WHERE number IN \(values: unsent)")
            }
            let sent = found.filter(\.isMaybeSent).map(\.message)
            try replace(sent.compactMap { sent in replacement(sent).map { (sent, $0) } }, of: userId, tx)
        }
    }

    private static func replace(
        _ pairs: [(sent: Sent, withdrawal: OutboxWithdrawal)], of userId: ID<User>, _ tx: Transaction
    ) throws {
        guard !pairs.isEmpty else { return }
        // Older withdrawals of the same subjects that still wait in the same lanes.
        let places = pairs.map { "(\($0.withdrawal.slot), \($0.sent.lane.name))" as SQL }
        try tx.db.run(
            """
            DELETE FROM \(messages, of: userId, in: tx.tenant) WHERE (slot, lane) IN (VALUES \(SQL.joined(places, separator: ", ")))
            """)
        try tx.db.run(
            pairs.map { sent, new in
                """
                UPDATE \(messages, of: userId, in: tx.tenant)
                SET type = \(new.type), subject = \(new.subject), slot = \(new.slot), id = \(new.id),
                    data = \(SQLValue.utf8(new.data)), state = 0, version = version + 1,
                    attempts = CASE WHEN attempts = 0 THEN 1 ELSE attempts END, created_at = \(tx.now),
                    due_at = \(new.dueAt), patient_until = 0, error = NULL, reason = NULL, settled_at = NULL,
                    gives_up_at = \(new.dueAt.adding(seconds: OutboxLimits.secondsToLive))
                WHERE number = \(sent.number)
                """
            })
        try open(
            pairs.map { ($0.sent.lane, userId, $0.withdrawal.dueAt) }, of: tx.tenant, at: tx.now, by: reopening,
            in: tx.db)
        tx.wakeSenders()
    }

    // MARK: Dead messages

    /// Makes a dead message of the caller's tenant wait again. Whether it was ever attempted stays recorded. If so, its
    /// subject is withdrawn when it is seen.
    static func revive(_ id: ID<OutboxDraft>, _ tx: Transaction) throws {
        let revived = try tx.db.rows(
            """
            UPDATE \(messages, writableBy: tx.scope)
            SET state = 0, version = version + 1, due_at = \(tx.now), settled_at = NULL, reason = NULL, error = NULL,
                gives_up_at = \(tx.now.adding(seconds: OutboxLimits.secondsToLive)),
                attempts = CASE WHEN attempts > 0 THEN 1 ELSE 0 END
            WHERE id = \(id) AND state = 2 RETURNING lane, route, user_id
            """
        ) { row in
            (OutboxLane(name: try row.text(0), route: try row.text(1)), try row.optionalID(2) as ID<User>?, tx.now)
        }
        guard !revived.isEmpty else { return }
        try open(revived, of: tx.tenant, at: tx.now, by: opening, in: tx.db)
        tx.wakeSenders()
    }

    // MARK: Destinations

    /// Removes a lane with all its messages. The outcome of a running attempt finds nothing.
    static func remove(_ lane: String, of tenant: ID<Tenant>, in db: DatabaseConnection) throws {
        for table in [messages, lanes] {
            try db.run("DELETE FROM \(table, within: tenant, adding) WHERE lane = \(lane)")
        }
    }

    /// Gives the messages of a lane to its successor, with the running attempt.
    static func move(
        _ former: String, to lane: OutboxLane, device: String, of tenant: ID<Tenant>, at now: Timestamp,
        in db: DatabaseConnection
    ) throws {
        try db.run(
            """
            DELETE FROM \(messages, within: tenant, adding) WHERE lane = \(lane.name) AND slot IN (
                SELECT slot FROM \(messages, within: tenant, adding) WHERE lane = \(former))
            """)
        try db.run(
            """
            UPDATE \(messages, within: tenant, adding)
            SET lane = \(lane.name), route = \(lane.route), device_id = \(device) WHERE lane = \(former)
            """)
        guard try db.exists("SELECT 1 FROM \(lanes, within: tenant, adding) WHERE lane = \(former)") else { return }
        try db.run("DELETE FROM \(lanes, within: tenant, adding) WHERE lane = \(lane.name)")
        // Messages of both lanes may wait now. The sender looks which comes first.
        try db.run(
            """
            UPDATE \(lanes, within: tenant, adding) SET lane = \(lane.name), route = \(lane.route),
                next_at = CASE WHEN lease = 0 AND failures = 0 AND next_at > \(now) THEN \(now) ELSE next_at END
            WHERE lane = \(former)
            """)
    }
}
