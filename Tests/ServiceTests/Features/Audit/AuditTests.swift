import BellhopClient
import Database
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// The audit log: which acts have entries, and the content of the entries.
@Suite(.timed) struct AuditTests {
    private let service: TestService
    private let staff = TestService.Identity.staff(of: "s1", named: "kim")

    init() async throws { service = try await BookingsTests.shop() }

    /// The entries about a shop of ``BookingsTests`` are left out.
    private func entries(_ query: String = "", as identity: TestService.Identity = .service()) async throws -> [JSON] {
        let answer = try await service.call("GET", "/v1/audit?limit=100\(query)", as: identity)
        #expect(answer.status == 200, "\(answer.text)")
        return (answer.json["items"].array ?? []).filter { $0["action"].string?.hasPrefix("PUT /v1/shops") != true }
    }

    private static func summary(_ entry: JSON) -> String {
        [
            entry["actorKind"], entry["actorId"], entry["action"], entry["outcome"], entry["targetKind"],
            entry["targetId"],
        ].map { $0.string ?? "-" }.joined(separator: " | ")
    }

    // MARK: Entries

    @Test func writesOfStaff_toRowsOfOthers_haveEntries() async throws {
        let made = try await service.client("ada").createBooking(BookingsTests.draft())
        #expect(try await entries().isEmpty)
        let changed = try await service.client(as: staff).change(made.value, .init(status: .confirmed))
        #expect(changed.status == 200)
        let found = try await entries()
        #expect(
            found.map(Self.summary) == ["staff | kim | PATCH /v1/bookings/{id} | changed | bookings | ada"])
        #expect(found[0]["requestId"].string?.isEmpty == false)
    }

    @Test func staffWithOwnData_haveNoEntries() async throws {
        #expect(try await service.client(as: staff).createBooking(BookingsTests.draft(user: "kim")).status == 201)
        #expect(try await service.call("PUT", "/v1/preferences", as: staff, ["sound": false]).status == 200)
        #expect(try await service.call("PUT", "/v1/users/ada/followers/me", as: staff).status < 300)
        #expect(try await entries().isEmpty)
    }

    @Test func administrators_areNamed() async throws {
        let made = try await service.client("ada").createBooking(BookingsTests.draft())
        #expect(
            try await service.client(as: .admin).change(made.value, .init(status: .confirmed)).status == 200)
        #expect(
            try await entries().map(Self.summary)
                == ["administrator | admin | PATCH /v1/bookings/{id} | changed | bookings | ada"])
    }

    @Test func backends_haveAnEntryForEachWrite() async throws {
        _ = try await service.converse("ada", "ben")
        let revoked = try await service.call("POST", "/v1/revocations", as: .service(), ["sessionId": "x1"])
        #expect(revoked.status == 201)
        let liked = try await service.client(as: .service()).createBooking(BookingsTests.draft(user: "ada"))
        #expect(liked.status == 201)
        #expect(
            try await entries().map(Self.summary).prefix(2) == [
                "service | backend | POST /v1/bookings | stored | bookings | ada",
                "service | backend | POST /v1/revocations | accepted | - | -",
            ])
    }

    /// Rows that a statement without a scope writes name their users, too.
    @Test func revocationsAndMembers_nameTheirUsers() async throws {
        let revoked = try await service.call(
            "POST", "/v1/revocations", as: .service(), ["userId": "ada", "issuedBefore": "2026-01-01T00:00:00Z"])
        #expect(revoked.status == 201)
        let made = try await service.call("POST", "/v1/conversations", as: .service(), ["memberIds": ["ada", "ben"]])
        #expect(made.status == 201, "\(made.text)")
        let found = Set(try await entries().map(Self.summary))
        #expect(
            found == [
                "service | backend | POST /v1/revocations | stored | revocations | ada",
                "service | backend | POST /v1/conversations | stored | conversation_members | ada",
                "service | backend | POST /v1/conversations | stored | conversation_members | ben",
            ])
    }

    /// Every operation of the contract, by a backend, an administrator and staff: a write that succeeds has an entry.
    @Test func everyWrite_hasAnEntry() async throws {
        let world = try await VisibilityWorld.make()
        func noted() throws -> Int {
            try world.service.app.store.read { db in
                let why = Unscoped.audit("a test counts entries")
                return
                    (try db.integer("SELECT coalesce(sum(count), 0) FROM \(AuditFeature.entries, unscoped: why)") ?? 0)
                    + (try db.integer("SELECT coalesce(sum(count), 0) FROM \(AuditFeature.counts, unscoped: why)") ?? 0)
            }
        }
        var (silent, successes) = (Set<String>(), 0)
        for route in Operations.routes where route.method != "GET" && route.access != "anyone" {
            for caller in [VisibilityWorld.Caller.backend, .admin, .staff] {
                // Administrators and staff may also act as ordinary users, on their own rows.
                guard caller == .backend || route.access != "bearer" else { continue }
                for request in try world.requests("\(route.method) \(route.pattern)", as: caller) {
                    let before = try noted()
                    let answer = try await world.service.call(
                        route.method, request.path, as: world.identity(caller), request.body, headers: request.headers)
                    guard answer.status < 300 else { continue }
                    successes += 1
                    if try noted() == before { silent.insert("\(route.method) \(route.pattern)") }
                }
            }
        }
        #expect(successes > 20)
        // These read, or change an open stream and no row.
        #expect(
            silent.isSubset(of: [
                "POST /v1/explain", "PUT /v1/streams/{id}/subscriptions", "PUT /v1/streams/{id}/token",
            ]),
            "\(silent.sorted())")
        try world.service.expectExactCounts()
    }

    @Test func refusedWrite_leavesNoEntry() async throws {
        let made = try await service.client("ada").createBooking(BookingsTests.draft())
        let stale = try await service.call(
            "PATCH", "/v1/bookings/\(made.value.id)", as: staff, ["status": "confirmed"],
            headers: ["If-Match": "\"99-x\"", "Idempotency-Key": "k1"])
        #expect(stale.status == 412)
        let unknown = try await service.call(
            "PATCH", "/v1/bookings/01kanx5q8e8v2m4c6d7f9g1h3j", as: staff, ["status": "confirmed"],
            headers: ["If-Match": "\"1\""])
        #expect(unknown.status >= 400)
        #expect(try await entries().isEmpty)
        // A repeated key returns the stored answer and has one entry.
        for _ in 0..<2 {
            let revoked = try await service.call(
                "POST", "/v1/revocations", as: .service(), ["sessionId": "x1"], headers: ["Idempotency-Key": "k2"])
            #expect(revoked.status == 201)
        }
        #expect(try await entries().count == 1)
    }

    /// The kinds of calls that backends send in large numbers have one entry per minute.
    @Test func frequentCalls_areCountedByTheMinute() async throws {
        try await concurrently(0..<20) { try await service.publish("e\($0)", to: "u\($0 % 3)") }
        let event: JSON = ["event": "tidings", "to": ["user:ada"], "data": 1]
        for key in [nil, "k1"] {
            let answer = try await service.call(
                "POST", "/v1/publish", as: .service(), event, headers: key.map { ["Idempotency-Key": $0] } ?? [:])
            #expect(answer.status == 202)
        }
        try await service.run(AuditFeature.endingMinutes)
        #expect(try await entries().isEmpty)
        service.clock.advance(seconds: 60)
        try await service.run(AuditFeature.endingMinutes)
        let found = try await entries()
        #expect(found.map { $0["action"].string ?? "" }.sorted() == ["POST /v1/events", "POST /v1/publish"])
        #expect(found.map { $0["count"].int ?? 0 }.sorted() == [2, 20])
        #expect(found.allSatisfy { $0["targetId"].isNull && $0["outcome"] == "accepted" })
        try await service.run(AuditFeature.endingMinutes)
        #expect(try await entries().count == 2)
        try service.expectExactCounts()
    }

    /// Points by a backend come with each game; points by an administrator are a decision.
    @Test func scoresByAdministrators_haveAnEntryEach() async throws {
        #expect(
            try await service.client(as: .service()).replaceChallenge(id: "c1", ChallengesTests.draft).status == 201)
        for caller in [TestService.Identity.service(), .admin, .admin] {
            let answer = try await service.call(
                "POST", "/v1/challenges/c1/scores", as: caller, ["userId": "ada", "score": 5],
                headers: ["Idempotency-Key": UUID().uuidString])
            #expect(answer.status < 300, "\(answer.text)")
        }
        let scores = try await entries().filter { $0["action"] == "POST /v1/challenges/{id}/scores" }
        #expect(
            scores.map(Self.summary)
                == Array(
                    repeating:
                        "administrator | admin | POST /v1/challenges/{id}/scores | stored | challenge_scores | ada",
                    count: 2))
    }

    @Test func reads_haveEntries_ifTheSettingAsks() async throws {
        let made = try await service.client("ada").createBooking(BookingsTests.draft())
        let path = "/v1/bookings/\(made.value.id)"
        #expect(try await service.call("GET", path, as: staff).status == 200)
        #expect(try await entries().isEmpty)
        try await service.restart(with: ["auditReads": "true"])
        #expect(try await service.call("GET", path, as: staff).status == 200)
        #expect(try await service.call("GET", path, as: .user("ada")).status == 200)
        #expect(try await service.call("GET", "/v1/bookings", as: .user("ada")).status == 200)
        for open in ["/v1/shops", "/v1/badges", "/v1/notifications"] {
            #expect(try await service.call("GET", open, as: staff).status == 200)
        }
        // The first read of the log notes itself, and the second shows it.
        _ = try await entries()
        #expect(
            try await entries().map(Self.summary)
                == [
                    "service | backend | GET /v1/audit | accepted | - | -",
                    "staff | kim | GET /v1/bookings/{id} | shown | bookings | -",
                ].map { $0.replacingOccurrences(of: "accepted", with: "shown") })
        let tag = try #require(try await service.call("GET", path, as: staff).headers["etag"])
        #expect(
            try await service.call("GET", path, as: staff, headers: ["If-None-Match": tag]).status == 304)
        try service.expectExactCounts()
    }

    /// Texts of users appear in no column.
    @Test func entries_containNoTexts() async throws {
        let id = try await service.converse("ada", "ben")
        let sent = try await service.call(
            "POST", "/v1/conversations/\(id)/messages", as: .user("ada"), ["text": "marked-text"])
        let message = try #require(sent.json["message"]["id"].string)
        let removed = try await service.call(
            "DELETE", "/v1/conversations/\(id)/messages/\(message)", as: .service())
        #expect(removed.status < 300)
        let found = try await entries()
        #expect(found.first.map(Self.summary)?.contains("messages | ada") == true, "\(found.map(Self.summary))")
        #expect(!found.description.contains("marked-text"))
    }

    /// An administrator erases a user, and then is erased. A search for either of them finds the acts.
    @Test func erasedAdministrator_isFoundByTheActs() async throws {
        let service = try TestService.start(at: TestService.morning)
        try await service.publish("e1", to: "victim")
        let admin = TestService.Identity(subject: "eve", metadata: ["user_role": "admin"])
        for person in ["victim", "eve"] {
            #expect(try await service.call("DELETE", "/v1/users/\(person)", as: admin).status == 202)
        }
        try await eventually("all are erased", step: { service.clock.advance(seconds: 1) }) {
            var states: [JSON] = []
            for person in ["victim", "eve"] {
                states.append(
                    try await service.call("GET", "/v1/users/\(person)/erasure", as: .service()).json["state"])
            }
            return states.allSatisfy { $0 == "done" }
        }
        func found(_ query: String) async throws -> [String] {
            let answer = try await service.call("GET", "/v1/audit?\(query)", as: .service())
            let items = answer.json["items"].array ?? []
            for item in items { #expect(item["actorId"].isNull || item["actorId"] == "backend", "\(item)") }
            return items.map { $0["action"].string ?? "" }
        }
        #expect(try await found("actor=eve").filter { $0 == "DELETE /v1/users/{id}" }.count >= 2)
        #expect(try await found("target=victim").contains("DELETE /v1/users/{id}"))
        #expect(try await found("actor=nobody").isEmpty)
        #expect(try service.app.store.read { try AuditFeature.verify(in: $0).compactMap(\.fault) }.isEmpty)
    }

    // MARK: The list

    @Test func list_hasFiltersAndPages() async throws {
        for index in 0..<6 {
            let start = "2026-01-10T\(10 + index):00:00Z"
            let draft = BookingsTests.draft(start, user: index % 2 == 0 ? "ada" : "ben")
            #expect(try await service.client(as: .service()).createBooking(draft).status == 201)
            service.clock.advance(seconds: 60)
        }
        let all = try await entries()
        #expect(all.count == 6)
        #expect(try await entries("&target=ada").count == 3)
        #expect(try await entries("&actor=backend&target=ben").count == 3)
        #expect(try await entries("&actor=nobody").isEmpty)
        #expect(try await entries("&action=POST%20/v1/bookings").count == 6)
        #expect(try await entries("&action=POST%20/v1/posts").isEmpty)
        let (from, to) = (try #require(all[4]["at"].string), try #require(all[1]["at"].string))
        #expect(try await entries("&from=\(from)&to=\(to)").map { $0["sequence"] } == all[2...4].map { $0["sequence"] })
        #expect(try await entries("&from=2030-01-01T00:00:00Z").isEmpty)
        #expect(try await entries("&to=2020-01-01T00:00:00Z").isEmpty)
        for malformed in ["from=yesterday", "action=%C3%97"] {
            #expect(try await service.call("GET", "/v1/audit?\(malformed)", as: .service()).status == 422)
        }
        var (pages, cursor) = ([JSON](), String?.none)
        repeat {
            let query = cursor.map { "&cursor=\($0)" } ?? ""
            let page = try await service.call("GET", "/v1/audit?limit=2&target=ada\(query)", as: .admin).json
            pages += page["items"].array ?? []
            cursor = page["next"].string
        } while cursor != nil
        #expect(pages == all.filter { $0["targetId"] == "ada" })
    }

    @Test func list_isForBackendsAndAdministrators_ofTheTenant() async throws {
        #expect(
            try await service.client(as: .service()).createBooking(BookingsTests.draft(user: "ada")).status == 201)
        for caller in [TestService.Identity.user("ada"), staff] {
            #expect(try await service.call("GET", "/v1/audit", as: caller).status == 403)
        }
        #expect(try await entries(as: .admin).count == 1)
        #expect(try await entries(as: .service(tenant: "other")).isEmpty)
    }
}
