import Rows
import TestSupport
import Testing
import Values

/// For any input, reading ends without a crash and gives the same result when repeated.
@Suite(.timed) struct ChangeFuzzTests {
    private struct Round {
        let seed: UInt64
        var random: SeededGenerator
        let fixtures: [[UInt8]]

        init(_ test: String = #function) throws {
            seed = randomSeed(of: test)
            random = SeededGenerator(seed: seed)
            fixtures = try ChangeFixtures.names().map { try ChangeFixtures.bytes($0) }
        }

        mutating func fixture() -> [UInt8] { fixtures[Int.random(in: 0..<fixtures.count, using: &random)] }

        mutating func delivery() -> ChangeDelivery {
            var delivery = ChangeDelivery()
            if Int.random(in: 0..<8, using: &random) == 0 {
                delivery.attributes = [
                    "specversion": "1.0", "id": "1", "source": "/", "type": "t", "iodebeziumop": "c",
                ]
            }
            if Int.random(in: 0..<8, using: &random) == 0 {
                delivery.contentType = [
                    "application/cloudevents+json", "application/cloudevents-batch+json", "application/json", "text/x",
                ].randomElement(using: &random)
            }
            if Int.random(in: 0..<4, using: &random) == 0 { delivery.deliveryID = "msg" }
            return delivery
        }

        mutating func format() -> ChangeFormat? {
            Int.random(in: 0..<4, using: &random) == 0 ? ChangeFormat.allCases.randomElement(using: &random) : nil
        }
    }

