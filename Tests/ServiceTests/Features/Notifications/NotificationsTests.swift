import BellhopClient
import Database
import Domain
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// Notifications over real HTTP: creation, idempotency, lists, states, the cap, and forbidden operations.
@Suite(.timed) struct NotificationsTests {
    let service: TestService

    init() throws { service = try TestService.start(["notificationsKept": "50"], at: TestService.morning) }

    static let visit = Bellhop.Event.Details(
        visitId: "v1", visitType: "Check-up", hospital: "St. Mary", status: "confirmed")

    static func event(
        _ id: String, _ type: Bellhop.Event.Kind = .visitCreated, to user: String = "u1",
        _ data: Bellhop.Event.Details = visit
    ) -> Bellhop.Event {
        .init(id: id, type: type, userId: user, data: data)
    }

    static func draft(
        _ category: String = "visit", _ priority: Bellhop.Priority = .normal, to user: String = "u1", id: String? = nil
    ) -> Bellhop.NotificationDraft {
        .init(userId: user, id: id, category: category, priority: priority, title: "T", message: "M")
    }

    // MARK: Creation

    /// R-VIS-FR-1.1, R-VIS-FR-1.2, R-VIS-FR-1.4, R-VIS-FR-2.1: the answer, the list, the stream and the counts agree.
    /// R-VIS-NFR-1.1, R-VIS-Q1, R-25: each event is delivered at once, by a notification of its own.
    @Test func event_becomesANotification_onEveryDevice() async throws {
        let stream = try await service.listen(as: .user("u1"))
        let made = try await service.call("POST", "/v1/events", as: .service(), model: Self.event("evt-1"))
        #expect(made.status == 201)
        let notification = made.json["notification"]
        expect(notification, has: ["title": "Check-up Scheduled", "message": "Your check-up at St. Mary is confirmed"])
        expect(notification, has: ["data": ["visitId": "v1"]])
        #expect(notification["haptic"]["pulses"] == 2)
        expect(notification, has: ["sound": true, "seenAt": nil])

        #expect(try await stream.next("notification:created").json == notification)
        let badges = try await stream.next("badges:update").json
        expect(badges, has: ["bell": 1, "total": 1])
        let list = try await service.call("GET", "/v1/notifications", as: .user("u1"))
        expect(list.json, has: ["items": .array([notification]), "next": nil])
        #expect(try await service.badges(of: "u1") == [0, 0, 1, 1])
    }

    /// R-VIS-NFR-4.3: a repeated id gets the first answer, even if the body differs.
    @Test func repeatedEvent_isAnsweredLikeTheFirst_andMakesNothing() async throws {
        let first = try await service.publish(Self.event("evt-1"))
        let id = try first.notificationID
        let again = try await service.publish(Self.event("evt-1"))
        #expect(again.status == 200)
        #expect(again.value == first.value)
        service.clock.advance(seconds: 1)
        try await service.client("u1").changeNotification(id: id, .init(read: true))
        let other = Self.event("evt-1", .emergencyAccepted, to: "u1", .init())
        #expect(try await service.publish(other).value == first.value)
        try await service.client("u1").deleteNotification(id: id)
        let afterRemoval = try await service.publish(Self.event("evt-1"))
        #expect(afterRemoval.status == 200)
        #expect(afterRemoval.value == first.value)
        #expect(try await service.client("u1").listNotifications().value.items.isEmpty)
        #expect(try await service.badges(of: "u1") == [0, 0, 0, 0])
        try service.expectExactCounts()
    }

