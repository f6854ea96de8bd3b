import ArgumentParser
import BellhopCalls
import Foundation
import Service

struct Listen: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Follow a user's stream in the terminal, with automatic resume.",
        usage: "bellhop listen [<url>] (--subject <name> | --token <token>) [<options>]",
        discussion: """
            Prints each event once and in order, even after connection losses. Without a token, it creates one for \
            --subject from BELLHOP_JWT_SECRET.

              bellhop listen --subject ada
              bellhop listen https://bell.example.org --token "$TOKEN" --topics queue:s1
              bellhop listen --subject ada --json | jq .data
            """)

    @Argument(
        help: ArgumentHelp("URL of the service (or --url, or BELLHOP_URL) [http://127.0.0.1:8080].", valueName: "url"))
    var address: String?

    @Option(help: "The service, as in the other commands.")
    var url: String?

    @Option(help: "Bearer token (or BELLHOP_TOKEN).")
    var token: String?

    @Option(help: "Create a token for this user instead.")
    var subject: String?

    @Option(help: "Shared topics, separated by commas: queue:s1,dj:s1,leaderboard:c1.")
    var topics: String?

    @Option(help: "Id of the event to start after, instead of now.")
    var lastEventId: String?

    @Flag(help: "Print one JSON object per line: {id, event, data}.")
    var json = false

    @Option(help: "Number of failed attempts in a row before giving up.")
    var tries = 10

    func run() async throws {
        var access = try ServiceAccess.parse([])
        access.url = address ?? url
        let client = BellhopClient(baseURL: access.baseURL, token: try await provider())
        let topics = topics.map { $0.split(separator: ",").map(String.init) } ?? []
        var options = BellhopStream.Options(topics: topics, lastEventID: lastEventId)
        options.limits.triesMax = tries
        let service = access.baseURL
        if !json { options.onConnection = { Listen.report($0, address: service) } }
        do {
            for try await event in client.events(options) { Terminal.line(json ? jsonLine(event) : line(event)) }
        } catch {
            throw Terminal.failure("\(error)")
        }
    }

    func validate() throws {
        guard tries >= 1 else { throw ValidationError("--tries must be at least 1.") }
        guard address == nil || url == nil else {
            throw ValidationError("The address is given twice: as an argument, and as --url.")
        }
        guard token == nil || subject == nil else { throw ValidationError("Give --token or --subject, not both.") }
    }

    private func provider() async throws -> BellhopClient.TokenProvider {
        if let token = token ?? (subject == nil ? ProcessInfo.processInfo.environment["BELLHOP_TOKEN"] : nil) {
            return .fixed(token)
        }
        guard let subject else {
            throw Terminal.failure(
                "a stream requires a user: pass --token or --subject, or set BELLHOP_TOKEN", code: 64)
        }
        let mint = try await TokenMint.load(SettingsFlags.parse([]))
        return BellhopClient.TokenProvider { try mint.signed(DevelopmentToken(user: subject)) }
    }

    private static func report(_ connection: BellhopStream.Connection, address: String) {
        switch connection.status {
        case .live:
            Terminal.note(Terminal.paint("● connected to \(address)", .green))
        case .waiting:
            let seconds = String(format: "%.1f", connection.retryAt.map { max(0, Date().distance(to: $0)) } ?? 0)
            let why = connection.reason?.detail ?? connection.reason?.code ?? "lost"
            Terminal.note(Terminal.paint("○ \(Terminal.safe(why)); trying again in \(seconds) s", .yellow))
        default: break
        }
    }

    private func jsonLine(_ event: ServerSentEvent) -> String {
        JSON.object(["id": .string(event.id), "event": .string(event.name), "data": event.json]).text
    }

    private func line(_ event: ServerSentEvent) -> String {
        let clock = DateFormatter()
        clock.dateFormat = "HH:mm:ss"
        let time = Terminal.paint(clock.string(from: Date()), .faint)
        let name = event.name.padding(toLength: max(22, event.name.count), withPad: " ", startingAt: 0)
        let place = Terminal.paint(Terminal.safe(event.id), .faint)
        let text = "\(time)  \(Terminal.paint(Terminal.safe(name), color(event.name)))"
        return "\(text) \(Terminal.safe(EventSummary.of(event) ?? event.data))  \(place)"
    }

    private func color(_ name: String) -> Terminal.Color {
        switch name.prefix(while: { $0 != ":" }) {
        case "stream": .faint
        case "notification": .cyan
        case "booking", "feed", "follow": .blue
        case "queue", "dj", "track": .green
        case "badges", "message", "conversation", "request": .magenta
        case "leaderboard": .red
        case "query", "table": .yellow
        default: .bold
        }
    }
}
