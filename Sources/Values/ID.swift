/// A typed identifier: an `ID<Booking>` cannot be passed where an `ID<Notification>` is expected.
public struct ID<Entity>: Sendable, Hashable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral {
    public let text: String

    @inlinable
    public init(_ text: String) {
        self.text = text
    }

    /// An id that stands in the source.
    public init(stringLiteral text: String) { self.init(text) }

    public var description: String { text }

    // Bytes, not Swift's canonical equivalence: databases and tokens tell ids apart by their bytes, and sort them so.

    @inlinable
    public static func == (left: Self, right: Self) -> Bool { left.text.hasBytes(of: right.text) }

    @inlinable
    public static func < (left: Self, right: Self) -> Bool {
        left.text.withUTF8Bytes { own in right.text.withUTF8Bytes { own.precedes($0) } }
    }

    @inlinable
    public func hash(into hasher: inout Hasher) {
        text.withUTF8Bytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // What follows in the same key begins elsewhere.
        hasher.combine(0xFF as UInt8)
    }
}

/// A generator of identifiers that sort in the order they were made: 48 bits of milliseconds, 80 random bits that count
/// up within a millisecond, in Crockford's base 32 (the ULID layout), lower case, 26 characters.
///
/// The order matters: "everything up to this notification" and list cursors compare ids.
public struct IDSequence: Sendable {
    private var lastMilliseconds: UInt64 = 0
    private var high: UInt16 = 0
    private var low: UInt64 = 0

    public init() {}

    public mutating func next<Entity>(at now: Timestamp, _: Entity.Type = Entity.self) -> ID<Entity> {
        let milliseconds = UInt64(max(0, now.microseconds / 1000))
        if milliseconds > lastMilliseconds {
            lastMilliseconds = milliseconds
            // The top bit stays clear, so that counting up within the millisecond cannot overflow.
            high = UInt16.random(in: 0...0x7FFF)
            low = UInt64.random(in: .min ... .max)
        } else {
            let (sum, overflow) = low.addingReportingOverflow(UInt64.random(in: 1...0xFFFF_FFFF))
            low = sum
            if overflow { high += 1 }
        }
        return ID(IDSequence.text(lastMilliseconds, high, low))
    }

    /// An identifier of a moment and random bits, in order only against those of other milliseconds: for callers whose
    /// moments themselves rise, over all processes.
    public static func unordered<Entity>(at moment: Timestamp, _: Entity.Type = Entity.self) -> ID<Entity> {
        ID(
            text(
                UInt64(max(0, moment.microseconds / 1000)), UInt16.random(in: .min ... .max),
                UInt64.random(in: .min ... .max)))
    }

    /// Whether a text has the form of the identifiers that are made here.
    static func isTimed(_ text: String) -> Bool {
        text.utf8.count == 26 && text.utf8.allSatisfy { (48...57).contains($0) || (97...122).contains($0) }
    }

    private static let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)

    private static func text(_ milliseconds: UInt64, _ high: UInt16, _ low: UInt64) -> String {
        String(unsafeUninitializedCapacity: 26) { out in
            var time = milliseconds
            for index in stride(from: 9, through: 0, by: -1) {
                out[index] = alphabet[Int(time & 31)]
                time >>= 5
            }
            var (upper, lower) = (UInt64(high), low)
            for index in stride(from: 25, through: 10, by: -1) {
                out[index] = alphabet[Int(lower & 31)]
                lower = lower >> 5 | upper << 59
                upper >>= 5
            }
            return 26
        }
    }
}
