import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// A small town whose people have entered marked texts, each visible to some callers only. ``VisibilityMatrixTests``
/// searches for them in every answer and event.
struct VisibilityWorld {
    /// The callers. All belong to tenant `A` unless their names say otherwise.
    enum Caller: String, CaseIterable {
        /// Callers without a token, or with an invalid one.
        case anonymous, expired, forged, revoked
        /// Sends rows with the shared secret and without a token.
        case feed
        /// The owner of the booking, notification, conversation, request and posts.
        case ada
        /// The same user id in another tenant.
        case adaElsewhere
        case eve
        /// A member of the conversation, and the recipient of the request.
        case ben
        /// A follower of ada.
        case fay
        case staff, staffOfAnotherShop, admin, backend, backendElsewhere
        /// A backend whose token names no tenant: its own rows belong to `default`.
        case backendOfAll
        /// The role in Supabase's tokens for anonymous users.
        case guest
        case teacher, otherTeacher, parent, otherParent, pupil, classmate

        var hasToken: Bool { ![.anonymous, .expired, .forged, .revoked, .feed].contains(self) }
        var isBackend: Bool { [.backend, .backendElsewhere, .backendOfAll].contains(self) }
        var isOfA: Bool { hasToken && ![.adaElsewhere, .backendElsewhere, .backendOfAll].contains(self) }
    }

    /// A text that its owner has entered, and the callers that may see it, as listed in `Tests/VisibilityMatrix.md`.
    enum Mark: String, CaseIterable {
        case notification, booking, walkIn, conversation, message, request, followersPost, follower, row, presenceCode
        case publicPost, shop, barber, track, score, challenge, device

        var readers: Set<Caller> {
            switch self {
            case .notification, .device: [.ada]
            case .booking: [.ada, .staff, .admin, .backend]
            case .walkIn: [.staff, .admin, .backend]
            case .conversation, .message, .request: [.ada, .ben, .backend]
            case .followersPost: [.ada, .fay, .admin, .backend]
            case .follower: [.ada, .fay, .backend]
            case .row: [.pupil, .teacher, .parent, .admin]
            case .presenceCode: [.staff, .admin, .backend]
            case .publicPost, .shop, .barber, .track, .score, .challenge: Set(Caller.allCases.filter(\.isOfA))
            }
        }
    }

    struct Request {
        let path: String
        var body: JSON?
        var headers: [String: String] = [:]
    }

    let service: TestService
    let school: School
    private var tokens: [Caller: String] = [:]
    private(set) var streams: [Caller: StreamListener] = [:]
    private var texts: [Mark: String] = [:]
    private var ids: [String: String] = [:]

    // MARK: Identities

    func identity(_ caller: Caller) -> TestService.Identity? { tokens[caller].map(TestService.Identity.bearer) }

    private static func token(_ caller: Caller, _ service: TestService) -> String? {
        switch caller {
        case .anonymous, .feed: nil
        case .forged:
            TestService.sign(
                ["sub": "ada", "app_metadata": ["tenant": "A"], "exp": .integer(service.clock.now.seconds + 60)],
                secret: "another secret, which has more than 32 bytes too")
        default: service.token(for: identity(caller))
        }
    }

