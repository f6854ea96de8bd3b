import Values
import Visibility

/// All declared tables, checked against one another.
public struct TableCatalog: Sendable {
    public let tables: [TableDeclaration]
    public let topics: [TopicDeclaration]
    public let contacts: ContactPolicy
    private let places: [Name: Int]
    /// The memberships in groups that grant keys of one shape, each after the memberships that grant its subjects.
    let membershipOrder: [[(table: TableDeclaration, declaration: MembershipDeclaration)]]

    /// Compared by bytes, as databases compare names. Swift strings treat two spellings of one accent as equal.
    private struct Name: Hashable {
        private let schema: ID<TableDeclaration>
        private let table: ID<TableDeclaration>

        init(schema: String, table: String) {
            self.schema = ID(schema)
            self.table = ID(table)
        }
    }

    public static let empty = TableCatalog(checked: [])

    /// Creates a catalog.
    ///
    /// - Precondition: The reader has found no mistake in the tables.
    init(checked tables: [TableDeclaration], topics: [TopicDeclaration] = [], contacts: ContactPolicy = .open) {
        self.tables = tables
        self.topics = topics
        self.contacts = contacts
        places = Dictionary(
            tables.enumerated().map { (Name(schema: $1.schema, table: $1.name), $0) },
            uniquingKeysWith: { first, _ in first })
        membershipOrder = MembershipOrder(tables).groups ?? []
    }

    /// Returns a table; nil for an undeclared one, whose changes have no audience.
    public func find(schema: String, table: String) -> TableDeclaration? {
        places[Name(schema: schema, table: table)].map { tables[$0] }
    }

    /// Returns the problem of an undeclared table, for senders of rows and for subscribers.
    public static func undeclared(_ schema: String, _ table: String) -> String {
        "the table \(schema).\(table) is not declared: add it to your table file, which BELLHOP_TABLES names"
    }

    /// The names of all memberships that any table declares.
    public var membershipNames: [String] { membershipOrder.flatMap { $0.map(\.declaration.name) } }

    /// The roles for which a membership is declared.
    public var membershipRoles: Set<String> {
        Set(membershipOrder.flatMap { $0.compactMap(\.declaration.role) })
    }

    /// The rule of each membership as text: everything in the file that decides which fact a row gives. Facts that
    /// another rule gave say nothing about the present one. What a membership grants to whom (`grants`, `role`) is
    /// applied to the facts later, so only the column of `grants` belongs to the rule.
    public var rules: [String: String] {
        var rules: [String: String] = [:]
        for table in tables {
            let identity = identity(of: table)
            for membership in table.memberships {
                let columns: [JSONValue] = [
                    .string(membership.subject.shape), .string(membership.subjectColumn),
                    .string(membership.grantColumn),
                ]
                let rule = JSONValue.array([identity, .array(columns), membership.when.canonical])
                rules[membership.name] = String(decoding: JSONWriter.bytes(rule), as: UTF8.self)
            }
        }
        return rules
    }

    /// Returns what decides the tenants and the ids of a table's rows: its own declaration, and the declarations of the
    /// tables from which its rows take their tenant.
    ///
    /// - Parameter seen: The tables on the way, because a file may name tables in a circle.
    private func identity(of table: TableDeclaration, seen: Set<String> = []) -> JSONValue {
        var parts = [table.schema, table.name].map(JSONValue.string)
        parts.append(.array(table.primaryKey.map(JSONValue.string)))
        switch table.tenant {
        case .constant(let tenant): parts.append(.string(tenant))
        case .column(let name, let parent):
            parts.append(.array([name, parent?.table, parent?.key].map { $0.map(JSONValue.string) ?? .null }))
            guard let parent, !seen.contains(parent.table) else { break }
            let above = tables.filter { $0.name == parent.table }
            parts += above.map { identity(of: $0, seen: seen.union([table.name])) }
        }
        return .array(parts)
    }

    /// Every template of the file, for the check against the templates of other tables.
    public var templates: [AudienceTemplate] {
        var templates: [AudienceTemplate] = []
        for table in tables {
            templates += table.audience.select.map(\.template)
            for invalidation in table.invalidates { templates += (invalidation.audience ?? []).map(\.template) }
            for membership in table.memberships { templates += [membership.subject, membership.grants] }
        }
        for topic in topics { templates += topic.audience }
        return templates
    }
}

/// A topological order of memberships: each comes after the memberships that grant its subjects.
struct MembershipOrder {
    /// Nil if there is a cycle, whose evaluation would not end.
    let groups: [[(table: TableDeclaration, declaration: MembershipDeclaration)]]?

    init(_ tables: [TableDeclaration]) {
        var shapes: [String] = []
        var members: [String: [(table: TableDeclaration, declaration: MembershipDeclaration)]] = [:]
        for table in tables {
            for declaration in table.memberships {
                if members[declaration.grants.shape] == nil { shapes.append(declaration.grants.shape) }
                members[declaration.grants.shape, default: []].append((table, declaration))
            }
        }
        var sorted: [[(table: TableDeclaration, declaration: MembershipDeclaration)]] = []
        while !shapes.isEmpty {
            // The next shapes are those whose subjects no remaining membership grants.
            let free = shapes.filter { shape in
                (members[shape] ?? []).allSatisfy { member in
                    !shapes.contains { other in
                        (members[other] ?? []).contains { $0.declaration.grants.mayEqual(member.declaration.subject) }
                    }
                }
            }
            if free.isEmpty { break }
            sorted += free.map { members[$0] ?? [] }
            shapes.removeAll { free.contains($0) }
        }
        groups = shapes.isEmpty ? sorted : nil
    }
}
