import ArgumentParser
import BellhopClient
import Service

struct Policies: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print who may see and change what: every table, one page.",
        discussion: """
            A row may be seen by callers whose scope has one of its keys, within the row's tenant: user:{user_id} is \
            the user of the row, tenant:service a trusted backend, tenant:admin an administrator.

              bellhop policies                          the service's own tables
              bellhop policies --tables school          the tables of an app, as they are shipped
              bellhop policies --tables tables.yaml     your own: checked first, each mistake with its line

            A file with mistakes ends it with 78.
            """)

    @Flag(help: "As JSON.")
    var json = false

    @Flag(help: "As the statements by which `bellhop migrate` has PostgreSQL enforce it.")
    var sql = false

    @Option(help: ArgumentHelp("A file that declares an app's tables, or school, posts, todo.", valueName: "file"))
    var tables: String?

    func run() throws {
        if let tables { return try TablesReport(named: tables).show(asJSON: json) }
        if sql { return Terminal.line(Operations.policyStatements.map { $0 + ";" }.joined(separator: "\n")) }
        let rows = Operations.policies
        if json {
            let list = rows.map { row -> JSON in
                [
                    "table": .string(row.table), "read": .array(row.read.map(JSON.string)),
                    "write": .array(row.write.map(JSON.string)),
                ]
            }
            return Terminal.line(JSON.array(list).text)
        }
        let cells = rows.map { [$0.table, text($0.read), text($0.write)] }
        Terminal.line(Terminal.table(["TABLE", "READ", "WRITE"], cells))
    }

    func validate() throws {
        guard tables == nil || !sql else { throw ValidationError("--sql is about the service's own tables.") }
    }

    private func text(_ keys: [String]) -> String {
        keys.isEmpty ? "nobody" : keys.joined(separator: ", ")
    }
}
