import BellhopClient
import Foundation
import Logging
import TestSupport
import Testing
import Values

@testable import Service

/// The identity that a token grants, over real HTTP with real tokens (RFC 6750, 7515, 7519, 8725).
@Suite(.timed) struct AuthenticationTests {
    private static func me(_ service: TestService, _ token: String) async throws -> ServiceAnswer {
        try await service.call("GET", "/v1/me", as: .bearer(token))
    }

    @Test func noToken_isAnsweredWithTheScheme_andABadOneWithTheReason() async throws {
        let service = try TestService.start()
        let none = try await service.call("GET", "/v1/me")
        #expect(none.status == 401)
        #expect(none[header: "WWW-Authenticate"] == "Bearer realm=\"bellhop\"")
        #expect(none[header: "Content-Type"] == "application/problem+json")
        #expect(none.json["requestId"].string == none[header: "X-Request-Id"])
        let bad = try await Self.me(service, "x.y.z")
        #expect(bad.status == 401)
        #expect(bad[header: "WWW-Authenticate"]?.contains("error=\"invalid_token\"") == true)
    }

    @Test func invalidTokens_areRefused() async throws {
        let service = try TestService.start()
        let now = service.clock.now.seconds
        let good: [String: JSON] = ["sub": "u1", "exp": .integer(now + 60), "iat": .integer(now)]
        func changed(_ changes: [String: JSON]) -> String { TestService.sign(good.merging(changes) { $1 }) }
        let parts = changed([:]).split(separator: ".").map(String.init)
        let none = TestService.base64URL(JSON(dictionaryLiteral: ("alg", "none")).data)
        let refused: [(String, Claims.Refusal, String)] = [
            (
                "another secret", .notOurs,
                TestService.sign(good, secret: "another secret, also with more than 32 bytes")
            ),
            ("alg none", .notOurs, "\(none).\(parts[1])."),
            ("alg none, signature as before", .notOurs, "\(none).\(parts[1]).\(parts[2])"),
            ("another algorithm", .notOurs, TestService.sign(good, header: ["alg": "HS512", "typ": "JWT"])),
            ("critical header", .unusable, TestService.sign(good, header: ["alg": "HS256", "crit": ["exp"]])),
            ("changed payload", .notOurs, "\(parts[0]).\(TestService.base64URL(Data("{}".utf8))).\(parts[2])"),
            ("expired", .expired, changed(["exp": .integer(now)])),
            ("no exp", .unusable, changed(["exp": .null])),
            ("lives for ever", .unusable, changed(["exp": .integer(now + 100 * 86_400)])),
            ("issued in the future", .notYetValid, changed(["iat": .integer(now + 31)])),
            ("not valid yet", .notYetValid, changed(["nbf": .integer(now + 31)])),
            ("no subject", .unusable, changed(["sub": .null])),
            ("a subject that is no id", .unusable, changed(["sub": "a\nb"])),
            ("scope that is no list", .unusable, changed(["app_metadata": ["class_ids": "c1"]])),
            (
                "too many things", .unusable,
                changed(["app_metadata": ["class_ids": .array((0..<600).map { .string("c\($0)") })]])
            ),
            ("very long", .unusable, changed(["padding": .string(String(repeating: "x", count: 9000))])),
        ]
        for (what, refusal, token) in refused {
            let answer = try await Self.me(service, token)
            #expect(answer.status == 401, "\(what)")
            #expect(answer.json["code"].string == refusal.rawValue, "\(what)")
            #expect(answer[header: "WWW-Authenticate"]?.contains("error=\"invalid_token\"") == true, "\(what)")
        }
        let skewed = try await Self.me(service, changed(["iat": .integer(now + 29), "nbf": .integer(now + 29)]))
        #expect(skewed.status == 200)
    }

    @Test func refusal_saysByItsCode_whatIsWrongWithTheToken() async throws {
        let service = try TestService.start(["jwtIssuer": "https://issuer"])
        let now = service.clock.now.seconds
        let good: [String: JSON] = ["sub": "u1", "exp": .integer(now + 60), "iss": "https://issuer"]
        func code(_ changes: [String: JSON], secret: String = TestService.secret) async throws -> String? {
            try await Self.me(service, TestService.sign(good.merging(changes) { $1 }, secret: secret)).json["code"]
                .string
        }
        #expect(try await code(["exp": .integer(now)]) == "invalid_token.expired")
        #expect(try await code(["nbf": .integer(now + 31)]) == "invalid_token.not_yet_valid")
        #expect(try await code(["iat": .integer(now + 31)]) == "invalid_token.not_yet_valid")
        #expect(try await code(["iss": "https://other"]) == "invalid_token.not_ours")
        #expect(try await code([:], secret: TestService.secret + "?") == "invalid_token.not_ours")
        #expect(try await code(["sub": ["x"]]) == "invalid_token")
    }

