import ArgumentParser
import BellhopCalls
import Rows
import Service
import Values

/// The report of `bellhop policies --tables`: the tables of a file as printed tables, or its mistakes.
struct TablesReport {
    private let tables: [TableDeclaration]
    private let topics: [TopicDeclaration]
    private let contacts: ContactPolicy

    /// - Throws: the exit code, after printing all mistakes.
    init(named name: String) throws {
        do throws(TablesPage.Mistakes) {
            let page = try TablesPage(named: name)
            (tables, topics, contacts) = (page.tables, page.topics, page.contacts)
        } catch {
            for mistake in error.list {
                guard let line = mistake.line else { continue }
                let place = Terminal.paint("\(name):\(line):", .bold)
                Terminal.note("\(place) \(mistake.pointer.isEmpty ? "the file" : mistake.pointer) \(mistake.detail)")
            }
            throw Terminal.failure("\(name): \(error.detail)", code: 78)
        }
    }

    func show(asJSON: Bool) {
        if asJSON { return Terminal.line(JSON.array(tables.map(json)).text) }
        Terminal.line(matrix)
        // One section per line: as one literal of tuples, the compiler took five seconds for its types.
        show(["TABLE", "KEY", "TENANT", "WINDOW", "OBSERVED COLUMNS"], settings, evenIfEmpty: true)
        show(["TABLE", "COUNTS IN engagement_update"], counts)
        show(["TABLE", "AFTER", "INVALIDATES", "DELIVERED TO"], invalidations)
        show(["TABLE", "COLUMN", "FROM"], related)
        show(["TABLE", "MEMBERSHIP", "SUBJECT", "GRANTS", "CONDITION"], memberships)
        show(
            ["TOPIC", "WHO MAY SUBSCRIBE"],
            topics.map { ["\($0.prefix):{\($0.column)}", list($0.audience.map { "\($0)" })] })
        show(["CONTACT", "WHO MAY", "WHO MAY NOT"], rules)
    }

    private func show(_ header: [String], _ rows: [[String]], evenIfEmpty: Bool = false) {
        if rows.isEmpty, !evenIfEmpty { return }
        Terminal.line("\n" + Terminal.table(header, rows))
    }

    private func list(_ texts: [String]) -> String { texts.joined(separator: ", ") }

    // MARK: Access matrix

    /// One column for each kind of key: `student:{}` for the row's student, whatever the column's name.
    private var matrix: String {
        var kinds: [String] = []
        for entry in tables.flatMap(\.audience.select) where !kinds.contains(entry.template.shape) {
            kinds.append(entry.template.shape)
        }
        let rows = tables.map { table in [table.qualifiedName] + kinds.map { cell(table.audience, $0) } }
        let conditions = tables.flatMap { table in
            table.audience.select.compactMap { entry in
                entry.when.text.map { "* \(table.qualifiedName): \(entry.template) where \($0)" }
            }
        }
        let legend =
            "i, u, d: may read the row and receives inserts, updates, deletes; s: may read the row, receives no changes"
        let lines = [Terminal.table(["READERS OF"] + kinds, rows), Terminal.paint(legend, .faint)] + conditions
        return lines.joined(separator: "\n")
    }

    private func cell(_ audience: TableDeclaration.Audience, _ kind: String) -> String {
        let entries = audience.select.filter { $0.template.shape == kind }
        guard !entries.isEmpty else { return "·" }
        let letters = RowOperation.allCases.map { operation in
            entries.contains(where: audience[operation].contains) ? operation.rawValue.prefix(1) : "-"
        }
        let mark = entries.allSatisfy { $0.when.text != nil } ? "*" : ""
        return (letters.allSatisfy { $0 == "-" } ? "s" : letters.joined()) + mark
    }

    // MARK: Other sections

    private var settings: [[String]] {
        tables.map { table in
            let updates = table.columns.isEmpty ? "all" : list(table.columns)
            let window = "\(table.windowMilliseconds) ms"
            return [table.qualifiedName, list(table.primaryKey), table.tenant.text, window, updates]
        }
    }

    private var counts: [[String]] {
        tables.filter { !$0.counts.isEmpty }.map { [$0.qualifiedName, list($0.countTexts)] }
    }

    private var related: [[String]] {
        tables.flatMap { table in
            table.sortedRelated.map { column in
                let source = "membership \(column.value.membership) of \(column.value.column)"
                return [table.qualifiedName, column.key, source]
            }
        }
    }