    /// Events that are queued together are created together, within the limits of each user, and each only once.
    @Test func manyAtOnce_areEachCreatedOnce_withExactCounts() async throws {
        let stream = try await service.listen(as: .user("u1"))
        let events = (0..<10).flatMap { round in (1...6).map { (id: "e\(round)", user: "u\($0)") } }
        // Sends each event twice, and more events to one user than a list holds.
        let bodies =
            (events + events).map { Self.event($0.id, to: $0.user) } + (0..<60).map { Self.event("f\($0)", to: "full") }
        let answers = try await concurrently(bodies) { [service] in try await service.publish($0) }
        #expect(answers.filter { $0.status == 201 }.count == 120)
        #expect(answers.filter { $0.status == 200 }.count == 60)
        for user in 1...6 { #expect(try await service.badges(of: "u\(user)") == [0, 0, 10, 10]) }
        #expect(try await service.all(of: "full").count == 50)
        var received: [String] = []
        while received.count < 10 {
            received += try await [stream.next("notification:created").json["eventId"].string ?? ""]
        }
        #expect(Set(received).count == 10)
        let elsewhere = try await concurrently(["default", "other", "other"]) { [service] tenant in
            try await service.client(as: .service(tenant: tenant)).postEvent(Self.event("x", to: "u9"))
        }
        #expect(elsewhere.map(\.status).sorted() == [200, 201, 201])
        try service.expectExactCounts()
    }

    @Test func sameEventId_ofAnotherUserOrTenant_isAnotherEvent() async throws {
        #expect(try await service.publish(Self.event("e", to: "u1")).status == 201)
        #expect(try await service.publish(Self.event("e", to: "u2")).status == 201)
        let elsewhere = try await service.client(as: .service(tenant: "other")).postEvent(Self.event("e", to: "u1"))
        #expect(elsewhere.status == 201)
        #expect(try await service.badges(of: "u1") == [0, 0, 1, 1])
    }

    /// R-17, R-VIS-FR-3.1, R-VIS-D-4.
    @Test func login_isListed_butLightsNoBadge() async throws {
        let made = try await service.publish(Self.event("e", .authLogin))
        let notification = try #require(made.value.notification)
        #expect(notification.seenAt == notification.createdAt && notification.haptic == nil)
        #expect(try await service.client("u1").listNotifications().value.items.count == 1)
        #expect(try await service.badges(of: "u1") == [0, 0, 0, 0])
        let again = try await service.publish(Self.event("e", .authLogin))
        #expect(again.value == made.value)
    }

    /// R-18.
    @Test func emptyDifference_makesNothing() async throws {
        let answer = try await service.publish(Self.event("e", .visitUpdated, to: "u1", .init(changes: [])))
        #expect(answer.status == 200)
        #expect(answer.value.notification == nil)
        #expect(try await service.client("u1").listNotifications().value.items.isEmpty)
    }

    /// R-16: a notification created directly is never an open request, whatever its category.
    @Test func notificationThatIsNoEvent_countsByItsCategory() async throws {
        for category in ["request", "request", "news", "message"] {
            let made = try await service.notify(Self.draft(category))
            #expect(made.status == 201)
        }
        #expect(try await service.badges(of: "u1") == [0, 0, 3, 3])
        #expect(try await service.notify(Self.draft("news", id: "n-1")).status == 201)
        #expect(try await service.notify(Self.draft("news", id: "n-1")).status == 200)
        #expect(try await service.badges(of: "u1") == [0, 0, 4, 4])
    }

    // MARK: States

    @Test func seenReadArchived_changeTheCounts_andArePublishedOnce() async throws {
        let id = try await service.publish(Self.event("e")).notificationID
        let u1 = service.client("u1")
        let stream = try await service.listen(as: .user("u1"))
        let seen = try await u1.changeNotification(id: id, .init(seen: true)).value
        #expect(seen.badges.bell == 0)
        #expect(seen.notification.seenAt != nil)
        let delivered = try await stream.next("notification:updated").json
        expect(delivered, has: ["ids": .array([.string(id)]), "state": ["seen": true]])

        let again = try await u1.changeNotification(id: id, .init(seen: true)).value
        #expect(again == seen, "nothing changed, so timestamp and version stay the same")
        #expect(try await u1.changeNotification(id: id, .init(archived: true)).value.notification.readAt == nil)
        // The next published update is the archiving: the repetition published nothing.
        #expect(try await stream.next("notification:updated").json["state"]["archived"] == true)

        #expect(try await u1.listNotifications().value.items.isEmpty)
        #expect(try await u1.listNotifications(state: .archived).value.items.map(\.id) == [id])
        let unseen = try await u1.changeNotification(id: id, .init(seen: false)).value
        #expect(unseen.badges.bell == 1)
        #expect(unseen.notification.archivedAt == nil)
        try service.expectExactCounts()
    }

    /// R-CNT-RECON-3: the answer carries the counts, also after a deletion.
    @Test func deletion_reducesTheBadge_andIsFinal() async throws {
        let id = try await service.notify(Self.draft("request")).notificationID
        #expect(try await service.badges(of: "u1") == [0, 0, 1, 1])
        let stream = try await service.listen(as: .user("u1"))
        let gone = try await service.client("u1").deleteNotification(id: id)
        #expect(gone.status == 200)
        #expect(gone.value.badges.total == 0)
        #expect(try await stream.next("notification:removed").json == ["ids": [.string(id)]])
        #expect(try await status(of: await service.client("u1").getNotification(id: id)) == 404)
        #expect(try await status(of: await service.client("u1").deleteNotification(id: id)) == 404)
        try service.expectExactCounts()
    }

    @Test func bulkChange_takesAllUpToOne_andNoneThatCameAfter() async throws {
        var ids: [String] = []
        for category in ["visit", "news", "visit", "visit"] {
            ids.append(try await service.notify(Self.draft(category)).notificationID)
        }
        let stream = try await service.listen(as: .user("u1"))
        let (u1, body) = (
            service.client("u1"),
            Bellhop.ChangeNotificationsBody(upTo: ids[2], category: "visit", set: .init(seen: true))
        )
        let changed = try await u1.changeNotifications(body).value
        #expect(changed.changed == 2 && changed.badges.bell == 2)
        #expect(
            try await stream.next("notification:updated").json["ids"] == .array([.string(ids[0]), .string(ids[2])]))
        let again = try await u1.changeNotifications(body).value
        #expect(again.changed == 0 && again.badges == changed.badges)
        #expect(try await u1.changeNotifications(.init(upTo: ids[3], set: .init(read: true))).value.changed == 4)
        #expect(try await service.badges(of: "u1") == [0, 0, 0, 0])
        try service.expectExactCounts()
    }

