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

    private static let last = "Connection: close\r\n"

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
        let storage = MemoryStorage()
        let bell = bell(try ScriptedServer([])) {
            $0.storage = storage
            $0.user = "ada"
            $0.network = ManualNetwork(isOnline: false)
        }
        defer { bell.close() }
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
