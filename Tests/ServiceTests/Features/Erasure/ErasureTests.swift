import BellhopClient
import Database
import Foundation
import PostgresServer
import TestSupport
import Testing
import Values

@testable import Service

/// Erasures: nothing about the person is left, and everything of others.
@Suite(.timed) struct ErasureTests {
    /// Tables without a row of the town that names a person.
    private static let unused: Set = ["rate_counts", "presence_attempts", "audit_counts", "erasures", "outbox_lanes"]

    private static func expectNothing(
        of words: [String], in rows: [String: [String]], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        for (table, lines) in rows {
            let left = lines.filter { line in words.contains { line.contains($0) } }
            #expect(left.isEmpty, "\(table): \(left.prefix(3))", sourceLocation: sourceLocation)
        }
    }

    @Test func erasedPerson_leavesNothing_andOthersKeepEverything() async throws {
        let town = try await ErasedTown()
        let before = try town.rows(of: "A")
        for table in Catalog.tables where table.person?.links.isEmpty == false && !Self.unused.contains(table.name) {
            #expect(before[table.name]?.contains { $0.contains(ErasedTown.ada) } == true, "\(table.name) has no row")
        }
        let others = try ["B", "C"].map { try town.rows(of: $0) }
        try await town.erase(ErasedTown.ada, "A")
        Self.expectNothing(of: [ErasedTown.mark(ErasedTown.ada, "A")], in: try town.rows(of: "A"))
        // Rows without a tenant hold names of other tenants' persons.
        let shared = Set(Catalog.tables.filter { $0.name == "event_shared" }.map(\.name))
        Self.expectNothing(of: [ErasedTown.ada], in: try town.rows(of: "A").filter { !shared.contains($0.key) })
        for (tenant, known) in zip(["B", "C"], others) {
            let now = try town.rows(of: tenant)
            // The sender of webhooks tries meanwhile, and changes its rows.
            let changing = ["challenge_boards", "challenge_tops", "shop_queues", "outbox"]
            #expect(now["outbox"]?.count == known["outbox"]?.count)
            for (table, lines) in known where !changing.contains(table) {
                let lost = lines.filter {
                    $0.contains(ErasedTown.mark(ErasedTown.ada, tenant)) && now[table]?.contains($0) != true
                }
                #expect(lost.isEmpty, "\(tenant) \(table): \(lost.prefix(2))")
            }
        }
        let marks = try town.rows(of: "A").values.joined().joined()
        for what in ["title", "post", "last", "score", "service", "name", "barber"] {
            #expect(marks.contains(ErasedTown.mark(ErasedTown.ben, "A") + what), "\(what)")
        }
        try town.service.expectExactCounts()
    }

    /// Others see that something was there, and no more.
    @Test func messagesKeepTheirPlace_andBookingsTheirTime() async throws {
        let town = try await ErasedTown()
        try await town.erase(ErasedTown.ada, "A")
        let eve = TestService.Identity.user("eve", tenant: "A")
        let conversations = try await town.send(eve, "GET", "/v1/conversations")["items"].array ?? []
        #expect(conversations.count == 6)
        var senders: [String: Int] = [:]
        for conversation in conversations {
            let path = "/v1/conversations/\(conversation["id"].string ?? "")/messages"
            for message in try await town.send(eve, "GET", path)["items"].array ?? [] {
                senders[message["senderId"].string ?? "", default: 0] += 1
                let isErased = message["senderId"].string == "bellhop:erased"
                #expect(isErased != message["deletedAt"].isNull || message["senderId"].string == "eve")
            }
        }
        #expect(senders == ["bellhop:erased": 4, "eve": 6, ErasedTown.ben: 4, ErasedTown.zoe: 4])
        let bookings = try await town.send(ErasedTown.admin("A"), "GET", "/v1/bookings?shopId=s1")["items"].array ?? []
        #expect(bookings.count == 6)
        #expect(bookings.count { $0["userId"].isNull } == 1)
        #expect(bookings.count { $0["barberId"].isNull } == 2)
        let profile = try await town.send(eve, "GET", "/v1/users/me")
        #expect(profile["followerCount"].int == 2 && profile["followingCount"].int == 2)
        try town.service.expectExactCounts()
    }

