/// Texts as databases and tokens tell them apart: by their bytes. For Swift's `==`, `<` and dictionaries canonically
/// equivalent texts are one: `é` composed and decomposed, the Kelvin sign and `K`.
extension String {
    /// The bytes in place: no copy for native strings, which all strings of this process are.
    @inlinable
    public func withUTF8Bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
        var copy = self
        return copy.withUTF8(body)
    }

    @inlinable
    public func hasBytes(of other: String) -> Bool {
        withUTF8Bytes { own in other.withUTF8Bytes { own.isSame(as: $0) } }
    }
}

extension String? {
    public func hasBytes(of other: String?) -> Bool {
        guard let self, let other else { return self == nil && other == nil }
        return self.hasBytes(of: other)
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Byte by byte equal, eight at a time: ids are compared at every lookup.
    @inlinable
    public func isSame(as other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count else { return false }
        let left = UnsafeRawBufferPointer(self)
        let right = UnsafeRawBufferPointer(other)
        var index = 0
        while index + 8 <= count {
            guard
                left.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                    == right.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            else { return false }
            index += 8
        }
        while index < count {
            guard left[index] == right[index] else { return false }
            index += 1
        }
        return true
    }

    /// In the order of bytes, as `memcmp` and both databases have it.
    @inlinable
    public func precedes(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
        let left = UnsafeRawBufferPointer(self)
        let right = UnsafeRawBufferPointer(other)
        let common = Swift.min(count, other.count)
        var index = 0
        while index + 8 <= common {
            let own = UInt64(bigEndian: left.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let theirs = UInt64(bigEndian: right.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            if own != theirs { return own < theirs }
            index += 8
        }
        while index < common {
            if left[index] != right[index] { return left[index] < right[index] }
            index += 1
        }
        return count < other.count
    }
}
