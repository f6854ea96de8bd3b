import Foundation

/// How much random work a test does. `TEST_EFFORT` decides: `quick` (the default) for a contributor's run, `full` for CI,
/// and `long` for `make test-long`.
///
/// A test whose proof grows with its rounds takes their number from here, and prints the seed that repeats a failure.
public func effort(quick: Int, full: Int, long: Int) -> Int {
    switch ProcessInfo.processInfo.environment["TEST_EFFORT"] {
    case "long": long
    case "full": full
    default: quick
    }
}
