import BellhopClient
import Foundation
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Attack: connections that send bodies, or announce them and send nothing. Harm: they fill the memory.
@Suite(.timed) struct BodyBudgetTests {
    private static func head(
        _ path: String, _ headers: [String], length: Int? = nil, bytes: Int = 0
    ) -> String {
        let framing = length.map { "Content-Length: \($0)" } ?? "Transfer-Encoding: chunked"
        let lines = ["POST \(path) HTTP/1.1", "Host: x", "Content-Type: application/json", framing] + headers
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + String(repeating: " ", count: bytes)
    }

    private static func chunk(_ bytes: Int) -> String {
        String(bytes, radix: 16) + "\r\n" + String(repeating: " ", count: bytes) + "\r\n"
    }

    private static func authorization(_ service: TestService, _ user: String = "ada") -> [String] {
        ["Authorization: Bearer \(service.token(for: .user(user)))"]
    }

    private static func user(_ name: String) -> BodyBudgets.Sender {
        .user(Owner(tenant: "default", userId: ID(name)))
    }

    /// Opens connections that each send a head and a part of a body.
    private static func open(_ count: Int, to service: TestService, _ text: String) throws -> [RawConnection] {
        try (0..<count).map { _ in
            let raw = try RawConnection(service.port)
            try raw.send(text)
            return raw
        }
    }

    @Test func bodiesOfAUser_takeNoMoreThanTheBudget() async throws {
        let service = try TestService.start()
        let sender = Self.user("ada")
        let places = Limits.userBodiesBytesMax / Limits.bodyBytesMax
        let head = Self.head(
            "/v1/stream-tickets", Self.authorization(service), length: Limits.bodyBytesMax, bytes: 1000)
        let connections = try Self.open(400, to: service, head)
        try await eventually("all have a place or a response") {
            let reserved = service.app.bodies.reservedBytes(of: sender)
            #expect(reserved <= Limits.userBodiesBytesMax)
            return connections.count { $0.hasAnswer(within: 0) } == connections.count - places
        }
        #expect(service.app.bodies.reservedBytes(of: sender) == places * Limits.bodyBytesMax)
        let metrics = try await service.call("GET", "/metrics", as: .admin).text
        #expect(metrics.contains("bellhop_http_body_bytes{sender=\"user\"} \(places * Limits.bodyBytesMax)"))
        // Other users are not affected.
        #expect(try await service.client("bob").createStreamTicket().status == 201)
        for refused in connections where refused.hasAnswer(within: 0) {
            let answer = try refused.read()
            #expect(answer.hasPrefix("HTTP/1.1 429 "))
            #expect(answer.contains("\"code\":\"body_budget\"") && answer.contains("Retry-After: 1\r\n"))
        }
        // An answer releases the memory, although its connection continues, and so does the end of a connection.
        var admitted = connections.filter { !$0.hasAnswer(within: 0) }
        let one = admitted.removeLast()
        try one.send(String(repeating: " ", count: Limits.bodyBytesMax - 1000))
        #expect(try one.readAnswer().status == 400)
        try await eventually("its place is free") {
            service.app.bodies.reservedBytes(of: sender) == (places - 1) * Limits.bodyBytesMax
        }
        let again = try RawConnection(service.port)
        try again.send(head + String(repeating: " ", count: Limits.bodyBytesMax - 1000))
        #expect(try again.readAnswer().status == 400)
        admitted = []
        for connection in connections { connection.finishSending() }
        try await eventually("all memory is released") { service.app.bodies.reservedBytes(of: sender) == 0 }
        withExtendedLifetime((one, again)) {}
    }

