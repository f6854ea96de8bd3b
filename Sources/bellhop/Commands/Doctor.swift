import ArgumentParser
import BellhopCalls
import Foundation
import Service

struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check everything that the service depends on, and suggest fixes.",
        discussion: """
            Checks settings, table files, keys, descriptors, disks, clocks, the database and its permissions, and the source; \
            with --url also the path through proxies: HTTP version, entity tags, unbuffered delivery of a stream, and paths \
            that must not be public. It follows the stream for 65 seconds, because some proxies limit a whole response to \
            15, 30 or 60 seconds. Changes nothing and prints no secrets. Run it as the service's user, with the service's settings.

              bellhop doctor --config bellhop.yaml
              bellhop doctor --url https://bells.example --token "$TOKEN"

            Without --token, it sends a token only to this machine, to BELLHOP_URL and to the address in the setting host.

            ✓ is good, ! is a warning, ✗ is an error. The exit code is 1 after any ✗, with --strict also after any !.
            """)

    @Option(help: "URL that clients use.")
    var url: String?

    @Option(
        help: "Token for opening a stream there (or BELLHOP_TOKEN); by default, made with the secret in the settings.")
    var token: String?

    @Flag(help: "Send the token to --url even if the address is not known to be yours.")
    var sendToken = false

    @Option(help: "Number of replicas that share the PostgreSQL.")
    var replicas = 2

    @Flag(help: "Also fail on warnings.")
    var strict = false

    @Flag(help: "Print JSON, one object per line.")
    var json = false

    @OptionGroup var settings: SettingsFlags

    func validate() throws {
        guard (1...10_000).contains(replicas) else { throw ValidationError("--replicas must be at least 1.") }
    }

    func run() async throws {
        var (warnings, faults) = (0, 0)
        let show = { (finding: Finding) in
            switch finding.grade {
            case .good, .note: break
            case .warning: warnings += 1
            case .fault: faults += 1
            }
            Terminal.line(json ? Self.json(finding) : Self.line(finding))
        }
        let unknown = try settings.unknownNames()
        for finding in Examination.findings(ofUnknownNames: unknown) { show(finding) }
        let (settings, mistakes) = try await settings.examine()
        for finding in Examination.findings(of: mistakes) { show(finding) }
        if let file = self.settings.file {
            let secrets = SettingsLoading.secrets(in: file)
            Examination.finding(ofSettingsFile: file, secrets: secrets).map(show)
        }
        if mistakes.isEmpty, let settings {
            let doctor = Examination(settings, replicas: replicas)
            await doctor.examine(show)
            if let url {
                doctor.examine(
                    publicAddress: ServiceAccess.address(url),
                    known: ProcessInfo.processInfo.environment["BELLHOP_URL"],
                    token: streamToken(settings), isTrusted: sendToken || token != nil, show)
            }
        }
        guard faults > 0 || (strict && warnings > 0) else { return }
        throw Terminal.failure("errors: \(faults), warnings: \(warnings)")
    }

    private func streamToken(_ settings: Settings) -> String? {
        if let given = token ?? ProcessInfo.processInfo.environment["BELLHOP_TOKEN"] { return given }
        return try? TokenMint(settings).signed(DevelopmentToken(user: "bellhop-doctor", lifetimeSeconds: 300))
    }

    private static func line(_ finding: Finding) -> String {
        let sign =
            switch finding.grade {
            case .good: Terminal.paint("✓", .green)
            case .note: "…"
            case .warning: Terminal.paint("!", .yellow)
            case .fault: Terminal.paint("✗", .red)
            }
        let remedy = finding.remedy.map { "\n    → \(Terminal.safe($0))" } ?? ""
        return "\(sign) \(finding.topic): \(Terminal.safe(finding.text))\(remedy)"
    }

    private static func json(_ finding: Finding) -> String {
        JSON.object([
            "grade": .string(finding.grade.rawValue), "topic": .string(finding.topic), "text": .string(finding.text),
            "remedy": finding.remedy.map(JSON.string) ?? .null,
        ]).text
    }
}
