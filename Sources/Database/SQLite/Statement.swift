import CSQLite
import Foundation

/// A prepared statement, the single owner of its `sqlite3_stmt`.
///
/// It is used by one connection, on one thread at a time; never shared.
final class Statement {
    /// The argument buffer is shrunk after a call with larger texts and blobs. Otherwise every statement that once
    /// bound a large value would keep that memory for good.
    private static let storedArgumentBytesMax = 16 * 1024

    /// The source of the rows that the statement returns.
    let source: RowSource
    private let handle: OpaquePointer
    private let database: OpaquePointer
    private let parameterCount: Int
    var isInUse = false
    var lastUse: UInt64 = 0

    /// The bytes of bound texts and blobs while the statement runs. SQLite uses this copy and makes no other
    /// (`SQLITE_STATIC`). The bytes are valid from `bind` to `reset`, the only time in which SQLite reads them.
    private var arguments: UnsafeMutableRawBufferPointer

    init(_ text: String, in database: OpaquePointer, isPersistent: Bool) throws(DatabaseError) {
        var handle: OpaquePointer?
        var text = text
        var tailLength = 0
        let flags = isPersistent ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
        let result = text.withUTF8 { bytes -> Int32 in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                var tail: UnsafePointer<CChar>?
                let result = sqlite3_prepare_v3(
                    database, characters.baseAddress, Int32(characters.count), flags, &handle, &tail)
                if let tail, let base = characters.baseAddress {
                    tailLength = bytes[(tail - base)...].count { $0 > UInt8(ascii: " ") && $0 != UInt8(ascii: ";") }
                }
                return result
            }
        }
        guard result == SQLITE_OK else { throw DatabaseError.last(of: database, sql: text) }
        guard let handle, tailLength == 0 else {
            sqlite3_finalize(handle)
            throw DatabaseError(.statement, "expected exactly one statement", sql: text)
        }
        self.handle = handle
        self.database = database
        parameterCount = Int(sqlite3_bind_parameter_count(handle))
        arguments = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 16)
        source = RowSource(
            text: text, StatementColumns(handle), count: Int(sqlite3_column_count(handle)))
    }

    deinit {
        sqlite3_finalize(handle)
        arguments.deallocate()
    }

    // MARK: Running

    func bind(_ values: [SQLValue]) throws(DatabaseError) {
        precondition(
            values.count == parameterCount, "\(values.count) values for \(parameterCount) parameters: \(source.text)")
        reserveArguments(for: values)
        var used = 0
        for (index, value) in values.enumerated() {
            let parameter = Int32(truncatingIfNeeded: index + 1)
            let result: Int32
            switch value {
            case .null: result = sqlite3_bind_null(handle, parameter)
            case .integer(let number): result = sqlite3_bind_int64(handle, parameter, number)
            case .real(let number): result = sqlite3_bind_double(handle, parameter, number)
            case .text(var text):
                result = text.withUTF8 { bindText(UnsafeRawBufferPointer($0), to: parameter, at: &used) }
            case .utf8(let utf8): result = utf8.withUnsafeBytes { bindText($0, to: parameter, at: &used) }
            case .blob(let blob):
                let bytes = blob.withUnsafeBytes { store($0, at: &used) }
                result = sqlite3_bind_blob64(handle, parameter, bytes.baseAddress, UInt64(bytes.count), nil)
            }
            guard result == SQLITE_OK else { throw DatabaseError.last(of: database, sql: source.text) }
        }
    }

    private func bindText(_ utf8: UnsafeRawBufferPointer, to parameter: Int32, at used: inout Int) -> Int32 {
        let bytes = store(utf8, at: &used)
        return sqlite3_bind_text64(
            handle, parameter, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), UInt64(bytes.count), nil,
            UInt8(SQLITE_UTF8))
    }

    /// Advances to the next row; returns false at the end.
    func step() throws(DatabaseError) -> Bool {
        source.nextRow()
        let result = sqlite3_step(handle)
        switch result {
        case SQLITE_ROW:
            // A schema change reprepares the statement inside `step`, and `SELECT *` may have more columns.
            source.columnCount = Int(sqlite3_data_count(handle))
            return true
        case SQLITE_DONE: return false
        default: throw DatabaseError.last(of: database, sql: source.text)
        }
    }

    func reset() {
        source.nextRow()
        // The result repeats the error of the last step, which has already been thrown.
        _ = sqlite3_reset(handle)
        if arguments.count > Self.storedArgumentBytesMax {
            // Nulls first: SQLite must not keep pointers into memory that is about to be freed.
            sqlite3_clear_bindings(handle)
            arguments.deallocate()
            arguments = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 16)
        }
    }

    private func reserveArguments(for values: [SQLValue]) {
        var needed = 1
        for value in values {
            switch value {
            case .text(let text): needed += text.utf8.count
            case .utf8(let bytes), .blob(let bytes): needed += bytes.count
            case .null, .integer, .real: break
            }
        }
        if needed > arguments.count {
            sqlite3_clear_bindings(handle)
            arguments.deallocate()
            arguments = UnsafeMutableRawBufferPointer.allocate(byteCount: max(needed, 512), alignment: 16)
        }
    }

    /// Copies bytes into `arguments`. Never returns a null pointer, which SQLite would interpret as NULL.
    private func store(_ bytes: UnsafeRawBufferPointer, at used: inout Int) -> UnsafeRawBufferPointer {
        let place = UnsafeMutableRawBufferPointer(rebasing: arguments[used..<used + bytes.count])
        place.copyMemory(from: bytes)
        used += bytes.count
        return UnsafeRawBufferPointer(start: arguments.baseAddress! + (used - bytes.count), count: bytes.count)
    }
}

