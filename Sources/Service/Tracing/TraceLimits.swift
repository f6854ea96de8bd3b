/// The bounds of traces.
enum TraceLimits {
    /// Spans that wait to be sent, some megabyte. Without it a collector that is away fills the memory; those above it are
    /// dropped and counted.
    static let waitingMax = 2048
    /// Spans of one request. Without it, a request may be larger than a collector takes.
    static let batchMax = 512
    /// How long spans wait for others before they are sent.
    static let pause = Duration.seconds(2)
    /// How long a collector may take to answer. Without it, one that hangs keeps the service from stopping.
    static let timeoutSeconds = 5
    /// How often one batch is sent. Without it, one that a collector never takes keeps all others waiting.
    static let attemptsMax = 5
    /// Between two attempts, whatever the collector asks for.
    static let retrySecondsMax = 30
}
