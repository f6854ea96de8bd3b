import Values
import Visibility

/// The audience of one row: a tenant, and keys. A scope must have one of the keys.
struct RowAudience: Sendable, Hashable {
    let tenant: ID<Tenant>
    let keys: [String]
}

/// The audience of a change: that of the old row, and that of the new row. Nil if there is no such row.
///
/// Holders of keys only in `old` see the row leave; holders of keys only in `new` see it enter. The two may belong to
/// different tenants.
struct Reach: Sendable, Hashable {
    let old: RowAudience?
    let new: RowAudience?
}

extension TableDeclaration {
    /// Returns the audience of a change.
    func reach(
        _ sides: (old: Side?, new: Side?), _ operation: RowOperation, _ memberships: Memberships
    ) throws(Failure) -> Reach {
        func audience(_ side: Side?) throws(Failure) -> RowAudience? {
            guard let side else { return nil }
            return RowAudience(
                tenant: side.tenant, keys: try keys(of: self.audience[operation], side.row, side.tenant, memberships))
        }
        return Reach(old: try audience(sides.old), new: try audience(sides.new))
    }

    /// Returns the reason why a change without audience keys reaches no receiver, if its sender left out columns; nil
    /// if the row itself defines this (a column that is null).
    func missingAudience(_ sides: (old: Side?, new: Side?), _ operation: RowOperation) -> Failure? {
        guard let side = sides.new ?? sides.old else { return nil }
        // Some senders write null for all columns of a deleted row except its key.
        let hasKeyOnly =
            operation == .delete && !side.row.contains { $0.value != .null && !primaryKey.contains($0.key) }
        var missing: [String] = []
        for entry in audience[operation] {
            for name in entry.when.columns + entry.template.columns {
                let column = rowColumn(of: name)
                guard side.row[column] == nil || hasKeyOnly && side.row[column] == .null else { continue }
                if !missing.contains(column) { missing.append(column) }
            }
        }
        guard !missing.isEmpty else { return nil }
        let names = missing.joined(separator: ", ")
        if hasKeyOnly {
            return .invalid(
                "/oldRecord",
                "lacks \(names), which selects the receivers: only the key of the deleted row was sent. Set "
                    + "REPLICA IDENTITY FULL on the table to send whole rows")
        }
        return .invalid(
            operation == .delete ? "/oldRecord" : "/record",
            "lacks \(names), which selects the receivers, so no user receives this change")
    }

    /// Returns the row's own column behind a related column.
    private func rowColumn(of name: String) -> String {
        var name = name
        while let column = related[name] { name = column.column }
        return name
    }

    /// Whether a change is delivered at all. An update is not, if it changes neither a relevant column nor one from
    /// which the audience is made.
    ///
    /// A column that the old row lacks counts as changed, unless memberships store its value.
    func matters(_ change: RowWrite, completedOld old: RowWrite.Row) -> Bool {
        guard change.operation == .update, let new = change.new else { return true }
        if columns.isEmpty {
            return !change.withheldColumns.isEmpty || new.keys.contains { isChanged($0, by: change, from: old) }
        }
        return columns.contains { isChanged($0, by: change, from: old) }
            || audienceColumns.contains { isChanged($0, by: change, from: old) }
    }

    /// Returns the primary key as one text: the value itself, or a JSON array of the values of several columns; nil if
    /// one of them has no value.
    public func recordId(of row: RowWrite.Row) -> String? { recordId { row[$0] } }

    func recordId(_ column: (String) -> JSONValue?) -> String? {
        if primaryKey.count == 1 { return column(primaryKey[0])?.keyText }
        let values = primaryKey.compactMap { column($0)?.keyText == nil ? nil : column($0) }
        guard values.count == primaryKey.count else { return nil }
        return String(decoding: JSONWriter.bytes(JSONValue.array(values)), as: UTF8.self)
    }

