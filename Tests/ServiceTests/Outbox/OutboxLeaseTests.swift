import BellhopClient
import Database
import Push
import TestSupport
import Testing
import Values

@testable import Service

/// Outcomes that are stored after the lease of their attempt, when another replica has begun the next one, and clocks
/// that are set back while an attempt runs. The model `Tests/models/outbox.pml` and ``OutboxSimulation`` found them.
@Suite(.timed) struct OutboxLeaseTests {
    /// Longer than an attempt is leased.
    private static let leaseSeconds: Int64 = 100

    /// Begins an attempt of the first message that waits, as a replica at the given time.
    private func begin(_ probe: PushProbe, at seconds: Int64) async throws -> PushDelivery {
        try #require(try await beginAll(probe, at: seconds).first)
    }

    /// Begins the attempts of all messages that may be sent.
    private func beginAll(_ probe: PushProbe, at seconds: Int64) async throws -> [PushDelivery] {
        let now = probe.service.clock.now.adding(seconds: seconds)
        return try await probe.service.app.store.write { db in
            try Outbox.routes(in: db).flatMap { route -> [any OutboxDelivery] in
                let channel = try probe.channel(route.hasPrefix("webpush") ? "webpush" : "apns")
                let due = try Outbox.due(route, at: now, except: [], nil, limit: 8, in: db)
                guard !due.isEmpty else { return [] }
                return try Outbox.begin(due, by: channel, lease: .random(in: 1...1 << 40), at: now, in: db)
            }.compactMap { $0 as? PushDelivery }
        }
    }

    private func record(_ result: OutboxResult, of delivery: PushDelivery, _ probe: PushProbe) async throws {
        let (now, channel) = (probe.service.clock.now, try probe.channel(delivery.target.provider.name))
        try await probe.service.app.store.write {
            try Outbox.record([(delivery, result)], of: channel, at: now, in: $0)
        }
    }

    private func correct(_ probe: PushProbe) async throws {
        let now = probe.service.clock.now
        try await probe.service.app.store.write { try Outbox.correct(at: now, in: $0) }
    }

