import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// Tokens for development, under settings of any kind: the service must read from them what was asked for.
@Suite(.timed) struct TokenMintTests {
    /// Settings by which issuers' tokens are read, as the pages of providers have them.
    static let settings: [[String: String]] = [
        [:], ["jwtIssuer": "https://id.example", "jwtAudience": "a,b"],
        ["jwtRequire": "client_id=a,client_id=b,token_use=access", "claimUser": "oid", "claimTenant": "tid"],
        ["claimRole": "scope", "jwtRequire": "scope=openid"], ["claimRole": "scope", "jwtService": "scope=bellhop"],
        ["claimRole": "roles", "roles": "Lehrkraft=teacher,Chef=admin,Team=staff", "jwtService": "azp=w,gty=c"],
        ["claimRole": "https://a.example/roles", "claimTenant": "https://a.example/org", "claimUser": "x.y.z"],
        ["claimRole": "tenants.{tenant}.roles", "claimTenant": "dct"], ["jwtTenant": "acme"],
        ["claimRole": "r", "roles": "x=staff,y=admin,z=teacher", "claimShops": "a.b,c"],
        ["claimUser": "user.id", "claimTenant": "user.tenant", "claimRole": "role"],
    ]

    @Test(arguments: settings.indices) func token_meansWhatWasAskedFor(_ index: Int) async throws {
        let overrides = Self.settings[index]
        let service = try TestService.start(overrides)
        let settings = try TestService.settings(["jwtSecret": TestService.secret].merging(overrides) { $1 })
        let mint = try TokenMint(settings)
        for role in [nil, "service_role", "admin", "staff", "teacher"] {
            for tenant in [nil, overrides["jwtTenant"] ?? "school-7"] {
                // A role below the tenant needs one.
                if tenant == nil, role != nil, overrides["claimRole"]?.contains("{tenant}") == true { continue }
                let wanted = DevelopmentToken(
                    user: "ada", role: role, tenant: tenant, meanings: [.shops: .array([.string("s1")])])
                let token = try mint.sign(wanted, at: service.clock.now, id: "t1")
                let answer = try await service.call("GET", "/v1/me", as: .bearer(token))
                let what = "\(overrides) \(role ?? "–") \(tenant ?? "–"): \(answer.text)"
                #expect(answer.json["userId"] == "ada", "\(what)")
                #expect(answer.json["role"].string == role ?? "authenticated", "\(what)")
                #expect(answer.json["tenant"].string == tenant ?? overrides["jwtTenant"] ?? "default", "\(what)")
                #expect(answer.json["isService"] == .bool(role == "service_role"), "\(what)")
                if role == "staff" { #expect(answer.json["scope"].array?.contains("shop:s1:staff") == true, "\(what)") }
            }
        }
    }

    @Test func tokenThatTheSettingsDoNotAllow_isRefused() throws {
        func mistake(_ overrides: [String: String], _ token: DevelopmentToken) throws -> String? {
            let mint = try TokenMint(TestService.settings(["jwtSecret": TestService.secret].merging(overrides) { $1 }))
            let now = ManualClock(nil).now
            return #expect(throws: Settings.Mistake.self) { try mint.sign(token, at: now, id: "t") }?.description
        }
        #expect(
            try mistake(["roles": "Chef=admin"], DevelopmentToken(user: "u", role: "staff"))
                == "roles (BELLHOP_ROLES): has no name for the role staff")
        let other = try mistake(["jwtTenant": "acme"], DevelopmentToken(user: "u", tenant: "b"))
        #expect(other?.contains("in the tenant acme") == true)
        let long = try mistake([:], DevelopmentToken(user: "u", lifetimeSeconds: 91 * 86_400))
        #expect(long?.contains("lifetime exceeds 90 days") == true)
        let reserved = try mistake([:], DevelopmentToken(user: "service_role"))
        #expect(reserved?.contains("reserved") == true)
    }

    @Test func withoutASecret_theRemedyIsNamed() throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        let settings = try TestService.settings(["jwks": issuer.file.path])
        let mistake = #expect(throws: Settings.Mistake.self) { try TokenMint(settings) }
        #expect(mistake?.description.hasPrefix("jwtSecret (BELLHOP_JWT_SECRET): is not set") == true)
    }
}
