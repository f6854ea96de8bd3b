import Rows
import TestSupport
import Testing
import Values

/// Column values become JSON without rounding, and missing values do not become null.
@Suite(.timed) struct ChangeValuesTests {
    private func column(_ number: String) throws -> JSONValue? {
        let row = #"{"id": 1, "n": \#(number)}"#
        return try ChangeFixtures.change(
            text: #"{"type": "INSERT", "table": "t", "schema": "s", "record": \#(row)}"#
        ).record?["n"]
    }

    @Test(arguments: [
        ("0", JSONValue.integer(0)), ("-7", .integer(-7)),
        ("9007199254740993", .integer(9_007_199_254_740_993)),
        ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
        ("9223372036854775808", .string("9223372036854775808")),
        ("-12345678901234567890", .string("-12345678901234567890")),
        (
            "12345678901234567890123456789012345678901234567890",
            .string("12345678901234567890123456789012345678901234567890")
        ),
        ("19.90", .number(19.9)), ("0.1", .number(0.1)), ("0.30000000000000004", .number(0.30000000000000004)),
        ("123456789.1234567", .number(123456789.1234567)), ("123456789.123456789", .string("123456789.123456789")),
        ("0.123456789012345678", .string("0.123456789012345678")),
        ("1234567890123.45678", .string("1234567890123.45678")),
        ("0.0000000000000000000000000000010", .number(1e-30)),
        ("1.7976931348623157e308", .number(1.7976931348623157e308)), ("5e-324", .number(.leastNonzeroMagnitude)),
        ("1e400", .string("1e400")), ("-1E-400", .string("-1E-400")), ("1.5e3", .number(1500)),
        ("0e0", .number(0)), ("0.00000000000000000000", .number(0)), ("2.50e+2", .number(250)),
    ])
    func number_isExactToItsLastDigit(text: String, value: JSONValue) throws {
        #expect(try column(text) == value)
    }

