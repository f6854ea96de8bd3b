import CPostgreSQL

/// The rows of one result, in order, with the columns of the current one.
final class PostgresRows: RowColumns {
    private let result: PostgresResult
    private let types: [UInt32]
    private var row: Int32 = -1
    /// The decoded bytes of the bytea that was read last.
    private var decoded = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    /// The OIDs of types in `pg_type`, which never change.
    private enum OID {
        static let bool: UInt32 = 16
        static let bytea: UInt32 = 17
        static let integers: Set<UInt32> = [20, 21, 23]
        static let reals: Set<UInt32> = [700, 701]
        static let numeric: UInt32 = 1700
    }

    init(_ result: PostgresResult) {
        self.result = result
        types = (0..<PQnfields(result.handle)).map { PQftype(result.handle, $0) }
    }

    deinit { decoded.deallocate() }

    var columnCount: Int { types.count }

    /// Advances to the next row; returns false at the end.
    func advance() -> Bool {
        row += 1
        return Int(row) < result.rowCount
    }

    func name(at index: Int) -> String {
        PQfname(result.handle, Int32(index)).map { String(cString: $0) } ?? ""
    }

    func type(at index: Int) -> SQLValueType {
        if PQgetisnull(result.handle, row, Int32(index)) == 1 { return .null }
        let type = types[index]
        if type == OID.bool || OID.integers.contains(type) { return .integer }
        if type == OID.bytea { return .blob }
        if OID.reals.contains(type) { return .real }
        // A sum of bigints is numeric. It is an integer if it has no point.
        if type == OID.numeric { return value(at: index).contains(UInt8(ascii: ".")) ? .real : .integer }
        return .text
    }

    func integer(at index: Int) -> Int64 {
        let text = value(at: index)
        if types[index] == OID.bool { return text.first == UInt8(ascii: "t") ? 1 : 0 }
        var number: Int64 = 0
        var isNegative = false
        for byte in text {
            if byte == UInt8(ascii: "-") {
                isNegative = true
            } else {
                // Accumulated downwards, because the smallest number has no positive counterpart.
                number = number &* 10 &- Int64(byte &- 48)
            }
        }
        return isNegative ? number : -number
    }

    func real(at index: Int) -> Double {
        Double(String(decoding: value(at: index), as: UTF8.self)) ?? .nan
    }

    /// Returns the bytes of a text or blob. They are valid until the next row or, for a blob, the next call.
    func bytes(at index: Int, isText _: Bool) -> UnsafeRawBufferPointer {
        let text = UnsafeRawBufferPointer(value(at: index))
        guard types[index] == OID.bytea else { return text }
        // `\x` and two digits for each byte.
        func digit(_ byte: UInt8) -> UInt8 { byte <= 57 ? byte &- 48 : byte &- 87 }
        decoded.deallocate()
        decoded = .allocate(byteCount: max(0, text.count - 2) / 2, alignment: 1)
        for place in decoded.indices {
            decoded[place] = digit(text[2 + 2 * place]) << 4 | digit(text[3 + 2 * place])
        }
        return UnsafeRawBufferPointer(decoded)
    }

    private func value(at index: Int) -> UnsafeBufferPointer<UInt8> {
        let start = PQgetvalue(result.handle, row, Int32(index))
        let count = Int(PQgetlength(result.handle, row, Int32(index)))
        return UnsafeRawBufferPointer(start: start, count: count).assumingMemoryBound(to: UInt8.self)
    }
}

extension PostgresResult {
    /// Passes the rows to a body until it returns false.
    func forEach(text: String, hiddenColumns: Int = 0, _ body: (Row) throws -> Bool) throws {
        let rows = PostgresRows(self)
        let source = RowSource(text: text, rows, count: rows.columnCount)
        while rows.advance() {
            source.nextRow()
            if try !body(Row(source, hiddenColumns: hiddenColumns)) { break }
        }
        source.nextRow()
    }
}
