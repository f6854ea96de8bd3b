import BellhopClient
import Foundation
import Rows
import TestSupport
import Testing

/// R-SCH-A-001, R-SCH-A-008: every format that a feed may send, from the delivery to the stream, over real HTTP.
@Suite(.timed) struct FeedFormatsTests {
    let probe: FeedProbe

    init() throws { probe = try FeedProbe() }

    /// The expected result of one recorded payload.
    struct Recorded: Sendable, CustomTestStringConvertible {
        let name: String
        /// `TYPE table record` of each delivered row, in order.
        var delivered: [String] = []
        /// `index pointer` of each rejected item.
        var rejected: [String] = []
        /// The number of accepted items that deliver nothing.
        var silent = 0
        var headers: [String: String] = [:]
        var testDescription: String { name }
    }

    private static let sticker = "student_stickers 7c9e6679-7425-40de-944b-e07fc1f90ae7"
    private static let attributes = [
        "ce-specversion": "1.0", "ce-type": "com.example.row", "ce-source": "/school/1", "ce-id": "A234-1234-1234",
        "ce-time": "2018-04-05T17:31:05Z", "ce-authid": "teacher-1", "ce-originid": "tab-7",
    ]

    static let recorded = [
        Recorded(name: "supabase-webhook-insert", delivered: ["INSERT \(sticker)"]),
        Recorded(name: "supabase-webhook-update", delivered: ["UPDATE \(sticker)"]),
        Recorded(name: "supabase-webhook-delete", delivered: ["DELETE \(sticker)"]),
        Recorded(name: "supabase-realtime-insert", delivered: ["INSERT notes 1"]),
        Recorded(name: "supabase-realtime-update", delivered: ["UPDATE test 46"]),
        Recorded(name: "supabase-realtime-delete", delivered: ["DELETE notes 1"]),
        Recorded(name: "supabase-realtime-update-unchanged-toast", delivered: ["UPDATE notes 1"]),
        Recorded(name: "supabase-realtime-update-too-large", delivered: ["UPDATE notes 1"]),
        Recorded(name: "supabase-realtime-unauthorized", rejected: ["0 /payload/data/errors"]),
        // The table's key in the payload differs from the declared one.
        Recorded(name: "supabase-realtime-update-replica-identity-full", rejected: ["0 /payload/data/record/id"]),
        Recorded(name: "broadcast-changes-insert", delivered: ["INSERT posts p1"]),
        Recorded(name: "broadcast-changes-update", delivered: ["UPDATE posts p1"]),
        Recorded(name: "broadcast-changes-delete", delivered: ["DELETE posts p1"]),
        Recorded(name: "broadcast-changes-frame", delivered: ["UPDATE posts p1"]),
        Recorded(name: "debezium-create", delivered: ["INSERT customers 1"]),
        Recorded(name: "debezium-update", delivered: ["UPDATE customers 1"]),
        Recorded(name: "debezium-delete", delivered: ["DELETE customers 1"]),
        Recorded(name: "debezium-update-unchanged-toast", delivered: ["UPDATE customers 1"]),
        Recorded(name: "debezium-create-mysql", delivered: ["INSERT customers 1004"]),
        Recorded(name: "debezium-create-typed", rejected: ["0 /payload/after/id"]),
        Recorded(name: "debezium-message", rejected: ["0 /op"]),
        Recorded(name: "debezium-read", silent: 1),
        Recorded(name: "debezium-truncate", silent: 1),
        Recorded(name: "debezium-tombstone", silent: 1),
        Recorded(name: "cloudevents-structured", delivered: ["UPDATE \(sticker)"]),
        Recorded(name: "cloudevents-structured-base64", delivered: ["UPDATE \(sticker)"]),
        Recorded(name: "cloudevents-binary-body", delivered: ["UPDATE \(sticker)"], headers: attributes),
        Recorded(
            name: "cloudevents-batch", delivered: ["UPDATE \(sticker)", "UPDATE \(sticker)"],
            headers: ["Content-Type": "application/cloudevents-batch+json"]),
        Recorded(name: "cloudevents-debezium", silent: 1),
        Recorded(name: "cloudevents-debezium-avro", rejected: ["0 /datacontenttype"]),
        Recorded(
            name: "batch-mixed",
            delivered: [
                "INSERT \(sticker)", "UPDATE test 46", "UPDATE posts p1", "INSERT customers 1", "UPDATE \(sticker)",
            ],
            silent: 1),
    ]

