import Database
import Domain
import Push
import Values

/// One running attempt to send a message to a device.
struct PushAttempt: Sendable {
    let number: Int
    let owner: Owner
    let device: ID<Device>
    let type: PushType
    let subject: String
    /// 1 for the first attempt. An accepted message sets the count back to 1.
    let attempt: Int
    let begunAt: Timestamp
    let createdAt: Timestamp
    let givesUpAt: Timestamp

    var isAlert: Bool { type == .notification || type == .message }

    /// The condition that no later attempt was begun. Another replica begins one if this one exceeds its lease. The time
    /// belongs to it, because an accepted message sets the count back.
    var isLatest: SQL { "number = \(number) AND attempts = \(attempt) AND tried_at = \(begunAt)" }
}

/// A message with its destination, as read at the moment of sending.
struct PushDelivery: Sendable {
    let attempt: PushAttempt
    let platform: Device.Platform
    let target: PushTarget
    let message: PushMessage
    /// The outbox rows of the withdrawals that the message carries.
    let withdrawals: [Int]
    let registeredAt: Timestamp
}

/// The statements of the sender.
extension PushFeature {
    static let sending = Unscoped.bookkeeping("the sender sends the due messages of all tenants")

    // MARK: Due messages

    /// Selects the first due message of each device, so that messages to a device never overtake one another. They also
    /// wait for a running attempt whose row has got a later time: it became a browser's withdrawal, or is to be sent again.
    ///
    /// Messages for devices with an address that no key opens are left out. Another replica may have the key: while
    /// keys are replaced, the first restarted replica encrypts with a key that the others do not have yet.
    private static func sendableCondition(at now: Timestamp, _ keys: PushKeyRing) -> SQL {
        """
        o.state = 0 AND o.next_at <= \(now) AND o.leased_until <= \(now) AND o.gives_up_at > \(now) AND NOT EXISTS (
            SELECT 1 FROM \(outbox, unscoped: sending) AS q
            WHERE q.state = 0 AND q.tenant = o.tenant AND q.user_id = o.user_id AND q.device_id = o.device_id
                AND (q.leased_until > \(now) OR q.gives_up_at > \(now) AND q.due_at <= \(now)
                    AND (q.due_at < o.due_at OR q.due_at = o.due_at AND q.number < o.number)))
        AND NOT EXISTS (
            SELECT 1 FROM \(devices, unscoped: sending) AS d
            WHERE d.tenant = o.tenant AND d.user_id = o.user_id AND d.id = o.device_id
                AND \(isUnreadable("d.address", keys)))
        """
    }

    /// Whether a message is sent before its user had time to see it. That is right only if the user has no stream.
    ///
    /// - Parameter seconds: The time that a user with a stream has.
    private static func isEarly(_ seconds: Int) -> SQL {
        "o.type IN ('notification', 'message') AND o.due_at < o.created_at + \(Int64(seconds) * 1_000_000)"
    }

    /// A due message.
    struct Due: OutboxRow {
        let number: Int
        let owner: Owner
        let isEarly: Bool

        var tenant: ID<Tenant> { owner.tenant }
    }

    /// The outbox as the sender's statements name it.
    static let sent: SQL = "\(outbox, unscoped: sending)"

    /// Returns the due messages.
    ///
    /// - Parameter busy: The messages that this process is already sending.
    static func due(
        at now: Timestamp, patience seconds: Int, except busy: Set<Int>, _ keys: PushKeyRing, _ condition: SQL?,
        limit: Int, in db: DatabaseConnection
    ) throws -> [Due] {
        let notBusyCondition: SQL? = busy.isEmpty ? nil : "o.number NOT IN \(values: busy.sorted())"
        return try db.rows(
            """
            SELECT o.number, o.tenant, o.user_id, CASE WHEN \(isEarly(seconds)) THEN 1 ELSE 0 END
            FROM \(outbox, unscoped: sending) AS o
            WHERE \(SQL.all([condition, sendableCondition(at: now, keys), notBusyCondition]))
            ORDER BY o.next_at, o.number LIMIT \(limit)
            """
        ) { row in
            Due(
                number: try row.integer(0), owner: Owner(tenant: try row.id(1), userId: try row.id(2)),
                isEarly: try row.bool(3))
        }
    }

