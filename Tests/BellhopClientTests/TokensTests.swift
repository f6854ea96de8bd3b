import Foundation
import TestSupport
import Testing

@testable import BellhopCalls
@testable import BellhopClient

/// Calls and the stream request tokens concurrently.
@Suite(.timed) struct TokensTests {
    /// Other callers may still receive the refused token. A caller that has already tried it needs a new one.
    @Test func refusedToken_isNotReturnedToACallerThatTriedIt() async {
        // The clock stands still, so that the app's answer is never late on a busy machine.
        let clock = StandingClock().clock
        // The rounds run concurrently. In sequence, each of thousands of steps would wait for its turn among the
        // other tests.
        await withTaskGroup { group in
            for round in 0..<500 {
                group.addTask {
                    let tokens = Tokens(.init(renewing: { $0 ? "new" : "old" }), clock: clock)
                    #expect(await tokens.get() == "old")
                    async let others = (tokens.get(), tokens.get())
                    async let next = tokens.get(spent: "old")
                    let given = await next
                    #expect(given == "new", "round \(round)")
                    _ = await others
                    tokens.close()
                }
            }
        }
    }

    /// The reason is the app's own: what its provider threw, or the fault of what it returned.
    @Test(
        arguments: [
            (.init { throw Away() }, "token.failed", "the session is away"), (.init { nil }, "token.none", nil),
            (.init { "" }, "token.none", nil),
            (.init { "{\"token\": 1}\n" }, "token.wrong", "A token has visible ASCII characters"),
        ] as [(BellhopClient.TokenProvider, String, String?)])
    func noCallIsMade_withoutAToken(
        _ provider: BellhopClient.TokenProvider, _ code: String, _ detail: String?
    ) async throws {
        let server = try ScriptedServer([])
        let tokens = Tokens(provider, clock: StandingClock().clock)
        let client = BellhopClient(baseURL: server.baseURL, token: tokens.caller)
        let failure = await #expect(throws: TokenFailure.self) { try await client.get("/v1/badges") }
        #expect(failure?.code == code)
        #expect(detail.map { failure?.detail?.contains($0) ?? false } ?? (failure?.detail == nil))
        await #expect(throws: (any Error).self) {
            try await BellhopClient(baseURL: server.baseURL, token: provider).get("/v1/badges")
        }
        #expect(server.requests == [])
    }

    private struct Away: Error, CustomStringConvertible {
        let description = "the session is away"
    }

    /// The stream and the calls that receive a refusal ask the app once. If it has no other token, they get the reason.
    @Test func tokenThatStaysRefused_isRequestedOnce() async throws {
        let asked = Collected<Bool>()
        let made = Guarded<Tokens?>(nil)
        let provider = BellhopClient.TokenProvider(renewing: { needsNew in
            asked.append(needsNew)
            // Both wait before the app answers. One that asks after the answer would ask the app again.
            while needsNew, made.withLock({ $0?.waitingCount }) != 2 { await Task.yield() }
            return "old"
        })
        let tokens = Tokens(provider, clock: StandingClock().clock)
        made.withLock { $0 = tokens }
        defer { made.withLock { $0 = nil } }
        #expect(await tokens.get() == "old")
        let problem = ConnectionMachine.Reason(code: "invalid_token.expired", status: 401, detail: "no")
        async let first = tokens.get(spent: "old", problem: problem)
        async let second = tokens.get(spent: "old", problem: problem)
        #expect(await (first, second) == (nil, nil))
        #expect(asked.all == [false, true])
        #expect(tokens.problem?.code == "token.expired")
    }

    /// A token that the service refuses at once is replaced once, and then the reason is reported.
    @Test(arguments: [("invalid_token.expired", "token.expired"), ("invalid_token", "invalid_token")])
    func refusedToken_isAReason(_ code: String, _ told: String) async throws {
        let asked = Collected<Bool>()
        let provider = BellhopClient.TokenProvider(renewing: { needsNew in
            asked.append(needsNew)
            return "t\(asked.all.count)"
        })
        let tokens = Tokens(
            provider, clock: StandingClock().clock,
            identify: { _ in
                ServiceAnswer(
                    status: 401, headers: [:], body: JSON.object(["code": .string(code), "detail": "no"]).data)
            })
        let failure = await #expect(throws: TokenFailure.self) { try await tokens.require() }
        #expect(failure == TokenFailure(code: told, detail: "no"))
        #expect(asked.all == [false, true])
    }

    /// While the service does not say which user a token is about, calls receive its answer, and nothing else is sent.
    @Test func unavailableService_answersTheCall() async throws {
        let server = try ScriptedServer([])
        let tokens = Tokens(
            .init { "t" }, clock: StandingClock().clock,
            identify: { _ in
                ServiceAnswer(status: 503, headers: ["retry-after": "3"], body: Data())
            })
        let answer = try await BellhopClient(baseURL: server.baseURL, token: tokens.caller).get("/v1/badges")
        #expect(answer.status == 503 && answer[header: "Retry-After"] == "3")
        #expect(server.requests == [])
    }
}

@Suite(.timed) struct DigestTests {
    /// FIPS 180-4; lengths around a block, whose padding takes one more.
    @Test(arguments: [
        (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"),
        (56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"),
        (64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"),
        (1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"),
    ])
    func digests_areThoseOfTheStandard(_ count: Int, _ digest: String) {
        #expect(Digest.portable([UInt8](repeating: 0x61, count: count)) == digest)
        #expect(Digest.of(String(repeating: "a", count: count)) == digest)
    }
}
