import BellhopClient
import TestSupport
import Testing
import Values

@testable import Service

/// R-16: `requests` counts open requests that the user has not seen, from the rows of the requests themselves.
/// The state of their notifications does not matter.
@Suite(.timed) struct OpenRequestsTests {
    fileprivate static let asking = Bellhop.CreateRequestBody(kind: .friend, toUserId: "ben")

    /// Three users send requests, followed by more notifications than are stored.
    @Test func openRequests_areCounted_despiteEvictions() async throws {
        let service = try TestService.start(["notificationsKept": "10"], at: TestService.morning)
        var ids: [String] = []
        for user in ["ana", "cem", "dora"] { ids.append(try await service.ask(Self.asking, as: user)) }
        for index in 0..<50 {
            let event = NotificationsTests.event("e\(index)", .visitUpdated, to: "ben")
            #expect(try await service.publish(event).status == 201)
        }
        #expect(try await service.all(of: "ben").count == 10)
        #expect(try await service.badges(of: "ben") == [0, 3, 10, 13])
        try service.expectExactCounts()

        // The badge is cleared although the notifications are evicted.
        let ben = service.client("ben")
        let seen = try await ben.seeRequests(.init(seenUpTo: ids[1])).value
        #expect(seen.changed == 2 && seen.badges.requests == 1)
        #expect(try await ben.seeRequests(.init(seenUpTo: ids[1])).value.changed == 0)
        try await ben.answerRequest(id: ids[2], .init(status: .declined))
        #expect(try await service.badges(of: "ben") == [0, 0, 10, 10])
        #expect(try await service.client("eve").seeRequests(.init(seenUpTo: ids[1])).value.changed == 0)
        for body in [#"{}"#, #"{"seenUpTo":"zzz"}"#, #"{"seenUpTo":"\#(ids[0])","status":"accepted"}"#] {
            #expect(try await service.call("PATCH", "/v1/requests", as: .user("ben"), body).status == 422)
        }
        try service.expectExactCounts()
    }

    /// An item seen in one list is seen in the other.
    @Test func requestAndItsNotification_areSeenTogether() async throws {
        let service = try TestService.start(at: TestService.morning)
        let id = try await service.ask(Self.asking, as: "ana")
        let ben = service.client("ben")
        let notification = try #require(try await service.all(of: "ben").first).id
        for (change, requests) in [
            (Bellhop.NotificationStateChange(read: true), 0), (.init(seen: false), 1), (.init(seen: true), 0),
        ] {
            let badges = try await ben.changeNotification(id: notification, change).value.badges
            #expect(badges.requests == requests, "\(change)")
        }
        try await ben.changeNotification(id: notification, .init(seen: false))
        let stream = try await service.listen(as: .user("ben"))
        #expect(try await ben.seeRequests(.init(seenUpTo: id)).value.badges.total == 0)
        #expect(try await stream.next("notification:updated").json["ids"] == .array([.string(notification)]))
        #expect(try #require(try await service.all(of: "ben").first).seenAt != nil)

        try await ben.changeNotification(id: notification, .init(seen: false))
        #expect(try await ben.deleteNotification(id: notification).value.badges.requests == 0)
        try service.expectExactCounts()
    }

    /// The notification of an answered request is an ordinary one: marking it as unseen adds to the bell.
    @Test func answeredRequest_isNotCounted() async throws {
        let service = try TestService.start(at: TestService.morning)
        let id = try await service.ask(Self.asking, as: "ana")
        let notification = try #require(try await service.all(of: "ben").first).id
        try await service.client("ben").answerRequest(id: id, .init(status: .accepted))
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        try await service.client("ben").changeNotification(id: notification, .init(seen: false))
        #expect(try await service.badges(of: "ben") == [0, 0, 1, 1])
        try service.expectExactCounts()
    }

