import Database
import Rows
import Threads
import Values

/// The outcome of a change that was taken in.
enum ChangeOutcome: Sendable, Hashable {
    /// Published to its audience, or without an audience.
    case accepted
    /// Accepted before, recognized by its id.
    case duplicate
    /// The place of the fault is in the item from which the change was read.
    case rejected(ChangeFault)
}

/// The rows of a snapshot that were accepted, as hashes. A million rows take some 20 MB until the table is read.
final class AcceptedRows: Sendable {
    private let hashes = Locked(Set<Int>())

    func insert(_ tenant: ID<Tenant>, _ row: String) { hashes.withLock { _ = $0.insert(Self.hash(tenant, row)) } }

    func contains(_ tenant: ID<Tenant>, _ row: String) -> Bool {
        hashes.withLock { $0.contains(Self.hash(tenant, row)) }
    }

    private static func hash(_ tenant: ID<Tenant>, _ row: String) -> Int {
        var hasher = Hasher()
        hasher.combine(tenant)
        hasher.combine(ID<AcceptedRows>(row))
        return hasher.finalize()
    }
}

/// The intake of table changes from any sender. Each change of a row becomes an event with its audience, and updates
/// memberships.
struct ChangeIntake: Sendable {
    /// Restarts all streams once the transaction is committed.
    typealias StreamRestart = @Sendable (DatabaseConnection) throws -> Void

    let memberships: MembershipRegistry
    let unheard: UnheardRows
    let restartStreams: StreamRestart

    /// Takes in changes, in order, and returns the outcome of each. A fault in one rejects only that one.
    ///
    /// - Parameter seen: Receives the accepted rows of a snapshot that follows known rows. Its truncation then comes
    ///   after the rows, and keeps the ones that were seen.
    func take(_ changes: [TableChange], seen: AcceptedRows? = nil, _ tx: Transaction) throws -> [ChangeOutcome] {
        let tables = changes.map { memberships.catalog.find(schema: $0.schema, table: $0.table) }
        var run = try ChangeIntakeRun(tables, self, tx, seen)
        let outcomes = try zip(changes, tables).map { try run.outcome(of: $0, in: $1) }
        if !run.unheard.isEmpty { tx.afterCommit { [unheard, found = run.unheard] in unheard.note(found) } }
        return outcomes
    }
}

/// The intake of some changes within one transaction.
private struct ChangeIntakeRun {
    private let tx: Transaction
    private let restartStreams: ChangeIntake.StreamRestart
    private var memberships: Memberships
    private var version: Int64
    private let rules: [String: Int64]
    private let seen: AcceptedRows?
    private let tenants: UnheardRows
    /// The accepted rows that no connected user can receive, by table.
    private(set) var unheard: [String: UnheardRows.Tally] = [:]

    init(
        _ tables: [TableDeclaration?], _ intake: ChangeIntake, _ tx: Transaction, _ seen: AcceptedRows?
    ) throws {
        let registry = intake.memberships
        (restartStreams, rules, self.seen) = (intake.restartStreams, registry.rules, seen)
        tenants = intake.unheard
        self.tx = tx
        // Changes of memberships depend on the previous memberships, so all replicas apply them one after the other.
        let changesMemberships = tables.contains { $0?.memberships.isEmpty == false }
        if changesMemberships { try tx.db.lock(["bellhop:memberships"]) }
        (memberships, version) = try registry.memberships(in: tx.db)
    }

    /// - Parameter table: Nil if the table is not declared.
    mutating func outcome(of change: TableChange, in table: TableDeclaration?) throws -> ChangeOutcome {
        do {
            return try take(change, in: table) ? .accepted : .duplicate
        } catch let failure as Failure where Self.rejectsOne(failure) {
            let field = failure.fields.first
            return .rejected(ChangeFault(change.place(of: field?.pointer ?? ""), field?.detail ?? failure.detail))
        }
    }

    /// Whether a failure rejects its change alone. A sender would repeat the whole delivery forever.
    private static func rejectsOne(_ failure: Failure) -> Bool {
        failure.kind == .invalid || failure.kind == .insufficientStorage || failure.code == "memberships.full"
    }

