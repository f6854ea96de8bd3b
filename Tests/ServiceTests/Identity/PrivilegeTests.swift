import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// Which claims of a token give rights: those in `app_metadata`, and the ones that a setting names.
@Suite(.timed) struct PrivilegeTests {
    /// Payloads as issuers write them, by issuer (`Tests/Fixtures/Tokens/issuers.json`).
    private static func payloads() throws -> [String: [String: JSON]] {
        let file = repository.appendingPathComponent("Tests/Fixtures/Tokens/issuers.json")
        return try JSON(parsing: String(contentsOf: file, encoding: .utf8)).object?.compactMapValues(\.object) ?? [:]
    }

    private static func payload(_ issuer: String, _ more: [String: JSON] = [:]) throws -> [String: JSON] {
        try #require(payloads()[issuer]).merging(more) { $1 }
    }

    /// Returns what `/v1/me` says about a payload that is signed with the secret.
    private static func me(_ service: TestService, _ payload: [String: JSON]) async throws -> JSON {
        let lifetime: [String: JSON] = ["exp": .integer(service.clock.now.seconds + 600), "nbf": 0]
        let token = TestService.sign(payload.merging(lifetime) { $1 })
        let answer = try await service.call("GET", "/v1/me", as: .bearer(token))
        #expect(answer.status == 200, "\(answer.text)")
        return answer.json
    }

    private static func expectNoRight(_ me: JSON, _ what: String) {
        #expect(me["role"] == "authenticated", "\(what)")
        #expect(me["tenant"] == "default", "\(what)")
        #expect(me["isService"] == false, "\(what)")
        #expect(me["tier"] == .null, "\(what)")
        let keys = me["scope"].array?.compactMap(\.string) ?? []
        #expect(keys.allSatisfy { $0 == "everyone" || $0.hasPrefix("user:") }, "\(what): \(keys)")
    }

    @Test func topLevelClaims_giveNoRight() async throws {
        let service = try TestService.start()
        let claims: [String: JSON] = [
            "tenant": "t1", "shop_ids": ["s1"], "class_ids": ["c1"], "child_ids": ["p1"], "student_id": "p2",
            "tier": "blackCard",
        ]
        for role: JSON in ["admin", "staff", "barber", "teacher", "service", "authenticated", "anon", ["admin"], 1.5] {
            let payload = claims.merging(["sub": "ada", "role": role]) { $1 }
            Self.expectNoRight(try await Self.me(service, payload), "\(role)")
        }
    }

    /// Organizations' administrators at WorkOS, for example, must not become administrators of Bellhop's tenant.
    @Test func tokensOfRealIssuers_giveNoRight_byDefault() async throws {
        let service = try TestService.start()
        for (issuer, payload) in try Self.payloads() {
            Self.expectNoRight(try await Self.me(service, payload), issuer)
        }
    }

    @Test func topLevelClaims_count_ifTheirSettingsNameThem() async throws {
        let service = try TestService.start([
            "claimRole": "role", "claimShops": "shop_ids", "claimTenant": "firebase.tenant",
        ])
        let me = try await Self.me(service, Self.payload("firebase"))
        expect(me, has: ["role": "barber", "tenant": "t-a"])
        #expect(me["scope"].array?.contains("shop:s1:staff") == true)
        let backend = try await Self.me(service, ["sub": "b", "role": "service_role"])
        #expect(backend["isService"] == true)
    }

    // MARK: Backends

