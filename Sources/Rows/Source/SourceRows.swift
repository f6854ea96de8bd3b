import Values

/// Turns the rows of one table in the log into changes.
public struct SourceRows: Sendable {
    public let relation: SourceRelation
    private let types: [SourceType]

    /// - Parameter types: of the columns whose type is none of ``SourceType/known``; one that is missing is a text.
    public init(_ relation: SourceRelation, types: [UInt32: SourceType]) {
        self.relation = relation
        self.types = relation.columns.map { SourceType.known[$0.type] ?? types[$0.type] ?? .text }
    }

    /// A row's change; its columns are those of the log.
    ///
    /// - Parameters:
    ///   - old: nil where the log has none.
    ///   - ask: the value of a text form that only the server can tell, by the number of its type.
    /// - Throws: a `ChangeFault` for a row that cannot be taken, and whatever `ask` throws.
    public func change(
        _ kind: TableChange.Kind, old: SourceTuple?, new: SourceTuple?, committedAt: Timestamp?,
        ask: (ArraySlice<UInt8>, UInt32) throws -> JSONValue
    ) throws -> TableChange {
        var change = TableChange(
            format: nil, schema: relation.schema, table: relation.name, kind: kind, commitTimestamp: committedAt,
            oldRecordPointer: "/oldRecord")
        change.oldRecord = try old.map { try row($0, at: "/oldRecord", isOld: true, ask) }
        guard let new else { return change }
        change.record = try row(new, at: "/record", isOld: false, ask)
        // A value that is stored apart and did not change: the old row has it where the table sends whole rows.
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

    private func row(
        _ tuple: SourceTuple, at pointer: String, isOld: Bool, _ ask: (ArraySlice<UInt8>, UInt32) throws -> JSONValue
    ) throws -> [String: JSONValue] {
        guard tuple.values.count == relation.columns.count else {
            throw ChangeFault(
                pointer, "has \(tuple.values.count) values, and the table \(relation.columns.count) columns")
        }
        let bytes = tuple.values.reduce(0) { if case .text(let text) = $1 { $0 + text.count } else { $0 } }
        guard bytes <= ChangeLimits.itemBytesMax else {
            throw ChangeFault(pointer, "has \(bytes) bytes; at most \(ChangeLimits.itemBytesMax) are taken")
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
                if row[column.name] == nil { row[column.name] = try ask(text, column.type) }
            }
        }
        return row
    }
}

extension TableChange {
    /// A row of a table that is read as it stands.
    public static func snapshot(of schema: String, _ table: String, _ record: [String: JSONValue]) -> TableChange {
        TableChange(format: nil, schema: schema, table: table, kind: .snapshot, record: record)
    }

    /// All rows of a table are gone.
    public static func truncation(
        of schema: String, _ table: String, committedAt: Timestamp? = nil
    ) -> TableChange {
        TableChange(format: nil, schema: schema, table: table, kind: .truncate, commitTimestamp: committedAt)
    }
}
