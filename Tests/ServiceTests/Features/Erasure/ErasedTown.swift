import BellhopClient
import Database
import Foundation
import TestSupport
import Testing

@testable import Service

/// Three tenants with the same people. All of them have used every feature. Each text of a person is marked with the
/// tenant and the person: `mark-A-ada-`.
struct ErasedTown {
    static let tenants = ["A", "B", "C"]
    /// The person that is erased in one tenant, the others, and one that exists in the tenant `A` only.
    static let (ada, ben, zoe) = ("ada-q7", "ben-q7", "zoe-q7")

    let service: TestService
    let school: School

    init(_ overrides: [String: String] = [:]) async throws {
        let settings = ["changesSecret": School.secret, "tables": "school", "auditReads": "true"]
            .merging(PushProbe.browsers) { $1 }
            .merging([
                "webhookURL": "http://127.0.0.1:1/", "webhookPrivate": "true",
                "webhookSecrets": "whsec_\(Data(repeating: 9, count: 32).base64EncodedString())",
            ]) { $1 }
        service = try TestService.start(settings.merging(overrides) { $1 }, at: TestService.morning)
        school = try await School(service)
        for tenant in Self.tenants {
            try await prepare(tenant)
            for person in [Self.ada, Self.ben] + (tenant == "A" ? [Self.zoe] : []) {
                try await live(person, tenant)
            }
            try await school.send(
                School.insert(
                    "parent_students",
                    ["parent_id": .string(Self.ada), "student_id": "s1", "school_id": .string(tenant)]))
        }
    }

    static func mark(_ person: String, _ tenant: String) -> String { "mark-\(tenant)-\(person)-" }

    @discardableResult
    func send(
        _ identity: TestService.Identity, _ method: String, _ path: String, _ body: JSON? = nil,
        etag: String? = nil
    ) async throws -> JSON {
        try await answer(identity, method, path, body, etag: etag).json
    }

    private func answer(
        _ identity: TestService.Identity, _ method: String, _ path: String, _ body: JSON?, etag: String? = nil
    ) async throws -> ServiceAnswer {
        var headers = method == "GET" ? [:] : ["Idempotency-Key": UUID().uuidString]
        headers["If-Match"] = etag
        let answer = try await service.call(method, path, as: identity, body, headers: headers)
        #expect(answer.isSuccess, "\(identity.subject) \(method) \(path): \(answer.text)")
        return answer
    }

    static func admin(_ tenant: String) -> TestService.Identity {
        TestService.Identity(subject: "root", metadata: ["user_role": "admin", "tenant": .string(tenant)])
    }

    private func prepare(_ tenant: String) async throws {
        let admin = Self.admin(tenant)
        try await send(admin, "PUT", "/v1/shops/s1", ["name": "One", "timeZone": "UTC"])
        try await send(admin, "PUT", "/v1/shops/s1/dj", ["isActive": true])
        try await send(
            admin, "PUT", "/v1/challenges/c1",
            [
                "name": "steps", "startsAt": "2026-01-01T00:00:00Z", "endsAt": "2026-02-01T00:00:00Z", "mode": "add",
            ])
    }

    /// Lets a person use everything. Everybody deals with `eve`, a person that is never erased.
    private func live(_ person: String, _ tenant: String) async throws {
        let (own, eve) = (
            TestService.Identity.user(person, tenant: tenant), TestService.Identity.user("eve", tenant: tenant)
        )
        let backend = TestService.Identity.service(tenant: tenant)
        func text(_ what: String) -> JSON { .string(Self.mark(person, tenant) + what) }
        let id = JSON.string(person)
        try await send(
            Self.admin(tenant), "PUT", "/v1/shops/s1/barbers/\(person)", ["name": text("barber"), "onDuty": true])
        for (user, data) in [(id, nil), ("eve", ["friendId": id])] as [(JSON, JSON?)] {
            try await send(
                backend, "POST", "/v1/notifications",
                [
                    "userId": user, "category": "visit", "priority": "NORMAL", "title": text("title"),
                    "message": text("message"), "data": data ?? nil,
                ])
        }
        let made = try await answer(
            own, "POST", "/v1/bookings",
            [
                "shopId": "s1", "barberId": id, "service": text("service"), "scheduledStart": "2026-01-10T12:00:00Z",
                "durationMinutes": 30, "tier": "standard",
            ])
        try await send(
            eve, "POST", "/v1/bookings",
            [
                "shopId": "s1", "barberId": id, "service": "cut", "scheduledStart": "2026-01-10T14:00:00Z",
                "durationMinutes": 30, "tier": "standard",
            ])
        try await send(
            Self.admin(tenant), "PATCH", "/v1/bookings/\(made.json["id"].string ?? "")", ["status": "confirmed"],
            etag: made.headers["etag"])
        for kind in ["direct", "group"] {
            let conversation =
                try await send(own, "POST", "/v1/conversations", ["memberIds": ["eve"], "kind": .string(kind)])["id"]
                .string ?? ""
            try await send(own, "POST", "/v1/conversations/\(conversation)/messages", ["text": text("message")])
            try await send(eve, "POST", "/v1/conversations/\(conversation)/messages", ["text": "hello"])
            try await send(own, "PUT", "/v1/conversations/\(conversation)/read-position", ["sequence": 2])
            try await send(own, "POST", "/v1/conversations/\(conversation)/messages", ["text": text("last")])
        }
        try await send(own, "POST", "/v1/requests", ["kind": "friend", "toUserId": "eve", "fromName": text("name")])
        try await send(eve, "POST", "/v1/requests", ["kind": "group", "toUserId": id, "fromName": "Eve"])
        try await engage(own, eve, text)
        try await score(person, tenant, text("score"))
        try await send(own, "PUT", "/v1/preferences", ["sound": false, "haptics": true, "timeZone": "UTC"])
        try await send(
            own, "PUT", "/v1/devices/\(person)-phone",
            PushProbe.subscription("https://127.0.0.1:1/\(Self.mark(person, tenant))phone"))
        try await send(own, "POST", "/v1/stream-tickets", ["topics": ["queue:s1"]])
        try await send(backend, "POST", "/v1/revocations", ["userId": id, "issuedBefore": "2026-01-09T00:00:00Z"])
        try await send(
            backend, "POST", "/v1/publish",
            ["event": "tidings", "to": [.string("user:\(person)"), "user:eve"], "data": text("event")])
        service.clock.advance(seconds: 1)
    }

