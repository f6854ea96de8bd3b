import BellhopClient
import Cryptography
import Database
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// The registration of devices.
@Suite(.timed) struct DevicesTests {
    private static let token =
        #"{"platform":"apns","token":"00ff00ff","app":"com.example.two","environment":"sandbox"}"#
    private static func subscription(
        _ endpoint: String = "https://127.0.0.1/a", key: String = PushProbe.key, auth: String = "BTBZMqHH6r4Tts7J_aSIgg"
    ) -> String {
        String(decoding: PushProbe.subscription(endpoint, key: key, auth: auth).data, as: UTF8.self)
    }

    @Test func device_isRegistered_andShown_withoutItsToken() async throws {
        let probe = try PushProbe()
        let made = try await probe.service.call("PUT", "/v1/devices/d1", as: .user("ada"), Self.token)
        #expect(made.status == 201)
        expect(
            made.json, has: ["id": "d1", "platform": "apns", "app": "com.example.two", "environment": "sandbox"])
        #expect(made.json["token"] == nil && !made.text.contains("00ff"))
        let again = try await probe.service.call("PUT", "/v1/devices/d1", as: .user("ada"), Self.token)
        #expect(again.status == 200 && again.json["createdAt"] == made.json["createdAt"])
        let list = try await probe.service.call("GET", "/v1/devices", as: .user("ada"))
        #expect(list.items.map { $0["id"] } == ["d1"] && !list.text.contains("00ff"))
        #expect(try await probe.service.call("GET", "/v1/devices/d1", as: .user("ben")).status == 404)
        #expect(try await probe.service.call("GET", "/v1/devices", as: .user("ben")).items.isEmpty)
        #expect(try await probe.service.call("DELETE", "/v1/devices/d1", as: .user("ben")).status == 404)
        #expect(try await probe.service.call("DELETE", "/v1/devices/d1", as: .user("ada")).status == 204)
        #expect(try await probe.service.call("DELETE", "/v1/devices/d1", as: .user("ada")).status == 404)
    }

    /// Shared phones: the messages of the former user end.
    @Test func token_belongsToTheUserWhoRegisteredItLast() async throws {
        let probe = try PushProbe()
        _ = try await probe.service.call("PUT", "/v1/devices/d1", as: .user("ada"), Self.token)
        try await probe.register("d2")
        _ = try await probe.service.call("PUT", "/v1/devices/d1", as: .user("ben"), Self.token)
        #expect(try await probe.service.call("GET", "/v1/devices", as: .user("ada")).items.map { $0["id"] } == ["d2"])
        // A reinstalled app has a new id and the same token.
        _ = try await probe.service.call("PUT", "/v1/devices/d9", as: .user("ben"), Self.token)
        #expect(try await probe.service.call("GET", "/v1/devices", as: .user("ben")).items.map { $0["id"] } == ["d9"])
    }

    /// A body that registers a device: the same device however it is written, or another one.
    struct Spelling: Sendable, CustomTestStringConvertible {
        let body: String
        var isSame = true

        var testDescription: String { "\(isSame ? "same" : "other"): \(body)" }
    }

