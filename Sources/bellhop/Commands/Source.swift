import ArgumentParser
import Rows
import Service

/// Commands for the app's own database, whose log the service reads.
struct Source: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prepare the app's PostgreSQL for `serve --source`, which reads rows from its log.",
        subcommands: [Setup.self])

    struct Setup: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create the publication and the functions bellhop.notify and bellhop.publish.",
            discussion: """
                Run it as the owner of the tables or as a superuser, and again after each change of the table file. It keeps \
                existing objects. The service creates the replication slot at its first start.

                  bellhop source setup --database postgres://admin@app/db \\
                    --tables tables.yaml --role bellhop_reader --sender app
                  bellhop serve --source postgres://bellhop_reader@app/db --tables tables.yaml

                The role requires REPLICATION: CREATE ROLE bellhop_reader LOGIN REPLICATION PASSWORD '…'
                """)

        @Option(help: ArgumentHelp("URL of the app's database.", valueName: "url"))
        var database: String?

        @Option(
            help: ArgumentHelp("Table file, or the name of a bundled one: school, posts or todo.", valueName: "file"))
        var tables: String

        @Option(help: ArgumentHelp("Role that reads the log; it gets SELECT on the tables.", valueName: "name"))
        var role: String?

        @Option(
            help: ArgumentHelp(
                """
                Role that may call bellhop.notify and bellhop.publish, for all tenants or only the named ones. Repeatable. \
                Roles of earlier setups keep their permission.
                """, valueName: "role[=tenant,…]"))
        var sender: [String] = []

        @Flag(help: "Print the statements without running them.")
        var sql = false

        func validate() throws {
            guard sql || database != nil else { throw ValidationError("Pass --database or --sql.") }
            if let mistake = role.flatMap(SourceSetup.mistake) { throw ValidationError("--role: \(mistake).") }
            for text in sender where SourceSender(text) == nil {
                throw ValidationError("--sender \(text): must be a role, or ROLE=TENANT,TENANT. PUBLIC is not allowed.")
            }
        }

        func run() throws {
            let page: TablesPage
            do throws(TablesPage.Mistakes) {
                page = try TablesPage(named: tables)
            } catch {
                let lines = error.list.map { "\($0.line.map { "line \($0): " } ?? "")\($0.pointer) \($0.detail)" }
                throw Terminal.failure("\(tables): \(lines.joined(separator: "; "))", code: 78)
            }
            let setup = SourceSetup(of: page, role: role, senders: sender.compactMap(SourceSender.init))
            if sql { return Terminal.line(setup.statements.map { $0 + ";" }.joined(separator: "\n")) }
            let remarks: [String]
            do {
                remarks = try setup.run(at: database ?? "")
            } catch {
                throw Terminal.failure("\(error)", code: 78)
            }
            for remark in remarks { Terminal.line("\(Terminal.paint("!", .yellow)) \(remark)") }
            Terminal.line(
                "\(Terminal.paint("✓", .green)) Published: \(page.tables.map(\.qualifiedName).joined(separator: ", "))."
            )
        }
    }
}
