import Foundation
import TestSupport
import Testing

@testable import BellhopClient

/// Push messages as the providers deliver them, and the registration of the device (R-27).
@Suite(.timed, .timeLimit(.minutes(10)))
@MainActor struct PushTests {
    /// A screen that notes its changes.
    private struct Screen: NotificationScreen {
        let changes = Collected<String>()
        func show(_ alert: PushAlert) async { changes.append("show \(alert.tag) \(alert.title)") }
        func remove(_ tags: [String]) async { changes.append("remove \(tags.joined(separator: " "))") }
        func setBadge(_ count: Int) async { changes.append("badge \(count)") }
        func clear() async { changes.append("clear") }
    }

    /// The forms of `Sources/Push/APNs.swift`, `FCM.swift` and `WebPush.swift`.
    @Test(
        arguments: [
            (
                #"{"aps":{"alert":{"title":"T","body":"B"},"badge":3,"sound":"default","thread-id":"n1"},"bellhop":{"tag":"n1","data":{"type":"notification"}}}"#,
                "T", ["badge 3"]
            ),
            (#"{"aps":{"badge":0},"bellhop":{"tag":"n1","data":{}}}"#, nil, ["badge 0"]),
            (
                #"{"aps":{"content-available":1},"bellhop":{"badge":2,"withdrawn":["n1","n2"]}}"#, nil,
                ["remove n1 n2", "badge 2"]
            ),
            (#"{"badge":"3","tag":"n1","data":"{\"type\":\"notification\"}"}"#, nil, ["badge 3"]),
            (#"{"badge":"2","withdrawn":"[\"n1\"]"}"#, nil, ["remove n1", "badge 2"]),
            (
                #"{"title":"T","body":"B","silent":true,"withdrawn":["n0"],"badge":3,"tag":"n1","data":{}}"#, "T",
                ["remove n0", "show n1 T", "badge 3"]
            ),
            (#"{"aps":{"alert":"of another sender"}}"#, nil, []), ("null", nil, []), ("[]", nil, []),
        ] as [(String, String?, [String])])
    func payloads_ofAllProviders_areRead(_ text: String, _ title: String?, _ changes: [String]) async throws {
        let json = try JSON(parsing: text)
        let payload = PushPayload(json)
        #expect(payload.title == title)
        let screen = Screen()
        await payload.apply(to: screen)
        #expect(screen.changes.all == changes)
        if json["aps"].object != nil {
            let parsed = try JSONSerialization.jsonObject(with: Data(text.utf8))
            let userInfo = try #require(parsed as? [AnyHashable: Any])
            #expect(PushPayload(userInfo: userInfo) == payload)
        }
    }

    /// A service that accepts each device, and whose stream stays open.
    private func service() throws -> ScriptedServer {
        try ScriptedServer([]) { head in
            let last = "Connection: close\r\n"
            if head.hasPrefix("GET /v1/stream") {
                let ready = #"event: stream:ready\#ndata: {"streamId":"s1","topics":["personal"]}\#n\#n"#
                return .stream([ready], staysOpen: true)
            }
            return .answer(head.hasPrefix("DELETE") ? "204 No Content" : "201 Created", headers: last, body: "")
        }
    }

    private func bell(_ server: ScriptedServer, _ screen: Screen, _ storage: MemoryStorage) -> Bell {
        var options = Bell.Options()
        (options.clock, options.user, options.storage) = (StandingClock().clock, "ada", storage)
        options.screen = screen
        return Bell(url: server.baseURL, token: .fixed("t"), options: options)
    }

    /// The app signs out before it has received the token of this start.
    @Test func deviceOfAnEarlierStart_isRemovedAtSignOut() async throws {
        let server = try service()
        let (screen, storage) = (Screen(), MemoryStorage())
        let first = bell(server, screen, storage)
        await first.push.register(token: Data([1])).value
        try await eventually("it is registered") { @Sendable in
            await MainActor.run { first.push.snapshot.status == .on }
        }
        first.close()
        let second = bell(server, screen, storage)
        defer { second.close() }
        try await eventually("it is live") { @Sendable in await MainActor.run { second.connection.status == .live } }
        _ = await second.signOut().value
        #expect(server.requests.count { $0.hasPrefix("DELETE /v1/devices/\(first.push.snapshot.deviceId) ") } == 1)
        #expect(screen.changes.all == ["clear"])
    }

    @Test func device_isRegistered_followsTheCounts_andIsRemovedAtSignOut() async throws {
        let server = try service()
        let (screen, storage) = (Screen(), MemoryStorage())
        let bell = bell(server, screen, storage)
        defer { bell.close() }
        await bell.push.register(token: Data([0, 0xFC, 0x13]), environment: .sandbox).value
        try await eventually("it is registered") { @Sendable in
            await MainActor.run { bell.push.snapshot.status == .on }
        }
        let id = bell.push.snapshot.deviceId
        let put = try #require(server.requests.first { $0.hasPrefix("PUT /v1/devices/\(id) ") })
        let body = try JSON(parsing: String(put.split(separator: "\r\n\r\n").last ?? ""))
        #expect(body == ["platform": "apns", "token": "00fc13", "environment": "sandbox"])
        bell.push.take(.event(FeatureEvent("notification:updated", ["ids": ["n1"], "state": ["seen": true]])))
        await bell.push.receive(PushPayload(["aps": ["badge": 4]]))
        #expect(screen.changes.all == ["remove n1", "badge 4"])
        try await bell.push.unregister().answer()
        #expect(server.requests.count { $0.hasPrefix("DELETE /v1/devices/\(id) ") } == 1)
        #expect(bell.push.snapshot.status == .off)
        await bell.push.register(token: Data([0, 0xFC, 0x13]), environment: .sandbox).value
        _ = await bell.signOut().value
        #expect(server.requests.count { $0.hasPrefix("DELETE /v1/devices/\(id) ") } == 2)
        let removal = try #require(server.requests.last { $0.hasPrefix("DELETE /v1/devices/\(id) ") })
        // A registration that was on its way ends first; otherwise it would outlive the sign-out.
        let places = server.requests.map { $0.prefix { $0 != " " } }
        #expect(try #require(places.lastIndex(of: "PUT")) < #require(places.lastIndex(of: "DELETE")))
        #expect(removal.contains("Authorization: Bearer t"))
        #expect(screen.changes.all.last == "clear")
        #expect(bell.push.snapshot.status == .off)
        // The next start has the same id.
        #expect(await storage.keys(beginningWith: "") == ["bellhop device"])
    }
}
