import BellhopClient
import Database
import Logging
import PostgresServer
import TestSupport
import Testing
import Values

@testable import Service
@testable import Domain

/// Failures of the store: the answer is clear, and no write is half done.
@Suite(.timed) struct TroubleTests {
    /// The answers to errors of the store.
    @Test func storageFailure_isAnsweredWith503_andRetryAfter() throws {
        let busy = try #require(Failure(StoreBusy(queueDepth: 4096, retryAfterSeconds: 2)))
        #expect(busy.kind == .unavailable)
        #expect(busy.retryAfterSeconds == 2)
        // As an error of its own, and as the cause of a failed group commit.
        for error in [DatabaseError(.full, "no space left"), DatabaseError(.unavailable, "not stored", cause: .full)] {
            let full = try #require(Failure(error))
            #expect(full.kind == .unavailable)
            #expect(full.code == "storage.full")
            #expect(full.retryAfterSeconds == 30)
        }
        for code in [DatabaseError.Code.busy, .ioError, .interrupted, .unavailable, .cannotOpen] {
            #expect(try #require(Failure(DatabaseError(code, "trouble"))).kind == .unavailable, "\(code)")
        }
        #expect(try #require(Failure(DatabaseError(.notPermitted, "no"))).kind == .forbidden)
        // Internal errors are not disclosed to the caller.
        #expect(Failure(DatabaseError(.corrupt, "secret detail")) == nil)
        #expect(Failure(DatabaseError(.statement, "secret detail")) == nil)
    }

    /// On PostgreSQL, a second service is a replica.
    @Test(.disabled(if: PostgresServer.isTheStore, "no file is shared"))
    func secondService_onTheSameFile_isRefused() throws {
        let service = try TestService.start()
        let settings = try TestService.settings([
            "port": "0", "database": "sqlite:\(service.directory.file("test.sqlite"))", "jwtSecret": TestService.secret,
        ])
        let error = #expect(throws: DatabaseError.self) {
            _ = try App(settings: settings, logger: Logger(label: "test"), clock: .system)
        }
        #expect(error?.code == .locked)
        // `check` can read the database beside the running service.
        #expect(try Operations.check(settings).isEmpty)
    }

    @Test func damagedFile_stopsTheStart_withAClearLine() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(String(repeating: "U", count: 8192), to: "damaged.sqlite")
        let settings = try TestService.settings([
            "port": "0", "database": "sqlite:\(file)", "jwtSecret": TestService.secret,
        ])
        let error = #expect(throws: DatabaseError.self) {
            _ = try App(settings: settings, logger: Logger(label: "test"), clock: .system)
        }
        #expect(error?.code == .corrupt)
    }

    /// Events written while the clock was ahead do not block pruning of later events forever.
    @Test func clockThatRanAhead_doesNotStopPruning() async throws {
        let service = try TestService.start(["eventsKeptHours": "1"])
        func eventsCount() throws -> Int? {
            try service.app.store.read { try $0.integer("SELECT count(*) FROM \(EventLog.allEvents)") }
        }
        service.clock.advance(seconds: 3 * 86_400)
        try await service.publish("ahead", to: "u1")
        service.clock.advance(seconds: -3 * 86_400)
        try await service.publish("right", to: "u1")
        service.clock.advance(seconds: 3700)
        try await eventually("no event is older than an hour", step: { service.clock.advance(seconds: 60) }) {
            try eventsCount() == 0
        }
    }

    /// A failed write leaves no rows, counts or events.
    @Test func failedTransaction_storesNothing() async throws {
        let service = try TestService.start()
        let stream = try await service.listen(as: .user("u1"))
        let runner = service.app.runner
        let draft = NotificationDraft(
            userId: ID("u1"), eventId: nil, type: .visit, category: .visit, priority: .low, title: "T", message: "M")
        await #expect(throws: Failure.self) {
            try await runner.store.write { db in
                try runner.write(as: .system(tenant: "default"), in: db) { tx in
                    tx.record(.notificationRequested(draft))
                    try tx.settle()
                    throw Failure.notFound("anything")
                }
            }
        }
        try await service.publish("e1", to: "u1")
        #expect(try await stream.next("badges:update").json["bell"].int == 1)
        #expect(stream.received.filter { $0.name == "notification:created" }.count == 1)
        try service.expectExactCounts()
    }

    /// Work for many users, or reactions without an end, fail alone. The process and the other writes continue.
    @Test func transactionWithTooManyFacts_failsAlone() async throws {
        let service = try TestService.start()
        let runner = service.app.runner
        func record(_ count: Int) async throws {
            try await runner.store.write { db in
                try runner.write(as: .system(tenant: "default"), in: db) { tx in
                    for _ in 0..<count { tx.record(.badgesChanged(of: [])) }
                }
            }
        }
        try await record(Limits.factsMax)
        let failure = await #expect(throws: Failure.self) { try await record(Limits.factsMax + 1) }
        #expect(failure?.kind == .tooLarge && failure?.code == "request.too_many_effects")
        try await service.publish("e1", to: "u1")
        try service.expectExactCounts()
    }
}
