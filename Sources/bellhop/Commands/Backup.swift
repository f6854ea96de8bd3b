import ArgumentParser
import Service

struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Back up an SQLite database to a file, also while the service runs.",
        discussion: """
            The copy is complete and checked: it contains every write that was confirmed before. A service started with \
            it starts a new epoch of its event log, so that every client fetches its data again.

              bellhop backup /backups/monday.sqlite \\
                --database sqlite:/var/lib/bellhop/bellhop.sqlite
            """)

    @Argument(help: ArgumentHelp("The file to create. It must not exist.", valueName: "file"))
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
        abstract: "Restore a backup as the SQLite database of a stopped service.",
        discussion: """
            Keeps the previous database beside it under another name.

              bellhop restore /backups/monday.sqlite \\
                --database sqlite:/var/lib/bellhop/bellhop.sqlite
            """)

    @Argument(help: ArgumentHelp("A file created by `bellhop backup`.", valueName: "file"))
    var file: String

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        let settings = try await settings.load(verifiesTokens: false)
        let kept = try SettingsLoading.explainingFailure { try Operations.restore(settings, from: file) }
        Terminal.line("\(Terminal.paint("✓", .green)) Restored from \(file).")
        if let kept { Terminal.line("The previous database is now \(kept).") }
    }
}
