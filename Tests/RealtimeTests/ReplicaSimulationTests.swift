import TestSupport
import Testing

@testable import Realtime

@Suite(.timed) struct ReplicaSimulationTests {
    @Test func streamsGetEveryEntryOnce_orAreToldOfTheGap_underAnySchedule() {
        let runs = effort(quick: 12_000, full: 20_000, long: 10_000_000)
        let failure = Schedule.failure(seed: randomSeed(), runs: runs) { ReplicaSimulation.run($0) }
        #expect(failure == nil, "\(failure ?? "")")
    }
}

/// The decisions of one replica, input by input.
@Suite(.timed) struct LogFollowerTests {
    private typealias Follower = LogFollower<SimulatedEntry>

    /// A follower in a class, so that `#expect` can call its mutating functions.
    private final class Replica {
        private var follower = Follower(head: 0, epoch: "a", at: .zero)

        var epoch: String { follower.epoch }
        var caughtUpAt: Duration { follower.caughtUpAt }

        func committed(
            _ numbers: ClosedRange<Int64>, content: Int, term: Int = 0, at now: Duration = .zero
        ) -> Int {
            follower.committed(LogFollowerTests.entries(numbers, content: content), term: term, at: now).count
        }
        func announced(_ newest: Int64?) { follower.announced(newest) }
        func renewed(_ epoch: String) { follower.renewed(epoch) }
        func ask(at now: Duration = .zero) -> Follower.Request? {
            follower.nextRequest(at: now, pollPause: .seconds(1))
        }
        func read(
            _ entries: [SimulatedEntry], _ request: Follower.Request, at now: Duration = .zero
        ) -> Follower.ReadOutcome {
            follower.read(entries, isAll: true, answering: request, at: now)
        }
        func restart(after sequence: Int64) -> [Int64] {
            follower.restart(after: sequence)
            return follower.publishable(at: .zero).map(\.sequence)
        }
        func polled(_ state: LogState<SimulatedEntry>, _ request: Follower.Request) -> Follower.PollOutcome {
            follower.polled(state, answering: request)
        }
        func adopt(_ state: LogState<SimulatedEntry>, _ request: Follower.Request) -> Bool {
            follower.adopt(state, answering: request)
        }
    }

    private static func entries(_ numbers: ClosedRange<Int64>, content: Int) -> [SimulatedEntry] {
        numbers.map { SimulatedEntry(sequence: $0, content: content) }
    }

    private static func state(
        _ newest: Int64, _ epoch: String = "a", content: SimulatedEntry? = nil, isMoved: Bool = false
    ) -> LogState<SimulatedEntry> {
        LogState(newest: newest, epoch: epoch, content: content, isMoved: isMoved)
    }

    @Test func announcements_doNotDelayThePoll() throws {
        let follower = Replica()
        var polls = 0
        for tenth in 1...30 {
            follower.announced(Int64(tenth))
            let request = follower.ask(at: .milliseconds(tenth * 100))
            if try #require(request).kind == .poll { polls += 1 }
        }
        #expect(polls == 3)
    }

    /// No timeline comparison takes place. The log has lost entries 2 and 3, and continues with others past its old
    /// end.
    @Test func doubt_isKept_untilTheOldHeadIsCompared() throws {
        let follower = Replica()
        #expect(follower.committed(1...3, content: 1) == 3)
        // Own entries that reuse a published number: the old head stays 3.
        #expect(follower.committed(2...2, content: 2) == 0)
        #expect(follower.committed(4...9, content: 2) == 6)
        let request = try #require(follower.ask())
        #expect(request.kind == .poll && request.place == 3)
        let other = SimulatedEntry(sequence: 3, content: 2)
        #expect(follower.polled(Self.state(9, content: other), request) == .renew(epoch: "a"))
    }

    /// A read finds a different entry at a published position. The follower then polls and renews the epoch; it does
    /// not read again.
    @Test func differentEntry_foundByARead_isConfirmedByThePoll() throws {
        let follower = Replica()
        #expect(follower.committed(1...1, content: 1) == 1)
        follower.announced(2)
        let read = try #require(follower.ask())
        let others = Self.entries(1...2, content: 2)
        #expect(follower.read(others, read).publish.isEmpty)
        let poll = try #require(follower.ask())
        #expect(poll.kind == .poll)
        #expect(follower.polled(Self.state(2, content: others[0]), poll) == .renew(epoch: "a"))
    }

