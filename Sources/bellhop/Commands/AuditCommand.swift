import ArgumentParser
import Foundation
import Service

struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Verify the audit log.", subcommands: [Verify.self])

    struct Verify: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Recompute the hashes of all audit entries, and name the first broken one.",
            discussion: """
                Prints the last entry of each tenant: tenant, number, hash and time. The exit code is 1 if an entry was changed or \
                is missing. Works while the service is running, and on a backup.

                Keep the output outside the database and pass it next time. Without it, a log that was emptied, cut at its end, or \
                computed again as a whole is not found.

                  bellhop audit verify >heads.txt
                  bellhop audit verify --known heads.txt
                  bellhop audit verify --database sqlite:backup.sqlite
                """)

        @Option(help: ArgumentHelp("File with the output of an earlier verification.", valueName: "file"))
        var known: String?

        @OptionGroup var settings: SettingsFlags

        func run() async throws {
            let settings = try await settings.load(verifiesTokens: false)
            let lines = try known.map { path in
                guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                    throw Terminal.failure("--known: \(path) cannot be read as a text")
                }
                return text
            }
            let found = try SettingsLoading.explainingFailure {
                try Operations.verifyAudit(settings, known: lines ?? "")
            }
            for chain in found { Terminal.line(chain.line) }
            if lines == nil { Terminal.note(AuditVerification.limits) }
            let faults = found.compactMap { chain in chain.fault.map { "tenant \(chain.tenant): \($0)" } }
            guard faults.isEmpty else { throw Terminal.failure(faults.joined(separator: "\n")) }
        }
    }
}
