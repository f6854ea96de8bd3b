import Values
import Visibility

/// The declaration of one table of an app: who may see its rows, which changes matter, and what they invalidate.
///
/// Read from a file by ``TableCatalog/init(reading:reserved:)``, which refuses what would be unsafe or unbounded.
public struct TableDeclaration: Sendable, Hashable {
    public let schema: String
    public let name: String
    public let primaryKey: [String]
    /// All columns with their types, by which filters compare them; nil: the file does not name them.
    public let types: ColumnTypes?
    public let tenant: TenantRule
    /// Who may read a row, and who receives its changes by operation: never more than may read it.
    public let audience: Audience
    /// Columns whose change makes an update matter, beside those the audience is made from; empty: all columns.
    public let columns: [String]
    /// Columns whose values come from memberships: the class of a student.
    public let related: [String: RelatedColumn]
    public let invalidates: [InvalidationGroup]
    public let window: Duration
    let actorColumn: String?
    let originColumn: String?
    /// The counts of an `engagement_update` by their names in the event: `likeCount` → `like_count`.
    public let counts: [String: String]
    public let memberships: [MembershipDeclaration]
    /// Columns that determine who may see a row.
    let audienceColumns: Set<String>

    static func audienceColumns(
        _ audience: Audience, _ related: [String: RelatedColumn], _ tenant: TenantRule
    ) -> Set<String> {
        var deciding: Set<String> = []
        for entry in audience.select {
            deciding.formUnion(entry.template.columns)
            deciding.formUnion(entry.when.columns)
        }
        // Behind a related column there may be another one.
        for _ in related {
            for (name, column) in related where deciding.contains(name) { deciding.insert(column.column) }
        }
        if case .column(let name, let parent) = tenant { deciding.formUnion([name, parent?.key].compactMap(\.self)) }
        return deciding
    }

    public struct Audience: Sendable, Hashable {
        public let select: [AudienceEntry]
        public let insert: [AudienceEntry]
        public let update: [AudienceEntry]
        public let delete: [AudienceEntry]

        public subscript(operation: RowOperation) -> [AudienceEntry] {
            switch operation {
            case .insert: insert
            case .update: update
            case .delete: delete
            }
        }
    }

    /// `public.students`, as it is named in errors.
    public var qualifiedName: String { "\(schema).\(name)" }
}

/// How the tenant of a row is determined.
public enum TenantRule: Sendable, Hashable {
    case constant(String)
    /// The value of `name`; where the row has none, the tenant of the row of `parent` whose primary key is the value of
    /// `key`: a link table need not repeat its school.
    case column(name: String?, parent: Parent?)

    public struct Parent: Sendable, Hashable {
        public let table: String
        public let key: String
    }
}

/// A template, and the state a row must be in for it to count: `everyone`, when `visibility` is `public`.
public struct AudienceEntry: Sendable, Hashable {
    public let template: AudienceTemplate
    public let when: RowCondition
}

/// Columns and the values that each may have, or must not have; empty: every row.
public struct RowCondition: Sendable, Hashable {
    public let allowed: [String: [JSONValue]]
    public let denied: [String: [JSONValue]]

    public init(_ allowed: [String: [JSONValue]] = [:], denied: [String: [JSONValue]] = [:]) {
        self.allowed = allowed
        self.denied = denied
    }

    public var isEmpty: Bool { allowed.isEmpty && denied.isEmpty }

    /// The columns that it looks at, in the order of their names.
    public var columns: [String] { Set(allowed.keys).union(denied.keys).sorted() }

    /// A column that the row does not have counts as null: it fulfils the condition only where null is listed, and no
    /// `not`, as SQL has it. So what a sender leaves out never shows a row to anybody.
    func holds(for row: RowWrite.Row) -> Bool {
        func isAmong(_ values: [JSONValue], _ value: JSONValue) -> Bool {
            values.contains { $0.isSameColumnValue(as: value) }
        }
        return allowed.allSatisfy { isAmong($1, row[$0] ?? .null) }
            && denied.allSatisfy { column, values in
                guard let value = row[column], value != .null else { return false }
                return !isAmong(values, value)
            }
    }
}

/// A column that the row itself does not have: its values are what a membership grants to the subject that one of the
/// row's columns, or another related column, names.
public struct RelatedColumn: Sendable, Hashable {
    public let membership: String
    public let column: String
}

/// Query keys that some changes of a table make stale, and the audience of their invalidation.
public struct InvalidationGroup: Sendable, Hashable {
    public let operations: Set<RowOperation>
    /// An update counts if it changes one of these; empty: if it changes one of ``TableDeclaration/columns``.
    public let columns: [String]
    public let keys: [QueryKeyTemplate]
    /// Nil: the audience of the row's change itself.
    public let audience: [AudienceEntry]?
}

/// A query key with columns to fill in: `["leaderboard", "{class_id}"]`.
public struct QueryKeyTemplate: Sendable, Hashable {
    public enum Part: Sendable, Hashable {
        case constant(String)
        case column(String)
    }

    public let parts: [Part]

    public var columns: [String] {
        parts.compactMap { if case .column(let name) = $0 { name } else { nil } }
    }

    /// Nil where a column has no value.
    func key(of row: (String) -> String?) -> [String]? {
        var key: [String] = []
        for part in parts {
            switch part {
            case .constant(let text): key.append(text)
            case .column(let name):
                guard let value = row(name) else { return nil }
                key.append(value)
            }
        }
        return key
    }
}

/// A membership that the rows of a table grant: a caller with the key `subject` has the key `grants` too.
///
/// Both templates are made from exactly one column each.
public struct MembershipDeclaration: Sendable, Hashable {
    public let name: String
    /// `student:{id}`: a key of the scope that grows.
    public let subject: AudienceTemplate
    /// `class:{class_id}:member`: what the scope gains.
    public let grants: AudienceTemplate
    /// Only callers of this role gain it; nil: all.
    public let role: String?
    /// The state in which a row counts, such as `active: true`.
    public let when: RowCondition

    var subjectColumn: String { subject.columns[0] }
    var grantColumn: String { grants.columns[0] }

    func subjectKey(_ value: String) -> String { subject.key { _ in value } ?? "" }
    func grantKey(_ value: String) -> String { grants.key { _ in value } ?? "" }
}

extension AudienceTemplate {
    /// The text with its columns' names left out: `user:{owner_id}` and `user:{user_id}` mean the same.
    public var shape: String {
        description.split(separator: ":").map { $0.hasPrefix("{") ? "{}" : String($0) }.joined(separator: ":")
    }

    /// The first segment, nil if it is a column.
    var leadingConstant: String? {
        let first = description.split(separator: ":").first.map(String.init) ?? ""
        return first.hasPrefix("{") ? nil : first
    }
}