    /// A number stays a JSON number if it is exact; otherwise it becomes the original text.
    @Test func randomNumbers_areNeverRounded() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        for _ in 0..<3_000 {
            let double = Double(bitPattern: random.next())
            if double.isFinite {
                #expect(try column("\(double)") == .number(double), "seed \(seed)")
            }
            let digits = (0..<Int.random(in: 1...30, using: &random)).map { _ in
                String(Int.random(in: 0...9, using: &random))
            }
            let point = Int.random(in: 0...digits.count, using: &random)
            let whole = digits[..<point].drop { $0 == "0" }.joined()
            let fraction = digits[point...].joined()
            let text = (whole.isEmpty ? "0" : whole) + (fraction.isEmpty ? "" : "." + fraction)
            switch try column(text) {
            case .integer(let value): #expect(String(value) == text, "seed \(seed)")
            case .string(let value):
                #expect(value == text, "seed \(seed)")
                #expect(text.utf8.count > 15, "seed \(seed)")
            case .number(let value):
                // 17 significant digits identify a double, so text that stays a number has at most 17.
                let written = (whole + fraction).drop { $0 == "0" }.reversed().drop { $0 == "0" }.count
                #expect(written <= 17, "seed \(seed): \(text)")
                #expect(Double(text) == value, "seed \(seed): \(text)")
            case let other: Issue.record("seed \(seed): \(text) became \(String(describing: other))")
            }
        }
    }

    @Test func longNumbers_inNestedValues_andStringsThatLookLikeThem_areExact() throws {
        let value = try column(
            #"""
            {"a": [12345678901234567890, "12345678901234567890", "1e999\"9999999999999999999"],
             "9999999999999999999": true}
            """#)
        #expect(
            value
                == .object([
                    "a": .array([
                        .string("12345678901234567890"), .string("12345678901234567890"),
                        .string("1e999\"9999999999999999999"),
                    ]), "9999999999999999999": .bool(true),
                ]))
    }

    @Test func aLargeKey_isTheSameKey_asTextAndAsNumber() throws {
        let text =
            #"{"type": "DELETE", "table": "t", "schema": "s", "old_record": {"id": 18446744073709551615}}"#
        #expect(try ChangeFixtures.change(text: text).primaryKey(["id"]).text == "18446744073709551615")
    }

    @Test func debeziumColumns_withSchema_areWrittenAsPostgreSQLWritesThem() throws {
        let record = try #require(try ChangeFixtures.change("debezium-create-typed").record)
        #expect(record["d"] == .string("2018-06-20"))
        #expect(record["t"] == .string("15:13:16.945104"))
        #expect(record["ts"] == .string("2018-06-20T15:13:16.945"))
        #expect(record["tsm"] == .string("2018-06-20T15:13:16.945104"))
        #expect(record["tz"] == .string("2018-06-20T13:13:16.945104Z"))
        #expect(record["inf"] == .string("infinity"))
        #expect(record["price"] == .number(1.23))
        #expect(record["n"] == .string("-1234.567890123456789012"))
        #expect(record["j"] == .object(["key": .string("value"), "n": .string("12345678901234567890")]))
        #expect(record["u"] == .string("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"))
        #expect(record["days"] == .array([.string("1970-01-01"), .string("1969-12-31"), .null]))
        #expect(record["none"] == .null)
    }

    /// Returns a Debezium event with one column and its schema.
    private func typed(_ value: String, _ schema: String) -> String {
        """
        {"schema": {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": [
            {"field": "x", \(schema)}]}]},
         "payload": {"op": "c", "source": {"table": "t", "schema": "s"}, "before": null,
            "after": {"id": 1, "x": \(value)}}}
        """
    }

    @Test(arguments: [
        ("-719162", #""type": "int32", "name": "io.debezium.time.Date""#, "0001-01-01"),
        ("2932896", #""type": "int32", "name": "org.apache.kafka.connect.data.Date""#, "9999-12-31"),
        ("86400000", #""type": "int32", "name": "io.debezium.time.Time""#, "24:00:00"),
        ("0", #""type": "int64", "name": "io.debezium.time.NanoTime""#, "00:00:00"),
        ("1", #""type": "int64", "name": "io.debezium.time.NanoTimestamp""#, "1970-01-01T00:00:00.000000001"),
        ("-1", #""type": "int64", "name": "io.debezium.time.MicroTimestamp""#, "1969-12-31T23:59:59.999999"),
        ("-9223372036832400000", #""type": "int64", "name": "io.debezium.time.Timestamp""#, "-infinity"),
    ])
    func time_atTheEdge_isWritten(value: String, schema: String, text: String) throws {
        #expect(try ChangeFixtures.change(text: typed(value, schema)).record?["x"] == .string(text))
    }

    @Test(arguments: [
        ("2932897", #""type": "int32", "name": "io.debezium.time.Date""#),
        ("9223372036854775807", #""type": "int32", "name": "io.debezium.time.Date""#),
        ("-1", #""type": "int32", "name": "io.debezium.time.Time""#),
        ("86400001", #""type": "int32", "name": "io.debezium.time.Time""#),
        ("9223372036854775807", #""type": "int64", "name": "io.debezium.time.Timestamp""#),
        (#""2018""#, #""type": "int32", "name": "io.debezium.time.Date""#),
        (#""AA""#, #""name": "org.apache.kafka.connect.data.Decimal", "type": "x", "parameters": {"scale": "2"}"#),
        (#""AAA=""#, #""type": "bytes", "name": "org.apache.kafka.connect.data.Decimal""#),
        (#""AAA=""#, #""name": "org.apache.kafka.connect.data.Decimal", "type": "x", "parameters": {"scale": "9999"}"#),
        (
            #"{"scale": -9223372036854775808, "value": "AAA="}"#,
            #""type": "struct", "name": "io.debezium.data.VariableScaleDecimal""#
        ),
        (#"{"value": "AAA="}"#, #""type": "struct", "name": "io.debezium.data.VariableScaleDecimal""#),
        (#""{""#, #""type": "string", "name": "io.debezium.data.Json""#),
    ])
    func value_thatItsSchemaDoesNotAllow_isRejected_withItsColumn(value: String, schema: String) throws {
        #expect(try ChangeFixtures.rejection(text: typed(value, schema)).pointer == "/payload/after/x")
    }

    /// Dictionaries have no order, but the reported mistake is always the same one.
    @Test func sameMistake_isAlwaysReported() throws {
        let names = (0..<50).map { "column\($0)" }
        let fields = names.map { #"{"field": "\#($0)", "type": "int32", "name": "io.debezium.time.Date"}"# }
        let row = names.map { #""\#($0)": "x""# }
        let text = """
            {"schema": {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": [
                \(fields.joined(separator: ","))]}]}, "payload": {"op": "c", "source": {"table": "t", "schema": "s"},
                "after": {\(row.joined(separator: ","))}}}
            """
        for _ in 0..<20 {
            #expect(try ChangeFixtures.rejection(text: text).pointer == "/payload/after/column0")
        }
    }

    @Test func expandedArrays_areBounded() throws {
        let schema = #""type": "array", "items": {"type": "int32", "name": "io.debezium.time.Date"}"#
        func array(_ count: Int) -> String {
            "[" + [String](repeating: "1", count: count).joined(separator: ",") + "]"
        }
        let most = ChangeLimits.translatedElementsMax
        #expect(throws: Never.self) { try ChangeFixtures.change(text: typed(array(most), schema)) }
        let rejection = try ChangeFixtures.rejection(text: typed(array(most + 1), schema))
        #expect(rejection.pointer == "/payload/after/x")
        #expect(rejection.reason.contains("too many elements"))
    }

    @Test(arguments: [
        ("AA==", 0, JSONValue.integer(0)), ("/w==", 0, .integer(-1)), ("fw==", 2, .number(1.27)),
        ("gA==", 1, .number(-12.8)), ("AQ==", 5, .number(0.00001)), ("AQ==", -3, .integer(1_000)),
        ("AP8=", 0, .integer(255)), ("AA==", -5, .integer(0)),
        // 2^71: the byte 0x80 after a zero byte that keeps the sign positive, then eight zero bytes.
        ("AIAAAAAAAAAAAA==", 0, .string("2361183241434822606848")),
    ])
    func decimal_isItsDigits(encoded: String, scale: Int, value: JSONValue) throws {
        let schema =
            #""type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "\#(scale)"}"#
        #expect(try ChangeFixtures.change(text: typed("\"\(encoded)\"", schema)).record?["x"] == value)
    }

    /// 4 letters encode 3 bytes: 683 letters and one padding character are 512 bytes.
    @Test func decimal_ofTooManyBytes_isRejected() throws {
        let schema =
            #""type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "0"}"#
        let most = String(repeating: "A", count: 680) + "AQA="
        guard case .integer(256) = try ChangeFixtures.change(text: typed("\"\(most)\"", schema)).record?["x"] else {
            Issue.record("leading zeros must not count")
            return
        }
        let rejection = try ChangeFixtures.rejection(text: typed("\"\(most.dropLast(4))AQAA\"", schema))
        #expect(rejection.reason.contains("more than \(ChangeLimits.decimalBytesMax) bytes"))
    }

    @Test func debeziumColumns_withoutSchema_areLeftAsTheyAre() throws {
        let text = #"{"op": "c", "source": {"table": "t", "schema": "s"}, "after": {"id": 1, "d": 17702}}"#
        #expect(try ChangeFixtures.change(text: text).record == ["id": .integer(1), "d": .integer(17702)])
    }

    // MARK: Missing values

    @Test func unchangedToast_isAbsent_inEveryTypesForm() throws {
        let change = try ChangeFixtures.change("debezium-update-unchanged-toast")
        #expect(change.record == ["id": .integer(1), "title": .string("t")])
        #expect(change.unchangedColumns == ["body", "blob", "names", "numbers", "labels"])
    }

    @Test func unchangedToast_isTakenFromTheOldRow_whereItIsSent() throws {
        let text = """
            {"op": "u", "source": {"table": "t", "schema": "s"}, "before": {"id": 1, "body": "long", "n": 1},
             "after": {"id": 1, "body": "__debezium_unavailable_value", "n": 2}}
            """
        let change = try ChangeFixtures.change(text: text)
        #expect(change.record?["body"] == .string("long"))
        #expect(change.unchangedColumns.isEmpty)
        let realtime = try ChangeFixtures.change("supabase-realtime-update-unchanged-toast")
        #expect(realtime.unchangedColumns == ["body2"])
        #expect(realtime.record?["body2"] == nil)
    }

    @Test func truncatedRow_namesItsWithheldColumns() throws {
        let change = try ChangeFixtures.change("supabase-realtime-update-too-large")
        #expect(change.withheldColumns == ["body"])
        #expect(change.record == ["id": .integer(1)])
    }
}
