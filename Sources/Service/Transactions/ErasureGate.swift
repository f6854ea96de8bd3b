import Database
import Threads
import Values

/// Keeps transactions from naming a person in the last seconds of the person's erasure.
///
/// The last pass of an erasure looks through the tables one after the other. A row that names the person and is
/// written behind it would stay. So from before the last pass until the erasure is done, a transaction of the same
/// tenant that names the person fails with 503, and can be repeated. Deletions pass. The audit log blanks the ids.
///
/// On PostgreSQL a transaction may run while a round begins, and may be suspended at any moment. At its end it looks again
/// if its knowledge is old (``requireSame(_:for:in:)``). By then the server knows it, and the erasure waits for it.
final class ErasureGate: Sendable {
    /// Returns the persons whose erasure is about to end.
    typealias Reading = @Sendable (DatabaseConnection) throws -> [Owner]

    private struct State {
        var lookedAt: ContinuousClock.Instant?
        var names: [ID<Tenant>: [PersonNames]] = [:]
    }

    private let read: Reading
    private let state = Locked(State())

    /// Refuses nothing, for commands and tests.
    static var open: ErasureGate { ErasureGate { _ in [] } }

    static let code = "erasure.closing"

    /// How long a replica trusts the list that it has read. The last pass begins later, so that every replica knows of
    /// it.
    static let trusted: Duration = .seconds(1)

    /// Fails a transaction for another attempt if it does not know all persons whose erasure is about to end by now.
    /// Call it after its last statement but the commit.
    ///
    /// - Parameters:
    ///   - known: What ``closed(to:in:)`` has returned at its beginning.
    ///   - caller: Nil for the service's own work for all tenants.
    func requireSame(_ known: ClosedPersons?, for caller: Caller?, in db: DatabaseConnection) throws {
        guard db.engine == .postgreSQL, let present = try closed(to: caller, in: db) else { return }
        guard present.persons.isSubset(of: known?.persons ?? []) else {
            throw DatabaseError(.contended, "the erasure of a user is about to end since this transaction began")
        }
    }

    init(_ read: @escaping Reading) { self.read = read }

    /// Makes the next transaction read the persons again. On SQLite nothing else changes them.
    func lookAgain() { state.withLock { $0.lookedAt = nil } }

    /// Returns the persons that a transaction must not name; nil if it may name everybody.
    ///
    /// - Parameter caller: Nil for the service's own work for all tenants.
    func closed(to caller: Caller?, in db: DatabaseConnection) throws -> ClosedPersons? {
        let names = try names(in: db)
        guard !names.isEmpty else { return nil }
        guard let caller, !caller.spansTenants else { return ClosedPersons(names: names) }
        let own = names.filter { $0.key == caller.tenant }
        return own.isEmpty ? nil : ClosedPersons(names: own)
    }

    /// Whether an id is the id of a person whose erasure is about to end, in the list of the last transaction.
    func isClosed(_ user: ID<User>, in tenant: ID<Tenant>) -> Bool {
        state.withLock { $0.names[tenant]?.contains { $0.person == user } ?? false }
    }

    private func names(in db: DatabaseConnection) throws -> [ID<Tenant>: [PersonNames]] {
        let now = ContinuousClock.now
        let known = state.withLock { state -> [ID<Tenant>: [PersonNames]]? in
            guard let lookedAt = state.lookedAt else { return nil }
            return db.engine == .sqlite || now - lookedAt < Self.trusted ? state.names : nil
        }
        if let known { return known }
        let names = Dictionary(grouping: try read(db), by: \.tenant).mapValues { $0.map { PersonNames($0.userId) } }
        state.withLock { $0 = State(lookedAt: now, names: names) }
        return names
    }
}

/// The persons that a transaction must not name.
struct ClosedPersons {
    fileprivate let names: [ID<Tenant>: [PersonNames]]

    fileprivate var persons: Set<Owner> {
        Set(names.flatMap { tenant, names in names.map { Owner(tenant: tenant, userId: $0.person) } })
    }

    func contains(_ person: Owner) -> Bool {
        names[person.tenant]?.contains { $0.person == person.userId } ?? false
    }

    /// Examines the values that a statement stores.
    func examine(_ values: [SQLValue]) throws {
        for names in names.values.joined() where values.contains(where: names.areStored(in:)) { throw Self.failure }
    }

    /// Examines the events of a transaction.
    func examine(_ drafts: [EventDraft]) throws {
        for draft in drafts {
            let isNaming = names[draft.tenant]?.contains { names in
                draft.audience.contains { names.occur(inKey: $0) }
                    || draft.topic.map { names.occur(inKey: $0) } ?? false
                    || names.occur(in: SharedMembers.joined(draft.shared?.members, draft.data))
            }
            // A revocation belongs to a repeated erasure, which begins again.
            if isNaming == true, draft.name != Revocation.event.description { throw Self.failure }
        }
    }

    private static let failure = Failure.unavailable(
        "A user whom the request names is being erased. Try again in some seconds.", code: ErasureGate.code,
        retryAfterSeconds: 5)
}

extension PersonNames {
    /// Whether a stored value names the person: the id itself, a key or an event's id with it, or JSON.
    fileprivate func areStored(in value: SQLValue) -> Bool {
        switch value {
        case .null, .integer, .real: return false
        case .utf8(let bytes), .blob(let bytes): return Self.mayBeJSON(bytes.first) && arePerson(in: bytes)
        case .text(let text):
            if Self.mayBeJSON(text.utf8.first) { return arePerson(in: Array(text.utf8)) }
            // A text of several words is for people. It stays in rows of others, whatever it says.
            return text == person.text
                || !text.utf8.contains(UInt8(ascii: " ")) && (occur(inKey: text) || occur(inEvent: text))
        }
    }

    private static func mayBeJSON(_ first: UInt8?) -> Bool {
        first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    }
}