    /// Returns the time at which the next message becomes due after a look at the ones that were due.
    ///
    /// Messages that were due at that look and still wait are left out: they wait for the end of an attempt. If they
    /// counted, the sender would look again and again while a provider is slow or away.
    static func nextDue(after now: Timestamp, in db: DatabaseConnection) throws -> Timestamp? {
        try db.row("SELECT min(next_at) FROM \(outbox, unscoped: sending) WHERE state = 0 AND next_at > \(now)") {
            try $0.optionalMoment(0)
        } ?? nil
    }

    /// Begins attempts of those messages that still exist and may still be sent. Once this commits, it can no longer be
    /// known whether they were sent.
    ///
    /// The caller holds the lock of senders, so each replica sees what another has begun, and the locks of the users, so
    /// that it sees what they have seen.
    static func begin(
        _ numbers: [Int], at now: Timestamp, leasedUntil: Timestamp, _ keys: PushKeyRing, in db: DatabaseConnection
    ) throws -> [PushAttempt] {
        try db.rows(
            """
            UPDATE \(outbox, unscoped: sending) AS o
            SET attempts = attempts + 1, tried_at = \(now), leased_until = \(leasedUntil)
            WHERE o.number IN \(values: numbers) AND \(sendableCondition(at: now, keys))
            RETURNING number, tenant, user_id, device_id, type, subject, attempts, created_at, gives_up_at
            """
        ) { row in
            PushAttempt(
                number: try row.integer(0), owner: Owner(tenant: try row.id(1), userId: try row.id(2)),
                device: try row.id(3), type: try row.word(4, orElse: "a stored message has an unknown type"),
                subject: try row.text(5), attempt: try row.integer(6), begunAt: now, createdAt: try row.moment(7),
                givesUpAt: try row.moment(8))
        }.sorted { $0.number < $1.number }
    }

    /// Begins attempts of due messages, and reads what they send. Deletes the ones that have nothing to send any more.
    static func begin(
        _ due: [Due], at now: Timestamp, leasedUntil: Timestamp, _ push: PushSettings, _ sources: PushSources,
        in db: DatabaseConnection
    ) throws -> [PushDelivery] {
        try db.lock([LockKey.tick("push").name(in: "")])
        try lock(due.map(\.owner), in: db)
        let attempts = try begin(due.map(\.number), at: now, leasedUntil: leasedUntil, push.keys, in: db)
        return try attempts.compactMap { attempt in
            let delivery = try delivery(of: attempt, push, sources, at: now, in: db)
            if delivery == nil { try drop(attempt, in: db) }
            return delivery
        }
    }

    // MARK: Content

    /// Reads what an attempt sends; nil if there is nothing to send any more.
    static func delivery(
        of attempt: PushAttempt, _ push: PushSettings, _ sources: PushSources, at now: Timestamp,
        in db: DatabaseConnection
    ) throws -> PushDelivery? {
        guard let device = try storedDevice(of: attempt, in: db),
            let address = push.keys.open(device.address, context: place(of: attempt.device, attempt.owner)),
            let target = PushTarget(stored: address)
        else { return nil }
        let badge = try BadgeLedger.counts(of: attempt.owner, at: now, in: db).total
        let waiting = device.platform == .webPush ? try withdrawals(for: attempt, at: now, in: db) : []
        guard
            let (content, data, isUrgent) = try shown(
                by: attempt, badge, device, push, sources, at: now, in: db)
        else { return nil }
        if attempt.type != .withdrawal { try forgetBadge(of: attempt, in: db) }
        let message = PushMessage(
            content, badge: badge, tag: tag(attempt.type, attempt.subject), data: data, isUrgent: isUrgent,
            withdrawn: waiting.map(\.tag),
            secondsToLive: max(0, attempt.givesUpAt.seconds - now.seconds))
        return PushDelivery(
            attempt: attempt, platform: device.platform, target: target, message: message,
            withdrawals: waiting.map(\.number), registeredAt: device.registeredAt)
    }

    private struct StoredDevice {
        let platform: Device.Platform
        let address: [UInt8]
        let badge: Int?
        let registeredAt: Timestamp
    }