    @Test func topLevelServiceRole_isABackend_onlyIfTheSecretHasSignedIt() async throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        func isService(_ claims: [String: JSON], _ settings: [String: String] = [:]) async throws -> (Bool?, Bool?) {
            let service = try TestService.start(settings.merging(["jwks": issuer.file.path]) { $1 })
            let token = try issuer.token("k1", at: service.clock.now, claims)
            let byIssuer = try await service.call("GET", "/v1/me", as: .bearer(token)).json
            let bySecret = try await Self.me(service, claims.merging(["sub": "u1"]) { $1 })
            return (byIssuer["isService"].bool, bySecret["isService"].bool)
        }
        #expect(try await isService(["role": "service_role"]) == (false, true))
        #expect(try await isService(["role": "service"]) == (false, false))
        #expect(try await isService(["role": ["service_role"]]) == (false, false))
        #expect(try await isService(["app_metadata": ["user_role": "service_role"]]) == (true, true))
        #expect(try await isService(["app_metadata": ["user_role": "service"]]) == (false, false))
        // What the settings name wins.
        let both: [String: JSON] = ["role": "service_role", "app_metadata": ["user_role": "staff"]]
        #expect(try await isService(both) == (false, false))
        #expect(try await isService(["role": "service_role"], ["claimRole": "role"]) == (true, true))
        #expect(try await isService(["role": "service_role"], ["claimRole": "user_role"]) == (false, true))
    }

    // MARK: Names with dots

    @Test func claimsWhoseNamesHaveDots_canBeNamed() async throws {
        let auth0 = try TestService.start(["claimTenant": "https://app.example/tenant"])
        let ada = try await Self.me(auth0, Self.payload("auth0"))
        expect(ada, has: ["userId": "auth0|ada1", "tenant": "acme"])
        let stytch = try TestService.start([
            "claimTenant": "app_metadata.tenant,https://stytch.com/organization.organization_id"
        ])
        expect(try await Self.me(stytch, Self.payload("stytch")), has: ["tenant": "organization-A"])
        let zitadel = try TestService.start(["claimTenant": "urn:zitadel:iam:user:resourceowner:id"])
        expect(try await Self.me(zitadel, Self.payload("zitadel")), has: ["tenant": "18"])
        let ory = try TestService.start(["claimTenant": "ext.tenant", "claimRole": "ext.role"])
        expect(try await Self.me(ory, Self.payload("ory")), has: ["tenant": "A", "role": "staff"])
    }

    @Test func wholeName_isLookedUpBeforeThePath() async throws {
        let service = try TestService.start(["claimTenant": "a.b.c"])
        let path: JSON = ["b": ["c": "path"], "b.c": "half"]
        for (payload, tenant): ([String: JSON], String) in [
            (["a.b.c": "whole", "a": path, "a.b": ["c": "front"]], "whole"),
            (["a.b": ["c": "front"], "a": path], "front"), (["a": path], "half"), (["a": ["b": ["c": "path"]]], "path"),
            // A name that leads nowhere does not hide the others, and null counts as absent.
            (["a.b": ["d": "front"], "a": ["b": ["c": "path"]]], "path"), (["a.b.c": .null, "a": path], "half"),
            (["a": ["b": [:]]], "default"),
        ] {
            #expect(try await Self.me(service, payload.merging(["sub": "u"]) { $1 })["tenant"] == .string(tenant))
        }
        // A path through a value that is no object differs from an absent claim.
        let token = TestService.sign(["sub": "u", "exp": .integer(service.clock.now.seconds + 60), "a.b": "text"])
        #expect(try await service.call("GET", "/v1/me", as: .bearer(token)).status == 401)
    }

    @Test func emptyClaimName_isRefused() {
        for name in [".", "a.", ".a", "a..b"] {
            #expect(throws: Settings.Mistake.self) {
                try TestService.settings(["jwtSecret": TestService.secret, "claimRole": name])
            }
        }
    }

    // MARK: Claims that do not count

    private static func ignored(_ service: TestService, _ claim: String) async throws -> Int {
        let name = "bellhop_ignored_claims_total{claim=\"\(claim)\"} "
        let line = try await service.call("GET", "/metrics").text.split(separator: "\n").first { $0.hasPrefix(name) }
        return try #require(Int(line?.dropFirst(name.count) ?? ""))
    }

    @Test func ignoredClaims_areCounted_andTheirSettingsLoggedOnce() async throws {
        let (logger, lines) = RecordedLog.logger()
        let service = try TestService.start(["logLevel": "warning"], logger: logger)
        for user in ["ada", "ben", "eve"] {
            _ = try await Self.me(service, Self.payload("workos", ["sub": .string(user), "tier": "blackCard"]))
        }
        _ = try await Self.me(service, Self.payload("supabase"))
        _ = try await Self.me(
            service, ["sub": "fay", "tenant": "t1", "shop_ids": ["s1"], "class_ids": [], "role": "x"])
        #expect(try await Self.ignored(service, "role") == 3)
        #expect(try await Self.ignored(service, "user_role") == 1)
        #expect(try await Self.ignored(service, "tier") == 3)
        #expect(try await Self.ignored(service, "tenant") == 1)
        #expect(try await Self.ignored(service, "shop_ids") == 1)
        #expect(try await Self.ignored(service, "class_ids") == 0)
        let logged = lines().filter { $0.contains("claim that does not count") }
        #expect(logged.count == 5, "\(logged)")
        for setting in [
            "BELLHOP_CLAIM_ROLE=app_metadata.user_role,role", "BELLHOP_CLAIM_ROLE=app_metadata.user_role,user_role",
            "BELLHOP_CLAIM_TIER=app_metadata.tier,tier", "BELLHOP_CLAIM_SHOPS=app_metadata.shop_ids,shop_ids",
            "BELLHOP_CLAIM_TENANT=app_metadata.tenant,app_metadata.school_id,tenant",
        ] {
            #expect(logged.contains { $0.contains(setting) }, "\(setting)")
        }
    }

    /// Claims that count, that would give nothing, or that only someone without a key has written.
    @Test func otherClaims_areNotCounted() async throws {
        let (logger, lines) = RecordedLog.logger()
        let service = try TestService.start(["logLevel": "warning"], logger: logger)
        _ = try await Self.me(service, ["sub": "b", "role": "service_role"])
        _ = try await Self.me(service, ["sub": "u", "role": "authenticated", "tenant": "default"])
        _ = try await Self.me(service, ["sub": "u", "role": "admin", "app_metadata": ["user_role": "staff"]])
        let forged = TestService.sign(
            ["sub": "u", "role": "admin", "exp": .integer(service.clock.now.seconds + 60)],
            secret: "another secret, also with more than 32 bytes")
        #expect(try await service.call("GET", "/v1/me", as: .bearer(forged)).status == 401)
        #expect(try await Self.ignored(service, "role") == 0)
        #expect(try await Self.ignored(service, "tenant") == 0)
        #expect(!lines().contains { $0.contains("claim that does not count") })
    }

    // MARK: Mistakes of operators

    @Test func tokenOfAnotherSecretOrIssuer_leavesALine_withoutTheToken() async throws {
        let (logger, lines) = RecordedLog.logger()
        let service = try TestService.start(["logLevel": "warning", "jwtIssuer": "https://issuer"], logger: logger)
        let payload: [String: JSON] = [
            "sub": "planted", "iss": "https://issuer", "exp": .integer(service.clock.now.seconds + 60),
        ]
        let forged = TestService.sign(payload, secret: "another secret, also with more than 32 bytes")
        for (token, reason) in [
            (forged, "signature (HS256) is invalid"),
            (TestService.sign(payload.merging(["iss": .null]) { $1 }), "has no iss"),
            (
                TestService.sign(payload, header: ["alg": "ES256", "kid": "k"]),
                "algorithm (ES256) needs an issuer's public keys"
            ),
            (
                TestService.sign(payload.merging(["iss": "https://other"]) { $1 }),
                #"iss is not accepted here: "https://other""#
            ),
        ] {
            #expect(try await service.call("GET", "/v1/me", as: .bearer(token)).status == 401)
            let logged = lines().filter { $0.contains("A token was refused.") }
            #expect(logged.last?.contains(reason) == true, "\(logged)")
            #expect(logged.last?.contains("accepted=iss https://issuer") == true, "\(logged)")
            #expect(!logged.contains { $0.contains("planted") || $0.contains(token.suffix(20)) })
        }
        // An expired token is an everyday event.
        let count = lines().count
        let expired = TestService.sign(payload.merging(["exp": 1, "iss": "https://issuer"]) { $1 })
        #expect(try await service.call("GET", "/v1/me", as: .bearer(expired)).status == 401)
        #expect(lines().count == count)
    }

    @Test(arguments: [("servicerole", true), ("service", true), ("service_role", false), ("teacher", false)])
    func tokenCommand_tellsIfItDoesNotKnowTheRole(_ role: String, _ isTold: Bool) throws {
        let command = ["token", "--subject", "b", "--role", role]
        let (status, text) = try BellhopProcess(command, settings: ["JWT_SECRET": TestService.secret]).finish()
        #expect(status == 0)
        #expect(text.contains("gives no right") == isTold, "\(text)")
        #expect(text.contains("did you mean service_role?") == (role == "servicerole"), "\(text)")
        #expect(text.split(separator: "\n").contains { $0.split(separator: ".").count == 3 && $0.hasPrefix("ey") })
    }
}
