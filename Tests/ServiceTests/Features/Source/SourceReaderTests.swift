import Database
import Logging
import PostgresServer
import Rows
import Synchronization
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// The reader alone, beside a service that reads nothing.
@Suite(.timed) struct SourceReaderTests {
    private let app: AppDatabase
    private let service: TestService
    private let metrics = SourceMetrics(MetricsRegistry())
    private let taken = Locked([String]())

    init() throws {
        app = try AppDatabase()
        service = try TestService.start(app.settings.filter { $0.key == "tables" })
    }

    private func intake(_ refuses: @escaping @Sendable (String) -> Bool = { _ in false }) -> SourceIntake {
        let runner = service.app.runner
        return SourceIntake(
            runner: runner,
            changes: ChangeIntake(
                memberships: MembershipRegistry(runner.settings.tables), unheard: .none, restartStreams: { _ in }),
            slot: app.name,
            receivers: [
                "publish": { [taken] members, tx in
                    let event = members.string("event") ?? ""
                    if refuses(event) { throw DatabaseError(.constraint, "refused") }
                    tx.afterCommit { taken.withLock { $0.append(event) } }
                }
            ])
    }

    private func reader(
        _ intake: SourceIntake, logger: Logger = Logger(label: "test"),
        isCongested: @escaping @Sendable () -> Bool = { false }
    ) throws -> SourceReader {
        SourceReader(
            .init(
                url: try DatabaseURL(app.settings["source"] ?? ""), intake: intake, isCongested: isCongested),
            metrics: metrics, logger: logger)
    }

    private func publish(_ events: String...) throws {
        let calls = events.map { "SELECT bellhop.publish('\($0)', \"to\" => array['user:ada'])" }
        try app.server.run(["BEGIN"] + calls + ["COMMIT"], in: app.name)
    }

    @Test func itemRefusedByTheDatabase_isRejectedAlone() async throws {
        let reader = try reader(intake { $0 == "refused" })
        reader.start()
        defer { reader.stop() }
        try await eventually("the reader is connected") { metrics.isConnected.load(ordering: .relaxed) }
        try publish("a", "refused", "b")
        try publish("c")
        try await eventually("the other messages are published") { taken.withLock { $0 } == ["a", "b", "c"] }
        try await eventually("the rejection is counted") { metrics.rejected.load(ordering: .relaxed) == 1 }
        // The reader counts a part after its commit, so the last one may not be counted yet.
        try await eventually("the messages are counted") { metrics.rows.load(ordering: .relaxed) == 3 }
        reader.stop()
        try await app.drop()
    }

    @Test func source_waitsForCongestedStreams() async throws {
        let isCongested = Locked(true)
        let asked = Locked(0)
        let reader = try reader(intake()) {
            asked.withLock { $0 += 1 }
            return isCongested.withLock { $0 }
        }
        reader.start()
        defer { reader.stop() }
        try await eventually("the reader is connected") { metrics.isConnected.load(ordering: .relaxed) }
        try publish("a")
        try await eventually("the reader waits while streams are congested") { asked.withLock { $0 } > 2 }
        #expect(taken.withLock { $0 }.isEmpty)
        isCongested.withLock { $0 = false }
        try await eventually("the reader continues") { taken.withLock { $0 } == ["a"] }
        reader.stop()
        try await app.drop()
    }

    /// The reader takes the initial snapshot while other writers keep the queue full.
    @Test func fullQueueOfWrites_isWaitedFor_whileTheStateIsRead() async throws {
        let gate = Gate()
        let store = service.app.store
        #expect(throws: StoreBusy.self) {
            while true {
                try store.write { _ in
                    gate.wait()
                } completion: { _ in
                }
            }
        }
        let reader = try reader(intake())
        reader.start()
        defer { reader.stop() }
        // The reader stores a mark before it creates the slot, and waits for room in the queue.
        try await eventually("the reader is about to create the slot") {
            try app.look(
                """
                SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                WHERE l.locktype = 'advisory' AND d.datname = '\(app.name)'
                """) == "1"
        }
        let isConnected = metrics.isConnected.load(ordering: .relaxed)
        #expect(!isConnected)
        gate.open()
        try await eventually("the reader is connected") { metrics.isConnected.load(ordering: .relaxed) }
        #expect(try await service.hasKey("team:t1:member", "ada"))
        reader.stop()
        try await app.drop()
    }

    @Test func slotReadByAnotherBellhop_isNotTouched_andReported() async throws {
        let first = try TestService.start(app.settings)
        try await first.isReading()
        let (logger, lines) = RecordedLog.logger()
        let second = try reader(intake(), logger: logger)
        second.start()
        defer { second.stop() }
        try await eventually("the operator is informed") {
            lines().contains { $0.contains("Another Bellhop with a different database") }
        }
        let isConnected = metrics.isConnected.load(ordering: .relaxed)
        #expect(!isConnected)
        try publish("a")
        try await eventually("the first one continues") { try await first.metric("bellhop_source_rows_total") == 1 }
        #expect(try await first.metric("bellhop_source_slot_lost_total") == 0)
        second.stop()
        try await app.drop()
    }

    /// Two readers know the same position. The first one to store takes all messages, and the second one is refused.
    @Test func secondReader_takesNothingTwice() async throws {
        let intake = intake()
        let first = SourcePosition(source: "a server/app", lsn: LSN(rawValue: 7), tables: ["public.team_members": "0"])
        var second = first
        (second.lsn, second.taken) = (LSN(rawValue: 9), 3)
        let message = SourceMessage(kind: "publish", tenant: "default", members: ["event": .string("a")])
        _ = try intake.write(.init([], from: nil, to: first))
        #expect(try intake.position() == first)
        let step = SourceIntake.Step([.message(message)], from: first, to: second)
        _ = try intake.write(step)
        #expect(throws: SourcePosition.Moved.self) { try intake.write(step) }
        #expect(try intake.position() == second)
        #expect(taken.withLock { $0 } == ["a"])
        #expect(second.includes(LSN(rawValue: 8), 1) && second.includes(LSN(rawValue: 9), 3))
        #expect(!second.includes(LSN(rawValue: 9), 4) && !second.includes(LSN(rawValue: 10), 1))
        try await app.drop()
    }

    /// The position is of a version that stored no publication. The server refuses to send the following changes.
    @Test func recreatedPublication_isReadOn_fromAnEarlierPositionFormat() async throws {
        let intake = intake()
        let first = try reader(intake)
        first.start()
        try await eventually("it reads") { metrics.isConnected.load(ordering: .relaxed) }
        first.stop()
        let stored = try #require(try intake.position())
        var earlier = stored
        earlier.publication = nil
        _ = try intake.write(.init([], from: stored, to: earlier))
        try app.run("DROP PUBLICATION bellhop", "INSERT INTO tasks (id) VALUES ('k1')")
        try app.setUp()
        let (logger, lines) = RecordedLog.logger()
        let second = try reader(intake, logger: logger)
        second.start()
        defer { second.stop() }
        try await eventually("the slot is recreated") { metrics.slotsLost.load(ordering: .relaxed) == 1 }
        // Only changes after this point are in the new slot.
        try await eventually("its state is read") {
            lines().contains { $0.contains("The app's tables with memberships have been read.") }
        }
        try publish("a")
        try await eventually("it reads on") { taken.withLock { $0 } == ["a"] }
        // The line appears twice if data arrived before the server refused to send more.
        #expect(lines().count { $0.contains("Reading the app's log.") } <= 2)
        #expect(lines().contains { $0.contains("was recreated, so rows in between were not published") })
        second.stop()
        try await app.drop()
    }
}