    /// Takes in a change; returns false for a duplicate.
    private mutating func take(_ change: TableChange, in table: TableDeclaration?) throws -> Bool {
        guard let table else {
            throw Failure.invalid("/table", TableCatalog.undeclared(change.schema, change.table))
        }
        guard change.kind != .truncate else { return try truncate(table, change) }
        do throws(ChangeFault) {
            _ = try change.primaryKey(table.primaryKey)
        } catch {
            throw Failure.invalid(error.pointer, error.reason)
        }
        let write = RowWrite(
            change.kind.operation, old: change.oldRecord, new: change.record, actorId: change.actorID,
            originId: change.originID, withheldColumns: change.withheldColumns)
        // Computed before anything is written, because a row that cannot be published must leave no trace.
        let routing = try table.routing(of: write, at: change.commitTimestamp, memberships: memberships)
        try requireOwn(routing.tenants, of: write, table)
        // Only new rows: a refused change or snapshot of a known row would leave or remove keys that the app means.
        if change.kind == .insert, !table.memberships.isEmpty {
            for tenant in routing.tenants { try tx.requireRoom(for: tenant) }
        }
        if let id = change.deduplicationID, try !ChangesFeature.addDelivery(id, tx) { return false }
        for (tenant, change) in change.kind == .snapshot ? [] : routing.changes {
            tx.publish(change, tenant: tenant)
        }
        do {
            try store(memberships.apply(write, of: table))
            if let unreached = routing.unreached, change.kind != .snapshot { throw unreached }
            if change.kind != .snapshot { countIfUnheard(routing.tenants, table) }
            if change.kind == .snapshot, let id = change.record.flatMap(table.recordId(of:)) {
                for tenant in routing.tenants { seen?.insert(tenant, id) }
            }
        } catch {
            // The rejected item will be sent again once it is fixed, so its id must not count as accepted.
            if let id = change.deduplicationID { try ChangesFeature.removeDelivery(id, tx) }
            throw error
        }
        return true
    }

    private mutating func countIfUnheard(_ tenants: [ID<Tenant>], _ table: TableDeclaration) {
        guard let tenant = tenants.first, tenants.allSatisfy(self.tenants.isMissed) else { return }
        unheard[table.qualifiedName, default: UnheardRows.Tally(tenant: tenant)].rows += 1
    }

    /// Refuses rows of other tenants: a backend may send only rows of its own tenant.
    ///
    /// If a row does not name its tenant, and another tenant's rows do, the sender gets the same answer as for an
    /// unknown row.
    private func requireOwn(_ tenants: [ID<Tenant>], of write: RowWrite, _ table: TableDeclaration) throws(Failure) {
        let pointer = write.new == nil ? "/oldRecord" : "/record"
        for tenant in tenants where !tx.caller.spansTenants && tenant != tx.tenant {
            guard table.namesTenant(write) else { throw table.unknownTenant(at: pointer) }
            throw Failure.invalid(pointer, "belongs to the tenant \(tenant), but the sender belongs to \(tx.tenant)")
        }
    }

    /// Handles a truncation, whose message does not name the removed rows. Rows that memberships store are published as
    /// deleted. If they exceed the limit of a delivery, all streams restart instead.
    private mutating func truncate(_ table: TableDeclaration, _ change: TableChange) throws -> Bool {
        guard tx.caller.spansTenants else {
            throw Failure.invalid("", "would remove the rows of all tenants, but the sender belongs to \(tx.tenant)")
        }
        if let id = change.deduplicationID, try !ChangesFeature.addDelivery(id, tx) { return false }
        if !change.isResnapshot { try publishDeletions(table, change) }
        try store(memberships.truncate(table) { change.isResnapshot && seen?.contains($0, $1) ?? false })
        return true
    }

    private func publishDeletions(_ table: TableDeclaration, _ change: TableChange) throws {
        let routings = try? memberships.deletions(of: table, atMost: ChangeLimits.itemsMax)?.map { write in
            try table.routing(of: write, at: change.commitTimestamp, memberships: memberships)
        }
        // The former readers of the rows may depend on columns that are not stored. Then all streams restart.
        guard let routings, routings.allSatisfy({ $0.unreached == nil }) else { return try restartStreams(tx.db) }
        for (tenant, change) in routings.flatMap(\.changes) { tx.publish(change, tenant: tenant) }
    }

    private mutating func store(_ update: MembershipUpdate) throws {
        version = try MembershipRegistry.store(update, by: rules, after: version, tx)
        if let refusal = update.refusal { throw refusal }
    }
}

extension TableChange.Kind {
    /// The operation. A row of a snapshot counts as inserted.
    fileprivate var operation: RowOperation {
        switch self {
        case .insert, .snapshot: .insert
        case .update: .update
        case .delete, .truncate: .delete
        }
    }
}
