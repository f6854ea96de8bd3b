/// The 64-bit FNV-1a hash (Fowler, Noll, Vo). Unlike Swift's seeded hasher, it is the same in every process and
/// version.
public enum FNV1a {
    /// The hash of the empty input.
    public static let offset: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Returns the hash of the bytes.
    ///
    /// - Parameter start: The hash of the preceding bytes.
    @inlinable
    public static func hash(_ bytes: some Sequence<UInt8>, after start: UInt64 = offset) -> UInt64 {
        var hash = start
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        return hash
    }
}
