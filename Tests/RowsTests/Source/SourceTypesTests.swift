import Foundation
import PostgresServer
import Rows
import TestSupport
import Testing
import Values

/// Rows from the log of a real server, as `pgoutput` writes them.
struct LoggedRows {
    let server: PostgresServer
    let database: String
    private let slot: String

    /// Creates a database, runs statements in it, and creates a slot that logs everything after them.
    init(_ statements: [String]) throws {
        server = try PostgresServer.shared()
        database = try server.makeDatabase()
        slot = database
        try server.run(
            statements + [
                "CREATE PUBLICATION bellhop FOR ALL TABLES WITH (publish_via_partition_root = true)",
                "SELECT pg_create_logical_replication_slot('\(slot)', 'pgoutput')",
            ], in: database)
    }

    func drop() {
        _ = try? server.run(["SELECT pg_drop_replication_slot('\(slot)')"], in: database)
        server.drop(database)
    }

    /// The session settings that determine the text forms.
    static let session = [
        "SET DateStyle = ISO", "SET IntervalStyle = postgres", "SET TimeZone = 'UTC'", "SET bytea_output = hex",
        "SET extra_float_digits = 1",
    ]

    /// Returns the messages logged since the last call.
    func messages() throws -> [ReplicationMessage] {
        // The log is readable only up to its flushed end, and commits here do not wait for the flush.
        let text = try server.run(
            Self.session + ["CHECKPOINT"] + [
                """
                SELECT string_agg(encode(data, 'hex'), ' ') FROM pg_logical_slot_get_binary_changes('\(slot)', NULL, NULL,
                    'proto_version', '1', 'publication_names', 'bellhop', 'messages', 'true')
                """
            ], in: database)
        return try text.split(separator: " ").map { try ReplicationMessage(reading: Self.bytes($0)[...]) }
    }