    private func engage(
        _ own: TestService.Identity, _ eve: TestService.Identity, _ text: (String) -> JSON
    ) async throws {
        for (author, reader, words) in [(own, eve, text("post")), (eve, own, "a post")]
            as [(TestService.Identity, TestService.Identity, JSON)]
        {
            try await send(reader, "PUT", "/v1/users/\(author.subject)/followers/me")
            for visibility in ["public", "followers"] as [JSON] {
                let post =
                    try await send(author, "POST", "/v1/posts", ["text": words, "visibility": visibility])["id"].string
                    ?? ""
                try await send(reader, "PUT", "/v1/posts/\(post)/likes/me")
                if visibility == "public" { try await send(reader, "PUT", "/v1/posts/\(post)/reposts/me") }
            }
        }
        try await send(own, "PUT", "/v1/shops/s1/presence/me")
        try await send(
            own, "POST", "/v1/shops/s1/dj/tracks",
            [
                "trackId": .string("t-\(own.subject.prefix(3))"), "trackName": "song", "artistName": "x",
                "albumArt": "https://c.example/a",
            ])
        try await send(own, "PUT", "/v1/shops/s1/dj/tracks/t-\(own.subject.prefix(3))/vote", ["vote": "up"])
    }

    private func score(_ person: String, _ tenant: String, _ name: JSON) async throws {
        for (user, name) in [(person, name), ("eve", "Eve")] as [(String, JSON)] {
            try await send(
                .service(tenant: tenant), "POST", "/v1/challenges/c1/scores",
                ["userId": .string(user), "score": 5, "displayName": name])
        }
    }

    // MARK: Erasing

    /// Requests an erasure and waits for its end. The clock passes the pauses.
    func erase(_ person: String, _ tenant: String) async throws {
        let admin = Self.admin(tenant)
        let asked = try await service.call("DELETE", "/v1/users/\(person)", as: admin)
        #expect(asked.status == 202 && asked.json["state"].string == "pending", "\(asked.text)")
        try await eventually("the erasure ends", step: { service.clock.advance(seconds: 1) }) {
            try await service.call("GET", "/v1/users/\(person)/erasure", as: admin).json["state"].string == "done"
        }
    }

    // MARK: Stored rows

    private static let looking = Unscoped.audit("looks for erased persons")

    /// Returns all rows as texts by table: of one tenant, and those without a tenant.
    func rows(of tenant: String) throws -> [String: [String]] { try Self.rows(of: tenant, in: service) }

    static func rows(of tenant: String, in service: TestService) throws -> [String: [String]] {
        try service.app.store.read { db in
            var found: [String: [String]] = [:]
            for table in Catalog.tables {
                found[table.name] = try db.rows(
                    "SELECT \(table, unscoped: Self.looking).* FROM \(SQL(unchecked: table.name))"
                ) { row -> String? in
                    var texts: [String] = []
                    for index in 0..<row.count {
                        if row.name(index) == table.tenantColumn, try row.text(index) != tenant { return nil }
                        texts.append("\(row.name(index)): \(Self.text(row.value(index)))")
                    }
                    return texts.joined(separator: ", ")
                }.compactMap(\.self)
            }
            return found
        }
    }

    private static func text(_ value: SQLValue) -> String {
        switch value {
        case .null: "null"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let text): text
        case .utf8(let bytes), .blob(let bytes): String(decoding: bytes, as: UTF8.self)
        }
    }
}
