import BellhopClient
import Cryptography
import Database
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// Keys of the settings with which backends authenticate.
@Suite(.timed) struct ServiceKeysTests {
    /// Returns a key of 64 hexadecimal digits, the same for the same name.
    static func key(_ name: String) -> String { RFC4648.hexadecimal(SHA256.hash(name.utf8)) }

    static func start(_ keys: String..., with settings: [String: String] = [:]) throws -> TestService {
        try TestService.start(["serviceKeys": keys.joined(separator: ",")].merging(settings) { $1 })
    }

    private static func status(_ service: TestService, _ token: String) async throws -> Int {
        try await service.call("GET", "/v1/me", as: .bearer(token)).status
    }

    // MARK: The caller

    @Test func key_isABackend_ofItsTenantOrOfAll() async throws {
        let service = try Self.start("mail:\(Self.key("a")):tenant=org:7", " jobs:\(Self.key("b")) ")
        for (key, name, tenant) in [("a", "mail", "org:7"), ("b", "jobs", "default")] {
            let answer = try await service.call("GET", "/v1/me", as: .bearer(Self.key(key)))
            expect(
                answer.json,
                has: [
                    "userId": .string(name), "tenant": .string(tenant), "role": "service_role", "isService": true,
                    "scope": ["everyone", "tenant:service", .string("user:\(name)")], "tokenId": .null,
                    "sessionId": .null, "issuedAt": .null, "expiresAt": "9999-12-31T23:59:59.000Z",
                ])
            #expect(!answer.text.contains(Self.key(key)) && !"\(answer.headers)".contains(Self.key(key)))
        }
        #expect(try await Self.status(service, service.token(for: .user("ada"))) == 200)
        #expect(try await Self.status(service, service.token(for: .service())) == 200)
    }

    @Test func textsBesideAKey_areRefused() async throws {
        let key = Self.key("a")
        let service = try Self.start("mail:\(key)")
        let last = key.hasSuffix("0") ? "1" : "0"
        let first = key.hasPrefix("0") ? "1" : "0"
        // Before and after the key was used: then it is in the cache of verified tokens.
        for isUsed in [false, true] {
            for wrong in [
                String(key.dropLast()), String(key.dropFirst()), key.dropLast() + last, first + key.dropFirst(),
                key.uppercased(), "\(key)\(key)", "mail", "mail:\(key)", "\(key).a.b",
                RFC4648.hexadecimal(SHA256.hash(key.utf8)),
            ] {
                #expect(try await Self.status(service, wrong) == 401, "\(wrong), used: \(isUsed)")
            }
            #expect(try await Self.status(service, key) == 200)
        }
        // Another scheme, or the address.
        let basic = try await service.call("GET", "/v1/me", headers: ["Authorization": "Basic \(key)"])
        #expect(basic.status == 401)
        #expect(try await service.call("GET", "/v1/me?token=\(key)").status == 401)
    }

    /// The time must depend neither on the place of a key nor on the number of equal bytes.
    @Test func everyDigest_isCompared_whateverTheKey() throws {
        let settings = try TestService.settings([
            "jwtSecret": TestService.secret,
            "serviceKeys": ["a", "b", "c"].map { "k\($0):\(Self.key($0))" }.joined(separator: ","),
        ])
        let keys = ServiceKeys(settings)
        for (text, name) in [("a", "ka"), ("b", "kb"), ("c", "kc"), ("none", nil)] {
            var compared: [[UInt8]] = []
            let found = Array(Self.key(text).utf8).withUnsafeBufferPointer { bytes in
                keys.caller(of: bytes) { known, sent in
                    compared.append(known)
                    #expect(sent == SHA256.hash(Self.key(text).utf8))
                    return constantTimeEqual(known, sent)
                }
            }
            #expect(found?.userId.text == name)
            #expect(compared == ["a", "b", "c"].map { SHA256.hash(Self.key($0).utf8) })
        }
    }

    // MARK: Streams

    @Test func key_opensAndRenewsStreams_butNoTicketOutlivesIt() async throws {
        let service = try Self.start("jobs:\(Self.key("a"))")
        let backend = TestService.Identity.bearer(Self.key("a"))
        let stream = try await service.listen(as: backend)
        #expect(stream.ready.json["userId"] == "jobs")
        let sent = try await service.call(
            "POST", "/v1/publish", as: backend, ["event": "tidings", "to": ["user:jobs"], "data": 1])
        #expect(sent.status == 202)
        #expect(try await stream.next("tidings").json == 1)
        let id = try #require(stream.ready.json["streamId"].string)
        let renewed = try await service.call(
            "PUT", "/v1/streams/\(id)/token", as: backend, ["token": .string(Self.key("a"))])
        #expect(renewed.status == 200, "\(renewed.text)")
        let ticket = try await service.call("POST", "/v1/stream-tickets", as: backend)
        #expect(ticket.refusal == "403 insufficient_scope")
        #expect(ticket.json["detail"].string?.contains("A service key opens streams itself") == true)
    }

