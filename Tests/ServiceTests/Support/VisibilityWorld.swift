import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

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
        /// Backends with a key of the settings: of A and of all tenants, and two of A with one capability each.
        case key, keyOfAll, keyToRead, keyToNotify
        /// The role in Supabase's tokens for anonymous users.
        case guest
        case teacher, otherTeacher, parent, otherParent, pupil, classmate

        var hasToken: Bool { ![.anonymous, .expired, .forged, .revoked, .feed].contains(self) }
        var isBackend: Bool { [.backend, .backendElsewhere].contains(self) || spansTenants || isKeyOfA }
        /// Whether it belongs to `default`, and may send rows of every tenant.
        var spansTenants: Bool { [.backendOfAll, .keyOfAll].contains(self) }
        private var isKeyOfA: Bool { [.key, .keyToRead, .keyToNotify].contains(self) }
        /// Whether it may read at all.
        var reads: Bool { hasToken && self != .keyToNotify }
        var readsA: Bool { reads && !spansTenants && ![.adaElsewhere, .backendElsewhere].contains(self) }
    }

    typealias Mark = VisibilityMatrix.Mark

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
    /// The ids of resources by the part of the path before them. Created ones have their mark's name as well.
    private var ids = [
        "shops": "s1", "barbers": "b1", "challenges": "c1", "scores": "ada", "tracks": "t1", "devices": "tablet",
        "users": "ada", "members": "me", "followers": "me", "likes": "me", "reposts": "me", "dead": "w1",
        "console": "app.js",
    ]

    // MARK: Identities

    func identity(_ caller: Caller) -> TestService.Identity? { tokens[caller].map(TestService.Identity.bearer) }

    private static func token(_ caller: Caller, _ service: TestService) -> String? {
        switch caller {
        case .anonymous, .feed: nil
        case .forged:
            TestService.sign(
                ["sub": "ada", "app_metadata": ["tenant": "A"], "exp": .integer(service.clock.now.seconds + 60)],
                secret: "another secret, which has more than 32 bytes too")
        default: identity(caller).token ?? service.token(for: identity(caller))
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
        case .key, .keyOfAll, .keyToRead, .keyToNotify:
            .init(subject: caller.rawValue, token: ServiceKeysTests.key(caller.rawValue))
        case .guest: user("guest-1", ["role": "anon"])
        case .teacher: School.teacher("t1")
        case .otherTeacher: School.teacher("t2")
        case .parent: School.parent("p1")
        case .otherParent: School.parent("p3")
        case .pupil: School.student("s1")
        case .classmate: School.student("s2")
        }
    }

    /// The setting with the keys.
    private static let keys = [
        Caller.key: ":tenant=A", .keyOfAll: "", .keyToRead: ":tenant=A:can=read", .keyToNotify: ":tenant=A:can=notify",
    ].map { "\($0.key.rawValue):\(ServiceKeysTests.key($0.key.rawValue))\($0.value)" }.joined(separator: ",")

    // MARK: Setup

    static func make() async throws -> VisibilityWorld {
        let service = try TestService.start(
            ["changesSecret": School.secret, "tables": "school", "serviceKeys": keys].merging(PushProbe.browsers) {
                $1
            },
            at: TestService.morning)
        var world = VisibilityWorld(service: service, school: try await School(service))
        world.texts = try Dictionary(
            uniqueKeysWithValues: VisibilityMatrix.shared.get().marks.map { ($0, $0.text) })
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

    var marks: [Mark] { Array(texts.keys) }

    /// Returns the marks whose texts occur in an answer or an event.
    func marks(in text: String) -> [Mark] { texts.filter { text.occurrences(of: $0.value) > 0 }.map(\.key) }

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
        try await send(.backend, "POST", "/v1/revocations", ["tokenId": "the revoked one"])
        try await send(.staff, "PUT", "/v1/shops/s1/dj", ["isActive": true])
        try await send(.ada, "PUT", "/v1/shops/s1/presence/me")
        try await send(.fay, "PUT", "/v1/users/ada/followers/me")
    }

    private mutating func openStreams() async throws {
        for caller in Caller.allCases where caller.reads {
            let stream = try await service.listen(
                as: Self.identity(caller), topics: ["queue:s1", "dj:s1", "leaderboard:c1"])
            try await stream.subscribe([["table": "attendance"], ["table": "posts", "schema": "bellhop"]])
            streams[caller] = stream
        }
        ids["streams"] = streams[.ada]?.ready.json["streamId"].string
    }

    /// Enters each text as its owner.
    private mutating func putIn() async throws {
        for mark in try VisibilityMatrix.shared.get().marks {
            guard let operation = mark.operation, let creator = mark.creator else { continue }
            let parts = operation.split(separator: " ").map(String.init)
            let answer = try await send(creator, parts[0], path(parts[1]), mark.body())
            let nested = answer.object?.values.lazy.compactMap { $0["id"].string }.first
            guard parts[0] == "POST", let id = answer["id"].string ?? nested else { continue }
            ids[mark.name] = id
            let collection = String(parts[1].split(separator: "/").last ?? "")
            ids[collection] = ids[collection] ?? id
        }
        try await putInOthers()
    }

    /// Enters the texts that no operation with an example enters.
    private mutating func putInOthers() async throws {
        let special = Dictionary(uniqueKeysWithValues: texts.keys.map { ($0.name, $0) })
        for device in [special["device"]?.text ?? "", "tablet"] {
            try await send(
                .ada, "PUT", "/v1/devices/\(device)", PushProbe.subscription("https://127.0.0.1:1/\(device)"))
        }
        try await send(.staff, "PUT", "/v1/shops/s1/presence", ["codeRequired": true])
        let code = try await send(.staff, "GET", "/v1/shops/s1/presence/code")["code"].string
        if let mark = special["presenceCode"] { texts[mark] = code }
        try await school.send(
            School.insert(
                "attendance",
                [
                    "id": "a1", "school_id": "A", "student_id": "s1", "status": "late",
                    "note": .string(special["row"]?.text ?? ""),
                ]))
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
            let sender: Caller = caller.readsA ? .backend : caller.spansTenants ? .backendOfAll : .backendElsewhere
            try await send(sender, "POST", "/v1/notifications", Self.notification(.string(end), to: identity.subject))
            for listener in [stream, resumed] {
                while try await listener.next("notification:created").json["title"].string != end {}
                received[caller, default: []] += listener.received
            }
        }
        return received
    }

    // MARK: Requests

    /// Returns a path with ids of the world: ada's, and the ids of the resources that concern her.
    private func path(_ pattern: String) -> String {
        var collection = ""
        return pattern.split(separator: "/", omittingEmptySubsequences: false).map { part -> String in
            defer { collection = String(part) }
            return part.hasPrefix("{") ? ids[collection] ?? "unknown" : String(part)
        }.joined(separator: "/")
    }

    /// Returns one or more requests for an operation of `openapi.yaml`, about the data of ada and the others: the
    /// contract's example, unless the world needs another one.
    ///
    /// A writing request never contains a marked text.
    func requests(_ operation: String, as caller: Caller) throws -> [Request] {
        let new = "new-\(UUID().uuidString.prefix(8).lowercased())"
        if let requests = special(operation, new, caller) { return requests }
        let pattern = String(operation.drop { $0 != " " }.dropFirst())
        let body = try ContractDocument.shared.get().body(operation, with: members(operation, new))
        let headers = operation.hasPrefix("GET ") ? [:] : ["Idempotency-Key": new]
        return [Request(path: path(pattern), body: body, headers: headers)]
            + (queries[operation] ?? []).map { Request(path: path(pattern) + $0) }
    }

    /// Further lists that an operation shows.
    private var queries: [String: [String]] {
        [
            "GET /v1/badges": ["?include=conversations"], "GET /v1/notifications": ["?state=all&limit=100"],
            "GET /v1/requests": ["?direction=outgoing"], "GET /v1/bookings": ["?shopId=s1", "?userId=ada"],
            "GET /v1/posts": ["?authorId=ada&limit=100"],
        ]
    }

    /// Returns the members in which a body differs from the contract's example: ids of the world, new ids, and times that
    /// are to come.
    private func members(_ operation: String, _ new: String) -> [String: JSON] {
        func id(_ name: String) -> JSON { .string(ids[name] ?? "unknown") }
        return switch operation {
        case "POST /v1/events": ["id": .string(new), "userId": "nobody"]
        case "PATCH /v1/notifications": ["upTo": id("notifications")]
        case "PATCH /v1/requests": ["seenUpTo": id("requests")]
        case "POST /v1/requests": ["toUserId": .string(new)]
        case "PUT /v1/conversations/{id}/read-position": ["sequence": 1]
        case "POST /v1/bookings": ["barberId": nil, "scheduledStart": "2026-01-12T12:00:00Z"]
        case "POST /v1/challenges/{id}/scores": ["userId": nil, "score": 1, "displayName": .string(new)]
        case "POST /v1/shops/{id}/dj/tracks": ["trackId": .string(new)]
        case "POST /v1/posts": ["visibility": "followers"]
        case "POST /v1/publish": ["to": ["user:nobody"]]
        case "POST /v1/revocations": ["tokenId": .string(new)]
        default: [:]
        }
    }

    /// Returns the requests of operations that need more than another body; nil for the others.
    private func special(_ operation: String, _ new: String, _ caller: Caller) -> [Request]? {
        switch operation {
        case "PUT /v1/devices/{id}":
            return [
                Request(path: "/v1/devices/tablet", body: PushProbe.subscription("https://127.0.0.1:1/\(new)"))
            ]
        case "PATCH /v1/bookings/{id}":
            return [
                Request(
                    path: path("/v1/bookings/{id}"), body: ["durationMinutes": 45], headers: ["If-Match": "\"1\""])
            ]
        case "GET /v1/posts/{id}":
            return ["followersPost", "publicPost"].map { Request(path: "/v1/posts/\(ids[$0] ?? "unknown")") }
        // No one's: an erasure of ada would end the test.
        case "DELETE /v1/users/{id}": return [Request(path: "/v1/users/nobody")]
        case "GET /v1/users/{id}/erasure": return [Request(path: "/v1/users/nobody/erasure")]
        // Followers of ada may see her posts.
        case "PUT /v1/users/{id}/followers/{followerId}", "DELETE /v1/users/{id}/followers/{followerId}":
            return [Request(path: "/v1/users/sam/followers/me")]
        case "PUT /v1/streams/{id}/subscriptions":
            return [Request(path: path("/v1/streams/{id}/subscriptions"), body: ["topics": ["queue:s1"]])]
        case "PUT /v1/streams/{id}/token":
            return [Request(path: path("/v1/streams/{id}/token"), body: ["token": .string(tokens[caller] ?? "")])]
        case "DELETE /v1/revocations": return [Request(path: "/v1/revocations?tokenId=\(new)")]
        case "POST /v1/changes":
            // A row of another person, so that no caller here receives it. The feed authenticates with its secret.
            let proof = caller == .feed ? ["X-Webhook-Secret": School.secret] : [:]
            return [Request(path: "/v1/changes", body: School.own("homework", new, of: "s0"), headers: proof)]
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
