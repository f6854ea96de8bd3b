import TestSupport
import Testing
import Values

@testable import Rows

/// R-SCH-A-001, R-SCH-A-008: table changes are accepted in the formats that their senders use.
@Suite(.timed) struct ChangeFormatsTests {
    struct Expectation: Sendable, CustomTestStringConvertible {
        let name: String
        let format: ChangeFormat
        let table: String
        let kind: TableChange.Kind
        var hasRecord = true
        var hasOldRecord = true
        var commitTimestamp: String?
        var testDescription: String { name }
    }

    static let expectations: [Expectation] = [
        Expectation(
            name: "supabase-webhook-insert", format: .supabaseWebhook, table: "public.student_stickers",
            kind: .insert, hasOldRecord: false),
        Expectation(
            name: "supabase-webhook-update", format: .supabaseWebhook, table: "public.student_stickers",
            kind: .update),
        Expectation(
            name: "supabase-webhook-delete", format: .supabaseWebhook, table: "public.student_stickers",
            kind: .delete, hasRecord: false),
        Expectation(
            name: "supabase-realtime-insert", format: .supabaseRealtime, table: "public.notes", kind: .insert,
            hasOldRecord: false, commitTimestamp: "2000-01-01T00:01:01.000Z"),
        Expectation(
            name: "supabase-realtime-update", format: .supabaseRealtime, table: "public.test", kind: .update,
            commitTimestamp: "2025-11-19T00:22:40.877Z"),
        Expectation(
            name: "supabase-realtime-update-replica-identity-full", format: .supabaseRealtime, table: "public.notes",
            kind: .update, commitTimestamp: "2000-01-01T00:01:01.000Z"),
        Expectation(
            name: "supabase-realtime-delete", format: .supabaseRealtime, table: "public.notes", kind: .delete,
            hasRecord: false, commitTimestamp: "2000-01-01T00:01:01.000Z"),
        Expectation(
            name: "broadcast-changes-insert", format: .broadcastChanges, table: "public.posts", kind: .insert,
            hasOldRecord: false),
        Expectation(name: "broadcast-changes-update", format: .broadcastChanges, table: "public.posts", kind: .update),
        Expectation(
            name: "broadcast-changes-delete", format: .broadcastChanges, table: "public.posts", kind: .delete,
            hasRecord: false),
        Expectation(name: "broadcast-changes-frame", format: .broadcastChanges, table: "public.posts", kind: .update),
        Expectation(
            name: "debezium-create", format: .debezium, table: "public.customers", kind: .insert,
            hasOldRecord: false, commitTimestamp: "2019-05-28T08:58:24.863Z"),
        Expectation(
            name: "debezium-update", format: .debezium, table: "public.customers", kind: .update,
            commitTimestamp: "2019-05-28T08:58:24.863Z"),
        Expectation(
            name: "debezium-delete", format: .debezium, table: "public.customers", kind: .delete, hasRecord: false,
            commitTimestamp: "2019-05-28T08:58:24.863Z"),
        Expectation(
            name: "debezium-truncate", format: .debezium, table: "public.customers", kind: .truncate,
            hasRecord: false, hasOldRecord: false, commitTimestamp: "2019-05-28T08:58:24.863Z"),
        Expectation(
            name: "debezium-read", format: .debezium, table: "public.customers", kind: .snapshot,
            hasOldRecord: false, commitTimestamp: "2019-05-28T08:58:24.863Z"),
        Expectation(
            name: "debezium-create-mysql", format: .debezium, table: "inventory.customers", kind: .insert,
            hasOldRecord: false),
        Expectation(
            name: "cloudevents-structured", format: .cloudEvents, table: "public.student_stickers", kind: .update,
            commitTimestamp: "2018-04-05T17:31:05.000Z"),
        Expectation(
            name: "cloudevents-structured-base64", format: .cloudEvents, table: "public.student_stickers",
            kind: .update, commitTimestamp: "2018-04-05T17:31:05.000Z"),
        Expectation(
            name: "cloudevents-debezium", format: .cloudEvents, table: "s1.a", kind: .snapshot, hasOldRecord: false,
            commitTimestamp: "2020-01-13T13:55:39.738Z"),
    ]

    @Test(arguments: expectations)
    func recordedPayload_isUnderstood_byItsShape(expected: Expectation) throws {
        let change = try ChangeFixtures.change(expected.name)
        #expect(change.format == expected.format)
        #expect("\(change.schema).\(change.table)" == expected.table)
        #expect(change.kind == expected.kind)
        #expect((change.record != nil) == expected.hasRecord)
        #expect((change.oldRecord != nil) == expected.hasOldRecord)
        #expect(change.commitTimestamp?.rfc3339 == expected.commitTimestamp)
    }