    // MARK: Rotation

    @Test func rotation_acceptsBoth_thenTheNewOneAlone_andEndsStreamsOfTheOldOne() async throws {
        let (old, new) = (Self.key("old"), Self.key("new"))
        let service = try Self.start("jobs:\(old)")
        func publish(_ key: String) async throws -> (Int, String?) {
            let answer = try await service.call(
                "POST", "/v1/publish", as: .bearer(key), ["event": "e", "to": ["user:ada"], "data": 1],
                headers: ["Idempotency-Key": "k1"])
            return (answer.status, answer[header: "Idempotency-Replayed"])
        }
        #expect(try await publish(old) == (202, nil))
        try await service.restart(with: ["serviceKeys": "jobs:\(old),jobs:\(new)"])
        // Both keys are one backend, so a write that is repeated with the new key is performed once.
        #expect(try await publish(old) == (202, "true"))
        #expect(try await publish(new) == (202, "true"))
        let stream = try RawConnection(service.port)
        try stream.send("GET /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(old)\r\n\r\n")
        _ = try stream.read(until: "stream:ready")
        try await service.restart(with: ["serviceKeys": "jobs:\(new)"])
        // The connection ends.
        _ = try stream.read()
        #expect(try await publish(old).0 == 401)
        #expect(try await publish(new) == (202, "true"))
        #expect(try await service.call("HEAD", "/v1/stream", as: .bearer(old)).status == 401)
    }

    @Test func keysOfOneName_shareTheirRateLimit() async throws {
        let service = try Self.start(
            "jobs:\(Self.key("a")),jobs:\(Self.key("b")),mail:\(Self.key("c"))", with: ["rateLimitService": "3"])
        for (key, status) in [("a", 200), ("b", 200), ("a", 200), ("b", 429), ("a", 429), ("c", 200)] {
            #expect(try await Self.status(service, Self.key(key)) == status, "\(key)")
        }
    }

    // MARK: Names

    @Test func name_belongsToNoUser_andIsNeitherErasedNorRevoked() async throws {
        let service = try Self.start("jobs:\(Self.key("a")):tenant=A")
        for tenant in ["A", "B"] {
            let user = service.token(for: .user("jobs", tenant: tenant))
            let refused = try await service.call("GET", "/v1/me", as: .bearer(user))
            #expect(refused.refusal == "401 invalid_token")
            #expect(refused.json["detail"].string?.contains("reserved for backends") == true)
            let admin = TestService.Identity(
                subject: "root", metadata: ["tenant": .string(tenant), "user_role": "admin"])
            let erased = try await service.call("DELETE", "/v1/users/jobs", as: admin)
            #expect(erased.refusal == "403 user.is_service", "\(tenant)")
            #expect(erased.json["detail"].string?.contains("BELLHOP_SERVICE_KEYS") == true)
        }
        // A key is removed from the settings; no revocation ends it.
        for body: JSON in [["userId": "jobs", "issuedBefore": "2036-01-01T00:00:00Z"], ["tokenId": "jobs"]] {
            let revoked = try await service.call("POST", "/v1/revocations", as: .service(tenant: "A"), body)
            #expect(revoked.status == (body["userId"] == .null ? 201 : 403))
            #expect(try await Self.status(service, Self.key("a")) == 200)
        }
    }

    @Test func auditLog_namesTheKey() async throws {
        let service = try Self.start("jobs:\(Self.key("a")):tenant=A")
        let revoked = try await service.call(
            "POST", "/v1/revocations", as: .bearer(Self.key("a")), ["sessionId": "x"])
        #expect(revoked.status == 201)
        let log = try await service.call("GET", "/v1/audit?actor=jobs", as: .service(tenant: "A"))
        let entries = log.json["items"].array ?? []
        #expect(entries.map { $0["action"] } == ["POST /v1/revocations"])
        #expect(entries.first?["actorKind"] == "service" && entries.first?["actorId"] == "jobs")
        #expect(!log.text.contains(Self.key("a")))
        // It needs no row that makes its name a backend's.
        let looking = Unscoped.bookkeeping("the test looks at the list of backends")
        let stored = try service.app.store.read { db in
            try db.rows("SELECT user_id FROM \(Backends.backends, unscoped: looking)") { try $0.text(0) }
        }
        #expect(!stored.contains("jobs"))
    }

    // MARK: Settings

    private static let tokenSecret = "the-secret-of-the-tokens-of-32-bytes"
    private static let feedSecret = "the-secret-of-the-feed-with-32-bytes"
    private static let long = "k-0123456789-0123456789-0123456789"

