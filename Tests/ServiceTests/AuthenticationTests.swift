import BellhopClient
import Crypto
import Foundation
import JWTKit
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Who a token speaks for, over real HTTP with real tokens (FORMATS.md, tokens; RFC 6750, 7515, 7519, 8725).
@Suite struct AuthenticationTests {
    private static func me(_ service: TestService, _ token: String) async throws -> ServiceAnswer {
        try await BellhopClient(baseURL: service.baseURL).with(token: token).get("/v1/me")
    }

    @Test func noToken_isAnsweredWithTheScheme_andABadOneWithTheReason() async throws {
        let service = try TestService.start()
        let none = try await BellhopClient(baseURL: service.baseURL).get("/v1/me")
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
        let refused: [(String, String)] = [
            ("another secret", TestService.sign(good, secret: "another secret, also with more than 32 bytes")),
            ("alg none", "\(none).\(parts[1])."),
            ("alg none, signature as before", "\(none).\(parts[1]).\(parts[2])"),
            ("another algorithm", TestService.sign(good, header: ["alg": "HS512", "typ": "JWT"])),
            ("critical header", TestService.sign(good, header: ["alg": "HS256", "crit": ["exp"]])),
            ("changed payload", "\(parts[0]).\(TestService.base64URL(Data("{}".utf8))).\(parts[2])"),
            ("expired", changed(["exp": .integer(now)])),
            ("no exp", changed(["exp": .null])),
            ("lives for ever", changed(["exp": .integer(now + 100 * 86_400)])),
            ("issued in the future", changed(["iat": .integer(now + 31)])),
            ("not valid yet", changed(["nbf": .integer(now + 31)])),
            ("no subject", changed(["sub": .null])),
            ("a subject that is no id", changed(["sub": "a\nb"])),
            ("scope that is no list", changed(["class_ids": "c1"])),
            ("too many things", changed(["class_ids": .array((0..<600).map { .string("c\($0)") })])),
            ("very long", changed(["padding": .string(String(repeating: "x", count: 9000))])),
        ]
        for (what, token) in refused {
            let answer = try await Self.me(service, token)
            #expect(answer.status == 401, "\(what)")
            #expect(answer.json["code"].string == "invalid_token", "\(what)")
        }
        let skewed = try await Self.me(service, changed(["iat": .integer(now + 29), "nbf": .integer(now + 29)]))
        #expect(skewed.status == 200)
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
        func status(_ claims: [String: JSON]) async throws -> Int {
            try await service.client(as: .init(subject: "u1", claims: claims)).get("/v1/me").status
        }
        #expect(try await status(["iss": "https://issuer", "aud": "bellhop"]) == 200)
        #expect(try await status(["iss": "https://issuer", "aud": ["other", "bellhop"]]) == 200)
        #expect(try await status(["iss": "https://issuer"]) == 401)
        #expect(try await status(["iss": "https://other", "aud": "bellhop"]) == 401)
    }

    @Test func rolesGate_andSettingsWithoutKeysDoNotStart() async throws {
        let service = try TestService.start()
        let answer = try await service.client(as: .user("u1")).post("/v1/events", ["id": "e"])
        #expect(answer.status == 403)
        #expect(answer[header: "WWW-Authenticate"]?.contains("insufficient_scope") == true)
        #expect(throws: Settings.Mistake.self) { try TestService.settings(["port": "0"]) }
        #expect(throws: Settings.Mistake.self) { try TestService.settings(["jwtSecret": "short"]) }
        #expect(throws: Settings.Mistake.self) {
            try TestService.settings(["jwtSecret": TestService.secret, "port": "eighty"])
        }
    }

    // MARK: Keys of an issuer

    private struct Claims: JWTPayload {
        var sub = "u1"
        var exp: Int
        func verify(using _: some JWTAlgorithm) {}
    }

    /// A key set in a file, as an issuer publishes it, with what signs for it.
    private struct Issuer {
        private let directory: TemporaryDirectory
        let keys = JWTKeyCollection()
        private var published: [String] = []

        init() throws { directory = try TemporaryDirectory() }

        var file: URL { URL(fileURLWithPath: directory.file("jwks.json")) }

        mutating func add(_ id: String) async throws {
            let key = ES256PrivateKey()
            await keys.add(ecdsa: key, kid: JWKIdentifier(string: id))
            let point = try #require(key.publicKey.parameters)
            func encoded(_ text: String) -> String {
                text.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
                    .replacingOccurrences(of: "=", with: "")
            }
            published.append(
                """
                {"kty":"EC","crv":"P-256","kid":"\(id)","alg":"ES256","x":"\(encoded(point.x))","y":"\(encoded(point.y))"}
                """)
            try publish()
        }

        func publish() throws {
            try Data(#"{"keys":[\#(published.joined(separator: ","))]}"#.utf8).write(to: file)
        }

        func token(_ id: String, at now: Timestamp) async throws -> String {
            try await keys.sign(Claims(exp: Int(now.seconds + 600)), kid: JWKIdentifier(string: id))
        }
    }

    @Test func keySet_isFetchedAgain_forAnUnknownKey_andOldKeysServeWhileTheIssuerIsAway() async throws {
        var issuer = try Issuer()
        try await issuer.add("k1")
        let service = try TestService.start(["jwks": issuer.file.path, "jwtSecret": ""])
        #expect(try await Self.me(service, issuer.token("k1", at: service.clock.now)).status == 200)
        try await issuer.add("k2")
        let second = try await issuer.token("k2", at: service.clock.now)
        // Not within ten seconds of the last fetch: forged ids must not make the service attack its issuer.
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

    /// RFC 8725, 2.1: the public key must not be taken for a shared secret.
    @Test func algorithm_isPinnedToTheKey() async throws {
        var issuer = try Issuer()
        try await issuer.add("k1")
        let service = try TestService.start(["jwks": issuer.file.path, "jwtSecret": ""])
        let publicKey = try String(contentsOf: issuer.file, encoding: .utf8)
        let confused = TestService.sign(
            ["sub": "u1", "exp": .integer(service.clock.now.seconds + 60)],
            header: ["alg": "HS256", "kid": "k1"], secret: publicKey)
        #expect(try await Self.me(service, confused).status == 401)
        var parts = try await issuer.token("k1", at: service.clock.now).split(separator: ".").map(String.init)
        parts[0] = TestService.base64URL(JSON(dictionaryLiteral: ("alg", "ES384"), ("kid", "k1")).data)
        #expect(try await Self.me(service, parts.joined(separator: ".")).status == 401)
    }
}
