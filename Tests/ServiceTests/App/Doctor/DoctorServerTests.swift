import BellhopClient
import Foundation
import PostgresServer
import TestSupport
import Testing
import Values

@testable import Service

/// `bellhop doctor` for a PostgreSQL, for an app's own database, and for the path between clients and the service.
@Suite(.timed) struct DoctorServerTests {
    @Test func soundServer_isAllGood() async throws {
        let server = try PostgresServer.shared()
        let database = try TestDatabase(on: server)
        defer { database.drop() }
        let found = try await DoctorTests.findings(["database": database.url, "databaseListen": database.url])
        for topic in ["role", "database", "migrations", "clock", "connections", "notifications"] {
            DoctorTests.expect(.good, topic, "", in: found)
        }
        #expect(found.contains { $0.topic == "round trip" }, "the grade depends on the speed of this machine")
        #expect(!found.contains { $0.grade == .fault }, "\(found)")
        let many = try await DoctorTests.findings(["database": database.url], replicas: 1000)
        DoctorTests.expect(.fault, "connections", "1000 replicas × 14 connections", in: many)
    }

    @Test func rolesThatBypassPolicies_areFaults() async throws {
        let server = try PostgresServer.shared()
        let database = try TestDatabase(on: server)
        defer { database.drop() }
        let name = try #require(database.name)
        let mighty = try await DoctorTests.findings(["database": server.url("postgres", name)])
        DoctorTests.expect(.fault, "role", "which bypasses row-level security", in: mighty)
        DoctorTests.expect(.good, "migrations", "all are applied", in: mighty)
        let owner = try await DoctorTests.findings(["database": server.url("bellhop_owner", name)])
        DoctorTests.expect(.fault, "role", "owns the tables", in: owner)
    }

    @Test func emptyOrUnreachableDatabases_areFaults() async throws {
        let server = try PostgresServer.shared()
        let name = try server.makeDatabase()
        defer { server.drop(name) }
        try TestDatabase(on: server).drop()
        let empty = try await DoctorTests.findings(["database": server.url("bellhop", name)])
        DoctorTests.expect(.fault, "migrations", "are not applied", in: empty)
        let away = try await DoctorTests.findings(["database": "postgres://bellhop:planted@127.0.0.1:1/none"])
        DoctorTests.expect(.fault, "database", "postgres://bellhop@127.0.0.1:1/none", in: away)
        #expect(away.contains { $0.remedy == "start it, or see to the network between" })
        #expect(!away.contains { $0.text.contains("\t") }, "libpq's tabs are left out")
        #expect(!"\(away)".contains("planted"))
        let deaf = try await DoctorTests.findings([
            "database": server.url("bellhop", name), "databaseListen": "postgres://bellhop:planted@127.0.0.1:1/none",
        ])
        DoctorTests.expect(.warning, "notifications", "postgres://bellhop@127.0.0.1:1/none", in: deaf)
    }