    private static let mistakes: [(value: String, fault: String)] = [
        ("jobs", "key 1 is not NAME:KEY"), ("\(long)", "key 1 is not NAME:KEY"), (" , ", "key 1 is not NAME:KEY"),
        ("jobs:\(long),", "key 2 is not NAME:KEY"), ("jobs:\(long),\(long)", "key 2 is not NAME:KEY"),
        ("jobs:short", "key 1 has 5 bytes"), ("\(long):jobs", "key 1 has 4 bytes"), ("jobs:", "key 1 has 0 bytes"),
        ("jobs:\(String(repeating: "a", count: 513))", "key 1 has 513 bytes"),
        ("jobs:\(long) x", "printable ASCII only"), ("jobs:\(long)é", "printable ASCII only"),
        ("jobs:aaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbb.c", "three parts of a JWT"),
        (":\(long)", "needs a name"), ("a b:\(long)", "needs a name"), ("jöbs:\(long)", "needs a name"),
        ("\(String(repeating: "n", count: 65)):\(long)", "needs a name"),
        ("service_role:\(long)", "belongs to the service"), ("bellhop:\(long)", "belongs to the service"),
        ("jobs:\(long):x", "part after NAME:KEY"), ("jobs:\(long):tennant=A", "part after NAME:KEY"),
        ("jobs:\(long):tenant=A:cann=read", "part after NAME:KEY"), ("jobs:\(long):can=read:x", "part after NAME:KEY"),
        ("jobs:\(long):tenant=A:tenant=B", "part after NAME:KEY"), ("jobs:\(long):can=read:can=rows", "part after"),
        ("jobs:\(long):tenant=", "invalid tenant"), ("jobs:\(long):can=", "is not a capability"),
        ("jobs:\(long):can=notfy", "notfy is not a capability; did you mean notify?"),
        ("jobs:\(long):can=notify+", "is not a capability"),
        ("jobs:\(long):can=everything", "known are notify, publish, rows, read, erase, manage"),
        ("jobs:\(long),mail:\(long)", "key 2 is the same as an earlier one"),
        ("jobs:\(long),jobs:\(long)2:tenant=A", "key 2 has the name jobs"),
        ("jobs:\(long):can=read,jobs:\(long)2", "key 2 has the name jobs"),
        ("jobs:\(tokenSecret)", "the secret of BELLHOP_JWT_SECRET"),
        ("jobs:\(feedSecret)", "the secret of BELLHOP_CHANGES_SECRET"),
    ]

    @Test(arguments: mistakes)
    func mistake_endsTheStart_withItsPlace_andWithoutTheKey(value: String, fault: String) {
        do {
            _ = try TestService.settings([
                "jwtSecret": Self.tokenSecret, "changesSecret": Self.feedSecret, "serviceKeys": value,
            ])
            Issue.record("\(value) is accepted")
        } catch {
            let text = "\(error)"
            #expect(text.hasPrefix("serviceKeys (BELLHOP_SERVICE_KEYS): key "), "\(text)")
            #expect(text.contains(fault), "\(text)")
            for key in [Self.long, Self.tokenSecret, Self.feedSecret, "aaaaaaaa", "nnnnnnnn"] {
                #expect(!text.contains(key), "\(text)")
            }
        }
    }

    @Test func keys_areReadWithTheirLimits() throws {
        let key = Self.key("a")
        let expected: [(options: String, tenant: ID<Tenant>?, capabilities: Set<Capability>?)] = [
            ("", nil, nil), (":tenant=A", "A", nil), (":can=read", nil, [.read]),
            (":tenant=org:7:x:can=notify+bellhop/publish", "org:7:x", [.notify, .publish]),
            (":can=rows+rows+erase+manage:tenant=:x", ":x", [.rows, .erase, .manage]),
        ]
        for (options, tenant, capabilities) in expected {
            let read = try SettingRule.serviceKeys("a-1_b.C:\(key)\(options)")
            #expect(read.map(\.name) == ["a-1_b.C"] && read.map(\.digest) == [SHA256.hash(key.utf8)])
            #expect(read[0].tenant == tenant && read[0].capabilities == capabilities, "\(options)")
        }
        #expect(Capability(word: "bellhop:erase") == .erase && Capability(word: "Erase") == nil)
    }

    @Test func keys_areLimitedInNumber() {
        let all = (1...101).map { "k\($0):\(Self.key("\($0)"))" }
        #expect(throws: Never.self) { try SettingRule.serviceKeys(all.dropLast().joined(separator: ",")) }
        #expect(throws: Settings.Fault.self) { try SettingRule.serviceKeys(all.joined(separator: ",")) }
    }
}
