import BellhopClient
import Database
import Realtime
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Attack: a request that costs the service more than its sender. Harm: other users wait.
@Suite(.timed) struct StreamCostTests {
    /// Without a token, the topics are not parsed, however many there are.
    @Test func topics_areReadOnlyOfAKnownCaller() async throws {
        let service = try TestService.start()
        let path = "/v1/stream?topics=" + (0..<2000).map { "a\($0)" }.joined(separator: ",")
        let anyone = try await service.call("GET", path)
        #expect(anyone.status == 401)
        let known = try await service.call("GET", path, as: .user("u1"))
        #expect(known.status == 422)
        #expect(known.json["errors"].array?.count == 20)
    }

    @Test func topicParsing_stopsAtTheMistakeLimit() throws {
        var count = 0
        let texts = sequence(state: 0) { (state: inout Int) -> String? in
            count += 1
            state += 1
            return state > 6000 ? nil : "a\(state)"
        }
        #expect(throws: Failure.self) { try StreamTopics.parse(texts, kinds: []) { _ in "?topics" } }
        #expect(count == 20)
    }

    // MARK: Filters

    private static let notes = """
        version: 1
        tables:
          - table: notes
            primaryKey: [id]
            tenant: {constant: default}
            audience: {select: [everyone]}
        """

    /// Attack: a user sends the longest filters as often as requests are allowed. Harm: parsing them occupies a core.
    @Test func longFilters_countAsFurtherRequests() async throws {
        let directory = try TemporaryDirectory()
        let service = try TestService.start([
            "tables": directory.write(Self.notes, to: "tables.yaml"), "rateLimitUser": "20",
        ])
        let stream = try await service.listen(as: .user("ada"))
        func put(_ filters: Int) async throws -> ServiceAnswer {
            let values = (0..<20).map { "\"\($0)" + String(repeating: "x", count: 1000) + "\"" }.joined(separator: ",")
            let tables = (0..<filters).map { number -> JSON in
                ["id": .string("s\(number)"), "table": "notes", "filter": .string("id=in.(\(values))")]
            }
            let id = try #require(stream.ready.json["streamId"].string)
            return try await service.call(
                "PUT", "/v1/streams/\(id)/subscriptions", as: .user("ada"), ["tables": .array(tables)])
        }
        // 20 KB each: one counts as two more requests.
        let one = try await put(1)
        #expect(one.status == 200 && one.headers["ratelimit"]?.contains("r=18") == true, "\(one.text)")
        let many = try await put(10)
        #expect(many.status == 429 && many.headers["retry-after"] != nil, "\(many.text)")
        #expect(many.json["detail"].string?.contains("count as 24 additional requests") == true, "\(many.text)")
        // The first request of the next minute may exceed the limit; the second one is refused.
        service.clock.advance(seconds: 60)
        #expect(try await put(10).status == 200)
        #expect(try await put(1).status == 429)
        service.clock.advance(seconds: 60)
        #expect(try await put(1).status == 200)
        let config = try await service.anyone.getConfig().value
        #expect(config.subscriptions.numberBytesMax == FilterLimits.numberBytesMax)
    }

    /// Attack: a user sends the largest body that the service reads, full of small objects. Harm: parsing it costs fifty
    /// times as much as parsing as many bytes of filters.
    @Test func bodyOfManyValues_isRefused() async throws {
        let service = try TestService.start()
        let stream = try await service.listen(as: .user("ada"))
        let id = try #require(stream.ready.json["streamId"].string)
        func put(_ objects: Int) async throws -> ServiceAnswer {
            let body = "{\"tables\":[" + Array(repeating: "{}", count: objects).joined(separator: ",") + "]}"
            return try await service.call("PUT", "/v1/streams/\(id)/subscriptions", as: .user("ada"), body)
        }
        // The body itself, and the array, are values too.
        #expect(try await put(StreamLimits.subscriptionsValuesMax - 2).mistakes == "422 /tables")
        let refused = try await put(StreamLimits.subscriptionsValuesMax - 1)
        #expect(refused.refusal == "413 request.too_large", "\(refused.text)")
    }

    // MARK: Resumption by many keys

    private static func resume(
        _ keys: [String], in log: LoggedTransactions, through: Int64, limit: Int = 1000
    ) throws -> (changes: [Int64]?, replayed: [StreamEvent]?, statements: Int) {
        let routes = EventRoutes(keys: Set(keys))
        return try log.service.app.store.read { db in
            let before = db.statementCount
            let changes = try EventLog.recentChanges(
                of: routes, in: "default", through: through, Lookback(age: .seconds(10), countMax: limit), in: db)
            let replayed = try EventLog.replay(
                LogSpan(after: through, through: log.newest), of: routes,
                as: Scope(tenant: "default", keys: Set(keys)), limit: limit, in: db)
            return (changes?.map(\.sequence), replayed, db.statementCount - before)
        }
    }

