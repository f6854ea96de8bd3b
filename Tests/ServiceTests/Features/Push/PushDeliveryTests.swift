import BellhopClient
import Database
import Foundation
import Push
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// R-27: which messages are sent to devices, and when.
@Suite(.timed) struct PushDeliveryTests {
    @Test func notification_isSentAtOnce_toEveryDeviceOfAnAbsentUser() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        try await probe.register("tablet", "fcm")
        try await probe.register("other", of: "ben")
        let id = try await probe.notify()
        let sent = try await probe.messages(2).sorted { $0.platform < $1.platform }
        #expect(sent.map(\.device) == [PushProbe.token("phone"), "tablet"])
        for message in sent {
            #expect(message.badge == 1 && message.tag == id)
            #expect(
                message.title != nil && message.title != "T" && message.body == "", "only the generic text is shown")
        }
        #expect(sent[0].headers["apns-topic"] == "com.example.app" && sent[1].headers["authorization"] == "Bearer a1")
        try await probe.settled()
        #expect(probe.sent.all.count == 2)
        #expect(try probe.rows("state = 1") == 2)
    }

    /// An app registers its token at each start, and has a new id once its storage was emptied.
    @Test(arguments: ["phone", "new"])
    func deviceThatRegistersAgain_losesItsAlerts_onceTheyAreSeen(_ id: String) async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        let first = try await probe.notify()
        _ = try await probe.messages(1)
        try await probe.settled()
        let again = #"{"platform":"apns","token":"\#(PushProbe.token("phone").uppercased())"}"#
        #expect(try await probe.service.call("PUT", "/v1/devices/\(id)", as: .user("ada"), again).status < 300)
        #expect(try await probe.service.call("GET", "/v1/devices", as: .user("ada")).items.count == 1)
        try await probe.see(first)
        let clock = probe.service.clock
        try await eventually(
            "it is withdrawn, and nothing is left",
            step: { if (try? probe.rows("lease <> 0")) == 0 { clock.advance(seconds: 1) } }
        ) {
            try probe.sent.all.dropFirst().flatMap(\.withdrawn) == [first] && probe.rows() == 0
        }
    }

    /// What waits for a device is sent once, to its new registration.
    @Test func waitingMessages_followTheDevice() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        let stream = try await probe.service.listen(as: .user("ada"))
        let first = try await probe.notify()
        try await eventually("it is postponed") { try probe.rows("due_at > created_at") == 1 }
        let again = #"{"platform":"apns","token":"\#(PushProbe.token("phone"))"}"#
        #expect(try await probe.service.call("PUT", "/v1/devices/new", as: .user("ada"), again).status == 201)
        probe.service.clock.advance(seconds: 11)
        #expect(try await probe.messages(1).map(\.tag) == [first])
        try await probe.settled()
        #expect(probe.sent.all.count == 1)
        stream.close()
    }

    /// A user who causes more than the pace allows loses nothing: the messages are stored and counted, and the push
    /// messages about them wait as one. Other users and backends have their own pace.
    @Test func pushesBeyondTheSendersPace_wait_andAreCombined() async throws {
        let probe = try PushProbe(["pushContent": "full", "rateLimitUser": "0"])
        let (flooded, calm) = (
            try await probe.service.converse("mal", "ben"), try await probe.service.converse("ana", "ben")
        )
        try await probe.register("phone", of: "ben")
        _ = probe.service.app.runner.reader.pushes.delaySeconds(
            of: 2 * PushOutboxLimits.causedPerMinuteMax, by: Owner(tenant: "default", userId: "mal"),
            perMinute: PushOutboxLimits.causedPerMinuteMax, at: probe.service.clock.now)
        for number in 1...3 { _ = try await probe.service.send("m\(number)", to: flooded, as: "mal") }
        _ = try await probe.service.send("calm", to: calm, as: "ana")
        try await probe.notify("ben")
        let first = try await probe.messages(2)
        #expect(Set(first.map(\.tag)).contains("conversation:\(calm)"))
        #expect(!first.contains { $0.tag == "conversation:\(flooded)" })
        try await probe.settled()
        #expect(probe.sent.all.count == 2)
        #expect(try await probe.service.call("GET", "/v1/badges", as: .user("ben")).json["messages"] == 4)
        probe.service.clock.advance(seconds: 61)
        let last = try await probe.messages(3)[2]
        #expect(last.tag == "conversation:\(flooded)" && last.body == "m3" && last.badge == 5)
        try await probe.settled()
        #expect(probe.sent.all.count == 3)
    }

    @Test func contentFull_sendsTitleAndText() async throws {
        let probe = try PushProbe(["pushContent": "full"])
        try await probe.register("phone")
        try await probe.notify()
        let message = try await probe.messages(1)[0]
        #expect(message.title == "T" && message.body == "M")
    }

    @Test func otherPriorities_andSeenNotifications_areNotSent() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        try await probe.notify("ada", .normal)
        #expect(try await probe.messages(1).map(\.summary) == ["badge \(PushProbe.token("phone"))"])
        try await probe.settled()
        try await probe.notify("ada", .urgent)
        let alert = try await probe.messages(2)[1]
        #expect(alert.title != nil && alert.badge == 2)
        try await probe.settled()
        #expect(try probe.rows() == 1)
    }

    /// A user with a stream has the time to see the notification. Nothing rings after it was seen.
    @Test func userWithAStream_hasTimeToSeeIt() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        let stream = try await probe.service.listen(as: .user("ada"))
        let first = try await probe.notify()
        try await eventually("it is postponed") { try probe.rows("due_at > created_at") == 1 }
        try await probe.see(first)
        #expect(try probe.rows("type = 'notification'") == 0)
        #expect(try await probe.messages(1).map(\.badge) == [0], "only the number is sent")
        let second = try await probe.notify()
        try await eventually("it is postponed") { try probe.rows("due_at > created_at") == 1 }
        probe.service.clock.advance(seconds: 11)
        #expect(try await probe.messages(2)[1].tag == second)
        stream.close()
    }

    @Test func messages_areCollapsedByConversation_andCountedWhenSent() async throws {
        let probe = try PushProbe(["pushContent": "full"])
        let id = try await probe.service.converse("ana", "ben")
        try await probe.register("phone", of: "ben")
        let stream = try await probe.service.listen(as: .user("ben"))
        for number in 1...3 { _ = try await probe.service.send("m\(number)", to: id, as: "ana") }
        #expect(try probe.rows() == 1)
        try await eventually("it is postponed") { try probe.rows("due_at > created_at") == 1 }
        probe.service.clock.advance(seconds: 11)
        let first = try await probe.messages(1)[0]
        #expect(first.tag == "conversation:\(id)" && first.badge == 3 && first.body == "m3")
        #expect(first.json["bellhop"]["data"]["senderId"] == "ana")
        stream.close()
        try await probe.settled()
        // The next message replaces the one on the screen.
        _ = try await probe.service.send("m4", to: id, as: "ana")
        try await eventually("the stream is closed") { !probe.service.app.hasStream(of: "ben") }
        let second = try await probe.messages(2, advancing: 1)[1]
        #expect(second.tag == first.tag && second.badge == 4 && second.body == "m4")
        #expect(try probe.rows() == 1)
    }

    /// A message that was seen elsewhere is removed from the other screens, and their icons get the number.
    @Test func whatWasSeen_isWithdrawn_andTheNumberFollows() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        let (first, second) = (try await probe.notify(), try await probe.notify())
        _ = try await probe.messages(2)
        try await probe.settled()
        try await probe.see(first)
        let withdrawal = try await probe.messages(3)[2]
        #expect(withdrawal.withdrawn == [first] && withdrawal.headers["apns-push-type"] == "background")
        try await probe.settled()
        // The number waits until 30 s after the last one.
        #expect(try probe.rows("type = 'badge'") == 1)
        probe.service.clock.advance(seconds: 31)
        let badge = try await probe.messages(4)[3]
        #expect(badge.badge == 1 && badge.title == nil && badge.withdrawn.isEmpty)
        try await probe.settled()
        #expect(try probe.rows("subject = \(second)") == 1)
        #expect(try probe.rows() == 1)
    }

    /// The systems of phones allow few messages in the background.
    @Test func whatWasSeenAtOnce_isWithdrawnByOneMessage() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        var ids: [String] = []
        for _ in 0..<4 { ids.append(try await probe.notify()) }
        _ = try await probe.messages(4)
        try await probe.settled()
        let last = try #require(ids.last)
        let seen = try await probe.service.call(
            "PATCH", "/v1/notifications", as: .user("ada"), #"{"upTo":"\#(last)","set":{"seen":true}}"#)
        #expect(seen.status == 200, "\(seen.text)")
        #expect(Set(try await probe.messages(5)[4].withdrawn) == Set(ids))
        try await probe.settled()
        #expect(try probe.rows("type = 'withdrawal'") == 0)
    }

    /// Ana's message reaches Ben's phone.
    ///
    /// - Returns: The conversation.
    private func deliverMessage(_ text: String, _ probe: PushProbe) async throws -> String {
        let id = try await probe.service.converse("ana", "ben")
        try await probe.register("phone", of: "ben")
        _ = try await probe.service.send(text, to: id, as: "ana")
        _ = try await probe.messages(1)
        try await probe.settled()
        return id
    }

    @Test func readConversation_isWithdrawn() async throws {
        let probe = try PushProbe()
        let id = try await deliverMessage("hi", probe)
        let read = try await probe.service.call(
            "PUT", "/v1/conversations/\(id)/read-position", as: .user("ben"), #"{"sequence":1}"#)
        #expect(read.status == 200)
        #expect(try await probe.messages(2)[1].withdrawn == ["conversation:\(id)"])
    }

    /// A device that shows the number already gets no message.
    @Test func sameNumber_isNotSentAgain() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        let first = try await probe.notify()
        _ = try await probe.messages(1)
        try await probe.settled()
        try await probe.see(first)
        _ = try await probe.messages(2)
        let second = try await probe.notify()
        _ = try await probe.messages(3)
        #expect(probe.sent.all[2].tag == second && probe.sent.all[2].badge == 1)
        try await probe.settled()
        probe.service.clock.advance(seconds: 31)
        try await eventually("the number is dropped") { try probe.rows("type = 'badge'") == 0 }
        #expect(probe.sent.all.count == 3)
    }

    @Test func quietHours_silence_exceptForUrgent() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        let hours = #"{"quietHours":{"start":"00:00","end":"23:59"},"timeZone":"UTC"}"#
        #expect(try await probe.service.call("PUT", "/v1/preferences", as: .user("ada"), hours).status == 200)
        try await probe.notify()
        let quiet = try await probe.messages(1)[0]
        #expect(quiet.json["aps"]["sound"] == nil && quiet.title != nil)
        try await probe.notify("ada", .urgent)
        #expect(try await probe.messages(2)[1].json["aps"]["sound"] == "default")
    }

    @Test func test_isSentAtOnce() async throws {
        let probe = try PushProbe()
        try await probe.register("phone", "fcm")
        #expect(try await probe.service.call("POST", "/v1/devices/phone/test", as: .user("ada")).status == 202)
        #expect(try await probe.messages(1)[0].title == "Test")
        #expect(try await probe.service.call("POST", "/v1/devices/none/test", as: .user("ada")).status == 404)
        try await probe.settled()
        #expect(try probe.rows() == 0)
    }

    @Test func deletedDevice_getsNothingMore() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        let stream = try await probe.service.listen(as: .user("ada"))
        try await probe.notify()
        #expect(try await probe.service.call("DELETE", "/v1/devices/phone", as: .user("ada")).status == 204)
        #expect(try probe.rows() == 0)
        probe.service.clock.advance(seconds: 20)
        try await probe.notify()
        #expect(try probe.rows() == 0)
        stream.close()
    }

    // MARK: Providers in trouble

    @Test func unknownDevice_isRemoved() async throws {
        let probe = try PushProbe()
        probe.answers.withLock { $0[PushProbe.token("phone")] = (410, [], #"{"reason":"Unregistered"}"#) }
        try await probe.register("phone")
        try await probe.notify()
        _ = try await probe.messages(1)
        try await eventually("the device is gone") {
            try await probe.service.call("GET", "/v1/devices", as: .user("ada")).items.isEmpty
        }
        #expect(try probe.rows() == 0)
    }

    /// The provider's answer about the old token arrives after the phone has registered a new one.
    @Test func unknownFormerToken_leavesTheNewRegistration_andItsMessages() async throws {
        let probe = try PushProbe()
        probe.answers.withLock { $0[PushProbe.token("phone")] = (503, ["Retry-After: 3600"], "") }
        try await probe.register("phone")
        let id = try await probe.notify()
        _ = try await probe.messages(1)
        try await probe.settled()
        let former = try await probe.delivery(of: id, to: "phone")
        probe.service.clock.advance(seconds: 1)
        try await probe.register("phone")
        try await probe.service.app.store.write {
            try probe.remove(former, in: $0)
        }
        #expect(try await probe.service.call("GET", "/v1/devices", as: .user("ada")).items.count == 1)
        // The sender may have begun the next attempt.
        try await eventually("the message waits") { try probe.rows("state = 0 AND lease = 0") == 1 }
        let present = try await probe.delivery(of: id, to: "phone")
        try await probe.service.app.store.write {
            try probe.remove(present, in: $0)
        }
        #expect(try await probe.service.call("GET", "/v1/devices", as: .user("ada")).items.isEmpty)
        #expect(try probe.rows() == 0)
    }

    /// While the provider is away, the sender looks again when the next attempt is due, not a thousand times a second.
    @Test func messagesBehindAFailedOne_areNoReasonToLookAgain() async throws {
        let probe = try PushProbe(["pushAfterSeconds": "3600"])
        probe.answers.withLock { $0[PushProbe.token("phone")] = (503, ["Retry-After: 20"], "") }
        try await probe.register("phone")
        try await probe.notify()
        try await probe.notify()
        _ = try await probe.messages(1)
        try await eventually("the first waits") { try probe.rows("attempts = 1 AND lease = 0") == 1 }
        #expect(try probe.rows("state = 0") == 2)
        let now = probe.service.clock.now
        let next = try probe.service.app.store.read { try Outbox.nextDue("apns", after: now, in: $0) }
        #expect(try #require(next) >= now.adding(seconds: 19))
    }

    @Test func busyProvider_isTriedAgain_andTheOrderStays() async throws {
        let probe = try PushProbe()
        probe.answers.withLock { $0[PushProbe.token("phone")] = (503, ["Retry-After: 20"], "") }
        try await probe.register("phone")
        let (first, second) = (try await probe.notify(), try await probe.notify())
        _ = try await probe.messages(1)
        try await eventually("the first waits") { try probe.rows("attempts = 1 AND lease = 0") == 1 }
        probe.answers.withLock { $0 = [:] }
        probe.service.clock.advance(seconds: 19)
        #expect(probe.sent.all.count == 1)
        let sent = try await probe.messages(3, advancing: 1)
        #expect(sent.map(\.tag) == [first, first, second])
    }

    @Test func refusedMessage_isNotRepeated_andTheDeviceStays() async throws {
        let probe = try PushProbe()
        probe.answers.withLock { $0[PushProbe.token("phone")] = (400, [], #"{"reason":"BadCollapseId"}"#) }
        try await probe.register("phone")
        try await probe.notify()
        _ = try await probe.messages(1)
        try await eventually("it is given up") { try probe.rows() == 0 }
        #expect(try await probe.service.call("GET", "/v1/devices", as: .user("ada")).items.count == 1)
        let metrics = try await probe.service.anyone.get("/metrics").text
        #expect(metrics.contains(#"bellhop_push_failed_total{platform="apns",reason="BadCollapseId"} 1"#))
    }

    /// The alert about "one" stays on the screen when "two" is refused. It is withdrawn once both are read.
    @Test func refusedMessage_leavesTheAlertBeforeIt_toBeWithdrawn() async throws {
        let probe = try PushProbe()
        let id = try await deliverMessage("one", probe)
        probe.answers.withLock { $0[PushProbe.token("phone")] = (400, [], #"{"reason":"BadCollapseId"}"#) }
        _ = try await probe.service.send("two", to: id, as: "ana")
        _ = try await probe.messages(2)
        try await probe.settled()
        probe.answers.withLock { $0 = [:] }
        try #require(try probe.rows("type = 'message' AND state = 1") == 1)
        let read = try await probe.service.call(
            "PUT", "/v1/conversations/\(id)/read-position", as: .user("ben"), #"{"sequence":2}"#)
        #expect(read.status == 200)
        #expect(try await probe.messages(3)[2].withdrawn == ["conversation:\(id)"])
    }

    /// Seen while the provider's answer is awaited: the withdrawal follows the message.
    @Test func messageSeenWhileItIsSent_isWithdrawn() async throws {
        let probe = try PushProbe()
        probe.answers.withLock { $0[PushProbe.token("phone")] = (503, [], "") }
        try await probe.register("phone")
        let id = try await probe.notify()
        _ = try await probe.messages(1)
        try await probe.settled()
        probe.answers.withLock { $0 = [:] }
        try await probe.see(id)
        let sent = try await probe.messages(3, advancing: 1)
        #expect(sent.flatMap(\.withdrawn) == [id], "the provider may have had it")
    }

    /// Another tenant's messages do not wait, and the rest is sent in the next minute.
    @Test func messagesBeyondTheTenantsLimit_wait() async throws {
        let probe = try PushProbe(["pushLimitTenant": "2"])
        for number in 0..<3 { try await probe.register("d\(number)", of: "u\(number)") }
        for number in 0..<3 { try await probe.notify("u\(number)") }
        #expect(try await probe.messages(2).count == 2)
        try await eventually("the attempts are stored") { try probe.rows("lease <> 0") == 0 }
        #expect(try probe.rows("state = 0 AND type = 'notification'") == 1)
        probe.service.clock.advance(seconds: 60)
        #expect(Set(try await probe.messages(3, advancing: 1).map(\.device)).count == 3)
    }

    @Test func restart_sendsWhatWaits() async throws {
        let probe = try PushProbe()
        probe.answers.withLock { $0[PushProbe.token("phone")] = (503, [], "") }
        try await probe.register("phone")
        let id = try await probe.notify()
        _ = try await probe.messages(1)
        try await probe.settled()
        try await probe.service.restart { probe.answers.withLock { $0 = [:] } }
        #expect(try await probe.messages(2, advancing: 1)[1].tag == id)
    }

    /// With a new key in front, old devices are read, and `rotate` encrypts them again.
    @Test func keys_canBeReplaced() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        try await probe.service.restart(with: ["pushKeys": "\(PushProbe.keys[1]),\(PushProbe.keys[0])"])
        try await probe.notify()
        _ = try await probe.messages(1)
        let ring = try #require(probe.service.app.runner.settings.push?.keys)
        let counts = try await probe.service.app.store.write { try PushFeature.rotate(ring, in: $0) }
        #expect(counts.changed == ["default": 1] && counts.unreadable == 0)
        try await probe.service.restart(with: ["pushKeys": PushProbe.keys[1]])
        try await probe.notify()
        #expect(try await probe.messages(2).count == 2)
    }

    /// The keys were replaced by others: the messages wait until the former key is back.
    @Test func messagesForUnreadableDevices_wait() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        func unreadable(_ index: Int) throws -> Int {
            let ring = try #require(PushKeyRing([Array(Data(base64Encoded: PushProbe.keys[index]) ?? Data())]))
            return try probe.service.app.store.read { try PushFeature.unreadableCount(ring, in: $0) }
        }
        #expect(try (unreadable(0), unreadable(1)) == (0, 1))
        try await probe.service.restart(with: ["pushKeys": PushProbe.keys[1]])
        let id = try await probe.notify()
        // The sender also looks at the message of another user, whose device has the new key.
        try await probe.register("tablet", of: "ben")
        try await probe.notify("ben")
        #expect(try await probe.messages(1).map(\.device) == [PushProbe.token("tablet")])
        #expect(try probe.rows("attempts = 0") == 1)
        try await probe.service.restart(with: ["pushKeys": "\(PushProbe.keys[1]),\(PushProbe.keys[0])"])
        #expect(try await probe.messages(2, advancing: 1)[1].tag == id)
    }

    // MARK: Replicas

    /// A stream on one replica postpones what the other has written.
    @Test func streamOnAnotherReplica_postpones() async throws {
        let probe = try PushProbe(replicas: true)
        let other = try #require(probe.other)
        try await probe.register("phone")
        let stream = try await other.listen(as: .user("ada"))
        let id = try await probe.notify()
        try await eventually("the other replica postpones it") {
            try probe.rows("due_at >= created_at + 10000000") == 1
        }
        probe.service.clock.advance(seconds: 5)
        try await probe.see(id)
        #expect(try probe.rows("type = 'notification'") == 0)
        #expect(try await probe.messages(1, advancing: 1).map(\.badge) == [0], "only the number is sent")
        stream.close()
        let second = try await probe.notify()
        try await eventually("the stream is closed") { !other.app.hasStream(of: "ada") }
        #expect(try await probe.messages(2, advancing: 1)[1].tag == second)
        try await probe.settled()
        #expect(probe.sent.all.count == 2, "one replica sends it: \(probe.sent.all.map(\.summary))")
    }
}

extension PushProbe {
    /// Begins an attempt to send a notification to a device of Ada's.
    fileprivate func delivery(of subject: String, to device: String) async throws -> any OutboxDelivery {
        let now = service.clock.now.adding(seconds: 7200)
        let channel = try channel()
        let begun = try await service.app.store.write { db in
            let lane = try db.integer(
                """
                SELECT l.id FROM \(Outbox.lanes, unscoped: .audit("a test")) AS l
                JOIN \(Outbox.messages, unscoped: .audit("a test")) AS o ON o.lane = l.lane
                WHERE o.subject = \(subject) AND o.device_id = \(device)
                """)
            let due = Outbox.Due(id: lane ?? 0, tenant: "default", owner: nil, isEarly: false)
            return try Outbox.begin([due], by: channel, lease: 7, at: now, in: db)
        }
        return try #require(begun.first)
    }

    /// Stores that the device of an attempt is gone.
    fileprivate func remove(_ delivery: any OutboxDelivery, in db: DatabaseConnection) throws {
        try Outbox.record(
            [(delivery, .removed(reason: "BadDeviceToken"))], of: channel(), at: service.clock.now, in: db)
    }
}

extension App {
    /// Whether a user of the default tenant has a stream on this replica.
    fileprivate func hasStream(of user: String) -> Bool {
        outbox?.isPresent(Owner(tenant: ID("default"), userId: ID(user))) ?? false
    }
}
