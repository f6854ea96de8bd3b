import Logging

/// The log, with control characters made visible: what others sent must not break a line in two, nor repaint the terminal
/// of who reads it.
struct SafeLog: LogHandler {
    private var lines: StreamLogHandler

    init(lines: StreamLogHandler) { self.lines = lines }

    var logLevel: Logger.Level {
        get { lines.logLevel }
        set { lines.logLevel = newValue }
    }

    var metadata: Logger.Metadata {
        get { lines.metadata }
        set { lines.metadata = newValue.mapValues(Self.safe) }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { lines.metadataProvider }
        set { lines.metadataProvider = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { lines[metadataKey: key] }
        set { lines[metadataKey: key] = newValue.map(Self.safe) }
    }

    func log(event: LogEvent) {
        var event = event
        event.message = "\(Terminal.safe(event.message.description))"
        event.metadata = event.metadata?.mapValues(Self.safe)
        lines.log(event: event)
    }

    private static func safe(_ value: Logger.Metadata.Value) -> Logger.Metadata.Value {
        .string(Terminal.safe("\(value)"))
    }
}