    // MARK: Lists

    @Test func list_isPagedNewestFirst_withoutGapsOrDoubles() async throws {
        var ids: [String] = []
        for index in 0..<23 {
            ids.append(try await service.publish(Self.event("e\(index)")).notificationID)
        }
        var found: [String] = []
        for try await page in service.client("u1").notificationPages(limit: 5) {
            #expect(page.value.items.count <= 5)
            found += page.value.items.map(\.id)
            // A notification that arrives meanwhile stands before the first page and shifts no other.
            if found.count == 5 { try await service.publish(Self.event("late")) }
        }
        #expect(found == ids.reversed())
    }

    @Test func list_isFilteredByCategoryStateAndPriority() async throws {
        let visit = try await service.publish(Self.event("a")).notificationID
        let login = try await service.publish(Self.event("b", .authLogin)).notificationID
        let urgent = try await service.publish(Self.event("c", .emergencyArriving)).notificationID
        try await service.client("u1").changeNotification(id: visit, .init(read: true))
        let expected: [(String, [String])] = [
            ("", [urgent, login, visit]), ("category=visit", [visit]), ("state=unseen", [urgent]),
            ("state=unread", [urgent, login]), ("state=archived", []), ("state=all", [urgent, login, visit]),
            ("priority=LOW", [login]), ("category=system&state=unseen", []), ("category=nothing", []),
        ]
        for (query, ids) in expected {
            let list = try await service.call("GET", "/v1/notifications?\(query)", as: .user("u1"))
            #expect(list.items.compactMap { $0["id"].string } == ids, "\(query)")
        }
    }

    @Test(arguments: [
        "category=Visit", "state=new", "priority=high", "limit=0", "limit=101", "limit=x", "cursor=forged", "page=2",
        "state=all&state=all",
    ])
    func badQuery_isRefusedByName(_ query: String) async throws {
        let answer = try await service.call("GET", "/v1/notifications?\(query)", as: .user("u1"))
        #expect(answer.status == 422)
        #expect(answer.pointers.first == "?" + query.prefix { $0 != "=" })
    }

    // MARK: The cap of 50

