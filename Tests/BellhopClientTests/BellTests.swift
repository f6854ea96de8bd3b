import Foundation
import TestSupport
import Testing

@testable import BellhopClient

/// A bell against a server that follows a script.
@Suite(.timed, .timeLimit(.minutes(10)))
@MainActor struct BellTests {
    private let clock = StandingClock()

    private func bell(_ server: ScriptedServer, _ change: (inout Bell.Options) -> Void = { _ in }) -> Bell {
        var options = Bell.Options()
        options.clock = clock.clock
        options.storage = MemoryStorage()
        change(&options)
        return Bell(url: server.baseURL, token: .fixed("t"), options: options)
    }

    private nonisolated static let last = "Connection: close\r\n"

    /// R-CNT-13.1: a refused topic stops neither the bell nor the other topics. R-CNT-RECON-4: an app that shows no
    /// counts does not poll them.
    @Test func refusedTopic_stopsNothingElse_andReachesItsSubscription() async throws {
        let problem = #"{"code":"topic.forbidden","detail":"no","errors":[{"pointer":"/topics/1","detail":"no"}]}"#
        let server = try ScriptedServer([
            .answer("403 Forbidden", headers: Self.last, body: #"{"code":"topic.forbidden","detail":"no"}"#),
            .stream(
                [#"event: stream:ready\#ndata: {"streamId":"s1","topics":["personal"]}\#n\#n"#], staysOpen: true),
            .answer("403 Forbidden", headers: Self.last, body: problem),
            .answer("200 OK", headers: Self.last, body: #"{"topics":["personal","queue:s1"],"tables":[]}"#),
        ])
        let bell = bell(server) { $0.topics = ["queue:s1", "dj:s1"] }
        defer { bell.close() }
        var told: [String] = []
        let subscription = try bell.subscribe(["dj:s1"]) { topic, reason in told.append("\(topic) \(reason.code)") }
        try await eventually("it is live") { @Sendable in
            await MainActor.run { bell.connection.status == .live }
        }
        #expect(bell.connection.topics == ["personal", "queue:s1"])
        #expect(bell.connection.refused.mapValues(\.status) == ["dj:s1": 403])
        #expect(told == ["dj:s1 topic.forbidden"])
        let queue = bell.dj("s1")
        #expect(queue.snapshot.problem?.status == 403)
        #expect(!server.requests.contains { $0.contains("/v1/badges") })
        subscription.cancel()
    }

    /// A slow reader loses the oldest events, and receives one `stream:resync`.
    @Test func slowReader_receivesAResync() async throws {
        let bell = bell(try ScriptedServer([]))
        let events = bell.events("test")
        for number in 0..<1500 { bell.tell("test", .integer(Int64(number))) }
        bell.close()
        var receivedEvents: [Bell.Event] = []
        for await event in events { receivedEvents.append(event) }
        #expect(receivedEvents.count == 1000)
        #expect(receivedEvents.filter { $0.name == "stream:resync" }.map { $0.data["reason"].string } == ["gap"])
        #expect(receivedEvents.last?.data == .integer(1499))
    }

    @Test func signOut_returnsUnsentWrites() async throws {
        let (storage, network) = (MemoryStorage(), ManualNetwork())
        let server = try ScriptedServer([])
        let bell = bell(server) {
            $0.storage = storage
            $0.user = "ada"
            $0.network = network
        }
        defer { bell.close() }
        try await eventually("its outbox is open") { @Sendable in await MainActor.run { bell.outbox != nil } }
        server.cutOff(true)
        network.tell(isOnline: false)
        try await eventually("it is offline", step: { @Sendable [clock] in clock.advance(milliseconds: 100) }) {
            @Sendable in
            await MainActor.run { bell.connection.status == .offline }
        }
        let sending = Task { try await bell.send("POST", "/v1/secret", ["n": 1], key: "k1") }
        try await eventually("it is stored") { @Sendable in
            await storage.keys(beginningWith: "").contains { $0.contains("outbox/") }
        }
        let unsent = await bell.signOut().value
        #expect(unsent.map(\.key) == ["k1"])
        #expect(unsent.map(\.tried) == [nil])
        await #expect(throws: UnsentWrite.self) { _ = try await sending.value }
        #expect(await storage.keys(beginningWith: "") == [])
    }

    /// Topics beyond the limit, or in another form, are an error of the app. The error comes at once, and names the
    /// fault.
    @Test(arguments: [(101, "101 topics, of which a stream has 100"), (0, "queue: s1")])
    func impossibleTopics_areAClearError(_ count: Int, _ detail: String) async throws {
        let topics = count == 0 ? ["queue: s1"] : (1...count).map { "queue:s\($0)" }
        let server = try ScriptedServer([])
        let bell = bell(server) { $0.topics = topics }
        defer { bell.close() }
        try await eventually("it is refused") { @Sendable in
            await MainActor.run { bell.connection.status == .refused }
        }
        #expect(bell.connection.reason?.code == "topics.invalid")
        #expect(bell.connection.reason?.detail?.contains(detail) == true)
        #expect(throws: Bellhop.UnusableParameter.self) { try bell.subscribe(topics) }
        if count > 0 {
            await #expect(throws: Bellhop.UnusableParameter.self) { try await Self.firstEvent(server.baseURL, topics) }
        }
        #expect(server.requests == [])
    }

    private nonisolated static func firstEvent(_ url: String, _ topics: [String]) async throws {
        var events = BellhopClient(baseURL: url).events(topics: topics).makeAsyncIterator()
        _ = try await events.next()
    }

    /// A device's clock may be a day behind or ahead of the service's.
    @Test(arguments: [-86_400, -3600, 0, 3600, 86_400])
    func wrongClock_doesNotEndAToken(_ aheadSeconds: Int) async throws {
        let clock = StandingClock()
        let asked = Collected<Bool>()
        let issued = clock.now / 1000 - aheadSeconds
        let provider = BellhopClient.TokenProvider(renewing: { needsNew in
            asked.append(needsNew)
            let claims: JSON = [
                "sub": "ada", "iat": .integer(Int64(issued + asked.all.count)),
                "exp": .integer(Int64(issued + 600 + asked.all.count)),
            ]
            return "e30.\(claims.data.base64EncodedString().filter { $0 != "=" }).x"
        })
        let server = try ScriptedServer([]) { head in
            guard head.hasPrefix("GET /v1/stream") else {
                let answer = #"{"expiresAt":"2030-01-01T00:00:00.000Z","identity":"i1"}"#
                return .answer("200 OK", headers: Self.last, body: answer)
            }
            let ready = #"event: stream:ready\#ndata: {"streamId":"s1","topics":["personal"],"identity":"i1"}\#n\#n"#
            return .stream([ready], staysOpen: true)
        }
        var options = Bell.Options()
        (options.clock, options.storage) = (clock.clock, MemoryStorage())
        options.limits.silenceMilliseconds = 1 << 40
        let bell = Bell(url: server.baseURL, token: provider, options: options)
        defer { bell.close() }
        try await eventually("it is live") { @Sendable in await MainActor.run { bell.connection.status == .live } }
        #expect(asked.all == [false])
        // The next token is requested a minute before the end of its life, as counted from its receipt.
        clock.advance(milliseconds: 539_000)
        #expect(asked.all == [false])
        clock.advance(milliseconds: 1000)
        try await eventually("the next token is sent to the stream") { @Sendable in
            server.requests.contains { $0.hasPrefix("PUT /v1/streams/s1/token") }
        }
        #expect(asked.all == [false, true])
    }

    /// A storage that refuses its files for a while.
    private struct FailingStorage: ClientStorage {
        let storage = MemoryStorage()
        let isFailing = Guarded(false)
        let calls = Collected<String>()

        private func check(_ key: String) throws {
            calls.append(key)
            if isFailing.withLock({ $0 }) { throw CocoaError(.fileWriteOutOfSpace) }
        }

        func get(_ key: String) async throws -> Data? { await storage.get(key) }
        func remove(_ key: String) async throws { await storage.remove(key) }
        func keys(beginningWith prefix: String) async throws -> [String] { await storage.keys(beginningWith: prefix) }

        func set(_ key: String, _ value: Data) async throws {
            try check(key)
            await storage.set(key, value)
        }
    }

    /// The write is sent nevertheless, the app is notified once, and the write is stored when the storage works again.
    @Test func failingStorage_isTold_andTriedAgain() async throws {
        let storage = FailingStorage()
        let server = try ScriptedServer([])
        let bell = bell(server) { ($0.storage, $0.user) = (storage, "ada") }
        defer { bell.close() }
        let told = Collected<String>()
        let events = bell.events("storage:failed", "storage:restored")
        let listening = Task {
            for await event in events { told.append("\(event.name) \(event.data["code"].string ?? "")") }
        }
        defer { listening.cancel() }
        try await eventually("its outbox is open") { @Sendable in
            await MainActor.run { bell.outbox?.isStarted == true }
        }
        storage.isFailing.withLock { $0 = true }
        let sending = Task { try? await bell.send("POST", "/v1/a", ["n": 1], key: "k1") }
        try await eventually("the write is sent") { @Sendable in
            server.requests.contains { $0.hasPrefix("POST /v1/a") }
        }
        try await eventually("the app is told") { @Sendable in told.all.count == 1 }
        let tries = storage.calls.all.count { $0.contains("outbox/") }
        #expect(tries >= 2, "it is tried again at once")
        storage.isFailing.withLock { $0 = false }
        try await eventually("it is stored", step: { @Sendable [clock] in clock.advance(milliseconds: 1000) }) {
            @Sendable in
            await storage.storage.keys(beginningWith: "").contains { $0.contains("outbox/") }
        }
        try await eventually("the app is told") { @Sendable in told.all.count == 2 }
        #expect(told.all == ["storage:failed storage.failed", "storage:restored "])
        bell.close()
        _ = await sending.value
    }

    /// A directory that is away for a while, such as one on a card.
    @Test func fileStorage_writesAgain_afterItsDirectoryWasAway() async throws {
        let directory = try TemporaryDirectory()
        let folder = URL(fileURLWithPath: directory.path).appendingPathComponent("inside")
        let storage = FileStorage(directory: folder)
        try await storage.set("k", Data("1".utf8))
        try FileManager.default.removeItem(at: folder)
        try Data().write(to: folder)
        await #expect(throws: (any Error).self) { try await storage.set("k", Data("2".utf8)) }
        try FileManager.default.removeItem(at: folder)
        try await storage.set("k", Data("3".utf8))
        #expect(try await storage.get("k") == Data("3".utf8))
    }

    /// R-VIS-FR-4.1: a pattern of three pulses is played as three.
    @Test(
        arguments: [
            ("success", [], 1, [0.8]), ("warning", [], 2, [0.8, 0.8]), ("error", ["heavy", "heavy"], 3, [0.8, 1, 1]),
            ("error", ["light"], 0, [0.8]),
        ] as [(String, [String], Int, [Float])])
    func haptics_haveAsManyPulsesAsTheNotificationSays(
        _ kind: String, _ impacts: [String], _ pulses: Int, _ strengths: [Float]
    ) {
        let haptic = Bellhop.Haptic(notification: .init(rawValue: kind), impacts: impacts, pulses: pulses)
        #expect(haptic.pulseStrengths == strengths)
    }
}
