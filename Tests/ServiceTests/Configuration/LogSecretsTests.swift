import BellhopClient
import Foundation
import PostgresServer
import TestSupport
import Testing

/// The log at its most verbose level, of a service with planted secrets that refuses requests and is refused in many
/// ways.
@Suite(.timed) struct LogSecretsTests {
    private static let jwtSecret = "planted-jwt-secret of more than 32 bytes"
    private static let serviceKey = "planted-service-key-0123456789-0123456789"
    private static let signingKey = Data("planted-signing-secret-0123456789".utf8).base64EncodedString()
    private static let webhookKey = Data("planted-webhook-secret-0123456789".utf8).base64EncodedString()

    private static func token(_ subject: String, _ claims: [String: JSON] = [:], lifetime: Int64 = 3600) -> String {
        let now = Int64(Date().timeIntervalSince1970)
        let payload: [String: JSON] = [
            "sub": .string(subject), "iat": .integer(now - 7200), "exp": .integer(now + lifetime),
        ]
        return TestService.sign(payload.merging(claims) { $1 }, secret: jwtSecret)
    }

    private static func settings(_ database: String) -> [String: String] {
        [
            "JWT_SECRET": jwtSecret, "PORT": "0", "DATABASE": database, "LOG_LEVEL": "trace", "LOG_FORMAT": "json",
            "LOG_REQUESTS": "true", "JWKS": "http://127.0.0.1:1/jwks-path?k=planted-jwks-key",
            "CHANGES_SECRET": "planted-changes-secret", "CHANGES_SIGNING_SECRETS": "whsec_\(signingKey)",
            "SERVICE_KEYS": "jobs:\(serviceKey),mail:\(serviceKey)-of-mail:can=notify",
            "WEBHOOK_URL": "http://127.0.0.1:1/planted-webhook-path?key=planted-webhook-key",
            "WEBHOOK_SECRETS": "whsec_\(webhookKey)", "WEBHOOK_PRIVATE": "true", "WEBHOOK_AFTER_SECONDS": "0",
            "SOURCE": "postgres://app:planted-source-password@127.0.0.1:1/app?sslpassword=planted-source-parameter",
            "TRACES_ENDPOINT": "http://127.0.0.1:1/planted-traces-path?key=planted-traces-key",
            "TRACES_HEADERS": "api-key=planted-traces-header",
            "CONSOLE_TOKENS": token("console"), "REACTORS": "1", "SHARDS": "1",
        ]
    }

    @Test func secretsTokensAndData_areInNoLine_andEachLineIsJSON() async throws {
        let server = try PostgresServer.shared()
        let database = try TestDatabase(on: server)
        let name = try #require(database.name)
        defer { database.drop() }
        let url = "postgres://bellhop:planted-database-password@127.0.0.1:\(server.port)/\(name)"
        let process = try BellhopProcess(["serve"], settings: Self.settings(url))
        let port = try process.awaitPort()
        let client = BellhopClient(baseURL: "http://127.0.0.1:\(port)")
        let secrets = try await provoke(client, port)
        try process.awaitText("A webhook was not accepted.")
        try process.awaitText("The signing keys could not be fetched.")
        // Requests that fail in the database, with their parameters.
        server.drop(name)
        let ada = client.with(token: Self.token("ada"))
        #expect(try await status(of: await ada.getBadges()) == 503)
        #expect(try await status(of: await ada.listNotifications()) == 503)
        try process.awaitText("A request was not completed.")
        process.terminate()
        let (status, text) = process.finish()
        #expect(status == 0)
        let lines = text.split(separator: "\n")
        #expect(lines.count > 30)
        for line in lines {
            let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            #expect(object?["time"] != nil && object?["level"] != nil && object?["message"] != nil, "\(line)")
            #expect(object?["replica"] != nil)
        }
        for secret in secrets + [Self.jwtSecret, Self.signingKey, Self.webhookKey, Self.token("console"), "planted"] {
            #expect(!text.contains(secret), "\(secret) in \(lines.first { $0.contains(secret) } ?? "")")
        }
    }