    @Test(arguments: expectations)
    func recordedPayload_isUnderstood_byItsName_andUnderNoOther(expected: Expectation) throws {
        let byShape = try ChangeFixtures.change(expected.name)
        #expect(try ChangeFixtures.change(expected.name, format: expected.format) == byShape)
        for other in ChangeFormat.allCases where other != expected.format && other != .batch {
            let batch = try ChangeBatch(reading: ChangeFixtures.bytes(expected.name), format: other)
            #expect(batch.changes.isEmpty, "\(other)")
            #expect(batch.rejections.count == 1, "\(other)")
        }
    }

    @Test func supabaseWebhook_hasEveryValueAsItIs() throws {
        let record = try #require(try ChangeFixtures.change("supabase-webhook-insert").record)
        #expect(record["points"] == .integer(5))
        #expect(record["note"] == .null)
        #expect(record["approved"] == .bool(true))
        #expect(record["awarded_at"] == .string("2026-01-10T09:30:00.123456+00:00"))
        #expect(record["tags"] == .array([.string("kind"), .string("quick")]))
        #expect(record["meta"] == .object(["colour": .string("gold"), "size": .number(2.5)]))
    }

    /// A webhook has no id, and equal content is not a duplicate: a row may change A→B→A→B.
    @Test func formatsWithoutAnId_haveNoDuplicates_exceptByTheDelivery() throws {
        #expect(try ChangeFixtures.change("supabase-webhook-update").deduplicationID == nil)
        #expect(try ChangeFixtures.change("supabase-realtime-update").deduplicationID == nil)
        var delivery = ChangeDelivery()
        delivery.deliveryID = "msg_1"
        let body =
            Array("[".utf8) + (try ChangeFixtures.bytes("supabase-webhook-insert")) + Array(",".utf8)
            + (try ChangeFixtures.bytes("supabase-webhook-insert")) + Array("]".utf8)
        let batch = try ChangeBatch(reading: body, delivery: delivery)
        #expect(batch.changes.map(\.deduplicationID) == ["webhook:msg_1/0", "webhook:msg_1/1"])
        let own = try ChangeFixtures.change("broadcast-changes-insert", delivery: delivery)
        #expect(own.deduplicationID == "broadcast:513edcc1-4cbc-4274-aa26-c195f7e8c090")
    }

