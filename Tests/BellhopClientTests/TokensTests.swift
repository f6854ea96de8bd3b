import TestSupport
import Testing

@testable import BellhopClient

/// Calls and the stream ask for tokens at the same time.
@Suite(.timed) struct TokensTests {
    /// Other callers may still receive the refused token. A caller that has tried it needs another one.
    @Test func refusedToken_isNeverGivenToWhoHasTriedIt() async {
        // It stands still: on a busy machine the app's answer must not seem to be late.
        let clock = StandingClock().clock
        // Side by side: one after the other, each of thousands of steps would wait for its turn among the other tests.
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
}
