import BellhopClient
import Database
import Foundation
import Realtime
import Testing

@testable import Service

/// The history of a small shop and school, in chapters. Each chapter needs the tables of one more level, leaves a row
/// in each of them, and states what the service must return for it in all later versions.
struct LevelStory: Sendable {
    struct Chapter: Sendable {
        let name: String
        /// The migrations that this level adds to the previous one.
        let migrations: [String]
        let happen: @Sendable (TestService) async throws -> Void
        let isServed: @Sendable (TestService) async throws -> Void
        /// Writes rows that exist only temporarily, but may exist when a service is stopped.
        var remain: @Sendable (TestService) async throws -> Void = { _ in }
    }

    static let moment = "2026-01-10T20:00:00Z"
    static let later = "2026-01-10T20:05:00Z"
    static let settings = ["tables": "school", "changesSecret": School.secret]

    /// Returns the migrations of a level and of all earlier ones.
    static func migrations(upTo name: String) -> [String] {
        var ids: [String] = []
        for chapter in chapters {
            ids += chapter.migrations
            if chapter.name == name { break }
        }
        return ids
    }

    static let chapters = [
        first, replicas, newest, tables, music, conversations, challenges, requests, posts, walls, eviction,
        records,
    ]

    private static let ada = TestService.Identity.user("ada")
    private static let ben = TestService.Identity.user("ben")
    private static let cem = TestService.Identity.user("cem")
    private static let staff = TestService.Identity.staff(of: "s1")

    private static func succeed(
        _ service: TestService, _ method: String, _ path: String, as identity: TestService.Identity,
        _ body: JSON? = nil, _ headers: [String: String] = [:], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        service.clock.advance(seconds: 1)
        let answer = try await service.client(as: identity).send(method, path, body, headers: headers)
        #expect(answer.isSuccess, "\(answer.status) \(answer.problem)", sourceLocation: sourceLocation)
        return answer.json
    }

    private static let visit: JSON = [
        "id": "evt-1", "type": "visit.created", "userId": "ada",
        "data": ["visitId": "v1", "visitType": "Check-up", "hospital": "St. Mary", "status": "confirmed"],
    ]

    // MARK: Shops and notifications

