import BellhopClient
import Database
import Foundation
import TestSupport
import Testing

@testable import Service

/// A tag identifies one version of the answer to one caller, in one epoch (R-34).
@Suite(.timed) struct EntityTagsTests {
    private static let draft = BookingsTests.draft("2026-01-10T22:00:00Z", barber: nil)

    /// Returns every path that has a tag. The answers include data of the caller where a path has any.
    private static func addresses(at service: TestService) async throws -> [String] {
        let backend = service.client(as: .service())
        let ada = try await DJTests.guest("ada", at: service)
        #expect(try await ada.addTrack(id: "s1", DJTests.track("t1")).status == 201)
        #expect(try await backend.replaceChallenge(id: "c1", ChallengesTests.draft).status == 201)
        for user in ["ada", "bob"] {
            #expect(try await service.client(user).createPost(.init(text: "a")).status == 201)
        }
        return [
            "/v1/badges", "/v1/badges?include=conversations", DJTests.session, "/v1/challenges/c1/leaderboard",
            "/v1/feed",
        ]
    }

    /// Lists, weak tags, tags without quotes, and marks of proxies that compress.
    @Test(arguments: [
        ("{}", true), ("W/{}", true), ("\"other\", {}", true), ("\"other\",W/{} , \"last\"", true), ("*", true),
        ("\"a,b\", {}", true), (", ,{}", true), ("{-gzip}", true), ("W/{-gzip}", true), ("{--gzip}", true),
        ("{-br}", true), ("{-zstd}", true), ("{bare}", true), ("{-x}", false), ("\"other\"", false), ("\"", false),
        ("\"{bare}", true), ("\"*\", W/", false),
    ])
    func tag_isFoundInTheHeader(_ form: String, _ isFound: Bool) async throws {
        let service = try TestService.start()
        let tag = try #require(try await service.call("GET", "/v1/badges", as: .user("ada"))[header: "ETag"])
        let bare = String(tag.dropFirst().dropLast())
        var header = form.replacing("{}", with: tag).replacing("{bare}", with: bare)
        for mark in ["-gzip", "--gzip", "-br", "-zstd", "-x"] {
            header = header.replacing("{\(mark)}", with: "\"\(bare)\(mark)\"")
        }
        let answer = try await service.call("GET", "/v1/badges", as: .user("ada"), headers: ["If-None-Match": header])
        #expect(answer.status == (isFound ? 304 : 200), "\(header)")
    }

    /// The tags of several lines are one list (RFC 9110 §5.3).
    @Test func tagsOfSeveralLines_areOneList() async throws {
        let service = try await DJTests.open()
        func answer(_ line: String, _ fields: String) throws -> RawConnection.Answer {
            let raw = try RawConnection(service.port)
            let token = service.token(for: .user("ada"))
            try raw.send("\(line) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\(fields)\r\n")
            return try raw.readAnswer()
        }
        let counts = try #require(try answer("GET /v1/badges", "").headers["etag"])
        #expect(try answer("GET /v1/badges", "If-None-Match: \"x\"\r\nIf-None-Match: \(counts)\r\n").status == 304)
        let id = try await service.client("ada").createBooking(Self.draft).value.id
        let tag = try #require(try answer("GET /v1/bookings/\(id)", "").headers["etag"])
        let body = #"{"status":"cancelled"}"#
        let fields = "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
        let changed = try answer(
            "PATCH /v1/bookings/\(id)", "If-Match: \"7-x\"\r\nIf-Match: \(tag)\r\n\(fields)\r\n\(body)")
        #expect(changed.status == 200)
    }

