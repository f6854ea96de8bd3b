import BellhopCalls
import Database
import Foundation
import Service
import Values

/// The scenario of `bellhop demo --source`: two people's to-do lists in a real PostgreSQL. Nothing notifies the
/// service; it reads the database's own log. The demo shows the events that the two people receive.
actor TodoLists {
    private struct Person: Sendable {
        let id: String
        let color: Terminal.Color
    }

    private static let people = [Person(id: "ada", color: .green), Person(id: "ben", color: .blue)]
    private static let titles = ["Milk", "Call the dentist", "Water the plants", "Fix the bike", "Write to grandma"]

    private let client: DemoClient
    private let database: SourceConnection
    private let url: String
    private var random: SplitMix64
    private var scene = 0

    /// - Parameter database: the URL of a login that may create tables, as for `bellhop source setup`.
    init(baseURL: String, mint: TokenMint, database url: String, seed: UInt64) throws {
        client = DemoClient(baseURL: baseURL, mint: mint, tenant: nil)
        self.url = url
        random = SplitMix64(seed: seed)
        do {
            database = try SourceConnection(DatabaseURL(url))
        } catch {
            throw Terminal.failure("\(error)", code: 78)
        }
    }

    /// Creates and publishes the table, and opens the two people's streams once the service reads the log.
    func prepare() async throws -> [Task<Void, Never>] {
        try run(
            """
            CREATE TABLE IF NOT EXISTS todos (
                id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id text NOT NULL, title text NOT NULL,
                done boolean NOT NULL DEFAULT false)
            """)
        // A deleted row belongs to its owner, and only the whole old row names the owner.
        try run("ALTER TABLE todos REPLICA IDENTITY FULL")
        do {
            for remark in try SourceSetup(of: TablesPage(named: "todo"), role: nil).run(at: url) { say("! \(remark)") }
        } catch {
            throw Terminal.failure("\(error)", code: 78)
        }
        try await requireReading()
        var listening: [Task<Void, Never>] = []
        for person in Self.people { listening.append(try await open(person)) }
        say("ada and ben open their lists.")
        return listening
    }

    private func requireReading() async throws {
        let backend = try client.with(DevelopmentToken(user: "demo", role: "service_role"))
        let metrics = try? await backend.get("/metrics").text
        guard metrics?.contains("\nbellhop_source_connected 1") == true else {
            throw Terminal.failure(
                """
                the table exists and is published, but no service at \(client.baseURL) reads it: start \
                `bellhop serve --tables todo --source URL`, then run this again
                """)
        }
    }

    func consoleLink() throws -> String {
        try "\(client.baseURL)/#token=\(client.signed(DevelopmentToken(user: "ada", lifetimeSeconds: 86_400)))"
    }

    private func open(_ person: Person) async throws -> Task<Void, Never> {
        let client = try self.client.with(DevelopmentToken(user: person.id, lifetimeSeconds: 86_400))
        let (ready, isReady) = AsyncStream<String>.makeStream()
        let task = Task {
            do {
                for try await event in client.events() {
                    if event.name == "stream:ready" { isReady.yield(event.json["streamId"].string ?? "") }
                    guard event.name != "stream:ready", event.name != "badges:update" else { continue }
                    let text = EventSummary.of(event) ?? event.data
                    let name = person.id.padding(toLength: 6, withPad: " ", startingAt: 0)
                    Terminal.line("        \(Terminal.paint(name, person.color)) \(event.name)  \(Terminal.safe(text))")
                }
            } catch {
                Terminal.line("        \(Terminal.paint("\(person.id): \(error)", .faint))")
            }
            isReady.finish()
        }
        var streams = ready.makeAsyncIterator()
        guard let stream = await streams.next() else {
            throw Terminal.failure("could not open a stream for \(person.id)")
        }
        try DemoClient.expect(
            try await client.put("/v1/streams/\(stream)/subscriptions", ["tables": [["table": "todos"]]]),
            "subscribe to todos")
        return task
    }

    // MARK: Scenes

    /// Plays the next of five scenes, each one transaction.
    func act() throws {
        defer { scene = (scene + 1) % 5 }
        let title = Self.titles[Int.random(in: Self.titles.indices, using: &random)]
        switch scene {
        case 0:
            say("ada writes “\(title)”: INSERT.")
            try run("INSERT INTO todos (user_id, title) VALUES ('ada', $1)", title)
        case 1:
            say("ben writes three in one transaction: INSERT.")
            try run("INSERT INTO todos (user_id, title) SELECT 'ben', unnest($1::text[])", "{Bread,Butter,Jam}")
        case 2:
            say("ada ticks everything off: UPDATE.")
            try run("UPDATE todos SET done = true WHERE user_id = 'ada' AND NOT done")
        case 3:
            say("A transaction with a row and an event is rolled back: no stream receives either of them.")
            try run("BEGIN")
            try run("INSERT INTO todos (user_id, title) VALUES ('ada', 'Never mind')")
            try run("SELECT bellhop.publish('todo:cheer', \"to\" => array['user:ada'])")
            try run("ROLLBACK")
        default:
            say(
                "One transaction deletes the finished to-dos and sends their owner an event: DELETE and bellhop.publish."
            )
            try run("BEGIN")
            try run(
                """
                SELECT bellhop.publish('todo:cheer', "to" => array['user:' || user_id],
                    data => jsonb_build_object('done', count(*)))
                FROM todos WHERE done GROUP BY user_id
                """)
            try run("DELETE FROM todos WHERE done")
            try run("COMMIT")
        }
    }

    private func run(_ statement: String, _ values: String...) throws {
        do {
            _ = try database.ask(statement, values)
        } catch {
            throw Terminal.failure("\(error)", code: 78)
        }
    }

    private func say(_ text: String) { Terminal.line("\(Terminal.paint("·", .cyan)) \(text)") }
}