    @Test func everyRecordedPayload_isTried() throws {
        let folder = repository.appendingPathComponent("Tests/Fixtures/Changes")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".json") }
        #expect(Set(files) == Set(Self.recorded.map { $0.name + ".json" }))
    }

    @Test(arguments: recorded)
    func recordedPayload_isTaken_andDeliveredToStreams(expected: Recorded) async throws {
        let stream = try await probe.listen()
        let answer = try await probe.send(FeedProbe.fixture(expected.name), expected.headers)
        #expect(
            answer.counts == [202, expected.delivered.count + expected.silent, 0, expected.rejected.count],
            "\(answer.text)")
        #expect(answer.places == expected.rejected)
        let causes = try await probe.received(stream)
        let delivered = causes.map {
            "\($0["type"].string ?? "") \($0["table"].string ?? "") \($0["recordId"].string ?? "")"
        }
        // The same row twice within a window is one cause; a different author makes it another.
        #expect(Set(delivered) == Set(expected.delivered), "\(causes)")
        if expected.name.hasPrefix("cloudevents-"), let cause = causes.first {
            expect(cause, has: ["actorId": "teacher-1", "originId": "tab-7"])
        }
    }

    static let forms = ChangeFormat.allCases.filter { $0 != .batch }

    /// Each format alone and in an array, detected by its shape or named explicitly.
    @Test(arguments: forms)
    func everyForm_isTaken_aloneAndInABatch(format: ChangeFormat) async throws {
        let stream = try await probe.listen()
        let alone = try await probe.send(FeedProbe.insertion(1, in: format))
        #expect(alone.counts == [202, 1, 0, 0], "\(alone.text)")
        let named = try await probe.send(FeedProbe.insertion(2, in: format), format: format.rawValue)
        #expect(named.counts == [202, 1, 0, 0], "\(named.text)")
        let batch = JSON.array((3...5).map { FeedProbe.insertion($0, in: format) })
        for form in [nil, "batch"] {
            let together = try await probe.send(batch, ["webhook-id": "delivery-\(form ?? "")"], format: form)
            // An item with an id of its own is a duplicate the second time; the others use the id of the delivery.
            let known = form != nil && [.broadcastChanges, .debezium, .cloudEvents].contains(format)
            #expect(together.counts == [202, known ? 0 : 3, known ? 3 : 0, 0], "\(together.text)")
        }
        let delivered = try await probe.received(stream).compactMap { $0["recordId"].string }
        #expect(Set(delivered) == ["n1", "n2", "n3", "n4", "n5"])
    }

    /// If a format is named, items of other formats are rejected.
    @Test func namedForm_refusesOthers_oneByOne() async throws {
        let mixed = JSON.array(Self.forms.enumerated().map { FeedProbe.insertion($0.offset, in: $0.element) })
        for format in Self.forms {
            let answer = try await probe.send(mixed, ["webhook-id": "as-\(format.rawValue)"], format: format.rawValue)
            #expect(answer.counts == [202, 1, 0, Self.forms.count - 1], "\(format): \(answer.text)")
        }
        let unknown = try await probe.send(mixed, format: "xml")
        #expect(unknown.mistakes == "422 ?format")
        let alone = try await probe.send(FeedProbe.event(9), format: "batch")
        #expect(alone.refusal == "422 changes.not_a_batch")
    }

    /// The media types and headers of CloudEvents constrain the body.
    @Test func eventsHeaders_mustFitTheBody() async throws {
        let type = ["Content-Type": "application/cloudevents+json; charset=utf-8"]
        #expect(try await probe.send(FeedProbe.event(1), type).counts == [202, 1, 0, 0])
        #expect(try await probe.send([FeedProbe.event(2)], type).counts == [202, 1, 0, 0])
        let noEvent = try await probe.send(School.insert("notes", FeedProbe.note("n3")), type)
        #expect(noEvent.counts == [202, 0, 0, 1], "\(noEvent.text)")
        let halfNamed = try await probe.send(
            School.insert("notes", FeedProbe.note("n4")), ["ce-specversion": "1.0", "ce-id": "x", "ce-type": "t"])
        #expect(halfNamed.places == ["0 ce-source"], "\(halfNamed.text)")
        // In binary mode the body is the data, so the position of a mistake is relative to the body.
        let headers = ["ce-specversion": "1.0", "ce-id": "x", "ce-type": "t", "ce-source": "/notes"]
        let keyless = try await probe.send(School.insert("notes", ["body": "hello"]), headers)
        #expect(keyless.places == ["0 /record/id"], "\(keyless.text)")
    }
}