    static func identity(_ caller: Caller) -> TestService.Identity {
        func user(
            _ name: String, _ claims: [String: JSON] = [:], _ metadata: [String: JSON] = [:], of tenant: String = "A"
        ) -> TestService.Identity {
            .init(subject: name, claims: claims, metadata: metadata.merging(["tenant": .string(tenant)]) { $1 })
        }
        return switch caller {
        case .anonymous, .forged, .feed, .ada: user("ada")
        case .expired: user("ada", ["iat": 1_700_000_000, "exp": 1_700_000_060])
        case .revoked: user("ada", ["jti": "the revoked one"])
        case .adaElsewhere: user("ada", of: "B")
        case .eve: user("eve")
        case .ben: user("ben")
        case .fay: user("mark-follower-end")
        case .staff: user("sam", [:], ["user_role": "staff", "shop_ids": ["s1"]])
        case .staffOfAnotherShop: user("sue", [:], ["user_role": "staff", "shop_ids": ["s2"]])
        case .admin: School.admin()
        case .backend: .service(tenant: "A")
        case .backendElsewhere: .service(tenant: "B")
        case .backendOfAll: .service()
        case .guest: user("guest-1", ["role": "anon"])
        case .teacher: School.teacher("t1")
        case .otherTeacher: School.teacher("t2")
        case .parent: School.parent("p1")
        case .otherParent: School.parent("p3")
        case .pupil: School.student("s1")
        case .classmate: School.student("s2")
        }
    }

    // MARK: Setup

    static func make() async throws -> VisibilityWorld {
        let service = try TestService.start(
            ["changesSecret": School.secret, "tables": "school"].merging(PushProbe.browsers) { $1 },
            at: TestService.morning)
        var world = VisibilityWorld(service: service, school: try await School(service))
        for mark in Mark.allCases { world.texts[mark] = "mark-\(mark.rawValue.lowercased())-end" }
        try await world.prepare()
        try await world.openStreams()
        try await world.putIn()
        return world
    }

    private init(service: TestService, school: School) {
        (self.service, self.school) = (service, school)
        // All callers share one session.
        for caller in Caller.allCases { tokens[caller] = Self.token(caller, service) }
    }

    private func text(_ mark: Mark) -> JSON { .string(texts[mark] ?? "") }

    /// Returns the marks whose texts occur in an answer or an event.
    func marks(in text: String) -> [Mark] { Mark.allCases.filter { text.occurrences(of: texts[$0] ?? "") > 0 } }

    @discardableResult
    private func send(
        _ caller: Caller, _ method: String, _ path: String, _ body: JSON? = nil
    ) async throws -> JSON {
        let answer = try await service.call(
            method, path, as: identity(caller), body, headers: ["Idempotency-Key": UUID().uuidString])
        #expect(answer.isSuccess, "\(caller) \(method) \(path): \(answer.problem)")
        return answer.json
    }

    private func prepare() async throws {
        try await send(.backend, "PUT", "/v1/shops/s1", ["name": "One", "timeZone": "UTC"])
        try await send(.backend, "PUT", "/v1/shops/s2", ["name": "Two", "timeZone": "UTC"])
        try await send(.staff, "PUT", "/v1/shops/s1/barbers/b1", ["name": text(.barber), "onDuty": true])
        try await send(.backend, "POST", "/v1/revocations", ["tokenId": "the revoked one"])
        try await send(.staff, "PUT", "/v1/shops/s1/dj", ["isActive": true])
        try await send(.ada, "PUT", "/v1/shops/s1/presence/me")
        try await send(.fay, "PUT", "/v1/users/ada/followers/me")
    }

    private mutating func openStreams() async throws {
        for caller in Caller.allCases where caller.hasToken {
            let stream = try await service.listen(
                as: Self.identity(caller), topics: ["queue:s1", "dj:s1", "leaderboard:c1"])
            try await stream.subscribe([["table": "attendance"], ["table": "posts", "schema": "bellhop"]])
            streams[caller] = stream
        }
        ids["stream"] = streams[.ada]?.ready.json["streamId"].string
    }

