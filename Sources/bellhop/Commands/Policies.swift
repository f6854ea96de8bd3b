import ArgumentParser
import BellhopCalls
import Service

struct Policies: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the policies of all tables, how long rows are kept, and the effect of an erasure.",
        discussion: """
            Callers of the row's tenant may read a row if their scope contains one of its keys: user:{user_id} is \
            the row's user, tenant:service a trusted backend, and tenant:admin an administrator.

              bellhop policies                        the service's own tables
              bellhop policies --tables school        the bundled tables of an app
              bellhop policies --tables tables.yaml   your own tables and topics

            The file is checked first. If it has mistakes, each is printed with its line, and the exit code is 78.
            """)

    @Flag(help: "Print JSON.")
    var json = false

    @Flag(help: "Print the statements with which `bellhop migrate` makes PostgreSQL enforce the policies.")
    var sql = false

    @Option(help: ArgumentHelp("Table file, or the name of a bundled one: school, posts or todo.", valueName: "file"))
    var tables: String?

    func run() throws {
        if let tables { return try TablesReport(named: tables).show(asJSON: json) }
        if sql { return Terminal.line(Operations.policyStatements.map { $0 + ";" }.joined(separator: "\n")) }
        let rows = Operations.policies
        if json {
            let list = rows.map { row -> JSON in
                [
                    "table": .string(row.table), "read": .array(row.read.map(JSON.string)),
                    "write": .array(row.write.map(JSON.string)), "kept": .string(row.kept),
                    "erasure": .string(row.person),
                ]
            }
            return Terminal.line(JSON.array(list).text)
        }
        let cells = rows.map { [$0.table, text($0.read), text($0.write), $0.kept, $0.person] }
        Terminal.line(Terminal.table(["TABLE", "READ", "WRITE", "KEPT", "ERASURE"], cells))
    }

    func validate() throws {
        guard tables == nil || !sql else { throw ValidationError("--sql cannot be combined with --tables.") }
    }

    private func text(_ keys: [String]) -> String {
        keys.isEmpty ? "only the service" : keys.joined(separator: ", ")
    }
}