    private static let first = Chapter(
        name: "01-notifications-and-shops",
        migrations: [
            "0001_tenants", "0001_secrets", "0001_events", "0001_badges", "0001_idempotency", "0001_notifications",
            "0001_preferences", "0001_shops", "0001_streams",
        ],
        happen: { service in
            let backend = TestService.Identity.service()
            _ = try await succeed(
                service, "PUT", "/v1/shops/s1", as: backend, ["name": "The Cut Club", "timeZone": "UTC"])
            _ = try await succeed(service, "PUT", "/v1/shops/s1/barbers/b1", as: backend, ["onDuty": true])
            let draft = BookingsTests.draft("2026-01-10T21:00:00Z")
            let booking = try await succeed(service, "POST", "/v1/bookings", as: ada, draft)
            _ = try await succeed(
                service, "PATCH", "/v1/bookings/\(booking["id"].string ?? "")", as: staff, ["status": "confirmed"],
                ["If-Match": "\"1-\(booking["epoch"].string ?? "")\""])
            let walkIn: JSON = ["customerName": "Kim", "service": "cut", "tier": "standard"]
            _ = try await succeed(service, "POST", "/v1/shops/s1/queue/entries", as: staff, walkIn)
            _ = try await succeed(service, "POST", "/v1/events", as: backend, visit, ["Idempotency-Key": "key-1"])
            _ = try await succeed(
                service, "PUT", "/v1/preferences", as: ada, ["sound": false, "timeZone": "Europe/Berlin"])
            _ = try await succeed(service, "POST", "/v1/stream-tickets", as: ada)
            _ = try await succeed(service, "POST", "/v1/revocations", as: backend, ["tokenId": "stolen"])
        },
        isServed: { service in
            let listed = try await service.call("GET", "/v1/notifications", as: ada).items
            let titles = listed.compactMap { $0["title"].string }
            #expect(titles.contains("Check-up Scheduled"), "\(titles)")
            #expect(titles.contains("Booking Confirmed"), "\(titles)")
            let booking = try #require(try await service.call("GET", "/v1/bookings", as: ada).items.first)
            expect(booking, has: ["status": "confirmed", "barberId": "b1", "version": 2])
            let path = "/v1/bookings/\(booking["id"].string ?? "")/history"
            #expect(
                try await service.call("GET", path, as: ada).items.map { $0["to"].string } == ["pending", "confirmed"])
            let line = try await service.call("GET", "/v1/shops/s1/queue/entries", as: staff).items
            #expect(line.contains { $0["customerName"].string == "Kim" }, "\(line)")
            let preferences = try await service.call("GET", "/v1/preferences", as: ada).json
            expect(preferences, has: ["sound": false, "timeZone": "Europe/Berlin"])
            let backend = service.client(as: .service())
            let again = try await backend.post("/v1/events", visit, headers: ["Idempotency-Key": "key-1"])
            #expect(again.status == 201)
            #expect(again[header: "Idempotency-Replayed"] == "true")
            #expect(try await backend.post("/v1/events", visit).status == 200)
            let stolen = TestService.Identity(subject: "eve", claims: ["jti": "stolen"])
            #expect(try await service.call("GET", "/v1/badges", as: stolen).status == 401)
        })

    private static let replicas = Chapter(
        name: "02-replicas", migrations: ["0002_event_counter", "0001_rate_counts"],
        happen: { _ in },
        isServed: { service in
            // The sequence numbers of events continue.
            let before = try #require(try service.newestSequence())
            _ = try await service.notify(NotificationsTests.draft("news", to: "ada"))
            #expect(try #require(try service.newestSequence()) > before)
        },
        remain: { service in
            try await service.app.store.write { db in
                _ = try db.run("INSERT INTO rate_counts (tenant, user_id, started_at, count) VALUES ('t', 'u', 1, 1)")
            }
        })

    private static let newest = Chapter(
        name: "03-inboxes", migrations: ["0002_notifications"],
        happen: { service in
            let draft: JSON = [
                "userId": "ada", "category": "news", "priority": "LOW", "title": "Open late", "message": "Until ten",
            ]
            _ = try await succeed(service, "POST", "/v1/notifications", as: .service(), draft)
        },
        isServed: { service in
            let listed = try await service.call("GET", "/v1/notifications", as: ada).items
            #expect(listed.contains { $0["title"].string == "Open late" })
        })

    // MARK: Rows

    private static let tables = Chapter(
        name: "04-tables", migrations: ["0001_memberships", "0001_changes"],
        happen: { service in
            let school = try await School(service, isKnown: false)
            try await school.sendMemberships(of: "A")
            _ = try await succeed(
                service, "POST", "/v1/changes", as: .service(), School.own("homework", "w1", of: "s1"),
                ["webhook-id": "delivery-1"])
        },
        isServed: { service in
            let scope = try await service.call("GET", "/v1/me", as: School.parent("p1")).json["scope"].array ?? []
            #expect(scope.contains("student:s1:parent"), "\(scope)")
            let again = try await service.client(as: .service()).post(
                "/v1/changes", School.own("homework", "w1", of: "s1"), headers: ["webhook-id": "delivery-1"])
            #expect(again.json["duplicates"].int == 1, "\(again.json)")
        })

    // MARK: Music

    private static let music = Chapter(
        name: "05-music", migrations: ["0001_dj"],
        happen: { service in
            _ = try await succeed(service, "PUT", DJTests.session, as: staff, ["isActive": true])
            for guest in [ada, ben] { _ = try await succeed(service, "PUT", "/v1/shops/s1/presence/me", as: guest) }
            _ = try await succeed(service, "POST", "\(DJTests.session)/tracks", as: ada, DJTests.track("t1"))
            _ = try await succeed(service, "PUT", "\(DJTests.session)/tracks/t1/vote", as: ben, ["vote": "up"])
            _ = try await succeed(service, "PUT", "/v1/shops/s1/presence", as: staff, ["codeRequired": true])
            let wrong = try await service.client(as: .user("eve")).put("/v1/shops/s1/presence/me", ["code": "AAAAAA"])
            #expect(wrong.status == 403)
        },
        isServed: { service in
            let session = try await service.call("GET", DJTests.session, as: ben).json
            #expect(session["isActive"].bool == true)
            expect(session["queue"][0], has: ["trackId": "t1", "upvotes": 2, "userVote": "up"])
            let presence = try await service.call("GET", "/v1/shops/s1/presence/me", as: ben).json
            #expect(presence["isPresent"].bool == true)
        })

    // MARK: People

    private static let conversations = Chapter(
        name: "06-conversations", migrations: ["0001_conversations"],
        happen: { service in
            let id = try await service.converse("ben", "ada")
            #expect(try await service.send("See you at nine", to: id, as: "ben").status == 201)
        },
        isServed: { service in
            let conversation = try #require(try await service.call("GET", "/v1/conversations", as: ada).items.first)
            #expect(conversation["unread"].int == 1)
            let path = "/v1/conversations/\(conversation["id"].string ?? "")/messages"
            #expect(try await service.call("GET", path, as: ada).items.first?["text"].string == "See you at nine")
            #expect(try await service.badges(of: "ada")[0] == 1)
        })

    private static let challenges = Chapter(
        name: "07-challenges", migrations: ["0001_challenges"],
        happen: { service in
            _ = try await succeed(service, "PUT", "/v1/challenges/c1", as: .service(), ChallengesTests.draft)
            for (user, score) in [("ada", 120), ("ben", 80)] { _ = try await service.score(user, score) }
        },
        isServed: { service in
            let board = try await service.client(as: ada).get("/v1/challenges/c1/leaderboard").json
            #expect(ChallengesTests.lines(board) == ["1 1 ada 120", "2 2 ben 80"])
        })

    private static let requests = Chapter(
        name: "08-requests", migrations: ["0001_user_requests"],
        happen: { service in
            _ = try await succeed(
                service, "POST", "/v1/requests", as: ben, ["kind": "friend", "toUserId": "ada", "fromName": "Ben"])
        },
        isServed: { service in
            let request = try #require(try await service.call("GET", "/v1/requests", as: ada).items.first)
            expect(request, has: ["kind": "friend", "status": "open"])
            #expect(try await service.badges(of: "ada")[1] == 1)
        })

    private static let posts = Chapter(
        name: "09-posts", migrations: ["0001_posts"],
        happen: { service in
            let kept = try await service.post("ben", "New in town")["id"].string ?? ""
            let removed = try await service.post("ben", "A mistake")["id"].string ?? ""
            try await service.follow("ben", as: "ada")
            for path in ["/v1/posts/\(kept)/likes/me", "/v1/posts/\(kept)/reposts/me"] {
                _ = try await succeed(service, "PUT", path, as: ada)
            }
            #expect(try await service.client("ben").delete("/v1/posts/\(removed)").status == 204)
        },
        isServed: { service in
            let items = try await service.feed("ada")["items"].array ?? []
            #expect(items.map { $0["text"].string } == ["New in town"])
            #expect(try await service.client("ada").get("/v1/users/ben").json["followerCount"].int == 1)
        },
        remain: { service in
            // The rows of a removed post are deleted in steps, and the last step is still missing.
            try await service.app.store.write { db in
                _ = try db.run("INSERT INTO post_removals (tenant, post_id) VALUES ('default', 'removed')")
            }
        })

    // MARK: Shared events, requests in rows of their own, boards as changes

    private static let walls = Chapter(
        name: "10-shared-events",
        migrations: ["0003_event_shared", "0003_notifications", "0002_user_requests", "0002_challenges"],
        happen: { service in
            let id = try await service.converse("cem", "ben", "dan")
            #expect(try await service.send("All of us at ten", to: id, as: "cem").status == 201)
            _ = try await succeed(
                service, "POST", "/v1/requests", as: cem, ["kind": "friend", "toUserId": "ben", "fromName": "Cem"])
            let asked = try #require(try await service.call("GET", "/v1/requests", as: ben).items.first)
            _ = try await succeed(service, "PATCH", "/v1/requests", as: ben, ["seenUpTo": asked["id"]])
            service.clock.advance(seconds: 5)
            try await service.run(ChallengesFeature.updateTick)
        },
        isServed: { service in
            // Seen requests do not count in the badge, and are still listed.
            let open = try await service.call("GET", "/v1/requests", as: ben).items
            #expect(open.contains { $0["fromName"].string == "Cem" })
            #expect(try await service.badges(of: "ben")[1] == 0)
            let listed = try await service.call("GET", "/v1/conversations", as: cem).items
            #expect(listed.first?["lastMessage"]["preview"].string == "All of us at ten", "\(listed)")
        })

    // MARK: Notifications in eviction order

    private static let eviction = Chapter(
        name: "11-eviction", migrations: ["0004_notifications"],
        happen: { service in
            let draft: JSON = [
                "userId": "dan", "category": "news", "priority": "LOW", "title": "Late news", "message": "M",
            ]
            _ = try await succeed(service, "POST", "/v1/notifications", as: .service(), draft)
        },
        isServed: { service in
            let listed = try await service.call("GET", "/v1/notifications", as: .user("dan")).items
            #expect(listed.contains { $0["title"].string == "Late news" }, "\(listed)")
        })

    // MARK: One record for the events of one audience

    private static let records = Chapter(
        name: "12-event-records", migrations: ["0004_event_records"],
        happen: { service in
            let draft: JSON = [
                "userId": "fay", "category": "news", "priority": "HIGH", "title": "First news", "message": "M",
            ]
            _ = try await succeed(service, "POST", "/v1/notifications", as: .service(), draft)
        },
        isServed: { service in
            let oldest = try service.app.store.read { try EventLog.oldestSequence(in: $0) }
            let cursor = service.app.runner.reader.log.ids.cursor(oldest - 1).text
            let stream = try await service.listen(as: .user("fay"), lastEventID: cursor)
            #expect(try await stream.next().json["title"].string == "First news")
            #expect(try await stream.next("badges:update").json["bell"].int == 1)
        })
}

extension TestService {
    /// The sequence number of the newest stored event.
    func newestSequence() throws -> Int64? { try app.store.read { try EventLog.newestSequence(in: $0) } }
}
