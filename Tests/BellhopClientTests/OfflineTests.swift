import Foundation
import TestSupport
import Testing

@testable import BellhopClient

/// A bell that opens without a network, on what the device has kept (R-VIS-NFR-1.4, R-VIS-NFR-2.3).
@Suite(.timed, .timeLimit(.minutes(10)))
@MainActor struct OfflineTests {
    private let clock = StandingClock()
    private let directory = try? TemporaryDirectory()

    private static let message: JSON = [
        "id": "m1", "conversationId": "c1", "sequence": 1, "senderId": "ben", "text": "Hello",
        "sentAt": "2026-01-10T09:00:00.000Z", "deletedAt": nil,
    ]

    private static let notification: JSON = [
        "id": "n1", "eventId": nil, "userId": "ada", "type": "VISIT", "category": "visit", "priority": "HIGH",
        "title": "T", "message": "M", "lockScreen": "L", "data": [:], "haptic": nil, "sound": false,
        "createdAt": "2026-01-10T09:00:00.000Z", "seenAt": nil, "readAt": nil, "archivedAt": nil,
    ]

    /// A service with a notification and a message, whose stream stays open.
    private func service() throws -> ScriptedServer {
        let bodies: [(String, JSON)] = [
            ("GET /v1/notifications", ["items": [Self.notification], "next": nil]),
            ("GET /v1/conversations/c1/messages", ["items": [Self.message], "next": nil]),
            ("GET /v1/conversations/c1 ", ["unread": 1, "readPosition": 0]),
            ("GET /v1/badges", ["messages": 1, "requests": 0, "bell": 1, "version": 3, "epoch": "e1"]),
            ("POST /v1/conversations/c1/messages", ["message": Self.message.with(["id": "w", "sequence": 2])]),
        ]
        return try ScriptedServer([]) { head in
            if head.hasPrefix("GET /v1/stream") {
                let ready = #"event: stream:ready\#ndata: {"streamId":"s1","topics":["personal"]}\#n\#n"#
                return .stream([ready], staysOpen: true)
            }
            let body = bodies.first { head.hasPrefix($0.0) }?.1
            let status = body == nil ? "404 Not Found" : "200 OK"
            return .answer(status, headers: "Connection: close\r\n", body: (body ?? [:]).text)
        }
    }

