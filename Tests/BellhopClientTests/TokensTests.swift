import TestSupport
import Testing

@testable import BellhopClient

/// Calls and the stream ask for tokens at the same time.
@Suite(.timed) struct TokensTests {
    /// Others may still be given the one that was refused; who has tried it needs another.
    @Test func refusedToken_isNeverGivenToWhoHasTriedIt() async {
        // It stands still: on a busy machine the app's answer must not seem to be late.
        let clock = StandingClock().clock
        for round in 0..<500 {
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
