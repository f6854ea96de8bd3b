import ArgumentParser
import Rows
import Service

/// Commands for the app's own database, whose log the service reads.
struct Source: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prepare the app's own PostgreSQL, whose rows `serve --source` reads from its log.",
        subcommands: [Setup.self])

    struct Setup: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make the publication and the functions bellhop.notify and bellhop.publish.",
            discussion: """
                Run it as the owner of the tables, or a superuser; again whenever the file of tables has changed. What \
                is there already stays. The slot is made by the service itself when it first starts.

                  bellhop source setup --database postgres://admin@app/db --tables tables.yaml \
                      --role bellhop_reader --sender app
                  bellhop serve --source postgres://bellhop_reader@app/db --tables tables.yaml

                The role needs REPLICATION: CREATE ROLE bellhop_reader LOGIN REPLICATION PASSWORD '…'
                """)

        @Option(help: ArgumentHelp("The app's database.", valueName: "url"))
        var database: String?

        @Option(help: ArgumentHelp("The file that declares its tables, or school, posts, todo.", valueName: "file"))
        var tables: String

        @Option(help: ArgumentHelp("Who reads: is granted SELECT on the tables.", valueName: "name"))
        var role: String?

        @Option(
            help: ArgumentHelp(
                """
                A role that may call bellhop.notify and bellhop.publish, for every tenant or for those named; several \
                are given one by one. Roles of earlier setups stay.
                """, valueName: "role[=tenant,…]"))
        var sender: [String] = []

        @Flag(help: "Print what would be done, and do nothing.")
        var sql = false

        func validate() throws {
            guard sql || database != nil else { throw ValidationError("--database is needed, or --sql.") }
            if let mistake = role.flatMap(SourceSetup.mistake) { throw ValidationError("--role: \(mistake).") }
            for text in sender where SourceSender(text) == nil {
                throw ValidationError("--sender \(text): name a role, or ROLE=TENANT,TENANT. PUBLIC is not allowed.")
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
