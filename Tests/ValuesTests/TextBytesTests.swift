import TestSupport
import Testing
import Values

/// The search of eight bytes at a time finds what a search byte by byte finds.
@Suite(.timed) struct TextBytesTests {
    private static func naive(_ bytes: [UInt8], from start: Int, _ isFound: (UInt8) -> Bool) -> Int {
        bytes[start...].firstIndex(where: isFound) ?? bytes.count
    }

    /// Each byte value at each position of a word, between other bytes that also match.
    @Test func everyByte_isFoundAtEveryPlace() {
        for byte in UInt8.min ... .max {
            for place in 0..<17 {
                for other in [UInt8(ascii: "a"), 0x80, 0xFF, 0x21, 0x23, 0x7E, 0x0B, 0x22] {
                    var bytes = [UInt8](repeating: other, count: 17)
                    bytes[place] = byte
                    expectSame(bytes, from: 0)
                }
            }
        }
    }

    @Test func randomBytes_areFoundFromEveryPlace() {
        var random = SeededGenerator(seed: randomSeed())
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                Bool.random(using: &random) ? UInt8.random(in: .min ... .max, using: &random) : UInt8(ascii: "x")
            }
            for start in 0...bytes.count { expectSame(bytes, from: start) }
        }
    }

    @Test func numbers_areAppendedAsSwiftWritesThem() {
        for number: Int64 in [0, 7, 10, 99, -1, 1_234_567_890, .max, .min] {
            var bytes = Array("n=".utf8)
            bytes.append(decimal: number)
            #expect(String(decoding: bytes, as: UTF8.self) == "n=\(number)")
        }
    }

    private func expectSame(_ bytes: [UInt8], from start: Int) {
        bytes.withUnsafeBufferPointer { buffer in
            let plainEnd = Self.naive(bytes, from: start) { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C || $0 == 0x7F }
            let lineEnd = Self.naive(bytes, from: start) { $0 == 0x0A || $0 == 0x0D }
            let isFound =
                buffer.endOfPlainText(from: start) == plainEnd && buffer.endOfLine(from: start) == lineEnd
                && buffer.isASCII == bytes.allSatisfy { $0 < 0x80 }
            // Calls `#expect` only on failure: a hundred thousand calls would take most of the time.
            if !isFound { Issue.record("\(bytes) from \(start)") }
        }
    }
}
