import Foundation
import Logging
import Threads
import Values

/// The output of the service's log. Each event is one line, for people or as JSON, written as a whole.
///
/// Recurring warnings are rate limited. The first ones of a kind in a minute are written, and at the end of the minute
/// one line says how many more there were. So a database that is away, or a misbehaving client, cannot fill the disk.
public final class LogOutput: Sendable {
    public enum Format: String, Sendable, CaseIterable {
        case text, json
    }

    private let format: Format
    private let clock: Clock
    private let write: @Sendable ([UInt8]) -> Void
    /// Its lock also keeps lines separate and in order, as that of a C stream would.
    private let repetitions = Locked(LogRepetitions())
    private let thread = LoopThread("log")

    /// Creates an output.
    ///
    /// - Parameter write: Receives one line with its end; called by one thread at a time.
    init(_ format: Format, clock: Clock, write: @escaping @Sendable ([UInt8]) -> Void) {
        (self.format, self.clock, self.write) = (format, clock, write)
    }

    /// Returns an output to standard error. If writing fails, the line is lost, because there is no other place to
    /// report it.
    public static func standardError(_ format: Format) -> LogOutput {
        let output = LogOutput(format, clock: .system) { line in
            line.withUnsafeBytes { bytes in
                var rest = bytes[...]
                while !rest.isEmpty {
                    let count = Foundation.write(
                        STDERR_FILENO, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                    if count < 0, errno != EINTR { return }
                    rest = rest.dropFirst(max(0, count))
                }
            }
        }
        output.thread.start { [thread = output.thread, output] in
            while thread.wait(atMost: output.isCounting ? .seconds(1) : nil) { output.logRepetitions() }
        }
        return output
    }

    public func handler(label: String) -> any LogHandler { ServiceLog(label: label, output: self) }

    /// Writes how many lines were suppressed so far.
    public func stop() {
        thread.stop()
        logRepetitions(all: true)
    }

    func log(_ event: LogEvent, _ metadata: Logger.Metadata, label: String) {
        let now = clock.uptime()
        let isFirstCounted = repetitions.withLock { repetitions in
            writeEnded(&repetitions, at: now)
            // Events below warning level are not rate limited, because each has its own content, such as the line of a
            // request.
            if event.level >= .warning {
                let wasCounting = repetitions.isCounting
                let kind = LogRepetitions.Kind(level: event.level, message: event.message.description, label: label)
                guard repetitions.admit(kind, at: now) else { return !wasCounting }
            }
            write(line(event.level, event.message.description, metadata, label: label, source: event.source))
            return false
        }
        if isFirstCounted { thread.wake() }
    }

    /// Writes how many lines were suppressed.
    ///
    /// - Parameter all: Includes the kinds whose minute is not over.
    func logRepetitions(all: Bool = false) {
        let now = clock.uptime()
        repetitions.withLock { writeEnded(&$0, at: all ? now + LogLimits.repetitionWindow : now) }
    }

    private var isCounting: Bool { repetitions.withLock { $0.isCounting } }

    private func writeEnded(_ repetitions: inout LogRepetitions, at now: Duration) {
        for (kind, count) in repetitions.takeEnded(at: now) {
            write(
                line(
                    kind.level, kind.message, ["repeated": .stringConvertible(count)], label: kind.label,
                    source: "Service"))
        }
    }

    // MARK: Lines

    private func line(
        _ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata, label: String, source: String
    ) -> [UInt8] {
        let members = metadata.sorted { $0.key < $1.key }
        let message = Self.bounded(message, LogLimits.messageBytesMax)
        switch format {
        case .json:
            return JSONWriter.object { writer in
                writer.member("time", clock.now())
                writer.member("level", level.rawValue)
                writer.member("message", message)
                for (key, value) in members { Self.write(value, named: Self.memberName(key), to: &writer) }
            } + [UInt8(ascii: "\n")]
        case .text:
            let details = members.map { " \(Self.bounded($0.key))=\(Self.bounded("\($0.value)"))" }.joined()
            return Array("\(clock.now().rfc3339) \(level) \(label):\(details) [\(source)] \(message)\n".utf8)
        }
    }

    /// Renames a key that the line itself has. With a duplicate key, it is undefined which one a reader takes.
    private static func memberName(_ key: String) -> String {
        ["time", "level", "message"].contains(key) ? "_" + key : bounded(key)
    }

    private static func write(_ value: Logger.Metadata.Value, named name: String, to writer: inout JSONWriter) {
        writer.key(name)
        write(value, to: &writer)
    }

    /// Numbers and booleans keep their type; everything else is a text.
    private static func write(_ value: Logger.Metadata.Value, to writer: inout JSONWriter) {
        switch value {
        case .array(let values): writer.array { for value in values { write(value, to: &$0) } }
        case .dictionary(let members):
            writer.object { writer in
                for (key, value) in members.sorted(by: { $0.key < $1.key }) {
                    write(value, named: bounded(key), to: &writer)
                }
            }
        case .stringConvertible(let value as any JSONWritable & Sendable): writer.value(value)
        case .string, .stringConvertible: writer.value(bounded("\(value)"))
        }
    }

    /// Returns the text without characters that break a line or control a terminal, truncated to a maximum length.
    private static func bounded(_ text: String, _ bytesMax: Int = LogLimits.valueBytesMax) -> String {
        guard text.utf8.count > bytesMax else { return text.withVisibleControls }
        return String(decoding: text.utf8.prefix(bytesMax), as: UTF8.self).withVisibleControls + "…"
    }
}

/// The handler of one logger.
private struct ServiceLog: LogHandler {
    let label: String
    let output: LogOutput
    var logLevel: Logger.Level = .info
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    init(label: String, output: LogOutput) { (self.label, self.output) = (label, output) }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var members = metadata
        if let provided = metadataProvider?.get() { members.merge(provided) { $1 } }
        if let own = event.metadata { members.merge(own) { $1 } }
        if let error = event.error, members["error"] == nil { members["error"] = "\(error)" }
        output.log(event, members, label: label)
    }
}

