import BellhopClient
import Database
import TestSupport
import Testing
import Values

@testable import Service

/// Every rule by age and every stored time, while the clock of the machine is set back and forth: nothing is deleted
/// early, dated wrongly, or kept for ever, and no repeated request runs again.
@Suite(.timed) struct ClockStepsTests {
    private static let why = Unscoped.audit("a test inserts and counts rows")
    private static let day: Int64 = 86_400

    /// A rule that deletes rows because of their age.
    private struct Rule: Sendable {
        let table: String
        /// A condition on the rows that the rule deletes.
        var rows: SQL = "TRUE"
        /// Columns and values of a row that expires long after the longest step.
        var row: (@Sendable (_ now: Timestamp) -> [(String, SQL)])?
    }

    /// All rules. `deletionsByAge_areAllKnown` looks for others in the code.
    private static let rules = [
        Rule(table: "messages"), Rule(table: "notifications", rows: "removed_at IS NULL"),
        Rule(table: "notifications", rows: "removed_at IS NOT NULL AND title <> ''"),
        Rule(table: "bookings"), Rule(table: "booking_history"), Rule(table: "events"), Rule(table: "event_routes"),
        Rule(table: "idempotent_answers"), Rule(table: "audit", rows: "action <> 'retention'"),
        Rule(table: "user_requests"),
        Rule(table: "conversations"),
        Rule(
            table: "stream_tickets",
            row: { now in
                [
                    ("hash", "\([UInt8]([1]))"), ("user_id", "'ada'"), ("role", "'authenticated'"), ("is_service", "0"),
                    ("scope", "'[]'"), ("token_issued_at", "0"), ("token_expires_at", "0"), ("topics", "'[]'"),
                    ("expires_at", "\(now.adding(seconds: 7200))"),
                ]
            }),
        Rule(table: "revocations"),
        Rule(
            table: "backends",
            row: { [("user_id", "'reporter'"), ("kept_until", "\($0.adding(seconds: 7200))")] }),
        Rule(
            table: "presences",
            row: { now in
                [
                    ("user_id", "'ada'"), ("booking_id", "''"), ("shop_id", "'s1'"), ("source", "'code'"),
                    ("since", "\(now)"), ("expires_at", "\(now.adding(seconds: 7200))"),
                ]
            }),
        Rule(
            table: "presence_attempts",
            row: { now in
                [("user_id", "'ada'"), ("failures", "1"), ("since", "\(now.adding(seconds: 7200))")]
            }),
        Rule(table: "change_deliveries", row: { [("id", "'d1'"), ("created_at", "\($0)")] }),
        Rule(
            table: "erasures",
            row: { now in
                [
                    ("mark", "'m1'"), ("requested_at", "\(now)"), ("step", "''"), ("stage", "1"),
                    ("next_at", "\(now)"), ("done_at", "\(now)"),
                ]
            }),
        Rule(table: "outbox", rows: "state = 0", row: { outboxRow($0, state: 0) }),
        Rule(table: "outbox", rows: "state = 2", row: { outboxRow($0, state: 2) }),
    ]

    private static func outboxRow(_ now: Timestamp, state: Int) -> [(String, SQL)] {
        let dead: [(String, SQL)] = state == 2 ? [("settled_at", "\(now)"), ("reason", "'expired'")] : []
        return dead + [
            ("lane", "'push:x'"), ("route", "'apns'"), ("id", "''"), ("type", "'badge'"), ("subject", "''"),
            ("data", "''"), ("state", "\(state)"), ("version", "1"), ("created_at", "\(now)"),
            ("due_at", "\(now.adding(seconds: 7200))"), ("patient_until", "0"),
            ("gives_up_at", "\(now.adding(seconds: 14_400))"), ("attempts", "0"), ("lease", "0"),
        ]
    }

    // MARK: The world

    private struct World {
        let service: TestService
        let conversation: String
        /// The correct time.
        var truth: Timestamp { service.clock.now.adding(seconds: -ahead) }
        private var ahead: Int64 = 0