    private var invalidations: [[String]] {
        tables.flatMap { table in
            table.invalidates.map { group in
                let columns = group.columns.isEmpty ? "" : " of \(list(group.columns))"
                return [
                    table.qualifiedName, list(group.operationNames) + columns,
                    group.keys.map(\.text).joined(separator: " "),
                    group.audienceTexts.map(list) ?? "receivers of the row's change",
                ]
            }
        }
    }

    private var memberships: [[String]] {
        tables.flatMap { table in
            table.memberships.map { membership in
                let conditions = [membership.role.map { "role is \($0)" }, membership.when.text].compactMap { $0 }
                return [
                    table.qualifiedName, membership.name, "\(membership.subject)", "\(membership.grants)",
                    conditions.isEmpty ? "–" : list(conditions),
                ]
            }
        }
    }

    private var rules: [[String]] {
        ContactKind.allCases.compactMap { kind in
            contacts.rules[kind].map { rule in
                let (any, not) = (list(rule.any.map { "\($0)" }), list(rule.not.map { "\($0)" }))
                return [kind.rawValue, any.isEmpty ? "only backends" : any, not.isEmpty ? "–" : not]
            }
        }
    }

    private func json(_ table: TableDeclaration) -> JSON {
        func texts(_ list: [String]) -> JSON { .array(list.map(JSON.string)) }
        func text(_ text: String?) -> JSON { text.map(JSON.string) ?? .null }
        return [
            "table": .string(table.qualifiedName), "primaryKey": texts(table.primaryKey),
            "tenant": .string(table.tenant.text), "windowMs": .integer(Int64(table.windowMilliseconds)),
            "columns": texts(table.columns), "counts": texts(table.countTexts),
            "audience": .array(
                table.audience.select.map { entry in
                    let operations = RowOperation.allCases.filter { table.audience[$0].contains(entry) }
                    return [
                        "template": .string("\(entry.template)"), "hears": texts(operations.map(\.rawValue)),
                        "when": text(entry.when.text),
                    ]
                }),
            "invalidates": .array(
                table.invalidates.map {
                    [
                        "after": texts($0.operationNames), "columns": texts($0.columns),
                        "keys": texts($0.keys.map(\.text)),
                        "audience": $0.audienceTexts.map(texts) ?? .null,
                    ]
                }),
            "related": .array(
                table.sortedRelated.map {
                    [
                        "column": .string($0.key), "through": .string($0.value.membership),
                        "of": .string($0.value.column),
                    ]
                }),
            "memberships": .array(
                table.memberships.map {
                    [
                        "name": .string($0.name), "subject": .string("\($0.subject)"),
                        "grants": .string("\($0.grants)"),
                        "role": text($0.role), "when": text($0.when.text),
                    ]
                }),
        ]
    }
}

// MARK: Texts of declarations

extension TableDeclaration {
    fileprivate var windowMilliseconds: Int { Int(window / .milliseconds(1)) }
    fileprivate var sortedRelated: [(key: String, value: RelatedColumn)] { related.sorted { $0.key < $1.key } }
    /// The counts by their names in `engagement_update`, as `likeCount: like_count`.
    fileprivate var countTexts: [String] { counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" } }
}

extension TenantRule {
    /// `{school_id}`, `default`, or `{school_id}, else the tenant of students by {student_id}`.
    fileprivate var text: String {
        switch self {
        case .constant(let tenant): tenant
        case .column(let name, nil): name.map { "{\($0)}" } ?? ""
        case .column(let name, let parent?):
            (name.map { "{\($0)}, else " } ?? "") + "the tenant of \(parent.table) by {\(parent.key)}"
        }
    }
}

extension InvalidationGroup {
    fileprivate var operationNames: [String] { RowOperation.allCases.filter(operations.contains).map(\.rawValue) }

    fileprivate var audienceTexts: [String]? {
        audience?.map { entry in "\(entry.template)" + (entry.when.text.map { " where \($0)" } ?? "") }
    }
}

extension RowCondition {
    /// `visibility is public, state is open or paused`; nil if there is no condition.
    fileprivate var text: String? {
        guard !isEmpty else { return nil }
        return columns.map { column in
            [("is", allowed[column]), ("is not", denied[column])].compactMap { word, values in
                values.map { "\(column) \(word) " + $0.map(\.plainText).joined(separator: " or ") }
            }.joined(separator: ", ")
        }.joined(separator: ", ")
    }
}

extension QueryKeyTemplate {
    /// `leaderboard/{class_id}`
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
