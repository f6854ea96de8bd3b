import BellhopClient
import Database
import Foundation
import PostgresServer
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// An erasure with two replicas on one PostgreSQL, which take turns.
@Suite(.timed) struct ErasureReplicasTests {
    @Test func allReplicasRefuseThePerson_andTheErasureEnds() async throws {
        let (first, second) = try TestService.startReplicas()
        let ada = TestService.Identity.user(ErasedTown.ada)
        let old = TestService.Identity.bearer(second.token(for: ada))
        for number in 0..<3 { try await first.publish("n\(number)", to: ErasedTown.ada) }
        for visibility in ["public", "followers"] as [JSON] {
            let post = try await second.call(
                "POST", "/v1/posts", as: ada, ["text": "a post", "visibility": visibility])
            #expect(post.status == 201)
        }
        let own = try await second.listen(as: old)
        let others = try await second.listen(as: .user("eve"))
        first.clock.advance(seconds: 1)
        #expect(try await first.call("DELETE", "/v1/users/\(ErasedTown.ada)", as: .service()).status == 202)
        #expect(try await own.next("stream:closing").json["reason"].string == "revoked")
        try await eventually("the other replica refuses the token") {
            try await second.call("GET", "/v1/badges", as: old).status == 401
        }
        try await eventually("the erasure ends", step: { first.clock.advance(seconds: 1) }) {
            let answer = try await second.call("GET", "/v1/users/\(ErasedTown.ada)/erasure", as: .service())
            return answer.json["state"].string == "done"
        }
        for (table, rows) in try ErasedTown.rows(of: "default", in: first) {
            #expect(!rows.contains { $0.contains(ErasedTown.ada) }, "\(table)")
        }
        try await second.publish("for-eve", to: "eve")
        _ = try await others.next("notification:created")
        #expect(!others.received.contains { $0.name == "stream:resync" })
        try first.expectExactCounts()
    }

    /// A replica cannot reach the database while a user is erased, and until the log no longer names the user.
    @Test func replicaThatWasCutOff_refusesThePerson_andTellsItsStreams() async throws {
        let partition = try PartitionProxy(to: PostgresServer.shared().port)
        defer { partition.stop() }
        let (first, second) = try TestService.startReplicas(
            ["databaseTimeoutSeconds": "60"], secondThrough: partition)
        let ada = ErasedTown.ada
        let old = TestService.Identity.bearer(second.token(for: .user(ada)))
        #expect(try await first.call("PUT", "/v1/users/\(ada)/followers/me", as: .user("fay")).isSuccess)
        let own = try await second.listen(as: old)
        // A user that an event names, a follower, and a user of another tenant.
        let others: [TestService.Identity] = [.user("ben"), .user("fay"), .user("eve", tenant: "other")]
        var streams: [StreamListener] = []
        for other in others { streams.append(try await second.listen(as: other)) }
        // The last event that the replica publishes does not concern the user.
        let plain: JSON = ["event": "plain", "to": ["user:eve"], "data": [:]]
        #expect(try await first.call("POST", "/v1/publish", as: .service(tenant: "other"), plain).isSuccess)
        _ = try await streams[2].next("plain")
        partition.cut()
        let tidings: JSON = ["event": "tidings", "to": ["user:ben"], "data": ["who": .string(ada)]]
        #expect(try await first.call("POST", "/v1/publish", as: .service(), tidings).isSuccess)
        let post: JSON = ["text": "a post", "visibility": "followers"]
        #expect(try await first.call("POST", "/v1/posts", as: .user(ada), post).status == 201)
        first.clock.advance(seconds: 1)
        #expect(try await first.call("DELETE", "/v1/users/\(ada)", as: .service()).status == 202)
        try await eventually("the erasure ends", step: { first.clock.advance(seconds: 1) }) {
            let answer = try await first.call("GET", "/v1/users/\(ada)/erasure", as: .service())
            return answer.json["state"].string == "done"
        }
        partition.heal()
        // What a replica knows may be five seconds old. `Tests/crash/behind.py` checks the first answer later.
        try await eventually("the person is refused") {
            try await second.call("GET", "/v1/badges", as: old).refusal == "401 invalid_token.revoked"
        }
        _ = try await own.next("stream:closing")
        for (other, stream) in zip(others, streams) {
            _ = try await stream.next("stream:closing")
            let again = try await second.listen(as: other, lastEventID: stream.lastEventID)
            if other.subject == "eve" {
                #expect(try await second.call("POST", "/v1/publish", as: .service(tenant: "other"), plain).isSuccess)
                _ = try await again.next("plain")
                #expect(!again.received.contains { $0.name == "stream:resync" })
            } else {
                _ = try await again.next("stream:resync")
            }
            #expect(!(stream.received + again.received).contains { $0.data.contains(ada) }, "\(other.subject)")
        }
    }

    // MARK: The pauses of a round

    private static func row(_ service: TestService) throws -> String {
        try ErasedTown.rows(of: "default", in: service)["erasures"]?.first ?? ""
    }

    private static func isDone(_ service: TestService) async throws -> Bool {
        let answer = try await service.call("GET", "/v1/users/\(ErasedTown.ada)/erasure", as: .service())
        return answer.json["state"].string == "done"
    }

