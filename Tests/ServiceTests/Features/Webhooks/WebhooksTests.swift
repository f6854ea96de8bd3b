import BellhopClient
import Database
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// The webhooks that an app receives for unreached notifications, with a real receiver.
@Suite(.timed) struct WebhooksTests {
    // MARK: Sent webhooks

    /// R-27.
    @Test func unseenNotification_isSent_whenItsTimeIsOver() async throws {
        let probe = try WebhookProbe()
        let id = try await probe.notify()
        let low = try await probe.notify("ada", "NORMAL")
        let stored = try await probe.service.call("GET", "/v1/notifications/\(id)", as: .user("ada")).json
        #expect(try probe.rows() == 1)
        probe.passTime()
        let sent = try #require(try await probe.deliveries(1).first)
        #expect(sent.type == "notification.unreached")
        #expect(sent.subject == id)
        #expect(sent.json["data"]["quietHours"] == false)
        // The same values as GET returns.
        for (name, value) in stored["notification"].object ?? [:] {
            #expect(sent.json["data"][name] == value, "\(name)")
        }
        #expect(sent.json["timestamp"] == stored["notification"]["createdAt"])
        try await probe.settled()
        #expect(try await probe.state()["waiting"] == 0)
        // Notifications of other priorities send no webhooks.
        try await probe.mark(low)
        try await probe.mark(id)
        _ = try await probe.deliveries(2)
        #expect(try probe.received.map(\.subject) == [id, id])
    }

    /// R-27.
    @Test func signature_isThatOfStandardWebhooks_byEachSecret() async throws {
        let probe = try WebhookProbe(["webhookSecrets": WebhookProbe.secrets.joined(separator: ",")])
        try await probe.notify()
        probe.passTime()
        let sent = try #require(try await probe.deliveries(1).first)
        #expect(try sent.signatures == WebhookProbe.secrets.map(sent.signature))
        #expect(sent.timestamp == "\(probe.service.clock.now.seconds)")
    }

