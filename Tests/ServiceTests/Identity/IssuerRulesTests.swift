import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// What the claims of issuers mean by the settings: each shape of a role and a tenant, conditions, and several issuers.
@Suite(.timed) struct IssuerRulesTests {
    /// Returns what `/v1/me` says about a payload that is signed with the secret.
    private static func me(_ service: TestService, _ payload: JSON) async throws -> ServiceAnswer {
        let lifetime: [String: JSON] = ["exp": .integer(service.clock.now.seconds + 600), "nbf": 0]
        let token = TestService.sign(["sub": "u"].merging(payload.object ?? [:]) { $1 }.merging(lifetime) { $1 })
        return try await service.call("GET", "/v1/me", as: .bearer(token))
    }

    // MARK: Roles

    /// A shape of a role: the setting, the payload, the role.
    static let roles: [(setting: [String: String], payload: JSON, role: String)] = [
        (["claimRole": "r"], ["r": "admin"], "admin"), (["claimRole": "r"], ["r": "pupil"], "pupil"),
        (["claimRole": "r"], ["r": ["teacher", "offline_access"]], "teacher"),
        (["claimRole": "r"], ["r": ["teacher", "admin"]], "admin"), (["claimRole": "r"], ["r": []], "authenticated"),
        (["claimRole": "r"], ["r": ["offline_access"]], "authenticated"),
        (["claimRole": "r"], ["r": "admin,user"], "admin"), (["claimRole": "r"], ["r": "user, admin"], "admin"),
        (["claimRole": "r"], ["r": "former admin"], "former admin"),
        (["claimRole": "r"], ["r": ["user,admin"]], "authenticated"),
        (["claimRole": "scope"], ["scope": "openid admin"], "admin"),
        (["claimRole": "scope"], ["scope": "openid administrator"], "authenticated"),
        (["claimRole": "scp"], ["scp": ["openid", "staff"]], "staff"),
        (["claimRole": "r"], ["r": ["admin": .bool(true), "staff": .bool(false)]], "admin"),
        (["claimRole": "r"], ["r": ["admin": .bool(false), "staff": ["x": 1]]], "authenticated"),
        (["claimRole": "r", "claimTenant": "org"], ["org": "x", "r": ["staff": [:], "admin": []]], "authenticated"),
        (["claimRole": "r", "claimTenant": "org"], ["org": "x", "r": ["staff": ["x": 1]]], "staff"),
        (["claimRole": "r", "claimTenant": "org"], ["org": "y", "r": ["staff": ["x": 1]]], "authenticated"),
        (["claimRole": "r", "claimTenant": "org"], ["org": "x", "r": ["staff": ["x"]]], "staff"),
        (["claimRole": "roles.key"], ["roles": [["id": "1", "key": "teacher"], ["id": "2"]]], "teacher"),
        (["claimRole": "realm_access.roles"], ["realm_access": ["roles": ["teacher"]]], "teacher"),
        (["claimRole": "https://a.example/roles"], ["https://a.example/roles": ["admin"]], "admin"),
        (
            ["claimRole": "https://a.example/session.roles"], ["https://a.example/session": ["roles": ["admin"]]],
            "admin"
        ),
        (
            ["claimRole": "t.{tenant}.roles", "claimTenant": "c"],
            ["c": "b", "t": ["a": ["roles": ["admin"]], "b": ["roles": ["staff"]]]], "staff"
        ),
        (["claimRole": "t.{tenant}.roles"], ["t": ["default": ["roles": ["admin"]]]], "authenticated"),
        (["claimRole": "a,b"], ["b": "admin"], "admin"),
        (["claimRole": "a,b"], ["a": [], "b": "admin"], "authenticated"),
        // With names of roles, only these count, in their order.
        (["claimRole": "r", "roles": "Lehrkraft=teacher"], ["r": ["Lehrkraft"]], "teacher"),
        (["claimRole": "r", "roles": "Lehrkraft=teacher"], ["r": "admin"], "authenticated"),
        (["claimRole": "r", "roles": "Lehrkraft=teacher"], ["r": "lehrkraft"], "authenticated"),
        (["claimRole": "r", "roles": "a=teacher,b=admin"], ["r": ["b", "a"]], "teacher"),
        (["claimRole": "r", "roles": "Shop Manager=staff, Boss=admin"], ["r": "Shop Manager"], "staff"),
        (["claimRole": "scope", "roles": "bells/serve=service_role"], ["scope": "a bells/serve"], "service_role"),
    ]