    @Test func wrongServiceKeys_areReportedWithoutThem() throws {
        var settings = Self.settings("sqlite::memory:")
        settings["SERVICE_KEYS"] = "jobs:\(Self.serviceKey),mail:\(Self.serviceKey)"
        for command in ["serve", "check", "doctor"] {
            let (status, text) = try BellhopProcess([command], settings: settings).finish()
            #expect(status != 0 && text.contains("BELLHOP_SERVICE_KEYS"), "\(command): \(text)")
            #expect(
                text.contains("key 2 is the same as an earlier one") && !text.contains("planted-service"), "\(text)")
        }
    }

    @Test func failedStart_isReportedInOneLineOfJSON() throws {
        var settings = Self.settings("postgres://bellhop:planted-database-password@127.0.0.1:1/none")
        settings["CONSOLE_TOKENS"] = ""
        let (status, text) = try BellhopProcess(["serve"], settings: settings).finish()
        #expect(status == 75)
        let lines = text.split(separator: "\n")
        #expect(lines.count == 1 && !text.contains("planted"), "\(text)")
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(object?["level"] as? String == "critical")
        #expect((object?["reason"] as? String)?.contains("database") == true, "\(text)")
    }

    /// Sends requests that are refused. Returns the texts that must not appear in the log.
    private func provoke(_ client: BellhopClient, _ port: Int) async throws -> [String] {
        let backend = Self.token("backend", ["role": "service_role"])
        let expired = Self.token("ada", lifetime: -60)
        let forged = TestService.sign(["sub": "ada", "exp": .integer(4_000_000_000)], secret: "planted-other-secret")
        let unknownKey = TestService.sign(
            ["sub": "ada", "exp": .integer(4_000_000_000)], header: ["alg": "ES256", "kid": "planted-kid"])
        for token in [expired, forged, unknownKey, "planted-nonsense", "\(Self.serviceKey)-wrong"] {
            // 503, because only a key that could not be fetched can verify this token.
            let status = try await status(of: await client.with(token: token).getBadges())
            #expect(status == (token == unknownKey ? 503 : 401))
        }
        for (key, expected) in [(Self.serviceKey, 200), ("\(Self.serviceKey)-of-mail", 403)] {
            #expect(try await status(of: await client.with(token: key).getBadges()) == expected)
        }
        let sent = client.with(token: backend)
        let json = ["Content-Type": "application/json"]
        for body in [
            #"{"event": "order:changed", "to": ["user:ada"], "data": {"card": "planted-event-data"}}"#,
            #"{"event": "nonsense", "to": ["planted-receiver"], "data": 1}"#, #"{"planted-broken":"#, "planted-text",
        ] {
            _ = try await sent.send("POST", "/v1/publish", bytes: Data(body.utf8), headers: json)
        }
        try await sent.postNotification(
            .init(
                userId: "ada", id: "planted-note", category: "order", priority: .high, title: "planted-title",
                message: "planted-message"))
        for headers in [
            ["X-Webhook-Secret": "planted-wrong-secret"], ["webhook-signature": "v1,planted-signature"],
            ["X-Webhook-Secret": "planted-changes-secret"],
        ] {
            _ = try await client.send(
                "POST", "/v1/changes", bytes: Data(#"{"type": "INSERT", "table": "planted-table"}"#.utf8),
                headers: headers.merging(json) { $1 })
        }
        let sealed = try await client.with(token: Self.token("ada")).createStreamTicket().value.ticket
        for target in [
            "/v1/stream?ticket=planted-ticket", "/v1/stream?ticket=\(sealed)x", "/v1/badges?access_token=\(backend)",
            "/nothing/\(backend)", "/v1/publish/planted-path", "/v1/stream?token=planted-query",
        ] {
            let raw = try RawConnection(port)
            try raw.send(
                "GET \(target) HTTP/1.1\r\nHost: x\r\nCookie: bellhop_token=planted-cookie\r\nConnection: close\r\n\r\n"
            )
            _ = try raw.read()
        }
        let stream = try RawConnection(port)
        try stream.send("GET /v1/stream?ticket=\(sealed) HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try stream.read(until: "stream:ready")
        return [backend, expired, forged, unknownKey, sealed]
    }
}
