import Foundation

/// Returns how much random work a test does. `TEST_EFFORT` selects the amount: `quick` (the default) for a
/// contributor's run, `full` for CI, and `long` for `make test-long`.
///
/// Randomized tests take their number of rounds from here and print the seed that repeats a failure.
public func effort(quick: Int, full: Int, long: Int) -> Int {
    switch ProcessInfo.processInfo.environment["TEST_EFFORT"] {
    case "long": long
    case "full": full
    default: quick
    }
}
