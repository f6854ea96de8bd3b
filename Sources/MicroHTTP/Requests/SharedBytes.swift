/// Bytes that are encoded once and shared by all streams that receive them.
///
/// It is a class with manual memory instead of an array. The sending loop uses plain pointers to the bytes of a whole
/// batch, and counts one reference per batch instead of one per stream.
///
/// `@unchecked Sendable`: the memory is written only in `init`, before the object is shared, and freed in `deinit`,
/// when it is no longer referenced.
public final class SharedBytes: @unchecked Sendable {
    @usableFromInline let base: UnsafeMutableRawPointer
    public let count: Int

    public init(_ bytes: [UInt8]) {
        count = bytes.count
        base = .allocate(byteCount: max(1, bytes.count), alignment: 1)
        bytes.withUnsafeBytes { source in
            if let start = source.baseAddress { base.copyMemory(from: start, byteCount: source.count) }
        }
    }

    deinit { base.deallocate() }

    @inlinable
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(start: base, count: count))
    }
}
