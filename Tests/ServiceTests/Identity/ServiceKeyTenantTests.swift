import BellhopClient
import Foundation
import TestSupport
import Testing

/// A key of tenant A tries to act in tenant B, by every part of a request that could name a tenant.
@Suite(.timed) struct ServiceKeyTenantTests {
    private let probe: FeedProbe
    private var service: TestService { probe.service }
    private let backend = TestService.Identity.bearer(ServiceKeysTests.key("a"))
    private let backendOfAll = TestService.Identity.bearer(ServiceKeysTests.key("all"))
    private let backendOfB = TestService.Identity.service(tenant: "B")
    private let bob = TestService.Identity.user("bob", tenant: "B")

    init() throws {
        probe = try FeedProbe([
            "serviceKeys": "jobs:\(ServiceKeysTests.key("a")):tenant=A,all:\(ServiceKeysTests.key("all"))"
        ])
    }

    /// Returns the names of the events that a stream has received up to an event of tenant B's own backend.
    private func received(_ stream: StreamListener) async throws -> [String] {
        let end = "end-\(UUID().uuidString.lowercased())"
        let sent = try await service.call(
            "POST", "/v1/publish", as: backendOfB, ["event": .string(end), "to": ["user:bob", "everyone"], "data": 1])
        #expect(sent.status == 202, "\(sent.text)")
        try await stream.next(end)
        return stream.received.map(\.name).filter { !$0.hasPrefix("end-") && $0 != "stream:ready" }
    }

    @Test func headersAndQueries_nameNoTenant() async throws {
        for name in ["Tenant", "X-Tenant", "X-Tenant-Id", "X-Bellhop-Tenant", "X-Forwarded-Tenant", "X-School-Id"] {
            let answer = try await service.call("GET", "/v1/me", as: backend, headers: [name: "B"])
            #expect(answer.json["tenant"] == "A", "\(name)")
        }
        for operation in try ContractDocument.shared.get().operations where operation.hasPrefix("GET /v1/") {
            let path = operation.dropFirst(4).replacing(/\{[a-zA-Z]+\}/, with: "x1")
            if path == "/v1/config" { continue }
            let answer = try await service.call("GET", "\(path)?tenant=B", as: backend)
            #expect(answer.status == 422, "\(operation): \(answer.status) \(answer.text)")
        }
    }

    @Test func bodies_nameNoTenant() async throws {
        let document = try ContractDocument.shared.get()
        var tried = 0
        for operation in document.operations {
            guard let body = document.body(operation)?.object, operation != "POST /v1/changes" else { continue }
            let parts = operation.split(separator: " ").map(String.init)
            let path = parts[1].replacing(/\{[a-zA-Z]+\}/, with: "x1")
            let answer = try await service.call(
                parts[0], path, as: backend, .object(body.merging(["tenant": "B"]) { $1 }))
            #expect((400..<500).contains(answer.status), "\(operation): \(answer.status) \(answer.text)")
            tried += 1
        }
        #expect(tried > 25)
    }

    @Test func events_reachOwnUsersOnly() async throws {
        let stream = try await service.listen(as: bob)
        let keys: [JSON] = ["user:bob", "everyone", "tenant:B", "tenant:B:user:bob", "B:user:bob", "team:t1:member"]
        for key in keys {
            _ = try await service.call(
                "POST", "/v1/publish", as: backend, ["event": "intruder", "to": [key], "data": 1])
        }
        let batch: JSON = .array(keys.map { ["event": "intruder", "to": [$0], "data": 1] })
        _ = try await service.call("POST", "/v1/publish", as: backend, batch)
        let note = try await service.call(
            "POST", "/v1/notifications", as: backend,
            ["userId": "bob", "category": "visit", "priority": "HIGH", "title": "T", "message": "M"])
        #expect(note.status == 201)
        let event = try await service.call(
            "POST", "/v1/events", as: backend,
            ["id": "e1", "type": "visit.created", "userId": "bob", "data": ["visitId": "v1"]])
        #expect(event.status == 201)
        #expect(try await received(stream) == [])
        #expect(try await service.call("GET", "/v1/notifications", as: bob).json["items"].array == [])
    }

