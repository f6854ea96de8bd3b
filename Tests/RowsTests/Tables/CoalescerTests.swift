import Rows
import TestSupport
import Testing
import Values

@testable import Rows

/// R-SCH-FR-004, R-SCH-EC3, R-SCH-SC-006, R-25: the invalidations that a stream receives in a burst.
@Suite(.timed) struct CoalescerTests {
    private static let second = Duration.seconds(1)

    private let attendance: TableDeclaration

    init() throws {
        attendance = try SchoolWorld().table("attendance")
    }

    private func cause(_ record: Int, origin: String? = nil) -> InvalidationCause {
        attendance.cause(of: RowWrite(.insert, old: nil, new: ["id": .integer(Int64(record))], originId: origin))
    }

    /// R-SCH-SC-006 "morning rush": 20 students of a class are marked present within one second.
    @Test func morningRush_reachesEachReaderOnce() throws {
        var world = try SchoolWorld()
        let students = ["s1"] + (0..<19).map { "pupil\($0)" }
        for student in students {
            try world.load("students", ["id": .string(student), "class_id": "c1", "school_id": "A"])
        }
        let scopes = ["t1", "a1", "p1", "p3"].map { world.scope($0, of: "A") }
        var coalescer = Coalescer()
        for (index, student) in students.enumerated() {
            let row: RowWrite.Row = ["id": .integer(Int64(index)), "student_id": .string(student), "school_id": "A"]
            let change = RowWrite(.insert, old: nil, new: row)
            for invalidation in try attendance.invalidations(of: change, memberships: world.memberships) {
                let streams = scopes.indices.filter { !scopes[$0].isDisjoint(with: invalidation.audience) }
                coalescer.offer(
                    invalidation.key, cause: invalidation.cause, to: streams.map(Int32.init),
                    window: attendance.window, at: Int64(index * 40))
            }
        }
        var received: [Int32: [[String]]] = [:]
        while let due = coalescer.nextDue {
            #expect(due <= Int64(students.count * 40) + 1_010)
            for batch in coalescer.takeDue(at: due) { received[batch.stream, default: []] += batch.keys }
        }
        let calendars = students.map { ["attendance-calendar", $0] }
        #expect(
            received[0]?.sorted { $0.joined() < $1.joined() }
                == (calendars + [["class-attendance", "c1"]])
                .sorted { $0.joined() < $1.joined() })
        #expect(received[1]?.filter { $0 == ["admin-dashboard"] }.count == 1)
        #expect(received[2].map(Set.init) == [["attendance-calendar", "s1"], ["parent-dashboard"]])
        #expect(received[2]?.count == 2)
        #expect(received[3] == nil)
    }

    /// R-SCH-SC-006, R-SCH-EC3: 20 rows of one student change within one second; the teacher, the admin and a parent
    /// are subscribed.
    @Test func burst_isOneInvalidationPerKeyAndWindow() throws {
        let world = try SchoolWorld()
        let scopes = ["t1", "a1", "p1"].map { world.scope($0, of: "A") }
        var coalescer = Coalescer()
        var batches: [Coalescer.Batch] = []
        for index in 0..<20 {
            let now = Int64(index * 40)
            batches += coalescer.takeDue(at: now)
            let row: RowWrite.Row = ["id": .integer(Int64(index)), "student_id": "s1", "school_id": "A"]
            let change = RowWrite(.insert, old: nil, new: row)
            for invalidation in try attendance.invalidations(of: change, memberships: world.memberships) {
                let streams = scopes.indices.filter { !scopes[$0].isDisjoint(with: invalidation.audience) }
                coalescer.offer(
                    invalidation.key, cause: invalidation.cause, to: streams.map(Int32.init), window: attendance.window,
                    at: now)
            }
        }
        #expect(batches.isEmpty)
        batches = coalescer.takeDue(at: 1_000)
        #expect(batches.map(\.stream) == [0, 1, 2])
        #expect(Set(batches[0].keys) == [["attendance-calendar", "s1"], ["class-attendance", "c1"]])
        #expect(
            Set(batches[1].keys) == [["attendance-calendar", "s1"], ["class-attendance", "c1"], ["admin-dashboard"]])
        #expect(Set(batches[2].keys) == [["attendance-calendar", "s1"], ["parent-dashboard"]])
        for batch in batches {
            #expect(batch.keys.count == Set(batch.keys).count)
            #expect(batch.causes.count == 20)
            #expect(batch.isComplete)
        }
        #expect(coalescer.nextDue == nil)
        #expect(coalescer.pendingCount == 0)
        #expect(coalescer.keyCount == 0)
    }

    /// A debounce that restarts with each change would starve under a steady flow.
    @Test func steadyFlow_isReceivedOncePerWindow_andItsEndIsNotLost() {
        var coalescer = Coalescer()
        var received: [Int64] = []
        for now in stride(from: Int64(0), through: 10_000, by: 100) {
            received += coalescer.takeDue(at: now).map { _ in now }
            coalescer.offer(["k"], cause: nil, to: [7], window: Self.second, at: now)
        }
        while let due = coalescer.nextDue { received += coalescer.takeDue(at: due).map { _ in due } }
        #expect(received == (1...11).map { Int64($0) * 1_000 })
    }

    @Test func keysAndStreams_doNotMix() {
        var coalescer = Coalescer()
        coalescer.offer(["a"], cause: cause(1), to: [1, 2], window: Self.second, at: 0)
        coalescer.offer(["b"], cause: cause(2), to: [2], window: .milliseconds(500), at: 0)
        #expect(coalescer.takeDue(at: 499).isEmpty)
        let first = coalescer.takeDue(at: 500)
        #expect(first.map(\.stream) == [2])
        #expect(first.map(\.keys) == [[["b"]]])
        #expect(coalescer.takeDue(at: 1_000).map(\.keys) == [[["a"]], [["a"]]])
    }

    /// R-SCH-A-009.
    @Test func shorterWindow_stands() {
        var coalescer = Coalescer()
        coalescer.offer(["a"], cause: nil, to: [1], window: .seconds(5), at: 0)
        coalescer.offer(["a"], cause: nil, to: [1], window: Self.second, at: 100)
        #expect(coalescer.nextDue == 1_100)
        #expect(coalescer.takeDue(at: 1_100).count == 1)
        #expect(coalescer.takeDue(at: 9_000).isEmpty)
    }

    /// R-SCH-FR-005: a client may drop its own echo, but not if the batch contains any other change.
    @Test func omittedCauses_areReported() {
        var coalescer = Coalescer()
        coalescer.offer(["a"], cause: cause(1, origin: "me"), to: [1], window: Self.second, at: 0)
        coalescer.offer(["a"], cause: cause(1, origin: "me"), to: [1], window: Self.second, at: 0)
        coalescer.offer(["a"], cause: nil, to: [2], window: Self.second, at: 0)
        for index in 0...TableLimits.causesPerKeyMax {
            coalescer.offer(["a"], cause: cause(index), to: [3], window: Self.second, at: 0)
        }
        let batches = coalescer.takeDue(at: 1_000)
        #expect(batches.map(\.causes.count) == [1, 0, TableLimits.causesPerKeyMax])
        #expect(batches.map(\.isComplete) == [true, false, false])
    }

    @Test func excessKeys_becomeOneOverflow() {
        var coalescer = Coalescer()
        for index in 0...TableLimits.pendingKeysPerStreamMax + 10 {
            coalescer.offer(["k", "\(index)"], cause: nil, to: [1], window: Self.second, at: Int64(index))
        }
        #expect(coalescer.pendingCount == 0)
        #expect(coalescer.keyCount == 0)
        let batches = coalescer.takeDue(at: 1_000)
        #expect(batches.map(\.isOverflow) == [true])
        #expect(batches.map(\.keys) == [[]])
        #expect(coalescer.takeDue(at: 100_000).isEmpty)
        coalescer.offer(["k"], cause: nil, to: [1], window: Self.second, at: 100_000)
        #expect(coalescer.takeDue(at: 101_000).first?.keys == [["k"]])
    }

    @Test func causesOfOneEvent_areBounded() {
        var coalescer = Coalescer()
        for index in 0..<TableLimits.causesPerBatchMax + 1 {
            coalescer.offer(["k", "\(index)"], cause: cause(index), to: [1], window: Self.second, at: 0)
        }
        let batches = coalescer.takeDue(at: 1_000)
        #expect(batches.map(\.causes.count) == [TableLimits.causesPerBatchMax])
        #expect(batches.map(\.keys.count) == [TableLimits.causesPerBatchMax + 1])
        #expect(batches.map(\.isComplete) == [false])
    }

    /// R-SCH-FR-002
    @Test func closedStream_leavesNothing() {
        var coalescer = Coalescer()
        coalescer.offer(["a"], cause: nil, to: [1], window: Self.second, at: 0)
        coalescer.remove(1)
        #expect(coalescer.pendingCount == 0)
        #expect(coalescer.keyCount == 0)
        #expect(coalescer.takeDue(at: 1_000).isEmpty)
    }

    /// For any arrival times, each offer is delivered within its window plus the grid, and no key twice within a
    /// window.
    @Test(arguments: [11, 12, 13, 14] as [UInt64])
    func everyOffer_isReceivedInTime_andNoKeyTwiceInAWindow(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var coalescer = Coalescer()
        var waiting: [String: Int64] = [:]
        var lastHeard: [String: Int64] = [:]
        var now: Int64 = 0
        for _ in 0..<20_000 {
            now += Int64.random(in: 0...30, using: &random)
            for batch in coalescer.takeDue(at: now) {
                for key in batch.keys {
                    let name = "\(batch.stream)/\(key[0])"
                    let offered = waiting.removeValue(forKey: name)
                    #expect(offered.map { now - $0 <= 1_000 + 10 + 30 } == true, "seed \(seed), \(name)")
                    if let last = lastHeard[name] { #expect(now - last >= 1_000 - 30, "seed \(seed), \(name)") }
                    lastHeard[name] = now
                }
            }
            let stream = Int32.random(in: 0..<5, using: &random)
            let key = "k\(Int.random(in: 0..<8, using: &random))"
            if Int.random(in: 0..<500, using: &random) == 0 {
                coalescer.remove(stream)
                waiting = waiting.filter { !$0.key.hasPrefix("\(stream)/") }
                lastHeard = lastHeard.filter { !$0.key.hasPrefix("\(stream)/") }
                continue
            }
            coalescer.offer([key], cause: nil, to: [stream], window: .seconds(1), at: now)
            let name = "\(stream)/\(key)"
            if waiting[name] == nil { waiting[name] = now }
        }
        #expect(waiting.count == coalescer.pendingCount, "seed \(seed)")
    }
}