    private func postponed(_ probe: PushProbe, _ count: Int) async throws {
        let patience = Int64(try #require(probe.service.app.runner.settings.push).afterSeconds)
        // On PostgreSQL each message is due a little after its creation, also if it is not postponed.
        let isPostponed: SQL = "due_at = created_at + \(patience * 1_000_000) AND lease = 0 AND state = 0"
        // The sender does not look at a lane whose attempt runs. It postpones the messages when the attempt has ended.
        try await probe.service.app.store.write { db in
            _ = try db.run(
                """
                UPDATE \(Outbox.messages, unscoped: .audit("a test")) SET due_at = patient_until
                WHERE due_at < patient_until AND state = 0 AND lane IN (
                    SELECT lane FROM \(Outbox.lanes, unscoped: .audit("a test")) WHERE lease <> 0)
                """)
        }
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

    /// Ben has a stream and a phone, and the message "one" waits until he had time to see it.
    private func message(_ probe: PushProbe) async throws -> (conversation: String, stream: StreamListener) {
        let id = try await probe.service.converse("ana", "ben")
        try await probe.register("phone", of: "ben")
        let stream = try await probe.service.listen(as: .user("ben"))
        _ = try await probe.service.send("one", to: id, as: "ana")
        try await postponed(probe, 1)
        return (id, stream)
    }

    /// The count of attempts begins again after each accepted message, so two attempts can have the same count.
    @Test func lateOutcome_doesNotEndTheLeaseOfALaterAttempt() async throws {
        let probe = try PushProbe()
        let (id, stream) = try await message(probe)
        try await record(.interrupted, of: begin(probe, at: 20), probe)
        let late = try await begin(probe, at: 30)
        try await record(.accepted, of: begin(probe, at: 30 + Self.leaseSeconds), probe)
        _ = try await probe.service.send("two", to: id, as: "ana")
        try await postponed(probe, 1)
        let running = try await begin(probe, at: 40 + Self.leaseSeconds)
        #expect(running.attempt.number == late.attempt.number)
        try await record(.interrupted, of: late, probe)
        #expect(try probe.rows("lease <> 0") == 1)
        stream.close()
    }

    /// Ben has a stream, and reads "one" while it is on its way to his browser.
    ///
    /// - Returns: The conversation, the stream and the attempt.
    private func readOnItsWay(_ probe: PushProbe) async throws -> (String, StreamListener, PushDelivery) {
        let id = try await probe.service.converse("ana", "ben")
        let browser = try await probe.service.call(
            "PUT", "/v1/devices/browser", as: .user("ben"), PushProbe.subscription())
        #expect(browser.status == 201)
        let stream = try await probe.service.listen(as: .user("ben"))
        _ = try await probe.service.send("one", to: id, as: "ana")
        try await postponed(probe, 1)
        let one = try await begin(probe, at: 20)
        let read = try await probe.service.call(
            "PUT", "/v1/conversations/\(id)/read-position", as: .user("ben"), #"{"sequence":1}"#)
        #expect(read.status == 200)
        return (id, stream, one)
    }

    /// The withdrawal of "one" waits for the browser's next alert. "two" must take it along, or the alert after "two"
    /// would remove "two" from the screen. So "two" waits for the outcome of "one".
    @Test func alert_waitsForTheRunningAttempt_andTakesItsWithdrawalAlong() async throws {
        let probe = try PushProbe()
        let (id, stream, one) = try await readOnItsWay(probe)
        _ = try await probe.service.send("two", to: id, as: "ana")
        try await postponed(probe, 1)
        #expect(try await beginAll(probe, at: 30).isEmpty)
        try await record(.accepted, of: one, probe)
        let two = try await begin(probe, at: 41)
        #expect(two.message.withdrawn == ["conversation:\(id)"])
        try await record(.accepted, of: two, probe)
        try await probe.notify("ben")
        try await postponed(probe, 1)
        #expect(try await begin(probe, at: 50).message.withdrawn.isEmpty)
        stream.close()
    }

    /// A message that comes while the one before is on its way moves its row to a later time. Others still wait.
    @Test func runningAttempt_isNotOvertaken_byAnotherSubject() async throws {
        let probe = try PushProbe()
        let (id, stream) = try await message(probe)
        _ = try await begin(probe, at: 20)
        try await probe.notify("ben")
        try await postponed(probe, 1)
        // The notification is due, and waits for the message, which is now due after it.
        probe.service.clock.advance(seconds: 11)
        _ = try await probe.service.send("two", to: id, as: "ana")
        #expect(try await beginAll(probe, at: 5).isEmpty)
        #expect(try probe.rows("type = 'notification' AND attempts = 0") == 1)
        stream.close()
    }

    // MARK: Clocks

    /// A service whose clock is an hour ahead until it is set back.
    private func ahead(
        _ platform: String, _ body: (PushProbe, PushDelivery, _ notification: String) async throws -> Void
    ) async throws {
        let probe = try PushProbe()
        // The stream begins later, because its token would expire meanwhile.
        probe.service.clock.advance(seconds: 3600)
        if platform == "webpush" {
            _ = try await probe.service.call("PUT", "/v1/devices/browser", as: .user("ada"), PushProbe.subscription())
        } else {
            try await probe.register("phone", platform)
        }
        let stream = try await probe.service.listen(as: .user("ada"))
        let id = try await probe.notify()
        try await postponed(probe, 1)
        try await body(probe, begin(probe, at: 20), id)
        stream.close()
    }

    private func setBack(_ probe: PushProbe) async throws {
        probe.service.clock.advance(seconds: -3600)
        try await correct(probe)
    }

    /// If the upkeep ended the lease of an attempt on its way, its message would be sent again.
    @Test func clockSetBack_doesNotRepeatAMessageOnItsWay() async throws {
        try await ahead("apns") { probe, delivery, _ in
            try await setBack(probe)
            #expect(try await beginAll(probe, at: 20).isEmpty)
            try await record(.accepted, of: delivery, probe)
            #expect(try probe.rows("state = 1") == 1)
        }
    }

    /// A sender that was killed does not delay a message until the time of the former clock.
    @Test func clockSetBack_endsTheLeaseOfAKilledSender() async throws {
        try await ahead("apns") { probe, delivery, _ in
            try await setBack(probe)
            probe.service.clock.advance(seconds: Self.leaseSeconds)
            try await correct(probe)
            // The sender of the service may be faster.
            _ = try await beginAll(probe, at: 20)
            #expect(try probe.rows("number = \(delivery.attempt.number) AND (attempts = 2 OR state = 1)") == 1)
        }
    }

    /// A browser must show something for each message, so its withdrawals wait for the next alert.
    @Test func clockSetBack_sendsNoWithdrawalAloneToABrowser() async throws {
        try await ahead("webpush") { probe, delivery, id in
            try await record(.accepted, of: delivery, probe)
            try await probe.see(id)
            try await setBack(probe)
            #expect(try probe.rows("type = 'withdrawal'") == 1)
            #expect(try await beginAll(probe, at: 20).isEmpty)
        }
    }

    /// "one" was written while the clock was three days ahead. A message that came since then has extended the row until
    /// a day after the present time.
    @Test func clockSetBack_doesNotExpireAMessageThatWasExtended() async throws {
        let probe = try PushProbe()
        let (_, stream) = try await message(probe)
        let (now, step) = (probe.service.clock.now, Int64(3 * 86_400_000_000))
        try await probe.service.app.store.write { db in
            _ = try db.run(
                """
                UPDATE \(Outbox.messages, unscoped: .audit("a test"))
                SET created_at = created_at + \(step), due_at = due_at + \(step)
                """)
            _ = try db.run(
                """
                UPDATE \(Outbox.lanes, unscoped: .audit("a test"))
                SET waits_from = waits_from + \(step), next_at = next_at + \(step)
                """)
            try Outbox.correct(at: now, in: db)
            _ = try Outbox.prune(AgeTime(now), at: now, in: db)
        }
        #expect(try probe.rows("gives_up_at > \(now) AND due_at <= \(now.adding(seconds: 60))") == 1)
        stream.close()
    }

    /// The withdrawal of "one" was written while the clock was ahead, so it waits longer than "two", which replaces "one".
    @Test func withdrawalThatWaitsBehindTheNextMessage_doesNotRemoveIt() async throws {
        let probe = try PushProbe()
        let (id, stream) = try await message(probe)
        let one = try await begin(probe, at: 20)
        let read = try await probe.service.call(
            "PUT", "/v1/conversations/\(id)/read-position", as: .user("ben"), #"{"sequence":1}"#)
        #expect(read.status == 200)
        let late = probe.service.clock.now.adding(seconds: 3600)
        try await probe.service.app.store.write { db in
            _ = try db.run(
                """
                UPDATE \(Outbox.messages, unscoped: .audit("a test")) SET due_at = \(late) WHERE type = 'withdrawal'
                """)
        }
        try await record(.accepted, of: one, probe)
        // Until then "two" waits for it.
        try await eventually("the number without \"one\" was sent") { try probe.rows("type = 'badge'") == 0 }
        _ = try await probe.service.send("two", to: id, as: "ana")
        try await postponed(probe, 1)
        try await record(.accepted, of: begin(probe, at: 40), probe)
        #expect(try probe.rows("type = 'withdrawal'") == 0)
        #expect(try probe.rows("type = 'message' AND state = 1") == 1)
        stream.close()
    }

    /// The pause between two numbers is measured from the time at which the phone was sent the last one.
    @Test func clockSetBack_delaysNoNumber() async throws {
        try await ahead("apns") { probe, delivery, id in
            try await record(.accepted, of: delivery, probe)
            try await setBack(probe)
            try await probe.see(id)
            let latest = probe.service.clock.now.adding(seconds: PushOutboxLimits.badgePauseSeconds)
            #expect(try probe.rows("type = 'badge' AND due_at > \(latest)") == 0)
        }
    }
}