    @Test(arguments: roles.indices) func role_hasEveryShape(_ index: Int) async throws {
        let (settings, payload, role) = Self.roles[index]
        let answer = try await Self.me(TestService.start(settings), payload)
        #expect(answer.json["role"].string == role, "\(settings) \(payload): \(answer.text)")
    }

    @Test(
        arguments: [
            ["r": 1.5], ["r": ["admin", 1.5]], ["r": ["name": "admin"]], ["r": [["key": "admin"]]], ["r": ""],
            ["r": .bool(true)], ["r": ["admin": 1]],
        ] as [JSON])
    func role_ofAnotherShape_isRefused(_ payload: JSON) async throws {
        let answer = try await Self.me(TestService.start(["claimRole": "r"]), payload)
        #expect(answer.status == 401, "\(payload): \(answer.text)")
        #expect(answer.json["detail"].string?.hasPrefix("The token's r ") == true, "\(answer.text)")
    }

    // MARK: Tenant and user

    @Test(
        arguments: [
            (["org": "a"], "a"), (["org": 7], "7"), (["org": ["a"]], "a"), (["org": ["a": ["id": "1"]]], "a"),
            ([:], "default"),
            (["org": []], "default"), (["org": [:]], "default"), (["org": .null], "default"),
            (["org": ["a", "b"]], nil),
            (["org": ["a": [:], "b": [:]]], nil), (["org": ["id": "a"]], nil), (["org": .bool(true)], nil),
            (["org": [["id": "a"]]], nil), (["org": ""], nil),
        ] as [(JSON, String?)])
    func tenant_isOne(_ payload: JSON, _ tenant: String?) async throws {
        let answer = try await Self.me(TestService.start(["claimTenant": "org"]), payload)
        #expect(answer.json["tenant"].string == tenant, "\(payload): \(answer.text)")
        #expect((answer.status == 200) == (tenant != nil), "\(payload): \(answer.text)")
    }

    @Test func tenantOfTheSettings_isThatOfAllTokens_alsoOfBackends() async throws {
        let service = try TestService.start(["jwtTenant": "acme", "claimTenant": "org", "claimRole": "r"])
        #expect(try await Self.me(service, ["org": "other"]).json["tenant"] == "acme")
        let token = TestService.sign([
            "sub": "b", "r": "service_role", "org": "other", "exp": .integer(service.clock.now.seconds + 60),
        ])
        let event: JSON = ["id": "e", "type": "booking.requested", "userId": "u", "tenant": "other", "data": [:]]
        let answer = try await service.call("POST", "/v1/events", as: .bearer(token), event)
        #expect(answer.status >= 400, "\(answer.text)")
    }

    @Test func user_isTheClaimOfTheSetting() async throws {
        let service = try TestService.start(["claimUser": "oid,https://a.example/id"])
        #expect(try await Self.me(service, ["oid": "o", "sub": "s"]).json["userId"] == "o")
        #expect(try await Self.me(service, ["https://a.example/id": 42]).json["userId"] == "42")
        let none = try await Self.me(service, [:])
        #expect(none.status == 401)
        #expect(none.json["detail"] == "The token's oid or https://a.example/id is missing.")
        #expect(try await Self.me(service, ["oid": "service_role"]).status == 401)
    }

    @Test func session_isTheOneOfTheIssuer() async throws {
        let service = try TestService.start()
        #expect(try await Self.me(service, ["sid": "s1"]).json["sessionId"] == "s1")
        #expect(try await Self.me(service, ["session_id": "s2", "sid": "s1"]).json["sessionId"] == "s2")
        #expect(try await Self.me(service, ["sid": 7]).status == 401)
        let named = try TestService.start(["claimSession": "https://a.example/session.id"])
        #expect(try await Self.me(named, ["https://a.example/session": ["id": "s3"]]).json["sessionId"] == "s3")
    }

    // MARK: Conditions

