import BellhopClient
import Database
import Realtime
import TestSupport
import Testing
import Values

@testable import Service

/// The events of one transaction and audience form one record of the log. Each event is read as if it had a row of
/// its own.
@Suite(.timed) struct EventRecordsTests {
    private typealias Draft = LoggedTransactions.Draft
    private static let both: Set = ["user:u1", "user:u2"]
    private static let (u1, u2) = (["user:u1"], ["user:u2"])

    /// Alternating events of two users, one event for both, and one of a topic.
    private static let interleaved = [
        Draft(audience: u1, data: #"{"n":1}"#), Draft(audience: u2, data: #"{"n":2}"#),
        Draft(audience: u1 + u2, data: #"{"n":3}"#), Draft(audience: u1, topic: "queue:s1", data: #"{"n":4}"#),
        Draft(audience: u1, collapse: "badges:u1", data: #"{"n":5}"#),
        Draft(audience: u2, collapse: "badges:u2", data: #"{"n":6}"#),
        Draft(audience: u1, topic: "queue:s1", data: #"{"n":7}"#),
    ]

    // MARK: Numbers and order

    @Test func eventsOfOneAudience_areOneRow_withTheirOwnNumbers() async throws {
        let log = try LoggedTransactions(TestService.start())
        try await log.publish(Self.interleaved)
        #expect(try log.count(of: EventLog.events) == 4)
        #expect(try log.count(of: EventLog.routes) == 5)
        #expect(try log.following(log.start).events == log.events)
        for (routes, keys) in [(Self.u1, Set(Self.u1)), (Self.u2, Set(Self.u2)), (["#queue:s1"] + Self.u1, Self.both)] {
            for after in log.start...log.newest {
                for through in after...log.newest {
                    let found = try log.replay(of: routes, by: keys, after: after, through: through)
                    #expect(found == log.expected(of: routes, by: keys, after: after, through: through))
                }
            }
        }
        for event in log.events {
            #expect(try log.service.app.store.read { try EventLog.event(event.sequence, in: $0) } == event)
            // A replica uses this to detect that the log was rolled back, wherever its records begin and end.
            let seen = try log.service.app.store.read { try EventLog.state(lookingAt: event.sequence, in: $0) }
            #expect(seen.content?.event == event && seen.newest == log.newest)
        }
        #expect(
            try log.service.app.store.read { try EventLog.state(lookingAt: log.newest + 1, in: $0) }.content?.event
                == nil)
    }

    /// Random transactions, read between random positions, in pages of any size, and while pruning removes the
    /// oldest.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func anyTransactions_areReadAsPublished(seed: UInt64) async throws {
        let log = try LoggedTransactions(TestService.start())
        var random = SeededGenerator(seed: seed)
        for _ in 0..<10 { try await log.publishAny(12, random: &random) }
        #expect(try log.count(of: EventLog.events) < log.events.count)
        var oldest = log.start + 1
        while oldest <= log.newest {
            #expect(try log.service.app.store.read { try EventLog.oldestSequence(in: $0) } == oldest)
            #expect(try log.following(oldest - 1).events == log.events.filter { $0.sequence >= oldest })
            for _ in 0..<20 {
                let after = Int64.random(in: oldest - 1...log.newest, using: &random)
                let through = Int64.random(in: after...log.newest, using: &random)
                let routes = ["user:u1", "user:u2", "#queue:s1", "#queue:s2"].filter { _ in
                    Bool.random(using: &random)
                }
                let keys: Set = Bool.random(using: &random) ? Self.both : ["user:u1"]
                let expected = log.expected(of: routes, by: keys, after: after, through: through, from: oldest)
                #expect(try log.replay(of: routes, by: keys, after: after, through: through) == expected)
            }
            let kept = Int(log.newest - oldest)
            try log.prune(keeping: Int.random(in: max(0, kept - 12)...kept, using: &random))
            oldest = try log.service.app.store.read { try EventLog.oldestSequence(in: $0) }
            // Pruning removed exactly the rows of the events before `oldest`.
            #expect(try log.service.app.store.read { try EventLog.event(oldest - 1, in: $0) } == nil)
        }
        for table in [EventLog.events, EventLog.routes, EventLog.shared.table] {
            #expect(try log.count(of: table) == 0)
        }
    }

    // MARK: Limits and pages

    @Test func limits_countEvents_andNotRecords() async throws {
        let log = try LoggedTransactions(TestService.start())
        try await log.publish((0..<6).map { _ in Draft(audience: Self.u1) })
        func count(after: Int64 = 0, through: Int64 = 6, limit: Int) throws -> Int? {
            try log.replay(
                of: Self.u1, by: Self.both, after: log.start + after, through: log.start + through, limit: limit)?
                .count
        }
        #expect(try count(limit: 6) == 6)
        #expect(try count(limit: 5) == nil)
        #expect(try count(after: 2, through: 4, limit: 2) == 2)
        #expect(try count(after: 2, through: 5, limit: 2) == nil)
    }

    /// A replay beyond the limit is refused even if the reader may not see some of the events. Otherwise it would
    /// miss the events after the limit.
    @Test func invisibleEvents_countTowardsTheReplayLimit() async throws {
        let log = try LoggedTransactions(TestService.start())
        for user in ["u2", "u2", "u2", "u1"] {
            try await log.publish([Draft(audience: ["user:\(user)"], topic: "queue:s1")])
        }
        func replay(_ limit: Int) throws -> [StreamEvent]? {
            try log.replay(
                of: ["#queue:s1"], by: ["user:u1"], after: log.start, through: log.newest, limit: limit)
        }
        #expect(try replay(3) == nil)
        #expect(try replay(4) == [log.events[3]])
    }

    /// Shaped like a message to the largest conversation: each member has one event, and the members' counts follow
    /// after the events of all members.
    @Test func pages_endWithinRecords_andLoseNothing() async throws {
        let log = try LoggedTransactions(TestService.start())
        let (users, transactions) = (256, 3)
        for _ in 0..<transactions {
            try await log.publish((0..<2 * users).map { Draft(audience: ["user:\($0 % users)"], data: "\($0)") })
        }
        #expect(try log.count(of: EventLog.events) == users * transactions)
        for limit in [1, 100, 300] {
            var read: [StreamEvent] = []
            while true {
                let page = try log.following(read.last?.sequence ?? log.start, limit: limit)
                read += page.events
                if page.isAll { break }
                try #require(page.events.count >= limit)
            }
            #expect(read == log.events, "\(limit)")
        }
    }

    /// The bound on a record's span also bounds how far a reader must look past its end position.
    @Test func records_areBoundedInSpan() async throws {
        let log = try LoggedTransactions(TestService.start())
        for between in [Limits.recordSpanMax - 2, Limits.recordSpanMax - 1] {
            let others = (0..<between).map { Draft(audience: ["user:\($0)x"]) }
            let before = try log.count(of: EventLog.events)
            try await log.publish([Draft(audience: Self.u1)] + others + [Draft(audience: Self.u1)])
            let records = try log.count(of: EventLog.events) - before - between
            #expect(records == (between < Limits.recordSpanMax - 1 ? 1 : 2))
        }
        for after in [log.start, log.newest - 2] {
            let found = try log.replay(of: Self.u1, by: Self.both, after: after, through: log.newest)
            #expect(found == log.expected(of: Self.u1, by: Self.both, after: after, through: log.newest))
        }
        let first = log.start + 1
        #expect(try log.replay(of: Self.u1, by: Self.both, after: first - 1, through: first) == [log.events[0]])
    }

    // MARK: Stored columns

    /// Rows from before the introduction of records have neither column.
    @Test func rowsFromBefore_areRecordsOfOneEvent() async throws {
        let log = try LoggedTransactions(TestService.start())
        for draft in Self.interleaved { try await log.publish([draft]) }
        let looking = Unscoped.audit("a test reads rows")
        let others: SQL = """
            SELECT count(*) FROM \(EventLog.events, unscoped: looking) WHERE earlier IS NOT NULL OR step IS NOT NULL
            """
        #expect(try log.service.app.store.read { try $0.integer(others) } == 0)
        try await log.publish(Self.interleaved)
        #expect(try log.service.app.store.read { try $0.integer(others) } ?? 0 > 0)
        for after in log.start...log.newest {
            let found = try log.replay(of: Self.u1, by: Self.both, after: after, through: log.newest)
            #expect(found == log.expected(of: Self.u1, by: Self.both, after: after, through: log.newest))
        }
    }

    /// A truncated column is an error and does not crash the process.
    @Test func brokenColumn_isAnError() throws {
        let column = Array(#"+17 0 test:event 7 {"n":1}-18 5 test:other 2 {}+"#.utf8)
        var reader = EarlierEvents(column)
        var names: [String] = []
        while let event = try reader.next() { names.append("\(event.sequence) \(event.name) \(event.isSharing)") }
        #expect(names == ["17 test:event true", "18 test:other false"])
        #expect(reader.isLastShared)
        for end in 2..<column.count - 1 where end != 27 {
            #expect(throws: DatabaseError.self, "\(end)") {
                var reader = EarlierEvents(Array(column[..<end]))
                while try reader.next() != nil {}
            }
        }
    }

    // MARK: Streams

    /// The client has received the notification, but not the count that its transaction published with it.
    @Test func resumeWithinARecord_deliversTheRest() async throws {
        let service = try TestService.start()
        let live = try await service.listen(as: .user("u1"))
        #expect(try await service.publish(NotificationsTests.event("e1", .visitCreated, to: "u1")).status == 201)
        let created = try await live.next("notification:created")
        let counted = try await live.next("badges:update")
        #expect(try service.app.store.read { try $0.integer("SELECT count(*) FROM \(EventLog.allEvents)") } == 1)
        let numbers = service.sequences([created, counted])
        #expect(numbers.count == 2 && numbers[1] == numbers[0] + 1)
        let whole = try await service.listen(as: .user("u1"), lastEventID: live.ready.id)
        #expect(try await whole.next() == created)
        #expect(try await whole.next() == counted)
        let rest = try await service.listen(as: .user("u1"), lastEventID: created.id)
        #expect(rest.ready.json["replayed"].int == 1)
        #expect(try await rest.next() == counted)
        let nothing = try await service.listen(as: .user("u1"), lastEventID: counted.id)
        #expect(nothing.ready.json["replayed"].int == 0)
    }

    /// The recent changes before a position are found even if the position lies inside a record.
    @Test func changesBeforeARecord_areReadFromWithinIt() async throws {
        let school = try await School()
        try await school.send(School.attendance("a1", of: "s1", "late"))
        let log = try LoggedTransactions(school.service)
        try await log.publish((0..<3).map { _ in Draft(audience: Self.u1) })
        for number in log.start...log.newest {
            let recent = try school.service.app.store.read { db in
                try EventLog.recentChanges(
                    of: EventRoutes(keys: ["student:s1:parent"]), in: "A", through: number,
                    Lookback(age: .seconds(10), countMax: 10), in: db)
            }
            #expect(recent?.map(\.isChange) == [true], "\(number - log.start)")
        }
    }

    /// If a change lies behind more events than the lookup limit, the stream must fetch everything instead of
    /// silently missing the change.
    @Test(arguments: [8, 10]) func changesBehindManyOthers_areFoundOrReportedAsGap(others: Int) async throws {
        let school = try await School()
        try await school.send(School.attendance("a1", of: "s1", "late"))
        let log = try LoggedTransactions(school.service, tenant: "A")
        let route = "student:s1:parent"
        for _ in 0..<others { try await log.publish([Draft(audience: [route])]) }
        let recent = try school.service.app.store.read { db in
            try EventLog.recentChanges(
                of: EventRoutes(keys: [route]), in: "A", through: log.newest,
                Lookback(age: .seconds(10), countMax: 10), in: db)
        }
        #expect(recent?.map(\.isChange) == (others < 10 ? [true] : nil))
    }

    /// Each replica delivers the events that the other has written, in the order of their numbers.
    @Test func recordsOfAReplica_areDeliveredByTheOther_inTheirOrder() async throws {
        let (a, b) = try TestService.startReplicas()
        let streams = try await (b.listen(as: .user("u1")), b.listen(as: .user("u2")))
        let log = try LoggedTransactions(a)
        for _ in 0..<5 { try await log.publish(Self.interleaved) }
        for (stream, key) in [(streams.0, "user:u1"), (streams.1, "user:u2")] {
            let expected = log.expected(of: [key], by: [key], after: log.start, through: log.newest)
            var received: [ServerSentEvent] = []
            for _ in expected { received.append(try await stream.next("test:event")) }
            #expect(b.sequences(received) == expected.map(\.sequence))
            #expect(received.map { Array($0.data.utf8) } == expected.map(\.data))
        }
    }
}
