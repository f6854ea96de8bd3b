import Database
import Rows
import Synchronization
import Threads
import Values

/// The declared tables, and the memberships according to their rows.
///
/// Memberships are stored in the database, as facts that are numbered in the order in which they became known. This
/// process caches them at the last event that it has published. So scopes change in the order of the log, on every
/// replica. A transaction that needs them takes a copy, and adds the newer facts of the database.
///
/// Each fact is stored with the rule that gave it. A replica with another file, or with a changed one, does not use the
/// fact until the row is read or sent again. So it never honours a key that its own file does not give.
final class MembershipRegistry: Sendable {
    /// The event in the log that memberships have changed.
    static let event: StaticString = "bellhop:memberships"

    static let facts = Table(
        "membership_facts", read: [], write: [], storesSentRows: true,
        person: .copies("a step erases what the app's rows say"))

    static let migration = Migration(
        "0001_memberships",
        sql: [
            """
            CREATE TABLE membership_facts (
                tenant TEXT NOT NULL,
                membership TEXT NOT NULL,
                identity TEXT NOT NULL,
                row_id TEXT,
                subject TEXT,
                object TEXT,
                counts INTEGER NOT NULL,
                version INTEGER NOT NULL,
                rule INTEGER,
                PRIMARY KEY (tenant, membership, identity)
            ) STRICT
            """,
            "CREATE INDEX membership_facts_version ON membership_facts (version)",
        ])

    private static let bookkeeping = Unscoped.bookkeeping(
        "memberships determine scopes and are not returned to callers")
    /// The facts of all tenants, which share one sequence of versions.
    static let allFacts: SQL = "\(facts, unscoped: bookkeeping)"

    let catalog: TableCatalog
    /// The digests of the rules, by the name of the membership.
    let rules: [String: Int64]
    /// Changes whenever memberships change. Anything derived from another generation is derived again.
    let generation = Atomic<Int>(0)
    private let state: Locked<State>
    /// The last generation of any registry of this process.
    private static let lastGeneration = Atomic<Int>(0)

    private struct State {
        var memberships: Memberships
        var generation = 0
        /// The number of the last fact that is in `memberships`.
        var version: Int64 = 0

        /// Adds the newer facts of the database.
        mutating func update(from db: DatabaseConnection, by rules: [String: Int64]) throws {
            try db.forEach(
                """
                SELECT tenant, membership, row_id, subject, object, counts, version, rule
                FROM \(allFacts) WHERE version > \(version) ORDER BY version
                """
            ) { row in
                let fact = MembershipFact(
                    tenant: try row.id(0), membership: try row.text(1), row: try row.optionalText(2),
                    subject: try row.optionalText(3), object: try row.optionalText(4), counts: try row.integer(5) != 0)
                let rule = try row.optionalInteger(7).map { Int64($0) }
                _ = memberships.restore(fact, isCurrent: rule == rules[fact.membership])
                version = Int64(try row.integer(6))
                return true
            }
        }
    }

    init(_ catalog: TableCatalog) {
        self.catalog = catalog
        rules = Self.rules(of: catalog)
        state = Locked(State(memberships: Memberships(catalog)))
    }

    /// The longest window of a declared table.
    var longestWindow: Duration { catalog.tables.map(\.window).max() ?? .zero }

    // MARK: Scopes

    /// The memberships that this process knows.
    var known: KnownMemberships {
        state.withLock { KnownMemberships(memberships: $0.memberships, generation: $0.generation) }
    }

    /// Returns the caller with its current keys: the claims of its token, and the known memberships, which take
    /// precedence.
    func scoped(_ caller: Caller) -> Caller { scoped(caller, by: known) }

    /// Returns the caller with the keys of the given memberships.
    func scoped(_ caller: Caller, by known: @autoclosure () -> KnownMemberships) -> Caller {
        guard !catalog.membershipNames.isEmpty, !caller.isService else { return caller }
        let known = known()
        guard !caller.hasKeys(of: known.generation) else { return caller }
        let (keys, omitted) = known.memberships.scope(of: caller.holder)
        return caller.with(keys, omitted: omitted, of: known.generation)
    }

