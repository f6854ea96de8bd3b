import Database
import Domain
import Foundation
import Realtime

/// One transaction of the service: rows, events, facts and counts that stand or fall together.
///
/// It lives on one thread and is never awaited in.
final class Transaction {
    let db: Connection
    let caller: Caller
    let now: Timestamp
    let settings: Settings
    private let workshop: Workshop
    private let badgeGeneration: Int
    private var facts: [any Fact] = []
    private var drafts: [EventDraft] = []
    private var changes: [ID<User>: BadgeChange] = [:]
    /// The order in which users' counts were first changed: their events follow it.
    private var changedUsers: [ID<User>] = []
    private var everChanged: Set<ID<User>> = []
    private var counts: [ID<User>: Badges] = [:]
    private var remembered: [String: Any] = [:]

    /// What all transactions share.
    struct Workshop: Sendable {
        let settings: Settings
        let reactions: [Reaction]
        let badgeVersions: BadgeVersions
        let ids: IdentifierSource
    }

    init(db: Connection, caller: Caller, now: Timestamp, workshop: Workshop) {
        self.db = db
        self.caller = caller
        self.now = now
        self.workshop = workshop
        settings = workshop.settings
        badgeGeneration = workshop.badgeVersions.presentGeneration
    }

    var tenant: String { caller.tenant }
    var scope: Scope { caller.scope }

    /// An id that sorts behind all that were made before.
    func makeID<E>(_: E.Type) -> ID<E> { workshop.ids.next(at: now) }

    // MARK: Events

    /// Tells an event, in the transaction that it tells of.
    ///
    /// - Parameters:
    ///   - audience: the keys of the row it is about (`table.read.audience(of:)`).
    ///   - topic: nil for what reaches everybody of the audience; `queue:s1` for what reaches those of the audience who
    ///     named the topic.
    ///   - collapse: names the state that the event carries whole; a slow or resuming client gets the latest only. Nil
    ///     for an event that must not be dropped.
    ///   - tenant: nil for the caller's; another one is only for what is told on behalf of all of them.
    func emit(
        _ name: StaticString, audience: [String], topic: String? = nil, collapse: String? = nil,
        tenant: String? = nil, data: [UInt8]
    ) {
        drafts.append(
            EventDraft(
                tenant: tenant, name: name.description, audience: audience, topic: topic, collapse: collapse,
                data: data))
    }

    /// Tells every replica something that is no user's business: `bellhop:revocation`.
    func tellReplicas(_ name: StaticString, data: [UInt8]) {
        guard db.engine == .postgreSQL else { return }
        emit(name, audience: [], data: data)
    }

    // MARK: Subjects

    /// Keeps everybody else who holds the subject waiting until this transaction ends. What is read in order to decide
    /// what is written must be held first.
    ///
    /// - Returns: whether it may have changed since it was last read: false where there is one writer.
    @discardableResult
    func hold(_ subject: Subject) throws -> Bool {
        try db.lock([subject.name(in: tenant)])
        return db.engine == .postgreSQL
    }

    /// Several of one kind at once, in one order whoever asks: so that nobody waits in a circle.
    func hold(_ subjects: [Subject]) throws { try db.lock(subjects.map { $0.name(in: tenant) }) }

    // MARK: Facts

    /// Records that something happened; every feature's reactions run before the transaction ends.
    func record<F: Fact>(_ fact: F) { facts.append(fact) }

    /// Runs the reactions that wait.
    func settle() throws {
        var index = 0
        while index < facts.count {
            precondition(index < Limits.factsMax, "reactions answer one another without end")
            let fact = facts[index]
            for reaction in workshop.reactions { try reaction.run(self, fact) }
            index += 1
        }
        facts.removeAll()
    }

    // MARK: Memory

    /// What was read or computed before in this transaction, or now. Whoever changes what it came from forgets it.
    func remember<Value>(_ name: String, _ make: () throws -> Value) rethrows -> Value {
        // In two steps: nothing, cast to an optional, would be taken for a remembered nil.
        if let known = remembered[name], let value = known as? Value { return value }
        let made = try make()
        remembered[name] = made
        return made
    }

