import BellhopClient
import TestSupport
import Testing
import Values

@testable import Service

/// An erasure with two replicas on one PostgreSQL, which take turns.
@Suite(.timed) struct ErasureReplicasTests {
    @Test func allReplicasRefuseThePerson_andTheErasureEnds() async throws {
        let (first, second) = try TestService.startReplicas()
        let ada = TestService.Identity.user(ErasedTown.ada)
        let old = TestService.Identity.bearer(second.token(for: ada))
        for number in 0..<3 { try await first.publish("n\(number)", to: ErasedTown.ada) }
        for visibility in ["public", "followers"] as [JSON] {
            let post = try await second.call(
                "POST", "/v1/posts", as: ada, ["text": "a post", "visibility": visibility])
            #expect(post.status == 201)
        }
        let own = try await second.listen(as: old)
        let others = try await second.listen(as: .user("eve"))
        first.clock.advance(seconds: 1)
        #expect(try await first.call("DELETE", "/v1/users/\(ErasedTown.ada)", as: .service()).status == 202)
        #expect(try await own.next("stream:closing").json["reason"].string == "revoked")
        try await eventually("the other replica refuses the token") {
            try await second.call("GET", "/v1/badges", as: old).status == 401
        }
        try await eventually("the erasure ends", step: { first.clock.advance(seconds: 1) }) {
            let answer = try await second.call("GET", "/v1/users/\(ErasedTown.ada)/erasure", as: .service())
            return answer.json["state"].string == "done"
        }
        for (table, rows) in try ErasedTown.rows(of: "default", in: first) {
            #expect(!rows.contains { $0.contains(ErasedTown.ada) }, "\(table)")
        }
        try await second.publish("for-eve", to: "eve")
        _ = try await others.next("notification:created")
        #expect(!others.received.contains { $0.name == "stream:resync" })
        try first.expectExactCounts()
    }
}
