import BellhopClient
import Foundation
import OutboundHTTP
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// Other keys in an issuer's key set (RFC 7517): a key that the service cannot use must not disable the others.
@Suite(.timed) struct KeySetTests {
    private static func answer(_ service: TestService, _ token: String) async throws -> Int {
        try await status(of: await service.anyone.with(token: token).getMe())
    }

    private static let bytes32 = String(repeating: "A", count: 42) + "E"

    /// Returns the P-256 key of RFC 7515, A.3, with additional members that may make it unusable.
    private static func point(_ more: String) -> String {
        #"""
        {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
         "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",\#(more)}
        """#
    }

    /// Unusable keys, each with its description and its JSON.
    static let useless: [(String, String)] = [
        ("a shared secret", #"{"kty":"oct","kid":"x","alg":"HS256","k":"\#(bytes32)"}"#),
        ("X25519", #"{"kty":"OKP","crv":"X25519","kid":"x","x":"\#(bytes32)"}"#),
        ("Ed448", #"{"kty":"OKP","crv":"Ed448","kid":"x","x":"\#(bytes32)"}"#),
        ("ES256K", #"{"kty":"EC","crv":"secp256k1","alg":"ES256K","kid":"x","x":"\#(bytes32)","y":"\#(bytes32)"}"#),
        ("ML-DSA", #"{"kty":"AKP","alg":"ML-DSA-65","kid":"x","pub":"\#(bytes32)"}"#),
        ("an unknown algorithm", #"{"kty":"RSA","alg":"RS1024","kid":"x","n":"\#(bytes32)","e":"AQAB"}"#),
        ("an unknown type", #"{"kty":"QKD","kid":"x"}"#),
        ("a key of another type's algorithm", #"{"kty":"RSA","alg":"ES256","kid":"x","n":"\#(bytes32)","e":"AQAB"}"#),
        (
            "RSA of 1024 bits",
            #"{"kty":"RSA","alg":"RS256","kid":"x","n":"\#(String(repeating: "_", count: 170))8","e":"AQAB"}"#
        ),
        ("no point of the curve", #"{"kty":"EC","crv":"P-256","kid":"x","x":"\#(bytes32)","y":"\#(bytes32)"}"#),
        ("no coordinates", #"{"kty":"EC","crv":"P-256","kid":"x"}"#),
        ("numbers for texts", #"{"kty":"EC","crv":256,"kid":7,"x":1,"y":2}"#),
        ("RSA by the exponent 1", #"{"kty":"RSA","kid":"x","n":"\#(String(repeating: "_", count: 341))w","e":"AQ"}"#),
        ("P-256 for encryption", point(#""kid":"x","use":"enc""#)),
        ("P-256 to sign alone", point(#""kid":"x","key_ops":["sign"]"#)),
        ("operations that are no list", point(#""kid":"x","key_ops":"verify""#)),
        ("coordinates that are too short", #"{"kty":"EC","crv":"P-256","kid":"x","x":"AAAA","y":"AAAA"}"#),
        ("padded base64", #"{"kty":"OKP","crv":"Ed25519","kid":"x","x":"\#(bytes32)="}"#),
        ("an id that is no text", point(#""kid":1"#)),
        ("a shared secret by the good key's id", #"{"kty":"oct","kid":"k1","alg":"HS256","k":"\#(bytes32)"}"#),
        ("no type", "{}"), ("no object", "7"), ("null", "null"), ("a list", "[]"),
    ]

    @Test func skippedKeys_areLogged_untilTheyDisappear() async throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        try issuer.publish(beside: [Self.useless[0].1])
        let time = Locked<Duration>(.zero)
        let (logger, lines) = RecordedLog.logger()
        let keys = try SigningKeys(
            source: .file(issuer.file.path),
            clock: Clock(now: { Timestamp(microseconds: 0) }, uptime: { time.withLock { $0 } }), logger: logger
        ) {}
        #expect(lines().contains { $0.contains("cannot verify tokens") && $0.contains("skipped=1") })
        try issuer.publish()
        time.withLock { $0 += .seconds(3600) }
        keys.refresh {}
        try await eventually("the set was read again") {
            lines().count { $0.contains("The signing keys were loaded.") } == 2
        }
        try "{\"keys\": []}".write(to: issuer.file, atomically: true, encoding: .utf8)
        time.withLock { $0 += .seconds(3600) }
        keys.refresh {}
        try await eventually("the empty key set is reported") {
            lines().contains { $0.contains("The key set is empty") }
        }
        #expect(!lines().contains { $0.contains("skipped=0") }, "\(lines())")
    }

    @Test(arguments: KeySetTests.useless.indices)
    func unusableKey_leavesTheOthersUsable(_ index: Int) async throws {
        let (what, key) = Self.useless[index]
        var issuer = try Issuer()
        try issuer.add("k1")
        try issuer.publish(beside: [key])
        let service = try TestService.start(["jwks": issuer.file.path, "jwtSecret": ""])
        #expect(try await Self.answer(service, issuer.token("k1", at: service.clock.now)) == 200, "\(what)")
        let metrics = try await service.call("GET", "/metrics").text
        #expect(metrics.contains("bellhop_signing_keys{state=\"used\"} 1"), "\(what)")
        #expect(metrics.contains("bellhop_signing_keys{state=\"skipped\"} 1"), "\(what)")
    }

    /// Keys with the same id before and after it, and a key of another type: a token is verified with each of them.
    @Test func usefulKeys_leaveTheOthersUsable() async throws {
        let (own, others) = (Self.point(#""kid":"k1""#), [Self.point(#""kid":"x""#), Self.point(#""use":"sig""#)])
        let edwards = #"{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#
        for beside in [[own], [own, own], [edwards, own], others] {
            var issuer = try Issuer()
            try issuer.add("k1")
            try issuer.publish(beside: beside)
            let service = try TestService.start(["jwks": issuer.file.path, "jwtSecret": ""])
            #expect(try await Self.answer(service, issuer.token("k1", at: service.clock.now)) == 200, "\(beside)")
            var other = try Issuer()
            try other.add("k1")
            #expect(try await Self.answer(service, other.token("k1", at: service.clock.now)) == 401, "\(beside)")
        }
    }

    @Test func unusableKey_doesNotKeepAWithdrawnOne() async throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        let service = try TestService.start(["jwks": issuer.file.path, "jwtSecret": ""])
        let token = try issuer.token("k1", at: service.clock.now)
        #expect(try await Self.answer(service, token) == 200)
        issuer.withdraw()
        try issuer.add("k2")
        try issuer.publish(beside: Self.useless.map(\.1))
        service.clock.advance(seconds: Limits.keySetLifetimeSeconds / 2)
        // The unknown key id triggers a fetch of the set.
        let second = try issuer.token("k2", at: service.clock.now)
        #expect(try await Self.answer(service, second) == 200)
        #expect(try await Self.answer(service, issuer.token("k1", at: service.clock.now)) == 401)
        #expect(try await Self.answer(service, token) == 401)
    }

    @Test func clockSetBack_doesNotPreventFetchingTheKeySet() async throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        let service = try TestService.start(["jwks": issuer.file.path, "jwtSecret": ""])
        service.clock.advance(seconds: -86_400)
        try issuer.add("k2")
        service.clock.advance(seconds: 11)
        #expect(try await Self.answer(service, issuer.token("k2", at: service.clock.now)) == 200)
    }

    @Test func keysForOtherUses_neverVerify() async throws {
        for other in [#","use":"enc""#, #","key_ops":["sign"]"#, #","key_ops":[]"#, #","key_ops":"verify""#] {
            var issuer = try Issuer()
            try issuer.add("k1")
            try issuer.add("k2", more: other)
            let service = try TestService.start(["jwks": issuer.file.path, "jwtSecret": ""])
            #expect(try await Self.answer(service, issuer.token("k1", at: service.clock.now)) == 200, "\(other)")
            #expect(try await Self.answer(service, issuer.token("k2", at: service.clock.now)) == 401, "\(other)")
        }
        var issuer = try Issuer()
        try issuer.add("k1", more: #","use":"sig","key_ops":["verify","sign"]"#)
        let service = try TestService.start(["jwks": issuer.file.path, "jwtSecret": ""])
        #expect(try await Self.answer(service, issuer.token("k1", at: service.clock.now)) == 200)
    }

    @Test func keySetFile_thatIsMissingOrBroken_stopsTheStart() throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("keys.json")
        func refusal() throws -> (status: Int32, text: String) {
            let settings = ["JWKS": file, "PORT": "0", "DATABASE": "sqlite::memory:"]
            return try BellhopProcess(["serve"], settings: settings, through: ["timeout", "20"]).finish()
        }
        let missing = try refusal()
        #expect(missing.status == 78)
        #expect(missing.text.contains("jwks (BELLHOP_JWKS): \(file)"), "\(missing.text)")
        for broken in ["", "{", "[]", #"{"keys":7}"#, #"{"keys":[]}"#, #"{"keys":[{"kty":"oct","k":"AAAA"}]}"#] {
            try Data(broken.utf8).write(to: URL(fileURLWithPath: file))
            let (status, text) = try refusal()
            #expect(status == 78, "\(broken): \(text)")
            #expect(text.contains("jwks (BELLHOP_JWKS): \(file)"), "\(broken): \(text)")
        }
    }

    // MARK: Addresses

    private static func answer(_ body: String) -> ScriptedReceiver.Reply {
        .raw("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    @Test func keySetOfAnAddress_isFetched() async throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        let set = try String(contentsOf: issuer.file, encoding: .utf8)
        let receiver = try ScriptedReceiver { _ in Self.answer(set) }
        defer { receiver.stop() }
        let service = try TestService.start(["jwks": receiver.url, "jwtSecret": ""])
        #expect(try await Self.answer(service, issuer.token("k1", at: service.clock.now)) == 200)
    }

    /// Attack: the issuer's address redirects to another host. Harm: that host decides whose tokens are accepted.
    @Test func redirectOfAnIssuer_isNotFollowed() async throws {
        let other = try ScriptedReceiver { _ in Self.answer(#"{"keys":[]}"#) }
        defer { other.stop() }
        let receiver = try ScriptedReceiver { _ in .status(302, headers: ["Location: \(other.url)"]) }
        defer { receiver.stop() }
        await #expect(throws: KeySet.Unusable.self) { try await SigningKeys.load(.address(OutboundURL(receiver.url))) }
        #expect(receiver.deliveries.all.count == 1 && other.connections.all.isEmpty)
    }

    /// Attack: the issuer's address sends an endless answer. Harm: it fills the memory.
    @Test func endlessKeySet_isTruncated() async throws {
        let endless = "HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: Limits.keySetBytesMax + 1)
        let receiver = try ScriptedReceiver { _ in .raw(endless) }
        defer { receiver.stop() }
        let error = await #expect(throws: KeySet.Unusable.self) {
            try await SigningKeys.load(.address(OutboundURL(receiver.url)))
        }
        #expect(error?.description == "\(receiver.url): the document is too large")
    }

    @Test(arguments: [
        "http://issuer.example/jwks.json", "http://10.0.0.1/jwks.json", "http://localhost.example/jwks.json",
        "http://127.0.0.1.example/jwks.json", "HTTP://issuer.example/jwks.json",
    ])
    func plainAddress_isRefused_unlessItIsOfLoopback(_ address: String) async throws {
        let mistake = #expect(throws: Settings.Mistake.self) {
            try TestService.start(["jwks": address, "jwtSecret": ""])
        }
        #expect(mistake?.description.contains("https://") == true)
        #expect(throws: Settings.Fault.self) { try KeySource.address(address, isPrivate: false) }
    }

    /// Attack: an address that programs read differently. Harm: the keys come from another host than the checked one.
    @Test(arguments: [
        ("http://localhost@issuer.example/", "must not contain a user or password"),
        ("https://ada:planted@issuer.example/keys", "must not contain a user or password"),
        ("http://ada:planted@127.0.0.1:1/keys", "must not contain a user or password"),
        ("http://127.1/keys", "IPv4 address of four decimal numbers"), ("https://issuer.example/keys#a", "fragment"),
        ("https://issuer.example\\@127.0.0.1/keys", "user or password"), ("https://issuer.example:0/", "port"),
        ("https:/issuer.example/keys", "must begin with https://"),
    ])
    func ambiguousAddress_isRefused(_ address: String, _ reason: String) async throws {
        let mistake = #expect(throws: (any Error).self) { try TestService.start(["jwks": address, "jwtSecret": ""]) }
        #expect("\(mistake.map { "\($0)" } ?? "")".contains(reason), "\(String(describing: mistake))")
        #expect(!"\(String(describing: mistake))".contains("planted"))
        let fault = #expect(throws: Settings.Fault.self) { try KeySource.address(address, isPrivate: false) }
        #expect(fault?.problem.contains(reason) == true, "\(String(describing: fault))")
    }
}