    private static func storedDevice(of attempt: PushAttempt, in db: DatabaseConnection) throws -> StoredDevice? {
        try db.row(
            """
            SELECT platform, address, badge, registered_at FROM \(devices, unscoped: sending)
            WHERE tenant = \(attempt.owner.tenant) AND user_id = \(attempt.owner.userId) AND id = \(attempt.device)
            """
        ) { row in
            StoredDevice(
                platform: try row.word(0, orElse: "a stored device has an unknown platform"),
                address: try row.blob(1), badge: try row.optionalInteger(2), registeredAt: try row.moment(3))
        }
    }

    /// The withdrawals that wait for the next alert of a browser, without withdrawals of alerts that are on their way.
    private static func withdrawals(
        for attempt: PushAttempt, at now: Timestamp, in db: DatabaseConnection
    ) throws -> [(number: Int, tag: String)] {
        try db.rows(
            """
            SELECT number, subject FROM \(outbox, unscoped: sending)
            WHERE tenant = \(attempt.owner.tenant) AND user_id = \(attempt.owner.userId)
                AND device_id = \(attempt.device) AND type = 'withdrawal' AND leased_until <= \(now) ORDER BY number
            LIMIT \(PushOutboxLimits.withdrawalsMax)
            """
        ) { (number: try $0.integer(0), tag: try $0.text(1)) }
    }

    private static func shown(
        by attempt: PushAttempt, _ badge: Int, _ device: StoredDevice, _ push: PushSettings, _ sources: PushSources,
        at now: Timestamp, in db: DatabaseConnection
    ) throws -> (PushMessage.Content, data: [UInt8], isUrgent: Bool)? {
        let none = EncodedJSON.emptyObject.bytes
        let text: PushText?
        switch attempt.type {
        // The device shows this number already.
        case .badge: return device.badge == badge ? nil : (.badge, none, false)
        case .withdrawal: return (.withdrawal(tags: [attempt.subject]), none, false)
        case .test:
            return (.alert(title: "Test", body: "This device receives notifications.", isSilent: false), none, true)
        case .notification: text = try sources.notification(ID(attempt.subject), attempt.owner, db)
        case .message: text = try sources.message(ID(attempt.subject), attempt.owner, db).map(PushText.init)
        }
        guard let text else { return nil }
        let preferences = try sources.preferences(attempt.owner, db)
        let delivery = preferences.delivery(
            of: text.priority, atMinuteOfDay: TimeZones.minuteOfDay(now, preferences))
        let isFull = push.content == .full
        let shown = isFull ? text.full : text.generic
        return (
            .alert(title: shown.title, body: shown.body, isSilent: !delivery.sounds),
            isFull ? text.fullData : text.data,
            text.priority == .urgent
        )
    }

    // MARK: Outcomes

    /// The stored outcome of an attempt.
    enum Result: Sendable {
        case accepted
        /// - Parameter nextAt: The time of the retry; nil after the last attempt.
        case failed(reason: String, nextAt: Timestamp?)
        case gone(reason: String)
        case interrupted
    }

    /// Returns what follows from the answer to an attempt.
    ///
    /// - Parameter chance: A random number from 0 up to, but not including, 1.
    static func result(
        of outcome: PushOutcome, _ delivery: PushDelivery, at now: Timestamp, chance: Double
    ) -> Result {
        func retry(_ reason: String, asked: Int?) -> Result {
            let attempt = delivery.attempt
            let pause = WebhookRetry.pause(afterAttempt: attempt.attempt, asked: asked, chance: chance)
            let nextAt = Timestamp(microseconds: now.microseconds + Int64(pause * 1_000_000))
            return .failed(reason: reason, nextAt: nextAt < attempt.givesUpAt ? nextAt : nil)
        }
        switch outcome {
        case .accepted: return .accepted
        case .interrupted: return .interrupted
        case .refused(let reason): return .failed(reason: reason, nextAt: nil)
        case .gone(let reason, let since):
            // The device was registered again after the provider had noticed that it was gone.
            if let since, since < delivery.registeredAt { return retry(reason, asked: nil) }
            return .gone(reason: reason)
        case .failed(let reason, let asked): return retry(reason, asked: asked)
        case .misconfigured(let reason): return retry(reason, asked: Int(PushOutboxLimits.misconfiguredSeconds))
        }
    }

    /// Stores the outcomes of attempts.
    static func record(
        _ results: [(delivery: PushDelivery, result: Result)], at now: Timestamp, in db: DatabaseConnection
    ) throws {
        try lock(results.map(\.delivery.attempt.owner), in: db)
        for (delivery, result) in results { try record(result, of: delivery, at: now, in: db) }
    }

