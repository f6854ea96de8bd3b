import BellhopClient
import Database
import Domain
import Push
import TestSupport
import Testing
import Values

@testable import Service

/// Outcomes that are stored after the lease of their attempt, when another replica has begun the next one. The model
/// `Tests/models/push.pml` found both cases.
@Suite(.timed) struct PushLeaseTests {
    /// Longer than an attempt is leased.
    private static let leaseSeconds: Int64 = 100

    /// Begins an attempt of the first message that waits, as a replica at the given time.
    private func begin(_ probe: PushProbe, at seconds: Int64) async throws -> PushDelivery {
        let now = probe.service.clock.now.adding(seconds: seconds)
        let settings = try #require(probe.service.app.runner.settings.push)
        let sources = PushSources(
            notification: NotificationsFeature.pushText, message: ConversationsFeature.unread(_:of:in:),
            preferences: PreferencesFeature.preferences(of:in:))
        let delivery = try await probe.service.app.store.write { db -> PushDelivery? in
            let numbers = try db.rows(
                "SELECT number FROM \(PushFeature.outbox, unscoped: .audit("a test")) WHERE state = 0"
            ) { try $0.integer(0) }
            let attempts = try PushFeature.begin(
                numbers, at: now, leasedUntil: now.adding(seconds: Self.leaseSeconds), settings.keys, in: db)
            return try attempts.first.flatMap { try PushFeature.delivery(of: $0, settings, sources, at: now, in: db) }
        }
        return try #require(delivery)
    }

    private func record(_ result: PushFeature.Result, of delivery: PushDelivery, _ probe: PushProbe) async throws {
        let now = probe.service.clock.now
        try await probe.service.app.store.write { try PushFeature.record(result, of: delivery, at: now, in: $0) }
    }

    private func postponed(_ probe: PushProbe, _ count: Int) async throws {
        let patience = Int64(try #require(probe.service.app.runner.settings.push).afterSeconds)
        // On PostgreSQL each message is due a little after its creation, also if it is not postponed.
        let isPostponed: SQL = "due_at = created_at + \(patience * 1_000_000) AND leased_until = 0"
        try await eventually("it is postponed") { try probe.rows(isPostponed) == count }
    }

    /// The phone has shown the number of the second attempt. If the late outcome of the first noted its own number, the
    /// next message with that number would be dropped, and the icon would stay wrong.
    @Test func lateOutcome_doesNotNoteItsNumber() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        let stream = try await probe.service.listen(as: .user("ada"))
        try await probe.notify()
        try await postponed(probe, 1)
        let first = try await begin(probe, at: 20)
        try await probe.notify()
        // Until then it is due before the first.
        try await postponed(probe, 1)
        let second = try await begin(probe, at: 20 + Self.leaseSeconds)
        #expect(first.attempt.number == second.attempt.number && second.message.badge == 2)
        try await record(.accepted, of: second, probe)
        try await record(.accepted, of: first, probe)
        let badge = try probe.service.app.store.read { db in
            try db.integer("SELECT badge FROM \(PushFeature.devices, unscoped: .audit("a test"))")
        }
        #expect(badge == 2)
        stream.close()
    }

    /// The count of attempts begins again after each accepted message, so two attempts can have the same count.
    @Test func lateOutcome_doesNotEndTheLeaseOfALaterAttempt() async throws {
        let probe = try PushProbe()
        let id = try await probe.service.converse("ana", "ben")
        try await probe.register("phone", of: "ben")
        let stream = try await probe.service.listen(as: .user("ben"))
        _ = try await probe.service.send("one", to: id, as: "ana")
        try await postponed(probe, 1)
        try await record(.interrupted, of: begin(probe, at: 20), probe)
        let late = try await begin(probe, at: 30)
        try await record(.accepted, of: begin(probe, at: 30 + Self.leaseSeconds), probe)
        _ = try await probe.service.send("two", to: id, as: "ana")
        try await postponed(probe, 1)
        let running = try await begin(probe, at: 40 + Self.leaseSeconds)
        #expect(running.attempt.attempt == late.attempt.attempt)
        try await record(.interrupted, of: late, probe)
        #expect(try probe.rows("leased_until > 0") == 1)
        stream.close()
    }
}
