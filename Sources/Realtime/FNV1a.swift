/// The 64-bit FNV-1a hash (Fowler, Noll, Vo): the same in every process and version, which Swift's seeded hasher is not.
public enum FNV1a {
    /// The hash of nothing.
    public static let offset: UInt64 = 0xcbf2_9ce4_8422_2325

    /// - Parameter start: the hash of what comes before these bytes.
    @inlinable
    public static func hash(_ bytes: some Sequence<UInt8>, after start: UInt64 = offset) -> UInt64 {
        var hash = start
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        return hash
    }
}
