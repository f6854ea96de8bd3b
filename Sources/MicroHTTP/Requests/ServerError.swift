import Glibc

/// The reason why a server or its shards could not start.
public struct ServerError: Error, CustomStringConvertible, Sendable {
    public let description: String
    /// Whether another process listens on the address. It may be one that is about to end.
    public let isAddressInUse: Bool

    init(description: String, isAddressInUse: Bool = false) {
        self.description = description
        self.isAddressInUse = isAddressInUse
    }
}

extension ServerError {
    /// The system refused a call that the server cannot do without.
    init(_ call: String, _ code: Int32) { self.init(description: "\(call): \(String(cString: strerror(code)))") }
}