        init() async throws {
            service = try TestService.start(
                [
                    "messagesKeptDays": "30", "notificationsKeptDays": "30", "bookingsKeptDays": "30",
                    "eventsKeptHours": "24",
                ], at: TestService.morning)
            service.clock.advance(seconds: 7200)
            conversation = try await service.converse("ada", "ben")
            try await prepare()
        }

        mutating func step(_ seconds: Int64) {
            service.clock.step(seconds: seconds)
            ahead += seconds
        }

        private func prepare() async throws {
            let backend = TestService.Identity.service()
            let shop = try await service.call("PUT", "/v1/shops/s1", as: backend, ["name": "Shop", "timeZone": "UTC"])
            #expect(shop.isSuccess, "\(shop.text)")
            for number in [0, 1] {
                let start = truth.adding(seconds: 600 + Int64(number) * 3600).rfc3339
                let booked = try await service.call(
                    "POST", "/v1/bookings", as: backend,
                    [
                        "shopId": "s1", "service": "cut", "scheduledStart": .string(start), "durationMinutes": 30,
                        "tier": "standard", "userId": "ada",
                    ])
                #expect(booked.isSuccess, "\(booked.text)")
            }
            let asked = try await service.client(as: backend).createRequest(
                .init(kind: .booking, toUserId: "ben", fromUserId: "ada"))
            let answered = try await service.client(as: backend).answerRequest(
                id: asked.value.request.id, .init(status: .accepted))
            #expect(answered.status == 200)
            let left = try await service.converse("cid", "dan")
            for user in ["cid", "dan"] {
                let answer = try await service.call(
                    "DELETE", "/v1/conversations/\(left)/members/\(user)", as: .service())
                #expect(answer.isSuccess, "\(answer.text)")
            }
            try await service.app.store.write { [truth] db in
                for rule in ClockStepsTests.rules {
                    guard let row = rule.row?(truth) else { continue }
                    let columns = SQL.joined(row.map { SQL(unchecked: $0.0) }, separator: ", ")
                    try db.run(
                        """
                        INSERT INTO \(table(rule), unscoped: ClockStepsTests.why) (tenant, \(columns))
                        VALUES ('default', \(SQL.joined(row.map(\.1), separator: ", ")))
                        """)
                }
            }
            try await write("before")
        }

        /// Does something that each stored time dates.
        func write(_ name: String) async throws {
            try await service.send(name, to: conversation, as: "ada")
            for kind in ["kept", "removed"] { try await service.publish("\(kind)-\(name)", to: "ada") }
            let removed = try #require(try await service.all(of: "ada").first)
            let answer = try await service.call("DELETE", "/v1/notifications/\(removed.id)", as: .user("ada"))
            #expect(answer.isSuccess, "\(answer.text)")
            #expect(try await repeated(name) == false)
        }

        /// Sends a request with a key, and returns whether its answer is a stored one.
        func repeated(_ name: String) async throws -> Bool {
            let answer = try await service.call(
                "POST", "/v1/revocations", as: .service(),
                ["userId": .string("gone-\(name)"), "issuedBefore": "2026-01-01T00:00:00Z"],
                headers: ["Idempotency-Key": name])
            #expect(answer.status == 201, "\(answer.text)")
            return answer.headers["idempotency-replayed"] == "true"
        }

        func counts() throws -> [Int] {
            try service.app.store.read { db in
                try ClockStepsTests.rules.map { rule in
                    try db.integer(
                        """
                        SELECT count(*) FROM \(table(rule), unscoped: ClockStepsTests.why) WHERE \(rule.rows)
                        """) ?? -1
                }
            }
        }

        private func table(_ rule: Rule) -> Table { Catalog.tables.first { $0.name == rule.table }! }