    @Test func claimsOfTheWrongType_areRefused() async throws {
        let service = try TestService.start()
        let now = service.clock.now.seconds
        let good: [String: JSON] = ["sub": "u1", "exp": .integer(now + 60), "iat": .integer(now)]
        let wrong: [(String, JSON)] = [
            ("nbf", "soon"), ("nbf", .bool(true)), ("nbf", ["1"]), ("nbf", .number(1e300)), ("nbf", .null),
            ("iat", "yesterday"), ("iat", .string("\(now)")), ("iat", .number(-1e300)), ("iat", .null),
            ("exp", .string("\(now + 60)")), ("exp", .number(1e300)),
            ("app_metadata", "admin"), ("app_metadata", [["tenant": "t"], "u"]),
            ("app_metadata", ["tenant": ["t", "u"]]), ("app_metadata", ["tenant": .bool(false)]),
            ("app_metadata", ["tenant": ["id": "t"]]), ("app_metadata", ["user_role": .number(1.5)]),
            ("app_metadata", ["class_ids": ["c": "1"]]),
            ("jti", 7), ("jti", ["x"]), ("session_id", .bool(true)),
        ]
        for (claim, value) in wrong {
            let answer = try await Self.me(service, TestService.sign(good.merging([claim: value]) { $1 }))
            #expect(answer.status == 401, "\(claim) \(value)")
        }
        // A null along the claim's path counts as a missing claim.
        let answer = try await Self.me(service, TestService.sign(good.merging(["app_metadata": .null]) { $1 }))
        #expect(answer.status == 200)
    }

    /// RFC 8725, 3.11: a token that the issuer signs for another purpose is not an access token.
    @Test func tokensOfAnotherType_areRefused() async throws {
        let service = try TestService.start()
        let payload: [String: JSON] = ["sub": "u1", "exp": .integer(service.clock.now.seconds + 60)]
        func status(_ type: JSON?) async throws -> Int {
            var members: [String: JSON] = ["alg": "HS256"]
            members["typ"] = type
            return try await Self.me(service, TestService.sign(payload, header: .object(members))).status
        }
        for type: JSON? in [nil, "JWT", "jwt", "at+jwt", "application/at+jwt", "AT+JWT"] {
            #expect(try await status(type) == 200, "\(String(describing: type))")
        }
        for type: JSON in ["logout+jwt", "dpop+jwt", "secevent+jwt", "JWE", "", 7, .null, ["JWT"]] {
            #expect(try await status(type) == 401, "\(type)")
        }
    }

    /// The service-role key that Supabase gives to backends has no subject and is valid for ten years.
    @Test func supabaseServiceRoleKey_isABackend_asLongAsTheSettingAllows() async throws {
        func status(_ settings: [String: String], _ changes: [String: JSON] = [:]) async throws -> ServiceAnswer {
            let service = try TestService.start(settings)
            let now = service.clock.now.seconds
            let key: [String: JSON] = [
                "iss": "supabase", "ref": "abcdefghijklmnopqrst", "role": "service_role", "iat": .integer(now - 86_400),
                "exp": .integer(now + 10 * 365 * 86_400),
            ]
            return try await Self.me(service, TestService.sign(key.merging(changes) { $1 }))
        }
        let me = try await status(["serviceTokenDays": "3660"])
        #expect(me.status == 200)
        expect(me.json, has: ["userId": "service_role", "role": "service_role"])
        let refused = try await status([:])
        #expect(refused.status == 401)
        #expect(refused.json["detail"].string?.contains("BELLHOP_SERVICE_TOKEN_DAYS") == true)
        // Only backends may have such tokens: neither an anonymous token nor a user's token may live that long.
        #expect(try await status(["serviceTokenDays": "3660"], ["role": "anon"]).status == 401)
        #expect(try await status(["serviceTokenDays": "3660"], ["role": "authenticated", "sub": "u1"]).status == 401)
    }

    @Test func verifiedToken_isRefused_whenItsTimeIsOver() async throws {
        let service = try TestService.start()
        let token = service.token(for: .user("u1"), lifetimeSeconds: 60)
        #expect(try await Self.me(service, token).status == 200)
        service.clock.advance(seconds: 60)
        #expect(try await Self.me(service, token).status == 401)
    }

