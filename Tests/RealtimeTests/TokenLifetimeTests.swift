import Realtime
import TestSupport
import Testing

@Suite(.timed) struct TokenLifetimeTests {
    private let second: Int64 = 1_000_000

    /// R-SCH-FR-002: the stream ends when its token expires, and the client receives a warning before that.
    @Test func token_isWarnedAboutOnce_thenEnds() {
        var lifetime = TokenLifetime(expiresAt: 100 * second)
        #expect(lifetime.nextStepAt == 70 * second)
        #expect(lifetime.step(at: 69 * second) == nil)
        #expect(lifetime.step(at: 70 * second) == .warn)
        #expect(lifetime.step(at: 71 * second) == nil)
        #expect(lifetime.nextStepAt == 100 * second)
        #expect(lifetime.step(at: 100 * second) == .end)
    }

    @Test func renewal_resetsTheLifetime() {
        var lifetime = TokenLifetime(expiresAt: 100 * second)
        _ = lifetime.step(at: 80 * second)
        lifetime.renew(expiresAt: 200 * second)
        #expect(lifetime.step(at: 100 * second) == nil)
        #expect(lifetime.step(at: 170 * second) == .warn)
    }

    @Test func clockThatJumps_endsWithoutAWarning() {
        var lifetime = TokenLifetime(expiresAt: 100 * second)
        #expect(lifetime.step(at: 500 * second) == .end)
    }
}
