import Foundation
import Logging
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// A log event becomes exactly one line, whatever it contains, and repeated warnings are limited.
@Suite(.timed) struct LogOutputTests {
    private let clock = ManualClock(Timestamp(rfc3339: "2026-01-10T10:00:00Z"))
    private let written = Locked([String]())

    private func makeLog(_ format: LogOutput.Format) -> (logger: Logger, output: LogOutput) {
        let output = LogOutput(format, clock: clock.clock) { [written] line in
            written.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
        }
        var logger = Logger(label: "bellhop") { output.handler(label: $0) }
        logger.logLevel = .trace
        return (logger, output)
    }

    private var lines: [String] { written.withLock { $0 } }

    private func members(_ line: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
    }

    @Test func json_hasTimeLevelMessage_andTheMetadataAsMembers() throws {
        var (logger, _) = makeLog(.json)
        logger[metadataKey: "replica"] = "one"
        logger.info("request", metadata: ["status": .stringConvertible(200), "tenant": "default"])
        #expect(
            lines == [
                #"{"time":"2026-01-10T10:00:00.000Z","level":"info","message":"request","replica":"one","status":200,"#
                    + #""tenant":"default"}"# + "\n"
            ])
    }

    @Test func textFormat_isReadable() throws {
        makeLog(.text).logger.warning("It failed.", metadata: ["reason": "two\nlines", "count": "2"])
        #expect(
            lines == [
                "2026-01-10T10:00:00.000Z warning bellhop: count=2 reason=two⏎lines [ServiceTests] It failed.\n"
            ])
    }

    private static let hostile = [
        "\u{1B}[2J", "\u{9B}31m", "a\r\nb", "\"}\n{\"level\":\"info\"", "\u{2028}\u{2029}\u{85}", "\\", "\u{0}",
        "\u{202E}",
        String(decoding: [0xFF, 0xFE, 0xC3, 0x28, 0xED, 0xA0, 0x80], as: UTF8.self),
        String(repeating: "é", count: 100_000),
        "🛎️\u{200D}",
    ]

    @Test(arguments: [LogOutput.Format.json, .text]) func hostileText_breaksNoLine(_ format: LogOutput.Format)
        throws
    {
        let (logger, _) = makeLog(format)
        for text in Self.hostile {
            logger.info("\(text)", metadata: ["time": "never", text: "\(text)", "deep": [["\(text)": ["\(text)"]]]])
            logger.notice("An error.", error: Failure(.malformed, "x", text))
        }
        #expect(lines.count == 2 * Self.hostile.count)
        for line in lines {
            #expect(line.utf8.count <= 16 * 1024)
            #expect(line.last == "\n" && line.dropLast().unicodeScalars.allSatisfy { $0.value >= 0x20 })
            for scalar in ["\u{7F}", "\u{85}", "\u{9B}", "\u{2028}", "\u{2029}", "\u{202E}"] as [Unicode.Scalar] {
                #expect(!line.unicodeScalars.contains(scalar), "\(line.prefix(200))")
            }
            guard format == .json else { continue }
            #expect(try members(line)["time"] as? String == "2026-01-10T10:00:00.000Z")
            let keys = line.matches(of: /"(time|level|message)":/)
            #expect(Set(keys.map(\.1)).count == keys.count, "\(line.prefix(200))")
        }
    }

    @Test func repeatedWarnings_areCounted_andSummedUpEachMinute() throws {
        let (logger, output) = makeLog(.json)
        for number in 0..<1244 {
            logger.warning("A request was not completed.", metadata: ["requestId": "\(number)"])
            logger.info("request")
        }
        logger.error("Something else.")
        #expect(lines.filter { $0.contains("was not completed") }.count == 10)
        #expect(lines.filter { $0.contains("\"request\"") }.count == 1244, "only warnings are limited")
        clock.advance(seconds: 59)
        output.logRepetitions()
        #expect(lines.count == 10 + 1244 + 1)
        clock.advance(seconds: 1)
        output.logRepetitions()
        let last = try members(#require(lines.last))
        #expect(last["message"] as? String == "A request was not completed.")
        #expect(last["level"] as? String == "warning")
        #expect(last["repeated"] as? Int == 1234)
        // The count starts again.
        logger.warning("A request was not completed.")
        #expect(lines.count == 10 + 1244 + 1 + 1 + 1)
        for _ in 0..<11 { logger.warning("A request was not completed.") }
        output.stop()
        #expect(try members(#require(lines.last))["repeated"] as? Int == 2, "the last line counts omitted warnings")
    }

    @Test func kindsOfWarnings_areBounded() {
        let (logger, output) = makeLog(.text)
        for number in 0..<10_000 { logger.warning("number \(number)") }
        #expect(lines.count == LogLimits.kindsMax + LogLimits.repetitionsShown)
        output.stop()
        #expect(lines.last?.contains("repeated=\(10_000 - LogLimits.kindsMax - LogLimits.repetitionsShown)") == true)
    }
}
