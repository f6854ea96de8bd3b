import BellhopClient
import Database
import Foundation
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// Receivers that are down, slow, redirecting, misbehaving or private, and a service that is killed. No webhook is
/// lost, other users do not wait, and the order of a user's webhooks is kept.
@Suite(.timed) struct WebhookTroubleTests {
    @Test func failingUser_isRetriedInOrder_withoutDelayingOthers() async throws {
        let failures = Locked(3)
        let probe = try WebhookProbe { delivery in
            guard String(decoding: delivery.body, as: UTF8.self).contains("ada") else { return .status(200) }
            let isFailing = failures.withLock { count in
                count -= 1
                return count >= 0
            }
            return .status(isFailing ? 500 : 200)
        }
        let first = try await probe.notify("ada")
        let second = try await probe.notify("ada")
        let other = try await probe.notify("ben")
        probe.passTime()
        _ = try await probe.deliveries(2)
        try await probe.settled()
        #expect(Set(try probe.received.map(\.subject)) == [first, other])
        try await eventually("all webhooks arrive", step: { probe.service.clock.advance(seconds: 1) }) {
            try probe.received.filter { $0.user == "ada" }.count >= 5
        }
        let adas = try probe.received.filter { $0.user == "ada" }
        #expect(adas.map(\.subject) == [first, first, first, first, second])
        // The same webhook each time, with a signature for the current time.
        #expect(Set(adas.prefix(4).map(\.id)).count == 1)
        #expect(Set(adas.prefix(4).map(\.timestamp)).count == 4)
        for sent in adas { #expect(try sent.signatures == [sent.signature(by: WebhookProbe.secrets[0])]) }
    }

    @Test func webhookOlderThanADay_isDead_andCanBeRetried() async throws {
        let up = Gate()
        let probe = try WebhookProbe { _ in .status(up.isOpen ? 200 : 410) }
        let id = try await probe.notify()
        probe.passTime()
        _ = try await probe.deliveries(1)
        try await eventually("the webhook is dead", step: { probe.service.clock.advance(seconds: 3600) }) {
            try await !probe.dead().isEmpty
        }
        let dead = try #require(try await probe.dead().first)
        #expect(dead.type == .notificationUnreached)
        #expect(dead.subjectId == id)
        #expect(dead.userId == "ada")
        #expect(dead.reason == .expired)
        #expect(dead.lastError == "status_410")
        #expect(dead.attempts > 1)
        #expect(try await probe.state()["dead"] == 1)
        up.open()
        let before = try probe.received.count
        let backend = probe.service.client(as: .service())
        #expect(try await backend.retryDeadWebhook(id: dead.id).status == 202)
        #expect(try await probe.deliveries(before + 1, advancing: 1).last?.id == dead.id)
        #expect(try await status(of: await backend.retryDeadWebhook(id: dead.id)) == 404)
        #expect(try await probe.dead().isEmpty)
        #expect(try probe.rows("state = 0 AND gives_up_at - due_at <> 86400000000") == 0)
    }

    /// A notification that the user has seen in the meantime is not reported.
    @Test func deadWebhook_isRemoved_whenItsNotificationIsSeen() async throws {
        let up = Gate()
        let probe = try WebhookProbe { _ in up.isOpen ? .status(200) : .nothing }
        let id = try await probe.notify()
        probe.passTime()
        try await eventually("the webhook is dead", step: { probe.service.clock.advance(seconds: 3600) }) {
            try await !probe.dead().isEmpty
        }
        let before = try probe.received.count
        up.open()
        try await probe.mark(id)
        #expect(try await probe.dead().isEmpty)
        // The webhook was attempted and may have arrived, so it is withdrawn.
        #expect(try await probe.deliveries(before + 1, advancing: 1).last?.type == "notification.withdrawn")
    }

    @Test func redirect_isAFailure_andNotFollowed() async throws {
        let target = try ScriptedReceiver { _ in .status(200) }
        defer { target.stop() }
        let probe = try WebhookProbe { _ in .status(307, headers: ["Location: \(target.url)"]) }
        try await probe.notify()
        probe.passTime()
        _ = try await probe.deliveries(1)
        try await probe.settled()
        #expect(try await probe.state()["lastError"] == "status_307")
        #expect(target.connections.all.isEmpty)
    }

    @Test func retryAfter_isHeeded_withinBounds() async throws {
        let asked = Locked(600)
        let probe = try WebhookProbe { _ in
            .status(429, headers: ["Retry-After: \(asked.withLock { $0 })"])
        }
        try await probe.notify()
        probe.passTime()
        _ = try await probe.deliveries(1)
        try await probe.settled()
        let now = probe.service.clock.now
        #expect(try probe.lanes("next_at = \(now.adding(seconds: 600))") == 1)
        asked.withLock { $0 = 100_000_000 }
        probe.service.clock.advance(seconds: 600)
        _ = try await probe.deliveries(2)
        try await probe.settled()
        #expect(try probe.lanes("next_at = \(now.adding(seconds: 4200))") == 1)
    }

    /// A receiver that hangs for one user delays only that user's webhooks, and no request of the service.
    @Test func silence_delaysItsUserOnly_byTheTimeout() async throws {
        let speaking = Gate()
        let probe = try WebhookProbe(["webhookTimeoutSeconds": "1"]) { delivery in
            let isAdas = String(decoding: delivery.body, as: UTF8.self).contains("ada")
            return isAdas && !speaking.isOpen ? .never : .status(200)
        }
        let adas = try await probe.notify("ada")
        let bens = try await probe.notify("ben")
        probe.passTime()
        #expect(Set(try await probe.deliveries(2).map(\.subject)) == [adas, bens])
        try await probe.settled()
        #expect(try await probe.state()["lastError"] == "timeout")
        speaking.open()
        probe.service.clock.advance(seconds: 20)
        let sent = try await probe.deliveries(3)
        #expect(sent[2].subject == adas)
        #expect(sent[2].id == sent.first { $0.subject == adas }?.id)
    }

    /// The URL has a valid name that resolves to this machine.
    @Test func privateReceiver_isNotConnectedTo() async throws {
        let receiver = try ScriptedReceiver { _ in .status(200) }
        defer { receiver.stop() }
        let probe = try WebhookProbe(
            ["webhookURL": "https://localhost:\(receiver.port)/hooks", "webhookPrivate": "false"])
        try await probe.notify()
        probe.passTime()
        try await eventually("the webhook is attempted") { try await probe.state()["lastError"].string != nil }
        #expect(try await probe.state()["lastError"] == "private_address")
        #expect(receiver.connections.all.isEmpty)
    }

    /// After failures, the sender makes one attempt every few seconds. The first success releases all webhooks.
    @Test func unavailableReceiver_isNotFlooded() async throws {
        let up = Gate()
        let probe = try WebhookProbe { _ in .status(up.isOpen ? 200 : 502) }
        for user in 0..<40 { try await probe.notify("u\(user)") }
        probe.passTime()
        _ = try await probe.deliveries(OutboxLimits.failuresMax)
        try await probe.settled()
        // Only attempts that were already in flight when the sender noticed the failures.
        let tried = try probe.received.count
        #expect(tried < OutboxLimits.failuresMax * 2)
        func downLine() async throws -> Substring? {
            try await probe.service.anyone.get("/metrics").text.split(separator: "\n").first {
                $0.hasPrefix("bellhop_outbox_routes_down{")
            }
        }
        #expect(try await downLine() == #"bellhop_outbox_routes_down{channel="webhook"} 1"#)
        up.open()
        probe.service.clock.advance(seconds: 6)
        try await eventually("all webhooks arrive", step: { probe.service.clock.advance(seconds: 1) }) {
            try probe.rows("state = 0") == 0
        }
        #expect(Set(try probe.received.suffix(40).map(\.user)).count == 40)
        #expect(try await downLine() == #"bellhop_outbox_routes_down{channel="webhook"} 0"#)
    }

    /// The receiver fails for many users. The webhook of another user waits for a few attempts, not for all of theirs.
    @Test func manyFailingUsers_doNotHoldUpAnother() async throws {
        let probe = try WebhookProbe { delivery in
            .status(String(decoding: delivery.body, as: UTF8.self).contains("failing") ? 503 : 200)
        }
        for user in 0..<40 { try await probe.notify("failing-\(user)") }
        probe.passTime()
        _ = try await probe.deliveries(OutboxLimits.failuresMax)
        try await probe.settled()
        try await probe.notify("healthy")
        let before = try probe.received.count
        probe.passTime()
        try await eventually("the other webhook arrives", step: { probe.service.clock.advance(seconds: 1) }) {
            try probe.received.contains { $0.user == "healthy" }
        }
        let attempts = try #require(try probe.received.firstIndex { $0.user == "healthy" }) - before
        #expect(attempts <= 6)
    }

    // MARK: Restarts and crashes

    @Test func waitingWebhooks_surviveARestart() async throws {
        let up = Gate()
        let probe = try WebhookProbe(["shutdownSeconds": "1"]) { _ in
            up.isOpen ? .status(200) : .never
        }
        let first = try await probe.notify()
        probe.passTime()
        _ = try await probe.deliveries(1)
        let second = try await probe.notify()
        probe.passTime()
        // The restart interrupts the request of the first webhook.
        up.open()
        try await probe.service.restart()
        // If the stop has no time to store that it interrupted the request, its lease must end first.
        let sent = try await probe.deliveries(3, advancing: 1)
        #expect(sent.map(\.subject) == [first, first, second])
        #expect(sent[0].id == sent[1].id)
    }

    /// A service that stops waits for the answers to its requests, so nothing is sent twice.
    @Test func answerDuringTheStop_isStored() async throws {
        let answers = Gate()
        let probe = try WebhookProbe { _ in
            answers.wait()
            return .status(200)
        }
        let id = try await probe.notify()
        probe.passTime()
        try await eventually("the request is there") { !probe.receiver.deliveries.all.isEmpty }
        let sender = try #require(probe.service.app.outbox)
        let opening = Task {
            try await eventually("the service stops") { sender.isDraining }
            answers.open()
        }
        try await probe.service.restart()
        try await opening.value
        #expect(try probe.rows("subject = \(id) AND state = 1 AND attempts = 1") == 1)
        #expect(probe.receiver.deliveries.all.count == 1)
    }

    /// The receiver refuses the webhooks of many users. That says nothing about the webhooks of others.
    @Test func refusedWebhooks_delayNoOtherUser() async throws {
        let probe = try WebhookProbe(["webhookAtOnce": "true"]) { delivery in
            .status(String(decoding: delivery.body, as: UTF8.self).contains("bad-") ? 422 : 200)
        }
        for user in 0..<(OutboxLimits.failuresMax + 4) { try await probe.notify("bad-\(user)") }
        // On PostgreSQL, other replicas could say that the users have streams.
        probe.service.clock.advance(seconds: OutboxLimits.presenceSeconds)
        _ = try await probe.deliveries(OutboxLimits.failuresMax + 4)
        try await probe.settled()
        let id = try await probe.notify("good")
        if probe.service.app.store.engine == .postgreSQL {
            probe.service.clock.advance(seconds: OutboxLimits.presenceSeconds)
        }
        try await eventually("it arrives without a pause") { try probe.received.contains { $0.subject == id } }
    }

    /// The service is killed between the receiver's answer and its own record of it. The webhook is sent once more
    /// with the same id, and then no more.
    @Test func killedService_sendsAgain_byTheSameId() async throws {
        let hasArrived = Gate()
        let (isFirst, gate) = (Locked(true), Gate())
        let receiver = try ScriptedReceiver { _ in
            let isHeld = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            if isHeld {
                hasArrived.open()
                gate.wait()
            }
            return .status(200)
        }
        defer { receiver.stop() }
        let directory = try TemporaryDirectory()
        let settings = [
            "WEBHOOK_URL": receiver.url, "WEBHOOK_SECRETS": WebhookProbe.secrets[0], "WEBHOOK_PRIVATE": "true",
            "WEBHOOK_AFTER_SECONDS": "0",
        ]
        let killed = try RunningBellhop(directory.file("killed.sqlite"), settings: settings)
        let draft = NotificationsTests.draft("visit", .high, to: "ada")
        #expect(try await killed.client(as: .service()).postNotification(draft).status == 201)
        try await eventually("the webhook arrives") { hasArrived.isOpen }
        killed.process.send(SIGKILL)
        _ = killed.process.finish()
        gate.open()
        let again = try RunningBellhop(directory.file("killed.sqlite"), settings: settings)
        try await eventually("the webhook arrives again") { receiver.deliveries.all.count >= 2 }
        let backend = again.client(as: .service())
        try await eventually("the success is stored") { try await backend.getWebhooks().value.waiting == 0 }
        #expect(Set(receiver.deliveries.all.map { $0.headers["webhook-id"] }).count == 1)
        #expect(receiver.deliveries.all.count == 2)
        _ = again.stop()
    }

    /// A webhook that a killed replica had started is sent by another replica after the lease expires, and not
    /// before.
    @Test func replicas_sendEachOnce_andTheAttemptsOfAKilledOne() async throws {
        let receiver = try ScriptedReceiver { _ in .status(200) }
        defer { receiver.stop() }
        let (a, b) = try TestService.startReplicas(WebhookProbe.settings(receiver))
        for number in 0..<30 {
            let draft = NotificationsTests.draft("visit", .high, to: "u\(number % 3)")
            #expect(try await (number % 2 == 0 ? a : b).notify(draft).status == 201)
        }
        // A third replica, which no longer exists, had started one of them.
        let now = a.clock.now
        try await a.app.store.write { db in
            try db.run(
                """
                UPDATE \(Outbox.messages, unscoped: .audit("a test")) SET due_at = \(now), attempts = 1, lease = 1
                WHERE number = (SELECT min(number) FROM outbox)
                """)
            try db.run(
                """
                UPDATE \(Outbox.lanes, unscoped: .audit("a test"))
                SET next_at = \(now.adding(seconds: 60)), waits_from = \(now), lease = 1
                WHERE lane = (SELECT lane FROM \(Outbox.messages, unscoped: .audit("a test")) WHERE lease = 1)
                """)
        }
        a.clock.advance(seconds: 31)
        try await eventually("the webhooks without a lease arrive") { receiver.deliveries.all.count >= 20 }
        #expect(try !receiver.deliveries.all.map(ReceivedWebhook.init).map(\.user).contains("u0"))
        a.clock.advance(seconds: 31)
        try await eventually("all webhooks arrive") { receiver.deliveries.all.count >= 30 }
        let sent = try receiver.deliveries.all.map(ReceivedWebhook.init)
        #expect(Set(sent.map(\.id)).count == 30)
        #expect(sent.count == 30)
        for user in ["u0", "u1", "u2"] {
            let subjects = sent.filter { $0.user == user }.map(\.subject)
            #expect(subjects == subjects.sorted(), "\(user)")
        }
    }

    // MARK: Bounds

    @Test func outboxAndDeadWebhooks_areBounded() async throws {
        let probe = try WebhookProbe(["webhookAfterSeconds": "3600"])
        var ids: [String] = []
        for _ in 0..<6 { ids.append(try await probe.notify()) }
        let now = probe.service.clock.now
        func prune(_ waitingMax: Int, _ deadMax: Int) async throws -> Int {
            try await probe.service.app.store.write { db in
                let figures = try Outbox.figures(at: now, in: db)[.webhooks] ?? Outbox.Figures()
                let evicted = try Outbox.evict(.webhooks, figures, waitingMax: waitingMax, at: now, in: db)
                _ = try Outbox.prune(AgeTime(now), at: now, deadMax: deadMax, in: db)
                return evicted.count
            }
        }
        #expect(try await prune(6, 6) == 0)
        #expect(try await prune(2, 6) == 4)
        let dead = try await probe.dead()
        #expect(dead.map(\.subjectId) == ids.prefix(4).reversed())
        #expect(dead.allSatisfy { $0.reason == .outboxFull && $0.attempts == 0 })
        #expect(try await prune(2, 3) == 0)
        #expect(try probe.rows("state = 2") == 3)
        // The first page has a cursor to the next one.
        let page = try await probe.service.call("GET", "/v1/webhooks/dead?limit=2", as: .service())
        #expect(page.items.count == 2)
        let cursor = try #require(page.json["next"].string)
        let rest = try await probe.service.client(as: .service()).listDeadWebhooks(limit: 2, cursor: cursor)
        #expect(rest.value.items.count == 1)
    }

    /// Webhooks written while the clock was ahead do not wait until that time, whatever the size of the step.
    @Test(arguments: [(30 * 86_400, false), (1800, false), (1800, true), (600, false)] as [(Int64, Bool)])
    func clockSetBack_delaysNoWebhook(secondsAhead: Int64, isRestarted: Bool) async throws {
        let probe = try WebhookProbe()
        let morning = probe.service.clock.now
        probe.service.clock.step(seconds: secondsAhead)
        let id = try await probe.notify()
        probe.service.clock.set(morning)
        if isRestarted { try await probe.service.restart() }
        let next = try await probe.notify()
        // The uptime advances, and with it the upkeep.
        probe.service.clock.advance(seconds: 60)
        let now = probe.service.clock.now
        try await eventually("no row is in the future") { try probe.rows("created_at > \(now)") == 0 }
        // Webhooks with a delay of half a minute are due by now.
        probe.service.clock.advance(seconds: 40)
        _ = try await probe.deliveries(2)
        #expect(Set(try probe.received.map(\.subject)) == [id, next])
    }

    /// A sender that stalls until its lease expires leaves the webhook to the next attempt, which another replica may
    /// make.
    @Test func attemptWithExpiredLease_isNotSent() async throws {
        let probe = try WebhookProbe()
        let store = probe.service.app.store
        // The test needs a sender that starts before the writer blocks, which is nearly always the case.
        try await eventually("an attempt is aborted") {
            let (isHeld, release) = (Gate(), Gate())
            let id = try await probe.notify()
            let holder = Thread {
                try? store.writeAndWait { _ in
                    isHeld.open()
                    release.wait()
                }
            }
            holder.start()
            isHeld.wait()
            probe.passTime()
            try await eventually("the sender waits for the writer") { store.metrics().queueDepth > 1 }
            probe.service.clock.advance(seconds: 120)
            release.open()
            try await eventually("the webhook is sent") { try probe.received.contains { $0.subject == id } }
            try await probe.settled()
            let sent = try probe.received.filter { $0.subject == id }
            #expect(sent.count == 1)
            return try probe.rows("subject = \(id) AND state = 1 AND attempts = 2") == 1
        }
    }

    @Test func pauses_doubleUpToAnHour_andLeaveHalfToChance() {
        func pause(_ attempt: Int, _ chance: Double, asked: Int? = nil) -> Double {
            Backoff.pause(afterFailure: attempt, asked: asked, chance: chance)
        }
        #expect([1, 2, 3, 4].map { pause($0, 1) } == [5, 10, 20, 40])
        #expect([1, 2, 3, 4].map { pause($0, 0) } == [2.5, 5, 10, 20])
        #expect(pause(12, 1) == 3600)
        #expect(pause(1000, 1) == 3600)
        #expect(pause(1, 1, asked: 60) == 60)
        #expect(pause(3, 1, asked: 1) == 1)
        #expect(pause(12, 1, asked: 60) == 3600)
        #expect(pause(1, 1, asked: .max) == 3600)
    }
}