    /// Stores the outcome of an attempt: its message, and what its device shows. The caller holds the lock of the user.
    static func record(
        _ result: Result, of delivery: PushDelivery, at now: Timestamp, in db: DatabaseConnection
    ) throws {
        let attempt = delivery.attempt
        switch result {
        case .accepted:
            if !delivery.withdrawals.isEmpty {
                try db.run("DELETE FROM \(outbox, unscoped: sending) WHERE number IN \(values: delivery.withdrawals)")
            }
            let wasLatest = attempt.isAlert ? try noteSent(attempt, at: now, in: db) : try end(attempt, in: db)
            if attempt.type == .message, wasLatest { try deleteReplaced(by: attempt, in: db) }
            // The system ignores the number of a withdrawal, which only the app reads. A later attempt has sent a newer
            // number.
            if attempt.type != .withdrawal, wasLatest {
                try noteBadge(delivery.message.badge, of: delivery, at: now, in: db)
            }
        case .failed(let reason, let nextAt):
            if let nextAt {
                try retry(attempt, at: nextAt, in: db)
            } else if attempt.isAlert, attempt.attempt > 1 {
                // The device may show an earlier alert about the subject, which must be withdrawn one day.
                _ = try noteSent(attempt, at: now, in: db)
            } else {
                _ = try end(attempt, in: db)
            }
            try note(reason, of: delivery, at: now, in: db)
        case .gone:
            // The device may have been registered with a new token meanwhile. Then that one gets its messages.
            guard try storedDevice(of: attempt, in: db)?.registeredAt == delivery.registeredAt else {
                return try release(attempt.isLatest, in: db)
            }
            try removeMessages(of: attempt.device, attempt.owner, db)
            try db.run(
                """
                DELETE FROM \(devices, unscoped: sending)
                WHERE tenant = \(attempt.owner.tenant) AND user_id = \(attempt.owner.userId)
                    AND id = \(attempt.device) AND registered_at = \(delivery.registeredAt)
                """)
        case .interrupted:
            try release(attempt.isLatest, in: db)
        }
    }

    /// Notes that an alert was sent. A message that was added meanwhile, about the same conversation, stays. So does the
    /// withdrawal. The pauses between attempts begin again, because the provider works.
    ///
    /// - Returns: Whether the attempt was the latest of its message.
    private static func noteSent(_ attempt: PushAttempt, at now: Timestamp, in db: DatabaseConnection) throws -> Bool {
        let isUnchanged: SQL = "created_at = \(attempt.createdAt)"
        return try db.run(
            """
            UPDATE \(outbox, unscoped: sending)
            SET leased_until = 0, attempts = 1, state = CASE WHEN \(isUnchanged) THEN 1 ELSE 0 END,
                gives_up_at = CASE WHEN \(isUnchanged)
                    THEN \(now.adding(seconds: PushOutboxLimits.sentSeconds)) ELSE gives_up_at END,
                next_at = CASE WHEN \(isUnchanged) OR type = 'withdrawal' THEN next_at ELSE due_at END
            WHERE \(attempt.isLatest)
            """) > 0
    }

    /// Deletes the withdrawal of the alert that an accepted alert replaces. It waits behind it if the clock was set back,
    /// and would remove the new alert.
    private static func deleteReplaced(by attempt: PushAttempt, in db: DatabaseConnection) throws {
        try delete(
            """
            tenant = \(attempt.owner.tenant) AND user_id = \(attempt.owner.userId) AND device_id = \(attempt.device)
                AND type = 'withdrawal' AND subject = \(tag(attempt.type, attempt.subject))
                AND number <> \(attempt.number)
            """, in: db)
    }

    private static func retry(_ attempt: PushAttempt, at nextAt: Timestamp, in db: DatabaseConnection) throws {
        try db.run(
            """
            UPDATE \(outbox, unscoped: sending)
            SET leased_until = 0,
                next_at = CASE WHEN type = \(attempt.type.rawValue) THEN \(nextAt) ELSE next_at END
            WHERE \(attempt.isLatest)
            """)
    }

