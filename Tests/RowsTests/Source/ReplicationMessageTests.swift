import Rows
import TestSupport
import Testing
import Values

/// Bytes that are not a valid message are refused with the position of the mistake.
@Suite(.timed) struct ReplicationMessageTests {
    private static func number(_ number: Int, bytes: Int) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    private static func name(_ text: String) -> [UInt8] { Array(text.utf8) + [0] }

    private static func row(_ letter: Character, _ values: [String?]) -> [UInt8] {
        Array("\(letter)".utf8) + number(values.count, bytes: 2)
            + values.flatMap { value -> [UInt8] in
                guard let value else { return Array("n".utf8) }
                return Array("t".utf8) + number(value.utf8.count, bytes: 4) + Array(value.utf8)
            }
    }

    private static let samples: [[UInt8]] = [
        Array("B".utf8) + number(0x16_B374, bytes: 8) + number(821_000_000_000_000, bytes: 8) + number(7, bytes: 4),
        Array("C".utf8) + [0] + number(1, bytes: 8) + number(2, bytes: 8) + number(821_000_000_000_000, bytes: 8),
        Array("O".utf8) + number(1, bytes: 8) + name("elsewhere"),
        Array("R".utf8) + number(9, bytes: 4) + name("public") + name("notes") + Array("d".utf8) + number(2, bytes: 2)
            + [1] + name("id") + number(23, bytes: 4) + number(-1, bytes: 4)
            + [0] + name("note") + number(25, bytes: 4) + number(-1, bytes: 4),
        Array("Y".utf8) + number(16_401, bytes: 4) + name("public") + name("mood"),
        Array("I".utf8) + number(9, bytes: 4) + row("N", ["1", nil]),
        Array("U".utf8) + number(9, bytes: 4) + row("N", ["1", "x"]),
        Array("U".utf8) + number(9, bytes: 4) + row("O", ["1", "x"]) + row("N", ["1", "y"]),
        Array("D".utf8) + number(9, bytes: 4) + row("K", ["1", nil]),
        Array("T".utf8) + number(2, bytes: 4) + [0] + number(9, bytes: 4) + number(10, bytes: 4),
        Array("M".utf8) + [1] + number(5, bytes: 8) + name("bellhop") + number(2, bytes: 4) + Array("{}".utf8),
    ]

    @Test func everyMessage_isRead() throws {
        let read = try Self.samples.map { try ReplicationMessage(reading: $0[...]) }
        #expect(read[1] == .commit(end: LSN(rawValue: 2)))
        #expect(read[6] == .update(relation: 9, old: nil, new: SourceTuple([.text([49]), .text([120])])))
        #expect(read[8] == .delete(relation: 9, old: SourceTuple([.text([49]), .null])))
        #expect(read[9] == .truncate(relations: [9, 10]))
        guard case .begin(let place, let moment) = read[0] else { throw ReplicationFault.none }
        #expect(place.description == "0/16B374")
        #expect(moment.rfc3339 == "2026-01-06T07:33:20.000Z")
        #expect(LSN("16/B374D848")?.description == "16/B374D848")
        #expect(LSN("16-B374D848") == nil)
    }

    @Test func truncatedMessages_areRefusedWithTheirPlace() {
        for sample in Self.samples {
            for count in 0..<sample.count {
                #expect(throws: ReplicationFault.self) { try ReplicationMessage(reading: sample[..<count]) }
            }
            #expect(throws: ReplicationFault.self) { try ReplicationMessage(reading: (sample + [0])[...]) }
        }
    }

    @Test func damagedMessages_neverEndTheProcess() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let relation = SourceRows(
            SourceRelation(
                id: 9, schema: "public", name: "notes",
                columns: [
                    .init(name: "id", isOfOldRows: true, type: 23), .init(name: "note", isOfOldRows: true, type: 1009),
                ]), types: [:])
        for _ in 0..<effort(quick: 10_000, full: 50_000, long: 500_000) {
            var bytes = Self.samples.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
            do {
                switch try ReplicationMessage(reading: bytes[...]) {
                case .insert(_, let new):
                    _ = try relation.change(.insert, old: nil, new: new, committedAt: nil)
                case .update(_, let old, let new):
                    _ = try relation.change(.update, old: old, new: new, committedAt: nil)
                default: break
                }
            } catch let fault as ReplicationFault {
                #expect(fault.place <= bytes.count, "seed \(seed)")
            } catch is ChangeFault {}
        }
    }

    @Test func damagedValues_neverEndTheProcess() {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let alphabet = Array("{}()\",\\NULL[]:=;0123456789eE+-. aT\u{e9}".utf8)
        let types: [SourceType] = [
            .boolean, .number, .text, .timestamp, .timestampWithZone, .json, .jsonb, .array(of: .number, delimiter: 44),
            .array(of: .array(of: .jsonb, delimiter: 59), delimiter: 44), .vector(of: .number),
            .composite([.init(name: "a", type: .json), .init(name: "b", type: .array(of: .text, delimiter: 44))]),
        ]
        for _ in 0..<effort(quick: 10_000, full: 100_000, long: 1_000_000) {
            let text = (0..<Int.random(in: 0...24, using: &random)).map { _ in
                alphabet.randomElement(using: &random) ?? 0
            }
            for type in types { _ = try? type.json(of: text[...]) }
            _ = try? SourceTuple(copied: text[...])
        }
    }

    @Test func frames_areRead_andStatusIsWritten() throws {
        let frame = try ReplicationFrame(
            reading: Array("w".utf8) + Self.number(1, bytes: 8) + Self.number(2, bytes: 8) + Self.number(3, bytes: 8)
                + [66])
        #expect(frame == .data(logEnd: LSN(rawValue: 2), [66]))
        let alive = try ReplicationFrame(
            reading: Array("k".utf8) + Self.number(5, bytes: 8) + Self.number(3, bytes: 8) + [1])
        #expect(alive == .keepalive(sentUpTo: LSN(rawValue: 5), wantsReply: true))
        for bytes: [UInt8] in [[], [107], [119, 0], [1]] {
            #expect(throws: ReplicationFault.self) { try ReplicationFrame(reading: bytes) }
        }
        let status = ReplicationFrame.status(received: LSN(rawValue: 258), stored: LSN(rawValue: 1), microseconds: -1)
        #expect(status.count == 34)
        #expect(Array(status[1...8]) == [0, 0, 0, 0, 0, 0, 1, 2])
        #expect(Array(status[25...32]) == Array(repeating: 255, count: 8))
    }
}

extension ReplicationFault {
    fileprivate static let none = ReplicationFault(kind: nil, place: 0, reason: "another message was expected")
}
