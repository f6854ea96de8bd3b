/// A typed identifier: an `ID<Booking>` cannot be passed where an `ID<Notification>` is expected.
public struct ID<Entity>: Sendable, Hashable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral {
    public let text: String

    @inlinable
    public init(_ text: String) {
        self.text = text
    }

    /// Creates an id from a literal.
    public init(stringLiteral text: String) { self.init(text) }

    public var description: String { text }

    // Compares bytes, not canonically equivalent texts, because databases and tokens distinguish and sort ids by their
    // bytes.

    @inlinable
    public static func == (left: Self, right: Self) -> Bool { left.text.hasBytes(of: right.text) }

    @inlinable
    public static func < (left: Self, right: Self) -> Bool {
        left.text.withUTF8Bytes { own in right.text.withUTF8Bytes { own.precedes($0) } }
    }

    @inlinable
    public func hash(into hasher: inout Hasher) {
        text.withUTF8Bytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // Separates the id from the next part of the same key.
        hasher.combine(0xFF as UInt8)
    }
}

/// A generator of identifiers that sort in the order of their creation. They consist of 48 bits of milliseconds and 80
/// random bits that count up within a millisecond, in Crockford's base 32 (the ULID layout): 26 lower-case characters.
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

    /// Creates an identifier from a moment and random bits. It is ordered only against identifiers of other
    /// milliseconds. It suits callers whose timestamps rise over all processes.
    public static func unordered<Entity>(at moment: Timestamp, _: Entity.Type = Entity.self) -> ID<Entity> {
        ID(
            text(
                UInt64(max(0, moment.microseconds / 1000)), UInt16.random(in: .min ... .max),
                UInt64.random(in: .min ... .max)))
    }

    /// Whether a text has the form of the identifiers that this service makes.
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
