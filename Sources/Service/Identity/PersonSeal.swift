import Cryptography
import Values

/// The marks of erased persons: keyed hashes of their ids.
///
/// The service must recognize an erased person's old tokens without storing the id. Without the key, which is stored in
/// the database, a mark cannot be compared with guessed ids.
struct PersonSeal: Sendable {
    private let key: AuthenticationKey

    init(secret: [UInt8]) { key = AuthenticationKey(secret) }

    func mark(of person: Owner) -> String {
        // The separator is unambiguous, because ids contain no NUL.
        RFC4648.encodeURL(key.code(for: Array(person.tenant.text.utf8) + [0] + Array(person.userId.text.utf8)))
    }
}