    /// Enters each text as its owner.
    private mutating func putIn() async throws {
        let notified = try await send(
            .backend, "POST", "/v1/notifications", Self.notification(text(.notification), to: "ada"))
        ids["notification"] = notified["notification"]["id"].string
        ids["booking"] = try await send(
            .ada, "POST", "/v1/bookings",
            [
                "shopId": "s1", "barberId": "b1", "service": text(.booking), "scheduledStart": "2026-01-10T12:00:00Z",
                "durationMinutes": 30, "tier": "standard",
            ])["id"].string
        try await send(
            .staff, "POST", "/v1/shops/s1/queue/entries", ["customerName": text(.walkIn), "service": "cut"])
        let conversation =
            try await send(
                .ada, "POST", "/v1/conversations", ["memberIds": ["ben"], "title": text(.conversation)])["id"].string
            ?? ""
        ids["conversation"] = conversation
        ids["message"] = try await send(
            .ada, "POST", "/v1/conversations/\(conversation)/messages", ["text": text(.message)])["id"].string
        ids["request"] = try await send(
            .ada, "POST", "/v1/requests", ["kind": "friend", "toUserId": "ben", "fromName": text(.request)]
        )["request"]["id"].string
        for (name, visibility) in [(Mark.followersPost, "followers"), (.publicPost, "public")] {
            ids[name.rawValue] = try await send(
                .ada, "POST", "/v1/posts", ["text": text(name), "visibility": .string(visibility)])["id"].string
        }
        try await send(
            .ada, "POST", "/v1/shops/s1/dj/tracks",
            ["trackId": "t1", "trackName": text(.track), "artistName": "x", "albumArt": "https://c.example/a"])
        try await send(
            .backend, "PUT", "/v1/challenges/c1",
            [
                "name": text(.challenge), "startsAt": "2026-01-01T00:00:00Z", "endsAt": "2026-02-01T00:00:00Z",
                "mode": "add",
            ])
        try await send(
            .backend, "POST", "/v1/challenges/c1/scores", ["userId": "ada", "score": 5, "displayName": text(.score)])
        for device in [texts[.device] ?? "", "tablet"] {
            try await send(
                .ada, "PUT", "/v1/devices/\(device)", PushProbe.subscription("https://127.0.0.1:1/\(device)"))
        }
        try await send(.staff, "PUT", "/v1/shops/s1/presence", ["codeRequired": true])
        texts[.presenceCode] = try await send(.staff, "GET", "/v1/shops/s1/presence/code")["code"].string
        try await send(.staff, "PUT", "/v1/shops/s1", ["name": text(.shop), "timeZone": "UTC"])
        try await school.send(
            School.insert(
                "attendance",
                ["id": "a1", "school_id": "A", "student_id": "s1", "status": "late", "note": text(.row)]))
    }

    static func notification(_ text: JSON, to user: String) -> JSON {
        ["userId": .string(user), "category": "visit", "priority": "NORMAL", "title": text, "message": "x"]
    }

    /// Returns everything that each stream has received so far, and everything that it receives when it resumes from
    /// its start.
    func receivedByStreams() async throws -> [Caller: [ServerSentEvent]] {
        var received: [Caller: [ServerSentEvent]] = [:]
        service.endWindows()
        for (caller, stream) in streams {
            let identity = Self.identity(caller)
            let resumed = try await service.listen(
                as: identity, topics: ["queue:s1", "dj:s1", "leaderboard:c1"], lastEventID: stream.ready.id)
            let end = "the end of \(UUID().uuidString)"
            let sender: Caller = caller.isOfA ? .backend : caller == .backendOfAll ? .backendOfAll : .backendElsewhere
            try await send(sender, "POST", "/v1/notifications", Self.notification(.string(end), to: identity.subject))
            for listener in [stream, resumed] {
                while try await listener.next("notification:created").json["title"].string != end {}
                received[caller, default: []] += listener.received
            }
        }
        return received
    }

    // MARK: Requests

    /// Returns the id of a created resource, or `unknown` if its creation failed, which the test has then already
    /// reported.
    private func id(_ name: String) -> String { ids[name] ?? "unknown" }