    /// Whether the file of tables allows a caller to contact other users, by the memberships known now.
    func allows(_ kind: ContactKind, from caller: Caller, to users: [ID<User>]) -> Bool {
        let known = known
        let present = scoped(caller, by: known)
        let sender = ContactPolicy.Caller(
            tenant: caller.tenant, userId: caller.userId, role: caller.role, keys: present.scope.keys,
            omittedKeys: present.omittedKeys)
        return users.allSatisfy { catalog.contacts.allows(kind, from: sender, to: $0, by: known.memberships) }
    }

    // MARK: In a transaction

    /// Returns the memberships in this transaction, and the number of the last fact.
    func memberships(in db: DatabaseConnection) throws -> (Memberships, version: Int64) {
        guard !catalog.membershipNames.isEmpty else { return (known.memberships, 0) }
        var state = state.withLock { $0 }
        try state.update(from: db, by: rules)
        return (state.memberships, state.version)
    }

    /// Facts of one event. A truncated table may have a million rows, and the event of all of them would have 100 MB,
    /// which each replica holds several times while it reads the log.
    static let factsPerEventMax = 1000
    /// Facts of one statement.
    private static let factsPerStatementMax = 64

    /// Stores the effect of a change on memberships, and publishes it to all replicas, in several events if it is large.
    ///
    /// - Parameters:
    ///   - rules: The digests of the rules that gave the facts.
    ///   - known: The number of the last fact.
    /// - Returns: The number of the last fact now.
    static func store(
        _ update: MembershipUpdate, by rules: [String: Int64], after known: Int64, _ tx: Transaction
    ) throws -> Int64 {
        let (holders, most) = (Array(update.holders), factsPerEventMax)
        var version = known
        for start in stride(from: 0, to: max(update.facts.count, holders.count), by: most) {
            version += 1
            var part = MembershipUpdate()
            part.facts = Array(update.facts.dropFirst(start).prefix(most))
            part.holders = Set(holders.dropFirst(start).prefix(most))
            try insert(part.facts, by: rules, version: version, tx)
            let names = Set(part.facts.map(\.membership))
            tx.publish(
                event, audience: [],
                data: JSONWriter.bytes(
                    MembershipChange(version: version, update: part, rules: rules.filter { names.contains($0.key) })))
        }
        for (tenant, facts) in Dictionary(grouping: update.facts.filter(\.counts), by: \.tenant) {
            tx.noteAdded(facts.count, of: tenant)
        }
        return version
    }

    static func insert(
        _ all: [MembershipFact], by rules: [String: Int64], version: Int64, _ tx: Transaction
    ) throws {
        // A statement may store a row only once: the last fact of each identity counts.
        var seen: Set<[String]> = []
        let last = Array(
            all.reversed().filter { seen.insert([$0.tenant.text, $0.membership, $0.identity]).inserted }.reversed())
        for part in RowParts.ranges(of: last.count, most: factsPerStatementMax) {
            let rows = last[part].map { fact -> SQL in
                """
                (\(fact.tenant), \(fact.membership), \(fact.identity), \(fact.row), \(fact.subject), \(fact.object),
                \(fact.counts ? 1 : 0), \(version), \(rules[fact.membership]))
                """
            }
            try tx.db.run(
                """
                INSERT INTO \(allFacts)
                    (tenant, membership, identity, row_id, subject, object, counts, version, rule)
                VALUES \(SQL.joined(rows, separator: ", "))
                ON CONFLICT (tenant, membership, identity) DO UPDATE SET row_id = excluded.row_id,
                    subject = excluded.subject, object = excluded.object, counts = excluded.counts,
                    version = excluded.version, rule = excluded.rule
                """)
        }
    }

    // MARK: From the log