    /// The server answers, so the network is not the reason. The remedy is the statement that an administrator runs.
    @Test func missingRolesAndDatabases_areNamedWithTheirStatement() async throws {
        let server = try PostgresServer.shared()
        let name = try server.makeDatabase()
        defer { server.drop(name) }
        func remedies(_ settings: [String: String]) async throws -> [String] {
            try await DoctorTests.findings(settings).compactMap(\.remedy)
        }
        let noDatabase = try await remedies(["database": server.url("postgres", "no\"such")])
        #expect(
            noDatabase.contains {
                $0.hasPrefix("create it as an administrator: CREATE DATABASE \"no\"\"such\"; then run bellhop migrate")
            }, "\(noDatabase)")
        let noRole = try await remedies(["database": server.url("missing", name)])
        let role = "CREATE ROLE \"missing\" LOGIN PASSWORD '…'"
        #expect(noRole.contains { $0.contains("\(role) IN ROLE bellhop_service") }, "\(noRole)")
        let listening = try await remedies([
            "database": server.url("bellhop", name), "databaseListen": server.url("missing", name),
        ])
        #expect(listening.contains { $0.contains("\(role) IN ROLE bellhop_service") }, "\(listening)")
        let source = try await remedies(["database": "sqlite::memory:", "source": server.url("missing", name)])
        #expect(source.contains { $0.contains(role) && !$0.contains("bellhop_service") }, "\(source)")
    }

    @Test func sourceChecks_matchThoseOfTheStart() async throws {
        let app = try AppDatabase(isSetUp: false)
        var settings = app.settings
        settings["database"] = "sqlite::memory:"
        var found = try await DoctorTests.findings(settings)
        DoctorTests.expect(
            .fault, "source", "the publication bellhop does not exist: run bellhop source setup", in: found)
        try app.setUp()
        found = try await DoctorTests.findings(settings)
        DoctorTests.expect(.good, "source", "can be read", in: found)
        settings["source"] = "postgres://nobody:planted@127.0.0.1:1/app"
        found = try await DoctorTests.findings(settings)
        DoctorTests.expect(.fault, "source", "postgres://nobody@127.0.0.1:1/app", in: found)
        #expect(!"\(found)".contains("planted"))
        try await app.drop()
    }

    // MARK: The public address

    /// Examines the public address on a thread of its own, because it blocks on the network.
    ///
    /// - Parameter patience: long enough for a slow machine, unless a test waits for its end.
    private func look(
        at address: String, token: String?, known: String? = nil, isTrusted: Bool = false, heartbeatSeconds: Int = 1,
        patience: StreamPatience = StreamPatience(
            firstEventSeconds: 300, heartbeatSecondsLate: 300, wholeSeconds: 0)
    ) async throws -> [Finding] {
        let settings = try TestService.settings([
            "jwtSecret": TestService.secret, "heartbeatSeconds": "\(heartbeatSeconds)",
        ])
        return await withCheckedContinuation { done in
            Thread.detachNewThread {
                var found: [Finding] = []
                var examination = Examination(settings, replicas: 1)
                examination.patience = patience
                examination.examine(publicAddress: address, known: known, token: token, isTrusted: isTrusted) {
                    found.append($0)
                }
                done.resume(returning: found)
            }
        }
    }

    @Test func unbufferedStreams_areGood() async throws {
        let service = try TestService.start(["heartbeatSeconds": "1"])
        let proxy = try BufferingProxy(to: service.port, .none)
        defer { proxy.stop() }
        let found = try await look(at: proxy.url + "/", token: service.token(for: .user("ada")))
        DoctorTests.expect(.good, "public address", "answers", in: found)
        DoctorTests.expect(.warning, "HTTP version", "HTTP/1.1", in: found)
        DoctorTests.expect(.warning, "private paths", "/metrics and /readyz can be reached", in: found)
        DoctorTests.expect(.good, "entity tags", "", in: found)
        DoctorTests.expect(.good, "stream", "the first event arrives after", in: found)
        DoctorTests.expect(.good, "stream", "the next event or heartbeat arrives", in: found)
        DoctorTests.expect(.note, "stream", "waits 0 s, because some proxies limit a whole", in: found)
        DoctorTests.expect(.good, "stream", "it is still open after 0 s", in: found)
        #expect(found.contains { $0.topic == "clock" })
        let refused = try await look(at: service.baseURL, token: "nonsense")
        DoctorTests.expect(.warning, "stream", "the token was rejected with 401", in: refused)
        DoctorTests.expect(.warning, "stream", "there is no token", in: try await look(at: service.baseURL, token: nil))
    }

    /// Each case waits in vain for one event, so that wait is as short as possible.
    @Test(arguments: [
        (BufferingProxy.Habit.buffersAll, 1, "nothing arrives within 1 s"),
        (.buffersTheRest, 300, "no heartbeat follows within 1 s"),
        (.compressesAndHolds, 1, "a proxy compresses it (gzip) and holds events"),
    ])
    func bufferingProxies_areDetected(
        _ habit: BufferingProxy.Habit, _ firstEventSeconds: Double, _ text: String
    ) async throws {
        let service = try TestService.start(["heartbeatSeconds": "1"])
        let proxy = try BufferingProxy(to: service.port, habit)
        defer { proxy.stop() }
        let found = try await look(
            at: proxy.url, token: service.token(for: .user("ada")),
            patience: StreamPatience(
                firstEventSeconds: firstEventSeconds, heartbeatSecondsLate: 0, wholeSeconds: 0))
        DoctorTests.expect(.fault, "stream", text, in: found)
        #expect(StreamPatience().firstEventSeconds == 5)
    }

    @Test func compressedStreams_areFound_evenIfTheirEventsPass() async throws {
        let service = try TestService.start(["heartbeatSeconds": "1"])
        let proxy = try BufferingProxy(to: service.port, .compresses)
        defer { proxy.stop() }
        let found = try await look(at: proxy.url, token: service.token(for: .user("ada")))
        DoctorTests.expect(.warning, "stream", "a proxy compresses it (gzip); events pass", in: found)
        DoctorTests.expect(.good, "stream", "it is still open", in: found)
    }

    /// The limit of the proxy ends the stream, although heartbeats arrive.
    @Test func limitsOfAWholeResponse_areFound() async throws {
        let service = try TestService.start(["heartbeatSeconds": "1"])
        let proxy = try BufferingProxy(to: service.port, .cuts)
        defer { proxy.stop() }
        let found = try await look(
            at: proxy.url, token: service.token(for: .user("ada")),
            patience: StreamPatience(firstEventSeconds: 300, heartbeatSecondsLate: 300, wholeSeconds: 300))
        DoctorTests.expect(.fault, "stream", "although bytes arrive: a proxy limits the whole response", in: found)
        // Longer than the limits of Envoy, of Google's load balancer, and of proxies that allow a minute.
        #expect(StreamPatience().wholeSeconds == 65)
    }

    /// A proxy is not blamed for an end by the service, such as that of an expired token.
    @Test func endsByTheService_areDistinguished() async throws {
        let service = try TestService.start(["heartbeatSeconds": "1"])
        async let found = look(
            at: service.baseURL, token: service.token(for: .user("ada")),
            patience: StreamPatience(firstEventSeconds: 300, heartbeatSecondsLate: 300, wholeSeconds: 300))
        try await eventually("the stream is open") {
            try await service.call("GET", "/metrics").text.contains("\nbellhop_streams_open 1\n")
        }
        let revocation = ["userId": "ada", "issuedBefore": service.clock.now.adding(seconds: 1).rfc3339]
        let answer = try await service.call(
            "POST", "/v1/revocations", as: .service(), .object(revocation.mapValues(JSON.string)))
        #expect(answer.isSuccess, "\(answer.text)")
        DoctorTests.expect(.warning, "stream", "the service ended it after", in: try await found)
    }

    /// The address is another spelling of 127.0.0.1, which the doctor does not recognize as this machine.
    @Test func token_isSentToOwnAddressesOnly_byDefault() async throws {
        let stranger = try ScriptedReceiver { _ in .status(200) }
        defer { stranger.stop() }
        let address = "http://127.1:\(stranger.port)"
        func tokensSent() -> Int { stranger.deliveries.all.count { $0.headers["authorization"] != nil } }
        let found = try await look(at: address, token: "planted")
        DoctorTests.expect(.warning, "stream", "no token was sent to \(address)", in: found)
        #expect(tokensSent() == 0)
        _ = try await look(at: address, token: "planted", isTrusted: true)
        #expect(tokensSent() == 1)
        _ = try await look(at: address, token: "planted", known: "127.1:8080")
        #expect(tokensSent() == 2)
        _ = try await look(at: "http://localhost:\(stranger.port)", token: "planted")
        #expect(tokensSent() == 3)
        // A name that only looks like a loopback address can belong to any server.
        let name = "http://127.a.example.invalid:\(stranger.port)"
        DoctorTests.expect(
            .warning, "stream", "no token was sent to \(name)", in: try await look(at: name, token: "planted"))
    }

    @Test func unreachableAddresses_areFaults() async throws {
        DoctorTests.expect(
            .fault, "public address", "no answer (unreachable)",
            in: try await look(at: "http://127.0.0.1:1", token: nil))
        let wrong = try ScriptedReceiver { _ in .status(404) }
        defer { wrong.stop() }
        DoctorTests.expect(
            .fault, "public address", "/healthz answers 404",
            in: try await look(at: "http://127.0.0.1:\(wrong.port)", token: nil))
    }

    @Test func tagsThatTheServiceDoesNotRecognize_areFound_andPrivatePathsThatAreClosed() async throws {
        let proxy = try ScriptedReceiver { request in
            if request.line.contains("/metrics") || request.line.contains("/readyz") { return .status(403) }
            return .status(
                200, headers: ["ETag: W/\"1\"", "Content-Encoding: gzip", "Date: Sat, 10 Jan 2026 10:00:00 GMT"])
        }
        defer { proxy.stop() }
        let found = try await look(at: "http://127.0.0.1:\(proxy.port)", token: nil)
        DoctorTests.expect(
            .warning, "entity tags", "they arrive changed (W/\"1\"), compressed by gzip, so polls transfer", in: found)
        DoctorTests.expect(.good, "private paths", "cannot be reached from here", in: found)
        DoctorTests.expect(.fault, "clock", "ahead of", in: found)
    }
}