    /// A change happens if one of the listed versions is the current one.
    @Test(arguments: [
        ("\"7-x\", {}", 200), ("{},\"7-x\"", 200), ("W/{}", 200), ("\"7-x\", \"8-x\"", 412), ("\"7-x\"", 412),
        ("{-gzip}", 200),
    ])
    func ifMatch_isAList(_ form: String, _ status: Int) async throws {
        let service = try await DJTests.open()
        let created = try await service.client("ada").createBooking(Self.draft)
        let id = created.value.id
        let tag = try #require(
            try await service.call("GET", "/v1/bookings/\(id)", as: .user("ada"))[header: "ETag"])
        let header = form.replacing("{}", with: tag).replacing("{-gzip}", with: "\(tag.dropLast())-gzip\"")
        let answer = try await service.call(
            "PATCH", "/v1/bookings/\(id)", as: .user("ada"), ["status": "cancelled"], headers: ["If-Match": header])
        #expect(answer.status == status, "\(header): \(answer)")
    }

    @Test func tagOfOne_confirmsNothingToAnother() async throws {
        let service = try await DJTests.open()
        for path in try await Self.addresses(at: service) {
            let tag = try #require(try await service.call("GET", path, as: .user("ada"))[header: "ETag"], "\(path)")
            #expect(
                try await service.call("GET", path, as: .user("ada"), headers: ["If-None-Match": tag]).status == 304,
                "\(path)")
            var others: [TestService.Identity] = [.user("bob"), .user("ada", tenant: "other"), .admin]
            others.append(.init(subject: "ada", metadata: ["user_role": "staff", "shop_ids": ["s1"]]))
            for other in others {
                let answer = try await service.call("GET", path, as: other, headers: ["If-None-Match": tag])
                #expect(answer.status != 304, "\(path) \(other)")
            }
        }
        // Both receive the same version, but each sees only their own vote.
        let (hers, his) = (
            try await service.call("GET", DJTests.session, as: .user("ada")),
            try await service.call("GET", DJTests.session, as: .user("bob"))
        )
        #expect(hers.json["version"] == his.json["version"])
        #expect(hers.json["queue"][0]["userVote"] == "up")
        #expect(his.json["queue"][0]["userVote"] == "none")
    }

    /// After a restore, the counts can reach an old version again with different values.
    @Test func tagOfAnotherEpoch_confirmsNothing() async throws {
        let service = try await DJTests.open()
        let ada = service.client("ada")
        var known: [(path: String, answer: ServiceAnswer)] = []
        for path in try await Self.addresses(at: service) {
            known.append((path, try await service.call("GET", path, as: .user("ada"))))
        }
        let booking = try await ada.createBooking(Self.draft)
        #expect(booking.status == 201)
        try await service.alterTable(sqlite: "DELETE FROM event_epochs", postgres: "DELETE FROM event_epochs")
        try await service.restart()
        let client = service.client("ada")
        for (path, before) in known {
            let after = try await service.call(
                "GET", path, as: .user("ada"), headers: ["If-None-Match": before[header: "ETag"] ?? ""])
            #expect(after.status == 200, "\(path)")
            #expect(after[header: "ETag"] != before[header: "ETag"], "\(path)")
            guard path != "/v1/feed" else { continue }
            #expect(after.json["version"] == before.json["version"], "\(path)")
            let epochs = (before.json["epoch"].string ?? "none", after.json["epoch"].string ?? "none")
            #expect(epochs.0 != epochs.1, "\(path)")
        }
        let stale = try await problem(
            of: await client.changeBooking(id: booking.value.id, ifMatch: booking.etag ?? "", .init(status: .cancelled))
        )
        #expect(stale.refusal == "412 precondition.stale")
        let present = try await client.getBooking(id: booking.value.id)
        let change = try await client.changeBooking(
            id: booking.value.id, ifMatch: present.etag ?? "", .init(status: .cancelled))
        #expect(change.status == 200)
    }

    /// Every payload with a version also carries the epoch: answers, and events of every kind.
    @Test func versions_comeWithTheirEpoch() async throws {
        let service = try await DJTests.open()
        let epoch = service.app.runner.reader.log.epoch
        let (ada, staff) = (service.client("ada"), service.client(as: .staff(of: "s1")))
        let stream = try await service.listen(as: .user("ada"), topics: ["dj:s1", "leaderboard:c1"])
        #expect(stream.ready.json["badges"]["epoch"].string == epoch)
        for path in try await Self.addresses(at: service) where path != "/v1/feed" {
            #expect(try await service.call("GET", path, as: .user("ada")).json["epoch"].string == epoch, "\(path)")
        }
        let made = try await ada.createBooking(Self.draft)
        #expect(made.value.epoch == epoch)
        #expect(try await ada.listBookings().value.items[0].epoch == epoch)
        #expect(try await staff.change(made.value, .init(status: .confirmed)).status == 200)
        let score = try await service.call(
            "POST", "/v1/challenges/c1/scores", as: .service(), ["score": 5, "userId": "ada"],
            headers: ["Idempotency-Key": "k"])
        #expect(score.json["epoch"].string == epoch)
        #expect(try await staff.replaceDJSession(id: "s1", .init(isActive: false)).status == 200)
        _ = try await stream.next("badges:update")
        while try await stream.next("dj:session").json["isActive"] == true {}
        let versioned = stream.received.map { ($0.name, $0.json) }.filter { $0.1["version"].int != nil }
        #expect(versioned.allSatisfy { $0.1["epoch"].string == epoch }, "\(versioned)")
        let names = Set(versioned.map { $0.0 })
        #expect(names.isSuperset(of: ["badges:update", "booking:status_change", "dj:session", "track:added"]))
    }

    /// A shared cache must not give one user's answer to another.
    @Test func answersByToken_varyByIt() async throws {
        let service = try TestService.start()
        func vary(_ path: String, _ headers: [String: String] = [:]) async throws -> String? {
            try await service.call("GET", path, as: .user("ada"), headers: headers)[header: "Vary"]
        }
        let tag = try await service.call("GET", "/v1/badges", as: .user("ada"))[header: "ETag"] ?? ""
        for path in ["/v1/badges", "/v1/me", "/v1/notifications", "/v1/feed", "/v1/bookings/none"] {
            #expect(try await vary(path) == "Authorization", "\(path)")
        }
        #expect(try await vary("/v1/badges", ["If-None-Match": tag]) == "Authorization")
        #expect(try await vary("/v1/stream?nonsense=1") == "Authorization, Cookie")
        for path in ["/healthz", "/v1/config", "/nowhere"] { #expect(try await vary(path) == nil, "\(path)") }
        let nobody = try await service.call("GET", "/v1/badges")
        #expect(nobody.status == 401)
        #expect(nobody[header: "Vary"] == "Authorization")
        let raw = try RawConnection(service.port)
        let token = service.token(for: .user("ada"))
        try raw.send("GET /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\r\n")
        #expect(try raw.read(until: "\r\n\r\n").contains("Vary: Authorization, Cookie\r\n"))
        let shared = try TestService.start(["corsOrigins": "https://app.example"])
        let answer = try await shared.client("ada").getMe()
        #expect(answer.headers["vary"] == "Origin, Authorization")
    }
}