    /// Reads a body twice and checks the invariants of every result. Returns how many items became changes.
    private func read(_ body: [UInt8], _ delivery: ChangeDelivery, _ format: ChangeFormat?, seed: UInt64) -> Int {
        let first = Result { () throws(Failure) in
            try ChangeBatch(reading: body, delivery: delivery, format: format)
        }
        let second = Result { () throws(Failure) in
            try ChangeBatch(reading: body, delivery: delivery, format: format)
        }
        #expect(first == second, "seed \(seed)")
        guard case .success(let batch) = first else { return 0 }
        for (index, item) in batch.items.enumerated() {
            switch item {
            case .ignored: break
            case .rejected(let rejection):
                #expect(rejection.index == index, "seed \(seed)")
                #expect(!rejection.reason.isEmpty, "seed \(seed)")
                let isPlace = rejection.pointer.isEmpty || rejection.pointer.hasPrefix("/")
                #expect(
                    isPlace || rejection.pointer.hasPrefix("ce-") || rejection.pointer == "content-type",
                    "seed \(seed): \(rejection)")
            case .change(let change): check(change, seed: seed)
            }
        }
        return batch.changes.count
    }

    private func check(_ change: TableChange, seed: UInt64) {
        #expect(!change.schema.isEmpty, "seed \(seed)")
        #expect(!change.table.isEmpty, "seed \(seed)")
        switch change.kind {
        case .insert, .snapshot:
            #expect(change.record != nil, "seed \(seed)")
            #expect(change.oldRecord == nil, "seed \(seed)")
        case .update: #expect(change.record != nil, "seed \(seed)")
        case .delete:
            #expect(change.record == nil, "seed \(seed)")
            #expect(change.oldRecord != nil, "seed \(seed)")
        case .truncate:
            #expect(change.record == nil, "seed \(seed)")
            #expect(change.oldRecord == nil, "seed \(seed)")
        }
        #expect((change.deduplicationID?.utf8.count ?? 0) <= ChangeLimits.deduplicationIDBytesMax, "seed \(seed)")
        #expect(change.unchangedColumns.allSatisfy { change.record?[$0] == nil }, "seed \(seed)")
        for row in [change.record, change.oldRecord] {
            guard let row else { continue }
            // The stored JSON can be read back with the reader's default bounds.
            let bytes = JSONWriter.bytes(JSONValue.object(row))
            #expect(throws: Never.self, "seed \(seed)") { try JSONValue(parsing: bytes) }
        }
        for column in (change.record ?? [:]).keys {
            _ = try? change.primaryKey([column])
        }
    }

    @Test func recordedPayloads_withChangedBytes_neverCrash() throws {
        var round = try Round()
        var taken = 0
        for _ in 0..<effort(quick: 1_000, full: 6_000, long: 60_000) {
            var body = round.fixture()
            for _ in 0..<Int.random(in: 1...6, using: &round.random) {
                mutate(&body, with: round.fixture(), &round.random)
            }
            taken += read(body, round.delivery(), round.format(), seed: round.seed)
        }
        #expect(taken > 0, "seed \(round.seed): no mutated payload was accepted, so the mutations prove little")
    }

    private func mutate(_ body: inout [UInt8], with other: [UInt8], _ random: inout SeededGenerator) {
        guard !body.isEmpty else { return }
        let place = Int.random(in: 0..<body.count, using: &random)
        let end = min(body.count, place + Int.random(in: 1...40, using: &random))
        switch Int.random(in: 0..<7, using: &random) {
        case 0: body[place] = UInt8.random(in: 0 ... .max, using: &random)
        case 1: body.insert(Array(#"{}[]",:\0e-"#.utf8).randomElement(using: &random) ?? 0, at: place)
        case 2: body.removeSubrange(place..<end)
        case 3: body.insert(contentsOf: body[place..<end], at: place)
        case 4:
            let start = Int.random(in: 0..<other.count, using: &random)
            body.insert(contentsOf: other[start..<min(other.count, start + 60)], at: place)
        case 5: body.removeSubrange(place...)
        default: body.insert(contentsOf: "-98765432109876543210.5e-7".utf8, at: place)
        }
    }

    @Test func randomBytes_neverCrash() throws {
        var round = try Round()
        let letters = Array(#"{}[]",:\ntruefalse0123456789.eE+-\u d"#.utf8)
        for turn in 0..<effort(quick: 1_000, full: 6_000, long: 60_000) {
            let count = Int.random(in: 0...200, using: &round.random)
            var body: [UInt8] = []
            for _ in 0..<count {
                body.append(
                    turn % 2 == 0
                        ? UInt8.random(in: 0 ... .max, using: &round.random)
                        : letters[Int.random(in: 0..<letters.count, using: &round.random)])
            }
            _ = read(body, round.delivery(), round.format(), seed: round.seed)
        }
    }

    /// Random bytes rarely pass the JSON parser; random values do.
    @Test func recordedPayloads_withChangedValues_neverCrash() throws {
        var round = try Round()
        var taken = 0
        for _ in 0..<effort(quick: 1_000, full: 6_000, long: 60_000) {
            var value = try JSONValue(parsing: round.fixture())
            for _ in 0..<Int.random(in: 1...4, using: &round.random) {
                let donor = try JSONValue(parsing: round.fixture())
                value = mutated(value, donor: donor, &round.random)
            }
            taken += read(JSONWriter.bytes(value), round.delivery(), round.format(), seed: round.seed)
        }
        #expect(taken > 0, "seed \(round.seed)")
    }

    private func mutated(_ value: JSONValue, donor: JSONValue, _ random: inout SeededGenerator) -> JSONValue {
        let descends = Int.random(in: 0..<5, using: &random) > 0
        switch value {
        case .object(var members) where descends:
            guard let key = members.keys.sorted().randomElement(using: &random), let member = members[key] else {
                return arbitrary(donor, &random)
            }
            switch Int.random(in: 0..<8, using: &random) {
            case 0: members[key] = nil
            case 1: members["\(key)x"] = member
            case 2:
                if case .object(let others) = donor { members.merge(others) { own, _ in own } }
            default: members[key] = mutated(member, donor: donor, &random)
            }
            return .object(members)
        case .array(var values) where descends && !values.isEmpty:
            let index = Int.random(in: 0..<values.count, using: &random)
            values[index] = mutated(values[index], donor: donor, &random)
            return .array(values)
        default: return arbitrary(donor, &random)
        }
    }

    private func arbitrary(_ donor: JSONValue, _ random: inout SeededGenerator) -> JSONValue {
        switch Int.random(in: 0..<9, using: &random) {
        case 0: .null
        case 1: .bool(Bool.random(using: &random))
        case 2: .integer(Int64(bitPattern: random.next()))
        case 3: .integer([0, 1, -1, .max, .min, 86_400_000_000].randomElement(using: &random) ?? 0)
        case 4: .number(Double(bitPattern: random.next()))
        case 5: .string(["", "u", "d", "DELETE", "AA==", "__debezium_unavailable_value"][Int(random.next() % 6)])
        case 6: .array([])
        case 7: .object([:])
        default: donor
        }
    }

    /// Shapes for which a careless reader needs quadratic time or exhausts its stack.
    @Test func hostileInput_terminates() {
        // An eighth of the allowed size, because tests are built without optimization and the cost grows with the
        // size.
        let most = ChangeLimits.itemBytesMax / 8
        func insert(_ value: String) -> String {
            #"{"type": "INSERT", "table": "t", "schema": "s", "record": {"id": 1, "x": \#(value)}}"#
        }
        /// A Debezium row with one array, whose elements have the given schema.
        func array(of schema: String, _ element: String) -> String {
            let elements = [String](repeating: element, count: (most - 500) / (element.utf8.count + 1))
            return """
                {"schema": {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": [
                    {"field": "x", "type": "array", "items": \(schema)}]}]}, "payload": {"op": "c",
                    "source": {"table": "t", "schema": "s"}, "after": {"x": [\(elements.joined(separator: ","))]}}}
                """
        }
        let digits = String(repeating: "9", count: most - 200)
        let decimal = "org.apache.kafka.connect.data.Decimal"
        let longDecimal = "\"\(String(repeating: "/", count: 680))/w==\""
        let shapes = [
            String(repeating: "[", count: most), String(repeating: "{\"a\":", count: most / 5),
            "[" + String(repeating: "[],", count: ChangeLimits.itemsMax * 2) + "1]",
            insert(digits), insert("0.\(digits)"), insert("1e\(digits)"), insert("-\(digits)e\(digits.prefix(50))"),
            insert("\"" + String(repeating: "\\\\", count: (most - 200) / 2) + "\""),
            insert("[" + String(repeating: "1234567890123456,", count: (most - 200) / 17) + "0]"),
            insert("\"" + String(repeating: "\\", count: most - 200)),
            String(repeating: "-", count: most), String(repeating: "\"", count: most),
            array(of: #"{"type": "bytes", "name": "\#(decimal)", "parameters": {"scale": "9"}}"#, longDecimal),
            array(of: #"{"type": "string", "name": "io.debezium.data.Json"}"#, #""[[[[1e9]]]]""#),
            array(of: #"{"type": "int32", "name": "io.debezium.time.Date"}"#, "1"),
        ]
        for shape in shapes {
            _ = read(Array(shape.utf8), ChangeDelivery(), nil, seed: 0)
        }
    }
}
