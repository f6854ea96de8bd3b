import ArgumentParser
import BellhopCalls
import Foundation
import Service

struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fill a running service with realistic, changing data.",
        usage: "bellhop demo [--school] [--url <url>] [<options>]",
        discussion: """
            Calls the HTTP API like a backend, a shop's staff and its customers, with tokens that it creates \
            with the service's settings (BELLHOP_JWT_SECRET and others). It simulates visits, bookings, walk-ins and the queue of a barber shop. The users \
            also send messages and friend requests, vote for music, win points, and follow the posts of \
            the barbers.

              bellhop demo                        an action every two seconds until Ctrl-C
              bellhop demo --acts 200 --pace 0    200 actions without a pause

            It prints the address of the console. To follow a stream in another terminal:
              bellhop listen --subject ada --topics queue:demo-shop,dj:demo-shop

            With --school, it simulates a day at a small school. It sends rows as webhooks and prints, below each row, what \
            teachers, pupils, a parent and the admin receive. The service must use the tables `school`.

              bellhop serve --tables school
              bellhop demo --school
              TOKEN=$(bellhop token --subject ruth --role teacher --tenant demo-school)
              bellhop listen --token "$TOKEN"

            With --source, it creates the table `todos` in your PostgreSQL and writes to-do lists to it. It does not call \
            the service, which reads the changes from the database's log.

              bellhop demo --source postgres://admin@localhost/app    creates the table
              bellhop serve --tables todo --source postgres://admin@localhost/app
              bellhop demo --source postgres://admin@localhost/app
            """)

    @OptionGroup var service: ServiceAccess

    @Flag(help: "Simulate a day at a school, as rows of its tables.")
    var school = false

    @Option(help: ArgumentHelp("Write to-do lists to this PostgreSQL, whose log the service reads.", valueName: "url"))
    var source: String?

    @Option(help: "Seconds between two actions.")
    var pace = 2.0

    @Option(help: "Number of actions; no limit by default.")
    var acts: Int?

    @Option(help: "Random seed; the same seed gives the same actions.")
    var seed: UInt64 = 1

    @Option(help: "Tenant of the data; by default demo-school with --school, otherwise default.")
    var tenant: String?

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        let mint = try await TokenMint.load(settings)
        if school { return try await playSchool(mint) }
        if let source { return try await playLists(mint, in: source) }
        let scenario = DemoScenario(
            baseURL: service.baseURL, mint: mint, tenant: tenant ?? mint.tenant ?? "default", seed: seed)
        try await reportingFailures {
            try await scenario.prepare()
            Terminal.line("Open the console as ada: \(try await scenario.consoleLink(as: "ada"))")
            try await play { try await scenario.act() }
        }
    }

    private func playSchool(_ mint: TokenMint) async throws {
        let webhookSecret = ProcessInfo.processInfo.environment["BELLHOP_CHANGES_SECRET"]
        let day = SchoolDay(
            baseURL: service.baseURL, mint: mint, webhookSecret: webhookSecret,
            school: tenant ?? mint.tenant ?? "demo-school", seed: seed)
        try await reportingFailures {
            let listening = try await day.prepare()
            defer { for task in listening { task.cancel() } }
            Terminal.line("Open the console as ruth, a teacher: \(try await day.consoleLink(as: "ruth"))")
            try await play { try await day.act() }
            try await day.settle()
        }
    }

    private func playLists(_ mint: TokenMint, in database: String) async throws {
        let lists = try TodoLists(baseURL: service.baseURL, mint: mint, database: database, seed: seed)
        try await reportingFailures {
            let listening = try await lists.prepare()
            defer { for task in listening { task.cancel() } }
            Terminal.line("Open the console as ada: \(try await lists.consoleLink())")
            try await play { try await lists.act() }
        }
    }

    private func play(_ act: () async throws -> Void) async throws {
        var done = 0
        while done < acts ?? .max {
            try await act()
            done += 1
            if pace > 0 { try await Task.sleep(for: .seconds(pace)) }
        }
    }

    /// Turns a failure to reach the service into one line.
    private func reportingFailures(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let failure as BellhopClient.TransportFailure {
            throw Terminal.failure("\(failure) (\(service.baseURL)); start the service with `bellhop serve`")
        }
    }

    func validate() throws {
        guard pace >= 0, pace <= 3600 else { throw ValidationError("--pace must be between 0 and 3600 seconds.") }
    }
}

/// A client of the service that calls it on behalf of any person of `bellhop demo`.
struct DemoClient: Sendable {
    let baseURL: String
    private let client: BellhopClient
    private let mint: TokenMint
    private let tenant: String?

    /// - Parameter tenant: nil leaves it out of the tokens.
    init(baseURL: String, mint: TokenMint, tenant: String?) {
        self.baseURL = baseURL
        client = BellhopClient(baseURL: baseURL)
        self.mint = mint
        self.tenant = tenant
    }

    /// A client that sends the token.
    func with(_ token: DevelopmentToken) throws -> BellhopClient { client.with(token: try signed(token)) }

    /// The token, of the demo's tenant.
    func signed(_ token: DevelopmentToken) throws -> String {
        var token = token
        token.tenant = tenant
        return try mint.signed(token)
    }

    /// - Throws: the exit code, after printing why the demo cannot continue.
    @discardableResult
    static func expect(_ answer: ServiceAnswer, _ what: String) throws -> ServiceAnswer {
        guard answer.isSuccess else { throw Terminal.failure("could not \(what): \(answer.problem)") }
        return answer
    }
}