/// The columns of the row on which a statement is positioned.
final class StatementColumns: RowColumns {
    /// Owned by the statement. Every row ends with `reset`, before the statement is released, and a later use of the row
    /// is detected by its generation.
    private let handle: OpaquePointer

    init(_ handle: OpaquePointer) {
        self.handle = handle
    }

    func name(at index: Int) -> String {
        String(cString: sqlite3_column_name(handle, Int32(truncatingIfNeeded: index)))
    }

    func type(at index: Int) -> SQLValueType {
        switch sqlite3_column_type(handle, Int32(truncatingIfNeeded: index)) {
        case SQLITE_NULL: .null
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .real
        case SQLITE_TEXT: .text
        default: .blob
        }
    }

    func integer(at index: Int) -> Int64 {
        sqlite3_column_int64(handle, Int32(truncatingIfNeeded: index))
    }

    func real(at index: Int) -> Double {
        sqlite3_column_double(handle, Int32(truncatingIfNeeded: index))
    }

    func bytes(at index: Int, isText: Bool) -> UnsafeRawBufferPointer {
        let column = Int32(truncatingIfNeeded: index)
        // The pointer first, then the length: this order avoids a second conversion.
        let start: UnsafeRawPointer? =
            isText
            ? UnsafeRawPointer(sqlite3_column_text(handle, column)) : sqlite3_column_blob(handle, column)
        let count = Int(sqlite3_column_bytes(handle, column))
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
    }
}

extension DatabaseError {
    /// Returns the error of the last call on a connection.
    static func last(of database: OpaquePointer, sql: String? = nil) -> DatabaseError {
        let result = sqlite3_extended_errcode(database)
        let message = String(cString: sqlite3_errmsg(database))
        var code = Code(sqliteExtended: result)
        // SQLite has a code for a full disk only; a quota and a file size limit are treated the same here.
        if code == .ioError, [ENOSPC, EDQUOT, EFBIG].contains(sqlite3_system_errno(database)) { code = .full }
        return DatabaseError(code, "\(message) [SQLite \(result)]", sql: sql)
    }
}