    /// Applies an event of the log.
    ///
    /// - Returns: The keys whose holders' scopes have changed, and the memberships after the event; nil if it is known.
    func apply(_ data: [UInt8]) -> (holders: Set<MembershipUpdate.Holders>, memberships: KnownMemberships)? {
        guard let change = MembershipChange(reading: data) else { return nil }
        var holders = change.update.holders
        let changed = state.withLock { state -> KnownMemberships? in
            guard change.version > state.version else { return nil }
            // By another file, the same facts may affect other scopes here than where they were stored.
            for fact in change.update.facts {
                let isCurrent = change.rules[fact.membership] == rules[fact.membership]
                holders.formUnion(state.memberships.restore(fact, isCurrent: isCurrent))
            }
            if !change.retired.isEmpty { holders.formUnion(state.memberships.retire(change.retired)) }
            state.version = change.version
            note(&state)
            return KnownMemberships(memberships: state.memberships, generation: state.generation)
        }
        return changed.map { (holders, $0) }
    }

    /// Reads all facts, at start and after missed events.
    func reload(in db: DatabaseConnection) throws {
        guard !catalog.membershipNames.isEmpty else { return }
        var found = State(memberships: Memberships(catalog))
        try found.update(from: db, by: rules)
        state.withLock { [found] state in
            state = found
            note(&state)
        }
    }

    /// Numbers the changed memberships.
    private func note(_ state: inout State) {
        state.generation = Self.lastGeneration.add(1, ordering: .relaxed).newValue
        generation.store(state.generation, ordering: .releasing)
    }
}

/// Memberships that this process has known.
struct KnownMemberships: Sendable {
    let memberships: Memberships
    /// Their number. No others of this process have it.
    let generation: Int
}

/// A change of memberships in its stored form.
struct MembershipChange: JSONWritable {
    let version: Int64
    var update = MembershipUpdate()
    /// The digests of the rules that gave the facts.
    var rules: [String: Int64] = [:]
    /// The memberships whose facts no longer count, because the file of a newer replica does not declare them.
    var retired: Set<String> = []

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("version", version)
            writer.key("facts")
            writer.array { writer in
                for fact in update.facts { writer.object { Self.write(fact, to: &$0) } }
            }
            writer.key("holders")
            writer.array { writer in
                for holder in update.holders { writer.array([holder.tenant.text, holder.key]) }
            }
            writer.member("rules", JSONValue.object(rules.mapValues { .integer($0) }))
            writer.member("retired", Array(retired))
        }
    }

    private static func write(_ fact: MembershipFact, to writer: inout JSONWriter) {
        writer.member("tenant", fact.tenant)
        writer.member("membership", fact.membership)
        writer.member("row", fact.row)
        writer.member("subject", fact.subject)
        writer.member("object", fact.object)
        writer.member("counts", fact.counts)
    }
}

extension MembershipChange {
    init?(reading data: [UInt8]) {
        guard case .object(let members)? = try? JSONValue(parsing: data),
            let version = members.integer("version"), case .array(let facts)? = members["facts"],
            case .array(let holders)? = members["holders"]
        else { return nil }
        self.init(version: version)
        for case (let name, .integer(let rule)) in members.object("rules") ?? [:] { rules[name] = rule }
        retired = Set(members.strings("retired") ?? [])
        update.facts = facts.compactMap(Self.fact)
        for case .array(let pair) in holders where pair.count == 2 {
            guard case .string(let tenant) = pair[0], case .string(let key) = pair[1] else { continue }
            update.holders.insert(.init(tenant: ID(tenant), key: key))
        }
    }

    private static func fact(_ value: JSONValue) -> MembershipFact? {
        guard case .object(let members) = value, let tenant = members.string("tenant").map({ ID<Tenant>($0) }),
            let membership = members.string("membership"), let counts = members.bool("counts")
        else { return nil }
        return MembershipFact(
            tenant: tenant, membership: membership, row: members.string("row"), subject: members.string("subject"),
            object: members.string("object"), counts: counts)
    }
}
