import ArgumentParser
import BellhopClient
import Foundation
import Service

struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Look at everything that the service depends on, and say what to mend.",
        discussion: """
            Looks at settings, files of tables, keys, descriptors, disks, clocks, the database and its rights, and the source; \
            with --url also at the way through the proxies: HTTP version, compression, whether a stream arrives as it is sent \
            (which waits for a heartbeat, 15 seconds), and what should not be reached from outside. Changes nothing, and \
            prints no secret. Run it as the user and with the settings of the service.

              bellhop doctor --config bellhop.yaml
              bellhop doctor --url https://bells.example --token "$TOKEN"

            Without --token, a token goes to this machine, to BELLHOP_URL and to the host setting only.

            ✓ is good, ! should be mended, ✗ must be. Exit code 1 with any ✗; with --strict also with any !.
            """)

    @Option(help: "The address that clients use.")
    var url: String?

    @Option(help: "Opens a stream there (or BELLHOP_TOKEN); else a token is made by the settings' secret.")
    var token: String?

    @Flag(help: "Send the token to --url, whoever answers there.")
    var sendToken = false

    @Option(help: "Replicas on one PostgreSQL.")
    var replicas = 2

    @Flag(help: "Warnings count too.")
    var strict = false

    @Flag(help: "As JSON, one object a line.")
    var json = false

    @OptionGroup var settings: SettingsFlags

    func validate() throws {
        guard (1...10_000).contains(replicas) else { throw ValidationError("--replicas is a number from 1 on.") }
    }

    func run() async throws {
        var (warnings, faults) = (0, 0)
        let show = { (finding: Finding) in
            switch finding.grade {
            case .good: break
            case .warning: warnings += 1
            case .fault: faults += 1
            }
            Terminal.line(json ? Self.json(finding) : Self.line(finding))
        }
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
        throw Terminal.failure("\(faults) must be mended, \(warnings) should be")
    }

    private func streamToken(_ settings: Settings) -> String? {
        if let given = token ?? ProcessInfo.processInfo.environment["BELLHOP_TOKEN"] { return given }
        guard let secret = settings.jwtSecret else { return nil }
        var own = DevelopmentToken(subject: "bellhop-doctor", lifetimeSeconds: 300)
        own.claims["iss"] = settings.jwtIssuer.map(JSON.string)
        own.claims["aud"] = settings.jwtAudience.map(JSON.string)
        return own.signed(with: secret)
    }

    private static func line(_ finding: Finding) -> String {
        let sign =
            switch finding.grade {
            case .good: Terminal.paint("✓", .green)
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
