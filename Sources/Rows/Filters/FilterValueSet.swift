import Values

/// The values of an `in`, found by hash. Testing a row takes the same time with one value as with a thousand.
///
/// It is one byte array: a hash table followed by the texts. A value takes 8 bytes besides its text, and a lookup reads
/// two places of memory. A number in a non-canonical spelling (`05`) is stored a second time in its canonical spelling
/// (`5`), for rows whose column is a number. A text never matches that second spelling.
public struct FilterValueSet: Sendable, Hashable {
    /// The table, with two bytes per place: half of a record's offset plus one, or 0 for an empty place. Then the
    /// records: two bytes of length and the text, each at an even offset from the first. All numbers are in the
    /// machine's byte order.
    private let storage: [UInt8]
    /// The end of the records of values as given, counted from the first record. Canonical spellings of numbers follow.
    private let textsEnd: UInt32
    private let placeCount: UInt16
    private let valueCount: UInt16
    private let hasTrue: Bool
    private let hasFalse: Bool
    private let hasNumber: Bool
    /// The declared type of the column, if any. Then the values are in canonical spelling, and unique.
    let type: ColumnType?

    public var count: Int { Int(valueCount) }
    var storedBytes: Int { storage.count }

    /// Creates a set. Of values with the same bytes, it stores the first.
    ///
    /// Nil if there are more than ``FilterLimits/valuesMax``, or if their records do not fit two-byte offsets. A value
    /// can be stored twice, and its canonical spelling can be longer than the given one (`1e18`).
    init?(_ given: some Collection<FilterValue>, as type: ColumnType?) {
        guard given.count <= FilterLimits.valuesMax else { return nil }
        let values = given.map(\.bytes)
        let numbers = type == nil ? given.compactMap { $0.number.map { Array($0.canonical.utf8) } } : []
        let placeCount = FilterValueSet.placeCount(for: values.count + numbers.count)
        let bytesMax = (values.lazy.map(\.count) + numbers.lazy.map(\.count)).reduce(placeCount * 2) {
            Record.end(of: $1, at: $0)
        }
        var storage = [UInt8](repeating: 0, count: placeCount * 2)
        storage.reserveCapacity(bytesMax)
        var count = 0
        for value in values {
            guard let isNew = Record.insert(value, placeCount: placeCount, into: &storage) else { return nil }
            if isNew { count += 1 }
        }
        self.textsEnd = UInt32(storage.count - placeCount * 2)
        for number in numbers {
            guard Record.insert(number, placeCount: placeCount, into: &storage) != nil else { return nil }
        }
        self.storage = storage
        self.placeCount = UInt16(placeCount)
        self.valueCount = UInt16(count)
        self.hasTrue = type == nil && given.contains { $0.boolean == true }
        self.hasFalse = type == nil && given.contains { $0.boolean == false }
        self.hasNumber = !numbers.isEmpty
        self.type = type
    }

    /// Returns a power of two, at most three quarters full.
    private static func placeCount(for count: Int) -> Int {
        var places = 4
        while places * 3 < count * 4 { places *= 2 }
        return places
    }

    /// Compares the values in order. The table is ignored, because repeated values make it larger.
    public static func == (left: FilterValueSet, right: FilterValueSet) -> Bool {
        left.type == right.type && left.textsEnd == right.textsEnd && left.records.elementsEqual(right.records)
    }

