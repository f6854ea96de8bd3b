import Glibc

/// The system refused what a shard cannot be without.
public struct StreamShardError: Error, Sendable, CustomStringConvertible {
    public let call: String
    public let code: Int32

    init(_ call: String, _ code: Int32) {
        self.call = call
        self.code = code
    }

    public var description: String { "\(call): \(String(cString: strerror(code)))" }
}
