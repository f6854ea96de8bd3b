import BellhopClient
import TestSupport
import Testing
import Values

@testable import Service

/// Backends whose tokens have no `sub`, and backends and users whose `sub` equals their name.
@Suite(.timed) struct BackendIdentityTests {
    private static func token(_ service: TestService, _ claims: [String: JSON]) -> String {
        let now = service.clock.now.seconds
        let lifetime: [String: JSON] = ["iat": .integer(now - 60), "exp": .integer(now + 600)]
        return TestService.sign(claims.merging(lifetime) { $1 })
    }

    /// An answer stored for one backend is not replayed to the other.
    @Test func backendNamedLikeTheAnonymousOne_hasItsOwnAnswers() async throws {
        let service = try TestService.start()
        let nameless = service.anyone.with(token: Self.token(service, ["role": "service_role"]))
        let named = service.anyone.with(token: Self.token(service, ["role": "service_role", "sub": "service_role"]))
        let event = Bellhop.OwnEvent(event: "e", to: ["user:ada"], data: 1)
        for (client, replayed) in [(nameless, false), (named, false), (nameless, true), (named, true)] {
            #expect(try await client.publish([event], idempotencyKey: "k1").isReplayed == replayed)
        }
    }

    /// Such a user would get the data stored under a backend's name.
    @Test(arguments: Settings.serviceNames.sorted())
    func user_isNotCalledAsABackend(_ name: String) async throws {
        let service = try TestService.start()
        let answer = try await problem(
            of: await service.anyone.with(token: Self.token(service, ["sub": .string(name)])).getMe())
        #expect(answer.status == 401)
        #expect(answer.code == .invalidToken)
    }
}
