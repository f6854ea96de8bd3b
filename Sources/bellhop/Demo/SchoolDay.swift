import BellhopCalls
import Foundation
import Service
import Values

/// The scenario of `bellhop demo --school`: a day at a small school. Its rows arrive as its database's webhooks would
/// send them, and the streams of several people are shown.
actor SchoolDay {
    struct Person: Sendable {
        let id: String
        let role: String
        let color: Terminal.Color
        var isPupil = false

        var token: DevelopmentToken {
            DevelopmentToken(
                user: id, role: role, meanings: isPupil ? [.student: .string(id)] : [:], lifetimeSeconds: 86_400)
        }
    }

    /// The row of a pupil.
    private struct Pupil {
        let id: String
        var room: String
        var points = 0
    }

    static let people = [
        Person(id: "ruth", role: "teacher", color: .green), Person(id: "omar", role: "teacher", color: .blue),
        Person(id: "mia", role: "student", color: .yellow, isPupil: true),
        Person(id: "noah", role: "student", color: .yellow, isPupil: true),
        Person(id: "mias-mum", role: "parent", color: .magenta), Person(id: "dora", role: "admin", color: .red),
    ]
    private static let rooms = [("3a", "ruth"), ("3b", "omar")]
    private static let parents = [("mias-mum", "mia"), ("kofis-dad", "kofi")]
    private static let stickers = ["star", "rocket", "good friend", "careful reader"]
    private static let homework = ["Fractions, page 12", "Read chapter 3", "Draw a map", "Learn the poem"]
    /// The time until the last event of a scene has arrived: the window of one second, with some allowance.
    private static let windowSeconds = 1.4

    private let client: DemoClient
    private let school: String
    private let webhookSecret: String?
    private var random: SplitMix64
    private var pupils =
        ["mia", "noah", "lea", "ben", "aya", "tom"].map { Pupil(id: $0, room: "3a") }
        + ["kofi", "ida", "sam", "eva", "max", "zoe"].map { Pupil(id: $0, room: "3b") }
    private var minute = 8 * 60
    private var rowNumber = 0
    private var scene = 0
    private let run = String(UInt32.random(in: .min ... .max), radix: 36)

    init(baseURL: String, mint: TokenMint, webhookSecret: String?, school: String, seed: UInt64) {
        client = DemoClient(baseURL: baseURL, mint: mint, tenant: school)
        self.school = school
        self.webhookSecret = webhookSecret
        random = SplitMix64(seed: seed)
    }

    // MARK: The morning

    /// Sends the rows that define the memberships; then everybody opens the app.
    func prepare() async throws -> [Task<Void, Never>] {
        var rows = Self.rooms.map { room, teacher in
            insert("classes", ["id": .string(room), "teacher_id": .string(teacher), "name": .string("Class \(room)")])
        }
        rows += pupils.map { insert("students", columns(of: $0)) }
        rows += Self.parents.map { parent, child in
            insert("parent_students", ["parent_id": .string(parent), "student_id": .string(child)])
        }
        try await send(rows)
        say("\(rows.count) rows define the memberships: two classes, \(pupils.count) pupils, two parents.")
        var listening: [Task<Void, Never>] = []
        for person in Self.people { listening.append(try await open(person)) }
        say("\(Self.people.map { "\($0.id) (\($0.role))" }.joined(separator: ", ")) open the app.")
        return listening
    }

    /// Returns a link to the console that shows what one of the people sees, valid for a day.
    func consoleLink(as id: String) throws -> String {
        guard let person = Self.people.first(where: { $0.id == id }) else { return client.baseURL }
        let backend = DevelopmentToken(user: "school-database", role: "service_role", lifetimeSeconds: 86_400)
        return try "\(client.baseURL)/#token=\(client.signed(person.token))&backend=\(client.signed(backend))"
    }

    private func open(_ person: Person) async throws -> Task<Void, Never> {
        let client = try self.client.with(person.token)
        let (ready, isReady) = AsyncStream<String>.makeStream()
        let task = Task {
            do {
                for try await event in client.events() {
                    if event.name == "stream:ready" { isReady.yield(event.json["streamId"].string ?? "") }
                    Self.show(event, to: person)
                }
            } catch {
                Self.print(person, Terminal.paint("\(error)", .faint))
            }
            isReady.finish()
        }
        var streams = ready.makeAsyncIterator()
        guard let stream = await streams.next() else {
            throw Terminal.failure("could not open a stream for \(person.id)")
        }
        if person.role == "student" {
            let homework: JSON = ["id": "mine", "table": "homework", "select": ["title", "student_id"]]
            let subscription: JSON = ["tables": [homework]]
            try DemoClient.expect(
                try await client.put("/v1/streams/\(stream)/subscriptions", subscription), "subscribe to homework")
        }
        return task
    }

    // MARK: The day

    /// Plays the next of a day's seven scenes.
    func act() async throws {
        defer { scene = (scene + 1) % 7 }
        switch scene {
        case 0: try await rush()
        case 1: try await sticker()
        case 2: try await session()
        case 3: try await assignment()
        case 4: try await move()
        case 5: try await exchange()
        default: try await stranger()
        }
    }

    /// Waits until everything sent has been delivered.
    func settle() async throws { try await Task.sleep(for: .seconds(Self.windowSeconds)) }

    private func rush() async throws {
        minute = 8 * 60 + 2
        say("Morning rush: dora records the attendance of \(pupils.count) pupils, one row each.")
        try await send(
            pupils.map {
                let status = pick(["present", "present", "present", "late"])
                return newRow("attendance", of: $0, ["marked_by": "dora", "status": .string(status)])
            })
    }

    private func sticker() async throws {
        let sticker = pick(Self.stickers)
        say(
            "ruth gives mia the sticker \(sticker): a row of student_stickers and an update of mia's points.", after: 70
        )
        let points = Int.random(in: 1...5, using: &random)
        let before = pupils[0]
        pupils[0].points += points
        let award: [String: JSON] = [
            "awarded_by": "ruth", "sticker": .string(sticker), "points": .integer(Int64(points)),
        ]
        try await send([
            newRow("student_stickers", of: before, award),
            update("students", from: columns(of: before), to: columns(of: pupils[0])),
        ])
    }

    private func session() async throws {
        let pupil = pick(pupils.filter { $0.room == "3b" })
        say("omar logs a reading session with \(pupil.id).", after: 45)
        try await send([newRow("sessions", of: pupil, ["teacher_id": "omar", "score": 4])])
    }

    private func assignment() async throws {
        let title = pick(Self.homework)
        let room = pupils.filter { $0.room == "3a" }
        say("ruth sets homework for 3a: \(title).", after: 80)
        try await send(room.map { newRow("homework", of: $0, ["teacher_id": "ruth", "title": .string(title)]) })
    }

    private func move() async throws {
        let before = pupils[1]
        pupils[1].room = before.room == "3a" ? "3b" : "3a"
        say(
            "noah moves from \(before.room) to \(pupils[1].room): the lists of both teachers and noah's keys change.",
            after: 60
        )
        try await send([update("students", from: columns(of: before), to: columns(of: pupils[1]))])
    }

    /// Assigns a class to another teacher for a lesson, and back.
    private func exchange() async throws {
        func row(_ teacher: String) -> [String: JSON] {
            ["id": "3a", "teacher_id": .string(teacher), "name": "Class 3a"]
        }
        say("omar takes over class 3a for a lesson: ruth's open stream no longer receives its rows.", after: 30)
        try await send([update("classes", from: row("ruth"), to: row("omar"))])
        try await settle()
        say("ruth takes class 3a back.", after: 45)
        try await send([update("classes", from: row("omar"), to: row("ruth"))])
    }

    private func stranger() async throws {
        let answer = try await deliver([
            [
                "type": "INSERT", "schema": "public", "table": "student_stickers", "old_record": nil,
                "record": ["id": .string(rowID()), "school_id": "another-school", "student_id": "mia"],
            ]
        ])
        try DemoClient.expect(answer, "send a row of another school")
        let outcome = answer.json["rejected"][0]["reason"].string ?? "accepted, and not delivered to any user here"
        say("A sticker for a pupil mia of another school: \(outcome).", after: 10)
    }

    // MARK: Rows

    private func columns(of pupil: Pupil) -> [String: JSON] {
        [
            "id": .string(pupil.id), "class_id": .string(pupil.room), "points": .integer(Int64(pupil.points)),
            "level": .integer(Int64(1 + pupil.points / 10)),
        ]
    }

    private func rowID() -> String {
        rowNumber += 1
        return "\(run)-\(rowNumber)"
    }

    private func insert(_ table: String, _ row: [String: JSON]) -> JSON {
        webhook("INSERT", table, record: row, oldRecord: nil)
    }

    /// Returns a new row about a pupil.
    private func newRow(_ table: String, of pupil: Pupil, _ columns: [String: JSON]) -> JSON {
        insert(table, columns.merging(["id": .string(rowID()), "student_id": .string(pupil.id)]) { $1 })
    }

    private func update(_ table: String, from old: [String: JSON], to row: [String: JSON]) -> JSON {
        webhook("UPDATE", table, record: row, oldRecord: old)
    }

    /// Returns a change in the format of Supabase's Database Webhooks.
    private func webhook(_ type: String, _ table: String, record: [String: JSON], oldRecord: [String: JSON]?) -> JSON {
        func row(_ columns: [String: JSON]) -> JSON {
            .object(columns.merging(["school_id": .string(school)]) { $1 })
        }
        return [
            "type": .string(type), "schema": "public", "table": .string(table), "record": row(record),
            "old_record": oldRecord.map(row) ?? .null,
        ]
    }

    private func send(_ rows: [JSON]) async throws {
        let answer = try DemoClient.expect(await deliver(rows), "send \(rows.count) rows")
        guard let refused = answer.json["rejected"][0]["reason"].string else { return }
        throw Terminal.failure("a row was rejected: \(refused). Check that the service runs with --tables school.")
    }

    /// Posts rows with the feed's secret if there is one, otherwise as a backend of the school.
    private func deliver(_ rows: [JSON]) async throws -> ServiceAnswer {
        let backend = DevelopmentToken(user: "school-database", role: "service_role")
        let headers = webhookSecret.map { ["X-Webhook-Secret": $0] } ?? [:]
        return try await client.with(backend).post("/v1/changes", .array(rows), headers: headers)
    }

    private func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &random)]
    }

    // MARK: Output

    private func say(_ text: String, after minutes: Int = 0) {
        minute += minutes
        let time = String(format: "%02d:%02d", minute / 60 % 24, minute % 60)
        Terminal.line("\(Terminal.paint(time, .faint)) \(Terminal.paint("·", .cyan)) \(text)")
    }

    private static func show(_ event: ServerSentEvent, to person: Person) {
        switch event.name {
        case "query:invalidate":
            let causes = event.json["causes"].array ?? []
            // A client that has already shown its own write need not fetch it again.
            let isEcho =
                event.json["causesComplete"].bool == true && causes.allSatisfy { $0["actorId"].string == person.id }
            let text = EventSummary.of(event) ?? event.data
            print(person, Terminal.safe(text) + (isEcho ? Terminal.paint("  own echo", .faint) : ""))
        case "table:change":
            print(person, Terminal.paint("row  ", .bold) + Terminal.safe(EventSummary.of(event) ?? event.data))
        case "stream:scope":
            let keys = (event.json["scope"].array ?? []).compactMap(\.string).filter { $0 != "everyone" }
            print(person, Terminal.paint("now sees  ", .bold) + Terminal.safe(keys.joined(separator: "  ")))
        case "stream:resync": print(person, "must fetch everything again")
        default: break
        }
    }

    private static func print(_ person: Person, _ text: String) {
        let name = person.id.padding(toLength: 9, withPad: " ", startingAt: 0)
        let role = person.role.padding(toLength: 8, withPad: " ", startingAt: 0)
        Terminal.line("        \(Terminal.paint(role + name, person.color)) \(text)")
    }
}