    private static func release(_ own: SQL, in db: DatabaseConnection) throws {
        try db.run("UPDATE \(outbox, unscoped: sending) SET leased_until = 0 WHERE \(own)")
    }

    /// Removes a message after its last attempt, unless another took its place in the row meanwhile.
    ///
    /// - Returns: Whether the attempt was the latest of its message.
    private static func end(_ attempt: PushAttempt, in db: DatabaseConnection) throws -> Bool {
        let own = attempt.isLatest
        if try delete("\(own) AND created_at = \(attempt.createdAt)", in: db) > 0 { return true }
        return try db.run(
            """
            UPDATE \(outbox, unscoped: sending)
            SET leased_until = 0, next_at = CASE WHEN type = 'withdrawal' THEN next_at ELSE due_at END WHERE \(own)
            """) > 0
    }

    /// Removes an attempt that has nothing to send.
    private static func drop(_ attempt: PushAttempt, in db: DatabaseConnection) throws {
        try delete("number = \(attempt.number)", in: db)
    }

    @discardableResult
    static func delete(_ condition: SQL, in db: DatabaseConnection) throws -> Int {
        try db.run("DELETE FROM \(outbox, unscoped: sending) WHERE \(condition)")
    }

    /// Notes that it is unknown which number the device shows: this attempt may be accepted without an answer.
    private static func forgetBadge(of attempt: PushAttempt, in db: DatabaseConnection) throws {
        try db.run(
            """
            UPDATE \(devices, unscoped: sending) SET badge = NULL
            WHERE tenant = \(attempt.owner.tenant) AND user_id = \(attempt.owner.userId) AND id = \(attempt.device)
            """)
    }

    private static func noteBadge(
        _ badge: Int, of delivery: PushDelivery, at now: Timestamp, in db: DatabaseConnection
    ) throws {
        let attempt = delivery.attempt
        try db.run(
            """
            UPDATE \(devices, unscoped: sending) SET badge = \(badge), badge_at = \(now), error = NULL, error_at = NULL
            WHERE tenant = \(attempt.owner.tenant) AND user_id = \(attempt.owner.userId) AND id = \(attempt.device)
                AND registered_at = \(delivery.registeredAt)
            """)
    }

    private static func note(
        _ error: String, of delivery: PushDelivery, at now: Timestamp, in db: DatabaseConnection
    ) throws {
        let attempt = delivery.attempt
        try db.run(
            """
            UPDATE \(devices, unscoped: sending) SET error = \(error), error_at = \(now)
            WHERE tenant = \(attempt.owner.tenant) AND user_id = \(attempt.owner.userId) AND id = \(attempt.device)
            """)
    }

    /// Ends all leases, so that begun attempts are repeated without waiting.
    static func endLeases(in db: DatabaseConnection) throws {
        try db.run("UPDATE \(outbox, unscoped: sending) SET leased_until = 0 WHERE state = 0 AND leased_until > 0")
    }

    // MARK: Presence

    /// Returns the users of messages that are sent before a user with a stream had time to see them.
    ///
    /// Reads the messages that are due before the next look only, not all that wait while a provider is away.
    static func ownersOfEarly(
        at now: Timestamp, patience seconds: Int, in db: DatabaseConnection
    ) throws -> [Owner] {
        try db.rows(
            """
            SELECT DISTINCT o.tenant, o.user_id FROM \(outbox, unscoped: sending) AS o
            WHERE o.state = 0 AND o.next_at <= \(now.adding(seconds: PushOutboxLimits.presenceSeconds))
                AND o.leased_until = 0 AND \(isEarly(seconds))
            """
        ) { Owner(tenant: try $0.id(0), userId: try $0.id(1)) }
    }

    /// Gives a user with a stream the time to see new messages before they are sent.
    static func postpone(of owner: Owner, patience seconds: Int, in db: DatabaseConnection) throws {
        let dueAt: SQL = "created_at + \(Int64(seconds) * 1_000_000)"
        try db.run(
            """
            UPDATE \(outbox, unscoped: sending) AS o
            SET due_at = \(dueAt), next_at = CASE WHEN next_at < \(dueAt) THEN \(dueAt) ELSE next_at END
            WHERE o.tenant = \(owner.tenant) AND o.user_id = \(owner.userId) AND o.state = 0 AND o.leased_until = 0
                AND \(isEarly(seconds))
            """)
    }
}
