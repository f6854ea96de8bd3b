import BellhopClient
import Cryptography
import Database
import Domain
import Foundation
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// A service that sends push messages, and one server that acts as Apple's, Google's and a browser's push service.
///
/// Connections are plain, and each has one request.
final class PushProbe: Sendable {
    /// A request of the service to a provider, without the requests for access tokens.
    struct Sent: Sendable {
        let platform: String
        /// The device's token; for a browser the path of its endpoint.
        let device: String
        let headers: [String: String]
        let json: JSON

        var title: String? { (json["aps"]["alert"]["title"].string ?? json["message"]["notification"]["title"].string) }
        var body: String? { (json["aps"]["alert"]["body"].string ?? json["message"]["notification"]["body"].string) }
        var badge: Int? {
            json["aps"]["badge"].int ?? json["bellhop"]["badge"].int
                ?? json["message"]["data"]["badge"].string.flatMap { Int($0) } ?? json["badge"].int
        }
        var tag: String? {
            json["bellhop"]["tag"].string ?? json["message"]["data"]["tag"].string ?? json["tag"].string
        }
        var withdrawn: [String] {
            // FCM takes only texts.
            let text = json["message"]["data"]["withdrawn"].string
            let list = text.flatMap { try? JSON(parsing: Data($0.utf8)) } ?? json["bellhop"]["withdrawn"]
            return (list.array ?? []).compactMap(\.string)
        }
        /// `alert`, `badge` or `withdrawal`, then the device.
        var summary: String { "\(title != nil ? "alert" : withdrawn.isEmpty ? "badge" : "withdrawal") \(device)" }
    }

    static let keys = [
        Data(repeating: 7, count: 32).base64EncodedString(), Data(repeating: 8, count: 32).base64EncodedString(),
    ]

