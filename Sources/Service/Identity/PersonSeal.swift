import Cryptography
import Values

/// The marks of erased persons: keyed hashes of their ids.
///
/// The service must recognize an erased person's old tokens without storing the id. Without the key, which is stored in
/// the database, a mark cannot be compared with guessed ids.
struct PersonSeal: Sendable {
    private let key: AuthenticationKey
    private let cipher: AESGCM

    init(secret: [UInt8]) {
        key = AuthenticationKey(secret)
        // A key of its own, because marks and encrypted ids must not depend on each other.
        guard let cipher = AESGCM(key.code(for: "encrypted ids".utf8)) else {
            preconditionFailure("a code of SHA-256 is a key of 256 bits")
        }
        self.cipher = cipher
    }

    /// Returns the id of a person, encrypted. An erasure stores it while it runs: copies of its row that SQLite leaves
    /// in the file then contain no byte of the id.
    func encrypt(_ person: Owner) -> String {
        let nonce = AESGCM.randomBytes(AESGCM.nonceBytes)
        return RFC4648.encodeURL(
            nonce + cipher.seal(Array(person.userId.text.utf8), nonce: nonce, context: Array(person.tenant.text.utf8)))
    }

    /// Returns the id of an encrypted person; nil if it was encrypted for another tenant or with another key.
    func decrypt(_ text: String, of tenant: ID<Tenant>) -> ID<User>? {
        guard let bytes = RFC4648.decodeURL(text.utf8), bytes.count > AESGCM.nonceBytes else { return nil }
        let nonce = Array(bytes[..<AESGCM.nonceBytes])
        return cipher.open(
            Array(bytes[AESGCM.nonceBytes...]), nonce: nonce, context: Array(tenant.text.utf8)
        ).map { ID(String(decoding: $0, as: UTF8.self)) }
    }

    func mark(of person: Owner) -> String {
        // The separator is unambiguous, because ids contain no NUL.
        RFC4648.encodeURL(key.code(for: Array(person.tenant.text.utf8) + [0] + Array(person.userId.text.utf8)))
    }
}
