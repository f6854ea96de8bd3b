import BellhopClient
import Database
import Foundation
import TestSupport
import Testing

/// The wall clock of the built service is set back and forth while it runs, as by NTP or by hand.
@Suite(.timed) struct ClockStepTests {
    /// The wall clock of one process, controlled by a preloaded library.
    private struct WallClock {
        let wrapper: [String]
        private let descriptor: Int32

        init(in directory: TemporaryDirectory) throws {
            let source = repository.appendingPathComponent("Tests/Fixtures/WallClock/step.c").path
            let (library, file) = (directory.file("step.so"), directory.file("step"))
            // Swift's toolchain contains clang; any other system that can link programs has cc.
            let isBuilt = ["clang", "cc"].contains { compiler in
                (try? ChildProcess([compiler, "-shared", "-fPIC", "-o", library, source]).finish())?.status == 0
            }
            try #require(isBuilt)
            descriptor = open(file, O_RDWR | O_CREAT, 0o600)
            wrapper = ["env", "LD_PRELOAD=\(library)", "WALL_CLOCK_STEP=\(file)"]
            step(to: 0)
        }

        func step(to secondsAhead: Int64) {
            withUnsafeBytes(of: secondsAhead) { #expect(pwrite(descriptor, $0.baseAddress, $0.count, 0) == $0.count) }
        }
    }

    private static let shop = "/v1/shops/s1"

    private static func prepare(_ service: RunningBellhop) async throws {
        let backend = service.client(as: .service())
        #expect(try await backend.replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "UTC")).status == 201)
        var challenge = ChallengesTests.draft
        (challenge.startsAt, challenge.endsAt) = (moment("2020-01-01T00:00:00Z"), moment("2200-01-01T00:00:00Z"))
        #expect(try await backend.replaceChallenge(id: "c1", challenge).status == 201)
        #expect(
            try await service.client(as: .staff(of: "s1")).replaceDJSession(id: "s1", .init(isActive: true)).status
                == 200)
        let ada = service.client("ada")
        #expect(try await ada.showPresence(id: "s1").status == 200)
        #expect(try await ada.addTrack(id: "s1", DJTests.track("t1")).status == 201)
    }

    /// Casts more votes than are published individually; the remaining ones are published later.
    ///
    /// - Returns: the version after the last vote.
    private static func vote(_ guest: BellhopClient) async throws -> Int {
        #expect(try await guest.showPresence(id: "s1").status == 200)
        var version = 0
        for side in Array(repeating: [Bellhop.DJVote.down, .up], count: 15).joined() {
            version = try await guest.vote(side, on: "t1").value.version
        }
        return version
    }

    /// Submits three scores. The first is published at once, the others a second later.
    ///
    /// - Returns: the version after the last score.
    private static func score(_ backend: BellhopClient) async throws -> Int {
        var version = 0
        for _ in 0..<3 {
            version = try await backend.score(1, of: "ada").value.version
        }
        return version
    }

    @Test func periodicWork_continues_afterAClockStep() async throws {
        let directory = try TemporaryDirectory()
        let (wall, file) = (try WallClock(in: directory), directory.file("b.sqlite"))
        let service = try RunningBellhop(file, settings: ["EVENTS_KEPT_HOURS": "1"], through: wall.wrapper)
        try await Self.prepare(service)
        let eve = service.client("eve")
        let watchers = (
            votes: StreamListener(eve.events(topics: ["dj:s1"])),
            scores: StreamListener(eve.events(topics: ["leaderboard:c1"]))
        )
        for watcher in [watchers.votes, watchers.scores] { try await watcher.next("stream:ready") }
        var options = StoreOptions()
        options.access = .readOnly
        let log = try DatabaseStore.open(DatabaseURL("sqlite:\(file)"), options: options)
        defer { log.close() }
        let steps = [-7200, 0, 7200, 0].prefix(effort(quick: 1, full: 4, long: 4))
        for (round, ahead) in ([0] + steps).enumerated() {
            wall.step(to: Int64(ahead))
            // Waits once for the updates of both that are published a second later.
            let votes = try await Self.vote(service.client("guest\(round)"))
            let scores = try await Self.score(service.client(as: .service()))
            try await watchers.votes.follow("dj:queue_update", to: votes)
            try await watchers.scores.follow("leaderboard:update", to: scores)
            let queue = try await service.client("eve").getQueue(id: "s1").value
            let now = Int64(Date().timeIntervalSince1970) + Int64(ahead)
            #expect((now - 62...now + 2).contains(Int64(queue.updatedAt.timeIntervalSince1970)), "round \(round)")
            // Events have ages of hours by now, but the time is in doubt.
            let first = try log.read { try $0.integer("SELECT min(sequence) FROM events") }
            #expect(first == 1, "round \(round)")
        }
        let (status, text) = service.stop()
        #expect(status == 0)
        #expect(!text.contains("Upkeep failed"), "\(text)")
        let lines = text.split(separator: "\n").filter { $0.contains("The clock was set.") }
        #expect(lines.count == steps.count, "\(lines)")
    }
}

extension StreamListener {
    /// Waits for the named event with this version or a later one.
    fileprivate func follow(_ name: String, to version: Int) async throws {
        while try await next(name).json["version"].int ?? 0 < version {}
    }
}
