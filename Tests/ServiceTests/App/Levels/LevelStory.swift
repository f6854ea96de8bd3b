import BellhopClient
import Database
import Foundation
import Realtime
import Testing

@testable import Service

/// The history of a small shop and school, in chapters. The chapters of a level leave a row in each of its tables, and
/// state what the service must return for it in all later versions.
struct LevelStory: Sendable {
    struct Chapter: Sendable {
        /// The level that first has the chapter's tables.
        var level = 1
        let happen: @Sendable (TestService) async throws -> Void
        let isServed: @Sendable (TestService) async throws -> Void
        /// Statements that write rows which exist only temporarily, but may exist when a service is stopped.
        var remaining: [String] = []
    }

    static let moment = "2026-01-10T20:00:00Z"
    static let later = "2026-01-10T20:05:00Z"
    static let settings = ["tables": "school", "changesSecret": School.secret]

    static let chapters = [
        first, replicas, newest, tables, music, conversations, challenges, requests, posts, walls, eviction,
        records, work,
    ]

    private static let ada = TestService.Identity.user("ada")
    private static let ben = TestService.Identity.user("ben")
    private static let cem = TestService.Identity.user("cem")
    private static let staff = TestService.Identity.staff(of: "s1")

    /// Returns a client for the next step of the story, a second after the previous one.
    private static func next(_ service: TestService, as identity: TestService.Identity) -> BellhopClient {
        service.clock.advance(seconds: 1)
        return service.client(as: identity)
    }

    private static let visit = NotificationsTests.event("evt-1", to: "ada")

    // MARK: Shops and notifications