    /// R-VIS-NFR-1.4: the setting limits the stored notifications. After it is lowered, each new notification evicts
    /// part of the excess.
    @Test func loweredBound_isReachedGradually() async throws {
        let service = try TestService.start(["notificationsKept": "40"], at: TestService.morning)
        for _ in 0..<40 { try await service.notify(NotificationsTests.draft()) }
        try await service.restart(with: ["notificationsKept": "10"])
        var counts: [Int] = []
        for _ in 0..<4 {
            let id = try await service.notify(NotificationsTests.draft("news", .low)).notificationID
            let all = try await service.all(of: "u1")
            #expect(all.last?.id == id)
            counts.append(all.count)
        }
        #expect(counts == [25, 10, 10, 10])
        #expect(try await service.badges(of: "u1") == [0, 0, 10, 10])
        try service.expectExactCounts()
    }

    /// R-27.
    @Test func fiveHundredNotifications_areStored_byDefault() throws {
        #expect(try TestService.settings(["jwtSecret": TestService.secret]).notificationsKept == 500)
    }

    /// After any mixture of operations, the counts equal the model and a recount.
    @Test(arguments: 1...UInt64(effort(quick: 1, full: 3, long: 12)))
    func randomOperations_leaveExactCounts(_ seed: UInt64) async throws {
        let service = try TestService.start(["notificationsKept": "8"], at: TestService.morning)
        var random = SeededGenerator(seed: seed)
        var model = RequestsModel(service: service)
        for step in 0..<effort(quick: 60, full: 200, long: 200) {
            try await model.step(&random)
            let unseen = model.isSeen.values.filter { !$0 }.count
            let badges = try await service.badges(of: "ben")
            #expect(badges[1] == unseen, "seed \(seed), step \(step)")
            let listed = try await service.all(of: "ben").filter { $0.seenAt == nil }
            let bell = listed.count { $0.data["requestId"].string.map { model.isSeen[$0] == nil } ?? true }
            #expect(badges[2] == bell, "seed \(seed), step \(step)")
        }
        try service.expectExactCounts()
    }
}

/// A model of the requests to ben that should be counted, under random operations.
struct RequestsModel {
    let service: TestService
    /// Whether each open request has been seen, by its id.
    private(set) var isSeen: [String: Bool] = [:]
    private var count = 0

    init(service: TestService) { self.service = service }

    mutating func step(_ random: inout SeededGenerator) async throws {
        count += 1
        let request = isSeen.keys.sorted().randomElement(using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<3: isSeen[try await service.ask(OpenRequestsTests.asking, as: "user\(count)")] = false
        case 3..<6:
            let priority = [Bellhop.Priority.low, .normal, .high, .urgent].randomElement(using: &random)!
            let category = ["visit", "request"].randomElement(using: &random)!
            let made = try await service.notify(NotificationsTests.draft(category, priority, to: "ben"))
            #expect(made.status == 201)
            #expect(try await service.all(of: "ben").last?.id == made.notificationID)
        case 6:
            guard let request else { return }
            if Bool.random(using: &random) {
                try await service.client("ben").answerRequest(id: request, .init(status: .accepted))
            } else {
                try await service.client(as: .service()).withdrawRequest(id: request)
            }
            isSeen[request] = nil
        case 7:
            guard let request else { return }
            try await service.client("ben").seeRequests(.init(seenUpTo: request))
            for id in isSeen.keys where id <= request { isSeen[id] = true }
        default: try await changeNotifications(&random)
        }
    }

    private mutating func changeNotifications(_ random: inout SeededGenerator) async throws {
        let all = try await service.all(of: "ben")
        guard let one = all.randomElement(using: &random) else { return }
        let ben = service.client("ben")
        func note(_ notification: Bellhop.Notification, _ seen: Bool) {
            guard let request = notification.data["requestId"].string, isSeen[request] != nil else { return }
            isSeen[request] = seen
        }
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            try await ben.deleteNotification(id: one.id)
            note(one, true)
        case 1, 2:
            let seen = Bool.random(using: &random)
            try await ben.changeNotification(id: one.id, .init(seen: seen))
            if (one.seenAt != nil) != seen { note(one, seen) }
        default:
            try await ben.changeNotifications(.init(upTo: one.id, set: .init(read: true)))
            for other in all.prefix(while: { $0.id != one.id }) + [one] where other.seenAt == nil { note(other, true) }
        }
    }
}
