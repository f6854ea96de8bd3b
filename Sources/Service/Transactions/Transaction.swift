import Database
import Domain
import Rows
import Threads
import Values

/// A transaction of the service: rows, events, facts and counts that are committed or rolled back together.
///
/// It lives on one thread, and nothing is awaited in it.
final class Transaction {
    let db: DatabaseConnection
    let caller: Caller
    let now: Timestamp
    private let reader: TransactionReader
    private let traceparent: String?
    private let badgeGeneration: Int
    private var facts: [Fact] = []
    /// The users whose counts changed, in the order of the changes. One fact at the end covers all of them, so that a
    /// change for a thousand users is no thousand reactions.
    private var untoldUsers: [ID<User>] = []
    private var untoldUserSet: Set<ID<User>> = []
    private var drafts: [EventDraft] = []
    private var changes: [ID<User>: BadgeChange] = [:]
    /// The users in the order in which their counts were first changed. Their events have the same order.
    private var changedUsers: [ID<User>] = []
    private var changedUserSet: Set<ID<User>> = []
    private var counts: [ID<User>: Badges] = [:]
    private var cache: [ID<Transaction>: Any] = [:]
    private var isWakingSenders = false
    /// The other users whom a user's request reaches.
    private var reached: Set<ID<User>> = []
    /// Notes for the audit log that belong to no request.
    private(set) var auditNotes: [AuditNotes] = []
    /// The persons that the audit log does not name for this transaction.
    var erased: Set<ID<User>> = []

    init(db: DatabaseConnection, caller: Caller, reader: TransactionReader, traceparent: String? = nil) {
        self.db = db
        self.caller = caller
        self.traceparent = traceparent
        now = reader.clock.now()
        self.reader = reader
        badgeGeneration = reader.badgeVersions.presentGeneration
    }

    var settings: Settings { reader.settings }
    /// The time of a clock that cannot be set, for pauses.
    var uptime: Duration { reader.clock.uptime() }
    /// The time that judges the age of rows; nil while the time is in doubt.
    var age: AgeTime? { reader.clock.age() }
    var backends: Backends { reader.backends }
    var tenant: ID<Tenant> { caller.tenant }
    /// The epoch to which versions belong.
    var epoch: String { reader.log.epoch }
    var scope: Scope { caller.scope }
    /// The size of the file of SQLite; nil on a server.
    var fileBytes: Int? { db.engine == .sqlite ? reader.store.sizeBytes : nil }

    /// Returns an id that sorts after all earlier ones.
    func makeID<E>(_: E.Type) -> ID<E> { reader.ids.withLock { $0.next(at: now) } }

    // MARK: The pace of push messages

    /// Returns after how many seconds push messages that the caller causes are due. Backends have their tenant's limit.
    ///
    /// - Parameter known: Returns how many of them already wait. It is asked only if some would be due later.
    func delaySeconds(ofPushes count: Int, perMinute: Int, known: () throws -> Int) rethrows -> Int64 {
        guard !caller.isService else { return 0 }
        func delay(_ count: Int, isTaken: Bool) -> Int64 {
            reader.pushes.delaySeconds(
                of: count, by: caller.owner, perMinute: perMinute, at: now, isTaken: isTaken)
        }
        let isWithin = delay(count, isTaken: false) == 0
        return delay(isWithin ? count : max(0, count - (try known())), isTaken: true)
    }

    // MARK: Persons

    /// Checks that a user id belongs to a person. A caller that may end the access of users must not end the access of
    /// a backend, of a feed or of the service itself.
    func requirePerson(_ userId: ID<User>) throws {
        guard !settings.backendNames.contains(userId.text),
            try !backends.contains(Owner(tenant: tenant, userId: userId), at: now, in: db)
        else {
            throw Failure.forbidden(
                """
                \(userId) acts as a backend or as the service, not as a user. To end the access of a backend, revoke its \
                token by tokenId, or remove its key from \(Settings.variable(\.$serviceKeys)).
                """, code: "user.is_service")
        }
    }

    // MARK: Contacts