    @Test func bodiesOfUnknownSenders_takeNoMoreThanTheirBudget() async throws {
        let service = try FeedProbe(["changesSigningSecrets": FeedProbe.signingSecret]).service
        // A body without a signature need not be read.
        let anyone = try RawConnection(service.port)
        try anyone.send(Self.head("/v1/changes", [], length: ChangeLimits.bodyBytesMax, bytes: 1000))
        #expect(try anyone.read().hasPrefix("HTTP/1.1 401 "))
        #expect(service.app.bodies.reservedBytes(of: .unknown) == 0)
        let places = Limits.unknownBodiesBytesMax / ChangeLimits.bodyBytesMax
        let head = Self.head(
            "/v1/changes", ["webhook-id: a", "webhook-timestamp: 1", "webhook-signature: v1,a"],
            length: ChangeLimits.bodyBytesMax, bytes: 1000)
        let connections = try Self.open(60, to: service, head)
        try await eventually("all have a place or a response") {
            #expect(service.app.bodies.reservedBytes(of: .unknown) <= Limits.unknownBodiesBytesMax)
            return connections.count { $0.hasAnswer(within: 0) } == connections.count - places
        }
        for refused in connections where refused.hasAnswer(within: 0) {
            let answer = try refused.read()
            #expect(answer.hasPrefix("HTTP/1.1 503 "))
            #expect(answer.contains("\"code\":\"request.no_room\"") && answer.contains("Retry-After: 1\r\n"))
        }
        for connection in connections { connection.finishSending() }
        try await eventually("all memory is released") { service.app.bodies.reservedBytes(of: .unknown) == 0 }
    }

    @Test func chunkedBody_growsWithinTheBudget() async throws {
        let service = try TestService.start()
        let sender = Self.user("ada")
        let own = Self.authorization(service)
        let whole = Limits.userBodiesBytesMax / Limits.bodyBytesMax - 1
        let others = try Self.open(
            whole, to: service, Self.head("/v1/stream-tickets", own, length: Limits.bodyBytesMax, bytes: 1))
        // The rest of the budget is larger than a chunked body's first reservation, and smaller than its final one.
        let partial = 40 * 1024
        let last = try Self.open(1, to: service, Self.head("/v1/stream-tickets", own, length: partial, bytes: 1))
        let taken = whole * Limits.bodyBytesMax + partial
        try await eventually("they are read") { service.app.bodies.reservedBytes(of: sender) == taken }
        let chunked = try RawConnection(service.port)
        try chunked.send(Self.head("/v1/stream-tickets", own) + Self.chunk(10_000))
        try await eventually("it is read") { service.app.bodies.reservedBytes(of: sender) == taken + 16 * 1024 }
        try chunked.send(Self.chunk(10_000))
        let answer = try chunked.read()
        #expect(answer.hasPrefix("HTTP/1.1 503 ") && answer.contains("request.no_room"))
        try await eventually("it is released") { service.app.bodies.reservedBytes(of: sender) == taken }
        withExtendedLifetime((others, last)) {}
    }

    /// A short body is read and discarded, so the next request can use the same connection.
    @Test func refusedRequestOfAShortBody_keepsItsConnection() throws {
        let service = try TestService.start()
        let raw = try RawConnection(service.port)
        for length in [1, 1000, 8192] {
            try raw.send(Self.head("/v1/stream-tickets", ["Authorization: Bearer x"], length: length, bytes: length))
            let refusal = try raw.readAnswer()
            #expect(refusal.status == 401 && !refusal.isLast)
        }
        try raw.send(Self.head("/v1/stream-tickets", Self.authorization(service), length: 2) + "{}")
        #expect(try raw.readAnswer().status == 201)
    }

    /// The service answers after the head, and counts the request once.
    @Test func rateLimit_countsAtTheHead() async throws {
        let service = try TestService.start(["rateLimitUser": "2"])
        #expect(
            try await service.call("POST", "/v1/stream-tickets", as: .user("ada")).headers["ratelimit"]?.contains("r=1")
                == true)
        let second = try await service.call("POST", "/v1/stream-tickets", as: .user("ada"), ["topics": []])
        #expect(second.status == 201 && second.headers["ratelimit"]?.contains("r=0") == true)
        let raw = try RawConnection(service.port)
        try raw.send(Self.head("/v1/stream-tickets", Self.authorization(service), length: Limits.bodyBytesMax))
        let answer = try raw.read()
        #expect(answer.hasPrefix("HTTP/1.1 429 ") && answer.contains("\"code\":\"rate_limited\""))
        #expect(service.app.bodies.reservedBytes(of: Self.user("ada")) == 0)
    }
}