    @Test func scope_comesFromVouchedClaimsOnly() async throws {
        let service = try TestService.start()
        let now = service.clock.now.seconds
        let token = TestService.sign([
            "sub": "t1", "exp": .integer(now + 60), "role": "authenticated",
            "app_metadata": [
                "user_role": "teacher", "school_id": "school-1", "class_ids": ["c1", "a:staff"], "student_id": 7,
            ],
            "user_metadata": ["user_role": "admin", "tenant": "school-2"],
        ])
        let me = try await Self.me(service, token).json
        expect(me, has: ["tenant": "school-1", "role": "teacher"])
        #expect(
            me["scope"].array?.compactMap(\.string) == [
                "class:a%3Astaff:staff", "class:c1:staff", "everyone", "student:7", "user:t1",
            ])
    }

    @Test func issuerAndAudience_areChecked_ifSet() async throws {
        let service = try TestService.start(["jwtIssuer": "https://issuer", "jwtAudience": "bellhop"])
        func answer(_ claims: [String: JSON]) async throws -> Int {
            try await status(of: await service.client(as: .init(subject: "u1", claims: claims)).getMe())
        }
        #expect(try await answer(["iss": "https://issuer", "aud": "bellhop"]) == 200)
        #expect(try await answer(["iss": "https://issuer", "aud": ["other", "bellhop"]]) == 200)
        #expect(try await answer(["iss": "https://issuer"]) == 401)
        #expect(try await answer(["iss": "https://other", "aud": "bellhop"]) == 401)
    }

    @Test func rolesGate_andSettingsWithoutKeysDoNotStart() async throws {
        let service = try TestService.start()
        let answer = try await service.call("POST", "/v1/events", as: .user("u1"), ["id": "e"])
        #expect(answer.status == 403)
        #expect(answer[header: "WWW-Authenticate"]?.contains("insufficient_scope") == true)
        #expect(throws: Settings.Mistake.self) { try TestService.settings(["port": "0"]) }
        #expect(throws: Settings.Mistake.self) { try TestService.settings(["jwtSecret": "short"]) }
        #expect(throws: Settings.Mistake.self) {
            try TestService.settings(["jwtSecret": TestService.secret, "port": "eighty"])
        }
    }

    // MARK: Keys of an issuer

    @Test func keySet_isFetchedAgain_forAnUnknownKey_andOldKeysServeWhileTheIssuerIsAway() async throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        let service = try TestService.start(["jwks": issuer.file.path, "jwtSecret": ""])
        #expect(try await Self.me(service, issuer.token("k1", at: service.clock.now)).status == 200)
        try issuer.add("k2")
        let second = try issuer.token("k2", at: service.clock.now)
        // The key set is fetched at most once in ten seconds, so that forged key ids cannot make the service flood
        // its issuer.
        #expect(try await Self.me(service, second).status == 401)
        service.clock.advance(seconds: 11)
        #expect(try await Self.me(service, second).status == 200)
        try FileManager.default.removeItem(at: issuer.file)
        service.clock.advance(seconds: 11)
        let third = TestService.sign(
            ["sub": "u1", "exp": .integer(service.clock.now.seconds + 60)], header: ["alg": "ES256", "kid": "k3"])
        #expect(try await Self.me(service, third).status == 401)
        #expect(try await Self.me(service, issuer.token("k1", at: service.clock.now)).status == 200)
    }

    /// Any client can trigger a fetch with an unknown key id.
    @Test func unchangedKeySet_keepsVerifiedTokens() async throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        let (clock, replaced) = (ManualClock(nil), Collected<Bool>())
        let keys = try SigningKeys(
            source: .file(issuer.file.path), clock: clock.clock,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
            replaced: { replaced.append(true) })
        func refresh() async {
            clock.advance(seconds: 11)
            await withCheckedContinuation { done in keys.refresh { done.resume() } }
        }
        for _ in 0..<3 { await refresh() }
        #expect(replaced.all.count == 1)
        try issuer.add("k2")
        await refresh()
        #expect(replaced.all.count == 2)
    }

    /// RFC 8725, 2.1: the public key must not be accepted as a shared secret.
    @Test func algorithm_isPinnedToTheKey() async throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        let service = try TestService.start(["jwks": issuer.file.path, "jwtSecret": ""])
        let publicKey = try String(contentsOf: issuer.file, encoding: .utf8)
        let confused = TestService.sign(
            ["sub": "u1", "exp": .integer(service.clock.now.seconds + 60)],
            header: ["alg": "HS256", "kid": "k1"], secret: publicKey)
        #expect(try await Self.me(service, confused).status == 401)
        var parts = try issuer.token("k1", at: service.clock.now).split(separator: ".").map(String.init)
        parts[0] = TestService.base64URL(JSON(dictionaryLiteral: ("alg", "ES384"), ("kid", "k1")).data)
        #expect(try await Self.me(service, parts.joined(separator: ".")).status == 401)
    }
}
