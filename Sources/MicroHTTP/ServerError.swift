import Glibc

/// Why a server or its shards could not start.
public struct ServerError: Error, CustomStringConvertible, Sendable {
    public let description: String
}

extension ServerError {
    /// The system refused a call that the server cannot do without.
    init(_ call: String, _ code: Int32) { description = "\(call): \(String(cString: strerror(code)))" }
}
