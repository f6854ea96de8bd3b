import Foundation

#if canImport(CryptoKit)
    import CryptoKit
#endif

/// Storage names of the data of one identity.
enum StorageName {
    /// Returns a storage name for a text of any length.
    ///
    /// A path has at most 1,024 bytes on Apple's platforms, and the claims of a token may be longer. There the name is
    /// the text's SHA-256; elsewhere it is the text itself, which ``FileStorage`` escapes.
    static func short(_ text: String) -> String {
        #if canImport(CryptoKit)
            SHA256.hash(data: Data(text.utf8)).map { String(format: "%02x", $0) }.joined()
        #else
            text
        #endif
    }
}