    /// Checks that the caller may contact other users. Backends may contact everyone. To be called before these users are
    /// locked or read, so that a refused caller learns nothing about them from the time.
    ///
    /// - Throws: 403, the same for every user and also for ids that no user has.
    func requireContact(_ kind: ContactKind, with users: @autoclosure () -> [ID<User>]) throws(Failure) {
        guard !caller.isService, settings.tables.contacts.rules[kind] != nil else { return }
        guard reader.allowsContact(kind, caller, users().filter { $0 != caller.userId }) else {
            // A refusal counts like a contact: otherwise a script could ask about every user.
            if let shortage = reader.limiter.bucket(of: caller, at: now)?.take(reached: 1, at: now) {
                throw .contactBudget(shortage)
            }
            throw .forbidden("You may not write to this user.", code: "contact.refused")
        }
    }

    /// Notes that the caller's request reaches another user: by a notification, as a member of a conversation, or as a
    /// follower.
    func noteReached(_ user: ID<User>) {
        guard !caller.isService, user != caller.userId else { return }
        reached.insert(user)
    }

    // MARK: Stored rows

    /// Requires room for more rows of a tenant.
    func requireRoom(for tenant: ID<Tenant>) throws(Failure) { try reader.rows.requireRoom(for: tenant) }

    /// Counts rows of a tenant that this transaction has added, in tables of several tenants.
    func noteAdded(_ rows: Int, of tenant: ID<Tenant>) {
        db.afterCommit { [reader] in reader.rows.note(added: rows, of: tenant) }
    }

    // MARK: Events

    /// Publishes an event once the transaction is committed.
    ///
    /// - Parameters:
    ///   - audience: The keys of the row (`table.read.audience(of:)`).
    ///   - topic: Nil for an event that reaches the whole audience; `queue:s1` for one that reaches only subscribers of
    ///     the topic in the audience.
    ///   - collapse: The name of the state that the event carries completely; a slow or resuming client gets only the
    ///     latest. Nil for an event that must not be dropped.
    func publish(
        _ name: StaticString, audience: [String], topic: String? = nil, collapse: String? = nil, data: [UInt8]
    ) {
        publish(named: name.description, audience: audience, topic: topic, collapse: collapse, data: data)
    }

    /// Publishes an event of an app, whose name the service does not define.
    func publish(named name: String, audience: [String], topic: String?, collapse: String?, data: [UInt8]) {
        publish(
            EventDraft(tenant: tenant, name: name, audience: audience, topic: topic, collapse: collapse, data: data))
    }

    func publish(_ draft: EventDraft) { drafts.append(draft) }

    /// Publishes an event that has members in common with other events of this transaction. They are stored once for
    /// all of them, and come before the members of `data`, which must be a JSON object.
    func publish(_ name: StaticString, audience: [String], shared: SharedMembers, data: [UInt8]) {
        publish(
            EventDraft(
                tenant: tenant, name: name.description, audience: audience, topic: nil, collapse: nil, shared: shared,
                data: data))
    }

    /// Publishes a row change. Each stream receives the part that its scope and its subscriptions allow.
    ///
    /// - Parameter tenant: The owner of the rows; nil for the caller's tenant. Only a feed of all tenants may name
    ///   another one.
    func publish(_ change: RowChange, tenant: ID<Tenant>? = nil) {
        let (bytes, rows) = change.encoded()
        publish(
            EventDraft(
                tenant: tenant ?? self.tenant, name: EventLog.change.description, audience: change.invalidationAudience,
                topic: EventLog.topic(schema: change.schema, table: change.table), collapse: nil,
                data: bytes, change: PublishedChange(change, rows)))
    }

    /// Publishes an event to the other replicas only, such as a revocation.
    func notifyReplicas(_ name: StaticString, data: [UInt8]) {
        guard db.engine == .postgreSQL else { return }
        publish(name, audience: [], data: data)
    }

    /// Adds a note to the audit log that belongs to no request.
    func note(_ notes: AuditNotes) { auditNotes.append(notes) }

    // MARK: Locks