    /// Writes changes and other events for one to three of 300 keys each, some before the replayed window and some in
    /// it.
    private static func logOfManyKeys(
        _ service: TestService, _ keys: [String], seed: UInt64
    ) async throws -> LoggedTransactions {
        let log = try LoggedTransactions(service)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<60 {
            let drafts = (0..<Int.random(in: 1...30, using: &random)).map { _ in
                let audience = Set((0..<3).compactMap { _ in keys.randomElement(using: &random) }).sorted()
                let isChange = Bool.random(using: &random)
                return LoggedTransactions.Draft(name: isChange ? "table:change" : "test:event", audience: audience)
            }
            try await log.publish(drafts)
            service.clock.advance(seconds: Int64.random(in: 0...2, using: &random))
        }
        return log
    }

    /// Keys in groups find the same events as each key alone, on both stores. So do so many keys that all events are read.
    @Test(arguments: [false, true]) func resumptionByManyKeys_findsWhatEachKeyFindsAlone(onServer: Bool) async throws {
        let service = try onServer ? TestService.startReplicas().0 : TestService.start()
        let keys = (0..<300).map { "room:\($0)" }
        let log = try await Self.logOfManyKeys(service, keys, seed: 7)
        let others = (0..<5000).map { "hall:\($0)" }
        for through in stride(from: log.start, through: log.newest, by: 311) {
            let together = try Self.resume(keys, in: log, through: through)
            let among = try Self.resume(keys + others, in: log, through: through)
            #expect(among.changes == together.changes && among.replayed == together.replayed, "from \(through)")
            let alone = try keys.map { try Self.resume([$0], in: log, through: through) }
            #expect(Set(together.changes ?? []) == Set(alone.flatMap { $0.changes ?? [] }))
            #expect(together.changes == together.changes?.sorted())
            let expected = log.expected(of: keys, by: Set(keys), after: through, through: log.newest)
            // An event for several keys of a group counts once.
            #expect(together.replayed == expected, "behind \(through) of \(log.newest)")
        }
        let all = try Self.resume(keys, in: log, through: log.newest)
        let count = try #require(all.changes?.count)
        #expect(count > 10)
        #expect(try Self.resume(keys, in: log, through: log.newest, limit: count).changes == nil)
        #expect(try Self.resume(keys, in: log, through: log.newest, limit: count + 1).changes == all.changes)
        #expect(try Self.resume(keys + others, in: log, through: log.newest, limit: count).changes == nil)
    }

    /// A stream compares topics by their bytes: `é` composed and decomposed are two topics.
    @Test(arguments: [0, 5000]) func replay_comparesTopicsByTheirBytes(otherKeys: Int) async throws {
        let log = try LoggedTransactions(TestService.start())
        let topics = ["queue:\u{E9}", "queue:e\u{301}"]
        try await log.publish(topics.map { LoggedTransactions.Draft(audience: ["user:u1"], topic: $0) })
        let keys: Set = ["user:u1"]
        let routes = (0..<otherKeys).map { "hall:\($0)" } + ["user:u1"]
        func replayed(_ topics: [String]) throws -> [String?]? {
            let found = try log.replay(
                of: routes + topics.map { "#" + $0 }, by: keys, after: log.start, through: log.newest)
            return found?.map(\.topic)
        }
        for topic in topics {
            let found = try #require(try replayed([topic]))
            #expect(found.count == 1 && found.first??.hasBytes(of: topic) == true)
        }
        #expect(try replayed(topics)?.count == 2)
    }

    /// Attack: a stream of a user with 10,000 memberships resumes again and again. Harm: each resumption
    /// looks for 10,000 keys.
    @Test func resumptionByTenThousandKeys_readsTheFewEventsSince() async throws {
        let service = try TestService.start()
        let keys = (0..<10_000).map { "room:\($0)" }
        let log = try await Self.logOfManyKeys(service, keys, seed: 8)
        for through in [log.start, log.newest] {
            let few = try Self.resume(Array(keys.prefix(10)), in: log, through: through)
            let many = try Self.resume(keys, in: log, through: through)
            #expect(many.statements <= few.statements, "\(many.statements) statements, \(few.statements) with ten keys")
            #expect(many.changes?.isEmpty == (through == log.start))
        }
    }

    /// After many events, keys are looked for in groups, not one by one.
    @Test func resumptionByManyKeys_looksForThemInGroups() async throws {
        let service = try TestService.start()
        let keys = (0..<1000).map { "room:\($0)" }
        let log = try await Self.logOfManyKeys(service, keys, seed: 9)
        let many = try Self.resume(keys, in: log, through: log.start)
        #expect(log.newest - log.start > 500)
        #expect(many.statements < 100, "\(many.statements) statements")
    }
}