        /// Expects that every time that was stored since a moment is correct.
        func expectDates(since start: Timestamp, allowing slack: Int64) throws {
            let columns = [
                ("messages", "sent_at"), ("notifications", "created_at"), ("notifications", "removed_at"),
                ("events", "created_at"), ("idempotent_answers", "created_at"), ("audit", "noted_at"),
                ("revocations", "created_at"), ("booking_history", "at"),
                ("user_requests", "answered_at"), ("conversations", "abandoned_at"),
            ]
            let last = truth.adding(seconds: slack)
            for (name, column) in columns {
                // Calls are counted by the minute, and their entry has the beginning of the minute.
                let first = start.adding(seconds: -slack - (name == "audit" ? 60 : 0))
                let (wrong, newest) = try service.app.store.read { db in
                    let table = Catalog.tables.first { $0.name == name }!
                    let column = SQL(unchecked: column)
                    return (
                        try db.integer(
                            """
                            SELECT count(*) FROM \(table, unscoped: ClockStepsTests.why)
                            WHERE \(column) < \(first) OR \(column) > \(last)
                            """) ?? -1,
                        try db.integer("SELECT max(\(column)) FROM \(table, unscoped: ClockStepsTests.why)") ?? 0
                    )
                }
                let latest = Timestamp(microseconds: Int64(newest)).rfc3339
                #expect(wrong == 0, "\(name).\(column): \(wrong) are wrong, the latest is \(latest)")
            }
        }
    }

    // MARK: The table

    struct Case: Sendable, CustomTestStringConvertible {
        let step: Int64
        let lasts: Int64
        let isRestarted: Bool

        var testDescription: String { "\(step) s for \(lasts) s\(isRestarted ? ", with a restart" : "")" }
    }

    private static let cases = [1, 3600, 95_040, 40 * day, 400 * day].flatMap { step in
        [step, -step].flatMap { step in
            [1, 60, 3600].flatMap { lasts in
                [false, true].map { Case(step: step, lasts: lasts, isRestarted: $0) }
            }
        }
    }

    @Test(arguments: cases.filter { $0.lasts != 60 || effort(quick: 0, full: 1, long: 1) > 0 })
    func step_deletesAndDatesNothingWrongly(_ step: Case) async throws {
        var world = try await World()
        let service = world.service
        let start = world.truth.adding(seconds: -1)
        var expected = try world.counts()
        #expect(!expected.contains(0), "\(expected)")
        func expectNothingDeleted(_ moment: String) async throws {
            try await service.forget()
            let counts = try world.counts()
            for (rule, (now, before)) in zip(Self.rules, zip(counts, expected)) {
                #expect(now >= before, "\(moment): \(before - now) rows of \(rule.table) are gone")
            }
            expected = counts
        }
        world.step(step.step)
        try await expectNothingDeleted("at the step")
        #expect(try await world.repeated("before"))
        try await world.write("during")
        if step.isRestarted { try await service.restart() }
        try await expectNothingDeleted("during the step")
        service.clock.advance(seconds: step.lasts)
        try await expectNothingDeleted("at the end of the step")
        for name in ["before", "during"] { #expect(try await world.repeated(name)) }
        world.step(-step.step)
        try await expectNothingDeleted("after the step")
        try await world.write("after")
        for name in ["before", "during", "after"] { #expect(try await world.repeated(name)) }
        // A step of a second passes for a correction.
        try world.expectDates(since: start, allowing: abs(step.step) == 1 ? 2 : 1)
        try service.expectExactCounts()
        // Nothing is kept for ever: half of the rows of a day are gone after a day and a half, all after their years.
        service.clock.advance(seconds: Self.day * 3 / 2)
        try await service.forget()
        #expect(try await world.repeated("before") == false)
        // Data that is removed by age leaves events, and rows that recognize repeated events for 30 days.
        for days in [400, 40] as [Int64] {
            service.clock.advance(seconds: Self.day * days)
            for _ in 0..<3 { try await service.forget() }
        }
        for (rule, count) in zip(Self.rules, try world.counts()) {
            // One conversation has members.
            #expect(count == (rule.table == "conversations" ? 1 : 0), "\(rule.table) is stuck")
        }
    }
}
