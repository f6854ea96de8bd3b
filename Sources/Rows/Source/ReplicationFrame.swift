/// A frame of a replication connection's copy stream: a part of the log, or a keepalive.
///
/// Source: PostgreSQL's documentation, "Streaming Replication Protocol".
public enum ReplicationFrame: Sendable, Hashable {
    /// - Parameter logEnd: the end of the server's log.
    case data(logEnd: LSN, ArraySlice<UInt8>)
    /// - Parameters:
    ///   - sentUpTo: the server has sent everything before this position.
    ///   - wantsReply: whether the server waits for a status. A server that shuts down waits until everything is
    ///     confirmed.
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
            guard bytes.count == 18 else { throw fault("a keepalive must have 18 bytes") }
            self = .keepalive(sentUpTo: position(at: 1), wantsReply: bytes[17] == 1)
        default: throw fault("the frame has an unknown type")
        }
    }

    /// Makes a standby status update: the received position, and the position up to which everything is stored here and
    /// need not be sent again.
    ///
    /// - Parameter microseconds: the present time, since 2000-01-01.
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
