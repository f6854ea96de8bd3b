import Foundation

/// Returns a new seed, or the number in `TEST_SEED`, and prints it. Set that variable to repeat a failure.
public func randomSeed(of test: String = #function) -> UInt64 {
    let seed = givenSeed ?? UInt64.random(in: 1...UInt64.max)
    print("\(test): seed \(seed)")
    return seed
}

private let givenSeed: UInt64? = ProcessInfo.processInfo.environment["TEST_SEED"].map { text in
    guard let seed = UInt64(text) else { fatalError("TEST_SEED must be a number below 2^64, not \(text)") }
    return seed
}

/// A seeded random number generator, so that the printed seed repeats a failure: SplitMix64 (Steele, Lea, Flood
/// 2014).
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
