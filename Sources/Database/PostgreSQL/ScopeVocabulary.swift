import Values
import Visibility

/// The representation of a scope in PostgreSQL: one transaction-local setting for each kind of key that policies use.
///
/// The keys of the template `shop:{shop_id}:staff` become the setting `bellhop.key.shop._.staff`, an array of shop ids.
/// A policy compares its column with the array. So the server never parses keys, and an index can serve the comparison.
struct ScopeVocabulary: Sendable {
    /// One template for each kind of key. Templates of one kind differ at most in the names of their columns.
    let kinds: [AudienceTemplate]
    /// The settings that a read of each table needs.
    private let settingsToRead: [String: Set<String>]
    /// The tables whose rows name no tenant. They are open to the service's transactions under every scope.
    private let tenantless: Set<String>
    /// The service's own records of tenants. They are open to its transactions within the tenant.
    private let bookkeeping: Set<String>
    /// Tables with rows that some caller may write but not read. Computed once, because every writing statement needs
    /// it.
    private let written: Set<String>

    init(_ tables: [Table]) {
        settingsToRead = Dictionary(
            tables.map { table in (table.name, Set(Self.requiredTemplates(by: table.read).map(\.setting))) }
        ) { $0.union($1) }
        tenantless = Set(tables.filter { !$0.hasTenants }.map(\.name))
        bookkeeping = Set(tables.filter { $0.hasTenants && $0.isBookkeeping }.map(\.name))
        written = Set(tables.filter(\.needsWriting).map(\.name))
        var names: Set<String> = []
        kinds = tables.flatMap { Self.requiredTemplates(by: $0.read) + Self.requiredTemplates(by: $0.write) }
            .filter { names.insert($0.setting).inserted }
    }

    /// Returns the templates whose keys a policy reads: its own, and the holders of its grants.
    private static func requiredTemplates(by policy: Policy) -> [AudienceTemplate] {
        policy.entries.flatMap { [$0.template] + ($0.grant.map { [$0.holder] } ?? []) }
    }

    /// Returns the settings of a scope: its tenant, and its keys of each kind.
    func settings(of scope: Scope) -> [String: String] {
        var settings = [Self.tenant: scope.tenant.text]
        for kind in kinds {
            let value = scope.columnValues(of: kind)
            guard !value.isEmpty else { continue }
            settings[kind.setting] = Self.array(value.map { kind.value(of: $0) })
        }
        return settings
    }

    /// Returns only the settings that a reading statement needs under a scope.
    func settings(of scope: Scope, for woven: SQL.Woven) -> [String: String] {
        let all = scope.predicates.settings { settings(of: scope) }
        var needed = all.filter { name, _ in
            name == Self.tenant || woven.scoped.contains { settingsToRead[$0]?.contains(name) == true }
        }
        if !woven.unscoped.isEmpty || woven.fence != nil { needed[Self.service] = "on" }
        needed[Self.unscoped] = opening(for: woven)
        return needed
    }

    /// Returns the tables that a statement opens for itself, besides those without tenants, or nil.
    func opening(for woven: SQL.Woven) -> String? { Self.list(woven.unscoped, without: tenantless) }

    /// Opens the tables of a fence within its tenant, or for its user.
    func enter(_ fence: Fence, in settings: inout [String: String]) {
        settings[Self.tenant] = fence.tenant.text
        settings[Self.within] = Self.list(fence.within, without: bookkeeping)
        settings[Self.owned] = Self.list(fence.owned, without: [])
        // As an array, because the id of a caller without a name is empty.
        settings[Self.user] = fence.user.map { Self.array([$0.text]) }
    }

    private static func list(_ names: [String], without open: Set<String>) -> String? {
        var tables = names.filter { !open.contains($0) }
        if tables.isEmpty { return nil }
        if tables.count > 1 { tables = Set(tables).sorted() }
        return array(tables)
    }

    func needsWriting(_ table: Table) -> Bool { written.contains(table.name) }

    static let tenant = "bellhop.tenant"
    /// Tables that a statement opens within the tenant, and those that it opens for the user of `user`.
    static let within = "bellhop.within"
    static let owned = "bellhop.owned"
    static let user = "bellhop.user"
    static let unscoped = "bellhop.unscoped"
    static let writing = "bellhop.writing"
    static let service = "bellhop.service"

    /// Returns one command that changes the settings until the transaction ends; nil if nothing changes.
    func command(from settings: [String: String], to target: [String: String]) -> PostgresLink.Command? {
        var changes: [(name: String, value: String)] = []
        for (name, value) in target {
            // Compares bytes, not canonically equivalent texts, as the database does.
            if let known = settings[name], known.utf8.elementsEqual(value.utf8) { continue }
            changes.append((name, value))
        }
        for name in settings.keys where target[name] == nil { changes.append((name, "")) }
        if changes.isEmpty { return nil }
        let calls = changes.indices.map { "set_config($\(2 * $0 + 1), $\(2 * $0 + 2), true)" }
        return .init(
            text: "SELECT " + calls.joined(separator: ", "),
            values: changes.flatMap { [SQLValue.text($0.name), .text($0.value)] })
    }

    /// Returns a text as an element of a PostgreSQL array literal.
    static func array(_ values: [String]) -> String {
        var text = "{"
        for (index, value) in values.enumerated() {
            if index > 0 { text += "," }
            text += "\""
            for scalar in value.unicodeScalars {
                if scalar == "\"" || scalar == "\\" { text += "\\" }
                text.unicodeScalars.append(scalar)
            }
            text += "\""
        }
        return text + "}"
    }
}

/// A template as the kind of its keys, regardless of the names of its columns.
extension AudienceTemplate {
    /// The setting's name. In a constant, bytes that an identifier may not contain become `_XX`, so that two kinds
    /// never share a name. A column becomes `_`.
    var setting: String {
        let parts = segments.map { segment -> String in
            guard case .constant(let text) = segment else { return "_" }
            return text.utf8.enumerated().map { index, byte -> String in
                let isLetter = (97...122).contains(byte)
                let isDigit = (48...57).contains(byte) && index > 0
                if isLetter || isDigit { return String(UnicodeScalar(byte)) }
                let digits = String(byte, radix: 16)
                return "_" + (digits.count == 1 ? "0" : "") + digits
            }.joined()
        }
        return "bellhop.key." + parts.joined(separator: ".")
    }

    /// The scope's values of the kind. It is a subquery, so that it is evaluated once and not for each row.
    private var scopeValue: String { "(SELECT \(RowLevelSecurity.setting(setting)))" }

    /// The comparison of a column with the scope's values. The cast outside the subquery makes the array a single
    /// value.
    var comparison: String { "= ANY (\(scopeValue)::text[])" }

    /// The condition of a policy that the scope has the row's key.
    var condition: String {
        if columns.isEmpty { return scopeValue + " IS NOT NULL" }
        if columns.count == 1 { return "\(columns[0]) \(comparison)" }
        // Each value but the last is preceded by its length, so that different rows never have the same text.
        let joined = columns.dropLast().map { "octet_length(\($0)) || ':' || \($0) || " }.joined()
        return "(\(joined)\(columns[columns.count - 1])) = ANY (\(scopeValue)::text[])"
    }

    func value(of columns: [String]) -> String {
        columns.dropLast().map { "\($0.utf8.count):\($0)" }.joined() + (columns.last ?? "")
    }
}
