import BellhopClient
import Foundation
import TestSupport
import Testing

/// The flows R-CNT-C1 to R-CNT-C3 and the acceptance criteria R-CNT-AC-1 to R-CNT-AC-5, with devices that are online,
/// offline or late.
@Suite(.timed) struct ConversationFlowsTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    /// The state of one device: cached lists, and counts that newer ones from the server replace.
    private struct Device {
        var listener: StreamListener?
        var badges: JSON = .null
        var conversations: [Bellhop.Conversation] = []

        /// Applies counts from any source: newer ones replace older ones, older ones are ignored (R-CNT-RT-3).
        mutating func take(_ counts: JSON) {
            if (counts["version"].int ?? -1) > (badges["version"].int ?? -1) { badges = counts }
        }

        /// Reconciles with one round trip when the app comes to the foreground (R-CNT-RECON-1).
        mutating func reconcile(_ service: TestService, as user: String) async throws {
            take(try await service.call("GET", "/v1/badges", as: .user(user)).json)
        }

        var messages: Int? { badges["messages"].int }
    }

    /// R-CNT-C1, R-CNT-AC-2, R-CNT-G2: one event carries everything that the conversation's row and the badge need. The
    /// next reconciliation confirms it. A benchmark measures the latency, because other tests run here at the same time.
    @Test func flowC1_messageArrives_whileAppIsForegrounded() async throws {
        let id = try await service.converse("ana", "ben")
        var device = Device(listener: try await service.listen(as: .user("ben")))
        try await device.reconcile(service, as: "ben")
        try await service.send("hi", to: id, as: "ana")
        let delivered = try #require(try await device.listener?.next("message:created").json)
        device.take(delivered["badges"])
        #expect(device.messages == 1)
        expect(delivered, has: ["unread": 1, "preview": "hi"])
        let fast = device.badges
        try await device.reconcile(service, as: "ben")
        #expect(device.badges == fast)
    }

    /// R-CNT-C2, R-CNT-AC-4: what a user reads on one device is read on the other: at once if the other is connected,
    /// otherwise at its next reconciliation.
    @Test func flowC2_readingOnOneDevice_isSeenOnTheOther() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...3 { try await service.send("m\(number)", to: id, as: "ana") }
        var (phone, tablet, watch) = (Device(), Device(), Device())
        phone.listener = try await service.listen(as: .user("ben"))
        try await watch.reconcile(service, as: "ben")
        #expect(watch.messages == 3)
        let path = "/v1/conversations/\(id)/read-position"
        tablet.take(try await service.call("PUT", path, as: .user("ben"), ["sequence": 3]).json["badges"])
        #expect(tablet.messages == 0)
        let delivered = try #require(try await phone.listener?.next("conversation:read").json)
        phone.take(delivered["badges"])
        #expect(phone.messages == 0)
        #expect(delivered["unread"] == 0)
        // The watch was offline, so its counts are stale until it reconciles.
        #expect(watch.messages == 3)
        try await watch.reconcile(service, as: "ben")
        #expect(watch.badges == phone.badges)
        #expect(watch.badges == tablet.badges)
    }

    /// R-CNT-C3, R-CNT-AC-3: two minutes without a connection. After the reconnect, each missed message arrives once
    /// and in order, and the counts are the server's.
    @Test func flowC3_twoMinutesWithoutAConnection_areCaughtUp() async throws {
        let id = try await service.converse("ana", "ben")
        var device = Device(listener: try await service.listen(as: .user("ben")))
        try await service.send("before", to: id, as: "ana")
        device.take(try #require(try await device.listener?.next("message:created").json)["badges"])
        let cursor = try #require(device.listener?.lastEventID)
        device.listener?.close()
        device.listener = nil

        for number in 1...8 {
            service.clock.advance(seconds: 15)
            try await service.send("away \(number)", to: id, as: "ana")
        }
        // Another device has read some of it in the meantime.
        try await service.read(4, of: id, as: "ben")
        #expect(device.messages == 1)

        let back = try await service.listen(as: .user("ben"), lastEventID: cursor)
        var sequences: [Int] = []
        while sequences.count < 8 {
            let event = try await back.next("message:created").json
            sequences.append(try #require(event["message"]["sequence"].int))
            device.take(event["badges"])
        }
        #expect(sequences == Array(2...9))
        let read = try await back.next("conversation:read").json
        device.take(read["badges"])
        #expect(device.messages == 5)
        let replayed = device.badges
        try await device.reconcile(service, as: "ben")
        #expect(device.badges == replayed)
        try service.expectExactCounts()
    }

    /// R-CNT-AC-1, R-CNT-RECON-1: after the app comes to the foreground, one round trip brings the server's counts, and a
    /// conditional poll is answered with 304.
    @Test func foreground_costsOneRoundTrip() async throws {
        let id = try await service.converse("ana", "ben")
        try await service.send("hi", to: id, as: "ana")
        _ = try await service.ask(.init(kind: .friend, toUserId: "ben"), as: "ana")
        try await service.notify(NotificationsTests.draft("news", to: "ben"))
        #expect(try await service.badges(of: "ben") == [1, 1, 1, 3])
        let tag = try #require(try await service.client("ben").getBadges().etag)
        #expect(try await service.client("ben").getBadges(ifNoneMatch: tag) == nil)
    }

    /// R-CNT-AC-5: a cached list that implies another count never wins. Counts have versions and lists do not; the
    /// freshly fetched list adds up to the badge.
    @Test func cachedLists_neverReplaceNewerCounts() async throws {
        let (one, two) = (try await service.converse("ana", "ben"), try await service.converse("cem", "ben"))
        for _ in 1...2 { try await service.send("m", to: one, as: "ana") }
        try await service.send("m", to: two, as: "cem")
        var device = Device()
        device.conversations = try await service.conversations(of: "ben")
        try await device.reconcile(service, as: "ben")
        #expect(device.messages == 3)
        // Another device reads all of one conversation. This device has cached only a page of one.
        let page = try await service.client("ben").listConversations(limit: 1).value.items
        let old = device.badges
        try await service.read(2, of: one, as: "ben")
        try await device.reconcile(service, as: "ben")
        #expect(device.messages == 1)
        // A late answer carries an older version and is ignored.
        device.take(old)
        #expect(device.messages == 1)
        #expect(page.count == 1)
        let fresh = try await service.conversations(of: "ben")
        #expect(fresh.reduce(0) { $0 + ($1.unread ?? 0) } == device.messages)
        let unread = try await service.client("ben").listConversations(unread: true).value.items
        #expect(unread.map(\.id) == [two])
    }

    /// R-CNT-COUNTS-3, R-CNT-G1 through the whole service and its store: random operations of three users on two
    /// devices each, and of a backend. After each operation, its answer and every stored row are compared with a model that
    /// recounts. `TEST_CONVERSATION_OPERATIONS` sets their number; `make test-long` runs a million on each store.
    @Test func randomOperations_neverDrift() async throws {
        let asked = ProcessInfo.processInfo.environment["TEST_CONVERSATION_OPERATIONS"].flatMap { Int($0) }
        let operations = asked ?? effort(quick: 500, full: 2_000, long: 2_000)
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        var done = 0
        while done < operations {
            // Starts a new service at intervals, because each operation recounts all data.
            let devices = try ConversationDevices(seed: random.next())
            for _ in 0..<min(Self.operationsOfService, operations - done) {
                let step = try devices.step()
                done += 1
                guard step.differences.isEmpty else {
                    Issue.record("seed \(seed), operation \(done), \(step.what): \(step.differences)")
                    return
                }
            }
            let differences = try devices.audit()
            #expect(differences.isEmpty, "seed \(seed), operation \(done): \(differences)")
            if done % 50_000 == 0 { print("randomOperations_neverDrift: \(done) operations") }
        }
    }

    private static let operationsOfService = 500

    /// Concurrent devices leave no drift, whichever request is served first.
    @Test func concurrentDevices_causeNoDrift() async throws {
        try await ConversationPlay(service).run(steps: effort(quick: 12, full: 40, long: 200))
    }
}

/// Random operations of three users in two conversations. Every answer must be a possible one.
struct ConversationPlay: Sendable {
    private static let users = ["ana", "ben", "cem"]
    private static let ids = ["c1", "c2"]
    private let service: TestService
    /// Further replicas; the operations are distributed over all of them.
    private let others: [TestService]

    init(_ service: TestService, and others: [TestService] = []) {
        self.service = service
        self.others = others
    }

    private func begin() async throws {
        for id in Self.ids {
            let made = try await service.client(as: .service()).createConversation(
                .init(id: id, memberIds: ["ana", "ben", "cem"]))
            #expect(made.status == 201)
        }
    }

    /// Runs eight devices concurrently.
    func run(steps: Int, of test: String = #function) async throws {
        try await begin()
        let seed = randomSeed(of: test)
        try await concurrently(0..<8) { device in
            var random = SeededGenerator(seed: seed &+ UInt64(device))
            for _ in 0..<steps { try await step(&random) }
        }
        let drift = try service.audit()
        #expect(drift.isEmpty, "seed \(seed): \(drift)")
    }

    /// Performs one random operation.
    private func step(_ random: inout SeededGenerator) async throws {
        let user = Self.users.randomElement(using: &random) ?? ""
        let id = Self.ids.randomElement(using: &random) ?? ""
        let service = ([service] + others).randomElement(using: &random) ?? service
        let (member, backend) = (service.client(user), service.client(as: .service()))
        let last = try await backend.getConversation(id: id).value.lastSequence
        let result: Int
        switch Int.random(in: 0..<16, using: &random) {
        case 0..<6: result = try await status(of: await member.sendMessage(id: id, .init(text: "\(last)")))
        case 6, 7:
            let messages = try await backend.listMessages(id: id).value.items
            guard let message = messages.randomElement(using: &random) else { return }
            let who = Bool.random(using: &random) ? backend : member
            result = try await status(of: await who.deleteMessage(id: id, messageId: message.id))
        case 8: result = try await status(of: await member.removeMember(id: id, userId: "me"))
        case 9, 10: result = try await status(of: await backend.addMember(id: id, userId: user))
        default:
            let isBack = Int.random(in: 0..<3, using: &random) == 0
            let sequence = Bool.random(using: &random) ? last : Int.random(in: 0...last, using: &random)
            let position = Bellhop.ReadConversationBody(sequence: sequence, allowRewind: isBack)
            result = try await status(of: await member.readConversation(id: id, position))
        }
        #expect([200, 201, 403, 404].contains(result), "\(result) for \(user) in \(id)")
    }
}
