import BellhopClient
import Database
import Domain
import Logging
import TestSupport
import Testing
import Values

@testable import Service

/// The walk that hides and shows shares of the badges: in pieces, once for each user, beside all other writes, and
/// after a kill at any place.
@Suite(.timed) struct ShareWalkTests {
    static let tenants = ["default", "north", "south"]
    private static let why = Unscoped.audit("a test stores and counts rows of all users")

    /// Stores users in each tenant. A third has no open request, a third has one, and a third has two.
    private static func populate(_ service: TestService, usersOfTenant count: Int) async throws {
        try await service.restWalk()
        for tenant in tenants {
            let numbers: SQL = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))"
            try await service.app.store.write { db in
                for asker in 0...1 {
                    _ = try db.run(
                        """
                        INSERT INTO \(RequestsFeature.requests, unscoped: why)
                            (tenant, id, kind, from_user_id, to_user_id, status, created_at)
                        \(numbers) SELECT \(tenant), \("r\(asker)-") || i, 'friend', \("asker\(asker)"), 'u' || i, 'open', 0
                        FROM n WHERE i % 3 > \(asker)
                        """)
                }
                _ = try db.run(
                    """
                    INSERT INTO \(BadgeLedger.badges, unscoped: why)
                        (tenant, user_id, messages, requests, bell, version, updated_at)
                    \(numbers) SELECT \(tenant), 'u' || i, 0, i % 3, 0, 1, 0 FROM n
                    """)
            }
        }
    }

    private static func walk(_ hidden: BadgeShares, logger: Logger = .silent) -> ShareWalk {
        ShareWalk(hiding: hidden, logger: logger)
    }

    private static func events(_ service: TestService) throws -> Int {
        try service.app.store.read { db in
            try db.integer("SELECT count(*) FROM \(EventLog.events, unscoped: why) WHERE name = 'badges:update'") ?? 0
        }
    }

    /// Compares the stored shares with the rows of the features, by a statement that shares no code with the service.
    static func expectExactShares(_ service: TestService) throws {
        let wrong = try service.app.store.read { db in
            try db.rows(
                """
                SELECT * FROM (
                    SELECT b.tenant || '/' || b.user_id, b.messages, b.requests, b.bell,
                        (SELECT count(*) FROM \(ConversationsFeature.members, unscoped: why) AS p
                            JOIN \(ConversationsFeature.messages, unscoped: why) AS m
                                ON m.tenant = p.tenant AND m.conversation_id = p.conversation_id
                            WHERE p.tenant = b.tenant AND p.user_id = b.user_id AND m.sequence > p.position
                                AND m.sender_id <> p.user_id AND m.is_deleted = 0) AS m,
                        (SELECT count(*) FROM \(RequestsFeature.requests, unscoped: why) AS r
                            WHERE r.tenant = b.tenant AND r.to_user_id = b.user_id AND r.status = 'open'
                                AND r.seen_at IS NULL) AS r,
                        (SELECT count(*) FROM \(NotificationsFeature.notifications, unscoped: why) AS n
                            WHERE n.tenant = b.tenant AND n.user_id = b.user_id AND n.removed_at IS NULL
                                AND n.seen_at IS NULL AND n.category <> 'message' AND n.request_id IS NULL) AS n
                    FROM \(BadgeLedger.badges, unscoped: why) AS b) AS counted
                WHERE messages <> m OR requests <> r OR bell <> n
                """
            ) { row in "\(try row.text(0)) \(try (1...6).map { try row.integer($0) })" }
        }
        #expect(wrong == [])
    }

    // MARK: Pieces

    @Test func walk_changesEachUserOnce_inPieces() async throws {
        let service = try TestService.start(at: TestService.morning)
        try await Self.populate(service, usersOfTenant: 1200)
        let (logger, lines) = RecordedLog.logger()
        let walk = Self.walk(.requests, logger: logger)
        var (changed, continues) = ([0], true)
        while continues {
            continues = try walk.step(service.app.runner)
            let rows = try service.badgeRows()
            changed.append(rows.values.count { $0.hidden == 2 })
            // Every row is either as before or done.
            #expect(
                rows.values.allSatisfy { row in
                    row.version == (row.hidden == 2 && row.counts[1] > 0 ? 2 : 1)
                })
            try Self.expectExactShares(service)
        }
        #expect(changed.last == 3600)
        // 500, 500 and 200 of each tenant.
        let pieces = zip(changed, changed.dropFirst()).map { $1 - $0 }.filter { $0 > 0 }
        #expect(pieces == [500, 500, 200, 500, 500, 200, 500, 500, 200])
        #expect(try Self.events(service) == 2400)
        #expect(
            lines() == [
                "The badges of users are being changed to the features that are on. hidden=requests",
                "The badges of all users show the features that are on. changed=2400 users=3600",
            ])
        #expect(try service.audit() == [])
        let last = try #require(try service.badgeRows()["south/u2"])
        #expect(last == BadgeRow(counts: [0, 2, 0], version: 2, hidden: 2))
        let shown = try await service.client(as: .user("u2", tenant: "south")).getBadges().value
        #expect(shown.total == 0 && shown.version == 2)
    }

    /// A walk without differences writes nothing and logs nothing. The next one begins an hour later.
    @Test func walkWithoutDifferences_onlyReads_onceAnHour() async throws {
        let service = try TestService.start(at: TestService.morning)
        try await Self.populate(service, usersOfTenant: 1000)
        let (logger, lines) = RecordedLog.logger()
        let walk = Self.walk([], logger: logger)
        let before = try service.badgeRows()
        var steps = 1
        while try walk.step(service.app.runner) { steps += 1 }
        // 3,000 users are two reads, and a third one finds the end.
        #expect(steps == 3)
        #expect(try service.badgeRows() == before)
        #expect(try Self.events(service) == 0)
        #expect(lines() == [])
        service.clock.advance(seconds: Int64(ShareWalk.pauseSeconds) - 1)
        #expect(try walk.step(service.app.runner) == false)
        // What another replica has written meanwhile is found by the next walk.
        try await service.app.store.write { db in
            _ = try db.run("UPDATE \(BadgeLedger.badges, unscoped: Self.why) SET hidden = 2 WHERE user_id = 'u7'")
        }
        service.clock.advance(seconds: 1)
        while try walk.step(service.app.runner) {}
        let repaired = Self.tenants.map { ("\($0)/u7", BadgeRow(counts: [0, 1, 0], version: 2, hidden: 0)) }
        #expect(try service.badgeRows() == before.merging(repaired) { $1 })
        #expect(lines().count == 2)
    }

    // MARK: Kills

    /// The service walks by itself at its start, some pieces at a time. It ends after the first turn, and the next one
    /// continues.
    @Test func service_continuesAWalk_afterARestart() async throws {
        let service = try TestService.start(at: TestService.morning)
        try await Self.populate(service, usersOfTenant: 2500)
        func count() throws -> Int { try service.badgeRows().values.count { $0.hidden == 2 } }
        try await service.restart(hiding: .requests)
        // The clock stands still, so the second turn does not begin.
        let first = ShareWalk.stepsAtOnceMax * ShareWalk.usersAtOnceMax
        try await eventually("the first turn ends") { try count() == first }
        #expect(try service.audit() == [])
        try await service.restart()
        try await eventually("the next service continues") { try count() > first }
        #expect(try service.audit() == [])
        try await service.expectWalk(to: 2)
        let rows = try service.badgeRows().values
        #expect(rows.allSatisfy { $0.version == ($0.counts[1] > 0 ? 2 : 1) })
        #expect(try Self.events(service) == rows.count { $0.counts[1] > 0 })
        #expect(try service.audit() == [])
    }

    /// A transaction that fails changes nothing, and the walk repeats the piece.
    @Test func failedPiece_isRepeated() async throws {
        let service = try TestService.start(at: TestService.morning)
        try await Self.populate(service, usersOfTenant: 10)
        let why = Self.why
        // No version may follow this one.
        try await service.app.store.write { db in
            _ = try db.run("UPDATE \(BadgeLedger.badges, unscoped: why) SET version = \(Int.max) WHERE user_id = 'u5'")
        }
        let walk = Self.walk(.requests)
        #expect(throws: DatabaseError.self) { try walk.step(service.app.runner) }
        #expect(try service.badgeRows().values.allSatisfy { $0.hidden == 0 })
        try await service.app.store.write { db in
            _ = try db.run("UPDATE \(BadgeLedger.badges, unscoped: why) SET version = 8 WHERE user_id = 'u5'")
        }
        while try walk.step(service.app.runner) {}
        #expect(try service.badgeRows().values.allSatisfy { $0.hidden == 2 })
        #expect(try service.badgeRows()["default/u5"]?.version == 9)
    }

    // MARK: Other writes

    /// Users write, and read on two devices, while shares are hidden and shown again.
    @Test(arguments: 1...UInt64(effort(quick: 1, full: 4, long: 40)))
    func walks_besideOtherWrites_loseNothing(_ seed: UInt64) async throws {
        let service = try TestService.start(at: TestService.morning)
        let users = (0..<8).map { "w\($0)" }
        let streams = try await concurrently(users) { try await service.listen(as: .user($0)) }
        let members = Bellhop.CreateConversationBody(memberIds: Array(users.dropFirst()))
        let chat = try await service.client(users[0]).createConversation(members).value.id
        let walks = Task.detached {
            var random = SeededGenerator(seed: seed)
            while !Task.isCancelled {
                try await service.walk(hiding: BadgeShares(rawValue: Int.random(in: 0..<8, using: &random)))
                await Task.yield()
            }
        }
        try await concurrently(users.indices) { number in
            var random = SeededGenerator(seed: seed &* 100 &+ UInt64(number))
            for step in 0..<effort(quick: 25, full: 80, long: 80) {
                let user = users[number]
                switch Int.random(in: 0..<4, using: &random) {
                case 0: try await service.send("m\(step)", to: chat, as: user)
                case 1:
                    try await service.publish("\(user)-\(step)", to: users.randomElement(using: &random)!)
                case 2:
                    let draft = Bellhop.CreateRequestBody(
                        kind: .friend, toUserId: users[(number + 1) % 8], aboutId: "\(step)")
                    _ = try await service.ask(draft, as: user)
                default:
                    if let id = try await service.all(of: user).last?.id {
                        try await service.client(user).changeNotification(id: id, .init(seen: true))
                    }
                    let last = try await service.client(user).getConversation(id: chat).value.lastSequence
                    if last > 0 { _ = try await service.read(last, of: chat, as: user) }
                }
            }
        }
        walks.cancel()
        _ = await walks.result
        try await service.walk(hiding: .requests)
        try Self.expectExactShares(service)
        #expect(try service.audit() == [], "seed \(seed)")
        for (user, stream) in zip(users, streams) {
            let got = try await service.call("GET", "/v1/badges", as: .user(user)).json
            let row = try #require(try service.badgeRows()["default/\(user)"])
            #expect([got["messages"].int, got["requests"].int, got["bell"].int] == [row.counts[0], 0, row.counts[2]])
            var update = stream.received.last { $0.name == "badges:update" }?.json
            while update?["version"] != got["version"] { update = try await stream.next("badges:update").json }
            #expect(update == got, "seed \(seed)")
            let versions = stream.received.filter { $0.name == "badges:update" }.compactMap { $0.json["version"].int }
            #expect(zip(versions, versions.dropFirst()).allSatisfy { $0 < $1 }, "seed \(seed): \(versions)")
        }
    }

    /// Two replicas walk at the same time. Each user gets one version and one event.
    @Test func replicas_doNothingTwice() async throws {
        let (a, b) = try TestService.startReplicas()
        try await b.restWalk()
        try await Self.populate(a, usersOfTenant: 1000)
        try await concurrently([a, b]) { try await $0.walk(hiding: .requests) }
        let rows = try b.badgeRows().values
        #expect(rows.count == 3000 && rows.allSatisfy { $0.hidden == 2 })
        #expect(rows.allSatisfy { $0.version == ($0.counts[1] > 0 ? 2 : 1) })
        #expect(try Self.events(a) == rows.count { $0.counts[1] > 0 })
        try Self.expectExactShares(a)
    }
}
