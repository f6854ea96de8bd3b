import Logging
import Threads

/// A log handler that records messages, for tests of the log output.
struct RecordedLog: LogHandler {
    private let recorded: Locked<[String]>
    var logLevel: Logger.Level = .info
    var metadata: Logger.Metadata = [:]

    /// Returns a logger, and a closure that returns its messages so far with their metadata.
    static func logger() -> (Logger, lines: @Sendable () -> [String]) {
        let recorded = Locked([String]())
        return (Logger(label: "test") { _ in RecordedLog(recorded: recorded) }, { recorded.withLock { $0 } })
    }

    private init(recorded: Locked<[String]>) { self.recorded = recorded }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let details = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        recorded.withLock { $0.append(event.message.description + details) }
    }
}