    @Test func rows_areOfTheOwnTenantOnly() async throws {
        func row(_ id: String, _ tenant: String) -> JSON {
            ["id": .string(id), "tenant": .string(tenant), "user_id": "bob", "team_id": "t1"]
        }
        let own = try await probe.send(School.insert("members", row("m9", "B")), as: backendOfB)
        #expect(own.counts == [202, 1, 0, 0])
        let stream = try await service.listen(as: bob)
        let batch: JSON = [
            School.insert("members", row("m1", "B")), School.insert("members", row("m2", "A")),
            School.update("members", from: row("m9", "B"), to: row("m9", "A")),
            School.update("members", from: row("m2", "A"), to: row("m2", "B")),
            School.delete("members", row("m9", "B")),
        ]
        let answer = try await probe.send(batch, as: backend)
        #expect(answer.counts == [202, 1, 0, 4], "\(answer.text)")
        #expect(answer.text.contains("belongs to the tenant B, but the sender belongs to A"))
        // A table whose rows are all of another tenant.
        #expect(
            try await probe.send(School.insert("notes", FeedProbe.note("n1")), as: backend).counts == [202, 0, 0, 1])
        #expect(try await received(stream) == [])
        // A key without a tenant sends rows of all tenants.
        let all = try await probe.send(School.insert("members", row("m3", "B")), as: backendOfAll)
        #expect(all.counts == [202, 1, 0, 0])
        #expect(try await stream.next("query:invalidate").json["causes"][0]["recordId"] == "m3")
    }

    @Test func resourcesAndUsersOfOthers_areNotFound_norEnded() async throws {
        let stream = try await service.listen(as: bob)
        let note = try await service.call(
            "POST", "/v1/notifications", as: backendOfB,
            ["userId": "bob", "category": "visit", "priority": "HIGH", "title": "T", "message": "M"])
        let noteId = try #require(note.json["notification"]["id"].string ?? note.json["id"].string)
        let eventId = try await stream.next("notification:created").id
        let streamId = try #require(stream.ready.json["streamId"].string)
        for (method, path) in [
            ("GET", "/v1/notifications/\(noteId)"), ("DELETE", "/v1/notifications/\(noteId)"),
            ("GET", "/v1/streams/\(streamId)"),
        ] {
            #expect(try await service.call(method, path, as: backend).status == 404, "\(method) \(path)")
        }
        for claims: JSON in [["sub": "bob", "app_metadata": ["tenant": "B"]], ["sub": "bob"]] {
            let explained = try await service.call(
                "POST", "/v1/explain", as: backend, ["eventId": .string(eventId), "claims": claims])
            #expect(explained.status == 422, "\(explained.text)")
        }
        let seen = try await service.call(
            "POST", "/v1/explain", as: backend,
            ["eventId": .string(eventId), "claims": ["sub": "bob", "app_metadata": ["tenant": "A"]]])
        #expect(seen.status == 404)
        let exported = try await service.call("GET", "/v1/users/bob/export", as: backend)
        #expect(exported.status == 200 && !exported.text.contains(noteId))
        // Both acts concern the user bob of A.
        let revoked = try await service.call(
            "POST", "/v1/revocations", as: backend, ["userId": "bob", "issuedBefore": "2036-01-01T00:00:00Z"])
        #expect(revoked.status == 201)
        #expect(try await service.call("DELETE", "/v1/users/bob", as: backend).status == 202)
        #expect(try await service.call("GET", "/v1/notifications/\(noteId)", as: bob).status == 200)
        #expect(try await service.call("GET", "/v1/audit", as: backend).text.contains("tenant\":\"B") == false)
    }
}
