import TestSupport
import Testing
import Values

@testable import Rows

/// Malformed items are rejected with position and reason; one bad item never affects another.
@Suite(.timed) struct ChangeRejectionsTests {
    struct Malformed: Sendable, CustomTestStringConvertible {
        let text: String
        let pointer: String
        let reason: String
        var testDescription: String { text }
        init(_ text: String, _ pointer: String, _ reason: String) {
            self.text = text
            self.pointer = pointer
            self.reason = reason
        }
    }

    private static let record = #""record": {"id": 1}"#

    private static func frame(_ data: String) -> String {
        #"{"event": "postgres_changes", "payload": {"data": {"table": "t", "schema": "s", \#(data)}}}"#
    }

    private static func cloudEvent(_ members: String) -> String {
        #"{"specversion": "1.0", "id": "1", "source": "/", "type": "t", \#(members)}"#
    }

    private static func debezium(_ members: String, source: String = "") -> String {
        #"{"source": {"table": "t", "schema": "s"\#(source)}, \#(members)}"#
    }

    static let malformed: [Malformed] = [
        // Unknown formats.
        Malformed("[[]]", "/0", "must be an object, not an array"),
        Malformed("{}", "", "has an unknown format"),
        Malformed(#"{"event": "phx_reply", "payload": {"status": "ok"}}"#, "", "has an unknown format"),
        Malformed(
            #"{"event": "broadcast", "payload": {"event": "typing", "payload": {}}}"#, "", "has an unknown format"),
        Malformed(#"{"id": 1, "__deleted": "true"}"#, "", "has an unknown format"),
        // Supabase Database Webhooks.
        Malformed(#"{"type": "INSERT", "table": "t", "record": {"id": 1}}"#, "/schema", "is missing"),
        Malformed(#"{"type": "insert", "table": "t", "schema": "s", "record": {"id": 1}}"#, "/type", "must be INSERT"),
        Malformed(#"{"type": "TRUNCATE", "table": "t", "schema": "s"}"#, "/type", "must be INSERT, UPDATE or DELETE"),
        Malformed(#"{"type": 1, "table": "t", "schema": "s"}"#, "/type", "must be a string, not a number"),
        Malformed(#"{"type": "INSERT", "table": "", "schema": "s"}"#, "/table", "must not be empty"),
        Malformed(#"{"type": "INSERT", "table": "t\u0000", "schema": "s"}"#, "/table", "must not contain control"),
        Malformed(#"{"type": "INSERT", "table": "t", "schema": "s", "record": null}"#, "/record", "is missing"),
        Malformed(#"{"type": "INSERT", "table": "t", "schema": "s", "record": {}}"#, "/record", "is missing"),
        Malformed(#"{"type": "INSERT", "table": "t", "schema": "s", "record": [1]}"#, "/record", "must be an object"),
        Malformed(
            #"{"type": "INSERT", "table": "t", "schema": "s", "record": {"id": 1}, "old_record": {"id": 1}}"#,
            "/old_record", "must be null"),
        Malformed(
            #"{"type": "DELETE", "table": "t", "schema": "s", "record": {"id": 1}, "old_record": {"id": 1}}"#,
            "/record", "must be null"),
        Malformed(
            #"{"type": "DELETE", "table": "t", "schema": "s", "record": null, "old_record": null}"#, "/old_record",
            "is missing"),
        // Realtime.
        Malformed(#"{"event": "postgres_changes", "payload": {"ids": [1]}}"#, "/payload/data", "is missing"),
        Malformed(#"{"event": "postgres_changes"}"#, "/payload", "is missing"),
        Malformed(frame(#""type": "*", "record": {"id": 1}"#), "/payload/data/type", "must be INSERT"),
        Malformed(
            frame(#""type": "INSERT", "record": {"id": 1}, "commit_timestamp": "yesterday""#),
            "/payload/data/commit_timestamp", "must be an RFC 3339 time"),
        Malformed(
            frame(#""type": "INSERT", "record": {"id": 1}, "columns": [{"type": "int4"}]"#),
            "/payload/data/columns/0", "must be an object with a name"),
        Malformed(
            frame(#""type": "UPDATE", "record": {}, "old_record": {}, "errors": ["Error 413: Payload Too Large"]"#),
            "/payload/data/errors", "withheld all columns"),
        // broadcast_changes.
        Malformed(
            #"{"event": "x", "payload": {"operation": "UPSERT", "table": "t", "schema": "s"}}"#, "/payload/operation",
            "must be INSERT"),
        Malformed(
            #"{"event": "broadcast", "payload": {"payload": {"operation": "INSERT", "table": "t", "schema": "s"}}}"#,
            "/payload/payload/record", "is missing"),
        Malformed(
            #"{"event": "", "payload": {"id": "", "table": "t", "schema": "s", "operation": "INSERT", \#(record)}}"#,
            "/payload/id", "must have 1 to"),
        // Debezium.
        Malformed(debezium(#""op": "x""#), "/op", "must be c, u, d, r or t"),
        Malformed(#"{"op": "m", "source": {"table": "", "schema": ""}}"#, "/op", "has no row"),
        Malformed(#"{"op": "c", "source": {"schema": "s"}, "after": {"id": 1}}"#, "/source/table", "is missing"),
        Malformed(#"{"op": "c", "source": {"table": "t"}, "after": {"id": 1}}"#, "/source/schema", "db is missing too"),
        Malformed(#"{"op": "c", "source": "s", "after": {"id": 1}}"#, "/source", "must be an object"),
        Malformed(debezium(#""op": "c""#), "/after", "is missing"),
        Malformed(debezium(#""op": "u", "after": "{\"_id\": 1}""#), "/after", "must be an object, not a string"),
        Malformed(debezium(#""op": "d", "before": null"#), "/before", "is missing"),
        Malformed(debezium(#""op": "t", "after": {"id": 1}"#), "/after", "must be null"),
        Malformed(
            debezium(#""op": "c", "after": {"id": 1}"#, source: #", "ts_ms": 9223372036854775807"#),
            "/source/ts_ms", "must be a whole number"),
        Malformed(
            debezium(#""op": "c", "after": {"id": 1}"#, source: #", "ts_us": 1.5"#),
            "/source/ts_us", "must be a whole number"),
        Malformed(
            #"{"schema": {}, "payload": {"op": "c", "source": {"table": "t", "schema": "s"}}}"#, "/payload/after",
            "is missing"),
        // CloudEvents.
        Malformed(#"{"specversion": "0.3", "id": "1", "source": "/", "type": "t"}"#, "/specversion", "must be \"1.0\""),
        Malformed(#"{"specversion": "1.0", "source": "/", "type": "t"}"#, "/id", "is missing"),
        Malformed(#"{"specversion": "1.0", "id": "", "source": "/", "type": "t"}"#, "/id", "must not be empty"),
        Malformed(#"{"specversion": "1.0", "id": "1", "type": "t"}"#, "/source", "is missing"),
        Malformed(#"{"specversion": "1.0", "id": "1", "source": "/"}"#, "/type", "is missing"),
        Malformed(cloudEvent(#""data": null"#), "/data", "is missing"),
        Malformed(cloudEvent(#""data": "{}""#), "/data", "must be an object, not a string"),
        Malformed(cloudEvent(#""time": "now", "data": {}"#), "/time", "must be an RFC 3339 time"),
        Malformed(cloudEvent(#""data": {"id": 1}"#), "/data", "has an unknown format"),
        Malformed(cloudEvent(#""data": {"specversion": "1.0"}"#), "/data", "inside a CloudEvent"),
        Malformed(
            cloudEvent(#""data": {}, "data_base64": "e30=""#), "/data_base64", "must not be sent together with data"),
        Malformed(cloudEvent(#""data_base64": "e3""#), "/data_base64", "must be base64"),
        Malformed(cloudEvent(#""data_base64": "e3s=""#), "/data_base64", "not valid JSON"),
        Malformed(
            cloudEvent(#""iodebeziumop": "c", "iodebeziumtable": "t", "iodebeziumschema": "s", "data": {"id": 1}"#),
            "/data", "must have before or after"),
        Malformed(cloudEvent(#""data_base64": "W10=""#), "/data_base64", "must be a JSON object, not an array"),
        // Invalid JSON in an item whose end can be found.
        Malformed(#"[{"type": "INSERT", "type": "DELETE"}]"#, "/0", "duplicate key"),
        Malformed(#"[{"a": 01}]"#, "/0", "not valid JSON"),
        Malformed(#"[{"a": 12345678901234567890.}]"#, "/0", "not valid JSON"),
        Malformed(#"[{]]"#, "/0", "not valid JSON"),
        Malformed(#"[nul]"#, "/0", "not valid JSON"),
        Malformed(#"[{"a": "\ud800"}]"#, "/0", "a lone surrogate"),
    ]

    @Test(arguments: malformed)
    func malformedItem_isRejected_withItsPlaceAndReason(item: Malformed) throws {
        let rejection = try ChangeFixtures.rejection(text: item.text)
        #expect(rejection.pointer == item.pointer)
        #expect(rejection.reason.contains(item.reason), "\(rejection.reason)")
        #expect(rejection.index == 0)
    }

    @Test(arguments: ["supabase-realtime-unauthorized", "debezium-message", "cloudevents-debezium-avro"])
    func recordedPayloadWithoutARow_isRejected(name: String) throws {
        let batch = try ChangeBatch(reading: ChangeFixtures.bytes(name))
        #expect(batch.changes.isEmpty)
        #expect(batch.rejections.count == 1)
    }

    @Test(arguments: [
        "", " ", "[", "[1", "[1,", "[1,]", "[,1]", "]", "}", "{", #"{"a"#, #"["\"]"#, "{} {}", "[] 1", "[1 2]", "1 2",
        "[}]",
    ])
    func bodyWithInseparableItems_isRefusedAsAWhole(text: String) throws {
        let error = #expect(throws: Failure.self) { _ = try ChangeBatch(reading: Array(text.utf8)) }
        #expect(error?.kind == .malformed)
        #expect(error?.detail.contains("at byte") == true)
    }

    @Test func badItem_doesNotRejectItsNeighbours() throws {
        let good = #"{"type": "INSERT", "table": "t", "schema": "s", "record": {"id": "a]b}c,\"[{"}}"#
        let body = #"[\#(good), {"a": tru}, \#(good), {"a": 1e}, null, \#(good)]"#
        let batch = try ChangeBatch(reading: Array(body.utf8))
        #expect(batch.changes.count == 3)
        #expect(batch.rejections.map(\.index) == [1, 3])
        #expect(batch.rejections.map(\.pointer) == ["/1", "/3"])
        let written = JSONWriter.bytes(ChangeRejection(index: 1, pointer: "/1/x", reason: "is missing"))
        #expect(written == Array(#"{"index":1,"pointer":"/1/x","reason":"is missing"}"#.utf8))
    }

    @Test func formatName_thatContradictsTheHeaders_isRefused() throws {
        let delivery = try ChangeDelivery(headers: [("ce-id", "1"), ("ce-specversion", "1.0")])
        let body = try ChangeFixtures.bytes("cloudevents-binary-body")
        #expect(throws: Failure.self) { try ChangeBatch(reading: body, delivery: delivery, format: .debezium) }
        #expect(throws: Failure.self) { try ChangeBatch(reading: Array("[]".utf8), delivery: delivery) }
        let rejected = try ChangeBatch(reading: body, delivery: delivery).rejections
        #expect(rejected.map(\.pointer) == ["ce-source"])
        var complete = delivery
        complete.attributes.merge(["source": "/", "type": "t"]) { $1 }
        complete.contentType = "application/xml"
        #expect(try ChangeBatch(reading: body, delivery: complete).rejections.map(\.pointer) == ["content-type"])
        complete.contentType = "application/json"
        let inside = Array(#"{"type": "INSERT", "table": "t", "schema": "s"}"#.utf8)
        #expect(try ChangeBatch(reading: inside, delivery: complete).rejections.map(\.pointer) == ["/record"])
    }

    // MARK: Bounds: the limit itself, and one above

    private func insert(_ record: String) -> String {
        #"{"type": "INSERT", "table": "t", "schema": "s", "record": \#(record)}"#
    }

    @Test func tooManyItems_areRefused() throws {
        let items = [String](repeating: insert(#"{"id": 1}"#), count: ChangeLimits.itemsMax)
        #expect(try ChangeBatch(reading: Array("[\(items.joined(separator: ","))]".utf8)).changes.count == items.count)
        let error = #expect(throws: Failure.self) {
            _ = try ChangeBatch(reading: Array("[\(items.joined(separator: ",")),null]".utf8))
        }
        #expect(error?.kind == .tooLarge)
        #expect(error?.code == "changes.too_many")
    }

    @Test func tooLargeItem_isRejected_andTooLargeBodyRefused() throws {
        let frame = insert(#"{"id": ""}"#).utf8.count
        let fits = insert(#"{"id": "\#(String(repeating: "x", count: ChangeLimits.itemBytesMax - frame))"}"#)
        #expect(try ChangeFixtures.change(text: fits).record?.count == 1)
        let tooLarge = insert(#"{"id": "\#(String(repeating: "x", count: ChangeLimits.itemBytesMax - frame + 1))"}"#)
        let batch = try ChangeBatch(reading: Array("[\(tooLarge), \(insert(#"{"id": 1}"#))]".utf8))
        #expect(batch.changes.count == 1)
        #expect(batch.rejections.map(\.index) == [0])
        let error = #expect(throws: Failure.self) {
            _ = try ChangeBatch(reading: [UInt8](repeating: 0x20, count: ChangeLimits.bodyBytesMax + 1))
        }
        #expect(error?.kind == .tooLarge)
        #expect(error?.code == "changes.too_large")
    }

    @Test func tooManyColumns_andTooLongNames_areRejected() throws {
        func row(_ count: Int) -> String { "{\((0..<count).map { "\"c\($0)\": 1" }.joined(separator: ","))}" }
        #expect(try ChangeFixtures.change(text: insert(row(ChangeLimits.columnsMax))).record?.count == 1_600)
        #expect(try ChangeFixtures.rejection(text: insert(row(ChangeLimits.columnsMax + 1))).pointer == "/record")
        let name = String(repeating: "n", count: ChangeLimits.nameBytesMax)
        #expect(try ChangeFixtures.change(text: insert(#"{"\#(name)": 1}"#)).record?[name] == .integer(1))
        #expect(try ChangeFixtures.rejection(text: insert(#"{"\#(name)n": 1}"#)).pointer == "/record")
        let table = insert(#"{"id": 1}"#).replacing("\"t\"", with: "\"\(name)\"")
        #expect(try ChangeFixtures.change(text: table).table == name)
        #expect(try ChangeFixtures.rejection(text: table.replacing(name, with: name + "n")).pointer == "/table")
    }

    @Test func tooManyListedColumns_areRejected() throws {
        func frame(_ count: Int) -> String {
            let columns = [String](repeating: #"{"name": "id"}"#, count: count).joined(separator: ",")
            return Self.frame(#""type": "INSERT", "record": {"id": 1}, "columns": [\#(columns)]"#)
        }
        #expect(try ChangeFixtures.change(text: frame(ChangeLimits.columnsMax)).unchangedColumns.isEmpty)
        let rejection = try ChangeFixtures.rejection(text: frame(ChangeLimits.columnsMax + 1))
        #expect(rejection.pointer == "/payload/data/columns")
    }

    @Test func tooDeepItem_isRejected() throws {
        func row(_ depth: Int) -> String {
            #"{"id": \#(String(repeating: "[", count: depth))\#(String(repeating: "]", count: depth))}"#
        }
        #expect(try ChangeFixtures.change(text: insert(row(ChangeLimits.depthMax - 2))).record?.count == 1)
        for depth in [ChangeLimits.depthMax - 1, 300_000] {
            let rejection = try ChangeFixtures.rejection(text: "[\(insert(row(depth)))]")
            #expect(rejection.pointer == "/0")
            #expect(rejection.reason.contains("nesting deeper"))
        }
    }

    /// A body that is not JSON contains no item to reject, so the whole delivery is refused.
    @Test func bodyThatIsNoJSON_isRefused() {
        for text in ["\u{0}", "nul", String(repeating: "[", count: 100)] {
            let failure = #expect(throws: Failure.self) { try ChangeBatch(reading: Array(text.utf8)) }
            #expect(failure?.kind == .malformed, "\(text)")
        }
        for text in ["1", #""change""#, "true"] {
            let failure = #expect(throws: Failure.self) { try ChangeBatch(reading: Array(text.utf8)) }
            #expect(failure?.kind == .invalid, "\(text)")
        }
    }

    /// A single malformed object is rejected like one in an array. If it were refused, its sender would retry it
    /// forever and never send the next one.
    @Test func objectThatComesAlone_isRejected_asInAnArray() throws {
        let deep = insert(#"{"id": \#(String(repeating: "[", count: 50))\#(String(repeating: "]", count: 50))}"#)
        for text in [#"{"a": 01}"#, #"{"a": 1, "a": 2}"#, #"{"a": "\ud800"}"#, "{]", deep, "{}"] {
            let alone = try ChangeFixtures.rejection(text: text)
            let inArray = try ChangeFixtures.rejection(text: "[\(text)]")
            #expect(alone.reason == inArray.reason, "\(text)")
            #expect(alone.pointer == "" && inArray.pointer == "/0", "\(text)")
        }
    }

    @Test func tooLongIds_areRejected() throws {
        func event(_ id: String, _ extra: String = "") -> String {
            let data = insert(#"{"id": 1}"#)
            return #"{"specversion": "1.0", "id": "\#(id)", "source": "/", "type": "t", "data": \#(data)\#(extra)}"#
        }
        let most = ChangeLimits.deduplicationIDBytesMax - "cloudevents:/ ".utf8.count
        let longest = try ChangeFixtures.change(text: event(String(repeating: "i", count: most)))
        #expect(longest.deduplicationID?.utf8.count == ChangeLimits.deduplicationIDBytesMax)
        #expect(try ChangeFixtures.rejection(text: event(String(repeating: "i", count: most + 1))).pointer == "/id")
        let actor = String(repeating: "a", count: Fields.idBytesMax + 1)
        #expect(try ChangeFixtures.rejection(text: event("1", #", "authid": "\#(actor)""#)).pointer == "/authid")
        #expect(try ChangeFixtures.rejection(text: event("1", #", "originid": "a\tb""#)).pointer == "/originid")
    }
}
