import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// Lines about wrong settings of tokens: each fault is logged once, by name, and counted.
@Suite(.timed) struct ClaimWarningsTests {
    /// A service, and the lines of its log.
    private struct Logged {
        let service: TestService
        let lines: @Sendable () -> [String]

        init(_ settings: [String: String]) throws {
            let (logger, lines) = RecordedLog.logger()
            service = try TestService.start(settings.merging(["logLevel": "warning"]) { $1 }, logger: logger)
            self.lines = lines
        }

        func send(_ payload: JSON) async throws -> ServiceAnswer {
            let own: [String: JSON] = ["sub": "u", "exp": .integer(service.clock.now.seconds + 600)]
            let token = TestService.sign(own.merging(payload.object ?? [:]) { $1 })
            return try await service.call("GET", "/v1/me", as: .bearer(token))
        }

        func count(_ metric: String) async throws -> Int? {
            let page = try await service.call("GET", "/metrics").text
            let line = page.split(separator: "\n").first { $0.hasPrefix(metric) }
            return line.flatMap { Int($0.split(separator: " ").last ?? "") }
        }

        func lines(_ text: String) -> [String] { lines().filter { $0.contains(text) } }
    }

    @Test func severalOrganizations_inOneTenant_areNoticed() async throws {
        for (claim, values) in [
            ("org_id", ["a", "b"]), ("o", [["id": "a"], ["id": "b"]]), ("tid", ["a", "b"]),
            ("organization", [["a"], ["b"]]), ("organization", [["a": [:]], ["b": [:]]]),
            ("firebase", [["tenant": "a"], ["tenant": "b"]]),
        ] as [(String, [JSON])] {
            let it = try Logged([:])
            for value in [values[0], values[0]] { #expect(try await it.send([claim: value]).status == 200) }
            #expect(try await it.count("bellhop_mixed_organizations_total") == 0)
            for n in 0..<3 { _ = try await it.send([claim: values[1], "jti": .string("\(n)")]) }
            #expect(try await it.count("bellhop_mixed_organizations_total") == 3, "\(claim)")
            #expect(it.lines("Users of several organizations").count == 1, "\(claim): \(it.lines())")
        }
        let named = try Logged(["claimTenant": "org_id"])
        for org in ["a", "b"] { _ = try await named.send(["org_id": .string(org)]) }
        #expect(try await named.count("bellhop_mixed_organizations_total") == 0)
    }

    @Test func claimOfASetting_thatNoTokenHas_isNoticed() async throws {
        let it = try Logged(["claimTenant": "organisation", "claimTier": "level", "claimRole": "role"])
        _ = try await it.send(["organization": "a", "role": "admin"])
        #expect(it.lines("BELLHOP_CLAIM_TENANT=organisation").count == 1, "\(it.lines())")
        for n in 1..<ClaimWarnings.unfoundMin {
            #expect(it.lines("BELLHOP_CLAIM_TIER").isEmpty)
            _ = try await it.send(["jti": .string("\(n)")])
        }
        #expect(it.lines("BELLHOP_CLAIM_TIER=level").count == 1)
        #expect(it.lines("BELLHOP_CLAIM_ROLE").isEmpty, "some tokens have it: \(it.lines())")
        #expect(try await it.count("bellhop_missing_claims_total{setting=\"claimTier\"}") == ClaimWarnings.unfoundMin)
    }

    @Test func unlistedNamesOfRoles_areNoticed() async throws {
        let it = try Logged(["claimRole": "r", "roles": "teacher=teacher,boss=admin"])
        _ = try await it.send(["r": ["Teacher", "member"]])
        let line = it.lines("does not list them")
        #expect(
            line.count == 1 && line[0].contains("Teacher, member") && line[0].contains("teacher, boss"), "\(it.lines())"
        )
        _ = try await it.send(["r": ["Boss"]])
        _ = try await it.send(["r": ["boss"]])
        #expect(it.lines("does not list them").count == 1)
        #expect(try await it.count("bellhop_unlisted_roles_total") == 2)
        // Names that only resemble nothing are everyday, unless no token has another.
        let other = try Logged(["claimRole": "r", "roles": "teacher=teacher"])
        // A token without names says nothing about the list.
        _ = try await other.send([:])
        for n in 0..<ClaimWarnings.unfoundMin { _ = try await other.send(["r": "member", "jti": .string("\(n)")]) }
        #expect(other.lines("does not list them").count == 1, "\(other.lines())")
    }

    @Test func sessionOfAUser_thatIsABackend_isNoticed() async throws {
        let it = try Logged(["jwtService": "azp=web"])
        _ = try await it.send(["azp": "web"])
        #expect(it.lines("counts as a backend").isEmpty)
        #expect(try await it.send(["azp": "web", "sid": "s1"]).json["isService"] == true)
        #expect(it.lines("A token of a user's session counts as a backend's.").count == 1, "\(it.lines())")
    }

    /// Its notifications are stored for users that do not exist.
    @Test func backendWithoutATenant_thatReachesNobody_isNoticed() async throws {
        let it = try Logged([:])
        func notify() async throws {
            let event: JSON = ["userId": "ada", "type": "INFO", "title": "t", "body": "b"]
            _ = try await it.service.call("POST", "/v1/notifications", as: .service(), event)
        }
        try await notify()
        #expect(try await it.count("bellhop_lost_calls_total") == 0)
        _ = try await it.send(["app_metadata": ["tenant": "acme"]])
        for _ in 0..<2 { try await notify() }
        #expect(try await it.count("bellhop_lost_calls_total") == 2)
        #expect(it.lines("A backend without a tenant acts in the tenant default").count == 1, "\(it.lines())")
        _ = try await it.send([:])
        try await notify()
        #expect(try await it.count("bellhop_lost_calls_total") == 2)
    }

    @Test func tokenOfAnotherIssuer_isRefusedByItsName_withOneIssuerToo() async throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        let it = try Logged(["jwtSecret": "", "jwks": issuer.file.path, "jwtIssuer": "https://ours.example"])
        var other = try Issuer()
        try other.add("k9")
        let token = try other.token("k9", at: it.service.clock.now, ["iss": "https://theirs.example"])
        let answer = try await it.service.call("GET", "/v1/me", as: .bearer(token))
        #expect(answer.json["detail"] == #"The token's iss is not accepted here: "https://theirs.example"."#)
    }
}