    @Test func lostConnection_comparesTheTimeline() throws {
        let follower = Replica()
        follower.announced(nil)
        let request = try #require(follower.ask())
        #expect(request.isTimed)
        #expect(follower.polled(Self.state(0, isMoved: true), request) == .renew(epoch: "a"))
    }

    /// An entry committed on the lost server is handed over after the log has adopted its new epoch.
    @Test func entriesOfAnEarlierTerm_areReadInsteadOfPublished() throws {
        let follower = Replica()
        let request = try #require(follower.ask(at: .seconds(1)))
        let state = Self.state(0, "b")
        #expect(follower.polled(state, request) == .adopt)
        #expect(follower.adopt(state, request))
        #expect(follower.committed(1...1, content: 1) == 0)
        #expect(follower.ask(at: .seconds(1))?.kind == .read)
        #expect(follower.committed(1...1, content: 2, term: 1) == 1)
    }

    /// The process renews the epoch while the answer to a poll still carries the old one.
    @Test func epochOfALatePoll_isNotAdopted() throws {
        let follower = Replica()
        let request = try #require(follower.ask(at: .seconds(1)))
        follower.renewed("b")
        #expect(follower.polled(Self.state(0, "a"), request) == .unchanged(isCaughtUp: false))
        #expect(!follower.adopt(Self.state(0, "c"), request))
        #expect(follower.epoch == "b")
    }

    // MARK: Erased entries

    /// The streams restart after the last erased entry. The entries before it are found when they resume.
    @Test func erasedEntry_aboveTheHead_isAGap() throws {
        let follower = Replica()
        #expect(follower.committed(1...1, content: 1) == 1)
        follower.announced(5)
        let request = try #require(follower.ask())
        let log = Self.entries(1...2, content: 1) + Self.entries(3...4, content: 0) + Self.entries(5...5, content: 1)
        let outcome = follower.read(log, request)
        #expect(outcome.missed == 4)
        #expect(outcome.publish.isEmpty && !outcome.isCaughtUp)
        #expect(follower.restart(after: 4) == [5])
    }

    /// An event that was published before its erasure is no sign that the log lost anything.
    @Test func erasedEntry_atTheHead_changesNothing() throws {
        let follower = Replica()
        #expect(follower.committed(1...1, content: 1) == 1)
        follower.announced(2)
        let read = try #require(follower.ask())
        let log = Self.entries(1...1, content: 0) + Self.entries(2...2, content: 1)
        #expect(follower.read(log, read).publish.count == 1)
        let poll = try #require(follower.ask(at: .seconds(1)))
        #expect(
            follower.polled(Self.state(2, content: SimulatedEntry(sequence: 2, content: 0)), poll)
                == .unchanged(isCaughtUp: true))
    }

    /// The process was suspended between a commit and the publication of its entries, which are erased by now.
    @Test func entriesInMemory_areReadAgain_afterALongTime() throws {
        let follower = Replica()
        let late = Follower.memoryMax + .milliseconds(1)
        #expect(follower.committed(1...1, content: 1, at: late) == 0)
        // An answer from before the suspension is as old.
        let waiting = Replica()
        #expect(waiting.committed(2...2, content: 1) == 0)
        let request = try #require(waiting.ask())
        #expect(waiting.read(Self.entries(1...2, content: 1), request, at: late).publish.isEmpty)
        let again = try #require(waiting.ask(at: late))
        #expect(again.kind == .poll)
        #expect(waiting.polled(Self.state(2), again) == .unchanged(isCaughtUp: false))
        let second = try #require(waiting.ask(at: late))
        #expect(waiting.read(Self.entries(1...2, content: 0), second, at: late).missed == 2)
    }

    /// An answer may arrive much later, and shows the log at the time of the question.
    @Test func caughtUpTime_isThatOfTheQuestion() throws {
        let follower = Replica()
        for (second, newest) in [(3, 0), (6, 1)] as [(Int, Int64)] {
            let request = try #require(follower.ask(at: .seconds(second)))
            let isCaughtUp = follower.polled(Self.state(newest), request) == .unchanged(isCaughtUp: newest == 0)
            #expect(isCaughtUp)
        }
        #expect(follower.caughtUpAt == .seconds(3))
    }
}
