/// Bytes encoded once and shared by every stream that gets them.
///
/// A class with memory of its own, not an array: the sending loop uses plain pointers to the bytes of a whole batch, and
/// counts one reference per batch instead of one per stream.
///
/// `@unchecked Sendable`: the memory is written in `init` only, before anybody else has the object, and freed in
/// `deinit`, when nobody has it any more.
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