    private static let spellings: [(first: String, next: [Spelling])] = [
        (
            #"{"platform":"apns","token":"0a1b0a1b"}"#,
            [
                Spelling(body: #"{"platform":"apns","token":"0A1B0A1B"}"#),
                Spelling(body: #"{"platform":"apns","token":"0a1B0A1b","app":"com.example.app"}"#),
                Spelling(body: #"{"platform":"apns","token":"0a1b0a1b","app":"com.example.two"}"#),
                Spelling(body: #"{"platform":"apns","token":"0a1b0a1b","environment":"sandbox"}"#),
                Spelling(body: #"{"platform":"apns","token":"0a1b0a1c"}"#, isSame: false),
                Spelling(body: #"{"platform":"fcm","token":"0a1b0a1b"}"#, isSame: false),
            ]
        ),
        (
            #"{"platform":"fcm","token":"aB:c"}"#,
            [
                Spelling(body: #"{"token":"aB:c","platform":"fcm","environment":"production"}"#),
                Spelling(body: #"{"platform":"fcm","token":"ab:c"}"#, isSame: false),
            ]
        ),
        (
            subscription("https://127.0.0.1/a"),
            [
                Spelling(body: subscription("https://127.0.0.1/a", auth: "AAAAAAAAAAAAAAAAAAAAAA")),
                Spelling(body: subscription("HTTPS://127.0.0.1:443/%61")),
                Spelling(body: subscription("https://127.0.0.1/A"), isSame: false),
                Spelling(body: subscription("https://127.0.0.1/a?b"), isSame: false),
            ]
        ),
    ]

    /// The next user of a shared phone gets no messages of the former user, however the app writes the address.
    @Test(arguments: spellings.flatMap { group in group.next.map { (group.first, $0) } })
    func address_isComparedByTheDeviceItLeadsTo(_ first: String, next: Spelling) async throws {
        let probe = try PushProbe()
        #expect(try await probe.service.call("PUT", "/v1/devices/d1", as: .user("ada"), first).status == 201)
        #expect(try await probe.service.call("PUT", "/v1/devices/d1", as: .user("ben"), next.body).status == 201)
        let left = try await probe.service.call("GET", "/v1/devices", as: .user("ada")).items.count
        #expect(left == (next.isSame ? 0 : 1))
        // The other way round, and by the same user.
        #expect(try await probe.service.call("PUT", "/v1/devices/d2", as: .user("ben"), first).status == 201)
        let kept = try await probe.service.call("GET", "/v1/devices", as: .user("ben")).items.map { $0["id"].string }
        #expect(Set(kept) == (next.isSame ? ["d2"] : ["d1", "d2"]))
    }

    @Test func users_haveAtMostTwentyDevices() async throws {
        let probe = try PushProbe()
        for number in 1...20 { try await probe.register("d\(number)") }
        let refused = try await probe.service.call("PUT", "/v1/devices/d21", as: .user("ada"), Self.token)
        #expect(refused.refusal == "409 device.too_many")
        // An app that was installed again has a new id. It is one of the twenty.
        let again = #"{"platform":"apns","token":"\#(PushProbe.token("d7"))"}"#
        #expect(try await probe.service.call("PUT", "/v1/devices/d21", as: .user("ada"), again).status == 201)
        #expect(try await probe.service.call("PUT", "/v1/devices/d20", as: .user("ada"), Self.token).status == 200)
    }

    @Test(arguments: [
        (#"{"platform":"pager","token":"aa"}"#, "/platform"), (#"{"platform":"apns"}"#, "/token"),
        (#"{"platform":"apns","token":"xyz"}"#, "/token"), (#"{"platform":"apns","token":"00/../ff"}"#, "/token"),
        (#"{"platform":"apns","token":"00f"}"#, "/token"), (#"{"platform":"apns","token":"00","app":""}"#, "/app"),
        (#"{"platform":"apns","token":"00","app":"com.é"}"#, "/app"),
        (#"{"platform":"apns","token":"00","app":"com.a b"}"#, "/app"),
        (#"{"platform":"apns","token":"00","app":"com.a\r\nx-b: c"}"#, "/app"),
        (#"{"platform":"fcm","token":"a b"}"#, "/token"), (#"{"platform":"fcm","token":"a","app":"b"}"#, "/app"),
        (#"{"platform":"webpush","token":"a"}"#, "/token /subscription"),
        (#"{"platform":"webpush","subscription":null}"#, "/subscription"),
        (
            #"{"platform":"webpush","subscription":{"endpoint":"https://127.0.0.1/a","keys":null}}"#,
            "/subscription/keys"
        ),
        (#"{"platform":"fcm","token":"a","subscription":{}}"#, "/subscription"),
        (#"{"platform":"fcm","token":"a","environment":"sandbox"}"#, "/environment"),
        (#"{"platform":7,"token":"a"}"#, "/platform"), (#"{"token":"a"}"#, "/platform"),
        (subscription(key: "AAAA"), "/subscription/keys/p256dh"),
        (subscription(key: "no base64!"), "/subscription/keys/p256dh"),
        (subscription(auth: "AAAA"), "/subscription/keys/auth"),
        (subscription("https://evil.example/a"), "/subscription/endpoint"),
        (subscription("ftp://127.0.0.1/a"), "/subscription/endpoint"),
        (
            subscription().replacingOccurrences(of: "\"expirationTime\":null", with: "\"expirationTime\":\"soon\""),
            "/subscription/expirationTime"
        ),
        (subscription("https://u:p@127.0.0.1/a"), "/subscription/endpoint"),
        (subscription("nonsense"), "/subscription/endpoint"),
        (subscription("https://127.0.0.1%2f.example/a"), "/subscription/endpoint"),
        (subscription("https://127.0.0.1%00/a"), "/subscription/endpoint"),
        (subscription("https://127.0.0.1%40evil.example/a"), "/subscription/endpoint"),
        (subscription("https://127.0.0.1;evil.example/a"), "/subscription/endpoint"),
        (subscription("https://127.0.0.1\\\\a"), "/subscription/endpoint"),
        (subscription("https://127.0.0.1:0443/a"), "/subscription/endpoint"),
        (subscription("https://127.0.0.1./a"), "/subscription/endpoint"),
        (subscription("https://127.1/a"), "/subscription/endpoint"),
    ])
    func mistakes_areNamed(_ body: String, places: String) async throws {
        let probe = try PushProbe()
        let answer = try await probe.service.call("PUT", "/v1/devices/d1", as: .user("ada"), body)
        #expect(answer.mistakes == "422 \(places)")
    }

    /// With the settings of production, an endpoint must be public and encrypted.
    @Test(arguments: [
        "http://push.example/a", "https://127.0.0.1/a", "https://10.0.0.1/a", "https://[::1]/a",
        "https://push.example:8443/a", "https://push.example.evil/a", "https://a.push.example/a",
    ])
    func endpointsThatArePrivate_plainOrUnknown_areRefused(_ endpoint: String) async throws {
        let production = [
            "pushPrivate": "false", "pushHosts": "push.example,127.0.0.1,10.0.0.1,[::1],*.notify.example",
        ]
        let service = try TestService.start(PushProbe.browsers.merging(production) { $1 })
        let answer = try await service.call("PUT", "/v1/devices/d1", as: .user("ada"), Self.subscription(endpoint))
        #expect(answer.mistakes == "422 /subscription/endpoint")
        for known in ["https://push.example/a", "https://wns2.notify.example/w?token=a"] {
            let made = try await service.call("PUT", "/v1/devices/d2", as: .user("ada"), Self.subscription(known))
            #expect(made.status < 300, "\(known)")
        }
    }

    @Test func longIDs_areRefused() async throws {
        let probe = try PushProbe()
        let path = "/v1/devices/\(String(repeating: "d", count: 65))"
        #expect(try await probe.service.call("PUT", path, as: .user("ada"), Self.token).mistakes == "422 id")
        #expect(try await probe.service.call("GET", path, as: .user("ada")).status == 404)
    }

    @Test func withoutKeys_pushIsOff_andSaysSo() async throws {
        let service = try TestService.start()
        for (method, path) in [("GET", "/v1/devices"), ("PUT", "/v1/devices/d1"), ("DELETE", "/v1/devices/d1")] {
            let answer = try await service.call(method, path, as: .user("ada"), method == "PUT" ? Self.token : nil)
            #expect(answer.refusal == "404 push.off")
        }
        let config = try await service.call("GET", "/v1/config", as: .user("ada")).json
        #expect(config["push"]["enabled"] == false && config["push"]["platforms"] == [])
    }

    @Test func config_showsThePublicKey_andThePlatforms() async throws {
        let probe = try PushProbe(["fcmAccount": "", "fcmURL": ""])
        let push = try await probe.service.call("GET", "/v1/config", as: .user("ada")).json["push"]
        #expect(push["enabled"] == true && push["platforms"] == ["apns", "webpush"])
        #expect(push["webPushKey"].string?.utf8.count == 87)
        let answer = try await probe.service.call(
            "PUT", "/v1/devices/d1", as: .user("ada"), #"{"platform":"fcm","token":"a"}"#)
        #expect(answer.mistakes == "422 /platform")
    }

    /// R-VIS-NFR-3.3: neither the database nor its log has a token, not even after it was deleted.
    @Test func tokens_areNowhereInTheFiles() async throws {
        let probe = try PushProbe()
        guard probe.service.app.store.engine == .sqlite else { return }
        let marker = "5ec7e75ec7e75ec7e7"
        let body = #"{"platform":"fcm","token":"\#(marker)"}"#
        _ = try await probe.service.call("PUT", "/v1/devices/d1", as: .user("ada"), body)
        _ = try await probe.service.call(
            "PUT", "/v1/devices/d2", as: .user("ada"), Self.subscription("https://127.0.0.1/\(marker)"))
        for file in try FileManager.default.contentsOfDirectory(atPath: probe.service.directory.path) {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(probe.service.directory.path)/\(file)"))
            #expect(bytes.range(of: Data(marker.utf8)) == nil, "\(file)")
        }
    }

    /// A provider's credentials are sent in clear, or into the own network, only if a setting says so.
    @Test func addressesOfProviders_arePublic_unlessASettingAllowsOthers() throws {
        let folder = try TemporaryDirectory()
        let account = try PushProbe.googleAccount(folder, tokens: "https://oauth2.googleapis.com/token")
        let providers = ["fcmURL": ["fcmAccount": account], "apnsURL": try PushProbe.phones(folder)]
        for (url, problem) in [
            ("http://fcm.example", "must begin with https://"), ("https://10.0.0.7", "10.0.0.7 is a private address"),
        ] {
            for (setting, provider) in providers {
                let mistake = #expect(throws: Settings.Mistake.self) { try Self.settings(provider, [setting: url]) }
                #expect(mistake?.description.contains(problem) == true, "\(mistake?.description ?? "none")")
                _ = try Self.settings(provider, [setting: url, "pushPrivate": "true"])
            }
        }
        let mistake = #expect(throws: Settings.Mistake.self) {
            try Self.settings(["fcmAccount": PushProbe.googleAccount(folder, tokens: "http://tokens.example/")], [:])
        }
        #expect(mistake?.description.contains("token_uri that must begin with https://") == true)
    }

    private static func settings(_ some: [String: String], _ others: [String: String]) throws -> Settings {
        let own = ["jwtSecret": TestService.secret, "pushKeys": PushProbe.keys[0]]
        return try TestService.settings(own.merging(some) { $1 }.merging(others) { $1 })
    }

    @Test func unusableSettings_areRefused_inOneLine() throws {
        let folder = try TemporaryDirectory()
        let phones = try PushProbe.phones(folder)
        for (settings, text) in [
            (["pushKeys": "short"], "pushKeys (BELLHOP_PUSH_KEYS): must be keys of 32 bytes in base64"),
            (
                ["pushKeys": "\(PushProbe.keys[0]),\(PushProbe.keys[0])"],
                "pushKeys (BELLHOP_PUSH_KEYS): must be 1 to 8 different keys"
            ),
            (["pushKeys": PushProbe.keys[0]], "pushKeys (BELLHOP_PUSH_KEYS): needs a provider"),
            (["apnsKey": "/none.p8"], "apnsKey (BELLHOP_APNS_KEY): /none.p8 cannot be read"),
            (phones.filter { $0.key != "apnsTopic" }, "apnsTopic (BELLHOP_APNS_TOPIC): is missing: apnsKey needs"),
            (phones.filter { $0.key != "apnsTeam" }, "apnsTeam (BELLHOP_APNS_TEAM): is missing: apnsKey needs"),
            (phones.filter { $0.key != "apnsKeyId" }, "apnsKeyId (BELLHOP_APNS_KEY_ID): is missing: apnsKey needs"),
            (["fcmAccount": "/none.json"], "fcmAccount (BELLHOP_FCM_ACCOUNT): /none.json cannot be read"),
            (
                ["vapidKey": RFC4648.encodeURL(PrivateKey().scalar ?? [])],
                "vapidContact (BELLHOP_VAPID_CONTACT): is missing: vapidKey needs a mailto: or https://"
            ),
            (["apnsTeam": "T1"], "apnsTeam (BELLHOP_APNS_TEAM): needs apnsKey, which is missing"),
            (["pushHosts": "push.example"], "pushHosts (BELLHOP_PUSH_HOSTS): needs vapidKey, which is missing"),
            (
                ["pushCertificates": "/none.pem"],
                "pushCertificates (BELLHOP_PUSH_CERTIFICATES): names /none.pem, which cannot be read"
            ),
            (["vapidKey": "AAAA"], "vapidKey (BELLHOP_VAPID_KEY): must be a private key of P-256"),
            (["pushContent": "some"], "pushContent (BELLHOP_PUSH_CONTENT): some is not one of generic, full"),
        ] {
            let mistake = #expect(throws: Settings.Mistake.self) {
                try TestService.settings(settings.merging(["jwtSecret": TestService.secret]) { $1 })
            }
            #expect(mistake?.description.hasPrefix(text) == true, "\(mistake?.description ?? "none")")
        }
    }
}
