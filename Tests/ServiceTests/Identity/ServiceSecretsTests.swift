import Database
import TestSupport
import Testing

@testable import Service

@Suite(.timed) struct ServiceSecretsTests {
    /// A creates the secret and has not committed; B wants it too. Neither fails, and both get the same one.
    @Test func secret_isCreatedOnce_whenTwoReplicasWantItAtTheSameTime() async throws {
        let (a, b) = try TestService.startReplicas()
        let (isCreated, mayCommit) = (Gate(), Gate())
        async let first = a.app.store.write { db in
            let secret = try ServiceSecrets.secret(named: "test", in: db)
            isCreated.open()
            mayCommit.wait()
            return secret
        }
        try await eventually("A has created it") { isCreated.isOpen }
        async let second = b.app.store.write { try ServiceSecrets.secret(named: "test", in: $0) }
        let name = try #require(a.database.name)
        try await eventually("B waits for A", step: {}) { try PushContention.waiting(in: name) > 0 }
        mayCommit.open()
        #expect(try await first == second)
    }
}