    /// No byte stays in the files of SQLite: not in free pages, not in the write-ahead log, not in a backup.
    @Test(.enabled(if: !PostgresServer.isTheStore)) func noByteStaysInTheFiles() async throws {
        let town = try await ErasedTown()
        let directory = town.service.directory
        func places(_ word: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { name in
                try Data(contentsOf: URL(fileURLWithPath: directory.file(name))).range(of: Data(word.utf8)) != nil
            }
        }
        #expect(try !places(ErasedTown.zoe).isEmpty)
        try await town.erase(ErasedTown.zoe, "A")
        try Operations.backUp(
            TestService.settings(["database": town.service.database.url, "jwtSecret": TestService.secret]),
            to: directory.file("copy.sqlite"))
        #expect(try places(ErasedTown.zoe) == [])
        #expect(try places(ErasedTown.ben).contains("copy.sqlite"))
    }

    @Test func tokensAreRefused_andStreamsClose() async throws {
        let town = try await ErasedTown()
        let ada = TestService.Identity.user(ErasedTown.ada, tenant: "A")
        let old = TestService.Identity.bearer(town.service.token(for: ada))
        let elsewhere = TestService.Identity.user(ErasedTown.ada, tenant: "B")
        let stream = try await town.service.listen(as: old)
        let kept = try await town.service.listen(as: elsewhere)
        town.service.clock.advance(seconds: 1)
        let asked = try await town.service.call("DELETE", "/v1/users/\(ErasedTown.ada)", as: .service(tenant: "A"))
        #expect(asked.status == 202)
        #expect(asked.headers["location"] == "/v1/users/\(ErasedTown.ada)/erasure")
        #expect(try await stream.next("stream:closing").json["reason"].string == "revoked")
        #expect(try await town.service.call("GET", "/v1/badges", as: old).status == 401)
        #expect(try await town.service.call("GET", "/v1/badges", as: elsewhere).status == 200)
        kept.close()
        try await town.service.restart()
        #expect(try await town.service.call("GET", "/v1/badges", as: old).status == 401)
        town.service.clock.advance(seconds: Limits.clockSkewSeconds + 1)
        #expect(try await town.service.call("GET", "/v1/badges", as: ada).status == 200)
        let reserved = TestService.Identity.user("bellhop:erased:7", tenant: "A")
        #expect(try await town.service.call("GET", "/v1/badges", as: reserved).status == 401)
    }

    /// A stream that resumes before an erased event loads everything again, instead of missing it unnoticed.
    /// The issuer's clock is ahead, so a token from before seems to come from after the request to erase.
    @Test func tokenOfAnIssuerWhoseClockIsAhead_isRefused() async throws {
        let service = try TestService.start(at: TestService.morning)
        var ada = TestService.Identity.user("ada")
        ada.claims["iat"] = .integer(service.clock.now.seconds + Limits.clockSkewSeconds)
        let old = TestService.Identity.bearer(service.token(for: ada))
        #expect(try await service.call("GET", "/v1/badges", as: old).status == 200)
        #expect(try await service.call("DELETE", "/v1/users/ada", as: .service()).status == 202)
        #expect(try await service.call("GET", "/v1/badges", as: old).refusal == "401 invalid_token.revoked")
        service.clock.advance(seconds: Limits.clockSkewSeconds + 1)
        #expect(try await service.call("GET", "/v1/badges", as: old).refusal == "401 invalid_token.revoked")
        #expect(try await service.call("GET", "/v1/badges", as: .user("ada")).status == 200)
    }

    @Test func streamOfAnother_resyncs_whenItMissedAnErasedEvent() async throws {
        let town = try await ErasedTown()
        let eve = TestService.Identity.user("eve", tenant: "A")
        let place = try await town.service.position(as: eve)
        try await town.send(
            .service(tenant: "A"), "POST", "/v1/publish",
            ["event": "tidings", "to": ["user:eve"], "data": ["who": .string(ErasedTown.ada)]])
        try await town.erase(ErasedTown.ada, "A")
        let stream = try await town.service.listen(as: eve, lastEventID: place)
        _ = try await stream.next("stream:resync")
        #expect(!stream.received.contains { $0.data.contains(ErasedTown.ada) })
    }