    /// R-VIS-NFR-1.4, R-22.
    @Test func fiftyFirst_evictsTheOldest_withCountsAndEvents() async throws {
        var ids: [String] = []
        for index in 0..<50 {
            ids.append(try await service.publish(Self.event("e\(index)")).notificationID)
        }
        #expect(try await service.badges(of: "u1") == [0, 0, 50, 50])
        let stream = try await service.listen(as: .user("u1"))
        ids.append(try await service.notify(Self.draft("request")).notificationID)
        #expect(try await stream.next("notification:removed").json == ["ids": [.string(ids[0])]])
        #expect(try await service.badges(of: "u1") == [0, 0, 50, 50])
        let list = try await service.client("u1").listNotifications(limit: 100)
        #expect(list.value.items.map(\.id) == ids.dropFirst().reversed())
        #expect(try await status(of: await service.client("u1").getNotification(id: ids[0])) == 404)
        let evicted = try await service.publish(Self.event("e0"))
        #expect(evicted.status == 200, "an evicted event must not be created again")
        try service.expectExactCounts()
    }

    /// Applies the eviction rule to a notification as a client sees it.
    static func rank(_ seen: Bellhop.Notification) throws -> EvictionRule.Rank {
        func timestamp(_ date: Date?) -> Timestamp? { date.flatMap { Timestamp(seconds: $0.timeIntervalSince1970) } }
        var notification = Notification()
        notification.id = ID(seen.id)
        notification.draft.priority = try #require(Priority(rawValue: seen.priority.rawValue))
        notification.state = NotificationState(
            seenAt: timestamp(seen.seenAt), readAt: timestamp(seen.readAt), archivedAt: timestamp(seen.archivedAt))
        return EvictionRule.rank(of: notification)
    }

    /// R-22: read notifications go first, then seen ones, then LOW, then the oldest; unread HIGH and URGENT go
    /// last, the newest never. Each step is compared with the eviction rule.
    @Test func eviction_followsTheRule() async throws {
        var random = SeededGenerator(seed: 22)
        for _ in 0..<50 {
            let priority = Priority.allCases.randomElement(using: &random)!
            let id = try await service.notify(Self.draft("a", .init(rawValue: priority.rawValue))).notificationID
            let changes: [Bellhop.NotificationStateChange?] = [
                nil, nil, .init(seen: true), .init(read: true), .init(archived: true),
            ]
            guard let change = changes.randomElement(using: &random)! else { continue }
            try await service.client("u1").changeNotification(id: id, change)
        }
        for _ in 0..<effort(quick: 20, full: 60, long: 200) {
            let before = try await service.all(of: "u1")
            let priority = Priority.allCases.randomElement(using: &random)!
            let made = try await service.notify(Self.draft("a", .init(rawValue: priority.rawValue))).notificationID
            let expected = try before.min { try Self.rank($0) < Self.rank($1) }
            let after = try await service.all(of: "u1").map(\.id)
            let gone = before.map(\.id).filter { !after.contains($0) }
            #expect(gone == [try #require(expected).id])
            #expect(after.last == made)
        }
        try service.expectExactCounts()
    }

    /// The index of the order of eviction has no rows of inboxes that were never full, and all rows of the others.
    @Test func evictionIndex_holdsFullInboxesOnly() async throws {
        func ranked() throws -> Int? {
            let table = NotificationsFeature.notifications
            return try service.app.store.read { db in
                try db.integer(
                    """
                    SELECT COUNT(*) FROM \(table, unscoped: .audit("a test looks")) WHERE removed_at IS NULL AND is_ranked = 1
                    """)
            }
        }
        var ids: [String] = []
        for index in 0..<50 { ids.append(try await service.publish(Self.event("e\(index)")).notificationID) }
        #expect(try ranked() == 0)
        // A repeated event evicts nothing, but finds the inbox full.
        #expect(try await service.publish(Self.event("e0")).status == 200)
        #expect(try ranked() == 50)
        try await service.client("u1").deleteNotification(id: ids[7])
        #expect(try ranked() == 49)
        for _ in 0..<3 { try await service.notify(Self.draft("a")) }
        #expect(try ranked() == 50)
        try service.expectExactCounts()
    }

    // MARK: Visibility and bad input

