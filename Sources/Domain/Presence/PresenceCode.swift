import Values

/// The code that a shop displays to its guests as a proof of presence.
///
/// It has six characters of Crockford's base 32, in which no two characters look alike. It is derived from a secret,
/// the tenant, the shop and the time window. So nothing is stored, and all replicas compute the same code.
public struct PresenceCode: Sendable, Hashable, CustomStringConvertible {
    private let letters: [UInt8]

    /// The code in upper case, as it is displayed.
    public var description: String { String(decoding: letters, as: UTF8.self) }

    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    /// Creates a code.
    ///
    /// - Parameter digest: The digest of the secret, the tenant, the shop and the window. Each byte gives five bits.
    public init(digest: some Sequence<UInt8>) {
        letters = digest.prefix(PresenceLimits.codeLength).map { Self.alphabet[Int($0 & 31)] }
        precondition(letters.count == PresenceLimits.codeLength, "a digest has more bytes than a code")
    }

    /// Reads a code as a user typed it: in any case, with hyphens and spaces, O for 0, and I or L for 1. Nil if
    /// malformed.
    public init?(typed text: String) {
        var letters: [UInt8] = []
        for byte in text.uppercased().utf8 {
            switch byte {
            case UInt8(ascii: "-"), UInt8(ascii: " "): continue
            case UInt8(ascii: "O"): letters.append(UInt8(ascii: "0"))
            case UInt8(ascii: "I"), UInt8(ascii: "L"): letters.append(UInt8(ascii: "1"))
            default:
                guard Self.alphabet.contains(byte) else { return nil }
                letters.append(byte)
            }
        }
        guard letters.count == PresenceLimits.codeLength else { return nil }
        self.letters = letters
    }

    /// Compares two codes in constant time, which does not reveal where they differ.
    public func matches(_ other: PresenceCode) -> Bool {
        zip(letters, other.letters).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    /// The number of the time window in which one code is displayed.
    public struct Window: Sendable, Hashable {
        public let number: Int64

        /// Creates the window of a moment.
        public init(at now: Timestamp) {
            number = now.seconds / PresenceLimits.codeSeconds
        }

        private init(number: Int64) {
            self.number = number
        }

        /// Returns the windows whose codes are valid at a moment, the current one first.
        public static func valid(at now: Timestamp) -> [Window] {
            let present = Window(at: now).number
            return (0..<PresenceLimits.codesValid).map { Window(number: present - $0) }
        }

        /// The moment at which the next code is displayed.
        public var rotatesAt: Timestamp { Self.beginning(number + 1) }
        /// The moment at which this code expires.
        public var expiresAt: Timestamp { Self.beginning(number + PresenceLimits.codesValid) }

        private static func beginning(_ number: Int64) -> Timestamp {
            Timestamp(microseconds: 0).adding(seconds: number * PresenceLimits.codeSeconds)
        }
    }
}
