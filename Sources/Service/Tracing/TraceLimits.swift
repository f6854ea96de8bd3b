/// The limits of traces.
enum TraceLimits {
    /// Spans that wait to be sent, about a megabyte. Without this limit, a collector that is away fills the memory.
    /// Further spans are dropped and counted.
    static let waitingMax = 2048
    /// Spans of one request. Without this limit, a request may be larger than a collector accepts.
    static let batchMax = 512
    /// How long spans wait for others before they are sent.
    static let pause = Duration.seconds(2)
    /// How long a collector may take to answer. Without this limit, one that hangs prevents the service from stopping.
    static let timeoutSeconds = 5
    /// The number of attempts for one batch. Without this limit, a batch that a collector never accepts blocks all
    /// others.
    static let attemptsMax = 5
    /// The longest pause between two attempts, whatever the collector asks for.
    static let retrySecondsMax = 30
}
