import Foundation
import TestSupport
import Testing

@testable import BellhopCalls
@testable import BellhopClient

/// The tokens of real issuers (`Tests/Fixtures/Identity`): which changes keep what a device has, and which do not.
@Suite(.timed, .timeLimit(.minutes(10)))
@MainActor struct IdentityTests {
    private nonisolated static let fixture = repository.appendingPathComponent("Tests/Fixtures/Identity/issuers.json")
    private let clock = StandingClock()

    private nonisolated static func issuers() throws -> [JSON] {
        try JSON(parsing: Data(contentsOf: fixture))["issuers"].array ?? []
    }

    private nonisolated static func jwt(_ payload: JSON) -> String {
        let middle = payload.data.base64EncodedString().replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_").filter { $0 != "=" }
        return "e30.\(middle).x"
    }

    /// A renewal, another login, a changed profile and a second factor are the same person with the same rights.
    @Test func tokens_ofEveryIssuer_changeTheIdentity_onlyIfTheServiceSaysSo() async throws {
        let issuers = try Self.issuers()
        #expect(issuers.count == 18)
        for issuer in issuers {
            let name = issuer["issuer"].string ?? ""
            let first = Self.jwt(issuer["payload"])
            for one in issuer["tokens"].array ?? [] {
                let next = Self.jwt(one["payload"])
                let identities = [first: issuer["identity"].string, next: one["identity"].string]
                let others = Collected<String?>()
                let tokens = Tokens(
                    .init(renewing: { $0 ? next : first }), clock: clock.clock,
                    identify: { token in
                        let me: JSON = ["identity": JSON(identities[token] ?? nil), "userId": "ada"]
                        return ServiceAnswer(status: 200, headers: [:], body: me.data)
                    }, onUser: { _, identity in others.append(identity) })
                #expect(await tokens.get() == first, "\(name)")
                let isSame = one["identity"] == issuer["identity"]
                let given = await tokens.get(spent: first)
                let place = "\(name): \(one["case"].string ?? "")"
                #expect(given == (isSame ? next : nil), "\(place)")
                if isSame {
                    #expect(others.all.isEmpty, "\(place)")
                } else {
                    try await eventually("\(place): another session begins") { @Sendable in !others.all.isEmpty }
                }
                tokens.close()
            }
        }
    }

    /// Some issuers have the stable id of a user in another claim than sub, and the service's settings name it.
    @Test func user_isTheOneThatTheServiceNames() async throws {
        let token = Self.jwt(["iss": "i", "sub": "pairwise", "oid": "o-ada"])
        for user in [nil, "o-ada"] {
            let others = Collected<String?>()
            let tokens = Tokens(
                .fixed(token), clock: clock.clock, user: user,
                identify: { _ in
                    let me: JSON = ["identity": "digest", "userId": "o-ada"]
                    return ServiceAnswer(status: 200, headers: [:], body: me.data)
                }, onUser: { other, _ in others.append(other) })
            #expect(await tokens.get() == token)
            #expect(tokens.user == "o-ada")
            #expect(others.all.isEmpty)
            tokens.close()
        }
    }