    @Test func broadcastFrame_hasItsIdInMeta() throws {
        #expect(
            try ChangeFixtures.change("broadcast-changes-frame").deduplicationID
                == "broadcast:006554ce-d22d-469c-877a-88bef47214a3")
    }

    @Test func debeziumId_isThePositionAndTheContent_andSurvivesARestart() throws {
        let body = String(decoding: try ChangeFixtures.bytes("debezium-update"), as: UTF8.self)
        let id = try #require(try ChangeFixtures.change(text: body).deduplicationID)
        // FNV-1a, 128 bits, of ["postgresql","PostgreSQL_server","public","customers","u",{"lsn":"24023128",
        // "txId":"556"},{"id":1},{…}] without spaces.
        #expect(id == "debezium:4c12d1ec9886836ff432ebe7544ae317")
        func changed(_ old: String, _ new: String) throws -> String? {
            #expect(body.contains(old))
            return try ChangeFixtures.change(text: body.replacing(old, with: new)).deduplicationID
        }
        #expect(try changed("\"ts_ms\": 1465584025523,", "\"ts_ms\": 1465584099999,") == id)
        #expect(try changed("3.0.0.Final", "3.0.1.Final") == id)
        #expect(try changed("24023128", "24023129") != id)
        #expect(try changed("Anne Marie", "Anne") != id)
        #expect(try changed("\"table\": \"customers\"", "\"table\": \"clients\"") != id)
        #expect(try ChangeFixtures.change("debezium-create-mysql").deduplicationID != nil)
    }

    /// All rows of a snapshot share one position, so Debezium gives their CloudEvents the same id.
    @Test func debeziumInCloudEvents_areNotDuplicates_forHavingOneId() throws {
        let body = String(decoding: try ChangeFixtures.bytes("cloudevents-debezium"), as: UTF8.self)
        let bob = try ChangeFixtures.change(text: body)
        let alice = try ChangeFixtures.change(text: body.replacing("\"Bob\"", with: "\"Alice\""))
        #expect(bob.deduplicationID != alice.deduplicationID)
        #expect(bob.deduplicationID == (try ChangeFixtures.change(text: body)).deduplicationID)
        #expect(bob.record == ["pk": .integer(1), "name": .string("Bob")])
    }

    /// The same event in binary mode, and with a schema: attribute names are lower case and values are text.
    @Test func debeziumInCloudEvents_isUnderstood_inBinaryMode_andWithSchema() throws {
        let delivery = try ChangeDelivery(headers: [
            ("ce-specversion", "1.0"), ("ce-id", "name:s;lsn:1;txId:2"), ("ce-source", "/debezium/postgresql/s"),
            ("ce-type", "io.debezium.connector.postgresql.DataChangeEvent"), ("ce-iodebeziumop", "u"),
            ("ce-iodebeziumconnector", "postgresql"), ("ce-iodebeziumname", "s"), ("ce-iodebeziumschema", "public"),
            ("ce-iodebeziumtable", "a"), ("ce-iodebeziumtxid", "2"), ("ce-iodebeziumlsn", "1"),
            ("ce-iodebeziumtsms", "1578923739738"), ("content-type", "application/json"),
        ])
        let fields =
            #"[{"field": "pk", "type": "int32"}, {"field": "d", "type": "x", "name": "io.debezium.time.Date"}]"#
        let schema = #"{"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": \#(fields)}]}"#
        let rows = #"{"before": null, "after": {"pk": 1, "d": 0}}"#
        let bare = try ChangeFixtures.change(text: rows, delivery: delivery)
        #expect(bare.kind == .update)
        #expect(bare.schema == "public")
        #expect(bare.table == "a")
        #expect(bare.format == .cloudEvents)
        #expect(bare.commitTimestamp?.rfc3339 == "2020-01-13T13:55:39.738Z")
        #expect(bare.record == ["pk": .integer(1), "d": .integer(0)])
        let typed = try ChangeFixtures.change(text: #"{"schema": \#(schema), "payload": \#(rows)}"#, delivery: delivery)
        #expect(typed.record?["d"] == .string("1970-01-01"))
        #expect(typed.deduplicationID == bare.deduplicationID)
    }

    @Test func cloudEvent_namesItsActorAndOrigin_andItsId() throws {
        var delivery = ChangeDelivery()
        delivery.originID = "backend"
        delivery.deliveryID = "msg_1"
        let change = try ChangeFixtures.change("cloudevents-structured", delivery: delivery)
        #expect(change.actorID == "teacher-1")
        #expect(change.originID == "tab-7")
        #expect(change.deduplicationID == "cloudevents:/school/1 C234-1234-1234")
        let webhook = try ChangeFixtures.change("supabase-webhook-update", delivery: delivery)
        #expect(webhook.originID == "backend")
        #expect(webhook.actorID == nil)
    }

    @Test func cloudEvent_inBinaryMode_hasItsAttributesInHeaders() throws {
        let delivery = try ChangeDelivery(headers: [
            ("CE-SpecVersion", "1.0"), ("ce-id", "C234%2F1"), ("ce-source", "\"/school/1\""), ("ce-type", "row"),
            ("ce-time", "2018-04-05T17:31:05Z"), ("Content-Type", "application/json; charset=utf-8"),
            ("ce-authid", "J%C3%BCrgen"), ("X-Client-Id", "tab-9"),
        ])
        let change = try ChangeFixtures.change("cloudevents-binary-body", delivery: delivery)
        #expect(change.format == .cloudEvents)
        #expect(change.deduplicationID == "cloudevents:/school/1 C234/1")
        #expect(change.actorID == "Jürgen")
        #expect(change.originID == "tab-9")
        #expect(change.commitTimestamp == Timestamp(rfc3339: "2018-04-05T17:31:05Z"))
        #expect(throws: Failure.self) { try ChangeDelivery(headers: [("ce-id", "a%2")]) }
        #expect(throws: Failure.self) { try ChangeDelivery(headers: [("ce-id", "a"), ("CE-ID", "b")]) }
        #expect(throws: Failure.self) { try ChangeDelivery(headers: [("webhook-id", "")]) }
        #expect(throws: Failure.self) { try ChangeDelivery(headers: [("webhook-id", "a"), ("Webhook-Id", "b")]) }
    }

    @Test func cloudEventsBatch_isAnArrayOfEventsOnly() throws {
        var delivery = ChangeDelivery()
        delivery.contentType = "application/cloudevents-batch+json"
        let batch = try ChangeBatch(reading: ChangeFixtures.bytes("cloudevents-batch"), delivery: delivery)
        #expect(
            batch.changes.map(\.deduplicationID) == [
                "cloudevents:/school/1 B234-1234-1234", "cloudevents:/school/1 C234-1234-1234",
            ])
        #expect(batch.changes[0].record == batch.changes[1].record)
        #expect(try ChangeBatch(reading: Array("[]".utf8), delivery: delivery).items.isEmpty)
        let mixed = try ChangeBatch(reading: ChangeFixtures.bytes("batch-mixed"), delivery: delivery)
        #expect(mixed.changes.count == 1)
        #expect(mixed.rejections.map(\.index) == [0, 1, 2, 3, 5])
        delivery.contentType = "application/cloudevents+json"
        #expect(try ChangeFixtures.change("cloudevents-structured", delivery: delivery).kind == .update)
        // Debezium Server sends an array under the type of a single event.
        let array = try ChangeBatch(reading: ChangeFixtures.bytes("cloudevents-batch"), delivery: delivery)
        #expect(array == batch)
    }

    /// `[join_ref, ref, topic, event, payload]`
    @Test func realtimeFrame_ofVersionTwo_isTheSameChange() throws {
        let text = String(decoding: try ChangeFixtures.bytes("supabase-realtime-update"), as: UTF8.self)
        guard case .object(let frame) = try JSONValue(parsing: Array(text.utf8), isExact: true) else { return }
        let array = JSONValue.array([.null, .string("4"), "realtime:x", "postgres_changes", frame["payload"] ?? .null])
        var expected = try ChangeFixtures.change("supabase-realtime-update")
        expected.movePointers { RealtimeFrame.place(of: $0) }
        #expect(expected.place(of: "/record/id") == "/4/data/record/id")
        #expect(try ChangeFixtures.only(ChangeBatch(reading: JSONWriter.bytes(array))) == expected)
        let two = try ChangeBatch(reading: JSONWriter.bytes(JSONValue.array([array, array])))
        #expect(two.changes == [expected, expected])
        let reply = #"["1", "1", "realtime:x", "phx_reply", {"status": "ok", "response": {}}]"#
        #expect(try ChangeFixtures.rejection(text: reply).reason.contains("has an unknown format"))
    }

    @Test func array_mayContainAnyForm_andTombstonesAreIgnored() throws {
        for format in [nil, ChangeFormat.batch] {
            let batch = try ChangeBatch(reading: ChangeFixtures.bytes("batch-mixed"), format: format)
            #expect(
                batch.changes.map(\.format) == [
                    .supabaseWebhook, .supabaseRealtime, .broadcastChanges, .debezium, .cloudEvents,
                ])
            #expect(batch.items.count == 6)
            #expect(batch.rejections.isEmpty)
            guard case .ignored = batch.items[5] else {
                Issue.record("a null in an array must be a tombstone")
                return
            }
        }
        #expect(throws: Failure.self) {
            try ChangeBatch(reading: ChangeFixtures.bytes("debezium-create"), format: .batch)
        }
        for tombstone in ["null", #"{"schema": null, "payload": null}"#] {
            let batch = try ChangeBatch(reading: Array(tombstone.utf8))
            #expect(batch.changes.isEmpty)
            #expect(batch.rejections.isEmpty)
            #expect(batch.items.count == 1)
        }
    }

    @Test func primaryKey_isTakenFromTheRowThatIsThere() throws {
        let update = try ChangeFixtures.change("debezium-update")
        #expect(try update.primaryKey(["id"]).text == "1")
        let delete = try ChangeFixtures.change("supabase-webhook-delete")
        #expect(try delete.primaryKey(["id"]).text == "7c9e6679-7425-40de-944b-e07fc1f90ae7")
        #expect(try delete.primaryKey(["student_id", "sticker_id"]).text == #"["st-1",14]"#)
        func fault(_ change: TableChange, _ columns: [String]) -> ChangeFault? {
            do throws(ChangeFault) {
                _ = try change.primaryKey(columns)
                return nil
            } catch {
                return error
            }
        }
        #expect(fault(update, ["a/b"])?.pointer == "/record/a~1b")
        #expect(fault(delete, ["note"])?.pointer == "/oldRecord/note")
        #expect(fault(delete, ["tags"])?.pointer == "/oldRecord/tags")
        #expect(fault(update, [])?.reason == "belongs to a table without declared primary key columns")
        let truncate = try ChangeFixtures.change("debezium-truncate")
        #expect(fault(truncate, ["id"])?.reason == "has no row: TRUNCATE does not include one")
        var long = update
        long.record?["id"] = .string(String(repeating: "x", count: ChangeLimits.primaryKeyBytesMax + 1))
        #expect(fault(long, ["id"])?.pointer == "/record")
    }
}