    /// Acquires a lock until this transaction ends; other transactions that want it wait. A transaction must lock data
    /// before it reads it to decide what to write.
    ///
    /// - Returns: Whether the data may have changed since it was last read; false if there is one writer.
    @discardableResult
    func lock(_ key: LockKey) throws -> Bool {
        try db.lock([key.name(in: tenant)])
        return db.engine == .postgreSQL
    }

    /// Acquires several locks of one kind at once, always in the same order, so that transactions do not deadlock.
    func lock(_ keys: @autoclosure () -> [LockKey]) throws { try db.lock(keys().map { $0.name(in: tenant) }) }

    // MARK: Facts

    /// Records that something happened. Every feature's reactions run before the transaction ends.
    func record(_ fact: Fact) { facts.append(fact) }

    /// Runs the pending reactions.
    ///
    /// - Throws: 413 if there are too many facts. Only this transaction fails: other requests share the process.
    func settle() throws {
        var index = 0
        while index < facts.count {
            guard index < Limits.factsMax else {
                throw Failure(
                    .tooLarge, "request.too_many_effects",
                    "The request would have more than \(Limits.factsMax) effects. Divide it into smaller requests.")
            }
            let fact = facts[index]
            for reaction in reader.reactions { try reaction(self, fact) }
            index += 1
        }
        facts.removeAll()
    }

    // MARK: Cache

    /// Returns a value that is read or computed once in this transaction. A change of its source must call
    /// ``dropCached(_:)``.
    func cached<Value>(_ name: String, _ make: () throws -> Value) rethrows -> Value {
        // In two steps, because an absent value, cast to an optional, would look like a cached nil.
        if let known = cache[ID(name)], let value = known as? Value { return value }
        let made = try make()
        cache[ID(name)] = made
        return made
    }

    /// Keeps a value for the rest of the transaction.
    func cache<Value>(_ name: String, _ value: Value) { cache[ID(name)] = value }

    func dropCached(_ name: String) { cache[ID(name)] = nil }

    // MARK: Counts

    /// Changes a user's absolute counts. The version and one `badges:update` are updated automatically.
    func adjustBadges(of user: ID<User>, messages: Int = 0, requests: Int = 0, bell: Int = 0) throws {
        try lock(.user(user))
        changes[user, default: .none] += BadgeChange(messages: messages, requests: requests, bell: bell)
        noteChange(of: user)
    }

    private func noteChange(of user: ID<User>) {
        if untoldUserSet.insert(user).inserted { untoldUsers.append(user) }
        if changedUserSet.insert(user).inserted { changedUsers.append(user) }
    }

    /// Hides exactly these shares of users' badges. Users whose shown counts change get a version and an event, as after
    /// each other change.
    ///
    /// - Returns: The number of users whose shown counts change, and of all whose hidden shares change.
    func hideShares(_ hidden: BadgeShares, of users: [ID<User>]) throws -> (shown: Int, changed: Int) {
        try lock(users.map(LockKey.user))
        let (shown, changed) = try BadgeLedger.hide(hidden, of: users, tenant: tenant, at: now, in: db)
        noteStored(shown)
        for user in users where shown[user] != nil { noteChange(of: user) }
        return (shown.count, changed)
    }

    /// Returns a user's counts in this transaction.
    func badges(of user: ID<User>) throws -> SentBadges {
        try settle()
        try storeCounts(of: user)
        if let counts = counts[user] { return counts.sent(in: epoch) }
        let badges = try BadgeLedger.read(user, at: now, visibleTo: scope, in: db)
        reader.badgeVersions.note(badges.version, of: Owner(tenant: tenant, userId: user), readIn: badgeGeneration)
        return badges.sent(in: epoch)
    }

