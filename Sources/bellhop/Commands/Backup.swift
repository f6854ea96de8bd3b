import ArgumentParser
import Service

struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Copy an SQLite database into a file, beside the running service.",
        discussion: """
            The copy is whole and checked: all that was answered with 201 before is in it. A service that starts with it \
            gives the log of events another name, so that every client fetches what it shows once.

              bellhop backup /backups/monday.sqlite --database sqlite:/var/lib/bellhop/bellhop.sqlite
            """)

    @Argument(help: ArgumentHelp("The copy. There must be no file of that name.", valueName: "file"))
    var file: String

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        let settings = try await settings.load(verifiesTokens: false)
        try SettingsLoading.explainingFailure { try Operations.backUp(settings, to: file) }
        Terminal.line("\(Terminal.paint("✓", .green)) \(file)")
    }
}

struct Restore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Put a backup in the place of a stopped service's SQLite database.",
        discussion: """
            The database that was there stays beside it under another name.

              bellhop restore /backups/monday.sqlite --database sqlite:/var/lib/bellhop/bellhop.sqlite
            """)

    @Argument(help: ArgumentHelp("A file that bellhop backup has made.", valueName: "file"))
    var file: String

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        let settings = try await settings.load(verifiesTokens: false)
        let kept = try SettingsLoading.explainingFailure { try Operations.restore(settings, from: file) }
        Terminal.line("\(Terminal.paint("✓", .green)) The database is that of \(file).")
        if let kept { Terminal.line("What was there before is \(kept).") }
    }
}