    /// Returns the known columns of a row: the key, read from an id of ``recordId(of:)``, the tenant, and the stored
    /// columns.
    func row(_ id: String, of tenant: ID<Tenant>, _ stored: RowWrite.Row) -> RowWrite.Row {
        var row = stored
        if primaryKey.count == 1 {
            row[primaryKey[0]] = .string(id)
        } else if case .array(let values)? = try? JSONValue(parsing: Array(id.utf8)) {
            for (column, value) in zip(primaryKey, values) { row[column] = value }
        }
        if case .column(let name?, _) = self.tenant { row[name] = .string(tenant.text) }
        return row
    }

    // MARK: Rows

    struct Side {
        let tenant: ID<Tenant>
        let row: RowWrite.Row
    }

    /// Returns the rows of a change with their tenants.
    ///
    /// The old row is completed from stored memberships. A column that is still missing is assumed to be unchanged. So
    /// receivers of the new row get an `update` and not an `enter`.
    func sides(of change: RowWrite, _ memberships: Memberships) throws(Failure) -> (old: Side?, new: Side?) {
        try sides(of: change, completedOld: completedOld(change, memberships), memberships)
    }

    func sides(
        of change: RowWrite, completedOld: RowWrite.Row, _ memberships: Memberships
    ) throws(Failure) -> (old: Side?, new: Side?) {
        var new: Side?
        if let sent = change.new {
            // A column that an update leaves out is unchanged. A withheld column is unknown, and so makes no key. An
            // inserted row is complete: a column that it lacks does not exist.
            let row =
                change.operation == .insert
                ? sent : sent.completed(by: completedOld, except: change.withheldColumns)
            new = Side(tenant: try requireTenant(of: row, pointer: "/record", memberships: memberships), row: row)
        }
        guard change.operation != .insert else { return (nil, new) }
        let row = new.map { completedOld.completed(by: $0.row) } ?? completedOld
        let tenant = try requireTenant(of: row, pointer: "/oldRecord", memberships: memberships)
        return (Side(tenant: tenant, row: row), new)
    }

    func completedOld(_ change: RowWrite, _ memberships: Memberships) -> RowWrite.Row {
        var row = change.old ?? [:]
        guard !self.memberships.isEmpty else { return row }
        let identity = row.completed(by: change.new ?? [:])
        guard let id = recordId(of: identity) else { return row }
        let tenant = tenantValue(of: identity, memberships) ?? memberships.tenant(ofRow: id, of: self)
        // Some senders write null for all columns of a deleted row except its key.
        func isMissing(_ column: String) -> Bool {
            row[column] == nil || (change.operation == .delete && row[column] == .null)
        }
        guard let tenant, let stored = memberships.storedColumns(table: self, row: id, tenant: tenant) else {
            return row
        }
        for (column, value) in stored where isMissing(column) { row[column] = value }
        if case .column(let name?, _) = self.tenant, isMissing(name) { row[name] = .string(tenant.text) }
        return row
    }

    // MARK: Tenants

    func tenantValue(of row: RowWrite.Row, _ memberships: Memberships) -> ID<Tenant>? {
        switch tenant {
        case .constant(let tenant): return ID(tenant)
        case .column(let name, let parent):
            if let name, let value = row[name]?.keyText { return ID(value) }
            guard let parent, let id = row[parent.key]?.keyText else { return nil }
            return memberships.tenant(ofRow: id, ofTableNamed: parent.table)
        }
    }

    private func requireTenant(
        of row: RowWrite.Row, pointer: String, memberships: Memberships
    ) throws(Failure) -> ID<Tenant> {
        guard let tenant = tenantValue(of: row, memberships) else { throw unknownTenant(at: pointer) }
        return tenant
    }

    /// Whether a change itself names the tenant of its rows, so that no other row has to be looked up.
    public func namesTenant(_ change: RowWrite) -> Bool {
        guard case .column(let name, _) = tenant else { return true }
        guard let name else { return false }
        return [change.old, change.new].contains { $0?[name]?.keyText != nil }
    }

