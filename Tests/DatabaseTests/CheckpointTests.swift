import Synchronization
import TestSupport
import Testing

@testable import Database

/// The WAL of SQLite restarts although writes never pause, without a long stop of the writer.
@Suite(.timed) struct CheckpointTests {
    private static let options = {
        var options = StoreOptions()
        (options.checkpointPages, options.checkpointPagesLeft, options.checkpointPagesMax) = (2_000, 1_600, 12_000)
        return options
    }()

    @Test func shortLog_isLeftAlone() {
        var schedule = CheckpointSchedule(Self.options)
        #expect(schedule.step(walPages: 1_999, movedPages: nil) == .wait)
        #expect(schedule.step(walPages: 1_999, movedPages: 1_000) == .wait)
    }

    @Test func checkpointer_isWokenOncePerLength() {
        var schedule = CheckpointSchedule(Self.options)
        #expect(schedule.step(walPages: 2_000, movedPages: nil) == .wakeCheckpointer)
        #expect(schedule.step(walPages: 2_004, movedPages: nil) == .wait)
        #expect(schedule.step(walPages: 4_000, movedPages: nil) == .wakeCheckpointer)
        // A restart of the WAL begins again.
        #expect(schedule.step(walPages: 4, movedPages: nil) == .wait)
        #expect(schedule.step(walPages: 2_000, movedPages: nil) == .wakeCheckpointer)
    }

    @Test func fewPagesAfterAPass_areMovedByTheWriter_andManyByAnotherPass() {
        var schedule = CheckpointSchedule(Self.options)
        #expect(schedule.step(walPages: 2_000, movedPages: nil) == .wakeCheckpointer)
        #expect(schedule.step(walPages: 3_700, movedPages: 2_000) == .wakeCheckpointer)
        #expect(schedule.step(walPages: 3_900, movedPages: 3_700) == .moveHere)
    }

    @Test func passThatEndedBeforeARestart_movesNothing() {
        var schedule = CheckpointSchedule(Self.options)
        #expect(schedule.step(walPages: 2_010, movedPages: 2_500) == .wakeCheckpointer)
    }

    @Test func shortRead_delaysTheRestartBriefly_andALongReadByAPass() {
        var schedule = CheckpointSchedule(Self.options)
        _ = schedule.step(walPages: 2_000, movedPages: nil)
        #expect(schedule.step(walPages: 2_100, movedPages: 2_000) == .moveHere)
        schedule.moved(of: 2_100, remaining: 0)
        #expect(schedule.step(walPages: 2_299, movedPages: nil) == .wait)
        #expect(schedule.step(walPages: 2_300, movedPages: nil) == .wakeCheckpointer)
        #expect(schedule.step(walPages: 2_304, movedPages: 2_300) == .moveHere)
        schedule.moved(of: 2_304, remaining: 500)
        #expect(schedule.step(walPages: 4_303, movedPages: nil) == .wait)
        #expect(schedule.step(walPages: 4_304, movedPages: nil) == .wakeCheckpointer)
    }

    /// A writer that adds pages without a pause, and a checkpointer that is slower or faster.
    @Test(arguments: [1, 4, 20, 60], [0.1, 0.5, 0.7])
    func log_staysShort(pagesOfCommit: Int, pagesAddedPerPageMoved: Double) {
        var schedule = CheckpointSchedule(Self.options)
        var (walPages, moved, restarts, longest, mostMovedHere) = (0, 0, 0, 0, 0)
        var pass: (length: Int, end: Int)?
        var finished: Int?
        for _ in 0..<200_000 {
            // SQLite restarts the WAL at a commit that finds all pages moved.
            if walPages > 0, moved == walPages { (walPages, moved, restarts) = (0, 0, restarts + 1) }
            walPages += pagesOfCommit
            longest = max(longest, walPages)
            if let running = pass, walPages >= running.end {
                (moved, finished, pass) = (max(moved, running.length), running.length, nil)
            }
            switch schedule.step(walPages: walPages, movedPages: finished.take()) {
            case .wait: break
            case .wakeCheckpointer:
                if pass == nil {
                    pass = (walPages, walPages + Int(Double(walPages - moved) * pagesAddedPerPageMoved))
                }
            case .moveHere:
                mostMovedHere = max(mostMovedHere, walPages - moved)
                moved = walPages
                schedule.moved(of: walPages, remaining: 0)
            }
        }
        #expect(restarts >= 200_000 * pagesOfCommit / 5_000)
        #expect(longest < 5_000)
        #expect(mostMovedHere < 1_600)
    }

    @Test func logRestarts_whileWritesNeverPause() async throws {
        let directory = try TemporaryDirectory()
        var options = StoreOptions()
        (options.checkpointPages, options.checkpointPagesLeft, options.checkpointPagesMax) = (200, 160, 10_000_000)
        let store = try DatabaseStore.open(.file(directory.file("a.sqlite")), options: options)
        defer { store.close() }
        try store.migrate([Migration("0001_items", sql: ["CREATE TABLE items (id TEXT PRIMARY KEY, note TEXT)"])])

        let writes = Atomic<Int>(0)
        let isEnded = Atomic<Bool>(false)
        /// Stores a row, and then the next: eight at a time, so that the queue is never empty.
        @Sendable func writeOn() {
            guard !isEnded.load(ordering: .acquiring) else { return }
            let number = writes.add(1, ordering: .relaxed).newValue
            let note = String(repeating: "n", count: 2_000)
            try? store.write(
                { try $0.run("INSERT INTO items (id, note) VALUES (\("\(number)"), \(note))") },
                completion: { _ in writeOn() })
        }
        for _ in 0..<8 { writeOn() }
        defer { isEnded.store(true, ordering: .releasing) }

        var (restarts, last) = (0, 0)
        try await eventually("the WAL restarted five times") {
            let pages = store.metrics().walPages
            if pages < last { restarts += 1 }
            last = pages
            return restarts >= 5
        }
        #expect(store.metrics().checkpointsFailed == 0)
    }
}
