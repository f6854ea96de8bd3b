/// What travels in a replication connection's copy stream: parts of the log, and signs of life.
///
/// Source: PostgreSQL's documentation, "Streaming Replication Protocol".
public enum ReplicationFrame: Sendable, Hashable {
    /// - Parameter logEnd: how far the server's log reaches.
    case data(logEnd: LSN, ArraySlice<UInt8>)
    /// - Parameters:
    ///   - sentUpTo: everything before it was sent.
    ///   - wantsReply: whether the server waits for a status; one that shuts down does, until all is confirmed.
    case keepalive(sentUpTo: LSN, wantsReply: Bool)

    public init(reading bytes: [UInt8]) throws(ReplicationFault) {
        func fault(_ reason: String) -> ReplicationFault {
            ReplicationFault(
                kind: bytes.first.map { Character(Unicode.Scalar($0)) }, place: bytes.count, reason: reason)
        }
        func position(at index: Int) -> LSN {
            LSN(rawValue: bytes[index..<(index + 8)].reduce(0) { $0 << 8 | UInt64($1) })
        }
        switch bytes.first {
        case UInt8(ascii: "w"):
            guard bytes.count >= 25 else { throw fault("it ends too early") }
            self = .data(logEnd: position(at: 9), bytes[25...])
        case UInt8(ascii: "k"):
            guard bytes.count == 18 else { throw fault("a keepalive has 18 bytes") }
            self = .keepalive(sentUpTo: position(at: 1), wantsReply: bytes[17] == 1)
        default: throw fault("is none of the frames that a server sends")
        }
    }

    /// A standby status update: what was received, and what is stored here and need not be sent again.
    ///
    /// - Parameter microseconds: the present, since 2000-01-01.
    public static func status(received: LSN, stored: LSN, microseconds: Int64) -> [UInt8] {
        var bytes = [UInt8(ascii: "r")]
        for number in [received.rawValue, stored.rawValue, stored.rawValue, UInt64(bitPattern: microseconds)] {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
        return bytes + [0]
    }
}
