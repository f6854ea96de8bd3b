import BellhopClient
import Foundation
import TestSupport
import Testing
import Threads
import Values

/// A bell at the real service: restarts, token expiry, offline periods, and a change of the user.
@MainActor @Suite(.timed, .timeLimit(.minutes(3)))
struct BellTests {
    private let service: TestService
    private let backend: BellhopClient

    init() throws {
        service = try TestService.start(at: TestService.morning)
        backend = service.client(as: .service())
    }

    private func notify(_ user: String, _ title: String) async throws {
        let now = service.clock.now.microseconds
        service.clock.set(.init(microseconds: now + 1000))
        try await backend.postNotification(
            .init(userId: user, category: "news", priority: .high, title: title, message: "M"))
    }

    private func files(_ directory: TemporaryDirectory) -> FileStorage {
        FileStorage(directory: URL(fileURLWithPath: directory.path))
    }

    /// R-CUT-N-1, R-CUT-N-3, R-VIS-NFR-2.2: events during the interruption are delivered afterwards, in order and once.
    @Test func restart_losesNothing_andDoublesNothing() async throws {
        let ada = BellProbe(service, as: .user("ada"))
        defer { ada.close() }
        let notifications = ada.bell.notifications
        let badges = ada.bell.badges
        try await ada.live()
        for number in 1...5 { try await notify("ada", "N\(number)") }
        let firstStream = ada.bell.connection.streamID
        try await service.restart(with: ["port": "\(service.port)"])
        for number in 6...10 { try await notify("ada", "N\(number)") }
        try await ada.until("all notifications are shown") {
            notifications.snapshot.items.count == 10 && badges.snapshot?.bell == 10
                && ada.heard("notification:created").count >= 10
        }
        #expect(ada.bell.connection.streamID != firstStream)
        #expect(notifications.snapshot.items.map(\.title) == (1...10).reversed().map { "N\($0)" })
        #expect(ada.heard("notification:created").map { $0["title"].string ?? "" } == (1...10).map { "N\($0)" })
    }

    /// A process that ends without closing the bell is succeeded by one that continues at the stored stream position.
    @Test func nextProcess_continuesAtTheStoredPosition() async throws {
        let directory = try TemporaryDirectory()
        var options = Bell.Options()
        options.storage = files(directory)
        let before = BellProbe(service, as: .user("ada"), options)
        try await before.live()
        try await notify("ada", "N1")
        try await before.until("the notification is received") { before.heard("notification:created").count == 1 }
        let storage = files(directory)
        try await before.until("the stream position is stored") {
            let keys = try await storage.keys(beginningWith: "").filter { $0.hasSuffix("cursor") }
            let last = before.heard.last { !$0.id.isEmpty }?.id ?? ""
            return try await storage.get(keys.first ?? "") == Data(last.utf8)
        }
        before.close()
        try await notify("ada", "N2")
        let after = BellProbe(service, as: .user("ada"), options)
        defer { after.close() }
        try await after.until("the missed notification is received") { after.heard("notification:created").count == 1 }
        #expect(after.heard("notification:created")[0]["title"].string == "N2")
    }

    /// Returns how many stream tokens the service has accepted.
    private func renewals() async throws -> Int {
        let lines = try await service.call("GET", "/metrics", as: .service()).text.split(separator: "\n")
        let counter =
            #"bellhop_http_requests_total{method="PUT",route="/v1/streams/{id}/token",status="200"}"#
        let taken = lines.filter { $0.hasPrefix(counter) }
        return taken.compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.map { Int($0) }.reduce(0, +)
    }