    /// R-VIS-NFR-3.1: another user's notification is not found.
    @Test func anothersNotification_isNotFound() async throws {
        let id = try await service.publish(Self.event("e")).notificationID
        let strangers: [TestService.Identity] = [.user("u2"), .user("u1", tenant: "other"), .service()]
        for stranger in strangers {
            #expect(try await service.client(as: stranger).listNotifications().value.items.isEmpty)
            let client = service.client(as: stranger)
            #expect(try await status(of: await client.getNotification(id: id)) == 404, "\(stranger)")
            let change = Bellhop.NotificationStateChange(seen: true)
            #expect(try await status(of: await client.changeNotification(id: id, change)) == 404, "\(stranger)")
            #expect(try await status(of: await client.deleteNotification(id: id)) == 404, "\(stranger)")
            #expect(try await client.changeNotifications(.init(upTo: id, set: .init(read: true))).value.changed == 0)
        }
        #expect(try await service.badges(of: "u1") == [0, 0, 1, 1])
    }

    @Test func notifications_areCreatedByBackendsOnly() async throws {
        #expect(try await status(of: await service.client("u1").postEvent(Self.event("e"))) == 403)
        #expect(try await status(of: await service.client("u1").postNotification(Self.draft())) == 403)
        #expect(try await service.badges(of: "u1") == [0, 0, 0, 0])
    }

    @Test func badInput_isNamed_andChangesNothing() async throws {
        let id = try await service.publish(Self.event("e")).notificationID
        let one = "/v1/notifications/\(id)"
        let user = TestService.Identity.user("u1")
        let cases: [(String, String, TestService.Identity, String, [String])] = [
            ("POST", "/v1/events", .service(), #"{"id":"x","type":"visit.lost","userId":"u1"}"#, ["/type"]),
            (
                "POST", "/v1/events", .service(), #"{"type":"visit.created","userId":"","n":1}"#,
                ["/id", "/userId", "/n"]
            ),
            ("POST", "/v1/notifications", .service(), #"{"userId":"u1","category":"v"}"#, ["/title", "/message"]),
            ("PATCH", one, user, "{}", ["/seen"]), ("PATCH", one, user, #"{"seen":1}"#, ["/seen"]),
            ("PATCH", one, user, #"{"seen":false,"archived":true}"#, ["/seen"]),
            ("PATCH", one, user, #"{"seen":true,"title":"x"}"#, ["/title"]),
            ("PATCH", "/v1/notifications", user, #"{"set":{"seen":true}}"#, ["/upTo"]),
            ("PATCH", "/v1/notifications", user, #"{"upTo":"zzz","set":{"seen":true}}"#, ["/upTo"]),
            ("PATCH", "/v1/notifications", user, #"{"upTo":"\#(id)"}"#, ["/set"]),
            ("PATCH", "/v1/notifications", user, #"{"upTo":"\#(id)","set":{"seen":"y"}}"#, ["/set/seen"]),
            (
                "PATCH", "/v1/notifications", user, #"{"upTo":"\#(id)","category":"A","set":{}}"#,
                ["/category", "/set/seen"]
            ),
        ]
        for (method, path, identity, body, pointers) in cases {
            let answer = try await service.call(method, path, as: identity, body)
            #expect(answer.status == 422, "\(method) \(path) \(body)")
            #expect(Set(answer.pointers).isSuperset(of: pointers), "\(answer.pointers) for \(body)")
        }
        #expect(try await service.badges(of: "u1") == [0, 0, 1, 1])
        #expect(try await service.all(of: "u1").map(\.seenAt) == [nil])
    }

    // MARK: Counts under concurrent operations

    /// R-CNT-COUNTS-2, R-CNT-G1, R-VIS-FR-1.2: after any mixture of operations, the stored counts equal a recount.
    @Test(arguments: 1...UInt64(effort(quick: 1, full: 3, long: 12)))
    func randomOperations_leaveExactCounts(_ seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let users = ["u1", "u2", "u3"]
        for step in 0..<effort(quick: 120, full: 400, long: 400) {
            let user = users.randomElement(using: &random)!
            try await service.randomStep(step, user: user, random: &random)
        }
        for user in users {
            let all = try await service.all(of: user)
            #expect(all.count <= 50, "seed \(seed)")
            let unseen = all.count { $0.seenAt == nil && $0.category != "message" }
            let expected = [0, 0, unseen, unseen]
            #expect(try await service.badges(of: user) == expected, "seed \(seed), \(user)")
        }
        try service.expectExactCounts()
    }
}