    @Test func notificationSeenInTime_isNeverSent() async throws {
        let probe = try WebhookProbe()
        let seen = try await probe.notify()
        let read = try await probe.notify()
        let removed = try await probe.notify()
        try await probe.mark(seen)
        try await probe.mark(read, #"{"read":true}"#)
        #expect(try await probe.service.client("ada").deleteNotification(id: removed).status == 200)
        #expect(try probe.rows() == 0)
        // The later webhook arrives, which proves that the earlier ones are not sent.
        let last = try await probe.notify()
        probe.passTime()
        #expect(try await probe.deliveries(1).map(\.subject) == [last])
        // The receiver has the webhook before the sender has stored the success.
        try await probe.settled()
        // Marking as unseen sends nothing, because the user has already seen the notification.
        try await probe.mark(seen, #"{"seen":false}"#)
        #expect(try probe.rows("state = 0") == 0)
    }

    @Test func sentNotification_isWithdrawn_whenItIsSeenOrRemoved() async throws {
        let probe = try WebhookProbe()
        let seen = try await probe.notify()
        let removed = try await probe.notify()
        probe.passTime()
        #expect(try await probe.deliveries(2).map(\.subject) == [seen, removed])
        try await probe.settled()
        try await probe.service.client("ada").changeNotifications(.init(upTo: seen, set: .init(read: true)))
        #expect(try await probe.service.client("ada").deleteNotification(id: removed).status == 200)
        let sent = try await probe.deliveries(4)
        #expect(sent[2...].map(\.type) == ["notification.withdrawn", "notification.withdrawn"])
        #expect(sent[2...].map(\.subject) == [seen, removed])
        #expect(sent[2...].map { $0.json["data"]["reason"] } == ["seen", "removed"])
        #expect(sent[2].json["data"]["seenAt"].string != nil)
        #expect(Set(sent.map(\.id)).count == 4)
        try await probe.settled()
        #expect(try probe.rows() == 0)
    }

    /// If the notification is seen during the request, it is not sent again, and its withdrawal follows it.
    @Test func notificationSeenDuringDelivery_isWithdrawnAfterwards() async throws {
        let gate = Gate()
        let probe = try WebhookProbe(["webhookTimeoutSeconds": "60"]) { delivery in
            guard String(decoding: delivery.body, as: UTF8.self).contains("notification.unreached") else {
                return .status(200)
            }
            gate.wait()
            return .status(500)
        }
        let id = try await probe.notify()
        probe.passTime()
        _ = try await probe.deliveries(1)
        try await probe.mark(id)
        // Another user's webhook is sent meanwhile, which proves that the sender has polled.
        let other = try await probe.notify("ben")
        probe.passTime()
        #expect(try await probe.deliveries(2).map(\.subject) == [id, other])
        gate.open()
        #expect(try await probe.deliveries(3)[2].type == "notification.withdrawn")
        #expect(try probe.received.filter { $0.subject == id }.map(\.type).count == 2)
    }

    @Test func quietHours_areEvaluated_whenTheWebhookIsSent() async throws {
        let probe = try WebhookProbe()
        try await probe.notify()
        // 10:00 in UTC is 11:00 in Berlin.
        let quiet = #"{"quietHours":{"start":"10:30","end":"11:30"},"timeZone":"Europe/Berlin"}"#
        #expect(try await probe.service.call("PUT", "/v1/preferences", as: .user("ada"), quiet).status == 200)
        try await probe.notify()
        probe.passTime()
        #expect(try await probe.deliveries(2).map { $0.json["data"]["quietHours"] } == [true, true])
    }

    @Test func bookingsChanges_areSent_inTheirOrder() async throws {
        let probe = try WebhookProbe()
        let backend = probe.service.client(as: .service())
        #expect(try await backend.replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "UTC")).status == 201)
        let draft = BookingsTests.draft("2026-01-10T12:00:00Z", barber: nil)
        let made = try await probe.service.client("ada").createBooking(draft).value
        let stored = try await probe.service.call("GET", "/v1/bookings/\(made.id)", as: .user("ada")).json
        let staff = probe.service.client(as: .staff(of: "s1"))
        #expect(try await staff.change(made, .init(status: .confirmed)).status == 200)
        let sent = try await probe.deliveries(2).filter { $0.type == "booking.changed" }
        #expect(sent.map { $0.json["data"]["status"] } == ["pending", "confirmed"])
        #expect(sent.map { $0.json["data"]["previousStatus"] } == [nil, "pending"])
        for name in ["id", "userId", "shopId", "scheduledStart", "epoch"] {
            #expect(sent[0].json["data"][name] == stored[name], "\(name)")
        }
    }

    /// A customer without an account has neither counts nor quiet hours, so nothing comes before the booking's members.
    @Test func walkInsBooking_isSent_withoutAUser() async throws {
        let probe = try WebhookProbe()
        let backend = probe.service.client(as: .service())
        #expect(try await backend.replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "UTC")).status == 201)
        let staff = probe.service.client(as: .staff(of: "s1"))
        let walkIn = try await staff.addWalkIn(id: "s1", .init(service: "cut", customerName: "Cy")).value
        let sent = try await probe.deliveries(1)[0]
        #expect(sent.type == "booking.changed")
        #expect(sent.subject == "\(walkIn.id)")
        #expect(sent.json["data"]["customerName"] == "Cy")
        for name in ["userId", "badges", "quietHours"] { #expect(sent.json["data"][name] == nil, "\(name)") }
    }

    // MARK: Webhooks without delay

    @Test func userWithoutAStream_isSentAtOnce_andOneWithAStreamAfterTheDelay() async throws {
        let probe = try WebhookProbe(["webhookAtOnce": "true"])
        let stream = try await probe.service.listen(as: .user("ben"))
        let bens = try await probe.notify("ben")
        let adas = try await probe.notify("ada")
        #expect(try await probe.deliveries(1).map(\.subject) == [adas])
        probe.passTime()
        #expect(try await probe.deliveries(2).map(\.subject) == [adas, bens])
        // After the stream has closed, the webhook that waited for it is sent first.
        let first = try await probe.notify("ben")
        stream.close()
        try await eventually("the stream is closed") {
            let metrics = try await probe.service.call("GET", "/metrics").text
            return metrics.contains("\nbellhop_streams_open 0\n")
        }
        let second = try await probe.notify("ben")
        #expect(try await probe.deliveries(4)[2...].map(\.subject) == [first, second])
    }

    /// The replicas ask one another, so nothing waits until each had the time to look. The clock stands still.
    @Test func replicas_sendAtOnce_toUsersWithoutAStreamOnAny() async throws {
        let receiver = try ScriptedReceiver { _ in .status(204) }
        defer { receiver.stop() }
        let (a, b) = try TestService.startReplicas(
            WebhookProbe.settings(receiver).merging(["webhookAtOnce": "true"]) { $1 })
        func send(to user: String, from service: TestService) async throws -> String {
            try await service.notify(NotificationsTests.draft("visit", .high, to: user)).notificationID
        }
        try await eventually("both replicas listen") {
            try a.app.store.read { try $0.listenerCount(PresenceNotice.channel) } == 2
        }
        let stream = try await b.listen(as: .user("ben"))
        let bens = try await send(to: "ben", from: a)
        let adas = [try await send(to: "ada", from: a), try await send(to: "ada", from: b)]
        try await eventually("Ada's webhooks arrive") { receiver.deliveries.all.count >= 2 }
        #expect(try receiver.deliveries.all.map { try ReceivedWebhook($0).subject } == adas)
        try await eventually("Ben's waits for him") {
            let postponed: SQL = "subject = \(bens) AND due_at = patient_until"
            return try a.app.store.read { db in
                try db.integer(
                    "SELECT count(*) FROM \(Outbox.messages, unscoped: .audit("a test")) WHERE \(postponed)") == 1
            }
        }
        stream.close()
    }

    // MARK: Costs without webhooks

    @Test func webhooks_areOff_withoutAnAddress() async throws {
        let service = try TestService.start(["webhookSecrets": WebhookProbe.secrets[0]])
        let made = try await service.notify(NotificationsTests.draft("visit", .urgent, to: "ada"))
        let id = made.value.notification?.id ?? ""
        #expect(
            try await status(of: await service.client("ada").changeNotification(id: id, .init(seen: true)))
                == 200)
        let state = try await service.client(as: .service()).getWebhooks()
        #expect(!state.value.enabled)
        #expect(state.value.waiting == 0)
        let metrics = try await service.call("GET", "/metrics").text
        #expect(!metrics.contains("bellhop_webhooks"))
        let retry = try await service.call("POST", "/v1/webhooks/dead/x/retry", as: .service(), [:])
        #expect(retry.refusal == "409 webhook.off")
    }

    @Test func webhooks_areVisibleToBackendsOnly() async throws {
        let probe = try WebhookProbe()
        try await probe.notify()
        for identity in [TestService.Identity.user("ada"), .staff(of: "s1"), .admin] {
            let client = probe.service.client(as: identity)
            #expect(try await status(of: await client.getWebhooks()) == 403)
            #expect(try await status(of: await client.listDeadWebhooks()) == 403)
            #expect(try await status(of: await client.retryDeadWebhook(id: "x")) == 403)
        }
        let elsewhere = try await probe.service.client(as: .service(tenant: "other")).getWebhooks()
        #expect(elsewhere.value.waiting == 0)
        #expect(try await probe.state()["waiting"] == 1)
    }

    @Test func metrics_reportProgressAndFailures() async throws {
        let up = Gate()
        let probe = try WebhookProbe { _ in .status(up.isOpen ? 200 : 503) }
        try await probe.notify()
        probe.passTime()
        _ = try await probe.deliveries(1)
        try await probe.settled()
        up.open()
        probe.service.clock.advance(seconds: 20)
        _ = try await probe.deliveries(2)
        try await probe.settled()
        try await eventually("the counts are published", step: { probe.service.clock.advance(seconds: 11) }) {
            let text = try await probe.service.call("GET", "/metrics").text
            return [
                #"bellhop_webhooks_sent_total{type="notification.unreached"} 1"#,
                #"bellhop_webhooks_failed_total{reason="status_503"} 1"#,
                #"bellhop_webhooks_died_total{reason="expired"} 0"#, "bellhop_webhooks_waiting 0",
                "bellhop_webhooks_dead 0", "bellhop_webhooks_oldest_seconds 0",
            ].allSatisfy { text.contains("\n\($0)\n") }
        }
    }

    // MARK: Settings

    @Test(arguments: [
        ("webhookURL", "http://hooks.example/x", "must begin with https://"),
        ("webhookURL", "https://127.0.0.1/x", "is a private address"),
        ("webhookURL", "https://[::1]/x", "is a private address"),
        ("webhookURL", "https://ada:secret@hooks.example/", "must not contain a user or password"),
        ("webhookURL", "https://hooks.example/#here", "must not contain a fragment"),
        ("webhookURL", "ftp://hooks.example/", "https://app"),
        ("webhookURL", "https:///x", "https://app"), ("webhookSecrets", "", "1 to 4 secrets"),
        ("webhookSecrets", "whsec_c2hvcnQ=", "must have 24 to 64 bytes"),
        ("webhookPriorities", "CRITICAL", "is not one of LOW"),
        ("webhookTimeoutSeconds", "0", "between 1 and 60"), ("webhookAfterSeconds", "-1", "between 0 and 86400"),
    ])
    func mistakes_areRefusedAtTheStart(_ name: String, _ value: String, _ problem: String) throws {
        let good = [
            "jwtSecret": TestService.secret, "webhookURL": "https://hooks.example/x",
            "webhookSecrets": WebhookProbe.secrets[0],
        ]
        _ = try TestService.settings(good)
        do {
            _ = try TestService.settings(good.merging([name: value]) { $1 })
            Issue.record("\(name)=\(value) was accepted")
        } catch {
            #expect("\(error)".hasPrefix("\(name) (BELLHOP_"))
            #expect("\(error)".contains(problem), "\(error)")
            #expect(!"\(error)".contains("ada:secret"))
        }
    }
}
