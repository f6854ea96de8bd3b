/// A keyed permutation of the 64-bit numbers: Speck64/128 (Beaulieu and others, "The Simon and Speck Families of
/// Lightweight Block Ciphers", 2013).
///
/// It turns sequence numbers into opaque ids. Without the key, an id reveals neither the count nor the order, and each
/// number has exactly one id. The cipher consists of additions, rotations and exclusive ors without tables. So it takes
/// some hundred instructions, and a test in another language needs only a few lines for it.
public struct KeyedPermutation: Sendable {
    public static let keyBytes = 16
    private static let rounds = 27
    private let roundKeys: [UInt32]

    /// Creates the permutation of a key.
    ///
    /// - Parameter key: 16 bytes. Every bit of it is used.
    public init(key: [UInt8]) {
        precondition(key.count == KeyedPermutation.keyBytes, "a key has 16 bytes")
        var words = stride(from: 0, to: key.count, by: 4).map { start in
            key[start..<start + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        var roundKey = words.removeFirst()
        var roundKeys = [roundKey]
        for round in 0..<UInt32(KeyedPermutation.rounds - 1) {
            let word = (roundKey &+ words.removeFirst().rotated(right: 8)) ^ round
            words.append(word)
            roundKey = roundKey.rotated(right: 29) ^ word
            roundKeys.append(roundKey)
        }
        self.roundKeys = roundKeys
    }

    /// Creates a permutation with a random key, for ids that are valid only in this process.
    public init() {
        self.init(key: (0..<KeyedPermutation.keyBytes).map { _ in UInt8.random(in: .min ... .max) })
    }

    public func seal(_ number: UInt64) -> OpaqueID {
        var (high, low) = (UInt32(truncatingIfNeeded: number >> 32), UInt32(truncatingIfNeeded: number))
        for key in roundKeys {
            high = (high.rotated(right: 8) &+ low) ^ key
            low = low.rotated(right: 29) ^ high
        }
        return OpaqueID(bits: UInt64(high) << 32 | UInt64(low))
    }

    /// Returns the number from which ``seal(_:)`` made the id. For any other id, the result is an arbitrary number.
    public func open(_ id: OpaqueID) -> UInt64 {
        var (high, low) = (UInt32(truncatingIfNeeded: id.bits >> 32), UInt32(truncatingIfNeeded: id.bits))
        for key in roundKeys.reversed() {
            low = (low ^ high).rotated(right: 3)
            high = ((high ^ key) &- low).rotated(right: 24)
        }
        return UInt64(high) << 32 | UInt64(low)
    }
}

/// The 64 bits of an id as they are sent: always 13 digits of Crockford's base 32, in lower case.
public struct OpaqueID: Sendable, Hashable {
    public static let digits = 13
    public let bits: UInt64

    public init(bits: UInt64) { self.bits = bits }

    /// Reads an id; nil for any text but the one that ``append(to:)`` writes.
    public init?(_ text: some Collection<UInt8>) {
        guard text.count == OpaqueID.digits else { return nil }
        var bits: UInt64 = 0
        for byte in text {
            guard let digit = OpaqueID.value(of: byte), bits >> 59 == 0 else { return nil }
            bits = bits << 5 | digit
        }
        self.bits = bits
    }

    public var text: String {
        String(unsafeUninitializedCapacity: OpaqueID.digits) { out in
            write(to: out)
            return OpaqueID.digits
        }
    }

    public func append(to bytes: inout [UInt8]) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: OpaqueID.digits) { out in
            write(to: out)
            bytes.append(contentsOf: out)
        }
    }

    private func write(to out: UnsafeMutableBufferPointer<UInt8>) {
        var rest = bits
        for index in (0..<OpaqueID.digits).reversed() {
            out[index] = OpaqueID.alphabet.utf8Start[Int(rest & 31)]
            rest >>= 5
        }
    }

    private static let alphabet: StaticString = "0123456789abcdefghjkmnpqrstvwxyz"

    private static func value(of byte: UInt8) -> UInt64? {
        alphabet.withUTF8Buffer { $0.firstIndex(of: byte) }.map(UInt64.init)
    }
}

extension UInt32 {
    fileprivate func rotated(right count: UInt32) -> UInt32 { self >> count | self << (32 - count) }
}