    /// Returns one or more requests for an operation of `openapi.yaml`, about the data of ada and the others.
    ///
    /// A writing request contains new values each time, without the marked texts.
    func requests(_ operation: String, as caller: Caller) -> [Request]? {
        let new = "new-\(UUID().uuidString.prefix(8).lowercased())"
        let parts = operation.split(separator: " ").map(String.init)
        guard parts.count == 2 else { return nil }
        let path = parts[1]
        func at(_ replaced: KeyValuePairs<String, String>, _ body: JSON? = nil) -> [Request] {
            let full = replaced.reduce(path) { $0.replacingOccurrences(of: "{\($1.key)}", with: $1.value) }
            return [Request(path: full, body: body, headers: body == nil ? [:] : ["Idempotency-Key": new])]
        }
        if path.hasPrefix("/v1/shops") { return shopRequests(operation, new, at) }
        if path.hasPrefix("/v1/stream") || ["/v1/changes", "/v1/explain", "/v1/revocations"].contains(path) {
            return streamRequests(operation, new, caller, at)
        }
        return personalRequests(operation, new, at) ?? publicRequests(operation, new, at)
    }

    private typealias At = (KeyValuePairs<String, String>, JSON?) -> [Request]

    private func personalRequests(_ operation: String, _ new: String, _ at: At) -> [Request]? {
        let conversation: KeyValuePairs = ["id": id("conversation"), "userId": "me", "messageId": id("message")]
        return switch operation {
        case "GET /v1/badges": [Request(path: "/v1/badges"), Request(path: "/v1/badges?include=conversations")]
        case "POST /v1/events":
            at(
                [:],
                ["id": .string(new), "type": "visit.created", "userId": "nobody", "data": ["visitId": .string(new)]])
        case "GET /v1/notifications": [Request(path: "/v1/notifications?state=all&limit=100")]
        case "POST /v1/notifications": at([:], Self.notification(.string(new), to: "nobody"))
        case "PATCH /v1/notifications": at([:], ["upTo": .string(id("notification")), "set": ["seen": true]])
        case "GET /v1/notifications/{id}", "DELETE /v1/notifications/{id}": at(["id": id("notification")], nil)
        case "PATCH /v1/notifications/{id}": at(["id": id("notification")], ["read": true])
        case "GET /v1/conversations": at([:], nil)
        case "POST /v1/conversations": at([:], ["memberIds": ["nobody"], "title": .string(new)])
        case "GET /v1/conversations/{id}", "GET /v1/conversations/{id}/messages",
            "DELETE /v1/conversations/{id}/messages/{messageId}":
            at(conversation, nil)
        case "PUT /v1/conversations/{id}/members/{userId}": at(conversation, nil)
        case "DELETE /v1/conversations/{id}/members/{userId}": at(conversation, nil)
        case "PATCH /v1/conversations/{id}": at(conversation, ["title": .string(new)])
        case "POST /v1/conversations/{id}/messages": at(conversation, ["text": .string(new)])
        case "PUT /v1/conversations/{id}/read-position": at(conversation, ["sequence": 1])
        case "GET /v1/requests": [Request(path: "/v1/requests"), Request(path: "/v1/requests?direction=outgoing")]
        case "POST /v1/requests": at([:], ["kind": "friend", "toUserId": .string(new), "fromName": "x"])
        case "PATCH /v1/requests": at([:], ["seenUpTo": .string(id("request"))])
        case "GET /v1/requests/{id}", "DELETE /v1/requests/{id}": at(["id": id("request")], nil)
        case "PATCH /v1/requests/{id}": at(["id": id("request")], ["status": "accepted"])
        case "GET /v1/preferences": at([:], nil)
        case "PUT /v1/preferences": at([:], ["sound": false, "haptics": true, "timeZone": "UTC"])
        case "GET /v1/devices": at([:], nil)
        case "GET /v1/devices/{id}", "DELETE /v1/devices/{id}", "POST /v1/devices/{id}/test":
            at(["id": "tablet"], nil)
        case "PUT /v1/devices/{id}": at(["id": "tablet"], PushProbe.subscription("https://127.0.0.1:1/\(new)"))
        case "GET /v1/bookings":
            [
                Request(path: "/v1/bookings"), Request(path: "/v1/bookings?shopId=s1"),
                Request(path: "/v1/bookings?userId=ada"),
            ]
        case "POST /v1/bookings":
            at(
                [:],
                [
                    "shopId": "s1", "barberId": nil, "service": "cut", "scheduledStart": "2026-01-12T12:00:00Z",
                    "durationMinutes": 30, "tier": "standard",
                ])
        case "GET /v1/bookings/{id}", "GET /v1/bookings/{id}/history": at(["id": id("booking")], nil)
        case "PATCH /v1/bookings/{id}":
            [
                Request(
                    path: "/v1/bookings/\(id("booking"))", body: ["durationMinutes": 45], headers: ["If-Match": "\"1\""]
                )
            ]
        default: nil
        }
    }