/// The counts of recurring warnings, each kind counted for a minute from its first.
struct LogRepetitions {
    /// The identity of a warning. Texts of messages are fixed, and variable parts are in the metadata.
    struct Kind: Hashable {
        let level: Logger.Level
        let message: String
        let label: String
    }

    private var tallies: [Kind: (endsAt: Duration, count: Int)] = [:]
    private var firstEnd: Duration?

    /// Whether suppressed warnings have not been reported yet.
    var isCounting: Bool { tallies.values.contains { $0.count > LogLimits.repetitionsShown } }

    /// Counts one more warning, and returns whether to write it.
    mutating func admit(_ kind: Kind, at now: Duration) -> Bool {
        var kind = kind
        if tallies[kind] == nil, tallies.count >= LogLimits.kindsMax {
            kind = Kind(level: kind.level, message: "Other messages.", label: kind.label)
        }
        var tally = tallies[kind] ?? (now + LogLimits.repetitionWindow, 0)
        tally.count += 1
        tallies[kind] = tally
        firstEnd = min(firstEnd ?? tally.endsAt, tally.endsAt)
        return tally.count <= LogLimits.repetitionsShown
    }

    /// Removes the kinds whose minute is over. Returns those with suppressed warnings, and their number.
    mutating func takeEnded(at now: Duration) -> [(kind: Kind, count: Int)] {
        guard let end = firstEnd, end <= now else { return [] }
        let over = tallies.filter { $0.value.endsAt <= now }
        for kind in over.keys { tallies[kind] = nil }
        firstEnd = tallies.values.map(\.endsAt).min()
        return over.map { ($0.key, $0.value.count - LogLimits.repetitionsShown) }.filter { $0.count > 0 }
            .sorted { $0.kind.message < $1.kind.message }
    }
}