    /// A service that knows the tokens of an issuer, and counts its requests.
    private func service(_ issuer: JSON) throws -> ScriptedServer {
        var identities = [Self.jwt(issuer["payload"]): issuer["identity"].string ?? ""]
        for one in issuer["tokens"].array ?? [] { identities[Self.jwt(one["payload"])] = one["identity"].string ?? "" }
        let server = try ScriptedServer([]) { [identities] head in
            let token = ScriptedServer.token(in: head)
            let last = "Connection: close\r\n"
            if head.hasPrefix("GET /v1/stream") {
                let ready: JSON = [
                    "streamId": "s1", "topics": ["personal"], "identity": JSON(identities[token]),
                ]
                return .stream(
                    ["event: stream:ready\ndata: \(ready.text)\n\n", "event: n\nid: e1\ndata: 1\n\n"], staysOpen: true)
            }
            if head.hasPrefix("PUT /v1/streams/") {
                let answer: JSON = ["expiresAt": "2030-01-01T00:00:00.000Z", "identity": "x"]
                return .answer("200 OK", headers: last, body: answer.text)
            }
            if head.hasPrefix("POST /v1/secret") { return nil }
            guard head.hasPrefix("GET /v1/notifications") else { return .answer("404 Not Found", headers: last) }
            return .answer("200 OK", headers: last, body: #"{"items":[],"next":null}"#)
        }
        server.name { [identities] in identities[$0] }
        return server
    }

    private func bell(
        _ server: ScriptedServer, _ storage: any ClientStorage, _ token: @escaping @Sendable () -> String?,
        _ network: ManualNetwork = ManualNetwork()
    ) -> Bell {
        var options = Bell.Options()
        (options.clock, options.storage, options.network) = (clock.clock, storage, network)
        return Bell(url: server.baseURL, token: .init { token() }, options: options)
    }

    private func until(_ comment: Comment, _ condition: @escaping @MainActor () -> Bool) async throws {
        try await eventually(comment) { @Sendable in await MainActor.run { condition() } }
    }

    /// The keys of a storage contain digests only, whatever the token says.
    @Test func namesInTheStorage_showNoClaim() async throws {
        for issuer in try Self.issuers() {
            let storage = MemoryStorage()
            let server = try service(issuer)
            let token = Self.jwt(issuer["payload"])
            let bell = bell(server, storage) { token }
            let notifications = bell.notifications
            try await until("it is live") { bell.connection.status == .live && notifications.snapshot.isLoaded }
            try await eventually("the position is stored") { @Sendable in
                await storage.keys(beginningWith: "").contains { $0.hasSuffix(" cursor") }
            }
            bell.close()
            await bell.keeping?.value
            let keys = await storage.keys(beginningWith: "")
            let identity = issuer["identity"].string ?? ""
            let names = ["cursor", "known", "state"].map { "bellhop 3 \(server.baseURL) \(identity) \($0)" }
            #expect(keys == names, "\(issuer["issuer"])")
            // What names the identity is a digest too.
            let known = try #require(await storage.get(names[1]))
            #expect(!String(decoding: known, as: UTF8.self).contains(issuer["payload"]["sub"].string ?? "-"))
        }
    }

    /// The same person keeps stores, stream, cursor and outbox over each kind of new token.
    @Test func samePerson_keepsEverything() async throws {
        let issuer = try #require(try Self.issuers().first { $0["issuer"] == "clerk" })
        let same = (issuer["tokens"].array ?? []).filter { $0["identity"] == issuer["identity"] }
        #expect(same.count >= 4)
        let storage = MemoryStorage()
        let server = try service(issuer)
        let token = Guarded(Self.jwt(issuer["payload"]))
        let bell = bell(server, storage) { token.withLock { $0 } }
        defer { bell.close() }
        let notifications = bell.notifications
        try await until("it is live") { bell.connection.status == .live && notifications.snapshot.isLoaded }
        let outbox = bell.outbox
        for (number, one) in same.enumerated() {
            let (spent, next) = (token.withLock { $0 }, Self.jwt(one["payload"]))
            token.withLock { $0 = next }
            #expect(try await bell.current.get(SpentToken(token: spent)) == next)
            try await until("the stream continues with it") {
                server.requests.count { $0.hasPrefix("PUT /v1/streams/s1/token") } == number + 1
            }
            #expect(notifications.snapshot.isLoaded)
        }
        #expect(bell.outbox === outbox)
        #expect(server.requests.count { $0.hasPrefix("GET /v1/stream") } == 1)
    }

    /// Another role, tenant, scope or person: the stores are emptied, the stream and the outbox start again, and a
    /// write that waits is not sent under the new rights. When the former rights return, so does the write.
    @Test(arguments: ["clerk", "supabase", "keycloak", "firebase"])
    func otherRights_resetEverything(_ name: String) async throws {
        let issuer = try #require(try Self.issuers().first { $0["issuer"].string == name })
        let first = Self.jwt(issuer["payload"])
        for one in issuer["tokens"].array ?? [] where one["identity"] != issuer["identity"] {
            let (storage, server) = (MemoryStorage(), try service(issuer))
            let token = Guarded(first)
            let before = bell(server, storage) { first }
            let shown = before.notifications
            try await until("it is live") { before.connection.status == .live && shown.snapshot.isLoaded }
            try await eventually("the position is stored") { @Sendable in
                await storage.keys(beginningWith: "").contains { $0.hasSuffix(" cursor") }
            }
            // The write waits, because the service closes the connection without an answer.
            let sending = Task { try await before.send("POST", "/v1/secret", ["n": 1], key: "k1") }
            try await until("the write was tried") { server.requests.contains { $0.hasPrefix("POST /v1/secret") } }
            before.close()
            await before.keeping?.value
            await #expect(throws: UnsentWrite.self) { _ = try await sending.value }
            let tries = server.requests.count { $0.hasPrefix("POST /v1/secret") }

            token.withLock { $0 = Self.jwt(one["payload"]) }
            let after = bell(server, storage) { token.withLock { $0 } }
            let notifications = after.notifications
            try await until("it is live") { after.connection.status == .live && notifications.snapshot.isLoaded }
            #expect(after.identity == one["identity"].string)
            #expect(after.waitingWrites == 0)
            #expect(server.requests.count { $0.hasPrefix("POST /v1/secret") } == tries)
            // The state and the position of the former rights do not stay, if it is the same person.
            let former = "bellhop 3 \(server.baseURL) \(issuer["identity"].string ?? "") "
            let isSamePerson = one["payload"]["sub"] == issuer["payload"]["sub"]
            let left = await storage.keys(beginningWith: former).map { $0.dropFirst(former.count).prefix(7) }
            #expect(left == (isSamePerson ? ["known", "outbox/"] : ["cursor", "known", "outbox/", "state"]))
            after.close()

            let again = bell(server, storage) { first }
            defer { again.close() }
            try await until("the former write is sent again") {
                server.requests.count { $0.hasPrefix("POST /v1/secret") } > tries
            }
        }
    }

    /// The device keeps the data of two identities of the person: only the service can know which one it is.
    @Test func severalIdentities_showNothing_untilTheServiceAnswers() async throws {
        let claims = TokenClaims(payload: ["iss": "i", "sub": "ada"])
        let storage = MemoryStorage()
        let kept = IdentityStorage(storage: storage, url: "http://127.0.0.1:1")
        for identity in ["i1", "i2"] {
            await kept.keep(.init(identity: identity, holder: claims.holder, person: claims.person))
        }
        let token = Self.jwt(["iss": "i", "sub": "ada"])
        var options = Bell.Options()
        (options.clock, options.storage, options.user) = (clock.clock, storage, "ada")
        for provider in [BellhopClient.TokenProvider { token }, .init { nil }] {
            let bell = Bell(url: "http://127.0.0.1:1", token: provider, options: options)
            try await until("the first try has failed") { bell.connection.status == .waiting }
            #expect(bell.identity == nil && bell.lastState == nil)
            bell.close()
        }
        await kept.remove("i2")
        let bell = Bell(url: "http://127.0.0.1:1", token: .init { token }, options: options)
        defer { bell.close() }
        try await until("its state shows") { bell.lastState != nil }
        #expect(bell.identity == "i1")
    }
}