    /// Stores the pending counts of several users together, so that ``badges(of:)`` returns them.
    func storeCounts(of users: [ID<User>]) throws {
        try settle()
        var gaining: [(userId: ID<User>, change: BadgeChange)] = []
        var losing: [BadgeChange: [ID<User>]] = [:]
        for user in users {
            guard counts[user] == nil, let change = changes[user], !change.isNone else { continue }
            if change.isIncrease {
                gaining.append((user, change))
            } else {
                losing[change, default: []].append(user)
            }
        }
        noteStored(try BadgeLedger.add(gaining, tenant: tenant, hiding: reader.hiddenShares, at: now, in: db))
        for (change, users) in losing {
            for part in RowParts.ranges(of: users.count, most: Self.storedAtOnceMax) {
                noteStored(try BadgeLedger.add(change, toEach: users[part], tenant: tenant, at: now, in: db))
            }
        }
    }

    private func noteStored(_ sums: [ID<User>: Badges]) {
        for user in sums.keys { changes[user] = nil }
        counts.merge(sums) { $1 }
    }

    /// Users of one statement.
    private static let storedAtOnceMax = 64

    private func storeCounts(of user: ID<User>) throws {
        guard let change = changes.removeValue(forKey: user), !change.isNone else { return }
        counts[user] = try BadgeLedger.add(
            change, versionStep: counts[user] == nil ? 1 : 0, to: Owner(tenant: tenant, userId: user),
            hiding: reader.hiddenShares, at: now, in: db)
    }

    // MARK: The end

    /// Runs an action once the transaction is durable, before any caller is answered. It must be quick.
    func afterCommit(_ action: @escaping @Sendable () -> Void) { db.afterCommit(action) }

    /// Wakes the senders of outboxes once the transaction is committed, so that a message that is due at once does not
    /// wait for their next look.
    func wakeSenders() {
        guard !isWakingSenders else { return }
        isWakingSenders = true
        let senders = reader.senders
        afterCommit { senders.send() }
    }

    /// Runs the pending reactions and writes the counts. Nothing may follow.
    ///
    /// - Returns: The events to publish, if any.
    func finish() throws -> PendingEvents? {
        try settle()
        // Last, because it matters which messages about the same users were added.
        if !untoldUsers.isEmpty {
            record(.badgesChanged(of: untoldUsers))
            (untoldUsers, untoldUserSet) = ([], [])
            try settle()
        }
        // The counts of many users are stored together. The remaining users' counts were stored before, and changed
        // again.
        if changedUsers.count > 1 { try storeCounts(of: changedUsers) }
        for user in changedUsers {
            try storeCounts(of: user)
            guard let badges = counts[user] else { continue }
            let audience = BadgeLedger.badges.read.audience { $0 == "user_id" ? user.text : nil }
            publish(
                "badges:update", audience: audience, collapse: "badges:\(user.text)",
                data: JSONWriter.bytes(badges.sent(in: epoch)))
            let (versions, owner) = (reader.badgeVersions, Owner(tenant: tenant, userId: user))
            afterCommit { versions.note(badges.version, of: owner) }
        }
        try spendReached()
        guard !drafts.isEmpty else { return nil }
        try spendEvents()
        return PendingEvents(now: now, drafts: drafts, traceparent: traceparent)
    }

    /// Subtracts the reached users from the caller's budget of the minute.
    ///
    /// - Throws: 429 if the budget is exceeded.
    private func spendReached() throws(Failure) {
        guard !reached.isEmpty, let bucket = reader.limiter.bucket(of: caller, at: now) else { return }
        if let shortage = bucket.take(reached: reached.count, at: now) { throw .contactBudget(shortage) }
    }

    /// Subtracts the published events from the caller's budget of the minute. Events within a request's share are
    /// already bounded by the number of requests. A retried transaction is subtracted twice, which is better than no
    /// limit.
    ///
    /// - Throws: 429 if the budget is exceeded.
    private func spendEvents() throws(Failure) {
        guard !caller.isService else { return }
        let events = drafts.count - Limits.eventsPerRequest
        let bytes = drafts.reduce(0) { $0 + $1.bytes } - Limits.eventBytesPerRequest
        guard events > 0 || bytes > 0, let bucket = reader.limiter.bucket(of: caller, at: now) else { return }
        if let shortage = bucket.take(events: max(0, events), bytes: max(0, bytes), at: now) {
            throw .eventBudget(shortage)
        }
    }
}
