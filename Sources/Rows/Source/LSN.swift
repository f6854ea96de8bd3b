/// A position in PostgreSQL's write-ahead log (log sequence number), in bytes since its beginning.
public struct LSN: RawRepresentable, Sendable, Hashable, Comparable {
    public let rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Reads `16/B374D848`; returns nil for any other form.
    public init?(_ text: String) {
        let halves = text.split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2, let high = UInt32(halves[0], radix: 16), let low = UInt32(halves[1], radix: 16) else {
            return nil
        }
        rawValue = UInt64(high) << 32 | UInt64(low)
    }

    public static func < (left: LSN, right: LSN) -> Bool { left.rawValue < right.rawValue }
}

extension LSN: CustomStringConvertible {
    /// The position in PostgreSQL's notation: `16/B374D848`.
    public var description: String {
        String(rawValue >> 32, radix: 16, uppercase: true) + "/"
            + String(rawValue & 0xFFFF_FFFF, radix: 16, uppercase: true)
    }
}
