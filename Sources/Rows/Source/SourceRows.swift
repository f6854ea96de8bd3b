import Values

/// Converts the logged rows of one table into changes.
public struct SourceRows: Sendable {
    public let relation: SourceRelation
    private let types: [SourceType]

    /// - Parameter types: the types of the columns that are not in ``SourceType/known``; a missing one is read as text.
    public init(_ relation: SourceRelation, types: [UInt32: SourceType]) {
        self.relation = relation
        self.types = relation.columns.map { SourceType.known[$0.type] ?? types[$0.type] ?? .text }
    }

    /// Returns a row's change, with the columns of the log.
    ///
    /// - Parameter old: The old row; nil if the log does not contain it.
    /// - Throws: If the row cannot be accepted.
    public func change(
        _ kind: TableChange.Kind, old: SourceTuple?, new: SourceTuple?, committedAt: Timestamp?
    ) throws(ChangeFault) -> TableChange {
        var change = TableChange(
            format: nil, schema: relation.schema, table: relation.name, kind: kind, commitTimestamp: committedAt,
            oldRecordPointer: "/oldRecord")
        if let old { change.oldRecord = try row(old, at: "/oldRecord", isOld: true) }
        guard let new else { return change }
        change.record = try row(new, at: "/record", isOld: false)
        // The old row contains an unchanged out-of-line value, if the table logs whole rows.
        for (column, value) in zip(relation.columns, new.values) where value == .unchanged {
            if let before = change.oldRecord?[column.name] {
                change.record?[column.name] = before
            } else {
                change.unchangedColumns.insert(column.name)
            }
        }
        return change
    }

    public func truncation(committedAt: Timestamp?) -> TableChange {
        .truncation(of: relation.schema, relation.name, committedAt: committedAt)
    }

    /// Returns a snapshot of a row, from a line of `COPY … TO STDOUT`.
    public func snapshot(ofLine line: ArraySlice<UInt8>) throws(ChangeFault) -> TableChange {
        TableChange(
            format: nil, schema: relation.schema, table: relation.name, kind: .snapshot,
            record: try row(try SourceTuple(copied: line), at: "/record", isOld: false))
    }

    private func row(
        _ tuple: SourceTuple, at pointer: String, isOld: Bool
    ) throws(ChangeFault) -> [String: JSONValue] {
        guard tuple.values.count == relation.columns.count else {
            throw ChangeFault(
                pointer, "has \(tuple.values.count) values, but the table has \(relation.columns.count) columns")
        }
        let bytes = tuple.values.reduce(0) { if case .text(let text) = $1 { $0 + text.count } else { $0 } }
        guard bytes <= ChangeLimits.itemBytesMax else {
            throw ChangeFault(pointer, "has \(bytes) bytes; at most \(ChangeLimits.itemBytesMax) are accepted")
        }
        var row = [String: JSONValue](minimumCapacity: tuple.values.count)
        for (index, column) in relation.columns.enumerated() where !isOld || column.isOfOldRows {
            switch tuple.values[index] {
            case .unchanged: continue
            case .null: row[column.name] = .null
            case .text(let text):
                do throws(ChangeFault) {
                    row[column.name] = try types[index].json(of: text)
                } catch {
                    throw ChangeFault("\(pointer)/\(ChangeMembers.step(column.name))", error.reason)
                }
            }
        }
        return row
    }
}

extension TableChange {
    /// Returns a truncation of a table.
    ///
    /// - Parameter isReadAgain: Whether a new snapshot of the table follows.
    public static func truncation(
        of schema: String, _ table: String, committedAt: Timestamp? = nil, isResnapshot: Bool = false
    ) -> TableChange {
        var change = TableChange(
            format: nil, schema: schema, table: table, kind: .truncate, commitTimestamp: committedAt)
        change.isResnapshot = isResnapshot
        return change
    }
}

extension SourceTuple {
    /// Reads a line of `COPY … TO STDOUT` in its text format: values between tabs, `\N` for null, escapes by a backslash.
    public init(copied line: ArraySlice<UInt8>) throws(ChangeFault) {
        let tab = UInt8(ascii: "\t")
        let end = line.last == UInt8(ascii: "\n") ? line.endIndex - 1 : line.endIndex
        var values: [Value] = []
        for field in line[..<end].split(separator: tab, omittingEmptySubsequences: false) {
            if field.elementsEqual([UInt8(ascii: "\\"), UInt8(ascii: "N")]) {
                values.append(.null)
            } else {
                values.append(.text(try Self.unescaped(field)))
            }
        }
        self.init(values)
    }

    private static func unescaped(_ field: ArraySlice<UInt8>) throws(ChangeFault) -> ArraySlice<UInt8> {
        let backslash = UInt8(ascii: "\\")
        guard field.contains(backslash) else { return field }
        var text: [UInt8] = []
        text.reserveCapacity(field.count)
        var rest = field
        while let byte = rest.popFirst() {
            guard byte == backslash else {
                text.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "v"): text.append(0x0B)
            case let letter?: text.append(letter)
            case nil: throw ChangeFault("/record", "has a line with an incomplete escape")
            }
        }
        return text[...]
    }
}