    private func publicRequests(_ operation: String, _ new: String, _ at: At) -> [Request]? {
        let posts: KeyValuePairs = ["id": id("followersPost"), "userId": "me"]
        return switch operation {
        case "GET /v1/challenges", "GET /v1/posts", "GET /v1/feed", "GET /v1/me", "GET /v1/config", "GET /healthz",
            "GET /readyz", "GET /metrics", "GET /openapi.yaml", "GET /openapi.json", "GET /", "GET /docs",
            "GET /asyncapi.json", "GET /console/tokens", "GET /bellhop.js",
            "GET /bellhop-core.js", "GET /bellhop-features.js", "GET /bellhop-tabs.js", "GET /bellhop-worker.js",
            "GET /bellhop-offline.js", "GET /bellhop-push.js", "GET /bellhop-sw.js",
            "GET /v1/webhooks", "GET /v1/webhooks/dead", "GET /v1/audit":
            at([:], nil)
        case "POST /v1/webhooks/dead/{id}/retry": at(["id": "w1"], nil)
        case "GET /console/{name}": at(["name": "app.js"], nil)
        case "POST /v1/publish": at([:], ["event": "tidings", "to": ["user:nobody"], "data": .string(new)])
        case "GET /v1/challenges/{id}", "DELETE /v1/challenges/{id}", "GET /v1/challenges/{id}/leaderboard",
            "DELETE /v1/challenges/{id}/scores/{userId}":
            at(["id": "c1", "userId": "ada"], nil)
        case "PUT /v1/challenges/{id}":
            at(
                ["id": "c1"],
                [
                    "name": .string(new), "startsAt": "2026-01-01T00:00:00Z", "endsAt": "2026-02-01T00:00:00Z",
                    "mode": "add",
                ])
        case "POST /v1/challenges/{id}/scores": at(["id": "c1"], ["score": 1, "displayName": .string(new)])
        case "POST /v1/posts": at([:], ["text": .string(new), "visibility": "followers"])
        case "GET /v1/posts/{id}":
            at(posts, nil) + [
                Request(path: "/v1/posts/\(id("publicPost"))"), Request(path: "/v1/posts?authorId=ada&limit=100"),
            ]
        case "DELETE /v1/posts/{id}", "PUT /v1/posts/{id}/likes/{userId}", "DELETE /v1/posts/{id}/likes/{userId}",
            "PUT /v1/posts/{id}/reposts/{userId}", "DELETE /v1/posts/{id}/reposts/{userId}":
            at(posts, nil)
        case "GET /v1/users/{id}", "GET /v1/users/{id}/followers", "GET /v1/users/{id}/following":
            at(["id": "ada"], nil)
        // No one's: an erasure of ada would end the test.
        case "DELETE /v1/users/{id}", "GET /v1/users/{id}/erasure": at(["id": "nobody"], nil)
        case "GET /v1/users/{id}/export": at(["id": "ada"], nil)
        case "GET /v1/users/{id}/followers/{followerId}": at(["id": "ada", "followerId": "me"], nil)
        case "PUT /v1/users/{id}/followers/{followerId}", "DELETE /v1/users/{id}/followers/{followerId}":
            at(["id": "sam", "followerId": "me"], nil)
        default: nil
        }
    }

