import ArgumentParser
import BellhopClient
import Foundation

struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fill a running service with believable life and keep it moving.",
        usage: "bellhop demo [--school] [--url <url>] [<options>]",
        discussion: """
            Works through the HTTP API as a backend, a shop's staff and its customers would, with tokens it mints \
            from BELLHOP_JWT_SECRET: users and their visits, a barber shop with bookings that move, walk-ins, a queue; \
            people who write to each other and ask to be friends, choose the shop's music, win points, and follow what \
            the barbers post.

              bellhop demo                        until Ctrl-C, an act each two seconds
              bellhop demo --acts 200 --pace 0    as fast as it goes, then stop

            It prints the console's address; in another terminal, a stream:
              bellhop listen --subject ada --topics queue:demo-shop,dj:demo-shop

            With --school a small school's day passes: its rows come as webhooks, and below each stands what teachers, \
            pupils, a parent and the admin receive. The service must know the school's tables, as it does unless it is \
            started with others.

              bellhop demo --school
              TOKEN=$(bellhop token --subject ruth --role teacher --tenant demo-school)
              bellhop listen --token "$TOKEN"

            With --source it writes to-do lists into a PostgreSQL of yours, in a table `todos` that it makes, and tells \
            the service nothing: that reads the database's log.

              bellhop demo --source postgres://admin@localhost/app      makes the table, and stops
              bellhop serve --tables todo --source postgres://admin@localhost/app
              bellhop demo --source postgres://admin@localhost/app
            """)

    @OptionGroup var service: ServiceAccess

    @Flag(help: "A school's day instead, as rows of its tables.")
    var school = false

    @Option(help: ArgumentHelp("To-do lists in this PostgreSQL, whose log is read.", valueName: "url"))
    var source: String?

    @Option(help: "Seconds between two acts.")
    var pace = 2.0

    @Option(help: "Stop after so many acts.")
    var acts: Int?

    @Option(help: "Seed of all choices; the same seed makes the same choices.")
    var seed: UInt64 = 1

    @Option(help: "Tenant that the life happens in; of the school [demo-school].")
    var tenant = "default"

    func run() async throws {
        let secret = try DevelopmentToken.requireSecret()
        if school { return try await playSchool(secret) }
        if let source { return try await playLists(secret, in: source) }
        let scenario = DemoScenario(baseURL: service.baseURL, secret: secret, tenant: tenant, seed: seed)
        try await reportingFailures {
            try await scenario.prepare()
            Terminal.line("Watch it as ada in the console: \(await scenario.consoleLink(as: "ada"))")
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
            Terminal.line("Watch it as ruth, a teacher, in the console: \(await day.consoleLink(as: "ruth"))")
            try await play { try await day.act() }
            try await day.settle()
        }
    }

    private func playLists(_ secret: String, in database: String) async throws {
        let lists = try TodoLists(baseURL: service.baseURL, secret: secret, database: database, seed: seed)
        try await reportingFailures {
            let listening = try await lists.prepare()
            defer { for task in listening { task.cancel() } }
            Terminal.line("Watch it as ada in the console: \(await lists.consoleLink())")
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
            throw Terminal.failure("\(failure) (\(service.baseURL)); start it with `bellhop serve`")
        }
    }

    func validate() throws {
        guard pace >= 0, pace <= 3600 else { throw ValidationError("--pace must lie between 0 and 3600 seconds.") }
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
