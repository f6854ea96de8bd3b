import BellhopClient
import Database
import Foundation
import Rows
import TestSupport
import Testing
import Values

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
        #expect(try await backend.put(shop, ["name": "The Cut Club", "timeZone": "UTC"]).status == 201)
        let challenge: JSON = [
            "name": "Most cuts", "startsAt": "2020-01-01T00:00:00Z", "endsAt": "2200-01-01T00:00:00Z", "mode": "add",
        ]
        #expect(try await backend.put("/v1/challenges/c1", challenge).status == 201)
        #expect(try await service.client(as: .staff(of: "s1")).put("\(shop)/dj", ["isActive": true]).status == 200)
        let ada = service.client(as: .user("ada"))
        #expect(try await ada.put("\(shop)/presence/me").status == 200)
        #expect(try await ada.post("\(shop)/dj/tracks", DJTests.track("t1")).status == 201)
    }

    /// Casts more votes than are published individually; the remaining ones are published later.
    ///
    /// - Returns: the version after the last vote.
    private static func vote(_ guest: BellhopClient) async throws -> Int {
        #expect(try await guest.put("\(shop)/presence/me").status == 200)
        var version = 0
        for side in Array(repeating: ["down", "up"], count: 15).joined() {
            let answer = try await DJTests.vote(guest, "t1", side)
            #expect(answer.status == 200, "\(answer.problem)")
            version = answer.json["version"].int ?? .max
        }
        return version
    }

    /// Submits three scores. The first is published at once, the others a second later.
    ///
    /// - Returns: the version after the last score.
    private static func score(_ backend: BellhopClient) async throws -> Int {
        var version = 0
        for _ in 0..<3 {
            let answer = try await backend.post(
                "/v1/challenges/c1/scores", ["userId": "ada", "score": 1],
                headers: ["Idempotency-Key": UUID().uuidString])
            #expect(answer.status == 200, "\(answer.problem)")
            version = answer.json["version"].int ?? .max
        }
        return version
    }

    @Test func periodicWork_continues_afterAClockStep() async throws {
        let directory = try TemporaryDirectory()
        let (wall, file) = (try WallClock(in: directory), directory.file("b.sqlite"))
        let service = try RunningBellhop(file, settings: ["EVENTS_KEPT_HOURS": "1"], through: wall.wrapper)
        try await Self.prepare(service)
        let eve = service.client(as: .user("eve"))
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
            let votes = try await Self.vote(service.client(as: .user("guest\(round)")))
            let scores = try await Self.score(service.client(as: .service()))
            try await watchers.votes.follow("dj:queue_update", to: votes)
            try await watchers.scores.follow("leaderboard:update", to: scores)
            let queue = try await service.client(as: .user("eve")).get("\(Self.shop)/queue").json
            let computedAt = try #require(queue["updatedAt"].string.flatMap { Timestamp(rfc3339: $0) })
            let now = Int64(Date().timeIntervalSince1970) + Int64(ahead)
            #expect((now - 62...now + 2).contains(computedAt.seconds), "round \(round)")
            // No events remain from the hours before and after.
            let (oldest, newest) = ((now - 3660) * 1_000_000, (now + 3660) * 1_000_000)
            try await eventually("the log is pruned in round \(round)") {
                try log.read {
                    try $0.integer("SELECT count(*) FROM events WHERE created_at < \(oldest) OR created_at > \(newest)")
                } == 0
            }
        }
        let (status, text) = service.stop()
        #expect(status == 0)
        #expect(!text.contains("Upkeep failed"), "\(text)")
    }
}

extension StreamListener {
    /// Waits for the named event with this version or a later one.
    fileprivate func follow(_ name: String, to version: Int) async throws {
        while try await next(name).json["version"].int ?? 0 < version {}
    }
}
