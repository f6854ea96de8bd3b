import BellhopClient
import Foundation
import Push
import TestSupport
import Testing
import Threads

@testable import Service

/// What an operator uses for push messages: `bellhop push`, `bellhop doctor` and the metrics.
@Suite(.timed) struct PushOperationsTests {
    private static func examine(_ probe: PushProbe) async throws -> [Finding] {
        let push = try #require(probe.service.app.runner.settings.push)
        var findings: [Finding] = []
        await PushCheck(push).examine { findings.append($0) }
        return findings
    }

    /// The provider does not know the device of the check, and so has accepted the key.
    @Test func doctor_asksEachProvider() async throws {
        let probe = try PushProbe()
        let unknown = String(repeating: "0", count: 64)
        probe.answers.withLock {
            $0[unknown] = (400, [], #"{"reason":"BadDeviceToken"}"#)
            $0["no-such-device"] = (400, [], #"{"error":{"status":"INVALID_ARGUMENT"}}"#)
        }
        let good = try await Self.examine(probe)
        #expect(good.map(\.grade) == [.good, .good, .good], "\(good)")
        probe.answers.withLock { $0[unknown] = (403, [], #"{"reason":"InvalidProviderToken"}"#) }
        let bad = try await Self.examine(probe)
        #expect(bad.map(\.grade) == [.fault, .good, .good])
        #expect(bad[0].text == "apns does not accept the key or another setting: InvalidProviderToken")
        #expect(bad[0].remedy == "see Docs/push.md")
    }

    @Test func refusedKey_isShownByTheMetrics_untilItIsAccepted() async throws {
        let probe = try PushProbe()
        func isShown(_ value: Int) async throws -> Bool {
            try await probe.service.anyone.get("/metrics").text
                .contains(#"bellhop_push_misconfigured{platform="apns"} \#(value)"#)
        }
        probe.answers.withLock { $0[PushProbe.token("phone")] = (403, [], #"{"reason":"InvalidProviderToken"}"#) }
        try await probe.register("phone")
        try await probe.notify()
        _ = try await probe.messages(1)
        try await eventually("the refusal is counted") { try await isShown(1) }
        probe.answers.withLock { $0 = [:] }
        try await eventually("the provider accepts again", step: { probe.service.clock.advance(seconds: 5) }) {
            try await isShown(0)
        }
    }

    /// A deleted device leaves nothing that waits, so no attempt would find out that the provider is back.
    @Test func downProvider_isShown_whileMessagesWait() async throws {
        let probe = try PushProbe()
        let devices = (0..<OutboxLimits.failuresMax).map { "d\($0)" }
        probe.answers.withLock { for device in devices { $0[device] = (503, [], "") } }
        for device in devices { try await probe.register(device, "fcm") }
        func isDown(_ value: Int) async throws -> Bool {
            try await probe.service.anyone.get("/metrics").text
                .contains(#"bellhop_outbox_routes_down{channel="fcm"} \#(value)"#)
        }
        try await probe.notify()
        _ = try await probe.messages(devices.count)
        try await eventually("the provider is down") { try await isDown(1) }
        for device in devices {
            #expect(try await probe.service.call("DELETE", "/v1/devices/\(device)", as: .user("ada")).status == 204)
        }
        try await eventually("nothing waits", step: { probe.service.clock.advance(seconds: 5) }) {
            try await isDown(0)
        }
    }

    @Test func keys_areNewEachTime_andUsable() throws {
        let (status, text) = try BellhopProcess(["push", "keys"]).finish()
        #expect(status == 0)
        let lines = text.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
        #expect(lines.count == 3 && lines[0][0] == "BELLHOP_PUSH_KEYS" && lines[1][0] == "BELLHOP_VAPID_KEY")
        let settings = try TestService.settings([
            "jwtSecret": TestService.secret, "pushKeys": lines[0][1], "vapidKey": lines[1][1],
            "vapidContact": "mailto:ops@example.com",
        ])
        let publicKey = try #require(settings.push?.provider(of: "webpush")?.publicKey)
        #expect(text.contains("# The public key of the pair: \(publicKey)"))
        #expect(try BellhopProcess(["push", "keys"]).finish().text != text)
    }

    /// Apple refuses them when it is sent the first message.
    @Test(arguments: [
        "mailto:", "mailto:ops", "mailto:ops@localhost", "mailto:ops@printer.local", "mailto:ops@push.invalid",
        "mailto:Ops <ops@example.com>", "https://localhost/", "https://", "ops@example.com",
    ])
    func contacts_thatNoOneReaches_areRefusedAtTheStart(_ contact: String) throws {
        let settings = ["jwtSecret": TestService.secret].merging(PushProbe.browsers) { $1 }
        _ = try TestService.settings(settings.merging(["vapidContact": "https://example.com/contact"]) { $1 })
        #expect(throws: (any Error).self) {
            try TestService.settings(settings.merging(["vapidContact": contact]) { $1 })
        }
    }

    @Test func providerWithoutAKeyForDevices_isRefusedAtTheStart() throws {
        var settings = ["jwtSecret": TestService.secret].merging(PushProbe.browsers) { $1 }
        _ = try TestService.settings(settings)
        settings["pushKeys"] = nil
        #expect(throws: (any Error).self) { try TestService.settings(settings) }
    }

    @Test(arguments: ["*", "*.", "https://push.example/", "push.example/path", "push.example:443"])
    func hostsThatAreNone_areRefusedAtTheStart(_ host: String) throws {
        let settings = ["jwtSecret": TestService.secret].merging(PushProbe.browsers) { $1 }
        _ = try TestService.settings(settings.merging(["pushHosts": "push.example,*.push.example,[::1]"]) { $1 })
        #expect(throws: (any Error).self) { try TestService.settings(settings.merging(["pushHosts": host]) { $1 }) }
    }

    @Test func rotate_createsNoFile() throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("missing.sqlite")
        let keys = Operations.newPushKeys()
        let (status, text) = try BellhopProcess(
            ["push", "rotate", "--database", "sqlite:\(file)"],
            settings: [
                "PUSH_KEYS": keys.encryption, "VAPID_KEY": keys.vapid, "VAPID_CONTACT": "mailto:ops@example.com",
                "JWT_SECRET": TestService.secret,
            ]
        ).finish()
        #expect(status == 1 && text.contains("the database \(file) does not exist"), "\(status) \(text)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
    }

    @Test func rotate_needsKeys() throws {
        let (status, text) = try BellhopProcess(["push", "rotate", "--database", "sqlite::memory:"]).finish()
        #expect(status == 78)
        #expect(text.contains("pushKeys (BELLHOP_PUSH_KEYS): is not set"), "\(text)")
    }
}
