import BellhopClient
import Foundation

/// The people of `bellhop demo`, and what happens to them.
actor Stage {
    static let shop = "demo-shop"
    static let customers = ["ada", "ben", "chidi", "dana", "elif", "femi", "grace", "hugo", "ines", "jun"]
    static let barbers = [("bo", "Bo"), ("cleo", "Cleo"), ("dmitri", "Dmitri")]
    private static let hospitals = ["St. Mary", "City Hospital", "Riverside Clinic"]
    private static let visits = ["Check-up", "Dental Cleaning", "Physiotherapy", "Eye Exam"]
    private static let services = [("cut", 30), ("beard trim", 15), ("cut and shave", 45), ("color", 60)]

    private let speaker: Speaker
    /// Another device of everybody: another client, with connections of its own.
    private let secondDevice: Speaker
    private var random: DemoRandom
    private var visitNumber = 0
    private var keyNumber = 0
    /// Who talks where.
    var conversations: [(id: String, members: [String])] = []
    /// The posts that are there, the newest last.
    var posts: [(id: String, author: String)] = []
    /// The newest post that each has looked at, by its number.
    var feedsSeen: [String: Int] = [:]
    /// The bookings that still move, by id, with the version last seen.
    private var moving: [(id: String, status: String, version: Int, customer: String)] = []
    /// Ids of this play, so that a second play makes new events instead of repeating the first's.
    private let run = String(UInt32.random(in: .min ... .max), radix: 36)

    init(baseURL: String, secret: String, tenant: String, seed: UInt64) {
        let tenant = tenant == "default" ? nil : tenant
        speaker = Speaker(baseURL: baseURL, secret: secret, tenant: tenant)
        secondDevice = Speaker(baseURL: baseURL, secret: secret, tenant: tenant)
        random = DemoRandom(state: seed)
    }

    /// The shop, its barbers, a welcome for everybody, and what ties them together.
    func prepare() async throws {
        let shop: JSON = ["name": "The Cut Club", "timeZone": "Europe/Berlin"]
        try await expect(backend.put("/v1/shops/\(Stage.shop)", shop), "make the shop")
        for (id, name) in Stage.barbers {
            let barber: JSON = ["onDuty": true, "name": .string(name)]
            try await expect(staff.put("/v1/shops/\(Stage.shop)/barbers/\(id)", barber), "put \(name) on duty")
        }
        say("The Cut Club opens: \(Stage.barbers.map(\.1).joined(separator: ", ")) are on duty.")
        for customer in Stage.customers { try await event("auth.signup", for: customer, data: [:]) }
        say("\(Stage.customers.count) people sign up: \(Stage.customers.joined(separator: ", ")).")
        try await openMusic()
        try await openChallenge()
        try await meet()
        try await followBarbers()
    }

    /// One thing that happens: at the shop, or among its people.
    func act() async throws {
        switch Int.random(in: 0..<5, using: &random) {
        case 0, 1: try await actAtShop()
        case 2, 3: try await actAmongPeople()
        default: try await actByBarbers()
        }
    }

    private func actAtShop() async throws {
        switch Int.random(in: 0..<10, using: &random) {
        case 0, 1: try await visit()
        case 2: try await readSomething()
        case 3: try await login()
        case 4, 5: try await book()
        case 6: try await walkIn()
        default: try await moveBooking()
        }
    }

    private func actAmongPeople() async throws {
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1, 2: try await write()
        case 3: try await readOnSecondDevice()
        case 4: try await askToBeFriends()
        case 5: try await answerRequest()
        case 6, 7, 8, 9: try await chooseMusic()
        case 10: try await playNext()
        default: try await winPoints()
        }
    }

    private func actByBarbers() async throws {
        switch Int.random(in: 0..<10, using: &random) {
        case 0, 1: try await post()
        case 2, 3, 4: try await like()
        case 5: try await changeWhomToFollow()
        case 6: try await lookAtFeed()
        default: try await winPoints()
        }
    }

    private func visit() async throws {
        let customer = pick(Stage.customers)
        let (kind, status) = pick([
            ("created", "confirmed"), ("updated", "confirmed"), ("cancelled", "cancelled"), ("completed", "completed"),
        ])
        let type = pick(Stage.visits)
        visitNumber += 1
        let data: JSON = [
            "visitId": .string("visit-\(run)-\(visitNumber)"), "visitType": .string(type),
            "hospital": .string(pick(Stage.hospitals)), "status": .string(status),
        ]
        try await event("visit.\(kind)", for: customer, data: data)
        say("\(customer)'s \(type.lowercased()) is \(kind).")
    }

    private func login() async throws {
        let customer = pick(Stage.customers)
        let kind = pick(["login", "password_changed", "profile_updated"])
        try await event("auth.\(kind)", for: customer, data: [:])
        say("\(customer): \(kind.replacingOccurrences(of: "_", with: " ")).")
    }

    private func event(_ type: String, for user: String, data: JSON) async throws {
        visitNumber += 1
        let body: JSON = [
            "id": .string("demo-\(run)-\(visitNumber)"), "type": .string(type), "userId": .string(user), "data": data,
        ]
        try await expect(backend.post("/v1/events", body), "tell \(user) about \(type)")
    }

    private func readSomething() async throws {
        let customer = pick(Stage.customers)
        let page = try await user(customer).get("/v1/notifications?state=unread&limit=3")
        guard let id = page.json["items"].array?.first?["id"].string else { return try await visit() }
        try await expect(user(customer).patch("/v1/notifications/\(id)", ["read": true]), "read as \(customer)")
        say("\(customer) reads a notification.")
    }

    private func book() async throws {
        let customer = pick(Stage.customers)
        let (service, minutes) = pick(Stage.services)
        let quarter = Int.random(in: 1...16, using: &random)
        let start = Date(timeIntervalSince1970: (Date().timeIntervalSince1970 / 900).rounded(.down) * 900)
            .addingTimeInterval(Double(quarter) * 900)
        let isBlackCard = Int.random(in: 0..<5, using: &random) == 0
        let body: JSON = [
            "shopId": .string(Stage.shop), "barberId": .string(pick(Stage.barbers).0), "service": .string(service),
            "scheduledStart": .string(start.ISO8601Format()), "durationMinutes": .integer(Int64(minutes)),
            "tier": isBlackCard ? "blackCard" : "standard",
        ]
        let answer = try await user(customer).post("/v1/bookings", body)
        guard answer.status != 409 else { return say("\(customer) wants a \(service), but the barber is taken.") }
        try expect(answer, "book for \(customer)")
        note(answer, customer: customer)
        say("\(customer) books a \(service)\(isBlackCard ? " with the black card" : "").")
    }

    private func walkIn() async throws {
        let body: JSON = [
            "customerName": .string(pick(["Kim", "Lou", "Max", "Noa"])), "service": "cut", "durationMinutes": 30,
            "barberId": .string(pick(Stage.barbers).0),
        ]
        let answer = try await staff.post("/v1/shops/\(Stage.shop)/queue/entries", body)
        guard answer.status != 409 else { return say("Somebody walks in, sees the line, and leaves.") }
        try expect(answer, "take a walk-in")
        note(answer, customer: "a walk-in")
        say("Somebody walks in and waits.")
    }

    private func moveBooking() async throws {
        guard !moving.isEmpty else { return try await book() }
        let index = Int.random(in: moving.indices, using: &random)
        let booking = moving.remove(at: index)
        let next: String
        switch booking.status {
        case "pending": next = pick(["confirmed", "confirmed", "confirmed", "cancelled"])
        case "confirmed": next = pick(["in-progress", "in-progress", "in-progress", "no-show"])
        default: next = "completed"
        }
        let headers = ["If-Match": "\"\(booking.version)\""]
        let answer = try await staff.patch("/v1/bookings/\(booking.id)", ["status": .string(next)], headers: headers)
        // Another hand moved it first, or the barber got busy: the booking leaves this play.
        guard answer.status != 409, answer.status != 412 else { return }
        try expect(answer, "move a booking to \(next)")
        note(answer, customer: booking.customer)
        say("\(booking.customer)'s booking: \(booking.status) → \(next).")
    }

    private func note(_ answer: ServiceAnswer, customer: String) {
        let json = answer.json
        guard let id = json["id"].string, let status = json["status"].string, let version = json["version"].int,
            ["pending", "confirmed", "in-progress"].contains(status)
        else { return }
        moving.append((id, status, version, customer))
        // A play that runs for days must not collect bookings.
        if moving.count > 200 { moving.removeFirst() }
    }

    /// A key that no other call of any play has.
    func freshKey() -> String {
        keyNumber += 1
        return "demo-\(run)-key-\(keyNumber)"
    }

    var backend: BellhopClient {
        speaker.speaking(DevelopmentToken(subject: "demo-backend", role: "service_role"))
    }

    var staff: BellhopClient {
        var token = DevelopmentToken(subject: "demo-staff", role: "staff")
        token.claims = ["app_metadata": ["shop_ids": [.string(Stage.shop)]]]
        return speaker.speaking(token)
    }

    func user(_ name: String) -> BellhopClient { speaker.speaking(DevelopmentToken(subject: name)) }

    func userElsewhere(_ name: String) -> BellhopClient { secondDevice.speaking(DevelopmentToken(subject: name)) }

    @discardableResult
    func expect(_ answer: ServiceAnswer, _ what: String) throws -> ServiceAnswer {
        try Speaker.expect(answer, what)
    }

    func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &random)]
    }

    func number(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    func say(_ text: String) {
        Terminal.line("\(Terminal.paint("·", .cyan)) \(text)")
    }
}

/// SplitMix64: the choices of a play follow from its seed.
struct DemoRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
