import Database
import Domain

/// What became of the items of one delivery.
struct ChangeResult: JSONWritable, Sendable {
    /// Taken in: told to whom it concerns, or known to concern nobody.
    var accepted = 0
    /// Taken in before, by their ids.
    var duplicates = 0
    var rejected: [ChangeRejection] = []

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("accepted", accepted)
            writer.member("duplicates", duplicates)
            writer.member("rejected", rejected)
        }
    }
}

/// Takes one delivery in, within one transaction: each row's change becomes an event with its audience, and what it
/// tells of memberships becomes known.
struct ChangeIntake {
    private let tables: TableRegister
    private let batch: ChangeBatch
    private let tx: Transaction
    private var memberships: Memberships
    private var version: Int64
    private(set) var result = ChangeResult()

    init(_ tables: TableRegister, _ batch: ChangeBatch, _ tx: Transaction) throws {
        self.tables = tables
        self.batch = batch
        self.tx = tx
        // Who changes what is known decides upon what is known: all replicas, one after the other.
        let changesMemberships = batch.items.contains { item in
            guard case .change(let change) = item else { return false }
            return tables.catalog.find(schema: change.schema, table: change.table)?.memberships.isEmpty == false
        }
        if changesMemberships { try tx.db.lock(["bellhop:memberships"]) }
        (memberships, version) = try tables.memberships(in: tx.db)
    }

    mutating func run() throws {
        for (index, item) in batch.items.enumerated() {
            switch item {
            case .ignored: result.accepted += 1
            case .rejected(let rejection): result.rejected.append(rejection)
            case .change(let change):
                do {
                    if try take(change) { result.accepted += 1 } else { result.duplicates += 1 }
                } catch let failure as Failure where failure.kind == .invalid || failure.code == "memberships.full" {
                    let field = failure.fields.first
                    result.rejected.append(
                        batch.rejection(
                            of: index, at: change.place(of: field?.pointer ?? ""), field?.detail ?? failure.detail))
                }
            }
        }
    }

    /// False for a duplicate.
    private mutating func take(_ change: TableChange) throws -> Bool {
        guard let table = tables.catalog.find(schema: change.schema, table: change.table) else {
            throw Failure.invalid("/table", "no table \(change.schema).\(change.table) is declared")
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
        // Worked out before anything is written: a row that cannot be told must leave no trace.
        let routing = try table.routing(of: write, at: change.commitTimestamp, memberships: memberships)
        try requireOwn(routing.tenants, of: write, table)
        if let id = change.deduplicationID, try !ChangesFeature.note(id, tx) { return false }
        for (tenant, change) in change.kind == .snapshot ? [] : routing.changes {
            tx.emit(
                EventLog.change, audience: change.invalidationAudience,
                topic: EventLog.topic(schema: change.schema, table: change.table), tenant: tenant,
                data: JSONWriter.bytes(change))
        }
        do {
            try keep(memberships.apply(write, of: table))
        } catch {
            // Rejected, and to be sent again when it has been mended: it must not be known as taken then.
            if let id = change.deduplicationID { try ChangesFeature.forget(id, tx) }
            throw error
        }
        return true
    }

    /// The fence between tenants comes before all else: a backend tells rows of its own.
    ///
    /// Of a row that does not say whose it is, and that another tenant's rows have told of, the sender learns what it
    /// would learn of a row that nobody has heard of.
    private func requireOwn(_ tenants: [String], of write: RowWrite, _ table: TableDeclaration) throws(Failure) {
        let pointer = write.new == nil ? "/oldRecord" : "/record"
        for tenant in tenants where !tx.caller.isOfAllTenants && tenant != tx.tenant {
            guard table.tellsTenant(write) else { throw table.unknownTenant(at: pointer) }
            throw Failure.invalid(pointer, "is a row of tenant \(tenant), and the sender is of \(tx.tenant)")
        }
    }

    /// All rows are gone; nothing tells which there were, so only memberships follow.
    private mutating func truncate(_ table: TableDeclaration, _ change: TableChange) throws -> Bool {
        guard tx.caller.isOfAllTenants else {
            throw Failure.invalid("", "takes away the rows of all tenants, and the sender is of \(tx.tenant)")
        }
        if let id = change.deduplicationID, try !ChangesFeature.note(id, tx) { return false }
        try keep(memberships.truncate(table))
        return true
    }

    private mutating func keep(_ update: MembershipUpdate) throws {
        if !update.facts.isEmpty || !update.holders.isEmpty {
            version += 1
            try TableRegister.keep(update, version: version, tx)
        }
        if let refusal = update.refusal { throw refusal }
    }
}

extension TableChange.Kind {
    /// A snapshot's row is known as an inserted one is.
    fileprivate var operation: RowOperation {
        switch self {
        case .insert, .snapshot: .insert
        case .update: .update
        case .delete, .truncate: .delete
        }
    }
}
