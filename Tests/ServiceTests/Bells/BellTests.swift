import BellhopClient
import Foundation
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// A bell at the real service: restarts, expiries, being offline, another user.
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

    /// CUT N-1, N-3, VIS NFR-2.2: what happens meanwhile is told afterwards, in order and once.
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
        try await ada.until("all is shown") {
            notifications.snapshot.items.count == 10 && badges.snapshot?.bell == 10
                && ada.heard("notification:created").count >= 10
        }
        #expect(ada.bell.connection.streamID != firstStream)
        #expect(notifications.snapshot.items.map(\.title) == (1...10).reversed().map { "N\($0)" })
        #expect(ada.heard("notification:created").map { $0["title"].string ?? "" } == (1...10).map { "N\($0)" })
    }

    /// A process that ends, without a word, goes on where it was: the place in the stream is kept.
    @Test func nextProcess_goesOnWhereTheOneBeforeWas() async throws {
        let directory = try TemporaryDirectory()
        var options = Bell.Options()
        options.storage = files(directory)
        let before = BellProbe(service, as: .user("ada"), options)
        try await before.live()
        try await notify("ada", "N1")
        try await before.until("it is heard") { before.heard("notification:created").count == 1 }
        let storage = files(directory)
        try await before.until("the place is kept") {
            let keys = try await storage.keys(beginningWith: "").filter { $0.hasSuffix("cursor") }
            let last = before.heard.last { !$0.id.isEmpty }?.id ?? ""
            return try await storage.get(keys.first ?? "") == Data(last.utf8)
        }
        before.close()
        try await notify("ada", "N2")
        let after = BellProbe(service, as: .user("ada"), options)
        defer { after.close() }
        try await after.until("what was missed is told") { after.heard("notification:created").count == 1 }
        #expect(after.heard("notification:created")[0]["title"].string == "N2")
    }

    /// How many tokens of streams the service has taken.
    private func renewals() async throws -> Int {
        let lines = try await backend.get("/metrics").text.split(separator: "\n")
        let counter =
            #"bellhop_http_requests_total{method="PUT",route="/v1/streams/{id}/token",status="200"}"#
        let taken = lines.filter { $0.hasPrefix(counter) }
        return taken.compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.map { Int($0) }.reduce(0, +)
    }

    /// SCH FR-001, FR-002, NFR-004: the stream goes on with the next token, without a break.
    @Test func expiringToken_isRenewedInPlace() async throws {
        let clock = StandingClock(at: Int(service.clock.now.microseconds / 1000))
        let given = Collected<Bool>()
        var options = Bell.Options()
        options.clock = ClientClock(
            now: { clock.now }, random: { 0.5 }, sleep: { try await clock.wait(until: $0) })
        // Heartbeats come by the service's other clock.
        options.limits.silenceMilliseconds = 1 << 40
        let provider = BellhopClient.TokenProvider(renewing: { [service] needsNew in
            given.append(needsNew)
            return service.token(for: .user("ada"), lifetimeSeconds: 120)
        })
        let ada = BellProbe(service, token: provider, options, isClockOwn: true)
        defer { ada.close() }
        try await ada.live()
        let streamID = ada.bell.connection.streamID
        // A quarter of its life before the end the next one is asked for.
        for _ in 0..<5 {
            let (count, before) = (given.all.count, try await renewals())
            service.clock.advance(seconds: 95)
            clock.advance(milliseconds: 95_000)
            try await ada.until("the next token is asked for") { given.all.count > count }
            try await ada.until("and put") { try await renewals() > before }
        }
        try await notify("ada", "later")
        try await ada.until("the stream lives on") { ada.heard("notification:created").count == 1 }
        #expect(ada.bell.connection.streamID == streamID)
        #expect(ada.heard("stream:ready").count == 1)
        #expect(given.all.first == false && given.all.dropFirst().allSatisfy { $0 })
    }

    /// SCH NFR-004: a token that is refused, for calls and streams, is asked for once more.
    @Test func refusedToken_isReplaced_forCallsToo() async throws {
        let given = Collected<Bool>()
        let provider = BellhopClient.TokenProvider(renewing: { [service] needsNew in
            given.append(needsNew)
            // Opaque to the client, so that only the service can say that it is none.
            return needsNew ? service.token(for: .user("ada")) : "no token"
        })
        let ada = BellProbe(service, token: provider)
        defer { ada.close() }
        let badges = try await ada.bell.client.getBadges()
        #expect(badges.value.total == 0)
        try await ada.live()
        #expect(given.all == [false, true])
    }

    /// VIS NFR-2.3, CUT N-3: written offline, sent by the next process, in order and once.
    @Test func writesOfflineBeforeTheEndOfTheProcess_areSentByTheNext() async throws {
        let made = try await service.client(as: .user("ada")).createConversation(.init(memberIds: ["ben"]))
        let id = made.value.id
        let directory = try TemporaryDirectory()
        let offline = ToldNetwork(isOnline: false)
        var options = Bell.Options()
        options.user = "ada"
        options.storage = files(directory)
        options.network = offline
        let before = BellProbe(service, as: .user("ada"), options)
        defer { before.close() }
        try await before.until("it knows that it is offline") { before.bell.connection.status == .offline }
        let talk = before.bell.conversation(id)
        for number in 1...10 { try talk.send("M\(number)", id: "m\(number)") }
        #expect(talk.snapshot.sending.map(\.text) == (1...10).map { "M\($0)" })
        #expect(before.bell.conversations.snapshot.items.isEmpty)
        let storage = files(directory)
        try await before.until("all are stored") {
            try await storage.keys(beginningWith: "").count { $0.contains("outbox/") } == 10
        }
        // Nothing says goodbye: the next process finds what is on the disk. One write is made before it has looked.
        options.network = ToldNetwork()
        let after = BellProbe(service, as: .user("ada"), options)
        defer { after.close() }
        let later = after.bell.conversation(id)
        let last = try later.send("M11", id: "m11")
        #expect(try await last.answer()?.status == 201)
        try await after.until("nothing waits") { after.bell.waitingWrites == 0 }
        let texts = try await service.client(as: .user("ben")).listMessages(id: id, since: 0).value.items.map(\.text)
        #expect(texts == (1...11).map { "M\($0)" })
        try await after.until("all are shown as sent") {
            later.snapshot.messages.map(\.text) == texts && later.snapshot.sending.isEmpty
        }
        try await after.until("nothing is left") {
            try await storage.keys(beginningWith: "").allSatisfy { !$0.contains("outbox/") }
        }
    }

    /// The answer of a write is lost with the service that gave it: it is sent again, and was done once.
    @Test func writesDuringARestart_areDoneOnce_inOrder() async throws {
        let made = try await service.client(as: .user("ada")).createConversation(.init(memberIds: ["ben"]))
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
        let ben = service.client(as: .user("ben"))
        let texts = try await ben.listMessages(id: made.value.id, since: 0, limit: 100).value.items.map(\.text)
        #expect(texts == (1...30).map { "M\($0)" })
        try await ada.until("all are shown once") { talk.snapshot.messages.map(\.text) == texts }
    }

    /// FR-001: what one user has seen is gone before anything of the next is shown, and is not told any more.
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
        try await probe.until("ada's are shown") {
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
        try await probe.until("ben's are shown") {
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

    /// An app that gives another user's token without a word changes the user all the same.
    @Test func tokenOfAnotherUser_isAnotherUser() async throws {
        try await notify("ada", "for ada")
        let current = Locked("ada")
        let provider = BellhopClient.TokenProvider { [service] in
            service.token(for: .user(current.withLock { $0 }))
        }
        let probe = BellProbe(service, token: provider)
        defer { probe.close() }
        let notifications = probe.bell.notifications
        try await probe.until("ada's are shown") { notifications.snapshot.items.count == 1 }
        current.withLock { $0 = "ben" }
        service.clock.advance(seconds: 10)
        let now = Date(timeIntervalSince1970: Double(service.clock.now.seconds))
        try await backend.revoke(.userIdAndIssuedBefore(.init(userId: "ada", issuedBefore: now)))
        try await probe.until("it is ben's bell") { probe.bell.user == "ben" && probe.bell.connection.status == .live }
        #expect(notifications.snapshot.items.isEmpty)
    }
}