    private func storage() throws -> FileStorage {
        FileStorage(directory: URL(fileURLWithPath: try #require(directory).path))
    }

    private func bell(
        _ url: String, _ user: String = "ada", isOnline: Bool = true,
        token: BellhopClient.TokenProvider = .fixed("t"), _ change: (inout Bell.Options) -> Void = { _ in }
    ) throws -> Bell {
        var options = Bell.Options()
        (options.clock, options.user, options.storage) = (clock.clock, user, try storage())
        options.network = ManualNetwork(isOnline: isOnline)
        change(&options)
        return Bell(url: url, token: token, options: options)
    }

    /// A first start with a network, after which the device has kept the state.
    private func firstStart(_ server: ScriptedServer, token: BellhopClient.TokenProvider = .fixed("t")) async throws {
        let bell = try bell(server.baseURL, token: token)
        let (notifications, conversation, badges) = (bell.notifications, bell.conversation("c1"), bell.badges)
        try await eventually("the stores are loaded") { @Sendable in
            await MainActor.run {
                !notifications.snapshot.items.isEmpty && conversation.snapshot.unread != nil && badges.snapshot != nil
                    && !conversation.snapshot.messages.isEmpty && bell.lastState != nil
            }
        }
        bell.close()
        let files = try storage()
        try await eventually("the state is stored") { @Sendable in
            try await files.keys(beginningWith: "").contains { $0.hasSuffix(" state") }
        }
    }

    @Test func lastState_showsWithoutNetworkAndToken() async throws {
        let server = try service()
        try await firstStart(server)
        server.stop()
        let bell = try bell(server.baseURL, isOnline: false, token: .init { nil })
        defer { bell.close() }
        let (notifications, conversation) = (bell.notifications, bell.conversation("c1"))
        try await eventually("the last state shows") { @Sendable in
            await MainActor.run { notifications.snapshot.isLoaded && conversation.snapshot.isLoaded }
        }
        #expect(notifications.snapshot.items.map(\.id) == ["n1"])
        #expect(conversation.snapshot.messages.map(\.text) == ["Hello"])
        #expect(conversation.snapshot.unread == 1)
        #expect(bell.badges.snapshot?.total == 2)
        #expect(bell.conversation("c2").snapshot.isLoaded == false)
    }

    /// A device that believes to be online may wait long for a token.
    @Test func slowToken_doesNotHideTheLastState() async throws {
        let server = try service()
        try await firstStart(server)
        let never = Promise<String?>()
        let bell = try bell(server.baseURL, token: .init { await never.value })
        defer { bell.close() }
        let notifications = bell.notifications
        try await eventually("the last state shows", step: { @Sendable [clock] in clock.advance(milliseconds: 100) }) {
            @Sendable in
            await MainActor.run { notifications.snapshot.items.map(\.id) == ["n1"] }
        }
        never.fulfil(nil)
    }

    @Test func anotherUser_seesNothingOfIt() async throws {
        let server = try service()
        try await firstStart(server)
        server.stop()
        let bell = try bell(server.baseURL, "ben", isOnline: false)
        defer { bell.close() }
        let (notifications, conversation) = (bell.notifications, bell.conversation("c1"))
        try await eventually("it is offline") { @Sendable in
            await MainActor.run { bell.connection.status == .offline }
        }
        #expect(bell.lastState == nil)
        #expect(notifications.snapshot.items.isEmpty)
        #expect(conversation.snapshot.messages.isEmpty)
    }

    /// A token of Ada with a role, which is part of the identity.
    private nonisolated static func token(_ role: String) -> String {
        let claims: JSON = ["sub": "ada", "role": .string(role)]
        return "e30.\(claims.data.base64EncodedString().filter { $0 != "=" }).x"
    }

    /// Other rights are another identity, and what the earlier one saw does not stay on the device.
    @Test func otherRights_startWithoutTheState_whichIsDeleted() async throws {
        let staff = Self.token("staff")
        let server = try service()
        server.name { $0 == staff ? "i1" : "i2" }
        try await firstStart(server, token: .fixed(staff))
        let bell = try bell(server.baseURL, token: .fixed(Self.token("guest")))
        defer { bell.close() }
        try await eventually("the new identity is open") { @Sendable in
            await MainActor.run { bell.identity == "i2" && bell.lastState != nil }
        }
        #expect(try await storage().keys(beginningWith: "").allSatisfy { !$0.hasSuffix(" i1 state") })
    }

    @Test(arguments: [
        "", "{", #"{"format":2,"states":{}}"#, #"{"format":1,"states":{"notifications":{"at":1,"state":"{"}}}"#,
    ])
    func unreadableState_isIgnored(_ text: String) async throws {
        let server = try service()
        try await firstStart(server)
        let files = try storage()
        let key = try #require(try await files.keys(beginningWith: "").first { $0.hasSuffix(" state") })
        try await files.set(key, Data(text.utf8))
        server.stop()
        let bell = try bell(server.baseURL, isOnline: false)
        defer { bell.close() }
        let notifications = bell.notifications
        try await eventually("the state is read") { @Sendable in await MainActor.run { bell.lastState != nil } }
        #expect(notifications.snapshot.items.isEmpty)
    }

    /// A message of an earlier process shows as waiting, and its answer confirms it.
    @Test func waitingWrites_showAsWaiting_untilTheyAreAnswered() async throws {
        let server = try service()
        try await firstStart(server)
        server.cutOff(true)
        let before = try bell(server.baseURL, isOnline: false)
        try before.conversation("c1").send("Wait for me", id: "w")
        let files = try storage()
        try await eventually("the write is stored") { @Sendable in
            try await files.keys(beginningWith: "").contains { $0.contains("outbox/") }
        }
        before.close()
        let network = ManualNetwork(isOnline: false)
        let bell = try bell(server.baseURL) { $0.network = network }
        defer { bell.close() }
        let conversation = bell.conversation("c1")
        try await eventually("the message shows as waiting") { @Sendable in
            await MainActor.run { !conversation.snapshot.sending.isEmpty }
        }
        #expect(conversation.snapshot.sending.map(\.text) == ["Wait for me"])
        server.cutOff(false)
        network.tell(isOnline: true)
        try await eventually("the message is sent") { @Sendable in
            await MainActor.run { conversation.snapshot.sending.isEmpty }
        }
        #expect(conversation.snapshot.refused.isEmpty)
        #expect(server.requests.count { $0.hasPrefix("POST ") && $0.contains("Wait for me") } == 1)
    }

    @Test func signOut_deletesAllThatTheDeviceKeeps() async throws {
        let server = try service()
        try await firstStart(server)
        server.cutOff(true)
        let bell = try bell(server.baseURL, isOnline: false)
        defer { bell.close() }
        try bell.conversation("c1").send("Never sent", id: "w")
        let files = try storage()
        try await eventually("the write is stored") { @Sendable in
            try await files.keys(beginningWith: "").contains { $0.contains("outbox/") }
        }
        let unsent = await bell.signOut().value
        #expect(unsent.compactMap { $0.body?["text"].string } == ["Never sent"])
        #expect(try await files.keys(beginningWith: "") == [])
    }

    @Test func signOut_asksFirst_ifWritesWait() async throws {
        let server = try service()
        try await firstStart(server)
        server.cutOff(true)
        var questions: [[String]] = []
        var answer = false
        let bell = try bell(server.baseURL, isOnline: false) { options in
            options.confirmSignOut = { waiting in
                questions.append(waiting.map(\.path))
                return answer
            }
        }
        defer { bell.close() }
        try bell.conversation("c1").send("Wait for me", id: "w")
        try await eventually("the write waits") { @Sendable in await MainActor.run { bell.waitingWrites == 1 } }
        #expect(await bell.signOut().value == [])
        #expect(bell.user == "ada")
        answer = true
        #expect(await bell.signOut().value.count == 1)
        #expect(bell.user == nil)
        #expect(questions == [["/v1/conversations/c1/messages"], ["/v1/conversations/c1/messages"]])
        // Without waiting writes there is no question.
        bell.signIn("ada")
        _ = await bell.signOut().value
        #expect(questions.count == 2)
    }

    /// Writes of an earlier start, which are not read before the identity is known, and writes that have no outbox yet.
    @Test func signOut_asksFirst_alsoWhileTheTokenIsAwaited() async throws {
        let server = try service()
        let before = try bell(server.baseURL)
        try await eventually("the identity is stored") { @Sendable in await MainActor.run { before.outbox != nil } }
        before.close()
        await before.keeping?.value
        server.cutOff(true)
        let offline = try bell(server.baseURL, isOnline: false)
        try offline.conversation("c1").send("Of an earlier start", id: "w1")
        let files = try storage()
        try await eventually("the write is stored") { @Sendable in
            try await files.keys(beginningWith: "").contains { $0.contains("outbox/") }
        }
        offline.close()
        await offline.keeping?.value
        let never = Promise<String?>()
        var questions: [[String]] = []
        let bell = try bell(server.baseURL, token: .init { await never.value }) { options in
            options.confirmSignOut = { waiting in
                questions.append(waiting.compactMap { $0.body?["text"].string })
                return true
            }
        }
        defer { bell.close() }
        try bell.conversation("c1").send("Of this start", id: "w2")
        let unsent = await bell.signOut().value
        #expect(questions == [["Of an earlier start", "Of this start"]])
        #expect(unsent.compactMap { $0.body?["text"].string } == ["Of an earlier start", "Of this start"])
        #expect(try await files.keys(beginningWith: "") == [])
        never.fulfil(nil)
    }

    /// A storage that is slow to store states.
    private struct SlowStorage: ClientStorage {
        let storage: FileStorage
        func get(_ key: String) async throws -> Data? { try await storage.get(key) }
        func remove(_ key: String) async throws { try await storage.remove(key) }
        func keys(beginningWith prefix: String) async throws -> [String] {
            try await storage.keys(beginningWith: prefix)
        }

        func set(_ key: String, _ value: Data) async throws {
            if key.hasSuffix(" state") { for _ in 0..<1000 { await Task.yield() } }
            try await storage.set(key, value)
        }
    }

    /// The last state of a user is still being stored when the same user signs in again with other rights.
    @Test func otherRights_deleteTheState_alsoWhileItIsStored() async throws {
        let server = try service()
        let roles = Guarded(["staff"])
        let slow = SlowStorage(storage: try storage())
        let bell = try bell(server.baseURL, token: .init { Self.token(roles.withLock { $0[$0.count - 1] }) }) {
            $0.storage = slow
        }
        defer { bell.close() }
        let notifications = bell.notifications
        try await eventually("the list is loaded") { @Sendable in
            await MainActor.run { !notifications.snapshot.items.isEmpty && bell.lastState != nil }
        }
        roles.withLock { $0.append("guest") }
        bell.signIn()
        try await eventually("the next identity has begun") { @Sendable in
            await MainActor.run { bell.lastState != nil }
        }
        for _ in 0..<5000 { await Task.yield() }
        #expect(try await slow.keys(beginningWith: "").filter { $0.hasSuffix(" state") && $0.contains("staff") } == [])
    }
}
