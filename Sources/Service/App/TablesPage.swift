import Domain
import Rows
import Values
import Visibility

/// A file of declared tables as people read it: who sees which rows, what changes make stale, who belongs where.
public struct TablesPage: Sendable {
    /// What is wrong with the file, and where.
    public struct Mistake: Sendable {
        /// Nil where the file as a whole cannot be read.
        public let line: Int?
        /// A JSON pointer: `/tables/3/audience/select/0`.
        public let pointer: String
        public let detail: String
    }

    public struct Mistakes: Error, Sendable {
        public let list: [Mistake]
        /// How many there are; a page of them is listed.
        public let detail: String
    }

    /// Who has a key of this template sees rows, and receives what happens to them.
    public struct Audience: Sendable {
        public let template: String
        /// `insert`, `update`, `delete`: those which it receives.
        public let operations: [String]
        /// `visibility is public`; nil: every row.
        public let condition: String?
    }

    public struct Invalidation: Sendable {
        public let operations: [String]
        /// An update counts if it changes one of these; empty: any that is delivered.
        public let columns: [String]
        /// `leaderboard/{class_id}`
        public let keys: [String]
        /// Nil: whoever receives the row.
        public let audience: [String]?
    }

    public struct Membership: Sendable {
        public let name: String
        public let subject: String
        public let grants: String
        public let role: String?
        public let condition: String?
    }

    public struct Related: Sendable {
        public let column: String
        public let membership: String
        public let of: String
    }

    public struct Table: Sendable {
        public let name: String
        public let primaryKey: [String]
        /// `{school_id}`, `default`, or `{school_id}, else that of students by {student_id}`.
        public let tenant: String
        public let windowMilliseconds: Int
        public let audience: [Audience]
        /// Columns whose change makes an update delivered; empty: all.
        public let columns: [String]
        public let related: [Related]
        public let invalidations: [Invalidation]
        /// By their names in `engagement_update`, as `likeCount: like_count`.
        public let counts: [String]
        public let memberships: [Membership]
    }

    public let tables: [Table]

    /// Reads a file, or one that is shipped (`school`, `posts`, `todo`), and checks it as the start of the service does.
    public init(named name: String) throws(Mistakes) {
        let file: TableFile
        do throws(Failure) {
            file = try TableFile(named: name)
        } catch {
            throw Mistakes(list: [Mistake(line: nil, pointer: "", detail: error.detail)], detail: error.detail)
        }
        do throws(Failure) {
            let catalog = try file.read(reserved: Catalog.tables)
            tables = catalog.tables.map(Table.init)
        } catch {
            throw Mistakes(
                list: error.fields.map {
                    Mistake(line: file.line(of: $0.pointer), pointer: $0.pointer, detail: $0.detail)
                }, detail: error.detail)
        }
    }
}

extension TablesPage.Table {
    init(_ table: TableDeclaration) {
        name = table.qualifiedName
        primaryKey = table.primaryKey
        tenant =
            switch table.tenant {
            case .constant(let tenant): tenant
            case .column(let name?, nil): "{\(name)}"
            case .column(let name, let parent?):
                (name.map { "{\($0)}, else " } ?? "") + "that of \(parent.table) by {\(parent.key)}"
            case .column(nil, nil): ""
            }
        windowMilliseconds = Int(table.window / .milliseconds(1))
        columns = table.columns
        audience = table.audience.select.map { entry in
            .init(
                template: entry.template.description,
                operations: RowOperation.allCases.filter { table.audience[$0].contains(entry) }.map(\.rawValue),
                condition: entry.when.text)
        }
        related = table.related.sorted { $0.key < $1.key }.map {
            .init(column: $0.key, membership: $0.value.membership, of: $0.value.column)
        }
        invalidations = table.invalidates.map { group in
            .init(
                operations: RowOperation.allCases.filter(group.operations.contains).map(\.rawValue),
                columns: group.columns, keys: group.keys.map(\.text),
                audience: group.audience?.map { entry in
                    entry.template.description + (entry.when.text.map { " where \($0)" } ?? "")
                })
        }
        counts = table.counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        memberships = table.memberships.map {
            .init(
                name: $0.name, subject: $0.subject.description, grants: $0.grants.description, role: $0.role,
                condition: $0.when.text)
        }
    }
}

extension RowCondition {
    /// `visibility is public, state is open or paused`; nil for none.
    fileprivate var text: String? {
        guard !allowed.isEmpty else { return nil }
        return allowed.sorted { $0.key < $1.key }.map { column, values in
            "\(column) is " + values.map(\.plainText).joined(separator: " or ")
        }.joined(separator: ", ")
    }
}

extension QueryKeyTemplate {
    fileprivate var text: String {
        parts.map { part in
            switch part {
            case .constant(let text): text
            case .column(let name): "{\(name)}"
            }
        }.joined(separator: "/")
    }
}

extension JSONValue {
    fileprivate var plainText: String {
        if case .string(let text) = self { text } else { String(decoding: JSONWriter.bytes(self), as: UTF8.self) }
    }
}