    static func bytes(_ hexadecimal: Substring) -> [UInt8] {
        let digits = hexadecimal.utf8.map { UInt8(Character(Unicode.Scalar($0)).hexDigitValue ?? 0) }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    /// Returns the types of a relation that PostgreSQL does not ship, as the server describes them.
    func types(of relation: SourceRelation) throws -> [UInt32: SourceType] {
        let list = "{" + relation.columns.map { "\($0.type)" }.joined(separator: ",") + "}"
        let query = SourceTypeCatalog.query.replacingOccurrences(of: "$1", with: "'\(list)'")
        let rows = try server.run(
            [
                """
                SELECT json_agg(json_build_object('a', a, 'b', b, 'c', c, 'd', d, 'e', e::text))
                FROM (\(query)) AS q(a, b, c, d, e)
                """
            ], in: database)
        let found = try JSONSerialization.jsonObject(with: Data(rows.utf8)) as? [[String: Any]] ?? []
        return SourceTypeCatalog.types(
            of: found.map { row in "abcde".map { name in row["\(name)"].flatMap { $0 is NSNull ? nil : "\($0)" } } })
    }

    /// Returns the changes in the messages, in order.
    func changes() throws -> [TableChange] {
        var relations: [UInt32: SourceRows] = [:]
        var found: [TableChange] = []
        func change(
            _ kind: TableChange.Kind, _ relation: UInt32, _ old: SourceTuple?, _ new: SourceTuple?
        ) throws -> TableChange {
            let rows = try #require(relations[relation])
            return try rows.change(kind, old: old, new: new, committedAt: nil)
        }
        for message in try messages() {
            switch message {
            case .relation(let relation):
                relations[relation.id] = SourceRows(relation, types: try types(of: relation))
            case .insert(let relation, let new): found.append(try change(.insert, relation, nil, new))
            case .update(let relation, let old, let new): found.append(try change(.update, relation, old, new))
            case .delete(let relation, let old): found.append(try change(.delete, relation, old, nil))
            case .truncate(let ids):
                found += try ids.map { try #require(relations[$0]).truncation(committedAt: nil) }
            default: break
            }
        }
        return found
    }
}

/// The text forms of the log become the same JSON as `to_jsonb` on the same server.
@Suite(.timed) struct SourceTypesTests {
    private static let values: [(type: String, values: [String])] = [
        ("boolean", ["true", "false"]),
        ("smallint", ["-32768", "32767"]), ("integer", ["-2147483648", "0"]),
        ("bigint", ["9223372036854775807", "-9223372036854775808"]),
        ("real", ["1.5", "1e10", "3.4e38", "1e-30", "'NaN'", "'-Infinity'", "-0"]),
        (
            "double precision",
            ["0.1", "1e20", "1.5e-07", "-1.7976931348623157e308", "5e-324", "'Infinity'", "1234567890123456.7"]
        ),
        ("numeric", ["19.90", "123456789012345678901234567890.5", "0.000", "'NaN'", "'Infinity'", "1e400", "-0.1"]),
        ("text", ["''", "'x'", "E'a\\nb\\t\"\\\\'", "'Grüße 🙂'", "'NULL'"]), ("varchar(9)", ["'abc'"]),
        ("char(5)", ["'ab'"]), ("name", ["'n'"]), ("\"char\"", ["'c'"]), ("oid", ["42"]), ("xid", ["'7'"]),
        ("uuid", ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"]), ("bytea", ["''", "'\\x00ff'"]),
        (
            "json",
            [
                "'{\"a\": [1, 1.50, null]}'", "'{\"a\":1,\"a\":2}'", "'1e2'", "'\"x\"'", "'[]'",
                #"'{"1e2\"": [-0.55E+1, 12.5e-3, 0e0, "5e5\\", 1.50e1, 10e-1]}'"#, "'3e400'",
            ]
        ),
        ("jsonb", ["'{\"b\": {\"c\": 1e3}, \"a\": \"\\u00e9\"}'", "'null'", "'123456789012345678901'"]),
        ("date", ["'2026-01-10'", "'infinity'", "'0044-03-15 BC'", "'12026-01-01'"]),
        ("time", ["'09:30'", "'23:59:59.999999'", "'24:00'"]), ("timetz", ["'09:30+05:30'"]),
        ("timestamp", ["'2026-01-10 09:30'", "'2026-01-10 09:30:00.5'", "'-infinity'", "'0044-03-15 00:00 BC'"]),
        (
            "timestamptz",
            ["'2026-01-10 09:30+02'", "'2026-01-10 09:30:00.123456Z'", "'infinity'", "'0044-03-15 00:00Z BC'"]
        ),
        ("interval", ["'1 year 2 days 03:04:05.6'", "'-00:00:01'"]), ("money", ["12.5"]),
        ("inet", ["'192.168.0.1/24'"]), ("cidr", ["'10.0.0.0/8'"]), ("macaddr", ["'08:00:2b:01:02:03'"]),
        ("point", ["'(1,2)'"]), ("box", ["'(1,1),(0,0)'"]), ("bit(3)", ["B'101'"]), ("varbit", ["B''"]),
        ("tsvector", ["'a:1 b'"]), ("xml", ["'<a/>'"]), ("pg_lsn", ["'16/B374D848'"]),
        ("int4range", ["'[1,5)'", "'empty'"]), ("tstzrange", ["'[2026-01-10,)'"]),
        ("int4multirange", ["'{[1,3),[5,9)}'"]),
        ("integer[]", ["'{}'", "'{1,NULL,3}'", "'{{1,2},{3,4}}'", "'[0:1]={7,8}'"]),
        ("text[]", ["'{a,\"b,c\",\"d\\\"e\\\\f\",NULL,\"NULL\",\"\",\"{}\"}'", "'{{{x}}}'"]),
        ("numeric[]", ["'{1.50,NaN}'"]), ("boolean[]", ["'{t,f}'"]),
        ("jsonb[]", ["ARRAY['{\"a\": 1}'::jsonb, 'null', NULL]"]),
        ("json[]", ["ARRAY['{\"a\": 1e2}'::json]"]), ("timestamptz[]", ["ARRAY['2026-01-10Z'::timestamptz]"]),
        ("date[]", ["'{2026-01-10}'"]), ("uuid[]", ["'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'"]),
        ("bytea[]", ["ARRAY['\\x00'::bytea]"]),
        ("box[]", ["ARRAY['(1,1),(0,0)'::box, '(2,2),(0,0)']"]), ("int2vector", ["'1 2'"]), ("oidvector", ["'1 2'"]),
        ("point[]", ["ARRAY['(1,2)'::point]"]),
        ("mood", ["'sad'", "'very \"glad\"'"]), ("mood[]", ["'{sad,NULL}'"]), ("positive", ["5"]),
        ("positive[]", ["'{1,2}'"]),
        ("grid", ["'{{1,2}}'"]),
        (
            "pair",
            [
                "ROW(1, 'a,b', '2026-01-10Z')", "ROW(NULL, '', NULL)", #"ROW(1, E'a"b\\(c)\td', NULL)"#,
                "ROW(NULL, NULL, NULL)",
            ]
        ),
        (
            "nest",
            [
                "ROW(ROW(1, 'a \"b\"', NULL)::pair, ARRAY['x,y', NULL], '{\"a\": 1e2}', 5)",
                "ROW(NULL, NULL, NULL, NULL)",
            ]
        ),
        ("nest[]", ["ARRAY[ROW(ROW(1, 'a''\"', NULL)::pair, '{}', '[]', NULL)::nest]"]),
        ("pair[]", ["ARRAY[ROW(1, NULL, NULL)::pair]"]),
        ("wrapped", ["ROW(2, 'x', NULL)::pair"]), ("int4range[]", ["ARRAY['[1,5)'::int4range]"]),
    ]

    @Test func everyType_becomesWhatToJSONBSays() throws {
        let columns = Self.values.enumerated().map { "c\($0) \($1.type)" }.joined(separator: ", ")
        let log = try LoggedRows([
            "CREATE TYPE mood AS ENUM ('sad', 'very \"glad\"')", "CREATE DOMAIN positive AS integer CHECK (value > 0)",
            "CREATE DOMAIN grid AS integer[]", "CREATE TYPE pair AS (n integer, t text, at timestamptz)",
            "CREATE DOMAIN wrapped AS pair", "CREATE TYPE nest AS (p pair, list text[], doc json, n positive)",
            "CREATE TABLE every (id integer PRIMARY KEY, \(columns))",
        ])
        defer { log.drop() }
        let most = Self.values.map(\.values.count).max() ?? 0
        let rows = (0...most).map { number in
            "(\(number), "
                + Self.values.map { number < $0.values.count ? $0.values[number] : "NULL" }.joined(separator: ", ")
                + ")"
        }
        // One statement per row: in a VALUES list, PostgreSQL would derive the types from all rows.
        try log.server.run(rows.map { "INSERT INTO every VALUES \($0)" }, in: log.database)
        let changes = try log.changes()
        #expect(changes.count == rows.count)
        for (number, change) in changes.enumerated() {
            let text = try log.server.run(
                LoggedRows.session + ["SELECT to_jsonb(e)::text FROM every e WHERE id = \(number)"], in: log.database)
            guard case .object(let expected) = try JSONValue(parsing: Array(text.utf8), isExact: true) else {
                Issue.record("row \(number) is missing")
                continue
            }
            #expect(change.record?.count == expected.count)
            for (index, entry) in Self.values.enumerated() {
                let (found, wanted) = (change.record?["c\(index)"], expected["c\(index)"])
                #expect(
                    found == wanted,
                    "\(entry.type), row \(number): \(found.debugDescription), not \(wanted.debugDescription)")
            }
        }
    }

    @Test func oldRows_areAsTheTableSaysTheyAre() throws {
        let log = try LoggedRows([
            "CREATE TABLE whole (id integer PRIMARY KEY, note text, long text)",
            "ALTER TABLE whole REPLICA IDENTITY FULL",
            "CREATE TABLE keyed (id integer PRIMARY KEY, note text, long text, twice integer GENERATED ALWAYS AS (id * 2) STORED)",
            "ALTER TABLE whole ALTER long SET STORAGE EXTERNAL", "ALTER TABLE keyed ALTER long SET STORAGE EXTERNAL",
        ])
        defer { log.drop() }
        let statements = ["whole", "keyed"].flatMap { table in
            [
                "INSERT INTO \(table) VALUES (1, 'a', repeat('x', 5000))", "UPDATE \(table) SET note = 'b'",
                "UPDATE \(table) SET id = 2", "DELETE FROM \(table)",
            ]
        }
        try log.server.run(statements + ["TRUNCATE whole, keyed"], in: log.database)
        let changes = try log.changes()
        try #require(changes.count == 10)
        let long = JSONValue.string(String(repeating: "x", count: 5000))
        #expect(changes[1].oldRecord == ["id": 1, "note": "a", "long": long])
        #expect(changes[1].record == ["id": 1, "note": "b", "long": long])
        #expect(changes[1].unchangedColumns.isEmpty)
        #expect(changes[3].oldRecord == ["id": 2, "note": "b", "long": long])
        // With only the key in the log, the old row is unknown, and values stored out of line are not sent.
        #expect(changes[5].oldRecord == nil)
        #expect(changes[5].record == ["id": 1, "note": "b"])
        #expect(changes[5].unchangedColumns == ["long"])
        #expect(changes[6].oldRecord == ["id": 1])
        #expect(changes[7].oldRecord == ["id": 2])
        #expect(changes[8...].map(\.kind) == [.truncate, .truncate])
        #expect(Set(changes[8...].map(\.table)) == ["whole", "keyed"])
    }

    @Test func changedTables_areReadAsTheyWere_andPartitionsByTheirRoot() throws {
        let log = try LoggedRows([
            "CREATE TABLE notes (id integer PRIMARY KEY, a text)",
            "CREATE TABLE days (id integer, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
            "CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
            "CREATE TABLE gone (id integer PRIMARY KEY)",
        ])
        defer { log.drop() }
        try log.server.run(
            [
                "INSERT INTO notes VALUES (1, 'x')", "ALTER TABLE notes RENAME a TO b",
                "INSERT INTO notes VALUES (2, 'y')",
                "ALTER TABLE notes ADD c integer DEFAULT 7", "ALTER TABLE notes DROP b", "INSERT INTO notes VALUES (3)",
                "INSERT INTO days VALUES (1, '2026-01-10')", "INSERT INTO gone VALUES (1)", "DROP TABLE gone",
            ], in: log.database)
        let changes = try log.changes()
        #expect(
            changes.map(\.record) == [
                ["id": 1, "a": "x"], ["id": 2, "b": "y"], ["id": 3, "c": 7], ["id": 1, "day": "2026-01-10"], ["id": 1],
            ])
        #expect(changes[3].table == "days")
    }

    @Test func messages_comeWithTheirTransaction_orAtOnce() throws {
        let log = try LoggedRows(["CREATE TABLE notes (id integer PRIMARY KEY)"])
        defer { log.drop() }
        try log.server.run(
            [
                "SELECT pg_logical_emit_message(true, 'bellhop', 'said')",
                "BEGIN", "SELECT pg_logical_emit_message(true, 'bellhop', 'never')",
                "SELECT pg_logical_emit_message(false, 'other', 'at once')", "ROLLBACK",
            ], in: log.database)
        let found = try log.messages().compactMap { message -> String? in
            guard case .message(let isTransactional, _, let prefix, let content) = message else { return nil }
            return "\(prefix) \(String(decoding: content, as: UTF8.self)) \(isTransactional)"
        }
        #expect(found == ["bellhop said true", "other at once false"])
    }
}
