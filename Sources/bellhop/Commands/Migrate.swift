import ArgumentParser
import Service

struct Migrate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Bring the database to this version's tables and policies.",
        discussion: """
            Safe to run again, and from many replicas at once: what has been done is not done twice.
            SQLite: `serve` does it by itself.
            PostgreSQL: run it as the owner of the database, which the service itself must not be. It makes the role \
            bellhop_service; then an administrator makes a login for the service:

              bellhop migrate --database postgres://owner@host/bellhop
              CREATE ROLE bellhop LOGIN PASSWORD '…' IN ROLE bellhop_service;
              bellhop serve --database postgres://bellhop:…@host/bellhop

            See first what it will do:
              bellhop migrate --dry-run --database postgres://owner@host/bellhop
            """)

    @Flag(help: "Print the statements that would run, and change nothing.")
    var dryRun = false

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        let settings = try await settings.load(verifiesTokens: false)
        if dryRun { return try show(SettingsLoading.explainingFailure { try Operations.pendingMigrations(settings) }) }
        let applied = try SettingsLoading.explainingFailure { try Operations.migrate(settings) }
        for id in applied { Terminal.line("\(Terminal.paint("✓", .green)) \(id)") }
        Terminal.line(applied.isEmpty ? "Nothing to do: the database is up to date." : "\(applied.count) done.")
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
                : "-- \(pending.count) to do, in one transaction; the policies of the tables follow.")
    }
}
