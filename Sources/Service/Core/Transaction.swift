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
    private var counts: [ID<User>: Badges] = [:]

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
    func emit(
        _ name: StaticString, audience: [String], topic: String? = nil, collapse: String? = nil, data: [UInt8]
    ) {
        drafts.append(
            EventDraft(name: "\(name)", audience: audience, topic: topic, collapse: collapse, data: data))
    }

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

    // MARK: Counts

    /// Changes a user's absolute counts; the version and one `badges:update` follow by themselves.
    func adjustBadges(of user: ID<User>, messages: Int = 0, requests: Int = 0, bell: Int = 0) throws {
        changes[user, default: .none] += BadgeChange(messages: messages, requests: requests, bell: bell)
        if !changedUsers.contains(user) { changedUsers.append(user) }
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

    private func storeCounts(of user: ID<User>) throws {
        guard let change = changes.removeValue(forKey: user), !change.isNone else { return }
        counts[user] = try BadgeLedger.add(
            change, versionStep: counts[user] == nil ? 1 : 0, to: user, tenant: tenant, at: now, in: db)
    }

    // MARK: The end

    /// Has an action run once the transaction is durable, before anybody is answered. It must be quick.
    func afterCommit(_ action: @escaping @Sendable () -> Void) { db.afterCommit(action) }

    /// Runs what waits, writes counts and events, and gives the events in their order. Nothing may follow.
    func finish() throws -> [StreamEvent] {
        try settle()
        for user in changedUsers {
            try storeCounts(of: user)
            guard let badges = counts[user] else { continue }
            let audience = BadgeLedger.badges.read.audience { $0 == "user_id" ? user.text : nil }
            emit("badges:update", audience: audience, collapse: "badges:\(user.text)", data: JSONWriter.bytes(badges))
            let (versions, tenant) = (workshop.badgeVersions, tenant)
            afterCommit { versions.note(badges.version, of: user, tenant: tenant) }
        }
        return try drafts.map { try EventLog.append($0, tenant: tenant, now: now, in: db) }
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