    private static let first = Chapter(
        happen: { service in
            let backend = TestService.Identity.service()
            try await next(service, as: backend).replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "UTC"))
            try await next(service, as: backend).replaceBarber(id: "s1", barberId: "b1", .init(onDuty: true))
            let draft = BookingsTests.draft("2026-01-10T21:00:00Z")
            let booking = try await next(service, as: ada).createBooking(draft).value
            try await next(service, as: staff).change(booking, .init(status: .confirmed))
            let walkIn = Bellhop.AddWalkInBody(service: "cut", tier: .standard, customerName: "Kim")
            try await next(service, as: staff).addWalkIn(id: "s1", walkIn)
            try await next(service, as: backend).postEvent(visit, idempotencyKey: "key-1")
            try await next(service, as: ada).replacePreferences(.init(sound: false, timeZone: "Europe/Berlin"))
            try await next(service, as: ada).createStreamTicket()
            try await next(service, as: backend).revoke(.tokenId(.init(tokenId: "stolen")))
        },
        isServed: { service in
            let listed = try await service.client(as: ada).listNotifications().value.items
            let titles = listed.map(\.title)
            #expect(titles.contains("Check-up Scheduled"), "\(titles)")
            #expect(titles.contains("Booking Confirmed"), "\(titles)")
            let booking = try #require(try await service.client(as: ada).listBookings().value.items.first)
            #expect(booking.status == .confirmed && booking.barberId == "b1" && booking.version == 2)
            let history = try await service.client(as: ada).getBookingHistory(id: booking.id).value.items
            #expect(history.map(\.to) == [.pending, .confirmed])
            let line = try await service.client(as: staff).listQueueEntries(id: "s1").value.items
            #expect(line.contains { $0.customerName == "Kim" }, "\(line)")
            let preferences = try await service.client(as: ada).getPreferences().value
            #expect(!preferences.sound && preferences.timeZone == "Europe/Berlin")
            let again = try await service.client(as: .service()).postEvent(visit, idempotencyKey: "key-1")
            #expect(again.status == 201)
            #expect(again.isReplayed)
            #expect(try await service.publish(visit).status == 200)
            let stolen = TestService.Identity(subject: "eve", claims: ["jti": "stolen"])
            #expect(try await status(of: await service.client(as: stolen).getBadges()) == 401)
        })

    private static let replicas = Chapter(
        happen: { _ in },
        isServed: { service in
            // The sequence numbers of events continue.
            let before = try #require(try service.newestSequence())
            try await service.notify(NotificationsTests.draft("news", to: "ada"))
            #expect(try #require(try service.newestSequence()) > before)
        },
        remaining: ["INSERT INTO rate_counts (tenant, user_id, started_at, count, reached) VALUES ('t', 'u', 1, 1, 0)"])

    private static let newest = Chapter(
        happen: { service in
            let draft = Bellhop.NotificationDraft(
                userId: "ada", category: "news", priority: .low, title: "Open late", message: "Until ten")
            try await next(service, as: .service()).postNotification(draft)
        },
        isServed: { service in
            let listed = try await service.client(as: ada).listNotifications().value.items
            #expect(listed.contains { $0.title == "Open late" })
        })

    // MARK: Rows

    private static let tables = Chapter(
        happen: { service in
            let school = try await School(service, isKnown: false)
            try await school.sendMemberships(of: "A")
            service.clock.advance(seconds: 1)
            let sent = try await service.call(
                "POST", "/v1/changes", as: .service(), School.own("homework", "w1", of: "s1"),
                headers: ["webhook-id": "delivery-1"])
            #expect(sent.isSuccess, "\(sent.problem)")
        },
        isServed: { service in
            // Earlier builds did not note the rule that gave a membership. Its row counts once it is sent again.
            try await School(service, isKnown: false).sendMemberships(of: "A")
            let scope = try await service.client(as: School.parent("p1")).getMe().value.scope
            #expect(scope.contains("student:s1:parent"), "\(scope)")
            let again = try await service.call(
                "POST", "/v1/changes", as: .service(), School.own("homework", "w1", of: "s1"),
                headers: ["webhook-id": "delivery-1"])
            #expect(again.json["duplicates"].int == 1, "\(again.json)")
        })

    // MARK: Music

    private static let music = Chapter(
        happen: { service in
            try await next(service, as: staff).replaceDJSession(id: "s1", .init(isActive: true))
            for guest in [ada, ben] { try await next(service, as: guest).showPresence(id: "s1") }
            try await next(service, as: ada).addTrack(id: "s1", DJTests.track("t1"))
            try await next(service, as: ben).voteOnTrack(id: "s1", trackId: "t1", .init(vote: .up))
            try await next(service, as: staff).replacePresenceRule(id: "s1", .init(codeRequired: true))
            let wrong = try await problem(of: await service.client("eve").showPresence(id: "s1", .init(code: "AAAAAA")))
            #expect(wrong.status == 403)
        },
        isServed: { service in
            let session = try await service.client(as: ben).getDJSession(id: "s1").value
            #expect(session.isActive)
            let track = try #require(session.queue.first)
            #expect(track.trackId == "t1" && track.upvotes == 2 && track.userVote == .up)
            #expect(try await service.client(as: ben).getPresence(id: "s1").value.isPresent)
        })

    // MARK: People

    private static let conversations = Chapter(
        happen: { service in
            let id = try await service.converse("ben", "ada")
            #expect(try await service.send("See you at nine", to: id, as: "ben").status == 201)
        },
        isServed: { service in
            let conversation = try #require(try await service.conversations(of: "ada").first)
            #expect(conversation.unread == 1)
            let messages = try await service.client(as: ada).listMessages(id: conversation.id).value.items
            #expect(messages.first?.text == "See you at nine")
            #expect(try await service.badges(of: "ada")[0] == 1)
        })

    private static let challenges = Chapter(
        happen: { service in
            try await next(service, as: .service()).replaceChallenge(id: "c1", ChallengesTests.draft)
            for (user, score) in [("ada", 120), ("ben", 80)] { try await service.score(user, score) }
        },
        isServed: { service in
            let board = try await service.client(as: ada).getLeaderboard(id: "c1").value
            #expect(ChallengesTests.lines(board) == ["1 1 ada 120", "2 2 ben 80"])
        })

    private static let requests = Chapter(
        happen: { service in
            try await next(service, as: ben).createRequest(.init(kind: .friend, toUserId: "ada", fromName: "Ben"))
        },
        isServed: { service in
            let request = try #require(try await service.client(as: ada).listRequests().value.items.first)
            #expect(request.kind == .friend && request.status == .open)
            #expect(try await service.badges(of: "ada")[1] == 1)
        })

    private static let posts = Chapter(
        happen: { service in
            let kept = try await service.post("ben", "New in town").id
            let removed = try await service.post("ben", "A mistake").id
            try await service.follow("ben", as: "ada")
            try await next(service, as: ada).putLike(id: kept, userId: "me")
            try await next(service, as: ada).putRepost(id: kept, userId: "me")
            #expect(try await service.client("ben").deletePost(id: removed).status == 204)
        },
        isServed: { service in
            let feed = try await service.client("ada").getFeed().value
            #expect(feed.items.map(\.text) == ["New in town"])
            #expect(try await service.client("ada").getUser(id: "ben").value.followerCount == 1)
        },
        // The rows of a removed post are deleted in steps, and the last step is still missing.
        remaining: ["INSERT INTO post_removals (tenant, post_id) VALUES ('default', 'removed')"])

    // MARK: Shared events, requests in rows of their own, boards as changes

    private static let walls = Chapter(
        happen: { service in
            let id = try await service.converse("cem", "ben", "dan")
            #expect(try await service.send("All of us at ten", to: id, as: "cem").status == 201)
            try await next(service, as: cem).createRequest(.init(kind: .friend, toUserId: "ben", fromName: "Cem"))
            let asked = try #require(try await service.client(as: ben).listRequests().value.items.first)
            try await next(service, as: ben).seeRequests(.init(seenUpTo: asked.id))
            service.clock.advance(seconds: 5)
            try await service.run(ChallengesFeature.updateTick)
        },
        isServed: { service in
            // Seen requests do not count in the badge, and are still listed.
            let open = try await service.client(as: ben).listRequests().value.items
            #expect(open.contains { $0.fromName == "Cem" })
            #expect(try await service.badges(of: "ben")[1] == 0)
            let listed = try await service.conversations(of: "cem")
            #expect(listed.first?.lastMessage?.preview == "All of us at ten", "\(listed)")
        })

    // MARK: Notifications in eviction order

    private static let eviction = Chapter(
        happen: { service in
            let draft = Bellhop.NotificationDraft(
                userId: "dan", category: "news", priority: .low, title: "Late news", message: "M")
            try await next(service, as: .service()).postNotification(draft)
        },
        isServed: { service in
            let listed = try await service.client("dan").listNotifications().value.items
            #expect(listed.contains { $0.title == "Late news" }, "\(listed)")
        })

    // MARK: One record for the events of one audience

    private static let records = Chapter(
        happen: { service in
            let draft = Bellhop.NotificationDraft(
                userId: "fay", category: "news", priority: .high, title: "First news", message: "M")
            try await next(service, as: .service()).postNotification(draft)
        },
        isServed: { service in
            let oldest = try service.app.store.read { try EventLog.oldestSequence(in: $0) }
            let cursor = service.app.runner.reader.log.ids.cursor(oldest - 1).text
            let stream = try await service.listen(as: .user("fay"), lastEventID: cursor)
            #expect(try await stream.next().json["title"].string == "First news")
            #expect(try await stream.next("badges:update").json["bell"].int == 1)
        })
}

