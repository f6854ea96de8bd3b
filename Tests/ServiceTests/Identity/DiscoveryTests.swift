import BellhopClient
import Foundation
import OutboundHTTP
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// Keys by an issuer's OpenID configuration, as one setting names it.
@Suite(.timed) struct DiscoveryTests {
    /// An issuer at an address of this machine. It answers what it is told to.
    private final class Server: Sendable {
        let receiver: ScriptedReceiver
        private let answers: Locked<[String: String]>

        init() throws {
            let answers = Locked([String: String]())
            self.answers = answers
            receiver = try ScriptedReceiver { delivery in
                let path = delivery.line.split(separator: " ")[1]
                guard let body = answers.withLock({ $0[String(path)] }) else { return .status(404) }
                return .raw("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            }
        }

        var url: String { "http://127.0.0.1:\(receiver.port)" }

        func answer(_ path: String, _ body: String?) { answers.withLock { $0[path] = body } }

        /// Publishes the configuration of an issuer, with its keys at another path.
        func publish(_ issuer: Issuer, as name: String, at path: String = "") throws {
            answer(
                "\(path)/.well-known/openid-configuration", #"{"issuer":"\#(name)","jwks_uri":"\#(url)/keys?v=1"}"#)
            answer("/keys?v=1", try String(contentsOf: issuer.file, encoding: .utf8))
        }
    }

    private static func status(_ service: TestService, _ token: String) async throws -> Int {
        try await service.call("GET", "/v1/me", as: .bearer(token)).status
    }

    @Test(arguments: ["", "/", "/realms/app"])
    func issuerAlone_isEnough(_ path: String) async throws {
        let server = try Server()
        defer { server.receiver.stop() }
        var issuer = try Issuer()
        try issuer.add("k1")
        let name = server.url + path
        try server.publish(issuer, as: name, at: path == "/" ? "" : path)
        let service = try TestService.start(["jwtSecret": "", "jwtIssuer": name])
        let now = service.clock.now
        #expect(try await Self.status(service, issuer.token("k1", at: now, ["iss": .string(name)])) == 200)
        #expect(try await Self.status(service, issuer.token("k1", at: now, ["iss": .string(name + "x")])) == 401)
        #expect(try await Self.status(service, issuer.token("k1", at: now)) == 401)
    }

    /// While the configuration cannot be read, new keys are still found where it said; while nothing can be read, the
    /// known keys stay in use.
    @Test func keysAreRenewed_whileTheConfigurationIsAway() async throws {
        let server = try Server()
        defer { server.receiver.stop() }
        var issuer = try Issuer()
        try issuer.add("k1")
        try server.publish(issuer, as: server.url)
        let service = try TestService.start(["jwtSecret": "", "jwtIssuer": server.url])
        let iss: [String: JSON] = ["iss": .string(server.url)]
        #expect(try await Self.status(service, issuer.token("k1", at: service.clock.now, iss)) == 200)
        try issuer.add("k2")
        try server.publish(issuer, as: server.url)
        server.answer("/.well-known/openid-configuration", nil)
        service.clock.advance(seconds: 11)
        #expect(try await Self.status(service, issuer.token("k2", at: service.clock.now, iss)) == 200)
        server.answer("/keys?v=1", nil)
        service.clock.advance(seconds: 11)
        try issuer.add("k3")
        #expect(try await Self.status(service, issuer.token("k3", at: service.clock.now, iss)) == 401)
        #expect(try await Self.status(service, issuer.token("k1", at: service.clock.now, iss)) == 200)
        try server.publish(issuer, as: server.url)
        service.clock.advance(seconds: 11)
        #expect(try await Self.status(service, issuer.token("k3", at: service.clock.now, iss)) == 200)
    }

    /// Attack: a configuration that names another issuer, or an address over which anyone can answer.
    @Test(arguments: [
        (#"{"issuer":"https://other.example","jwks_uri":"KEYS"}"#, "it names https://other.example, not ISSUER"),
        (#"{"jwks_uri":"KEYS"}"#, "it names no issuer"), (#"{"issuer":"ISSUER"}"#, "its jwks_uri is missing"),
        (#"{"issuer":"ISSUER","jwks_uri":"http://id.example/keys"}"#, "its jwks_uri is refused"),
        (#"{"issuer":"ISSUER","jwks_uri":"file:///etc/passwd"}"#, "its jwks_uri is refused"),
        ("<html>", "it is not an OpenID configuration"), ("[]", "it is not an OpenID configuration"),
    ])
    func configurationOfAnother_isRefused(_ body: String, _ reason: String) async throws {
        let server = try Server()
        defer { server.receiver.stop() }
        var issuer = try Issuer()
        try issuer.add("k1")
        try server.publish(issuer, as: server.url)
        let text = body.replacingOccurrences(of: "ISSUER", with: server.url)
            .replacingOccurrences(of: "KEYS", with: server.url + "/keys?v=1")
        server.answer("/.well-known/openid-configuration", text)
        let (logger, lines) = RecordedLog.logger()
        let service = try TestService.start(
            ["jwtSecret": "", "jwtIssuer": server.url, "logLevel": "warning"], logger: logger)
        let token = try issuer.token("k1", at: service.clock.now, ["iss": .string(server.url)])
        #expect(try await Self.status(service, token) == 503)
        let expected = reason.replacingOccurrences(of: "ISSUER", with: server.url)
        #expect(
            lines().contains { $0.contains("\(server.url)/.well-known/openid-configuration: \(expected)") },
            "\(lines())")
    }

    /// The log names the address, without its query.
    @Test func failure_namesTheAddress() async throws {
        let server = try Server()
        defer { server.receiver.stop() }
        let url = "\(server.url)/keys?secret=planted"
        let error = await #expect(throws: KeySet.Unusable.self) {
            try await SigningKeys.load(.address(OutboundURL(url)))
        }
        #expect(error?.description == "\(server.url)/keys: the issuer answered 404")
    }

    // MARK: Private networks

    @Test func plainAddress_isAccepted_onlyInAPrivateNetwork() async throws {
        let settings = ["jwtSecret": "", "jwks": "http://keycloak:8080/realms/app/certs"]
        #expect(throws: Settings.Mistake.self) { try TestService.settings(settings) }
        _ = try TestService.settings(settings.merging(["jwksPrivate": "true"]) { $1 })
        // An address of the internet is not asked without TLS, whatever its name.
        let error = await #expect(throws: KeySet.Unusable.self) {
            try await SigningKeys.load(.address(OutboundURL("http://192.0.32.7/keys")))
        }
        #expect(error?.description.contains("address") == true, "\(String(describing: error))")
    }
}
