import CCrypto

/// A hash function of the SHA-2 family (FIPS 180-4).
public enum Digest: Sendable {
    case sha256
    case sha384
    case sha512

    /// The implementation of libcrypto. A fetch takes locks and looks up a name, so each implementation is fetched
    /// once.
    var implementation: OpaquePointer {
        switch self {
        case .sha256: Self.implementations.sha256
        case .sha384: Self.implementations.sha384
        case .sha512: Self.implementations.sha512
        }
    }

    /// `nonisolated(unsafe)`: an `EVP_MD` never changes after it was fetched, and these are never freed.
    private nonisolated(unsafe) static let implementations = (
        sha256: require(EVP_MD_fetch(nil, "SHA256", nil), "libcrypto has no SHA-256"),
        sha384: require(EVP_MD_fetch(nil, "SHA384", nil), "libcrypto has no SHA-384"),
        sha512: require(EVP_MD_fetch(nil, "SHA512", nil), "libcrypto has no SHA-512")
    )
}

/// A running SHA-256 over bytes that arrive in parts.
public struct SHA256: ~Copyable {
    public static let byteCount = 32

    /// Owned by this value and freed with it.
    private let context: OpaquePointer

    public init() {
        context = require(EVP_MD_CTX_new(), "out of memory")
        require(EVP_DigestInit_ex2(context, Digest.sha256.implementation, nil) == 1, "SHA-256 cannot start")
    }

    deinit { EVP_MD_CTX_free(context) }

    public mutating func update(_ bytes: some Sequence<UInt8>) {
        withContiguousBytes(bytes) { bytes in
            require(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1, "SHA-256 failed")
        }
    }

    /// Returns the digest of everything that was added. Nothing can be added afterwards.
    public consuming func finalize() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.byteCount) { result, count in
            require(EVP_DigestFinal_ex(context, result.baseAddress, nil) == 1, "SHA-256 failed")
            count = Self.byteCount
        }
    }

    /// Returns the digest of complete bytes.
    public static func hash(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finalize()
    }
}

/// Calls `body` with contiguous bytes, and copies them only if they are not stored that way.
func withContiguousBytes<Result>(
    _ bytes: some Sequence<UInt8>, _ body: (UnsafeBufferPointer<UInt8>) -> Result
) -> Result {
    bytes.withContiguousStorageIfAvailable(body) ?? Array(bytes).withUnsafeBufferPointer(body)
}

/// Stops the process if libcrypto fails at an operation that does not depend on input. Only lack of memory or a broken
/// installation causes that.
@discardableResult
func require<Value>(_ value: Value?, _ problem: StaticString) -> Value {
    guard let value else { fatalError("\(problem)") }
    return value
}

func require(_ isDone: Bool, _ problem: StaticString) {
    guard isDone else { fatalError("\(problem)") }
}
