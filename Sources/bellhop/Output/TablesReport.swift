import ArgumentParser
import BellhopClient
import Service

/// The report of `bellhop policies --tables`: a file of tables as printed tables, or its mistakes.
struct TablesReport {
    private let page: TablesPage

    /// - Throws: the exit code, after printing all mistakes.
    init(named name: String) throws {
        do throws(TablesPage.Mistakes) {
            page = try TablesPage(named: name)
        } catch {
            for mistake in error.list where mistake.line != nil {
                let place = Terminal.paint("\(name):\(mistake.line ?? 1):", .bold)
                Terminal.note("\(place) \(mistake.pointer.isEmpty ? "the file" : mistake.pointer) \(mistake.detail)")
            }
            throw Terminal.failure("\(name): \(error.detail)", code: 78)
        }
    }

    func show(asJSON: Bool) {
        if asJSON { return Terminal.line(JSON.array(page.tables.map(json)).text) }
        Terminal.line(matrix)
        Terminal.line("")
        Terminal.line(
            Terminal.table(
                ["TABLE", "KEY", "TENANT", "WINDOW", "UPDATES THAT COUNT"],
                page.tables.map { table in
                    [
                        table.name, table.primaryKey.joined(separator: ", "), table.tenant,
                        "\(table.windowMilliseconds) ms",
                        table.columns.isEmpty ? "all" : table.columns.joined(separator: ", "),
                    ]
                }))
        for (header, rows) in [
            (["TABLE", "COUNTS OF engagement_update"], counts),
            (["TABLE", "AFTER", "MAKES STALE", "DELIVERED TO"], invalidations),
            (["TABLE", "COLUMN", "FROM"], related), (["TABLE", "MEMBERSHIP", "WHO HAS", "GETS", "IF"], memberships),
        ] where !rows.isEmpty {
            Terminal.line("")
            Terminal.line(Terminal.table(header, rows))
        }
    }

    // MARK: Who sees what

    /// One column for each kind of key: `student:{}` of the row's student, whatever the column is called.
    private var matrix: String {
        var kinds: [String] = []
        for entry in page.tables.flatMap(\.audience) where !kinds.contains(kind(entry.template)) {
            kinds.append(kind(entry.template))
        }
        let rows = page.tables.map { table in
            [table.name] + kinds.map { kind in cell(table.audience.filter { self.kind($0.template) == kind }) }
        }
        let conditions = page.tables.flatMap { table in
            table.audience.compactMap { entry in
                entry.condition.map { "* \(table.name): \(entry.template) where \($0)" }
            }
        }
        return
            ([
                Terminal.table(["WHO SEES"] + kinds, rows),
                Terminal.paint(
                    "i u d: sees the row and receives its insert, update, delete; s: sees it, and receives none", .faint
                ),
            ] + conditions).joined(separator: "\n")
    }

    private func kind(_ template: String) -> String {
        template.split(separator: ":").map { $0.hasPrefix("{") ? "{}" : String($0) }.joined(separator: ":")
    }

    private func cell(_ entries: [TablesPage.Audience]) -> String {
        guard !entries.isEmpty else { return "·" }
        let letters = ["insert", "update", "delete"].map { operation in
            entries.contains { $0.operations.contains(operation) } ? String(operation.prefix(1)) : "-"
        }
        let mark = entries.allSatisfy { $0.condition != nil } ? "*" : ""
        return (letters.allSatisfy { $0 == "-" } ? "s" : letters.joined()) + mark
    }

    // MARK: The rest

    private var counts: [[String]] {
        page.tables.filter { !$0.counts.isEmpty }.map { [$0.name, $0.counts.joined(separator: ", ")] }
    }

    private var invalidations: [[String]] {
        page.tables.flatMap { table in
            table.invalidations.map { group in
                let columns = group.columns.isEmpty ? "" : " of \(group.columns.joined(separator: ", "))"
                return [
                    table.name, group.operations.joined(separator: ", ") + columns, group.keys.joined(separator: " "),
                    group.audience?.joined(separator: ", ") ?? "who receives the row's change",
                ]
            }
        }
    }

    private var related: [[String]] {
        page.tables.flatMap { table in
            table.related.map { [table.name, $0.column, "membership \($0.membership) of \($0.of)"] }
        }
    }

    private var memberships: [[String]] {
        page.tables.flatMap { table in
            table.memberships.map { membership in
                let conditions = [membership.role.map { "role is \($0)" }, membership.condition].compactMap { $0 }
                return [
                    table.name, membership.name, membership.subject, membership.grants,
                    conditions.isEmpty ? "–" : conditions.joined(separator: ", "),
                ]
            }
        }
    }

    private func json(_ table: TablesPage.Table) -> JSON {
        func texts(_ list: [String]) -> JSON { .array(list.map(JSON.string)) }
        func text(_ text: String?) -> JSON { text.map(JSON.string) ?? .null }
        return [
            "table": .string(table.name), "primaryKey": texts(table.primaryKey), "tenant": .string(table.tenant),
            "windowMs": .integer(Int64(table.windowMilliseconds)), "columns": texts(table.columns),
            "counts": texts(table.counts),
            "audience": .array(
                table.audience.map {
                    ["template": .string($0.template), "hears": texts($0.operations), "when": text($0.condition)]
                }),
            "invalidates": .array(
                table.invalidations.map {
                    [
                        "after": texts($0.operations), "columns": texts($0.columns), "keys": texts($0.keys),
                        "audience": $0.audience.map(texts) ?? .null,
                    ]
                }),
            "related": .array(
                table.related.map {
                    ["column": .string($0.column), "through": .string($0.membership), "of": .string($0.of)]
                }),
            "memberships": .array(
                table.memberships.map {
                    [
                        "name": .string($0.name), "subject": .string($0.subject), "grants": .string($0.grants),
                        "role": text($0.role), "when": text($0.condition),
                    ]
                }),
        ]
    }
}