    private func shopRequests(_ operation: String, _ new: String, _ at: At) -> [Request]? {
        let shop: KeyValuePairs = ["id": "s1", "barberId": "b1", "trackId": "t1"]
        let parts = operation.split(separator: " ").map(String.init)
        switch (parts[0], parts[1].replacingOccurrences(of: "/v1/shops", with: "")) {
        case ("GET", ""), ("GET", "/{id}"), ("GET", "/{id}/barbers"), ("GET", "/{id}/queue"),
            ("GET", "/{id}/queue/entries"), ("GET", "/{id}/queue/accuracy"), ("GET", "/{id}/presence"),
            ("GET", "/{id}/presence/code"), ("GET", "/{id}/presence/me"), ("GET", "/{id}/dj"),
            ("DELETE", "/{id}/barbers/{barberId}"), ("DELETE", "/{id}/presence/me"),
            ("DELETE", "/{id}/dj/tracks/{trackId}"):
            return at(shop, nil)
        case ("PUT", "/{id}"): return at(shop, ["name": .string(new), "timeZone": "UTC"])
        case ("PUT", "/{id}/barbers/{barberId}"): return at(shop, ["name": .string(new), "onDuty": true])
        case ("POST", "/{id}/queue/entries"): return at(shop, ["customerName": .string(new), "service": "cut"])
        case ("PUT", "/{id}/presence"): return at(shop, ["codeRequired": true])
        case ("PUT", "/{id}/presence/me"): return at(shop, ["code": "000000"])
        case ("PUT", "/{id}/dj"): return at(shop, ["isActive": true])
        case ("PUT", "/{id}/dj/current-track"): return at(shop, ["trackId": "t1"])
        case ("POST", "/{id}/dj/current-track"): return at(shop, ["after": nil])
        case ("POST", "/{id}/dj/tracks"):
            return at(shop, ["trackId": .string(new), "trackName": "x", "artistName": "x", "albumArt": nil])
        case ("PUT", "/{id}/dj/tracks/{trackId}/vote"): return at(shop, ["vote": "up"])
        default: return nil
        }
    }

    private func streamRequests(_ operation: String, _ new: String, _ caller: Caller, _ at: At) -> [Request]? {
        let stream: KeyValuePairs = ["id": id("stream")]
        switch operation {
        case "POST /v1/stream-tickets": return at([:], ["topics": ["queue:s1"]])
        case "GET /v1/streams/{id}", "GET /v1/streams/{id}/subscriptions": return at(stream, nil)
        case "PUT /v1/streams/{id}/subscriptions": return at(stream, ["topics": ["queue:s1"]])
        case "PUT /v1/streams/{id}/token":
            return at(stream, ["token": .string(service.token(for: Self.identity(caller)))])
        case "POST /v1/revocations": return at([:], ["tokenId": .string(new)])
        case "DELETE /v1/revocations": return [Request(path: "/v1/revocations?tokenId=\(new)")]
        case "POST /v1/changes":
            // A row of another person, so that no caller here receives it. The feed authenticates with its secret.
            let row = School.own("homework", new, of: "s0")
            let proof = caller == .feed ? ["X-Webhook-Secret": School.secret] : [:]
            return [Request(path: "/v1/changes", body: row, headers: proof)]
        case "POST /v1/explain":
            let events = streams[.ada]?.received.filter { $0.name == "notification:created" }.map(\.id) ?? []
            let rows = streams[.pupil]?.received.filter { $0.name == "table:change" }.map(\.id) ?? []
            return (events + rows).prefix(4).map {
                Request(
                    path: "/v1/explain",
                    body: [
                        "eventId": .string($0), "claims": ["sub": "ada", "app_metadata": ["tenant": "A"]],
                        "tables": [["table": "attendance"]],
                    ])
            }
        default: return nil
        }
    }
}
