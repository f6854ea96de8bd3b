import BellhopClient
import Cryptography
import Database
import Foundation
import TestSupport
import Testing

@testable import Service

/// A service that sends webhooks, and their receiver.
struct WebhookProbe: Sendable {
    static let secrets = [
        "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=",
    ]

    let service: TestService
    let receiver: ScriptedReceiver
    /// Whether the receiver accepts everything.
    private let acceptsAll: Bool

    /// - Parameters:
    ///   - overrides: settings in addition to an address, a secret and a local receiver; nothing is sent
    ///     immediately.
    ///   - reply: the receiver's reply; by default it accepts.
    init(
        _ overrides: [String: String] = [:],
        reply: (@Sendable (ScriptedReceiver.Delivery) -> ScriptedReceiver.Reply)? = nil
    ) throws {
        acceptsAll = reply == nil
        receiver = try ScriptedReceiver(reply ?? { _ in .status(204) })
        service = try TestService.start(
            Self.settings(receiver).merging(overrides) { $1 }, at: TestService.morning)
    }

    static func settings(_ receiver: ScriptedReceiver) -> [String: String] {
        [
            "webhookURL": receiver.url, "webhookSecrets": secrets[0], "webhookPrivate": "true",
            "webhookAtOnce": "false",
        ]
    }

    /// Notifies a user and returns the notification's id.
    @discardableResult
    func notify(_ user: String = "ada", _ priority: String = "HIGH") async throws -> String {
        let made = try await service.notify(NotificationsTests.draft("visit", .init(rawValue: priority), to: user))
        #expect(made.status == 201)
        return try #require(made.value.notification?.id)
    }

    func mark(_ id: String, _ change: String = #"{"seen":true}"#, of user: String = "ada") async throws {
        #expect(try await service.call("PATCH", "/v1/notifications/\(id)", as: .user(user), change).status == 200)
    }

    /// Waits for a number of deliveries and returns them.
    ///
    /// On a busy machine, an attempt can reach its timeout although the receiver accepts everything. The clock advances
    /// to the next attempt then.
    ///
    /// - Parameter seconds: how far the clock advances between two checks; after many failures, the sender pauses
    ///   by this clock.
    func deliveries(_ count: Int, advancing seconds: Int64 = 0) async throws -> [ReceivedWebhook] {
        try await eventually("\(count) webhooks arrive", step: { service.clock.advance(seconds: seconds) }) {
            if acceptsAll, try rows("state = 0 AND error IS NOT NULL") > 0 { service.clock.advance(seconds: 1) }
            return receiver.deliveries.all.count >= count
        }
        return try received
    }

    var received: [ReceivedWebhook] { get throws { try receiver.deliveries.all.map(ReceivedWebhook.init) } }

    /// Advances the clock until a notification counts as unreached.
    func passTime() { service.clock.advance(seconds: 31) }

    func state() async throws -> JSON { try await service.call("GET", "/v1/webhooks", as: .service()).json }

    func dead() async throws -> [Bellhop.DeadWebhook] {
        try await service.client(as: .service()).listDeadWebhooks().value.items
    }

    /// Returns the number of rows in the outbox.
    func rows(_ condition: SQL = "TRUE") throws -> Int {
        try service.app.store.read { db in
            try db.integer(
                """
                SELECT count(*) FROM \(Outbox.messages, unscoped: .audit("a test"))
                WHERE route = 'webhook' AND (\(condition))
                """) ?? 0
        }
    }

    /// Returns the number of lanes with waiting webhooks.
    func lanes(_ condition: SQL) throws -> Int {
        try service.app.store.read { db in
            try db.integer("SELECT count(*) FROM \(Outbox.lanes, unscoped: .audit("a test")) WHERE \(condition)") ?? 0
        }
    }

    /// Waits until the results of all attempts are stored.
    func settled() async throws {
        try await eventually("no attempt is left") { try rows("state = 0 AND lease <> 0") == 0 }
    }
}

/// A webhook as an app receives it.
struct ReceivedWebhook {
    let id: String
    let timestamp: String
    let signatures: [String]
    let json: JSON
    let body: [UInt8]

    var type: String { json["type"].string ?? "" }
    var subject: String { json["data"]["id"].string ?? "" }
    var user: String { json["data"]["userId"].string ?? "" }

    init(_ delivery: ScriptedReceiver.Delivery) throws {
        id = try #require(delivery.headers["webhook-id"])
        timestamp = try #require(delivery.headers["webhook-timestamp"])
        signatures = try #require(delivery.headers["webhook-signature"]).split(separator: " ").map(String.init)
        json = try JSON(parsing: Data(delivery.body))
        body = delivery.body
    }

    /// Returns the signature according to Standard Webhooks, computed without the service's code.
    func signature(by secret: String) throws -> String {
        let key = try #require(Data(base64Encoded: String(secret.dropFirst("whsec_".count))))
        let code = AuthenticationKey(key).code(for: Array("\(id).\(timestamp).".utf8) + body)
        return "v1," + Data(code).base64EncodedString()
    }
}
