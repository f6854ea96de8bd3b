import PostgresServer
import TestSupport
import Testing

@testable import Rows
@testable import Values

/// Filters on declared columns, compared with `SELECT … WHERE` of a real PostgreSQL, on random rows in the form of
/// `to_jsonb`. A filter is refused exactly if the statement is an error, and matches the rows that the statement
/// selects.
@Suite(.timed) struct FilterOracleTests {
    private let server: PostgresServer
    private let database: String

    init() throws {
        server = try PostgresServer.shared()
        database = try server.makeDatabase()
    }

    /// Returns the ids that PostgreSQL selects for each condition; nil for an error.
    private func selected(_ conditions: [String], rows: [String]) throws -> [Set<Int>?] {
        let columns = OracleColumn.all.map { "\($0.name) \($0.sqlType)" }.joined(separator: ", ")
        let list = conditions.map(OracleColumn.literal).joined(separator: ",")
        let answer = try server.run(
            [
                "DROP TABLE IF EXISTS sample", "CREATE TABLE sample (n integer, \(columns))",
                """
                CREATE OR REPLACE FUNCTION decide(conditions text[]) RETURNS text LANGUAGE plpgsql AS $$
                DECLARE one text; found text; answers text[] := '{}';
                BEGIN
                    FOREACH one IN ARRAY conditions LOOP
                        BEGIN
                            EXECUTE 'SELECT coalesce(string_agg(n::text, '',''), '''') FROM sample WHERE ' || one
                                INTO found;
                        EXCEPTION WHEN OTHERS THEN found := 'error';
                        END;
                        answers := answers || found;
                    END LOOP;
                    RETURN to_json(answers)::text;
                END $$
                """,
                "INSERT INTO sample VALUES \(rows.joined(separator: ","))", "SET TimeZone = 'UTC'",
                "SELECT decide(ARRAY[\(list)]::text[])",
            ], in: database)
        guard case .array(let values) = try JSONValue(parsing: Array(answer.utf8)) else { return [] }
        return values.map { value in
            guard case .string(let text) = value, text != "error" else { return nil }
            return Set(text.split(separator: ",").compactMap { Int($0) })
        }
    }

    /// Returns the rows as a trigger of the database sends them.
    private func sentRows() throws -> [Int: Filter.Row] {
        let json = try server.run(
            ["SET TimeZone = 'Asia/Kolkata'", "SELECT json_agg(to_jsonb(sample)) FROM sample"], in: database)
        guard case .array(let values) = try JSONValue(parsing: Array(json.utf8), isExact: true) else { return [:] }
        var rows: [Int: Filter.Row] = [:]
        for case .object(let row) in values { rows[Int(row.integer("n") ?? -1)] = row }
        return rows
    }

    /// Returns the filters that the index finds for each row. They must equal the filters that match the row.
    private func found(by filters: [Int: Filter], in rows: [Int: Filter.Row]) throws -> [Int: Set<Int>] {
        var index = SubscriptionIndex(scannedPerTableMax: .max, scannedPerUserMax: .max)
        for (number, filter) in filters {
            let subscription = TableSubscription(id: "s", table: "sample", filter: filter)
            try index.replace(Int32(number), tenant: "a", user: "u", with: [subscription])
        }
        var found: [Int: Set<Int>] = [:]
        for (number, row) in rows {
            let versions = RowVersions(
                tenant: "a", schema: "public", table: "sample", event: .insert, old: nil, new: row)
            index.forEachMatch(versions) { found[Int($0.slot), default: []].insert(number) }
        }
        return found
    }

    @Test func randomFilters_decideAsSelectWhereDoes() throws {
        defer { server.drop(database) }
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let rows = (0..<60).map { OracleColumn.row($0, &random) }
        let wanted = (0..<effort(quick: 800, full: 4_000, long: 20_000)).map { _ in
            (0..<Int.random(in: 1...2, using: &random)).map { _ in OracleCondition(&random) }
        }
        let expected = try selected(wanted.map { $0.map(\.sql).joined(separator: " AND ") }, rows: rows)
        let sent = try sentRows()
        try #require(sent.count == rows.count && expected.count == wanted.count)
        var filters: [Int: Filter] = [:]
        for (number, conditions) in wanted.enumerated() {
            let text = conditions.map(\.filter).joined(separator: ",")
            let filter = try? Filter(parsing: text, columns: OracleColumn.types)
            filters[number] = filter
            let matched = filter.map { filter in Set(sent.filter { filter.matches($0.value) }.keys) }
            #expect(matched == expected[number], "seed \(seed): \(text)")
            if let filter {
                let again = try? Filter(parsing: filter.canonical, columns: OracleColumn.types)
                // NaN is not equal to itself.
                #expect(again?.canonical == filter.canonical, "seed \(seed): \(text) is \(filter.canonical)")
            }
        }
        #expect(filters.count > wanted.count / 3, "seed \(seed)")
        let found = try found(by: filters, in: sent)
        for number in filters.keys {
            #expect(found[number, default: []] == expected[number], "seed \(seed): \(wanted[number].map(\.filter))")
        }
    }

