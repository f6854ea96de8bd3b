import ArgumentParser
import Service

struct Migrate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Update the database to the tables and policies of this version.",
        discussion: """
            It is safe to run again, and from several replicas at once.
            SQLite: `serve` migrates automatically.
            PostgreSQL: run it as the owner of the database; the service must use another login. It creates the role \
            bellhop_service. Then an administrator creates a login for the service:

              bellhop migrate --database postgres://owner@host/bellhop
              CREATE ROLE bellhop LOGIN PASSWORD '…' IN ROLE bellhop_service;
              bellhop serve --database postgres://bellhop:…@host/bellhop

            Preview the statements:
              bellhop migrate --dry-run --database postgres://owner@host/bellhop
            """)

    @Flag(help: "Print the statements without running them.")
    var dryRun = false

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        let settings = try await settings.load(verifiesTokens: false)
        if dryRun { return try show(SettingsLoading.explainingFailure { try Operations.pendingMigrations(settings) }) }
        let applied = try SettingsLoading.explainingFailure { try Operations.migrate(settings) }
        for id in applied { Terminal.line("\(Terminal.paint("✓", .green)) \(id)") }
        Terminal.line(
            applied.isEmpty ? "Nothing to do: the database is up to date." : "Migrations applied: \(applied.count).")
    }

    /// Prints a SQL script; everything else is printed as SQL comments.
    private func show(_ pending: [(id: String, statements: [String])]) throws {
        for (id, statements) in pending {
            Terminal.line("-- \(id)")
            for statement in statements { Terminal.line("\(statement);") }
            Terminal.line("")
        }
        Terminal.line(
            pending.isEmpty
                ? "-- Nothing to do: the database is up to date."
                : "-- Migrations to apply in one transaction: \(pending.count); the policies of the tables follow.")
    }
}