    /// The keys of Apple and Google, made once, because that takes longer than most tests.
    private static let providerKeys = Result {
        let curve = try ChildProcess(
            ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], dropsErrors: true)
        let rsa = try ChildProcess(["openssl", "genpkey", "-algorithm", "RSA"], dropsErrors: true)
        return (curve: curve.finish().text, rsa: rsa.finish().text)
    }

    /// Settings for Web Push to a port where nothing listens.
    static let browsers = [
        "pushKeys": keys[0], "pushPrivate": "true", "pushHosts": "127.0.0.1",
        "vapidKey": RFC4648.encodeURL(PrivateKey().scalar ?? []), "vapidContact": "mailto:ops@example.com",
    ]

    /// Settings for APNs.
    ///
    /// - Parameter directory: Receives the file with the key.
    static func phones(_ directory: TemporaryDirectory) throws -> [String: String] {
        [
            "apnsKey": try directory.write(try providerKeys.get().curve, to: "apns.p8"), "apnsKeyId": "K1",
            "apnsTeam": "T1", "apnsTopic": "com.example.app",
        ]
    }

    /// Writes the key of a Google service account into a file, and returns its path.
    ///
    /// - Parameter tokens: Where it gets access tokens.
    static func googleAccount(_ directory: TemporaryDirectory, tokens: String) throws -> String {
        let account: JSON = [
            "project_id": "demo", "client_email": "a@demo.example", "private_key": .string(try providerKeys.get().rsa),
            "token_uri": .string(tokens),
        ]
        return try directory.write(String(decoding: account.data, as: UTF8.self), to: "fcm.json")
    }

    let service: TestService
    let provider: ScriptedReceiver
    let sent = Collected<Sent>()
    /// The answers of the provider: status and body, by device; 200 for others.
    let answers = Locked([String: (status: Int, lines: [String], body: String)]())
    private let directory: TemporaryDirectory

    /// - Parameter second: Starts a second replica on PostgreSQL; see ``other``.
    init(_ overrides: [String: String] = [:], replicas: Bool = false) throws {
        directory = try TemporaryDirectory()
        let (sent, answers) = (sent, answers)
        provider = try ScriptedReceiver { delivery in
            let path = delivery.line.split(separator: " ").dropFirst().first.map(String.init) ?? ""
            guard path != "/token" else { return .json(200, #"{"access_token":"a1","expires_in":3600}"#) }
            let message = PushProbe.read(path, delivery)
            let answer = answers.withLock { $0[message.device] }
            sent.append(message)
            return .json(answer?.status ?? 200, answer?.body ?? "{}", answer?.lines ?? [])
        }
        let address = "http://127.0.0.1:\(provider.port)"
        let settings = try [
            "apnsURL": address,
            "fcmAccount": Self.googleAccount(directory, tokens: "\(address)/token"),
            "fcmURL": address,
        ].merging(Self.phones(directory)) { $1 }.merging(Self.browsers) { $1 }.merging(overrides) { $1 }
        if replicas {
            (service, other) = try TestService.startReplicas(settings)
        } else {
            (service, other) = (try TestService.start(settings, at: TestService.morning), nil)
        }
    }

    /// The second replica, if there is one.
    let other: TestService?

    deinit { provider.stop() }

    private static func read(_ path: String, _ delivery: ScriptedReceiver.Delivery) -> Sent {
        let json = (try? JSON(parsing: Data(delivery.body))) ?? .null
        let platform = path.hasPrefix("/3/device/") ? "apns" : path.hasPrefix("/v1/projects/") ? "fcm" : "webpush"
        let device =
            switch platform {
            case "apns": String(path.dropFirst("/3/device/".count))
            case "fcm": json["message"]["token"].string ?? ""
            default: String(path.dropFirst())
            }
        return Sent(platform: platform, device: device, headers: delivery.headers, json: json)
    }

    /// The body that registers a browser.
    static func subscription(
        _ endpoint: String = "https://127.0.0.1/a", key: String = key, auth: String = auth
    ) -> JSON {
        [
            "platform": "webpush",
            "subscription": [
                "endpoint": .string(endpoint), "expirationTime": nil,
                "keys": ["p256dh": .string(key), "auth": .string(auth)],
            ],
        ]
    }

    static let auth = "BTBZMqHH6r4Tts7J_aSIgg"
    static let key = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"

    /// Registers a device.
    func register(_ id: String, _ platform: String = "apns", of user: String = "ada") async throws {
        let token = #"{"platform":"\#(platform)","token":"\#(platform == "apns" ? Self.token(id) : id)"}"#
        let answer = try await service.call("PUT", "/v1/devices/\(id)", as: .user(user), token)
        #expect(answer.status == 201 || answer.status == 200, "\(answer.refusal)")
    }

    /// The token of an APNs device in these tests: its id in hexadecimal digits.
    static func token(_ id: String) -> String { id.utf8.map { String(format: "%02x", $0) }.joined() }

    @discardableResult
    func notify(_ user: String = "ada", _ priority: Bellhop.Priority = .high) async throws -> String {
        try await service.notify(NotificationsTests.draft("visit", priority, to: user)).notificationID
    }

    func see(_ id: String, of user: String = "ada") async throws {
        let seen = #"{"seen":true}"#
        #expect(try await service.call("PATCH", "/v1/notifications/\(id)", as: .user(user), seen).status == 200)
    }

    /// Waits for a number of messages and returns them. On PostgreSQL, the time in which another replica could say that
    /// the user has a stream passes first.
    ///
    /// - Parameter seconds: How far the clock advances between two checks. It stands still while an attempt runs, whose
    ///   lease would end otherwise.
    func messages(_ count: Int, advancing seconds: Int64 = 0) async throws -> [Sent] {
        if service.app.store.engine == .postgreSQL {
            service.clock.advance(seconds: OutboxLimits.presenceSeconds)
        }
        try await eventually(
            "\(count) messages arrive",
            step: { if seconds > 0, (try? rows("lease <> 0")) == 0 { service.clock.advance(seconds: seconds) } }
        ) {
            sent.all.count >= count
        }
        return sent.all
    }

    /// Returns a channel to Apple's push service that nothing has started.
    func channel(_ platform: String = "apns") throws -> PushChannel {
        let sources = PushSources(
            notification: NotificationsFeature.pushText, message: ConversationsFeature.unread(_:of:in:),
            preferences: PreferencesFeature.preferences(of:in:))
        let (push, reader) = (try #require(service.app.runner.settings.push), service.app.runner.reader)
        let provider = try #require(push.provider(of: platform))
        return PushChannel(provider, push, sources, reader.limiter.shares, clock: service.clock.clock)
    }

    /// Returns the number of rows in the outbox.
    func rows(_ condition: SQL = "TRUE") throws -> Int {
        try service.app.store.read { db in
            try db.integer(
                """
                SELECT count(*) FROM \(Outbox.messages, unscoped: .audit("a test"))
                WHERE route <> 'webhook' AND (\(condition))
                """) ?? 0
        }
    }

    /// Returns the number of lanes with waiting messages.
    func lanes(_ condition: SQL) throws -> Int {
        try service.app.store.read { db in
            try db.integer("SELECT count(*) FROM \(Outbox.lanes, unscoped: .audit("a test")) WHERE \(condition)") ?? 0
        }
    }

    /// Waits until the results of all attempts are stored and nothing is due.
    func settled() async throws {
        try await eventually("nothing is left to do") {
            try lanes("lease <> 0 OR next_at <= \(service.clock.now)") == 0
        }
    }
}

extension ScriptedReceiver.Reply {
    static func json(_ status: Int, _ body: String, _ lines: [String] = []) -> Self {
        let head = ["HTTP/1.1 \(status) X", "Content-Length: \(body.utf8.count)", "Connection: close"] + lines
        return .raw((head + ["", ""]).joined(separator: "\r\n") + body)
    }
}
