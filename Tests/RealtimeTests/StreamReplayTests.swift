import Realtime
import TestSupport
import Testing

@Suite(.timed) struct SubscriptionTests {
    private typealias Stream = StreamReplay<[Int64]>

    private func receive(_ stream: inout Stream, _ sequence: Int64, collapse: UInt64 = 0, bytes: Int = 100) -> Bool {
        stream.receive(sequence: sequence) {
            .init(sequence: sequence, collapse: collapse, byteCount: bytes, payload: [sequence])
        }
    }

    private func sent(_ actions: [Stream.Action]) -> [Int64] {
        actions.flatMap { action -> [Int64] in if case .send(let payload, _) = action { payload } else { [] } }
    }

    @Test func liveEvents_waitForTheReplay_andFollowIt() {
        var stream = Stream(head: 10)
        #expect(receive(&stream, 11) == false)
        #expect(receive(&stream, 12) == false)
        // 0 stands for `stream:ready`.
        #expect(sent(stream.opened(position: 10, chunks: [[0, 8, 10]])) == [0, 8, 10, 11, 12])
        #expect(stream.phase == .live)
        #expect(receive(&stream, 13) == true)
    }

    @Test func chunks_areSent_oneAtATime() {
        var stream = Stream(head: 10)
        #expect(sent(stream.opened(position: 10, chunks: [[0], [1], [2]])) == [0])
        #expect(receive(&stream, 11) == false)
        #expect(sent(stream.drained()) == [1])
        #expect(sent(stream.drained()) == [2, 11])
        #expect(stream.phase == .live)
        #expect(sent(stream.drained()) == [])
    }

    /// The client comes from a faster shard: its cursor is ahead of the events that this shard has handled.
    @Test func cursorAheadOfTheShard_receivesNothingTwice() {
        var stream = Stream(head: 10)
        #expect(receive(&stream, 11) == false)
        #expect(sent(stream.opened(position: 12, chunks: [[0]])) == [0])
        #expect(receive(&stream, 12) == false)
        #expect(receive(&stream, 13) == true)
    }

    @Test func stateEvents_collapseInTheQueue_logEventsDoNot() {
        var stream = Stream(head: 0)
        for sequence in 1...4 { _ = receive(&stream, Int64(sequence), collapse: sequence % 2 == 0 ? 7 : 0) }
        #expect(sent(stream.opened(position: 0, chunks: [[0]])) == [0, 1, 3, 4])
    }

    @Test func overflowOfTheQueue_readsTheLogAgain() throws {
        var stream = Stream(head: 10)
        for sequence in 11...20 { _ = receive(&stream, Int64(sequence), bytes: 4096) }
        let actions = stream.opened(position: 10, chunks: [[0]])
        #expect(sent(actions) == [0])
        guard case .load(let after, let through) = try #require(actions.last) else {
            Issue.record("the log was not read again")
            return
        }
        #expect((after, through) == (10, 20))
        #expect(receive(&stream, 21) == false)
        #expect(sent(stream.loaded([[11, 12], [20]])) == [11, 12])
        #expect(sent(stream.drained()) == [20, 21])
        #expect(stream.phase == .live)
    }

    @Test func clientThatStaysBehind_resyncs() {
        var stream = Stream(head: 0)
        var sequence: Int64 = 0
        func burst() { for _ in 0..<10 { sequence += 1; _ = receive(&stream, sequence, bytes: 4096) } }
        burst()
        var actions = stream.opened(position: 0, chunks: [[0]])
        var rounds = 0
        while case .load? = actions.last {
            rounds += 1
            burst()
            actions = stream.loaded([])
        }
        #expect(rounds == Stream.roundsMax - 1)
        guard case .resync(.overflow, let position)? = actions.first else {
            Issue.record("no resync was sent")
            return
        }
        #expect(position == sequence)
        #expect(stream.phase == .live)
    }

    @Test func closedStream_doesNothing() {
        var stream = Stream(head: 0)
        stream.close()
        #expect(receive(&stream, 1) == false)
        #expect(stream.opened(position: 0, chunks: [[0]]).isEmpty)
        #expect(stream.loaded([[1]]).isEmpty)
        #expect(stream.drained().isEmpty)
        stream.overflowed(at: 9)
        #expect(stream.phase == .closed)
    }

    @Test func overflowDuringReplay_forgetsTheRest() {
        var stream = Stream(head: 10)
        _ = stream.opened(position: 10, chunks: [[0], [1]])
        _ = receive(&stream, 11)
        stream.overflowed(at: 11)
        #expect(sent(stream.drained()) == [])
        #expect(receive(&stream, 11) == false)
        #expect(receive(&stream, 12) == true)
    }

    /// R-VIS-NFR-2.3: nothing is lost and nothing is delivered twice. The seed chooses an interleaving of worker, shard
    /// and socket. Each event after the cursor arrives exactly once and in order, unless the client received a
    /// resync.
    @Test func everyInterleaving_losesNothing_andDoublesNothing() {
        let runs = effort(quick: 20_000, full: 20_000, long: 1_000_000)
        let failure = Schedule.failure(seed: randomSeed(), runs: runs) { World.run($0) }
        #expect(failure == nil, "\(failure ?? "")")
    }
}

