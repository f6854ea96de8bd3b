import Glibc

/// The reason why a server or its shards could not start.
public struct ServerError: Error, CustomStringConvertible, Sendable {
    public let description: String
}

extension ServerError {
    /// Creates the error for a failed system call that the server depends on.
    init(_ call: String, _ code: Int32) { description = "\(call): \(String(cString: strerror(code)))" }
}
