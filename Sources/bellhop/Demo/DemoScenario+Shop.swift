import BellhopCalls
import Foundation
import Service
import Values

/// The part of the demo with the shop's chairs: bookings, walk-ins and service.
///
/// It runs in real time. A customer sits down when due and when the barber is free, one in each chair, and leaves when
/// the service is over. Each act first queries the shop's state, so that a restarted demo continues where the last one
/// stopped.
extension DemoScenario {
    private static let services = [("cut", 20), ("beard trim", 10), ("cut and shave", 30)]
    /// How many quarters of an hour ahead people book.
    private static let quartersAhead = 1...5
    /// How early a customer may sit down.
    private static let earlySeconds = 120.0
    /// How long a customer waits beyond the booked time before going home.
    private static let patienceSeconds = 1800.0

    /// A booking or a walk-in that is not over.
    private struct Visit {
        let id: String
        let status: String
        /// Its version and epoch, in the form that `If-Match` takes.
        let tag: String
        /// Nil for a walk-in without an account.
        let user: String?
        let barber: String
        let start: Date
        let endsAt: Date

        init?(_ json: JSON) {
            guard let id = json["id"].string, let status = json["status"].string, let version = json["version"].int,
                let epoch = json["epoch"].string, let barber = json["barberId"].string,
                let minutes = json["durationMinutes"].int,
                let start = Visit.date(json["scheduledStart"])
            else { return nil }
            self.id = id
            self.status = status
            tag = "\"\(version)-\(epoch)\""
            self.barber = barber
            self.start = start
            user = json["userId"].string
            endsAt = (Visit.date(json["startedAt"]) ?? start).addingTimeInterval(Double(minutes) * 60)
        }

        private static func date(_ json: JSON) -> Date? {
            json.string.flatMap { try? Date($0, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)) }
        }

        var customer: String { user ?? "a walk-in" }
    }

    private func openVisits() async throws -> [Visit] {
        var visits: [Visit] = []
        for status in ["in-progress", "confirmed", "pending"] {
            let path = "/v1/bookings?shopId=\(DemoScenario.shop)&status=\(status)&limit=100"
            // Called as a backend, which has no rate limit.
            let page = try expect(await backend.get(path), "list the shop's bookings")
            visits += (page.json["items"].array ?? []).compactMap(Visit.init)
        }
        return visits
    }

    /// Puts a customer into each chair, as in the middle of a day.
    func fillChairs() async throws {
        let taken = Set(try await openVisits().filter { $0.status == "in-progress" }.map(\.barber))
        for (barber, _) in DemoScenario.barbers where !taken.contains(barber) {
            guard let visit = Visit(try await takeWalkIn(to: barber).json) else { continue }
            try await move(visit, to: "in-progress")
        }
    }

    func book() async throws {
        let busy = Set(try await openVisits().compactMap(\.user))
        let free = DemoScenario.customers.filter { !busy.contains($0) }
        guard !free.isEmpty else { return try await walkIn() }
        let customer = pick(free)
        let (service, minutes) = pick(DemoScenario.services)
        let quarter = Date(timeIntervalSince1970: (Date().timeIntervalSince1970 / 900).rounded(.down) * 900)
        let start = quarter.addingTimeInterval(Double(number(in: DemoScenario.quartersAhead)) * 900)
        let isBlackCard = number(in: 0...4) == 0
        let body: JSON = [
            "shopId": .string(DemoScenario.shop), "barberId": .string(pick(DemoScenario.barbers).0),
            "service": .string(service), "scheduledStart": .string(start.ISO8601Format()),
            "durationMinutes": .integer(Int64(minutes)), "tier": isBlackCard ? "blackCard" : "standard",
        ]
        let booker = try client.with(
            DevelopmentToken(user: customer, meanings: isBlackCard ? [.tier: .string("blackCard")] : [:]))
        let answer = try await booker.post("/v1/bookings", body)
        guard answer.status != 409 else { return say("\(customer) wants a \(service), but the barber is taken.") }
        try expect(answer, "book for \(customer)")
        say("\(customer) books a \(service)\(isBlackCard ? " with the black card" : "").")
    }

    /// Adds a walk-in. The customer stays if a barber has no waiting and no due customers.
    func walkIn() async throws {
        let soon = Date().addingTimeInterval(900)
        let expected = Set(
            try await openVisits().filter { $0.status != "in-progress" && $0.start < soon }.map(\.barber))
        let idle = DemoScenario.barbers.map(\.0).filter { !expected.contains($0) }
        guard !idle.isEmpty else { return say("A walk-in sees the line and leaves.") }
        try await takeWalkIn(to: pick(idle))
        say("A walk-in joins the line.")
    }

    @discardableResult
    private func takeWalkIn(to barber: String) async throws -> ServiceAnswer {
        let (service, minutes) = pick(DemoScenario.services)
        let body: JSON = [
            "customerName": .string(pick(["Kim", "Lou", "Max", "Noa"])), "service": .string(service),
            "durationMinutes": .integer(Int64(minutes)), "barberId": .string(barber),
        ]
        return try expect(
            await staff.post("/v1/shops/\(DemoScenario.shop)/queue/entries", body), "add a walk-in")
    }

    /// Makes the next due move at the shop, one at a time.
    func moveBooking() async throws {
        let (now, visits) = (Date(), try await openVisits())
        let seated = visits.filter { $0.status == "in-progress" }
        let chairs = Set(seated.map(\.barber))
        let waiting = visits.filter { $0.status == "confirmed" }.sorted { $0.start < $1.start }
        if let served = seated.first(where: { $0.endsAt <= now }) { return try await move(served, to: "completed") }
        if let late = waiting.first(where: { $0.start.addingTimeInterval(DemoScenario.patienceSeconds) < now }) {
            return try await move(late, to: "no-show")
        }
        let early = now.addingTimeInterval(DemoScenario.earlySeconds)
        if let next = waiting.first(where: { $0.start <= early && !chairs.contains($0.barber) }) {
            return try await move(next, to: "in-progress")
        }
        guard let request = visits.first(where: { $0.status == "pending" }) else { return try await book() }
        let isTooLate = request.start < now
        try await move(
            request, to: isTooLate ? "cancelled" : pick(["confirmed", "confirmed", "confirmed", "cancelled"]))
    }

    private func move(_ visit: Visit, to status: String) async throws {
        let headers = ["If-Match": visit.tag]
        let answer = try await staff.patch("/v1/bookings/\(visit.id)", ["status": .string(status)], headers: headers)
        // Another client moved it first.
        guard answer.status != 409, answer.status != 412 else { return }
        try expect(answer, "move a booking to \(status)")
        say("\(visit.customer)'s booking: \(visit.status) → \(status).")
    }
}