    /// Lets a second pass, and waits until a replica has looked at the erasure.
    private static func passSecond(_ service: TestService, step: Int64 = 0) async throws {
        let before = try row(service)
        service.clock.advance(seconds: 1)
        service.clock.step(seconds: step)
        // Another replica may have ended it meanwhile.
        try await eventually("a replica looks at the erasure") {
            if try row(service) != before { return true }
            return try await isDone(service)
        }
    }

    /// The clock is set forward each second. The replicas measure the pauses by their uptime.
    @Test func clockThatIsSet_endsNoPause() async throws {
        let (first, _) = try TestService.startReplicas()
        try await first.publish("n1", to: ErasedTown.ada)
        #expect(try await first.call("DELETE", "/v1/users/\(ErasedTown.ada)", as: .service()).status == 202)
        var seconds: Int64 = 0
        while try await !Self.isDone(first) {
            try await Self.passSecond(first, step: 60)
            seconds += 1
        }
        #expect(seconds >= ErasureLimits.closingPauseSeconds + ErasureLimits.logPauseSeconds)
    }

    /// A transaction began before the round of an erasure, and does not know of it. The round waits for it, and it is
    /// repeated once it knows.
    @Test func transactionOfBefore_isAwaited_andRefused() async throws {
        let (first, second) = try TestService.startReplicas()
        // The first write for a tenant stores its row, for which others would wait.
        try await first.publish("n1", to: ErasedTown.ada)
        let (begun, released) = (Gate(), Gate())
        let outcome = Locked<Result<Void, any Error>?>(nil)
        let runner = second.app.runner
        try second.app.store.write { db in
            try runner.write(as: .system(tenant: "default"), in: db) { tx in
                _ = try tx.db.integer("SELECT 1")
                begun.open()
                released.wait()
                tx.publish("tidings", audience: ["user:eve"], data: Array(#"{"who":"\#(ErasedTown.ada)"}"#.utf8))
            }
        } completion: { result in
            outcome.withLock { $0 = result }
        }
        begun.wait()
        #expect(try await first.call("DELETE", "/v1/users/\(ErasedTown.ada)", as: .service()).status == 202)
        for _ in 0..<10 { try await Self.passSecond(first) }
        #expect(try await !Self.isDone(first))
        #expect(try Self.row(first).contains("step: \(ErasureFeature.closingStep)"))
        runner.gate.lookAgain()
        released.open()
        try await eventually("it is refused") { outcome.withLock { $0 } != nil }
        #expect(throws: Failure.self) { try outcome.withLock { $0 }?.get() }
        try await eventually("the erasure ends", step: { first.clock.advance(seconds: 1) }) {
            try await Self.isDone(first)
        }
        let events = try ErasedTown.rows(of: "default", in: first)["events"] ?? []
        #expect(!events.contains { $0.contains("tidings") })
    }

    /// The transaction that stores counts of requests waits for a lock while the last pass begins. Its rows would stay.
    @Test func countsOfBefore_areForgotten() async throws {
        let (first, second) = try TestService.startReplicas()
        let ada = Caller.system(tenant: "default", named: ErasedTown.ada)
        let (service, isClosing) = (second.app.runner, Locked(false))
        let known = service.reader
        let reader = TransactionReader(
            store: known.store, clock: known.clock, settings: known.settings, log: known.log,
            positions: known.positions, reactions: [], tables: [],
            limiter: RateLimiter(limitUser: 20, limitService: 20, shares: TenantShares(known.settings)))
        for _ in 0..<5 { _ = reader.limiter.bucket(of: ada, at: known.clock.now())?.take(at: known.clock.now()) }
        let runner = TransactionRunner(
            reader: reader, tenants: service.tenants, appendEvents: service.appendEvents,
            appendNotes: service.appendNotes, gate: ErasureGate { _ in isClosing.withLock { $0 } ? [ada.owner] : [] })
        let (held, released) = (Gate(), Gate())
        try first.app.store.write { db in
            try db.run("LOCK TABLE rate_counts IN EXCLUSIVE MODE")
            held.open()
            released.wait()
        } completion: { _ in
        }
        held.wait()
        let shared = Locked<Result<Void, any Error>?>(nil)
        Thread.detachNewThread {
            let result = Result { try runner.shareRates() }
            shared.withLock { $0 = result }
        }
        let (server, name) = (try PostgresServer.shared(), try #require(first.database.name))
        let waiting =
            "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'rate_counts'"
        try await eventually("it waits") { try server.run(["\(waiting) AND NOT granted"], in: name) == "1" }
        isClosing.withLock { $0 = true }
        runner.gate.lookAgain()
        released.open()
        try await eventually("it ends") { shared.withLock { $0 } != nil }
        try shared.withLock { $0 }?.get()
        let isCounted = try first.app.store.read { db in
            try db.exists(
                "SELECT 1 FROM \(RateSharing.counts, unscoped: .audit("a test")) WHERE user_id = \(ErasedTown.ada)")
        }
        #expect(!isCounted)
    }
}
