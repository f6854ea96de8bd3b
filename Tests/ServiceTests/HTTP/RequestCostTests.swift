import CAllocations
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Attack: a user sends the requests that cost the most. Harm: other users wait.
///
/// The tests count allocations and their bytes, which do not depend on the machine or its load. The bounds are a tenth
/// above the figures of a debug build, which allocates more than a release. `Docs/threat-model.md` has the time of the
/// processor.
@Suite(.timed) struct RequestCostTests {
    /// The allocations of the calling thread.
    private struct Cost {
        let allocations: Int
        let kibibytes: Int

        init(of body: () throws -> Void) rethrows {
            let before = (callocations_count(), callocations_bytes())
            try body()
            allocations = Int(callocations_count() - before.0)
            kibibytes = Int(callocations_bytes() - before.1) / 1024
        }
    }

    /// A request body, and the most that handling it may cost.
    struct Body: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        let allocationsMax: Int
        let kibibytesMax: Int

        init(_ name: String, _ text: String, allocations: Int, kibibytes: Int) {
            (testDescription, bytes) = (name, Array(text.utf8))
            (allocationsMax, kibibytesMax) = (allocations, kibibytes)
        }
    }

    // MARK: Subscriptions

    private static func digits(_ count: Int) -> String {
        String(repeating: "1234567890", count: count / 10 + 1).prefix(count).description
    }

    private static func tables(_ filters: [String], of table: String = "notes") -> String {
        let tables = filters.enumerated().map {
            JSONValue.object(["id": .string("s\($0)"), "table": .string(table), "filter": .string($1)])
        }
        return String(decoding: JSONWriter.bytes(JSONValue.object(["tables": .array(tables)])), as: UTF8.self)
    }

    /// Twenty conditions in each of 100 filters.
    private static func conditions(of table: String = "notes", _ condition: (Int) -> String) -> String {
        tables(
            (0..<100).map { filter in (0..<20).map { condition(filter * 20 + $0) }.joined(separator: ",") }, of: table)
    }

    /// The most values that one stream may have.
    private static func values(of table: String = "notes", _ column: String = "id", _ value: (Int) -> String) -> String
    {
        tables(
            (0..<10).map { filter in
                "\(column)=in.(\((0..<1000).map { value(filter * 1000 + $0 + 1_000_000) }.joined(separator: ",")))"
            }, of: table)
    }

    private static let columns: ColumnTypes = ["n": .numeric, "d": .double, "t": .timestamptz, "u": .uuid]

    static let subscriptions = [
        Body(
            "conditions with the longest numbers", conditions { "c=gt.\(digits(127 - $0 % 7))" },
            allocations: 660_000, kibibytes: 36_000),
        Body(
            "conditions with numbers of 17 digits",
            conditions { "c=gt.\(1_234_567_890_123_456_0 + $0)e-\(200 + $0 % 90)" },
            allocations: 300_000, kibibytes: 16_500),
        Body(
            "conditions of type numeric", conditions(of: "typed") { "n=gt.\(digits(127 - $0 % 7))" },
            allocations: 2_600_000, kibibytes: 80_000),
        Body(
            "conditions of type double precision", conditions(of: "typed") { "d=gt.0.\(digits(125 - $0 % 7))" },
            allocations: 2_400_000, kibibytes: 70_000),
        Body("values: long numbers", values { "\($0)\(digits(55))" }, allocations: 1_800_000, kibibytes: 84_000),
        Body(
            "values: numbers with exponents", values { "\(digits(10))\($0)e\($0 % 90 + 200)" }, allocations: 1_350_000,
            kibibytes: 52_000),
        Body(
            "values: times", values { "20\($0 % 90 + 10)-01-10T09:30:00.\($0)Z" }, allocations: 1_500_000,
            kibibytes: 52_000),
        Body(
            "values: UUIDs in capitals", values { "01234567-89AB-CDEF-0123-45678\($0)" }, allocations: 1_850_000,
            kibibytes: 64_000),
        Body(
            "values of type numeric", values(of: "typed", "n") { "\($0)\(digits(55))" }, allocations: 6_600_000,
            kibibytes: 195_000),
        Body(
            "values of type double precision", values(of: "typed", "d") { "\(digits(10))\($0)e\($0 % 90 + 200)" },
            allocations: 2_900_000, kibibytes: 85_000),
        Body(
            "values of type uuid", values(of: "typed", "u") { "01234567-89AB-CDEF-0123-45678\($0)" },
            allocations: 6_200_000, kibibytes: 200_000),
        Body("values: texts", values { "x\(digits(52))\($0)" }, allocations: 1_700_000, kibibytes: 84_000),
    ]

    /// A stream reads its subscriptions, stores them in the index of its shard, and describes them in the answer.
    @Test(arguments: subscriptions) func subscriptions_areCheap(body: Body) throws {
        #expect(body.bytes.count <= StreamLimits.subscriptionsBytesMax)
        let cost = try Cost {
            var fields = try Fields(body.bytes)
            let listed = fields.values("tables", countMax: FilterLimits.subscriptionsPerStreamMax)
            let tables = try TableSubscription.list(listed ?? [], at: "/tables") { _, table in
                table == "typed" ? Self.columns : nil
            }
            var rows = RowSubscriptions(shards: 1)
            try rows.replace(0, of: Owner(tenant: "default", userId: "ada"), with: tables, floor: nil)
            var writer = JSONWriter()
            writer.array(tables)
        }
        #expect(cost.allocations <= body.allocationsMax, "\(cost)")
        #expect(cost.kibibytes <= body.kibibytesMax, "\(cost)")
    }

    // MARK: Headers

    /// A client without a token may request a page with a header of 12 KiB that lists tags. Each byte costs once: a
    /// debug build allocates for it, a release does not.
    @Test(arguments: ["\"a\",", "a,", ",", "W/,", "\"1-epoch-ada-x\",", "a   ,"]) func tags_areCheap(part: String) {
        let header = Array(String(repeating: part, count: 12 * 1024 / part.utf8.count).utf8)
        let tag = Array("\"1-epoch-ada\"".utf8)
        let find = {
            tag.withUnsafeBufferPointer { tag in
                header.withUnsafeBufferPointer { EntityTag.isNamed(tag, by: $0) }
            }
        }
        // The marks of proxies are made once.
        #expect(!find())
        let cost = Cost { _ = find() }
        #expect(cost.allocations <= 16 * header.count, "\(cost)")
    }

    // MARK: Bodies

    /// A body of the maximum length of one endpoint, filled with one kind of value.
    private static func filled(_ bytesMax: Int, _ opening: String, _ item: (Int) -> String, _ closing: String) -> String
    {
        var text = opening
        var (number, count) = (0, opening.utf8.count + closing.utf8.count)
        while true {
            let next = (number == 0 ? "" : ",") + item(number)
            count += next.utf8.count
            guard count <= bytesMax else { return text + closing }
            text += next
            number += 1
        }
    }

    private static let deepest = (
        objects: String(repeating: "{\"\":", count: 30) + "0" + String(repeating: "}", count: 30),
        arrays: String(repeating: "[", count: 30) + String(repeating: "]", count: 30)
    )

    static let bodies = [Limits.bodyBytesMax, StreamLimits.subscriptionsBytesMax].flatMap { bytes in
        let name = "\(bytes / 1024) KiB"
        return [
            Body(
                "\(name) of empty objects", filled(bytes, #"{"tables":["#, { _ in "{}" }, "]}"),
                allocations: 100, kibibytes: 1_750),
            Body(
                "\(name) of integers", filled(bytes, #"{"x":["#, { _ in "0" }, "]}"), allocations: 100, kibibytes: 1_750
            ),
            Body(
                "\(name) of fractions", filled(bytes, #"{"x":["#, { _ in "1e9" }, "]}"), allocations: 100,
                kibibytes: 1_000),
            Body(
                "\(name) of one number", #"{"x":0."# + String(repeating: "1", count: bytes - 9) + "}",
                allocations: 100, kibibytes: 1_200),
            Body(
                "\(name) of members", filled(bytes, "{", { "\"\($0)\":0" }, "}"), allocations: 100, kibibytes: 2_900),
            Body(
                "\(name) of objects", filled(bytes, #"{"x":["#, { _ in #"{"":0}"# }, "]}"),
                allocations: 10_400, kibibytes: 4_800),
            Body(
                "\(name) of the deepest objects", filled(bytes, #"{"x":["#, { _ in deepest.objects }, "]}"),
                allocations: 17_500, kibibytes: 6_800),
            Body(
                "\(name) of the deepest arrays", filled(bytes, #"{"x":["#, { _ in deepest.arrays }, "]}"),
                allocations: 34_500, kibibytes: 2_000),
            Body(
                "\(name) of escapes", #"{"x":""# + String(repeating: #"\n"#, count: bytes / 2 - 8) + "\"}",
                allocations: 100, kibibytes: 1_130),
            Body(
                "\(name) of texts", filled(bytes, #"{"x":["#, { _ in #""aaaaaaaaaaaaaaaa""# }, "]}"),
                allocations: 18_000, kibibytes: 2_000),
        ]
    }

    /// The limits on a body's contents apply once it is parsed, so every body is parsed.
    @Test(arguments: bodies) func bodies_areCheap(body: Body) {
        let cost = Cost {
            // As the service does for each of the two lengths.
            let isLong = body.bytes.count > Limits.bodyBytesMax
            _ = try? JSONValue(
                parsing: body.bytes, valuesMax: isLong ? StreamLimits.subscriptionsValuesMax : .max)
        }
        #expect(cost.allocations <= body.allocationsMax, "\(cost)")
        #expect(cost.kibibytes <= body.kibibytesMax, "\(cost)")
    }
}
