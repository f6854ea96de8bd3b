import ArgumentParser
import BellhopClient
import Service

struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Recount every badge and look for damage; or ask a running service for its health.",
        discussion: """
            Without --url: opens the database, recounts all badges from their notifications, looks for bookings that \
            overlap and for damage of the file. Exit code 1 if anything differs.
            With --url: exit code 0 if the address answers 200 within three seconds; `bellhop health` asks the service \
            on this machine, with less effort.

              bellhop check --database sqlite:bellhop.sqlite
              bellhop check --url https://bell.example.org/healthz
            """)

    @Option(help: "Ask this address instead of opening the database.")
    var url: String?

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        if let url { return try await askHealth(url) }
        let settings = try await settings.load(verifiesTokens: false)
        let differences = try SettingsLoading.explainingFailure { try Operations.check(settings) }
        for difference in differences { Terminal.line("\(Terminal.paint("✗", .red)) \(difference)") }
        guard differences.isEmpty else { throw Terminal.failure("\(differences.count) differences") }
        Terminal.line("\(Terminal.paint("✓", .green)) Every count is exact, no booking overlaps, the file is sound.")
    }

    private func askHealth(_ text: String) async throws {
        let url = ServiceAccess.address(text)
        do {
            let answer = try await BellhopClient(baseURL: url, timeoutSeconds: 3).get("")
            guard answer.status == 200 else { throw Terminal.failure("\(url) answered \(answer.status)") }
        } catch let failure as BellhopClient.TransportFailure {
            throw Terminal.failure("\(failure)")
        }
    }
}
