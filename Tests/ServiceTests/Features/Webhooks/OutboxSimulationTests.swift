import Database
import Domain
import PostgresServer
import TestSupport
import Testing
import Values

@testable import Service

@Suite(.timed) struct OutboxSimulationTests {
    private let service: TestService
    private let clock: ManualClock
    private let reader: TransactionReader

    init() throws {
        service = try TestService.start(at: TestService.morning)
        clock = ManualClock(service.clock.now)
        let settings = try TestService.settings([
            "database": service.database.url, "jwtSecret": TestService.secret, "webhookURL": "http://127.0.0.1:1/",
            "webhookSecrets": WebhookProbe.secrets[0], "webhookPrivate": "true", "webhookAtOnce": "false",
        ])
        let base = service.app.runner.reader
        reader = TransactionReader(
            store: base.store, clock: clock.clock, settings: settings, log: base.log, positions: base.positions,
            reactions: [WebhooksFeature.reaction], tables: base.tables, limiter: base.limiter)
    }

    @Test func nothingIsLostOrSentTwiceOrAfterItWasSeen_underAnySchedule() {
        // A server of PostgreSQL takes five times as long for each.
        let runs = effort(quick: 300, full: 2_000, long: 100_000) / (PostgresServer.isTheStore ? 20 : 1)
        let failure = Schedule.failure(seed: randomSeed(), runs: runs, repetitionsMax: 1000) {
            OutboxSimulation.run($0, reader, clock)
        }
        #expect(failure == nil, "\(failure ?? "")")
    }

    /// A sender stands still until its lease has expired. Another one sends the notification a second time, and its
    /// user sees it. The first sender then stores the outcome of its attempt. The withdrawal still waits for the second
    /// attempt, which is under way.
    @Test(arguments: [true, false], [true, false])
    func outcomeOfAnEarlierAttempt_letsNoWithdrawalOvertakeALaterOne(isAccepted: Bool, isSeenFirst: Bool) throws {
        var notification = Notification()
        (notification.id, notification.createdAt) = ("n1", clock.now)
        (notification.draft.userId, notification.draft.priority) = ("ada", .high)
        try reader.write { [notification] in $0.record(.notificationsCreated([(notification, Preferences())])) }
        clock.advance(seconds: 60)
        let first = try begin()
        clock.advance(seconds: 41)
        let second = try begin()
        #expect([first.attempt, second.attempt] == [1, 2])

        func see() throws {
            try reader.write { [notification] in $0.record(.notificationsCleared([notification], isRemoved: false)) }
        }
        if isSeenFirst { try see() }
        try record(isAccepted ? .accepted : .interrupted, of: first)
        if !isSeenFirst { try see() }
        #expect(try due().isEmpty)
        try record(.interrupted, of: second)
        #expect(try begin().type == .withdrawn)
    }

    private func due() throws -> [Int] {
        try reader.store.read { try WebhooksFeature.due(at: clock.now, except: [], nil, limit: 4, in: $0) }.map(
            \.number)
    }

    private func begin() throws -> WebhookAttempt {
        let (now, numbers) = (clock.now, try due())
        let begun = try reader.store.writeAndWait {
            try WebhooksFeature.begin(numbers, at: now, leasedUntil: now.adding(seconds: 40), in: $0)
        }
        return try #require(begun.first)
    }

    private func record(_ result: WebhookResult, of attempt: WebhookAttempt) throws {
        let now = clock.now
        try reader.store.writeAndWait { try WebhooksFeature.record(result, of: attempt, at: now, in: $0) }
    }
}
