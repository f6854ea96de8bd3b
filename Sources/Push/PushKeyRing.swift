import Cryptography

/// The keys with which device tokens are encrypted in the database. The first encrypts, all decrypt, so keys can be
/// replaced one after the other.
public struct PushKeyRing: Sendable {
    /// The bytes of a key.
    public static let keyBytes = 32
    /// The keys of a ring: a new one, the present one and an old one, with room.
    public static let keysMax = 8
    private static let nameBytes = 4

    private struct Key: Sendable {
        /// The beginning of the key's digest. It names the key in sealed bytes.
        let name: [UInt8]
        let cipher: AESGCM
    }

    private let keys: [Key]

    /// - Returns: Nil if there is no key, too many, two of the same name, or one of another size than ``keyBytes``.
    public init?(_ keys: [[UInt8]]) {
        guard (1...Self.keysMax).contains(keys.count) else { return nil }
        var ring: [Key] = []
        for key in keys {
            guard key.count == Self.keyBytes, let cipher = AESGCM(key) else { return nil }
            ring.append(Key(name: Array(SHA256.hash(key).prefix(Self.nameBytes)), cipher: cipher))
        }
        guard Set(ring.map(\.name)).count == ring.count else { return nil }
        self.keys = ring
    }

    /// Returns a secret, encrypted by the first key.
    ///
    /// - Parameter context: Where the secret belongs. Sealed bytes that are copied elsewhere cannot be opened there.
    public func seal(_ secret: [UInt8], context: [UInt8]) -> [UInt8] {
        let nonce = AESGCM.randomBytes(AESGCM.nonceBytes)
        return keys[0].name + nonce + keys[0].cipher.seal(secret, nonce: nonce, context: context)
    }

    /// Returns a secret; nil if no key of the ring opens it.
    public func open(_ sealed: [UInt8], context: [UInt8]) -> [UInt8]? {
        guard sealed.count >= Self.nameBytes + AESGCM.nonceBytes else { return nil }
        let nonce = Array(sealed[Self.nameBytes..<Self.nameBytes + AESGCM.nonceBytes])
        let content = Array(sealed[(Self.nameBytes + AESGCM.nonceBytes)...])
        return keys.first { sealed.starts(with: $0.name) }?.cipher.open(content, nonce: nonce, context: context)
    }

    /// The names of the keys: sealed bytes begin with the four bytes of a name.
    public var names: [[UInt8]] { keys.map(\.name) }

    /// Whether sealed bytes were encrypted by another key than the first.
    public func isOld(_ sealed: [UInt8]) -> Bool { !sealed.starts(with: keys[0].name) }
}
