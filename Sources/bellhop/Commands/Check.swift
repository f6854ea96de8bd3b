import ArgumentParser
import BellhopCalls
import Database
import Service

struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check the database for wrong counts and damage, or check a running service.",
        discussion: """
            Without --url: opens the database, recounts all badges, verifies the audit log, and looks for overlapping \
            bookings and, with SQLite, damage of the file. The exit code is 1 if it finds a difference.
            With --url: the exit code is 0 if the address answers 200 within three seconds. For the service on this machine, \
            `bellhop health` is simpler.

              bellhop check --database sqlite:bellhop.sqlite
              bellhop check --url https://bell.example.org/healthz
            """)

    @Option(help: "URL to check instead of the database.")
    var url: String?

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        if let url { return try await checkHealth(url) }
        let settings = try await settings.load(verifiesTokens: false)
        let differences = try SettingsLoading.explainingFailure { try Operations.check(settings) }
        for difference in differences { Terminal.line("\(Terminal.paint("✗", .red)) \(difference)") }
        guard differences.isEmpty else { throw Terminal.failure("differences: \(differences.count)") }
        var good = ["all counts are correct", "no bookings overlap", "the audit log is intact"]
        if settings.database.engine == .sqlite { good.append("the file is undamaged") }
        Terminal.line("\(Terminal.paint("✓", .green)) No difference: \(good.joined(separator: ", ")).")
    }

    private func checkHealth(_ text: String) async throws {
        let url = ServiceAccess.address(text)
        do {
            let answer = try await BellhopClient(baseURL: url, timeoutSeconds: 3).get("")
            guard answer.status == 200 else { throw Terminal.failure("\(url) answered \(answer.status)") }
        } catch let failure as BellhopClient.TransportFailure {
            throw Terminal.failure("\(failure)")
        }
    }
}
