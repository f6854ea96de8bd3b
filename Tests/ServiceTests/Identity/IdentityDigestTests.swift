import BellhopClient
import Database
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// The digest that clients use in the names of stored states. Tokens of real issuers change in many claims that the
/// service does not read (`Tests/Fixtures/Identity/issuers.json`, which the clients read too).
@Suite(.timed) struct IdentityDigestTests {
    private static let fixture = repository.appendingPathComponent("Tests/Fixtures/Identity/issuers.json")

    /// Signs the claims of a fixture, issued now.
    private static func token(_ service: TestService, _ payload: JSON) -> String {
        let now = service.clock.now.seconds
        let lifetime: [String: JSON] = ["iat": .integer(now), "nbf": .integer(now), "exp": .integer(now + 600)]
        return TestService.sign((payload.object ?? [:]).merging(lifetime) { $1 })
    }

    private static func identity(_ service: TestService, _ token: String) async throws -> String? {
        let answer = try await service.call("GET", "/v1/me", as: .bearer(token))
        return answer.status == 200 ? answer.json["identity"].string : answer.text
    }

    @Test func identity_followsTheClaimsThatTheServiceReads_alone() async throws {
        let issuers = try JSON(parsing: Data(contentsOf: Self.fixture))["issuers"].array ?? []
        #expect(issuers.count == 18)
        for issuer in issuers {
            let settings = (issuer["settings"].object ?? [:]).compactMapValues(\.string)
            let service = try TestService.start(settings)
            let first = Self.token(service, issuer["payload"])
            let name = issuer["issuer"].string ?? ""
            #expect(try await Self.identity(service, first) == issuer["identity"].string, "\(name)")
            for token in issuer["tokens"].array ?? [] {
                let found = try await Self.identity(service, Self.token(service, token["payload"]))
                #expect(found == token["identity"].string, "\(name): \(token["case"].string ?? "")")
            }
        }
    }

    /// Another replica, or the service after a restart, gives the same digest; so do a stream, a ticket and a renewal.
    @Test func identity_isTheSameEverywhere() async throws {
        let (a, b) = try TestService.startReplicas()
        let identity = TestService.Identity(subject: "ada", claims: ["app_metadata": ["user_role": "teacher"]])
        let digest = try await a.client(as: identity).getMe().value.identity
        #expect(try await b.client(as: identity).getMe().value.identity == digest)
        let stream = try await b.listen(as: identity)
        let ready = stream.ready
        #expect(ready.json["identity"].string == digest)
        let ticket = try await a.client(as: identity).createStreamTicket(.init()).value.ticket
        let raw = try RawConnection(b.port)
        try raw.send("GET /v1/stream?ticket=\(ticket) HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try raw.read(until: "serverTime").contains("\"identity\":\"\(digest)\""))
        let id = try #require(ready.json["streamId"].string)
        let renewed = try await a.client(as: identity).renewStreamToken(id: id, .init(token: a.token(for: identity)))
        #expect(renewed.value.identity == digest)
        let other = TestService.Identity(subject: "ada", claims: ["app_metadata": ["user_role": "admin"]])
        let changed = try await a.client(as: identity).renewStreamToken(id: id, .init(token: a.token(for: other)))
        #expect(changed.value.identity != digest)
        #expect(try await a.client(as: other).getMe().value.identity == changed.value.identity)
    }

    /// Rows of the service decide memberships, and may change while a client is away.
    @Test func memberships_areNoPartOfTheIdentity() {
        let claimed: Set<String> = ["everyone", "user:ada", "class:c1:member"]
        let caller = Caller(
            tenant: "default", userId: "ada", role: "student", isService: false,
            scope: Scope(tenant: "default", keys: claimed))
        #expect(caller.with(["everyone", "user:ada"], omitted: 0, of: 1).identity == caller.identity)
        #expect(caller.with(claimed.union(["team:t1"]), omitted: 3, of: 2).identity == caller.identity)
    }
}
