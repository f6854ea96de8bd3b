import Database
import TestSupport
import Testing
import Values

@testable import Service

/// What the sender's looks find.
@Suite(.timed) struct OutboxLooksTests {
    private static let test = Unscoped.audit("a test")

    private static func add(
        _ lane: String, dueAt: Timestamp, patientUntil: Timestamp, in db: DatabaseConnection
    ) throws {
        try db.run(
            """
            INSERT INTO \(Outbox.messages, unscoped: test) (tenant, lane, route, id, user_id, device_id, type, subject, data,
                state, version, created_at, due_at, patient_until, gives_up_at, attempts, lease)
            VALUES ('', \(lane), 'apns', '', 'ada', 'd', 'test', 'test', '', 0, 1, 0, \(dueAt), \(patientUntil), \(dueAt), 0, 0)
            """)
        try db.run(
            """
            INSERT INTO \(Outbox.lanes, unscoped: test)
                (tenant, lane, route, user_id, next_at, waits_from, lease, failures)
            VALUES ('', \(lane), 'apns', 'ada', \(dueAt), 0, 0, 0)
            """)
    }

    /// The plans of the service's own login, whose statements row-level security changes.
    @Test func looks_readNoWholeTable() async throws {
        let service = try TestService.start()
        let statements = [
            Outbox.look("l.route = \("apns") AND l.next_at <= \(9)", limit: 2),
            Outbox.look("l.route = \("apns") AND l.next_at <= \(9)", latestFirst: true, limit: 2),
            Outbox.laneHeads("l.id IN (\(1), \(2))"),
        ]
        for statement in statements {
            let plan = try service.app.store.read { try $0.queryPlan(statement) }.joined(separator: "\n")
            #expect(plan.contains("outbox_order") && !plan.contains("SCAN") && !plan.contains("Seq Scan"), "\(plan)")
        }
    }

    /// A full look of lanes with other messages, all of one time, stands before an early one.
    @Test func earlyMessages_areFound_behindMoreLanesThanOneLookReads() async throws {
        let service = try TestService.start()
        let now = service.clock.now
        let (soon, until) = (now.adding(seconds: 1), now.adding(seconds: OutboxLimits.presenceSeconds))
        try await service.app.store.write { db in
            for number in 0..<OutboxLimits.rowsAtOnceMax + 10 {
                try Self.add("push:\(number)", dueAt: soon, patientUntil: soon, in: db)
            }
            try Self.add("push:early", dueAt: soon, patientUntil: now.adding(seconds: 10), in: db)
        }
        var place: Outbox.Place? = Outbox.Place(nextAt: now)
        var (found, looks) = ([Outbox.Due](), 0)
        while let from = place {
            let (lanes, next) = try service.app.store.read {
                try Outbox.early("apns", after: from, until: until, in: $0)
            }
            (found, place, looks) = (found + lanes, next, looks + 1)
        }
        #expect(looks == 2 && found.count == 1 && found.allSatisfy(\.isEarly))
    }

    /// Without a message that waits, nothing is late, and no attempt would find out that the receiver is back.
    @Test func downRoute_isCounted_whileSomethingWaits() {
        var routes = RouteStates()
        for _ in 0..<OutboxLimits.failuresMax {
            routes.began("apns sandbox", at: .zero)
            _ = routes.ended("apns sandbox", .failed(reason: "status_503", retryAfterSeconds: nil))
        }
        func down() -> [String: Int] { routes.downCounts { String($0.prefix { $0 != " " }) } }
        #expect(down() == [:])
        routes.noteWaiting(["apns sandbox", "fcm"])
        #expect(down() == ["apns": 1])
        routes.noteWaiting(["fcm"])
        #expect(down() == [:])
        // It is still down for the next message.
        routes.noteWaiting(["apns sandbox"])
        #expect(down() == ["apns": 1] && routes.room("apns sandbox", 8, at: .seconds(60)) == 1)
        routes.began("apns sandbox", at: .seconds(60))
        _ = routes.ended("apns sandbox", .accepted)
        #expect(down() == [:])
    }
}
