import ArgumentParser
import Foundation
import Service

/// The command `bellhop`.
@main
struct Bellhop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bellhop",
        abstract: "Badge counts, notifications, bookings and queue waits, brought to each user's door.",
        discussion: """
            One service computes the counts of people's apps and streams every change to exactly those who may see it.

              Start it, with a secret for tokens and a database file:
                export BELLHOP_JWT_SECRET=$(head -c 32 /dev/urandom | base64)
                bellhop serve --database sqlite:bellhop.sqlite

              Get a user's token, and read that user's counts:
                TOKEN=$(bellhop token --subject ada)
                curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/v1/badges

              Follow the user's stream while things happen:
                bellhop listen --token "$TOKEN"
                bellhop demo

              All settings, as flags, variables or a file: `bellhop serve --help`.
            """,
        version: BellhopVersion.text,
        groupedSubcommands: [
            CommandGroup(
                name: "Run",
                subcommands: [
                    Serve.self, Health.self, Migrate.self, Backup.self, Restore.self, Source.self, Check.self,
                    Doctor.self,
                ]),
            CommandGroup(name: "Try", subcommands: [Token.self, Listen.self, Demo.self]),
            CommandGroup(name: "Understand", subcommands: [Policies.self, Routes.self]),
        ])

    /// Runs the command without folders in the user's home: Foundation creates them for cookies and a cache with every
    /// URLSession, even an ephemeral one that uses neither, and works without them if it cannot create them.
    static func main() async {
        for variable in ["XDG_CACHE_HOME", "XDG_DATA_HOME"] { setenv(variable, "/dev/null", 1) }
        await main(nil)
    }
}
