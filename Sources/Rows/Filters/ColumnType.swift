/// The type of a declared column. Filters compare its values as `SELECT … WHERE` would.
///
/// | type | compared |
/// |---|---|
/// | `text` | byte by byte, as in collation `C` |
/// | `uuid` | ignoring the case of letters |
/// | `boolean` | false is less than true; a filter may use PostgreSQL's spellings |
/// | `smallint`, `integer`, `bigint`, `numeric` | as decimals of any length |
/// | `real`, `double precision` | as numbers of that precision |
/// | `date`, `time`, `timestamp`, `timestamptz` | as points in time, regardless of spelling, offset and fraction |
/// | `json` | not comparable: only `is.null` applies. Arrays and unlisted types are also declared as `json` |
public enum ColumnType: String, Sendable, Hashable, CaseIterable {
    case text, uuid, boolean, smallint, integer, bigint, numeric, real
    case double = "double precision"
    case date, time, timestamp, timestamptz, json

    private static let synonyms: [String: ColumnType] = [
        "varchar": .text, "character varying": .text, "name": .text, "bool": .boolean,
        "int2": .smallint, "int": .integer, "int4": .integer, "int8": .bigint, "decimal": .numeric, "float4": .real,
        "float8": .double, "double": .double, "time without time zone": .time,
        "timestamp without time zone": .timestamp, "timestamp with time zone": .timestamptz, "jsonb": .json,
    ]

    /// Creates the type of a PostgreSQL name or alias. `text[]` and every other array is `json`.
    public init?(named name: String) {
        guard let type = ColumnType(rawValue: name) ?? Self.synonyms[name] ?? (name.hasSuffix("[]") ? .json : nil)
        else { return nil }
        self = type
    }

    /// Whether parsing a value costs more than comparing its bytes.
    var isNumberOrTime: Bool {
        switch self {
        case .text, .uuid, .boolean, .json: false
        case .smallint, .integer, .bigint, .numeric, .real, .double, .date, .time, .timestamp, .timestamptz: true
        }
    }

    /// The range of an integer type.
    var range: ClosedRange<Int64>? {
        switch self {
        case .smallint: Int64(Int16.min)...Int64(Int16.max)
        case .integer: Int64(Int32.min)...Int64(Int32.max)
        case .bigint: Int64.min...Int64.max
        default: nil
        }
    }
}

/// The declared columns of a table.
public typealias ColumnTypes = [String: ColumnType]