    func forget(_ name: String) { remembered[name] = nil }

    // MARK: Counts

    /// Changes a user's absolute counts; the version and one `badges:update` follow by themselves.
    func adjustBadges(of user: ID<User>, messages: Int = 0, requests: Int = 0, bell: Int = 0) throws {
        try hold(.user(user))
        changes[user, default: .none] += BadgeChange(messages: messages, requests: requests, bell: bell)
        if everChanged.insert(user).inserted { changedUsers.append(user) }
    }

    /// A user's counts as of this transaction.
    func badges(of user: ID<User>) throws -> Badges {
        try settle()
        try storeCounts(of: user)
        if let counts = counts[user] { return counts }
        let badges = try BadgeLedger.read(user, at: now, visibleTo: scope, in: db)
        workshop.badgeVersions.note(badges.version, of: user, tenant: tenant, readIn: badgeGeneration)
        return badges
    }

    /// Stores what waits of several users' counts together: ``badges(of:)`` knows them then.
    func storeCounts(of users: [ID<User>]) throws {
        try settle()
        var gaining: [(userId: ID<User>, change: BadgeChange)] = []
        var losing: [BadgeChange: [ID<User>]] = [:]
        for user in users {
            guard counts[user] == nil, let change = changes[user], !change.isNone else { continue }
            if change.takesNothing {
                gaining.append((user, change))
            } else {
                losing[change, default: []].append(user)
            }
        }
        try storeTogether(gaining) { try BadgeLedger.add($0, tenant: tenant, at: now, in: db) }
        for (change, users) in losing {
            try storeTogether(users) { try BadgeLedger.add(change, toEach: $0, tenant: tenant, at: now, in: db) }
        }
    }

    private func storeTogether<Element>(
        _ waiting: [Element], _ store: (ArraySlice<Element>) throws -> [ID<User>: Badges]
    ) throws {
        var rest = waiting[...]
        while !rest.isEmpty {
            // Powers of two: few different texts, whatever the number of users.
            let size = 1 << min(Self.storedAtOnceBits, Int.bitWidth - 1 - rest.count.leadingZeroBitCount)
            let sums = try store(rest.prefix(size))
            for user in sums.keys { changes[user] = nil }
            counts.merge(sums) { $1 }
            rest = rest.dropFirst(size)
        }
    }

    /// 64 rows of one statement: at most seven binds each.
    private static let storedAtOnceBits = 6

    private func storeCounts(of user: ID<User>) throws {
        guard let change = changes.removeValue(forKey: user), !change.isNone else { return }
        counts[user] = try BadgeLedger.add(
            change, versionStep: counts[user] == nil ? 1 : 0, to: user, tenant: tenant, at: now, in: db)
    }

    // MARK: The end

    /// Has an action run once the transaction is durable, before anybody is answered. It must be quick.
    func afterCommit(_ action: @escaping @Sendable () -> Void) { db.afterCommit(action) }

    /// Runs what waits, writes the counts, and leaves the events for the group's last step. Nothing may follow.
    func finish() throws {
        try settle()
        for user in changedUsers {
            try storeCounts(of: user)
            guard let badges = counts[user] else { continue }
            let audience = BadgeLedger.badges.read.audience { $0 == "user_id" ? user.text : nil }
            emit("badges:update", audience: audience, collapse: "badges:\(user.text)", data: JSONWriter.bytes(badges))
            let (versions, tenant) = (workshop.badgeVersions, tenant)
            afterCommit { versions.note(badges.version, of: user, tenant: tenant) }
        }
        if !drafts.isEmpty { db.deposit(PendingEvents(tenant: tenant, now: now, drafts: drafts)) }
    }
}

/// Makes the ids of all entities, in one order.
///
/// `@unchecked Sendable`: `sequence` is only touched while `lock` is held.
final class IdentifierSource: @unchecked Sendable {
    /// Guards `sequence`.
    private let lock = NSLock()
    private var sequence = IDSequence()

    func next<E>(at now: Timestamp) -> ID<E> { lock.withLock { sequence.next(at: now) } }
}