/// One stream, the log, the shard that follows the log, a worker that answers late, and a socket that drains late.
private struct World {
    let schedule: Schedule
    var stream: StreamReplay<[Int64]>
    /// The number of committed events, and the number that the shard has handled.
    var committed: Int64
    var handled: Int64
    let cursor: Int64
    let bytes: Int
    var opening: (through: Int64, newest: Int64)?
    var loading: (after: Int64, through: Int64)?
    var got: [Int64] = []
    /// The position of the last resync; the stream owes only the events after it.
    var base: Int64

    init(_ schedule: Schedule) {
        self.schedule = schedule
        bytes = schedule.number(2) == 0 ? 10 : 6000
        committed = Int64(schedule.number(21))
        handled = Int64(schedule.number(Int(committed) + 1))
        cursor = Int64(schedule.number(Int(committed) + 1))
        base = cursor
        stream = StreamReplay(head: handled)
        opening = (handled, committed)
        schedule.tell(
            "\(committed) events are committed, the shard has handled \(handled), the cursor is \(cursor)")
    }

    var expected: [Int64] { base < committed ? Array((base + 1)...committed) : [] }

    /// - Returns: the violated invariant, or nil.
    static func run(_ schedule: Schedule) -> String? {
        var world = World(schedule)
        for _ in 0..<schedule.count(60...60) {
            schedule.step()
            world.step(schedule.number(6))
        }
        schedule.step()
        // Each round delivers an event or ends a read, so a stream that needs more has lost its way.
        for _ in 0..<1000 where !world.isSettled {
            for kind in 1..<6 { world.step(kind) }
        }
        guard world.isSettled else { return "the stream is \(world.stream.phase) and does not go on" }
        return world.got == world.expected
            ? nil : "the client has \(world.got) instead of \(world.expected) after \(world.base)"
    }

    private var isSettled: Bool {
        handled >= committed && opening == nil && loading == nil && stream.phase == .live
    }

    private mutating func step(_ kind: Int) {
        switch kind {
        case 0: commit()
        case 1, 2: deliver()
        case 3: open()
        case 4: load()
        default: drain()
        }
    }

    private mutating func commit() {
        committed += Int64(1 + schedule.number(3))
        schedule.tell("events up to \(committed) are committed")
    }

    private mutating func drain() {
        schedule.tell("the socket drains")
        apply(stream.drained())
    }

    private mutating func deliver() {
        guard handled < committed else { return }
        handled += 1
        schedule.tell("the shard handles \(handled)")
        let (sequence, size) = (handled, bytes)
        if stream.receive(
            sequence: sequence, { .init(sequence: sequence, collapse: 0, byteCount: size, payload: [sequence]) })
        {
            got.append(sequence)
        }
    }

    private mutating func open() {
        guard let (through, _) = opening else { return }
        opening = nil
        schedule.tell("the worker has read the log up to \(through)")
        apply(stream.opened(position: max(through, cursor), chunks: [[]] + chunks(after: cursor, through: through)))
    }

    private mutating func load() {
        guard let (after, through) = loading else { return }
        loading = nil
        schedule.tell("the worker has read the log again, from \(after) up to \(through)")
        apply(stream.loaded(chunks(after: after, through: through)))
    }

    private func chunks(after: Int64, through: Int64) -> [[Int64]] {
        guard after < through else { return [] }
        return stride(from: after + 1, through: through, by: 2).map { [$0] + ($0 < through ? [$0 + 1] : []) }
    }

    private mutating func apply(_ actions: [StreamReplay<[Int64]>.Action]) {
        for action in actions {
            switch action {
            case .send(let payload, _):
                got += payload
                schedule.tell("the stream sends \(payload)")
            case .load(let after, let through): loading = (after, through)
            case .resync(_, let position):
                got = []
                base = position
                schedule.tell("the stream resyncs at \(position)")
            }
        }
    }
}