    /// R-SCH-FR-001, R-SCH-FR-002, R-SCH-NFR-004: the stream continues with the next token, without an interruption.
    @Test func expiringToken_isRenewedInPlace() async throws {
        let clock = StandingClock(at: Int(service.clock.now.microseconds / 1000))
        let given = Collected<Bool>()
        var options = Bell.Options()
        options.clock = ClientClock(
            now: { clock.now }, random: { 0.5 }, sleep: { try await clock.wait(until: $0) })
        // Heartbeats follow the service's clock, not this one.
        options.limits.silenceMilliseconds = 1 << 40
        let provider = BellhopClient.TokenProvider(renewing: { [service] needsNew in
            given.append(needsNew)
            return service.token(for: .user("ada"), lifetimeSeconds: 120)
        })
        let ada = BellProbe(service, token: provider, options, isClockOwn: true)
        defer { ada.close() }
        try await ada.live()
        let streamID = ada.bell.connection.streamID
        // The bell requests the next token a quarter of the lifetime before the expiry.
        for _ in 0..<5 {
            let (count, before) = (given.all.count, try await renewals())
            service.clock.advance(seconds: 95)
            clock.advance(milliseconds: 95_000)
            try await ada.until("the next token is requested") { given.all.count > count }
            try await ada.until("the next token is sent to the stream") { try await renewals() > before }
        }
        try await notify("ada", "later")
        try await ada.until("the stream continues") { ada.heard("notification:created").count == 1 }
        #expect(ada.bell.connection.streamID == streamID)
        #expect(ada.heard("stream:ready").count == 1)
        #expect(given.all.first == false && given.all.dropFirst().allSatisfy { $0 })
    }

    /// R-SCH-NFR-004: after the service refuses a token, calls and streams request a new one, once.
    @Test func refusedToken_isReplaced_forCallsToo() async throws {
        let given = Collected<Bool>()
        let provider = BellhopClient.TokenProvider(renewing: { [service] needsNew in
            given.append(needsNew)
            // Opaque to the client, so that only the service can detect that it is invalid.
            return needsNew ? service.token(for: .user("ada")) : "no-token"
        })
        let ada = BellProbe(service, token: provider)
        defer { ada.close() }
        let badges = try await ada.bell.client.getBadges()
        #expect(badges.value.total == 0)
        try await ada.live()
        #expect(given.all == [false, true])
    }

    /// R-VIS-NFR-2.3, R-CUT-N-3: messages written offline are sent by the next process, in order and once.
    @Test func writesOfflineBeforeTheEndOfTheProcess_areSentByTheNext() async throws {
        let made = try await service.client("ada").createConversation(.init(memberIds: ["ben"]))
        let id = made.value.id
        let directory = try TemporaryDirectory()
        var options = Bell.Options()
        options.user = "ada"
        options.storage = files(directory)
        let first = BellProbe(service, as: .user("ada"), options)
        try await first.live()
        first.close()
        // Without a network the app has no token either.
        options.network = ManualNetwork(isOnline: false)
        let before = BellProbe(service, token: .init { nil }, options)
        defer { before.close() }
        try await before.until("the bell is offline") { before.bell.connection.status == .offline }
        let talk = before.bell.conversation(id)
        for number in 1...10 { try talk.send("M\(number)", id: "m\(number)") }
        #expect(talk.snapshot.sending.map(\.text) == (1...10).map { "M\($0)" })
        #expect(before.bell.conversations.snapshot.items.isEmpty)
        let storage = files(directory)
        try await before.until("all messages are stored") {
            try await storage.keys(beginningWith: "").count { $0.contains("outbox/") } == 10
        }
        // The first process ends without closing, and the next one finds the stored messages. One message is sent
        // before the outbox has been read.
        options.network = ManualNetwork()
        let after = BellProbe(service, as: .user("ada"), options)
        defer { after.close() }
        let later = after.bell.conversation(id)
        let last = try later.send("M11", id: "m11")
        #expect(try await last.answer()?.status == 201)
        try await after.until("no write is queued") { after.bell.waitingWrites == 0 }
        let texts = try await service.client("ben").listMessages(id: id, since: 0).value.items.map(\.text)
        #expect(texts == (1...11).map { "M\($0)" })
        try await after.until("all messages are shown as sent") {
            later.snapshot.messages.map(\.text) == texts && later.snapshot.sending.isEmpty
        }
        try await after.until("the outbox on disk is empty") {
            try await storage.keys(beginningWith: "").allSatisfy { !$0.contains("outbox/") }
        }
    }

