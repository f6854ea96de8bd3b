import BellhopClient
import Database
import PostgresServer
import TestSupport
import Testing
import Values

@testable import Service

/// R-16: `requests` counts open requests that the user has not seen, from the rows of the requests themselves.
/// The state of their notifications does not matter.
@Suite(.timed) struct OpenRequestsTests {
    private static func asking(_ user: String) -> String { #"{"kind":"friend","toUserId":"\#(user)"}"# }
    private static let visit = #"{"visitId":"v1","visitType":"Check-up"}"#

    /// Three users send requests, followed by more notifications than are stored.
    @Test func openRequests_areCounted_despiteEvictions() async throws {
        let service = try TestService.start(["notificationsKept": "10"], at: TestService.morning)
        var ids: [String] = []
        for user in ["ana", "cem", "dora"] { ids.append(try await service.ask(Self.asking("ben"), as: user)) }
        for index in 0..<50 {
            let event = NotificationsTests.event("e\(index)", "visit.updated", to: "ben", Self.visit)
            #expect(try await service.publish(event).status == 201)
        }
        #expect(try await service.all(of: "ben").count == 10)
        #expect(try await service.badges(of: "ben") == [0, 3, 10, 13])
        try service.expectExactCounts()

        // The badge is cleared although the notifications are evicted.
        let body = #"{"seenUpTo":"\#(ids[1])"}"#
        let seen = try await service.call("PATCH", "/v1/requests", as: .user("ben"), body)
        #expect(seen.status == 200)
        #expect(seen.json["changed"] == 2)
        #expect(seen.json["badges"]["requests"] == 1)
        #expect(try await service.call("PATCH", "/v1/requests", as: .user("ben"), body).json["changed"] == 0)
        let path = "/v1/requests/\(ids[2])"
        #expect(try await service.call("PATCH", path, as: .user("ben"), #"{"status":"declined"}"#).status == 200)
        #expect(try await service.badges(of: "ben") == [0, 0, 10, 10])
        let others = try await service.call("PATCH", "/v1/requests", as: .user("eve"), body)
        #expect(others.json["changed"] == 0)
        for body in [#"{}"#, #"{"seenUpTo":"zzz"}"#, #"{"seenUpTo":"\#(ids[0])","status":"accepted"}"#] {
            #expect(try await service.call("PATCH", "/v1/requests", as: .user("ben"), body).status == 422)
        }
        try service.expectExactCounts()
    }

    /// An item seen in one list is seen in the other.
    @Test func requestAndItsNotification_areSeenTogether() async throws {
        let service = try TestService.start(at: TestService.morning)
        let id = try await service.ask(Self.asking("ben"), as: "ana")
        let notification = try #require(try await service.all(of: "ben").first?["id"].string)
        let path = "/v1/notifications/\(notification)"
        for (body, requests) in [(#"{"read":true}"#, 0), (#"{"seen":false}"#, 1), (#"{"seen":true}"#, 0)] {
            let changed = try await service.call("PATCH", path, as: .user("ben"), body)
            #expect(changed.json["badges"]["requests"].int == requests, "\(body)")
        }
        _ = try await service.call("PATCH", path, as: .user("ben"), #"{"seen":false}"#)
        let stream = try await service.listen(as: .user("ben"))
        let seen = try await service.call("PATCH", "/v1/requests", as: .user("ben"), #"{"seenUpTo":"\#(id)"}"#)
        #expect(seen.json["badges"]["total"] == 0)
        #expect(try await stream.next("notification:updated").json["ids"] == .array([.string(notification)]))
        #expect(try await service.all(of: "ben").first?["seenAt"] != .null)

        _ = try await service.call("PATCH", path, as: .user("ben"), #"{"seen":false}"#)
        #expect(try await service.call("DELETE", path, as: .user("ben")).json["badges"]["requests"] == 0)
        try service.expectExactCounts()
    }

    /// The notification of an answered request is an ordinary one: marking it as unseen adds to the bell.
    @Test func answeredRequest_isNotCounted() async throws {
        let service = try TestService.start(at: TestService.morning)
        let id = try await service.ask(Self.asking("ben"), as: "ana")
        let notification = try #require(try await service.all(of: "ben").first?["id"].string)
        _ = try await service.call("PATCH", "/v1/requests/\(id)", as: .user("ben"), #"{"status":"accepted"}"#)
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        let path = "/v1/notifications/\(notification)"
        _ = try await service.call("PATCH", path, as: .user("ben"), #"{"seen":false}"#)
        #expect(try await service.badges(of: "ben") == [0, 0, 1, 1])
        try service.expectExactCounts()
    }

    /// R-VIS-NFR-1.4: the setting limits the stored notifications. After it is lowered, each new notification evicts
    /// part of the excess.
    @Test func loweredBound_isReachedGradually() async throws {
        let service = try TestService.start(["notificationsKept": "40"], at: TestService.morning)
        for _ in 0..<40 { _ = try await service.notify(NotificationsTests.draft()) }
        try await service.restart(with: ["notificationsKept": "10"])
        var counts: [Int] = []
        for _ in 0..<4 {
            let id = try await service.notify(NotificationsTests.draft("news", "LOW")).notificationID
            let all = try await service.all(of: "u1")
            #expect(all.last?["id"] == .string(id))
            counts.append(all.count)
        }
        #expect(counts == [25, 10, 10, 10])
        #expect(try await service.badges(of: "u1") == [0, 0, 10, 10])
        try service.expectExactCounts()
    }

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
            let listed = try await service.all(of: "ben").filter { $0["seenAt"] == .null }
            let bell = listed.filter { $0["data"]["requestId"].string.map { model.isSeen[$0] == nil } ?? true }.count
            #expect(badges[2] == bell, "seed \(seed), step \(step)")
        }
        try service.expectExactCounts()
    }

    // MARK: Migration of an older database

    /// The migration moves the seen state from notifications to the requests' rows, including evicted notifications.
    @Test func migration_keepsSeenStates() throws {
        let mine = ["0003_notifications", "0002_user_requests"]
        let database = PostgresServer.isTheStore ? try PostgresServer.shared().makeDatabase() : nil
        var options = StoreOptions()
        if database != nil { options.access = .owner }
        let url = try database.map { try PostgresServer.shared().url("bellhop_owner", $0) } ?? "sqlite::memory:"
        let store = try DatabaseStore.open(DatabaseURL(url), options: options, tables: Catalog.tables)
        defer {
            store.close()
            if let database { try? PostgresServer.shared().drop(database) }
        }
        try store.migrate(Catalog.migrations.filter { !mine.contains($0.id) }, tables: Catalog.tables)
        try store.writeAndWait { try Self.insertFormerRows($0) }
        #expect(try Set(store.migrate(Catalog.migrations, tables: Catalog.tables)) == Set(mine))
        let looking = Unscoped.audit("a test reads rows")
        let found = try store.read { db in
            try db.rows(
                "SELECT id, seen_at FROM \(RequestsFeature.requests, unscoped: looking) ORDER BY id"
            ) { "\(try $0.text(0)) \(try $0.optionalInteger(1) ?? 0)" }
                + db.rows(
                    """
                    SELECT id, request_id FROM \(NotificationsFeature.notifications, unscoped: looking) ORDER BY id
                    """
                ) { "\(try $0.text(0)) \(try $0.optionalText(1) ?? "-")" }
                + db.rows(
                    """
                    SELECT user_id, kept, newest_at
                    FROM \(NotificationsFeature.inboxes, unscoped: looking)
                    """
                ) { "\(try $0.text(0)) \(try $0.integer(1)) \(try $0.integer(2))" }
                + db.rows(
                    "SELECT requests, bell, version FROM \(BadgeLedger.badges, unscoped: looking)"
                ) { "\(try $0.integer(0)) \(try $0.integer(1)) \(try $0.integer(2))" }
        }
        #expect(
            found == [
                "answered 0", "evicted 0", "fresh 0", "seen 7", "n1 fresh", "n2 seen", "n3 -", "n4 -", "n5 -", "n6 -",
                "ben 4 99", "2 2 6",
            ])
        let differences = try store.read { db in try Catalog.features().flatMap(\.audits).flatMap { try $0.run(db) } }
        #expect(differences.isEmpty, "\(differences)")
    }

    private static func insertFormerRows(_ db: DatabaseConnection) throws {
        let writing = Unscoped.audit("a test writes")
        for (id, isOpen) in [("fresh", true), ("seen", true), ("evicted", true), ("answered", false)] {
            try db.run(
                """
                INSERT INTO \(RequestsFeature.requests, unscoped: writing)
                    (tenant, id, kind, from_user_id, to_user_id, status, created_at, answered_at)
                VALUES ('t', \(id), 'friend', \(id), 'ben', \(isOpen ? "open" : "accepted"), 1, \(isOpen ? nil : 5))
                """)
        }
        for (id, event, category, seenAt, removedAt) in [
            ("n1", "request:fresh:open", "request", nil, nil), ("n2", "request:seen:open", "request", 7, nil),
            ("n3", "request:evicted:open", "request", nil, 8), ("n4", "request:own:accepted", "request", nil, nil),
            ("n5", "request:of-a-sender", "request", nil, nil), ("n6", nil, "message", nil, 9),
        ] as [(String, String?, String, Int?, Int?)] {
            try db.run(
                """
                INSERT INTO \(NotificationsFeature.notifications, unscoped: writing) (tenant, user_id, id, event_id,
                    type, category, priority, title, message, lock_screen, data, sounds, vibrates, created_at, seen_at,
                    removed_at)
                VALUES ('t', 'ben', \(id), \(event), 'REQUEST', \(category), 1, 'T', 'M', 'L', '{}', 0, 0, 1, \(seenAt),
                    \(removedAt))
                """)
        }
        try db.run(
            """
            INSERT INTO \(NotificationsFeature.inboxes, unscoped: writing)
                (tenant, user_id, kept, was_full, sound, haptics, time_zone, newest_at)
            VALUES ('t', 'ben', 4, 1, 1, 1, 'UTC', 99)
            """)
        try db.run(
            """
            INSERT INTO \(BadgeLedger.badges, unscoped: writing)
                (tenant, user_id, messages, requests, bell, version, updated_at)
            VALUES ('t', 'ben', 0, 3, 0, 5, 1)
            """)
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
        case 0..<3: isSeen[try await service.ask(#"{"kind":"friend","toUserId":"ben"}"#, as: "user\(count)")] = false
        case 3..<6:
            let priority = ["LOW", "NORMAL", "HIGH", "URGENT"].randomElement(using: &random)!
            let category = ["visit", "request"].randomElement(using: &random)!
            let made = try await service.notify(NotificationsTests.draft(category, priority, to: "ben"))
            #expect(made.status == 201)
            #expect(try await service.all(of: "ben").last?["id"] == made.json["notification"]["id"])
        case 6:
            guard let request else { return }
            let (user, method, body): (String, String, String?) =
                Bool.random(using: &random) ? ("ben", "PATCH", #"{"status":"accepted"}"#) : ("backend", "DELETE", nil)
            let identity: TestService.Identity = user == "ben" ? .user("ben") : .service()
            #expect(try await service.call(method, "/v1/requests/\(request)", as: identity, body).status == 200)
            isSeen[request] = nil
        case 7:
            guard let request else { return }
            let body = #"{"seenUpTo":"\#(request)"}"#
            #expect(try await service.call("PATCH", "/v1/requests", as: .user("ben"), body).status == 200)
            for id in isSeen.keys where id <= request { isSeen[id] = true }
        default: try await changeNotifications(&random)
        }
    }

    private mutating func changeNotifications(_ random: inout SeededGenerator) async throws {
        let all = try await service.all(of: "ben")
        guard let one = all.randomElement(using: &random), let id = one["id"].string else { return }
        let ben = TestService.Identity.user("ben")
        func note(_ notification: JSON, _ seen: Bool) {
            guard let request = notification["data"]["requestId"].string, isSeen[request] != nil else { return }
            isSeen[request] = seen
        }
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            #expect(try await service.call("DELETE", "/v1/notifications/\(id)", as: ben).status == 200)
            note(one, true)
        case 1, 2:
            let seen = Bool.random(using: &random)
            let path = "/v1/notifications/\(id)"
            #expect(try await service.call("PATCH", path, as: ben, #"{"seen":\#(seen)}"#).status == 200)
            if (one["seenAt"] != .null) != seen { note(one, seen) }
        default:
            let body = #"{"upTo":"\#(id)","set":{"read":true}}"#
            #expect(try await service.call("PATCH", "/v1/notifications", as: ben, body).status == 200)
            for other in all.prefix(while: { $0["id"] != one["id"] }) + [one] where other["seenAt"] == .null {
                note(other, true)
            }
        }
    }
}
