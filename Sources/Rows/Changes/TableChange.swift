import Values

/// A write to one row of a table, in the common form into which all formats are read.
///
/// **Values** are JSON in the form of PostgreSQL's `to_jsonb`, which the Supabase formats already use: booleans,
/// numbers, text, null, arrays, objects; timestamps, uuids and binaries as text. The differences are:
/// - A number that neither a 64-bit integer nor a double represents exactly is a **string** of its digits, so that
///   nothing is rounded. `9223372036854775807` and `19.90` are numbers; `12345678901234567890` and
///   `0.123456789012345678` are strings.
/// - Debezium events with a schema have dates, times, decimals and JSON columns converted to the same forms. Without a
///   schema, the connector's own numbers stay, because nothing identifies 17_702 as a date.
/// - Binaries stay as sent: `\x6869` in Supabase's formats, base64 in Debezium's.
/// - Values that the sender did not send are absent from the row, never null
///   (``unchangedColumns``, ``withheldColumns``).
public struct TableChange: Sendable, Hashable {
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        case insert = "INSERT"
        case update = "UPDATE"
        case delete = "DELETE"
        /// All rows were removed at once, so there is no row to show. Debezium and the log report it.
        case truncate = "TRUNCATE"
        /// The row exists, but did not change. It comes from reading a whole table, such as Debezium's `r`. It updates
        /// memberships and reaches no stream.
        case snapshot = "SNAPSHOT"
    }

    /// The format in which the change arrived; for a CloudEvent ``ChangeFormat/cloudEvents``, whatever its data was.
    /// Nil for a change from the database's own log.
    public internal(set) var format: ChangeFormat?
    public let schema: String
    public let table: String
    public let kind: Kind
    /// The row after the change; nil for a delete and a truncate.
    public var record: [String: JSONValue]?
    /// The row before the change, to the extent that the sender has it: the whole row, only the key columns (replica
    /// identity), or nil. If only the key of a deleted row is known, Debezium writes null for the other columns.
    public var oldRecord: [String: JSONValue]?
    /// Columns of an update that are absent from ``record`` because they did not change and their value is stored out
    /// of line (TOAST). If ``oldRecord`` has the value, it has been copied, and the column is not listed here.
    public var unchangedColumns: Set<String> = []
    /// Columns that are absent from ``record`` because the sender truncated the row (Realtime's 413); they may have
    /// changed.
    public var withheldColumns: Set<String> = []
    public var commitTimestamp: Timestamp?
    /// The id that identifies a second delivery of the same change; nil in formats without one. Equal content alone is
    /// never a duplicate, because a row may go A→B→A→B.
    ///
    /// | form | id |
    /// |---|---|
    /// | CloudEvents | `cloudevents:{source} {id}` (a source has no spaces) |
    /// | broadcast_changes | `broadcast:{id}`, from the payload or else from the frame's `meta` |
    /// | Debezium, also in CloudEvents | `debezium:{digest}`, see ``DebeziumEvent/deduplicationID`` |
    /// | any other, delivered with a `webhook-id` | `webhook:{webhook-id}/{index}` |
    public var deduplicationID: String?
    /// Whether a truncation precedes a new snapshot of the table. The stored data of the table is discarded, but no row
    /// counts as deleted.
    public var isResnapshot = false
    /// The author of the change (CloudEvents' `authid`), if the form names one.
    public var actorID: String?
    /// The client through which it was made (`X-Client-Id`, or the CloudEvents extension `originid`).
    public var originID: String?
    /// The JSON pointers of the rows and the table's name in the item. Mistakes that are found later are reported with
    /// their place in the original item.
    var recordPointer = "/record"
    var oldRecordPointer = "/old_record"
    var tablePointer = "/table"

    /// Returns the key of the row: of the new row, or of the old row for a delete.
    ///
    /// Throws a fault if the row or a column is missing, null, or not a scalar, or if the key is longer than
    /// ``ChangeLimits/primaryKeyBytesMax``. Its pointer is `/record/{column}` or `/oldRecord/{column}`; ``place(of:)``
    /// maps it to a place in the item.
    public func primaryKey(_ columns: [String]) throws(ChangeFault) -> PrimaryKey {
        if let record { return try PrimaryKey(columns, of: record, at: "/record") }
        guard let oldRecord else { throw ChangeFault("", "has no row: \(kind.rawValue) does not include one") }
        return try PrimaryKey(columns, of: oldRecord, at: "/oldRecord")
    }

    /// Maps a pointer to `/record/…`, `/oldRecord/…` or `/table` to a place in the item.
    public func place(of pointer: String) -> String {
        for (name, place) in [("/record", recordPointer), ("/oldRecord", oldRecordPointer), ("/table", tablePointer)]
        where pointer == name || pointer.hasPrefix(name + "/") {
            return place + pointer.dropFirst(name.utf8.count)
        }
        return pointer
    }

    /// Changes the pointers to the rows, because the item was sent in another form than it was read.
    mutating func movePointers(_ moved: (String) -> String) {
        for place in [\TableChange.recordPointer, \.oldRecordPointer, \.tablePointer] {
            self[keyPath: place] = moved(self[keyPath: place])
        }
    }
}

/// The primary key of a row, which identifies it within its table.
public struct PrimaryKey: Sendable, Hashable {
    public let columns: [String]
    public let values: [JSONValue]
    /// The key as one string: the value itself for one column, otherwise a JSON array of the values.
    public let text: String

    init(_ columns: [String], of row: [String: JSONValue], at pointer: String) throws(ChangeFault) {
        guard !columns.isEmpty else { throw ChangeFault("", "belongs to a table without declared primary key columns") }
        var values: [JSONValue] = []
        for column in columns {
            let place = "\(pointer)/\(ChangeMembers.step(column))"
            switch row[column] {
            case nil: throw ChangeFault(place, "is missing, but belongs to the primary key")
            case .null: throw ChangeFault(place, "is null, but belongs to the primary key")
            case .array, .object:
                throw ChangeFault(place, "must be a single value, because it belongs to the primary key")
            case .some(let value): values.append(value)
            }
        }
        self.columns = columns
        self.values = values
        if values.count == 1, case .string(let text) = values[0] {
            self.text = text
        } else {
            self.text = String(
                decoding: JSONWriter.bytes(values.count == 1 ? values[0] : .array(values)), as: UTF8.self)
        }
        guard text.utf8.count <= ChangeLimits.primaryKeyBytesMax else {
            throw ChangeFault(
                pointer,
                "has a primary key of \(text.utf8.count) bytes; at most \(ChangeLimits.primaryKeyBytesMax) are accepted"
            )
        }
    }
}
