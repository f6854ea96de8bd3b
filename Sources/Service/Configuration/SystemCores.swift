import Foundation

/// The processors this process may use.
enum SystemCores {
    static let count = max(1, ProcessInfo.processInfo.activeProcessorCount)
}
