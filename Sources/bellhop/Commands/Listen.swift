import ArgumentParser
import BellhopClient
import Foundation

struct Listen: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Follow a user's stream in the terminal, resuming by itself.",
        discussion: """
            Prints each event once, in order, however often the connection breaks. Without a token it mints one for \
            --subject with BELLHOP_JWT_SECRET.

              bellhop listen --subject ada
              bellhop listen https://bell.example.org --token "$TOKEN" --topics queue:s1
              bellhop listen --subject ada --json | jq .data
            """)

    @Argument(help: "The service (or BELLHOP_URL) [http://127.0.0.1:8080].")
    var url: String?

    @Option(help: "Bearer token (or BELLHOP_TOKEN).")
    var token: String?

    @Option(help: "Mint a token for this user instead.")
    var subject: String?

    @Option(help: "Shared topics, separated by commas: queue:s1,dj:s1,leaderboard:c1.")
    var topics: String?

    @Option(help: "Start after this event instead of now.")
    var lastEventId: String?

    @Flag(help: "One JSON object a line: {id, event, data}.")
    var json = false

    @Option(help: "Tries in a row that may fail before giving up.")
    var tries = 10

    func run() async throws {
        var access = try ServiceAccess.parse([])
        access.url = url
        let client = BellhopClient(baseURL: access.baseURL, token: try provider())
        let topics = topics.map { $0.split(separator: ",").map(String.init) } ?? []
        var options = BellhopStream.Options(topics: topics, lastEventID: lastEventId)
        options.reconnection.triesMax = tries
        let isQuiet = json
        let address = access.baseURL
        options.onConnection = { Listen.report($0, address: address, isQuiet: isQuiet) }
        do {
            for try await event in client.events(options) { Terminal.line(json ? jsonLine(event) : line(event)) }
        } catch {
            throw Terminal.failure("\(error)")
        }
    }

    func validate() throws {
        guard tries >= 1 else { throw ValidationError("--tries must be at least 1.") }
        guard token == nil || subject == nil else { throw ValidationError("Give --token or --subject, not both.") }
    }

    private func provider() throws -> BellhopClient.TokenProvider {
        if let token = token ?? (subject == nil ? ProcessInfo.processInfo.environment["BELLHOP_TOKEN"] : nil) {
            return .fixed(token)
        }
        guard let subject else {
            throw Terminal.failure("a stream belongs to somebody: give --token, BELLHOP_TOKEN or --subject", code: 64)
        }
        let secret = try DevelopmentToken.requireSecret()
        return BellhopClient.TokenProvider { DevelopmentToken(subject: subject).signed(with: secret) }
    }

    private static func report(_ change: BellhopStream.ConnectionChange, address: String, isQuiet: Bool) {
        guard !isQuiet else { return }
        switch change {
        case .connected:
            Terminal.note(Terminal.paint("● connected to \(address)", .green))
        case .waiting(let reason, let milliseconds, _):
            let seconds = String(format: "%.1f", Double(milliseconds) / 1000)
            Terminal.note(Terminal.paint("○ \(Terminal.safe(reason)); trying again in \(seconds) s", .yellow))
        }
    }

    private func jsonLine(_ event: ServerSentEvent) -> String {
        JSON.object(["id": .string(event.id), "event": .string(event.name), "data": event.json]).text
    }

    private func line(_ event: ServerSentEvent) -> String {
        let time = Terminal.paint(Listen.clockTime(Date()), .faint)
        let name = event.name.padding(toLength: max(22, event.name.count), withPad: " ", startingAt: 0)
        let place = Terminal.paint(Terminal.safe(event.id), .faint)
        let text = "\(time)  \(Terminal.paint(Terminal.safe(name), color(event.name)))"
        return "\(text) \(Terminal.safe(summary(event)))  \(place)"
    }

    private static func clockTime(_ date: Date) -> String {
        let format = DateFormatter()
        format.dateFormat = "HH:mm:ss"
        return format.string(from: date)
    }

    private func color(_ name: String) -> Terminal.Color {
        switch name.prefix(while: { $0 != ":" }) {
        case "stream": .faint
        case "badges": .magenta
        case "notification": .cyan
        case "booking": .blue
        case "queue": .green
        case "message", "conversation", "request": .magenta
        case "dj", "track": .green
        case "leaderboard": .red
        case "feed", "follow": .blue
        case "query", "table": .yellow
        default: .bold
        }
    }

    /// A summary of an event in one line; its data if there is no summary for it.
    private func summary(_ event: ServerSentEvent) -> String {
        let json = event.json
        switch event.name {
        case "badges:update", "stream:ready":
            let counts = event.name == "stream:ready" ? json["badges"] : json
            guard let badges = BadgeCounts(counts) else { return event.data }
            return
                "\(badges.total) waiting: bell \(badges.bell), requests \(badges.requests), messages \(badges.messages)"
        case "notification:created":
            guard let title = json["title"].string else { return event.data }
            return "\(json["priority"].string ?? "") · \(title): \(json["message"].string ?? "")"
        case "booking:status_change":
            guard let status = json["status"].string else { return event.data }
            return "\(json["bookingId"].string ?? "") \(json["previousStatus"].string ?? "new") → \(status)"
        case "queue:update":
            guard let length = json["queueLength"].int else { return event.data }
            let wait = json["estimatedWaitTimes"]["standard"].int ?? 0
            return
                "\(json["shopId"].string ?? ""): \(length) waiting, about \(wait) min (\(json["state"].string ?? ""))"
        case "stream:closing", "stream:resync":
            return json["reason"].string ?? event.data
        default:
            return FeatureEvents.summary(event) ?? TableEvents.summary(event) ?? event.data
        }
    }
}