extension LevelStory {
    // MARK: Work on its way

    private static let work = Chapter(
        happen: { service in
            let erasure = try await service.call("DELETE", "/v1/users/gone", as: .service())
            #expect(erasure.status == 202)
        },
        isServed: { service in
            let erasure = try await service.call("GET", "/v1/users/gone/erasure", as: .service())
            #expect(["pending", "done"].contains(erasure.json["state"].string ?? ""), "\(erasure.text)")
        },
        remaining: workRows)

    /// Rows that need providers, receivers and a source of their own.
    private static let workRows = [
        """
        INSERT INTO devices (tenant, user_id, id, platform, environment, address, route, fingerprint, created_at, registered_at,
            badge_at)
        VALUES ('default', 'ada', 'phone', 'fcm', 'production', X'00', 'fcm', 'f1', 1, 1, 1)
        """,
        """
        INSERT INTO outbox (tenant, lane, route, id, user_id, type, subject, slot, data, state, version, created_at, due_at,
            patient_until, gives_up_at, attempts, lease)
        VALUES ('default', 'other', 'other', 'm1', 'ada', 'test', 'test', 'test', '{}', 0, 1, 1, 1, 1, 4102444800000000, 0, 0)
        """,
        """
        INSERT INTO outbox_lanes (tenant, lane, route, user_id, next_at, waits_from, lease, failures)
        VALUES ('default', 'other', 'other', 'ada', 1, 1, 0, 0)
        """,
        """
        INSERT INTO source_positions (slot, source, lsn, taken, tables, stored_at) VALUES ('other', '1/app#1', 7, 0, '', 1)
        """,
    ]
}

extension TestService {
    /// The sequence number of the newest stored event.
    func newestSequence() throws -> Int64? { try app.store.read { try EventLog.newestSequence(in: $0) } }
}