    /// Returns the failure for a row whose tenant is unknown.
    public func unknownTenant(at pointer: String) -> Failure {
        guard case .column(let name, let parent) = tenant else { return .invalid(pointer, "has no tenant") }
        var reasons: [String] = []
        if let name { reasons.append("the row has no \(name)") }
        if let parent {
            reasons.append(
                "the row of \(parent.table) referenced by \(parent.key) has no single known tenant")
        }
        return .invalid(
            "\(pointer)/\(name ?? parent?.key ?? "")",
            "does not identify the tenant of this row of \(qualifiedName): \(reasons.joined(separator: ", and "))")
    }

    // MARK: Columns

    func isChanged(_ column: String, by change: RowWrite, from old: RowWrite.Row) -> Bool {
        if change.withheldColumns.contains(column) { return true }
        guard let right = change.new?[column] else { return false }
        guard let left = old[column] else { return true }
        return !left.isSameColumnValue(as: right)
    }

    // MARK: Keys

    private func keys(
        of entries: [AudienceEntry], _ row: RowWrite.Row, _ tenant: ID<Tenant>, _ memberships: Memberships
    ) throws(Failure) -> [String] {
        var keys: [String] = []
        for entry in entries where entry.when.holds(for: row) {
            for view in try views(of: row, tenant, using: entry.template.columns, memberships) {
                if let key = entry.template.key(of: view) { keys.append(key) }
            }
        }
        return keys.withoutRepetitions
    }

    /// Returns the row once for each value of the related columns and lists in use; once without such columns.
    ///
    /// - Throws: `invalid` if there are more than ``TableLimits/keysPerRowMax``.
    func views(
        of row: RowWrite.Row, _ tenant: ID<Tenant>, using columns: [String], _ memberships: Memberships
    ) throws(Failure) -> [(String) -> String?] {
        let hasMany = columns.contains { name in
            if related[name] != nil { return true }
            if case .array? = row[name] { return true }
            return false
        }
        guard hasMany else { return [{ row[$0]?.keyText }] }
        var views: [[String: String]] = [[:]]
        for name in Set(columns) {
            guard let values = values(of: name, row, tenant, memberships) else { continue }
            guard values.count * views.count <= TableLimits.keysPerRowMax else {
                throw .invalid(
                    "/record/\(ChangeMembers.step(rowColumn(of: name)))",
                    "produces \(values.count * views.count) keys from \(name); a row may produce at most "
                        + "\(TableLimits.keysPerRowMax)")
            }
            views = views.flatMap { view in values.map { view.merging([name: $0]) { $1 } } }
        }
        return views.map { view in { view[$0] ?? row[$0]?.keyText } }
    }

    /// Returns the values of a related column or a list; nil for any other column, which has one value.
    private func values(
        of name: String, _ row: RowWrite.Row, _ tenant: ID<Tenant>, _ memberships: Memberships
    ) -> [String]? {
        guard let column = related[name] else {
            guard case .array(let elements)? = row[name] else { return nil }
            return Set(elements.compactMap(\.keyText)).sorted()
        }
        // Memberships of the subject take precedence over the row's own value, which counts only without memberships.
        let subjects =
            values(of: column.column, row, tenant, memberships) ?? row[column.column]?.keyText.map { [$0] } ?? []
        let known = subjects.compactMap { memberships.granted(to: $0, by: column.membership, tenant: tenant) }
        guard known.isEmpty else { return Set(known.joined()).sorted() }
        return row[name]?.keyText.map { [$0] } ?? []
    }
}

extension [String] {
    /// The keys without repetitions, in their order. Most lists have a single key, which needs no comparison.
    var withoutRepetitions: [String] {
        guard count > 1 else { return self }
        var seen: Set<String> = []
        return filter { seen.insert($0).inserted }
    }
}
