import Values
import Visibility

/// The cause of a stale query key. It is enough for a client to drop the echo of its own write, and contains no column
/// of the row.
public struct InvalidationCause: Sendable, Hashable {
    public let schema: String
    public let table: String
    public let operation: RowOperation
    public let recordId: String?
    public let actorId: String?
    public let originId: String?

    /// Compares bytes, because the equality of causes decides their visibility.
    public static func == (left: Self, right: Self) -> Bool {
        left.operation == right.operation && left.table.hasBytes(of: right.table)
            && left.schema.hasBytes(of: right.schema) && left.recordId.hasBytes(of: right.recordId)
            && left.actorId.hasBytes(of: right.actorId) && left.originId.hasBytes(of: right.originId)
    }
}

/// One query key that a change made stale, and its audience.
struct Invalidation: Sendable, Hashable {
    let key: [String]
    let tenant: ID<Tenant>
    /// The keys that receive the query key.
    var audience: [String]
    /// The keys that may see the row, and so receive the cause. All others receive the query key alone: a classmate
    /// learns that the leaderboard moved, but not whose row moved it.
    var causeAudience: [String]
    let cause: InvalidationCause
}

extension TableDeclaration {
    /// Returns the query keys that a change makes stale: the keys of the old row before the keys of the new one, each
    /// once per tenant.
    ///
    /// Old **and** new row fill in keys, each for its own audience. A student that changes classes makes both classes'
    /// keys stale.
    func invalidations(
        of change: RowWrite, completedOld: RowWrite.Row, sides: (old: Side?, new: Side?), reach: Reach,
        memberships: Memberships
    ) throws(Failure) -> [Invalidation] {
        let groups = invalidates.filter { isAffected($0, by: change, old: completedOld) }
        if groups.isEmpty { return [] }
        let cause = cause(of: change)
        var collected = Collected(cause: cause)
        for (side, readers) in [(sides.old, causeReaders(of: cause, change, sides, reach)), (sides.new, reach.new)] {
            guard let side, let readers else { continue }
            for group in groups {
                let entries = (group.audience ?? audience[change.operation]).filter { $0.when.holds(for: side.row) }
                for key in group.keys {
                    for entry in entries {
                        let columns = key.columns + entry.template.columns
                        for view in try views(of: side.row, side.tenant, using: columns, memberships) {
                            guard let filled = key.key(of: view), let scopeKey = entry.template.key(of: view)
                            else { continue }
                            collected.add(filled, tenant: side.tenant, to: scopeKey, readers: readers.keys)
                        }
                    }
                }
            }
        }
        return collected.invalidations
    }

    func cause(of change: RowWrite) -> InvalidationCause {
        cause(of: change) { change.new?[$0] ?? change.old?[$0] }
    }

    private func cause(of change: RowWrite, _ row: (String) -> JSONValue?) -> InvalidationCause {
        func value(_ column: String?) -> String? { column.flatMap(row)?.keyText }
        return InvalidationCause(
            schema: schema, table: name, operation: change.operation, recordId: recordId(row),
            actorId: change.actorId ?? value(actorColumn), originId: change.originId ?? value(originColumn))
    }

    /// Returns the part of the old row's audience that may receive the cause.
    ///
    /// The cause is made from the new row. If it names another key or actor than the old row did, holders that see only
    /// the old row must not learn it. A parent whose child moves to another parent does not learn the other parent's
    /// identity.
    private func causeReaders(
        of cause: InvalidationCause, _ change: RowWrite, _ sides: (old: Side?, new: Side?), _ reach: Reach
    ) -> RowAudience? {
        guard let old = sides.old, let readers = reach.old else { return nil }
        if self.cause(of: change, { old.row[$0] }) == cause { return readers }
        let isSameTenant = reach.new?.tenant == readers.tenant
        return RowAudience(tenant: readers.tenant, keys: isSameTenant ? reach.new?.keys ?? [] : [])
    }

    private func isAffected(_ group: InvalidationGroup, by change: RowWrite, old: RowWrite.Row) -> Bool {
        guard group.operations.contains(change.operation) else { return false }
        guard change.operation == .update, !group.columns.isEmpty else { return true }
        return group.columns.contains { isChanged($0, by: change, from: old) }
    }
}

/// Collected invalidations, each key once per tenant.
private struct Collected {
    struct Identity: Hashable {
        let key: QueryKey
        let tenant: ID<Tenant>
    }

    let cause: InvalidationCause
    var invalidations: [Invalidation] = []
    var places: [Identity: Int] = [:]

    mutating func add(_ key: [String], tenant: ID<Tenant>, to scopeKey: String, readers: [String]) {
        let identity = Identity(key: QueryKey(key), tenant: tenant)
        guard let place = places[identity] else {
            places[identity] = invalidations.count
            invalidations.append(
                Invalidation(key: key, tenant: tenant, audience: [scopeKey], causeAudience: readers, cause: cause))
            return
        }
        if !invalidations[place].audience.contains(scopeKey) { invalidations[place].audience.append(scopeKey) }
        for reader in readers where !invalidations[place].causeAudience.contains(reader) {
            invalidations[place].causeAudience.append(reader)
        }
    }
}