    public func hash(into hasher: inout Hasher) {
        records.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    private var records: ArraySlice<UInt8> { storage[(Int(placeCount) * 2)...] }

    /// The values as given, in order.
    var values: [[UInt8]] {
        var values: [[UInt8]] = []
        values.reserveCapacity(count)
        forEachRecord { offset, text in if offset < textsEnd { values.append(Array(text)) } }
        return values
    }

    /// Returns whether the row's value is in the set; nil if it cannot be compared with any value.
    func contains(_ value: JSONValue) -> Bool? {
        if count == 0 { return false }
        if let type { return FilterKey.with(value, as: type) { find($0) != nil } }
        switch value {
        case .null, .array, .object: return nil
        case .bool(let flag):
            guard hasTrue || hasFalse else { return nil }
            return flag ? hasTrue : hasFalse
        case .integer(let integer): return containsNumber(.integer(integer))
        case .number(let real): return FilterNumber(real).flatMap(containsNumber)
        case .string(let text): return text.withComparedBytes { find($0).map { $0 < textsEnd } ?? false }
        }
    }

    private func containsNumber(_ number: FilterNumber) -> Bool? {
        hasNumber ? number.canonical.withUTF8Bytes(find) != nil : nil
    }

    /// Calls `body` once with each key under which an index must store this set (``FilterKey``).
    func forEachKey(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        forEachRecord { _, text in body(text) }
        for (isMember, word) in [(hasTrue, "true"), (hasFalse, "false")] where isMember {
            word.withUTF8Bytes { if find($0) == nil { body($0) } }
        }
    }

    private func forEachRecord(_ body: (_ offset: Int, _ text: UnsafeBufferPointer<UInt8>) -> Void) {
        let start = Int(placeCount) * 2
        storage.withUnsafeBytes { bytes in
            var offset = 0
            while start + offset < bytes.count {
                let text = Record.text(at: start + offset, in: bytes)
                body(offset, text)
                offset = Record.end(of: text.count, at: offset)
            }
        }
    }

    /// Returns the offset of the record with this text.
    private func find(_ key: UnsafeBufferPointer<UInt8>) -> Int? {
        storage.withUnsafeBytes { Record.find(key, placeCount: Int(placeCount), in: $0).offset }
    }

    /// The layout of the storage.
    private enum Record {
        /// Returns the record with this text, or else the place of the table where it belongs.
        static func find(
            _ key: UnsafeBufferPointer<UInt8>, placeCount: Int, in bytes: UnsafeRawBufferPointer
        ) -> (offset: Int?, place: Int) {
            var place = hash(key) & (placeCount - 1)
            while true {
                let reference = bytes.load(fromByteOffset: place * 2, as: UInt16.self)
                guard reference != 0 else { return (nil, place) }
                let offset = (Int(reference) - 1) * 2
                if text(at: placeCount * 2 + offset, in: bytes).isSame(as: key) { return (offset, place) }
                place = (place + 1) & (placeCount - 1)
            }
        }

        /// Inserts a value. Returns false if it already exists, nil if its length or its offset does not fit two bytes.
        static func insert(_ value: [UInt8], placeCount: Int, into storage: inout [UInt8]) -> Bool? {
            let found = storage.withUnsafeBytes { bytes in
                value.withUnsafeBufferPointer { find($0, placeCount: placeCount, in: bytes) }
            }
            guard found.offset == nil else { return false }
            guard let reference = UInt16(exactly: (storage.count - placeCount * 2) / 2 + 1),
                let length = UInt16(exactly: value.count)
            else { return nil }
            storage.withUnsafeMutableBytes {
                $0.storeBytes(of: reference, toByteOffset: found.place * 2, as: UInt16.self)
            }
            withUnsafeBytes(of: length) { storage.append(contentsOf: $0) }
            storage += value
            if !storage.count.isMultiple(of: 2) { storage.append(0) }
            return true
        }

        static func end(of count: Int, at offset: Int) -> Int { (offset + 2 + count + 1) & ~1 }

        static func text(at offset: Int, in bytes: UnsafeRawBufferPointer) -> UnsafeBufferPointer<UInt8> {
            let count = Int(bytes.load(fromByteOffset: offset, as: UInt16.self))
            return UnsafeRawBufferPointer(rebasing: bytes[offset + 2..<offset + 2 + count]).assumingMemoryBound(
                to: UInt8.self)
        }

        /// Returns a hash that is seeded per process, so that a client cannot choose values that collide.
        static func hash(_ key: UnsafeBufferPointer<UInt8>) -> Int {
            var hasher = Hasher()
            hasher.combine(bytes: UnsafeRawBufferPointer(key))
            return hasher.finalize()
        }
    }
}

/// The key under which an index finds filters by a row's value.
///
/// Equal values have equal keys. The reverse need not hold (the text `5` and the number 5 share one), so a filter that
/// is found by a key must still be evaluated.
enum FilterKey {
    /// Calls `body` with the row's key; nil for values that no `eq` and no `in` can match.
    @discardableResult static func with<Result>(
        _ value: JSONValue, as type: ColumnType?, _ body: (UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result? {
        if let type { return typed(value, type, body) }
        switch value {
        case .null, .array, .object: return nil
        case .bool(let flag): return (flag ? "true" : "false").withUTF8Bytes(body)
        case .integer(let integer): return String(integer).withUTF8Bytes(body)
        case .number(let real): return FilterNumber(real)?.canonical.withUTF8Bytes(body)
        case .string(let text): return text.withComparedBytes(body)
        }
    }

    private static func typed<Result>(
        _ value: JSONValue, _ type: ColumnType, _ body: (UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result? {
        switch (type, value) {
        case (_, .null), (_, .array), (_, .object), (.json, _): return nil
        case (.text, .string(let text)): return text.withUTF8Bytes(body)
        case (.uuid, .string(let text)):
            return text.withUTF8Bytes { UUIDText.lowercased($0)?.withUnsafeBufferPointer(body) ?? body($0) }
        case (.boolean, .bool(let flag)): return (flag ? "true" : "false").withUTF8Bytes(body)
        case (.real, _), (.double, _):
            return RealNumber.value(of: value, type).map { RealNumber.canonical($0, type).withUTF8Bytes(body) }
        case (.smallint, _), (.integer, _), (.bigint, _), (.numeric, _):
            return FilterNumber(of: value)?.canonical.withUTF8Bytes(body)
        case (.date, .string(let text)), (.time, .string(let text)), (.timestamp, .string(let text)),
            (.timestamptz, .string(let text)):
            return text.withUTF8Bytes { FilterMoment($0, as: type)?.canonical(type) }?.withUTF8Bytes(body)
        default: return nil
        }
    }
}
