import ArgumentParser
import BellhopCalls
import Foundation

struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fill a running service with realistic, changing data.",
        usage: "bellhop demo [--school] [--url <url>] [<options>]",
        discussion: """
            Calls the HTTP API like a backend, a shop's staff and its customers, with tokens that it creates \
            from BELLHOP_JWT_SECRET. It simulates visits, bookings, walk-ins and the queue of a barber shop. The users \
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

    @Option(help: "Tenant of the data; with --school, the default is demo-school.")
    var tenant = "default"

    func run() async throws {
        let secret = try DevelopmentToken.requireSecret()
        if school { return try await playSchool(secret) }
        if let source { return try await playLists(secret, in: source) }
        let scenario = DemoScenario(baseURL: service.baseURL, secret: secret, tenant: tenant, seed: seed)
        try await reportingFailures {
            try await scenario.prepare()
            Terminal.line("Open the console as ada: \(await scenario.consoleLink(as: "ada"))")
            try await play { try await scenario.act() }
        }
    }

    private func playSchool(_ secret: String) async throws {
        let webhookSecret = ProcessInfo.processInfo.environment["BELLHOP_CHANGES_SECRET"]
        let day = SchoolDay(
            baseURL: service.baseURL, secret: secret, webhookSecret: webhookSecret,
            school: tenant == "default" ? "demo-school" : tenant, seed: seed)
        try await reportingFailures {
            let listening = try await day.prepare()
            defer { for task in listening { task.cancel() } }
            Terminal.line("Open the console as ruth, a teacher: \(await day.consoleLink(as: "ruth"))")
            try await play { try await day.act() }
            try await day.settle()
        }
    }

    private func playLists(_ secret: String, in database: String) async throws {
        let lists = try TodoLists(baseURL: service.baseURL, secret: secret, database: database, seed: seed)
        try await reportingFailures {
            let listening = try await lists.prepare()
            defer { for task in listening { task.cancel() } }
            Terminal.line("Open the console as ada: \(await lists.consoleLink())")
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
    private let secret: String
    private let tenant: String?

    /// - Parameter tenant: nil leaves it out of the tokens.
    init(baseURL: String, secret: String, tenant: String?) {
        self.baseURL = baseURL
        client = BellhopClient(baseURL: baseURL)
        self.secret = secret
        self.tenant = tenant
    }

    /// A client that sends the token.
    func with(_ token: DevelopmentToken) -> BellhopClient { client.with(token: signed(token)) }

    /// The token, of the demo's tenant.
    func signed(_ token: DevelopmentToken) -> String {
        var token = token
        token.tenant = tenant
        return token.signed(with: secret)
    }

    /// - Throws: the exit code, after printing why the demo cannot continue.
    @discardableResult
    static func expect(_ answer: ServiceAnswer, _ what: String) throws -> ServiceAnswer {
        guard answer.isSuccess else { throw Terminal.failure("could not \(what): \(answer.problem)") }
        return answer
    }
}
