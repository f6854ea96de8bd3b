import Logging
import Threads

/// What was logged, for tests of what an operator is told.
struct RecordedLog: LogHandler {
    private let recorded: Locked<[String]>
    var logLevel: Logger.Level = .info
    var metadata: Logger.Metadata = [:]

    /// A logger, and what it has logged so far: the messages with their metadata.
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
