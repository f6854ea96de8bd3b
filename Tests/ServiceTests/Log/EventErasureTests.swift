import Database
import Realtime
import TestSupport
import Testing
import Values

@testable import Service

/// All readers of an erased event find that they missed something.
@Suite(.timed) struct EventErasureTests {
    private typealias Draft = LoggedTransactions.Draft

    private static let ada = "ada-q7"

    private static func erased(_ drafts: [Draft]) async throws -> LoggedTransactions {
        let log = try LoggedTransactions(TestService.start(at: TestService.morning))
        try await log.publish(drafts)
        try log.erase(ID(ada))
        for event in try log.following(log.start).events {
            let texts = event.audience + [event.topic ?? "", String(decoding: event.data, as: UTF8.self)]
            #expect(!texts.contains { $0.contains(ada) })
        }
        return log
    }

    /// - Parameters:
    ///   - readers: The route of a stream that could receive the event.
    ///   - strangers: The route of one that could not.
    @Test(
        arguments: [
            // An event of another user that names the person.
            (["user:u1"], nil, #"{"friend":"ada-q7"}"#, "user:u1", "user:u2"),
            // An event of both.
            (["user:u1", "user:ada-q7"], nil, "{}", "user:u1", "user:u2"),
            // An event of a topic, and the change of a table's row, by the person.
            (["user:ada-q7"], "queue:s1", "{}", "#queue:s1", "everyone"),
            (["user:ada-q7"], "@public:orders", "{}", "#@public:orders", "everyone"),
            // A topic that names the person.
            (["user:u1"], "match:ada-q7", "{}", "user:u1", "everyone"),
            // Followers are not known any more. All streams of the tenant have this key.
            (["follower:ada-q7"], nil, #"{"text":"hello"}"#, "everyone", "user:u1"),
            (["follower:ada-q7", "user:ada-q7", "user:u1"], nil, "{}", "everyone", "user:u2"),
        ] as [([String], String?, String, String, String)])
    func readers_resync(
        audience: [String], topic: String?, data: String, readers: String, strangers: String
    ) async throws {
        let log = try await Self.erased([Draft(audience: audience, topic: topic, data: data)])
        func replay(_ route: String) throws -> Int? {
            try log.replay(of: [route], by: [route, "everyone"], after: log.start, through: log.newest)?.count
        }
        #expect(try replay(readers) == nil)
        #expect(try replay(strangers) == 0)
        #expect(try log.following(log.start).events.allSatisfy(\.isErased))
        try log.prune(keeping: 0)
        #expect(try log.count(of: EventLog.routes) == 0)
    }

    /// No other user could receive an event for the person alone.
    @Test func eventOfThePersonAlone_concernsNobody() async throws {
        let log = try await Self.erased([Draft(audience: ["user:ada-q7"]), Draft(audience: ["user:u1"])])
        #expect(try log.count(of: EventLog.routes) == 1)
        let all: Set = ["everyone", "user:u1"]
        #expect(try log.replay(of: all.sorted(), by: all, after: log.start, through: log.newest)?.count == 1)
    }

    /// A stream that broke within the window of a change does not know that the query is stale. The change is erased.
    @Test func changeWithinAWindow_isMissed_onlyUntilItsEnd() async throws {
        let log = try LoggedTransactions(TestService.start(at: TestService.morning))
        try await log.publish([Draft(name: EventLog.change, audience: ["user:u1"], data: #"{"by":"ada-q7"}"#)])
        log.service.clock.advance(seconds: 5)
        try await log.publish([Draft(audience: ["user:u2"])])
        try log.erase(ID(Self.ada))
        func recent(within seconds: Int64) throws -> Int? {
            try log.service.app.store.read { db in
                try EventLog.recentChanges(
                    of: EventRoutes(keys: ["user:u1"]), in: "default", through: log.newest,
                    Lookback(age: .seconds(seconds), countMax: 100), in: db)?.count
            }
        }
        #expect(try recent(within: 6) == nil)
        #expect(try recent(within: 4) == 0)
    }
}
