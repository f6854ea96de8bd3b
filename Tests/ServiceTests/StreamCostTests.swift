import BellhopClient
import Database
import Realtime
import TestSupport
import Testing
import Values

@testable import Service

/// Attack: a request that costs the service more than its sender. Harm: other users wait.
@Suite(.timed) struct StreamCostTests {
    /// Without a token the topics are not looked at, however many they are.
    @Test func topics_areReadOnlyOfAKnownCaller() async throws {
        let service = try TestService.start()
        let path = "/v1/stream?topics=" + (0..<2000).map { "a\($0)" }.joined(separator: ",")
        let anyone = try await BellhopClient(baseURL: service.baseURL).get(path)
        #expect(anyone.status == 401)
        let known = try await service.client(as: .user("u1")).get(path)
        #expect(known.status == 422)
        #expect(known.json["errors"].array?.count == 20)
    }

    @Test func mistakesInTopics_endTheReading() throws {
        var count = 0
        let texts = sequence(state: 0) { (state: inout Int) -> String? in
            count += 1
            state += 1
            return state > 6000 ? nil : "a\(state)"
        }
        #expect(throws: Failure.self) { try StreamTopics.parse(texts, kinds: []) { _ in "?topics" } }
        #expect(count == 20)
    }
}
