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

@Suite(.timed) struct DigestTests {
    /// The examples of FIPS 180-4, and texts around the length of a block.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (String(repeating: "a", count: 64), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"),
    ])
    func text_hasItsKnownDigest(_ text: String, _ digest: String) { #expect(Digest.text(text) == digest) }
}