    @Test(
        arguments: [
            (["client_id": "a", "token_use": "access"], nil), (["client_id": "b", "token_use": "access"], nil),
            (["client_id": ["x", "a"], "token_use": "access"], nil), (["client_id": "a"], "has no token_use"),
            (["client_id": "a", "token_use": "id"], #"token_use is not accepted here: "id""#),
            (["client_id": "c", "token_use": "access"], #"client_id is not accepted here: "c""#),
            (["token_use": "access"], "has no client_id"),
        ] as [(JSON, String?)])
    func requiredClaims_areAlternativesByName(_ payload: JSON, _ reason: String?) async throws {
        let service = try TestService.start(["jwtRequire": "client_id=a,client_id=b,token_use=access"])
        let answer = try await Self.me(service, payload)
        #expect(answer.status == (reason == nil ? 200 : 401), "\(payload): \(answer.text)")
        if let reason { #expect(answer.json["detail"].string?.contains(reason) == true, "\(answer.text)") }
    }

    @Test func audiences_areAlternatives() async throws {
        let service = try TestService.start(["jwtAudience": "a, b"])
        #expect(try await Self.me(service, ["aud": "b"]).status == 200)
        #expect(try await Self.me(service, ["aud": ["x", "a"]]).status == 200)
        let other = try await Self.me(service, ["aud": ["x", "y"]])
        #expect(other.json["code"] == "invalid_token.not_ours")
        #expect(other.json["detail"] == #"The token's aud is not accepted here: ["x","y"]."#)
        #expect(try await Self.me(service, [:]).json["detail"] == "The token has no aud, which is required here.")
    }

    @Test(
        arguments: [
            (["scope": "a bellhop b"], true), (["scope": ["bellhop"]], true), (["scope": "bellhop2"], false),
            ([:], false),
            (["scope": ["bellhop": .bool(true)]], false),
        ] as [(JSON, Bool)])
    func wordOfTheScope_makesABackend(_ payload: JSON, _ isService: Bool) async throws {
        let service = try TestService.start(["jwtService": "scope=bellhop"])
        #expect(try await Self.me(service, payload).json["isService"] == .bool(isService), "\(payload)")
    }

    /// Some issuers give a machine's token no `sub`, but the client's id.
    @Test func machineWithoutSub_isNamedByItsClient() async throws {
        let service = try TestService.start(["jwtService": "gty=client_credentials"])
        let machine: JSON = ["sub": .null, "gty": ["client_credentials"], "azp": "worker", "scope": ""]
        let me = try await Self.me(service, machine).json
        #expect(me["userId"] == "worker")
        #expect(me["isService"] == true)
    }

    // MARK: Several issuers

    @Test func furtherIssuers_haveRulesOfTheirOwn() async throws {
        let directory = try TemporaryDirectory()
        var (first, second) = (try Issuer(), try Issuer())
        try first.add("k1")
        try second.add("k1")
        let file = try directory.write(
            """
            - jwtIssuer: https://new.example
              jwks: \(second.file.path)
              jwtAudience: [bells, chimes]
              claimUser: oid
              claimRole: roles
              roles: Lehrkraft=teacher
            - jwtIssuer: https://acme.example
              jwtSecret: another secret, also with more than 32 bytes
              jwtTenant: acme
            """, to: "issuers.yaml")
        let service = try TestService.start([
            "jwtSecret": "", "jwtIssuer": "https://old.example", "jwks": first.file.path, "issuers": file,
            "claimTenant": "org",
        ])
        let now = service.clock.now
        func me(_ token: String) async throws -> ServiceAnswer {
            try await service.call("GET", "/v1/me", as: .bearer(token))
        }
        let old = try await me(
            first.token("k1", at: now, ["iss": "https://old.example", "org": "a", "roles": ["admin"]]))
        expect(old.json, has: ["userId": "u1", "tenant": "a", "role": "authenticated"])
        let claims: [String: JSON] = [
            "iss": "https://new.example", "aud": "chimes", "org": "a", "oid": "o1", "roles": ["Lehrkraft"],
        ]
        let new = try await me(second.token("k1", at: now, claims))
        expect(new.json, has: ["userId": "o1", "tenant": "a", "role": "teacher"])
        let acme = try await me(
            TestService.sign(
                ["iss": "https://acme.example", "sub": "u1", "org": "a", "exp": .integer(now.seconds + 60)],
                secret: "another secret, also with more than 32 bytes"))
        expect(acme.json, has: ["userId": "u1", "tenant": "acme"])
        // Nobody signs in the name of another issuer.
        for (issuer, token) in [
            ("https://new.example", try first.token("k1", at: now, claims)),
            ("https://old.example", try second.token("k1", at: now, ["iss": "https://old.example"])),
            (
                "https://old.example",
                TestService.sign(["iss": "https://old.example", "sub": "u1", "exp": 4_102_444_800])
            ),
            ("https://x.example", try second.token("k1", at: now, ["iss": "https://x.example"])),
            ("none", try second.token("k1", at: now)),
        ] {
            let answer = try await me(token)
            #expect(answer.json["code"] == "invalid_token.not_ours", "\(issuer): \(answer.text)")
        }
        #expect(try await me(second.token("k1", at: now, claims.merging(["aud": "x"]) { $1 })).status == 401)
    }

    @Test(arguments: [
        ("[]", "must be a list of 1 to 64 issuers"), ("- 7", "line 1: an issuer must have members"),
        ("- jwks: k.json", "line 1: jwtIssuer is missing"), ("- jwtIssuer: x", "x is no URL"),
        (
            "- jwtIssuer: https://a\n  claimRoles: r",
            "line 2: claimRoles is not a setting of an issuer; did you mean claimRole?"
        ),
        ("- jwtIssuer: https://a\n  port: 80", "line 2: port is not a setting of an issuer"),
        ("- jwtIssuer: https://a\n- jwtIssuer: https://a", "line 2: https://a is the issuer of other rules as well"),
        ("- jwtIssuer: https://flat.example", "is the issuer of other rules as well"),
        (
            "- jwtIssuer: https://a\n  jwtSecret: short",
            "line 2: jwtSecret (BELLHOP_JWT_SECRET): must have at least 32 bytes"
        ),
        ("- jwtIssuer: http://id.example", "must begin with https://"), ("- jwtIssuer: [", "is not valid YAML"),
        ("- jwtIssuer: https://a\n  claimUser: {a: b}", "line 2: claimUser must be a text or a list"),
    ])
    func mistakeInTheFile_stopsTheStart(_ yaml: String, _ reason: String) throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(yaml, to: "issuers.yaml")
        let mistake = #expect(throws: Settings.Mistake.self) {
            try TestService.settings([
                "jwtSecret": TestService.secret, "jwtIssuer": "https://flat.example", "issuers": file,
            ])
        }
        #expect(mistake?.description.contains(reason) == true, "\(String(describing: mistake))")
        #expect(mistake?.description.hasPrefix("issuers (BELLHOP_ISSUERS): ") == true, "\(String(describing: mistake))")
    }

    @Test(
        arguments: [
            (["roles": "Lehrkraft=techer"], "roles (BELLHOP_ROLES): techer is not a role; did you mean teacher?"),
            (["roles": "Lehrkraft"], "Lehrkraft is not name=value"), (["jwtRequire": "=a"], "is not name=value"),
            (["jwtRequire": "a..b=c"], "is not a claim"), (["jwtBytes": "20000"], "between 1024 and 16384"),
            (["jwtSecret": "", "jwtIssuer": "P2abc"], "jwtIssuer (BELLHOP_JWT_ISSUER): P2abc is no URL"),
            (["jwtSecret": ""], "there is no key to verify tokens: set BELLHOP_JWT_ISSUER"),
        ] as [([String: String], String)])
    func wrongSetting_isNamed(_ settings: [String: String], _ reason: String) throws {
        let mistake = #expect(throws: Settings.Mistake.self) {
            try TestService.settings(["jwtSecret": TestService.secret].merging(settings) { $1 })
        }
        #expect(mistake?.description.contains(reason) == true, "\(String(describing: mistake))")
    }

    @Test func longTokens_areAccepted_asFarAsTheSettingAllows() async throws {
        let groups = JSON.array((0..<300).map { .string("group-\($0)-of-a-large-company") })
        let refused = try await Self.me(TestService.start(), ["groups": groups])
        #expect(refused.status == 401)
        #expect(refused.json["detail"].string?.contains("BELLHOP_JWT_BYTES") == true, "\(refused.text)")
        #expect(try await Self.me(TestService.start(["jwtBytes": "16384"]), ["groups": groups]).status == 200)
    }
}
