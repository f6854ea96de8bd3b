import Visibility

/// Who may read, or write, the rows of a table: a list of audience templates, any of which suffices.
public struct Policy: Sendable, Hashable, ExpressibleByArrayLiteral, CustomStringConvertible {
    /// Shared, so that a policy can be recognized by identity when its predicates are cached.
    final class Entries: Sendable {
        let list: [PolicyEntry]

        init(_ list: [PolicyEntry]) {
            self.list = list
        }
    }

    let body: Entries

    public var entries: [PolicyEntry] { body.list }
    public var templates: [AudienceTemplate] { body.list.map(\.template) }

    public init(_ entries: [PolicyEntry]) {
        body = Entries(entries)
    }

    public init(arrayLiteral entries: PolicyEntry...) {
        self.init(entries)
    }

    public var description: String {
        body.list.map(\.description).joined(separator: ", ")
    }

    public static func == (left: Policy, right: Policy) -> Bool {
        left.body === right.body || left.body.list == right.body.list
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(body.list)
    }

    /// The keys of one row: stamped on its events, and what `Scope.sees` is asked about.
    ///
    /// - Parameter row: the text of a column, or nil for SQL's null; a template with a null column makes no key.
    public func audience(of row: (String) -> String?) -> [String] {
        var keys: [String] = []
        for entry in body.list {
            if let key = entry.key(of: row), !keys.contains(key) { keys.append(key) }
        }
        return keys
    }

    /// The same rule as a predicate over the columns:
    /// `tenant = ? AND (user_id = ? OR shop_id IN (?, ?))`, only the tenant where a constant key such as `everyone`
    /// matches, and `FALSE` where the scope holds no key that fits.
    ///
    /// Every comparison has a bare column on its left, so that indexes serve it. A key that rows give (`Membership`)
    /// becomes an `EXISTS` over them, beside what the scope's own keys open.
    ///
    /// - Parameter qualifier: the table's name or alias, where several tables could own a column's name: always where
    ///   the policy asks for memberships.
    public func predicate(
        for scope: Scope, qualifier: String = "", tenantColumn: String = Table.tenantColumnDefault
    ) -> SQL {
        let key = PredicateCache.Key(policy: body, qualifier: qualifier, tenantColumn: tenantColumn)
        return scope.predicates.predicate(key) {
            makePredicate(for: scope, prefix: qualifier.isEmpty ? "" : qualifier + ".", tenantColumn: tenantColumn)
        }
    }

    private func makePredicate(for scope: Scope, prefix: String, tenantColumn: String) -> SQL {
        let sortedKeys = scope.keys.sorted()
        var binds: [SQLValue] = [.text(scope.tenant)]
        var alternatives: [String] = []
        for entry in body.list {
            let template = entry.template
            let matches = sortedKeys.compactMap { template.columnValues(of: $0) }
            if matches.isEmpty { continue }
            let columns = template.columns
            let isMet = entry.condition?.text(prefix: prefix)
            if columns.isEmpty {
                if let isMet {
                    alternatives.append(isMet)
                    continue
                }
                return SQL(text: "\(prefix)\(tenantColumn) = ?", binds: [.text(scope.tenant)])
            }
            if columns.count == 1 {
                let values = padded(matches.map { $0[0] })
                let isHeld = "\(prefix)\(columns[0]) " + isOneOf(values.count)
                alternatives.append(isMet.map { "(\($0) AND \(isHeld))" } ?? isHeld)
                binds += values.map { .text($0) }
            } else {
                let equalities = ([isMet].compactMap(\.self) + columns.map { "\(prefix)\($0) = ?" })
                    .joined(separator: " AND ")
                for values in padded(matches) {
                    alternatives.append("(\(equalities))")
                    binds += values.map { .text($0) }
                }
            }
        }
        // Last: what the scope's keys open needs no look into other tables.
        for entry in body.list {
            guard let question = question(for: entry, of: scope, sortedKeys, prefix) else { continue }
            alternatives.append(question.text)
            binds += question.binds
        }
        if alternatives.isEmpty { return SQL(text: "FALSE", binds: []) }
        let choice =
            alternatives.count == 1 ? alternatives[0] : "(" + alternatives.joined(separator: " OR ") + ")"
        return SQL(text: "\(prefix)\(tenantColumn) = ? AND \(choice)", binds: binds)
    }

    /// Whether a row gives the template's key to one whom the scope names; nil: none could.
    private func question(
        for entry: PolicyEntry, of scope: Scope, _ sortedKeys: [String], _ prefix: String
    ) -> SQL? {
        guard let membership = entry.membership else { return nil }
        let members = padded(sortedKeys.compactMap { membership.holder.columnValues(of: $0)?.first })
        guard !members.isEmpty else { return nil }
        precondition(!prefix.isEmpty, "a policy that asks for memberships needs its table's name: \(self)")
        return SQL(
            text: membership.question(
                tenant: "?", isMember: isOneOf(members.count), column: prefix + entry.template.columns[0]),
            binds: [.text(scope.tenant)] + members.map { .text($0) })
    }

    private func isOneOf(_ count: Int) -> String {
        if count == 1 { return "= ?" }
        return "IN (" + Array(repeating: "?", count: count).joined(separator: ", ") + ")"
    }

    /// The list with its last element repeated up to a power of two, which changes no result: without it every
    /// number of held keys would be a statement of its own, and the statement cache would churn.
    private func padded<T>(_ values: [T]) -> [T] {
        guard let last = values.last, values.count > 2 else { return values }
        let target = 1 << (Int.bitWidth - (values.count - 1).leadingZeroBitCount)
        return values + Array(repeating: last, count: target - values.count)
    }
}
