import ArgumentParser
import Foundation
import Service

/// The command `bellhop`.
@main
struct Bellhop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bellhop",
        abstract: "Serve badge counts, notifications, bookings and queue waits to each user.",
        discussion: """
            Bellhop computes badge counts and streams every change to exactly the users who may see it.

              Start the service with a token secret and a database file:
                export BELLHOP_JWT_SECRET=$(head -c 32 /dev/urandom | base64)
                bellhop serve --database sqlite:bellhop.sqlite

              Create a token for a user and read the user's badge counts:
                TOKEN=$(bellhop token --subject ada)
                curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/v1/badges

              Follow the user's stream while the demo runs:
                bellhop listen --token "$TOKEN"
                bellhop demo

              `bellhop serve --help` lists all settings (flags, variables or a file).
            """,
        version: BellhopVersion.text,
        groupedSubcommands: [
            CommandGroup(
                name: "Run",
                subcommands: [
                    Serve.self, Health.self, Migrate.self, Backup.self, Restore.self, Source.self, Push.self,
                    AuditCommand.self, Check.self, Doctor.self,
                ]),
            CommandGroup(name: "Try", subcommands: [Token.self, Listen.self, Demo.self]),
            CommandGroup(name: "Understand", subcommands: [Policies.self, Routes.self]),
        ])

    /// Runs the command without folders in the user's home: Foundation creates them for cookies and a cache with every
    /// URLSession, even an ephemeral one that uses neither, and works without them if it cannot create them.
    static func main() async {
        for variable in ["XDG_CACHE_HOME", "XDG_DATA_HOME"] { setenv(variable, "/dev/null", 1) }
        if let script = CompletionScript(arguments: CommandLine.arguments) { return Terminal.line(script.text) }
        await main(nil)
    }
}
