import Values
import Visibility

/// The declaration of one table of an app: the audience of its rows, the relevant changes, and the invalidated query
/// keys.
///
/// ``TableCatalog/init(reading:reserved:)`` reads it from a file, and refuses unsafe or unbounded declarations.
public struct TableDeclaration: Sendable, Hashable {
    public let schema: String
    public let name: String
    public let primaryKey: [String]
    /// All columns with their types for filters; nil if the file does not list them.
    public let types: ColumnTypes?
    public let tenant: TenantRule
    /// The readers of a row, and the receivers of its changes by operation. The latter are never more than the former.
    public let audience: Audience
    /// Columns whose change makes an update relevant, in addition to those from which the audience is made; empty for
    /// all columns.
    public let columns: [String]
    /// Columns whose values come from memberships, such as the class of a student.
    public let related: [String: RelatedColumn]
    public let invalidates: [InvalidationGroup]
    public let window: Duration
    let actorColumn: String?
    let originColumn: String?
    /// The counts of an `engagement_update` by their names in the event: `likeCount` → `like_count`.
    public let counts: [String: String]
    public let memberships: [MembershipDeclaration]
    /// Columns that determine the readers of a row.
    let audienceColumns: Set<String>

    static func audienceColumns(
        _ audience: Audience, _ related: [String: RelatedColumn], _ tenant: TenantRule
    ) -> Set<String> {
        var decidingColumns: Set<String> = []
        for entry in audience.select {
            decidingColumns.formUnion(entry.template.columns)
            decidingColumns.formUnion(entry.when.columns)
        }
        // A related column may refer to another one.
        for _ in related {
            for (name, column) in related where decidingColumns.contains(name) { decidingColumns.insert(column.column) }
        }
        if case .column(let name, let parent) = tenant {
            decidingColumns.formUnion([name, parent?.key].compactMap(\.self))
        }
        return decidingColumns
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

    /// The columns from which its memberships are made, ordered by name.
    public var membershipColumns: [String] {
        var columns = Set(primaryKey)
        if case .column(let name, let parent) = tenant { columns.formUnion([name, parent?.key].compactMap(\.self)) }
        for membership in memberships {
            columns.formUnion([membership.subjectColumn, membership.grantColumn] + membership.when.columns)
        }
        return columns.sorted()
    }

    /// The name in error messages, such as `public.students`.
    public var qualifiedName: String { "\(schema).\(name)" }
}

/// The rule that determines the tenant of a row.
public enum TenantRule: Sendable, Hashable {
    case constant(String)
    /// The value of `name`. If it is missing, the tenant of the row of `parent` whose primary key is the value of
    /// `key`. So a link table need not repeat its school.
    case column(name: String?, parent: Parent?)

    public struct Parent: Sendable, Hashable {
        public let table: String
        public let key: String
    }
}

/// A template, and the condition for a row: `everyone`, when `visibility` is `public`.
public struct AudienceEntry: Sendable, Hashable {
    public let template: AudienceTemplate
    public let when: RowCondition
}

/// Columns with the values that each may have, or must not have; empty for every row.
public struct RowCondition: Sendable, Hashable {
    public let allowed: [String: [JSONValue]]
    public let denied: [String: [JSONValue]]

    public init(_ allowed: [String: [JSONValue]] = [:], denied: [String: [JSONValue]] = [:]) {
        self.allowed = allowed
        self.denied = denied
    }

    public var isEmpty: Bool { allowed.isEmpty && denied.isEmpty }

    /// The condition in a form that is equal for equal conditions, whatever the order in the file.
    var canonical: JSONValue {
        func sorted(_ columns: [String: [JSONValue]]) -> JSONValue {
            .array(
                columns.sorted { $0.key < $1.key }.map { column, values in
                    let texts = values.map { String(decoding: JSONWriter.bytes($0), as: UTF8.self) }
                    return .array([.string(column)] + texts.sorted().map { .string($0) })
                })
        }
        return .array([sorted(allowed), sorted(denied)])
    }

    /// The columns that the condition reads, ordered by name.
    public var columns: [String] { Set(allowed.keys).union(denied.keys).sorted() }

    /// Whether the row fulfils the condition. A missing column counts as null. As in SQL, it fulfils the condition only
    /// if null is listed, and never a `not`. So a column that a sender leaves out never makes a row visible.
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

/// A column that the row itself does not have. Its values are the ones that a membership grants to a subject, which one
/// of the row's columns, or another related column, names.
public struct RelatedColumn: Sendable, Hashable {
    public let membership: String
    public let column: String
}

/// Query keys that some changes of a table make stale, and the audience of their invalidation.
public struct InvalidationGroup: Sendable, Hashable {
    public let operations: Set<RowOperation>
    /// An update counts if it changes one of these; if empty, one of ``TableDeclaration/columns``.
    public let columns: [String]
    public let keys: [QueryKeyTemplate]
    /// Nil means the audience of the row's change itself.
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

    /// Returns the key; nil if a column has no value.
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

/// A membership that the rows of a table grant: a caller with the key `subject` also has the key `grants`.
///
/// Each template is made from exactly one column.
public struct MembershipDeclaration: Sendable, Hashable {
    public let name: String
    /// A key of the scope to be extended, such as `student:{id}`.
    public let subject: AudienceTemplate
    /// The key that the scope gains, such as `class:{class_id}:member`.
    public let grants: AudienceTemplate
    /// The only role that gains the key; nil for all roles.
    public let role: String?
    /// The state in which a row counts, such as `active: true`.
    public let when: RowCondition

    /// The shape of a subject that is a user by the id in the token.
    static let userShape = "user:{}"

    var subjectColumn: String { subject.columns[0] }
    var grantColumn: String { grants.columns[0] }

    func subjectKey(_ value: String) -> String { subject.key { _ in value } ?? "" }
    func grantKey(_ value: String) -> String { grants.key { _ in value } ?? "" }
}

extension AudienceTemplate {
    /// The text without the names of columns: `user:{owner_id}` and `user:{user_id}` mean the same.
    public var shape: String {
        description.split(separator: ":").map { $0.hasPrefix("{") ? "{}" : String($0) }.joined(separator: ":")
    }

    /// The first segment; nil if it is a column.
    var leadingConstant: String? {
        let first = description.split(separator: ":").first.map(String.init) ?? ""
        return first.hasPrefix("{") ? nil : first
    }
}
