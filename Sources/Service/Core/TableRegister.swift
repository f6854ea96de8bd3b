import Database
import Domain
import Foundation
import Synchronization
import Visibility

/// The declared tables, and who belongs where, as their rows have told.
///
/// What is known of memberships stands in the database, in facts that are numbered in the order in which they became
/// known. This process holds them in memory as of the last event it has published: so scopes change in the order of the
/// log, on every replica. A transaction that needs them takes a copy, and adds the facts that are newer in the database.
///
/// `@unchecked Sendable`: the variables are only touched while `lock` is held.
final class TableRegister: @unchecked Sendable {
    /// Facts as events tell them: the log's way to say that memberships have changed.
    static let event: StaticString = "bellhop:memberships"

    static let facts = Table("membership_facts", read: [], write: [])

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
                PRIMARY KEY (tenant, membership, identity)
            ) STRICT
            """,
            "CREATE INDEX membership_facts_version ON membership_facts (version)",
        ])

    private static let keeping = Unscoped.bookkeeping("who belongs where decides scopes, and is read by none")

    let catalog: TableCatalog
    let metrics = ChangeMetrics()
    /// Grows whenever memberships change: what was made from an older one is made again.
    let generation = Atomic<Int>(0)
    /// Guards the variables.
    private let lock = NSLock()
    private var congestion: @Sendable () -> Bool = { false }
    private var memberships: Memberships
    /// The number of the last fact that `memberships` holds.
    private var version: Int64 = 0

    init(_ catalog: TableCatalog) {
        self.catalog = catalog
        memberships = Memberships(catalog)
    }

    /// The longest window of a declared table.
    var longestWindow: Duration { catalog.tables.map(\.window).max() ?? .zero }

    // MARK: Congestion

    /// Whether streams are told more slowly than changes come: then no more are taken.
    var isCongested: Bool { lock.withLock { congestion }() }

    func setCongestion(_ isCongested: @escaping @Sendable () -> Bool) { lock.withLock { congestion = isCongested } }

    // MARK: Scopes

    var known: Memberships { lock.withLock { memberships } }

    /// The caller with the keys that it holds now: what its token claims, and what is known of memberships, which wins.
    func scoped(_ caller: Caller) -> Caller {
        guard !catalog.membershipNames.isEmpty, !caller.isService else { return caller }
        return caller.holding(known.keys(of: caller.holder))
    }

    // MARK: In a transaction

    /// What is known as of this transaction, and the number of the last fact.
    func memberships(in db: Connection) throws -> (Memberships, version: Int64) {
        guard !catalog.membershipNames.isEmpty else { return (known, 0) }
        var (memberships, version) = lock.withLock { (self.memberships, self.version) }
        try Self.read(after: version, in: db) { fact, number in
            _ = memberships.restore(fact)
            version = number
        }
        return (memberships, version)
    }

    private static func read(
        after version: Int64, in db: Connection, _ body: (MembershipFact, Int64) -> Void
    ) throws {
        try db.forEach(
            """
            SELECT tenant, membership, row_id, subject, object, counts, version
            FROM \(facts, unscoped: keeping) WHERE version > \(version) ORDER BY version
            """
        ) { row in
            body(
                MembershipFact(
                    tenant: try row.text(0), membership: try row.text(1), row: try row.optionalText(2),
                    subject: try row.optionalText(3), object: try row.optionalText(4),
                    counts: try row.integer(5) != 0), Int64(try row.integer(6)))
            return true
        }
    }

    /// Keeps what a change did to memberships, and has it told to all replicas.
    static func keep(_ update: MembershipUpdate, version: Int64, _ tx: Transaction) throws {
        for fact in update.facts {
            try tx.db.run(
                """
                INSERT INTO \(facts, unscoped: keeping)
                    (tenant, membership, identity, row_id, subject, object, counts, version)
                VALUES (\(fact.tenant), \(fact.membership), \(fact.identity), \(fact.row), \(fact.subject),
                    \(fact.object), \(fact.counts ? 1 : 0), \(version))
                ON CONFLICT (tenant, membership, identity) DO UPDATE SET row_id = excluded.row_id,
                    subject = excluded.subject, object = excluded.object, counts = excluded.counts,
                    version = excluded.version
                """)
        }
        tx.emit(event, audience: [], data: JSONWriter.bytes(MembershipNews(version: version, update: update)))
    }

    // MARK: From the log

    /// Takes in what the log tells; gives the holders of keys whose scopes have changed.
    func take(_ data: [UInt8]) -> Set<MembershipUpdate.Holders> {
        guard let news = MembershipNews(reading: data) else { return [] }
        let isNew = lock.withLock {
            guard news.version > version else { return false }
            for fact in news.update.facts { _ = memberships.restore(fact) }
            version = news.version
            return true
        }
        guard isNew else { return [] }
        generation.add(1, ordering: .releasing)
        return news.update.holders
    }

    /// Reads all facts, at start and when events were missed.
    func reload(in db: Connection) throws {
        guard !catalog.membershipNames.isEmpty else { return }
        var memberships = Memberships(catalog)
        var version: Int64 = 0
        try Self.read(after: 0, in: db) { fact, number in
            _ = memberships.restore(fact)
            version = number
        }
        lock.withLock {
            self.memberships = memberships
            self.version = version
        }
        generation.add(1, ordering: .releasing)
    }
}

/// What became of the items of deliveries.
final class ChangeMetrics: Sendable {
    let accepted = Atomic<Int>(0)
    let duplicates = Atomic<Int>(0)
    let rejected = Atomic<Int>(0)

    func write(to text: inout MetricsText) {
        text.family("bellhop_changes_total", .counter, "Items of deliveries of table changes.")
        let results = [
            ("accepted", accepted.load(ordering: .relaxed)), ("duplicate", duplicates.load(ordering: .relaxed)),
            ("rejected", rejected.load(ordering: .relaxed)),
        ]
        for (result, count) in results {
            text.sample("bellhop_changes_total", [("result", result)], Double(count))
        }
    }
}

/// A membership's change as the log tells it.
private struct MembershipNews: JSONWritable {
    let version: Int64
    let update: MembershipUpdate

    init(version: Int64, update: MembershipUpdate) {
        self.version = version
        self.update = update
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("version", Int(version))
            writer.member("facts", update.facts.map(Fact.init))
            writer.member("holders", update.holders.map { [$0.tenant, $0.key] }.map(JSONList.init))
        }
    }

    init?(reading data: [UInt8]) {
        guard case .object(let members)? = try? JSONValue(parsing: data),
            case .integer(let version)? = members["version"], case .array(let facts)? = members["facts"],
            case .array(let holders)? = members["holders"]
        else { return nil }
        self.version = version
        var update = MembershipUpdate()
        update.facts = facts.compactMap(Fact.read)
        for case .array(let pair) in holders where pair.count == 2 {
            guard case .string(let tenant) = pair[0], case .string(let key) = pair[1] else { continue }
            update.holders.insert(.init(tenant: tenant, key: key))
        }
        self.update = update
    }

    private struct JSONList: JSONWritable {
        let texts: [String]
        func write(to writer: inout JSONWriter) {
            writer.array { writer in for text in texts { writer.value(text) } }
        }
    }

    private struct Fact: JSONWritable {
        let fact: MembershipFact

        func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("tenant", fact.tenant)
                writer.member("membership", fact.membership)
                writer.member("row", fact.row)
                writer.member("subject", fact.subject)
                writer.member("object", fact.object)
                writer.member("counts", fact.counts)
            }
        }

        static func read(_ value: JSONValue) -> MembershipFact? {
            guard case .object(let members) = value, case .string(let tenant)? = members["tenant"],
                case .string(let membership)? = members["membership"], case .bool(let counts)? = members["counts"]
            else { return nil }
            func text(_ name: String) -> String? {
                if case .string(let text)? = members[name] { text } else { nil }
            }
            return MembershipFact(
                tenant: tenant, membership: membership, row: text("row"), subject: text("subject"),
                object: text("object"), counts: counts)
        }
    }
}