    @Test func anErasure_isForBackendsAndAdministrators_andMayBeRepeated() async throws {
        let service = try TestService.start(at: TestService.morning)
        for identity in [TestService.Identity.user("ada"), .staff(of: "s1")] {
            #expect(try await service.call("DELETE", "/v1/users/ada", as: identity).status == 403)
            #expect(try await service.call("GET", "/v1/users/ada/erasure", as: identity).status == 403)
        }
        #expect(try await service.call("GET", "/v1/users/ada/erasure", as: .service()).status == 404)
        #expect(try await service.call("DELETE", "/v1/users/bellhop:erased", as: .service()).status == 404)
        let first = try await service.call("DELETE", "/v1/users/ada", as: .service())
        #expect(try await service.call("DELETE", "/v1/users/ada", as: .service()).json == first.json)
        func state() async throws -> String? {
            try await service.call("GET", "/v1/users/ada/erasure", as: .service()).json["state"].string
        }
        try await eventually("done", step: { service.clock.advance(seconds: 1) }) { try await state() == "done" }
        try await service.publish("again", to: "ada")
        #expect(try await service.call("DELETE", "/v1/users/ada", as: .service()).json["state"].string == "pending")
        try await eventually("done", step: { service.clock.advance(seconds: 1) }) { try await state() == "done" }
        service.clock.advance(seconds: Limits.clockSkewSeconds + 1)
        let ada = try await service.call("GET", "/v1/notifications", as: .user("ada"))
        #expect(ada.json["items"].array?.isEmpty == true, "\(ada.text)")
    }

    /// The id of a person may be a word, or the id of a shop. Rows of others that contain it as such stay.
    @Test func idThatIsAlsoAWord_takesNothingFromOthers() async throws {
        let service = try TestService.start(at: TestService.morning)
        let backend = TestService.Identity.service()
        let word = "visit"
        func call(_ method: String, _ path: String, _ body: JSON? = nil) async throws -> ServiceAnswer {
            let answer = try await service.call(method, path, as: backend, body)
            #expect(answer.isSuccess, "\(method) \(path): \(answer.text)")
            return answer
        }
        _ = try await call("PUT", "/v1/shops/\(word)", ["name": "Visit", "timeZone": "UTC"])
        let drafts: [(String, JSON)] = [
            ("visit:1", ["type": "visit"]), ("other:2", ["kind": ["visit"], "shop": "visit"]),
            ("other:3", ["friendId": "visit"]), ("follow:visit:ben", ["kind": "follow"]),
        ]
        for (event, data) in drafts {
            _ = try await call(
                "POST", "/v1/notifications",
                [
                    "id": .string(event), "userId": "ben", "category": "visit", "priority": "NORMAL",
                    "title": .string(event), "message": "text", "data": data,
                ])
        }
        _ = try await call("DELETE", "/v1/users/\(word)")
        try await eventually("the erasure ends", step: { service.clock.advance(seconds: 1) }) {
            try await call("GET", "/v1/users/\(word)/erasure").json["state"] == "done"
        }
        let left = try await service.all(of: "ben").map(\.title)
        #expect(left == ["visit:1", "other:2"])
        #expect(try await call("GET", "/v1/shops/\(word)").json["name"] == "Visit")
        try service.expectExactCounts()
    }

    @Test(arguments: [
        (1, "10T12:00:00Z", "10T12:00:00Z"), (1 << 40, "10T12:00:00Z", "11T03:00:00Z"),
        (1 << 40, "10T02:59:59Z", "10T03:00:00Z"), (1 << 40, "10T03:00:00Z", "10T03:00:00Z"),
        (1 << 40, "10T03:59:59Z", "10T03:59:59Z"), (1 << 40, "10T04:00:00Z", "11T03:00:00Z"),
    ])
    func largeFile_isRewrittenInItsHour(_ bytes: Int, _ now: String, _ expected: String) throws {
        let now = try #require(Timestamp(rfc3339: "2026-01-\(now)"))
        let time = ErasureFeature.rewriteTime(ofBytes: bytes, hour: 3, at: now)
        #expect(time == Timestamp(rfc3339: "2026-01-\(expected)"))
    }

    /// A process that ends at any moment continues the erasure.
    @Test func restart_continuesAnErasure() async throws {
        let town = try await ErasedTown()
        let admin = ErasedTown.admin("A")
        #expect(try await town.service.call("DELETE", "/v1/users/\(ErasedTown.ada)", as: admin).status == 202)
        for _ in 0..<3 {
            town.service.clock.advance(seconds: 1)
            try await town.service.restart()
        }
        try await eventually("the erasure ends", step: { town.service.clock.advance(seconds: 1) }) {
            let answer = try await town.service.call("GET", "/v1/users/\(ErasedTown.ada)/erasure", as: admin)
            return answer.json["state"].string == "done"
        }
        Self.expectNothing(
            of: [ErasedTown.mark(ErasedTown.ada, "A")], in: try town.rows(of: "A"))
        try town.service.expectExactCounts()
    }
}