    /// The complete list of differences between a filter and its statement, each with its reason.
    @Test(arguments: ExplainedDifference.all)
    func explainedDifference_isReal(_ difference: ExplainedDifference) throws {
        defer { server.drop(database) }
        let column = difference.condition.column
        let values = OracleColumn.all.map { $0.name == column.name ? difference.row : "NULL" }
        let expected = try selected([difference.condition.sql], rows: ["(0, \(values.joined(separator: ", ")))"])
        let filter = try? Filter(parsing: difference.condition.filter, columns: OracleColumn.types)
        let row = try #require(try sentRows()[0])
        #expect(expected.first??.isEmpty == difference.isSelected.map { !$0 }, "\(difference)")
        #expect(filter?.matches(row) == difference.isMatched, "\(difference)")
    }
}

/// A column of the table on which filters are tested.
struct OracleColumn: Sendable {
    let name: String
    let type: ColumnType
    let sqlType: String
    /// Values of rows; most of them also occur in filters.
    let values: [String]
    /// Spellings for filters only; some are not valid for the type.
    let spellings: [String]

    static let types = ColumnTypes(uniqueKeysWithValues: all.map { ($0.name, $0.type) })

    /// The table's columns.
    static let all = [
        OracleColumn(
            name: "name", type: .text, sqlType: #"text COLLATE "C""#,
            values: [
                "", "a", "A", "abc", "ABC", "5", "05", "true", "2026-01-10", "2026-01-10T09:30:00Z", "é", "e\u{301}",
                " a", "a,b", "q\"q", "(x)", "b\\s", "%_", "9B2F3C1E-4C1A-4D2B-8E3F-0A1B2C3D4E5F", "it's",
                "9b2f3c1e-4c1a-4d2b-8e3f-0a1b2c3d4e5f", "12345678901234567890.50", "null",
            ], spellings: ["5.0", "2026-01-10T09:30:00.000Z", "12345678901234567890.5", "zzz"]),
        OracleColumn(
            name: "ref", type: .uuid, sqlType: "uuid",
            values: ["9b2f3c1e-4c1a-4d2b-8e3f-0a1b2c3d4e5f", "00000000-0000-0000-0000-000000000000"],
            spellings: [
                "9B2F3C1E-4C1A-4D2B-8E3F-0A1B2C3D4E5F", "{9b2f3c1e4c1a4d2b8e3f0a1b2c3d4e5f}",
                "9b2f-3c1e4c1a-4d2b8e3f0a1b-2c3d4e5f", " 9b2f3c1e-4c1a-4d2b-8e3f-0a1b2c3d4e5f",
                "9b2f3c1e-4c1a-4d2b-8e3f-0a1b2c3d4e5", "9b2--f3c1e4c1a4d2b8e3f0a1b2c3d4e5f", "x", "",
            ]),
        OracleColumn(
            name: "flag", type: .boolean, sqlType: "boolean", values: ["true", "false"],
            spellings: ["TRUE", "t", "tr", "fals", "yes", "n", "on", "of", "o", "1", "0", "2", " true ", "maybe", ""]),
        OracleColumn(
            name: "small", type: .smallint, sqlType: "smallint", values: ["1", "5", "-1", "32767", "-32768"],
            spellings: ["+05", " 5 ", "5.0", "32768", "abc", "", "-0"]),
        OracleColumn(
            name: "points", type: .integer, sqlType: "integer", values: ["1", "5", "-1", "0", "2147483647"],
            spellings: ["+05", "5e0", "2147483648", "true", "", "--5"]),
        OracleColumn(
            name: "big", type: .bigint, sqlType: "bigint",
            values: ["5", "9007199254740993", "9007199254740992", "9223372036854775807", "-9223372036854775808"],
            spellings: ["9223372036854775808", "5.5", "009"]),
        OracleColumn(
            name: "amount", type: .numeric, sqlType: "numeric",
            values: [
                "0", "5", "5.00", "0.1", "-0.1", "12345678901234567890", "12345678901234567890.5", "1e400", "-1e400",
                "0.123456789012345678", "1e-30", "NaN", "Infinity", "-Infinity", "9007199254740993", "19.90",
            ],
            spellings: [
                "5.", ".1", "1e-1", "+5.000", "12345678901234567890.50", "0.1000000000000000055511151231257827", "nan",
                "inf", "-inf", "1e200000", "1e-17000", "5e", "1.2.3", "", " 5 ", "-0.0", "1234567890123456789e1",
            ]),
        OracleColumn(
            name: "ratio", type: .real, sqlType: "real",
            values: ["0.1", "5", "1e30", "-0", "NaN", "Infinity", "16777216", "1e-40"],
            spellings: ["0.10000000149", "16777217", "1e39", "1e-50", ".1", "x", "0", "-Infinity"]),
        OracleColumn(
            name: "score", type: .double, sqlType: "double precision",
            values: ["0.1", "5", "1e300", "9007199254740993", "-Infinity", "NaN", "0.30000000000000004", "-5e-324"],
            spellings: ["0.1000000000000000055511151231257827", "9007199254740992", "1e400", "1e-400", "", "0.3"]),
        OracleColumn(
            name: "day", type: .date, sqlType: "date",
            values: ["2026-01-10", "2026-01-11", "1969-12-31", "infinity", "-infinity"],
            spellings: ["2026-01-10T23:59:59Z", "2026-01-10 00:30:00+05", "2026-02-30", "", "x", " 2026-01-10 "]),
        OracleColumn(
            name: "clock", type: .time, sqlType: "time",
            values: ["09:30:00", "09:30:00.5", "24:00:00", "00:00:00.123456"],
            spellings: ["09:30", "09:30:00.500000", "09:30:60", "25:00:00", "24:00:01", "00:00:00.1234564", "x", ""]),
        OracleColumn(
            name: "local", type: .timestamp, sqlType: "timestamp", values: moments.map { String($0.dropLast(3)) },
            spellings: momentSpellings),
        OracleColumn(
            name: "at", type: .timestamptz, sqlType: "timestamptz", values: moments + ["infinity"],
            spellings: momentSpellings),
        OracleColumn(
            name: "data", type: .json, sqlType: "json", values: [#"{"a": 1}"#, "[1]", "5"], spellings: ["x"]),
        OracleColumn(name: "tags", type: .json, sqlType: "jsonb", values: ["[]", "5"], spellings: []),
    ]

    private static let moments = [
        "2026-01-10 09:30:00+00", "2026-01-10 09:30:00.5+00", "2026-01-10 09:30:00.123456+00",
        "1969-12-31 23:59:59.999999+00", "2026-01-10 00:00:00+00", "2026-01-10 24:00:00+00",
    ]
    private static let momentSpellings = [
        "2026-01-10T09:30:00Z", "2026-01-10T09:30:00.000Z", "2026-01-10T11:30:00+02:00", "2026-01-10 04:00:00-0530",
        "2026-01-10T09:30", "2026-01-10", "2026-01-10T09:30:00.1234564Z", "2026-01-10T09:29:60Z",
        "2026-01-10T09:30:00.9999999", "2026-02-30T00:00:00Z", "2026-01-10T25:00:00Z", "2026-01-10T09:60:00Z", "x", "",
        "2026-13-01", "2026-01-10T09:30:00+16:00", "1969-12-31T23:59:59.9999995Z",
    ]

    static func literal(_ text: String) -> String { "'" + text.replacing("'", with: "''") + "'" }

    static func row(_ number: Int, _ random: inout SeededGenerator) -> String {
        let values = all.map { column in
            let value = column.values.randomElement(using: &random) ?? ""
            return Int.random(in: 0..<6, using: &random) == 0 ? "NULL" : literal(value)
        }
        return "(\(number), \(values.joined(separator: ", ")))"
    }
}

/// One condition, as a filter and as SQL.
struct OracleCondition: Sendable {
    let column: OracleColumn
    let filter: String
    let sql: String

    init(_ random: inout SeededGenerator) {
        let column = OracleColumn.all.randomElement(using: &random) ?? OracleColumn.all[0]
        func value() -> String { (column.values + column.spellings).randomElement(using: &random) ?? "" }
        let isNegated = Int.random(in: 0..<4, using: &random) == 0
        let operations = [("eq", "="), ("neq", "<>"), ("lt", "<"), ("lte", "<="), ("gt", ">"), ("gte", ">=")]
        // PostgreSQL compares `jsonb`, filters do not (`ExplainedDifference`).
        switch column.sqlType == "jsonb" ? 9 : Int.random(in: 0..<12, using: &random) {
        case 0...5:
            let (name, symbol) = operations.randomElement(using: &random) ?? ("eq", "=")
            let text = value()
            self.init(
                column, isNegated, "\(name).\(RandomFilters.quoted(text))", "\(symbol) \(OracleColumn.literal(text))")
        case 6, 7:
            let texts = (0..<Int.random(in: 0...4, using: &random)).map { _ in value() }
            self.init(
                column, isNegated, "in.(\(texts.map(RandomFilters.quoted).joined(separator: ",")))",
                texts.isEmpty ? "= ANY('{}')" : "IN (\(texts.map(OracleColumn.literal).joined(separator: ",")))")
        case 8:
            let text = value()
            self.init(
                column, isNegated, "isdistinct.\(RandomFilters.quoted(text))",
                "IS DISTINCT FROM \(OracleColumn.literal(text))")
        case 9, 10:
            let words = column.sqlType == "jsonb" ? ["null"] : ["null", "true", "false", "unknown"]
            let word = words.randomElement(using: &random) ?? "null"
            self.init(column, isNegated, "is.\(word)", "IS \(word)")
        default:
            let name = Bool.random(using: &random) ? "like" : "ilike"
            let pattern =
                ["a%", "%b%", "_", "%", "A_c", "%,%", "%5", "", "é", "\\%_"].randomElement(using: &random) ?? ""
            // Beyond ASCII, PostgreSQL and filters fold case differently (`ExplainedDifference`).
            let isASCII = name == "like" || pattern.utf8.allSatisfy { $0 < 0x80 }
            self.init(
                column, isNegated, "\(isASCII ? name : "like").\(RandomFilters.quoted(pattern))",
                "\(isASCII ? name : "like") \(OracleColumn.literal(pattern))")
        }
    }

    init(_ column: OracleColumn, _ isNegated: Bool, _ test: String, _ sql: String) {
        self.column = column
        filter = "\(column.name)=\(isNegated ? "not." : "")\(test)"
        self.sql = isNegated ? "NOT (\(column.name) \(sql))" : "(\(column.name) \(sql))"
    }
}

/// A known difference between a filter and the corresponding statement.
struct ExplainedDifference: Sendable, CustomTestStringConvertible {
    let why: String
    let condition: OracleCondition
    /// The value of the column, as SQL.
    let row: String
    /// Whether PostgreSQL selects the row; nil if the statement is an error.
    let isSelected: Bool?
    /// Whether the filter matches the row; nil if the filter is refused.
    let isMatched: Bool?

    var testDescription: String { why }

    private init(
        _ why: String, _ column: String, _ filter: String, _ sql: String, row: String, isSelected: Bool?,
        isMatched: Bool?
    ) {
        let place = OracleColumn.all.firstIndex { $0.name == column } ?? 0
        self.why = why
        condition = OracleCondition(OracleColumn.all[place], false, filter, sql)
        (self.row, self.isSelected, self.isMatched) = (row, isSelected, isMatched)
    }

    static let all = [
        ExplainedDifference(
            "dates and times are read as ISO 8601 has them; PostgreSQL reads many more spellings", "day",
            "eq.\"January 10, 2026\"", "= 'January 10, 2026'", row: "'2026-01-10'", isSelected: true, isMatched: nil),
        ExplainedDifference(
            "words for moments depend on when they are read", "at", "lt.tomorrow", "< 'tomorrow'",
            row: "'2026-01-10T00:00:00Z'", isSelected: true, isMatched: nil),
        ExplainedDifference(
            "years are 1 to 9999, as RFC 3339 writes them", "day", "gt.10000-01-01", "> '10000-01-01'",
            row: "'10001-01-01'", isSelected: true, isMatched: nil),
        ExplainedDifference(
            "a row beyond those years is compared with nothing", "day", "gt.2026-01-10", "> '2026-01-10'",
            row: "'10001-01-01'", isSelected: true, isMatched: false),
        ExplainedDifference(
            "a time of day has no zone, which PostgreSQL would ignore", "clock", "eq.09:30:00+02", "= '09:30:00+02'",
            row: "'09:30:00'", isSelected: true, isMatched: nil),
        ExplainedDifference(
            "json and arrays are not compared", "tags", "eq.5", "= '5'", row: "'5'", isSelected: true, isMatched: nil),
        ExplainedDifference(
            "ilike folds the case of all letters, PostgreSQL that of its collation's", "name", "ilike.É", "ILIKE 'É'",
            row: "'é'", isSelected: false, isMatched: true),
        ExplainedDifference(
            "texts are ordered by bytes, as in collation C", "name", "lt.B", #"< 'B' COLLATE "und-x-icu""#, row: "'a'",
            isSelected: true, isMatched: false),
        ExplainedDifference(
            "a text of more than 8 KiB is not searched", "name", "like.%b%", "LIKE '%b%'",
            row: "repeat('a', 9000) || 'b' || 'a'", isSelected: true, isMatched: false),
        ExplainedDifference(
            "a backslash at a pattern's end is refused; PostgreSQL fails only at a text that reaches it", "name",
            "like.x\\", "LIKE 'x\\'", row: "'a'", isSelected: false, isMatched: nil),
    ]
}