    /// The service restarts while it answers writes. They are sent again, but performed only once.
    @Test func writesDuringARestart_areDoneOnce_inOrder() async throws {
        let made = try await service.client("ada").createConversation(.init(memberIds: ["ben"]))
        let ada = BellProbe(service, as: .user("ada"))
        defer { ada.close() }
        let talk = ada.bell.conversation(made.value.id)
        try await ada.live()
        var commands: [Command] = []
        for number in 1...30 {
            commands.append(try talk.send("M\(number)"))
            if number == 10 { try await service.restart(with: ["port": "\(service.port)"]) }
        }
        for command in commands { try await command.answer() }
        let ben = service.client("ben")
        let texts = try await ben.listMessages(id: made.value.id, since: 0, limit: 100).value.items.map(\.text)
        #expect(texts == (1...30).map { "M\($0)" })
        try await ada.until("each message is shown once") { talk.snapshot.messages.map(\.text) == texts }
    }

    /// R-SCH-FR-001: the data of one user is cleared before any data of the next appears, and its events are no longer
    /// delivered.
    @Test func newUser_startsEmpty() async throws {
        try await notify("ada", "for ada")
        let current = Locked("ada")
        let provider = BellhopClient.TokenProvider { [service] in
            service.token(for: .user(current.withLock { $0 }))
        }
        let probe = BellProbe(service, token: provider)
        defer { probe.close() }
        let bell = probe.bell
        try await probe.live()
        let (notifications, badges) = (bell.notifications, bell.badges)
        try await probe.until("the notifications of ada are shown") {
            notifications.snapshot.items.count == 1 && badges.snapshot?.bell == 1
        }
        #expect(bell.user == "ada")
        current.withLock { $0 = "ben" }
        bell.signIn("ben")
        #expect(notifications.snapshot.items.isEmpty)
        #expect(badges.snapshot == nil)
        try await probe.live()
        try await notify("ada", "for ada again")
        try await notify("ben", "for ben")
        try await probe.until("the notifications of ben are shown") {
            badges.snapshot?.bell == 1 && notifications.snapshot.items.count == 1
        }
        #expect(notifications.snapshot.items.map(\.title) == ["for ben"])
        #expect(probe.heard("notification:created").map { $0["title"].string } == ["for ben"])
        bell.signOut()
        #expect(notifications.snapshot.items.isEmpty)
        #expect(badges.snapshot == nil)
        #expect(bell.connection.status == .closed)
        await #expect(throws: UnsentWrite.self) { try await bell.send("PUT", "/v1/preferences", [:]) }
    }

    /// An app whose provider returns another user's token, without signing in, changes the user too.
    @Test func tokenOfAnotherUser_isAnotherUser() async throws {
        try await notify("ada", "for ada")
        let current = Locked("ada")
        let provider = BellhopClient.TokenProvider { [service] in
            service.token(for: .user(current.withLock { $0 }))
        }
        let probe = BellProbe(service, token: provider)
        defer { probe.close() }
        let notifications = probe.bell.notifications
        try await probe.until("the notifications of ada are shown") { notifications.snapshot.items.count == 1 }
        current.withLock { $0 = "ben" }
        service.clock.advance(seconds: 10)
        let now = Date(timeIntervalSince1970: Double(service.clock.now.seconds))
        try await backend.revoke(.userIdAndIssuedBefore(.init(userId: "ada", issuedBefore: now)))
        try await probe.until("ben uses the bell") { probe.bell.user == "ben" && probe.bell.connection.status == .live }
        #expect(notifications.snapshot.items.isEmpty)
    }
}
