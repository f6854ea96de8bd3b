import Values
import Visibility

extension Policy {
    /// Returns the policy as a predicate over the columns: `tenant = ? AND (user_id = ? OR shop_id IN (?, ?))`. It
    /// consists of only the tenant if a constant key such as `everyone` matches, and is `FALSE` if no key of the scope
    /// fits.
    ///
    /// Every comparison has a bare column on its left, so that indexes apply. A key that rows grant (`KeyGrant`)
    /// becomes an `EXISTS` over these rows, beside the conditions for the scope's own keys.
    ///
    /// - Parameter qualifier: The table's name or alias, if several tables could have a column of the same name. It is
    ///   always required if the policy has grants.
    public func predicate(
        for scope: Scope, qualifier: String = "", tenantColumn: String = Table.tenantColumnDefault
    ) -> SQL {
        let key = PredicateCache.Key(policy: body, qualifier: qualifier, tenantColumn: tenantColumn)
        return scope.predicates.predicate(key) {
            makePredicate(for: scope, prefix: qualifier.isEmpty ? "" : qualifier + ".", tenantColumn: tenantColumn)
        }
    }

    private func makePredicate(for scope: Scope, prefix: String, tenantColumn: String) -> SQL {
        var binds: [SQLValue] = [.text(scope.tenant.text)]
        var alternatives: [String] = []
        for entry in body.list {
            let template = entry.template
            let matches = scope.columnValues(of: template)
            if matches.isEmpty { continue }
            let columns = template.columns
            let rowCondition = entry.condition?.text(prefix: prefix)
            if columns.isEmpty {
                if let rowCondition {
                    alternatives.append(rowCondition)
                    continue
                }
                return SQL(unchecked: "\(prefix)\(tenantColumn) = ?", binds: [.text(scope.tenant.text)])
            }
            if columns.count == 1 {
                let values = padded(matches.map { $0[0] })
                let keyCondition = "\(prefix)\(columns[0]) " + comparison(values.count)
                alternatives.append(rowCondition.map { "(\($0) AND \(keyCondition))" } ?? keyCondition)
                binds += values.map { .text($0) }
            } else {
                let equalities = ([rowCondition].compactMap(\.self) + columns.map { "\(prefix)\($0) = ?" })
                    .joined(separator: " AND ")
                for values in padded(matches) {
                    alternatives.append("(\(equalities))")
                    binds += values.map { .text($0) }
                }
            }
        }
        // Grants come last, because rows that the scope's keys open need no lookup in other tables.
        for entry in body.list {
            guard let existsClause = existsClause(for: entry, of: scope, prefix) else { continue }
            alternatives.append(existsClause.text)
            binds += existsClause.binds
        }
        if alternatives.isEmpty { return SQL(unchecked: "FALSE") }
        let choice =
            alternatives.count == 1 ? alternatives[0] : "(" + alternatives.joined(separator: " OR ") + ")"
        return SQL(unchecked: "\(prefix)\(tenantColumn) = ? AND \(choice)", binds: binds)
    }

    /// Returns the condition that a row grants the template's key to the scope's user; nil if no row could.
    private func existsClause(for entry: PolicyEntry, of scope: Scope, _ prefix: String) -> SQL? {
        guard let grant = entry.grant else { return nil }
        let members = padded(scope.columnValues(of: grant.holder).compactMap(\.first))
        guard !members.isEmpty else { return nil }
        precondition(!prefix.isEmpty, "a policy with memberships requires the name of its table: \(self)")
        return SQL(
            unchecked: grant.existsClause(
                tenant: "?", comparison: comparison(members.count), column: prefix + entry.template.columns[0]),
            binds: [.text(scope.tenant.text)] + members.map { .text($0) })
    }

    private func comparison(_ count: Int) -> String {
        if count == 1 { return "= ?" }
        return "IN (" + Array(repeating: "?", count: count).joined(separator: ", ") + ")"
    }

    /// Returns the list with its last element repeated up to a power of two, which does not change the result.
    /// Otherwise every number of keys would be a separate statement, and the statement cache would churn.
    private func padded<T>(_ values: [T]) -> [T] {
        guard let last = values.last, values.count > 2 else { return values }
        let target = 1 << (Int.bitWidth - (values.count - 1).leadingZeroBitCount)
        return values + Array(repeating: last, count: target - values.count)
    }
}

extension Table {
    /// Returns a predicate over this table's columns for the rows that a scope may read.
    public func readPredicate(for scope: Scope, qualifier: String? = nil) -> SQL {
        read.predicate(for: scope, qualifier: qualifier ?? name, tenantColumn: tenantColumn)
    }

    /// Returns a predicate over this table's columns for the rows that a scope may write.
    public func writePredicate(for scope: Scope, qualifier: String? = nil) -> SQL {
        write.predicate(for: scope, qualifier: qualifier ?? name, tenantColumn: tenantColumn)
    }
}
