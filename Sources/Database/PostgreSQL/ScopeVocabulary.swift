import Values
import Visibility

/// How a scope reaches PostgreSQL: one transaction-local setting for each kind of key that policies ask for.
///
/// The keys of the template `shop:{shop_id}:staff` become the setting `bellhop.key.shop._.staff`, which has the shops
/// as an array; a policy compares its column with the array. So the server never takes keys apart, and a policy's
/// comparison is one that an index serves.
struct ScopeVocabulary: Sendable {
    /// One template for each kind of key: those of a kind differ in their columns' names at the most.
    let kinds: [AudienceTemplate]
    /// The settings that reading each table asks for.
    private let settingsToRead: [String: Set<String>]
    /// The service's own records: open to its transactions, whoever asks.
    private let bookkeeping: Set<String>
    /// Tables whose rows somebody may write and not read. Found once: each statement that writes asks.
    private let written: Set<String>

    init(_ tables: [Table]) {
        settingsToRead = Dictionary(
            tables.map { table in (table.name, Set(Self.asked(by: table.read).map(\.setting))) }
        ) { $0.union($1) }
        bookkeeping = Set(tables.filter(\.isBookkeeping).map(\.name))
        written = Set(tables.filter(\.needsWriting).map(\.name))
        var names: Set<String> = []
        kinds = tables.flatMap { Self.asked(by: $0.read) + Self.asked(by: $0.write) }
            .filter { names.insert($0.setting).inserted }
    }

    /// The templates whose keys a policy looks at: its own, and those by which it finds memberships.
    private static func asked(by policy: Policy) -> [AudienceTemplate] {
        policy.entries.flatMap { [$0.template] + ($0.membership.map { [$0.holder] } ?? []) }
    }

    /// The settings of a scope: its tenant, and its keys of each kind.
    func settings(of scope: Scope) -> [String: String] {
        var settings = [Self.tenant: scope.tenant.text]
        let keys = scope.keys.sorted()
        for kind in kinds {
            let value = keys.compactMap { kind.columnValues(of: $0) }
            guard !value.isEmpty else { continue }
            settings[kind.setting] = Self.array(value.map { kind.value(of: $0) })
        }
        return settings
    }

    /// What a statement that reads under a scope needs, and no more.
    func settings(of scope: Scope, for woven: SQL.Woven) -> [String: String] {
        let all = scope.predicates.settings { settings(of: scope) }
        var needed = all.filter { name, _ in
            name == Self.tenant || woven.scoped.contains { settingsToRead[$0]?.contains(name) == true }
        }
        if !woven.unscoped.isEmpty { needed[Self.service] = "on" }
        needed[Self.unscoped] = opening(for: woven)
        return needed
    }

    /// The tables that a statement opens for itself, beside the service's own records; nil: none.
    func opening(for woven: SQL.Woven) -> String? {
        var tables = woven.unscoped.filter { !bookkeeping.contains($0) }
        if tables.isEmpty { return nil }
        if tables.count > 1 { tables = Set(tables).sorted() }
        return Self.array(tables)
    }

    func needsWriting(_ table: Table) -> Bool { written.contains(table.name) }

    static let tenant = "bellhop.tenant"
    static let unscoped = "bellhop.unscoped"
    static let writing = "bellhop.writing"
    static let service = "bellhop.service"

    /// One command that makes the settings others, until the transaction ends; nil if they are.
    func command(from settings: [String: String], to target: [String: String]) -> PostgresLink.Command? {
        var changes: [(name: String, value: String)] = []
        for (name, value) in target {
            // Bytes, not Swift's canonical equivalence: the database compares bytes.
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

    /// A text as an element of PostgreSQL's array literal.
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

/// A template as the kind of its keys, in which its columns' names do not count.
extension AudienceTemplate {
    /// The setting's name. A constant's bytes that no identifier may have become `_XX`, so that two kinds never
    /// share a name; a column is `_`.
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

    /// The scope's values of the kind: a subquery, so that it is evaluated once and not for each row.
    private var scopeValue: String { "(SELECT \(RowLevelSecurity.setting(setting)))" }

    /// The comparison that makes a column one of the scope's values. The cast outside the subquery makes it one value.
    var comparison: String { "= ANY (\(scopeValue)::text[])" }

    /// The condition of a policy: the scope has the row's key.
    var condition: String {
        if columns.isEmpty { return scopeValue + " IS NOT NULL" }
        if columns.count == 1 { return "\(columns[0]) \(comparison)" }
        // Each value but the last has its length in front: two rows never read the same.
        let joined = columns.dropLast().map { "octet_length(\($0)) || ':' || \($0) || " }.joined()
        return "(\(joined)\(columns[columns.count - 1])) = ANY (\(scopeValue)::text[])"
    }

    func value(of columns: [String]) -> String {
        columns.dropLast().map { "\($0.utf8.count):\($0)" }.joined() + (columns.last ?? "")
    }
}
