import BellhopCalls
import Foundation
import Service
import Values

/// The scenario of `bellhop demo`: the people of a barber shop and their actions.
actor DemoScenario {
    static let shop = "demo-shop"
    static let customers = ["ada", "ben", "chidi", "dana", "elif", "femi", "grace", "hugo", "ines", "jun"]
    static let barbers = [("bo", "Bo"), ("cleo", "Cleo"), ("dmitri", "Dmitri")]
    private static let hospitals = ["St. Mary", "City Hospital", "Riverside Clinic"]
    private static let visits = ["Check-up", "Dental Cleaning", "Physiotherapy", "Eye Exam"]

    let client: DemoClient
    /// The second device of every person: another client with its own connections.
    private let secondDevice: DemoClient
    private var random: SplitMix64
    private var visitNumber = 0
    private var keyNumber = 0
    /// The open conversations with their members.
    var conversations: [(id: String, members: [String])] = []
    /// The existing posts, the newest last.
    var posts: [(id: String, author: String)] = []
    /// The number of the newest post that each customer has seen.
    var feedsSeen: [String: Int] = [:]
    /// A prefix of ids, so that a second demo sends new events instead of repeating the first's.
    private let run = String(UInt32.random(in: .min ... .max), radix: 36)

    init(baseURL: String, mint: TokenMint, tenant: String, seed: UInt64) {
        let tenant = tenant == "default" ? nil : tenant
        client = DemoClient(baseURL: baseURL, mint: mint, tenant: tenant)
        secondDevice = DemoClient(baseURL: baseURL, mint: mint, tenant: tenant)
        random = SplitMix64(seed: seed)
    }

    /// Creates the shop, its barbers and customers, and their relations.
    func prepare() async throws {
        let shop: JSON = ["name": "The Cut Club", "timeZone": "Europe/Berlin"]
        try await expect(backend.put("/v1/shops/\(DemoScenario.shop)", shop), "create the shop")
        for (id, name) in DemoScenario.barbers {
            let barber: JSON = ["onDuty": true, "name": .string(name)]
            try await expect(staff.put("/v1/shops/\(DemoScenario.shop)/barbers/\(id)", barber), "put \(name) on duty")
        }
        say("The Cut Club opens. On duty: \(DemoScenario.barbers.map(\.1).joined(separator: ", ")).")
        for customer in DemoScenario.customers { try await event("auth.signup", for: customer, data: [:]) }
        say("\(DemoScenario.customers.count) users sign up: \(DemoScenario.customers.joined(separator: ", ")).")
        try await fillChairs()
        try await openMusic()
        try await openChallenge()
        try await meet()
        try await followBarbers()
    }

    /// Performs one random act: at the shop, or among its people.
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
        case 6: try await viewFeed()
        default: try await winPoints()
        }
    }

    private func visit() async throws {
        let customer = pick(DemoScenario.customers)
        let (kind, status) = pick([
            ("created", "confirmed"), ("updated", "confirmed"), ("cancelled", "cancelled"), ("completed", "completed"),
        ])
        let type = pick(DemoScenario.visits)
        visitNumber += 1
        let data: JSON = [
            "visitId": .string("visit-\(run)-\(visitNumber)"), "visitType": .string(type),
            "hospital": .string(pick(DemoScenario.hospitals)), "status": .string(status),
        ]
        try await event("visit.\(kind)", for: customer, data: data)
        say("\(customer)'s \(type.lowercased()) is \(kind).")
    }

    private func login() async throws {
        let customer = pick(DemoScenario.customers)
        let kind = pick(["login", "password_changed", "profile_updated"])
        try await event("auth.\(kind)", for: customer, data: [:])
        say("\(customer): \(kind.replacingOccurrences(of: "_", with: " ")).")
    }

    private func event(_ type: String, for user: String, data: JSON) async throws {
        visitNumber += 1
        let body: JSON = [
            "id": .string("demo-\(run)-\(visitNumber)"), "type": .string(type), "userId": .string(user), "data": data,
        ]
        try await expect(backend.post("/v1/events", body), "send \(user) the event \(type)")
    }

    private func readSomething() async throws {
        let customer = pick(DemoScenario.customers)
        let page = try await user(customer).get("/v1/notifications?state=unread&limit=3")
        guard let id = page.json["items"].array?.first?["id"].string else { return try await visit() }
        try await expect(user(customer).patch("/v1/notifications/\(id)", ["read": true]), "read as \(customer)")
        say("\(customer) reads a notification.")
    }

    /// Returns a unique idempotency key.
    func freshKey() -> String {
        keyNumber += 1
        return "demo-\(run)-key-\(keyNumber)"
    }

    var backend: BellhopClient {
        get throws { try client.with(DevelopmentToken(user: "demo-backend", role: "service_role")) }
    }

    var staff: BellhopClient {
        get throws {
            try client.with(
                DevelopmentToken(
                    user: "demo-staff", role: "staff", meanings: [.shops: .array([.string(DemoScenario.shop)])]))
        }
    }

    /// Returns a link to the console that shows the shop as one of the customers sees it, valid for a week, and can
    /// send test events.
    func consoleLink(as customer: String) throws -> String {
        let week = 7 * 86_400
        let token = try client.signed(DevelopmentToken(user: customer, lifetimeSeconds: week))
        let backend = try client.signed(
            DevelopmentToken(user: "demo-backend", role: "service_role", lifetimeSeconds: week))
        return "\(client.baseURL)/#token=\(token)&shop=\(DemoScenario.shop)&backend=\(backend)"
    }

    func user(_ name: String) throws -> BellhopClient { try client.with(DevelopmentToken(user: name)) }

    func secondDeviceOf(_ name: String) throws -> BellhopClient { try secondDevice.with(DevelopmentToken(user: name)) }

    @discardableResult
    func expect(_ answer: ServiceAnswer, _ what: String) throws -> ServiceAnswer {
        try DemoClient.expect(answer, what)
    }

    func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &random)]
    }

    func number(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    func say(_ text: String) {
        Terminal.line("\(Terminal.paint("·", .cyan)) \(text)")
    }
}
