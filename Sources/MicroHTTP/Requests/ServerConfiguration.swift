import CMicroHTTPD

/// The settings of a server, each with the reason for its value, and the application's hooks.
public struct ServerConfiguration: Sendable {
    public var host = "127.0.0.1"
    /// 0 selects any free port.
    public var port = 0
    /// HTTP threads. One thread answers 100,000 requests a second; with more threads than half the cores, they take the
    /// time of others.
    public var reactors = 1
    /// Threads that own streams.
    public var shards = 1
    /// Whether each shard is pinned to a core. This lowers the latency on an otherwise idle machine, and raises it on a
    /// busy one.
    public var pinsShards = false
    /// Open connections, without streams; lowered to a quarter of the descriptors. Without this limit, a flood of
    /// connections takes all of them.
    public var connectionsMax = 10_000
    /// Seconds of inactivity after which a connection is closed.
    public var connectionTimeoutSeconds = 30
    /// Seconds for a complete head. A body, and a client's reading of an answer, have this time in addition to the time
    /// for their size. Without this limit, a client that sends one byte a second occupies a connection forever.
    public var senderSeconds = 10
    /// The minimum rate of a body: 8 MiB may take 17 minutes. A slower mobile network is unusable anyway.
    public var senderBytesPerSecond = 8 * 1024
    /// The value of `senderSeconds` for a first head while three quarters of the connections are in use. Without it,
    /// silent connections keep all others out.
    public var crowdedSenderSeconds = 1
    /// Memory of one connection, which also bounds its headers. libmicrohttpd clears all of it after each request, so
    /// 128 KiB would double the cost of a request.
    public var connectionMemoryBytes = 16 * 1024
    /// Open streams; lowered to what the limit of descriptors allows.
    public var streamsMax = 100_000
    /// Bytes that wait for a slow stream in this process. Without this limit, one stalled reader buffers everything
    /// that it misses.
    public var streamBufferBytesMax = 64 * 1024
    /// Unsent bytes that the kernel may buffer for a stream. With 16 KiB, a stalled reader does not occupy megabytes.
    public var notSentLowWaterBytes = 16 * 1024
    /// Seconds of unacknowledged data after which a stream ends. It detects vanished peers.
    public var streamUserTimeoutSeconds = 60
    /// Seconds between heartbeats. Proxies close connections that are silent for 30 to 60 seconds.
    public var heartbeatSeconds = 15
    /// Seconds after which an unanswered deferred request gets a 503, because suspended connections never time out.
    public var answerSeconds = 60
    /// Connections that wait to be accepted. The default of 128 refuses bursts of reconnecting clients.
    public var backlog = 4096

    /// Adds the headers that every answer carries.
    public var decorate: @Sendable (Request, inout Response) -> Void = { _, _ in }
    /// Creates the answer to a request that is refused without a handler.
    public var problem: @Sendable (TransportProblem) -> Response = { _ in Response(status: 500) }
    /// Called when a request is finished, for metrics and the log.
    public var completed:
        @Sendable (_ request: Request, _ status: Int, _ bodyBytes: Int, _ nanoseconds: UInt64) -> Void = { _, _, _, _ in
        }

    #if DEBUG
        /// Called with all bytes that streams are sent, once for all streams that are sent the same in turn.
        public var sendsToStream: (@Sendable (UnsafeRawBufferPointer) -> Void)?
    #endif

    /// The clock for the server's timeouts.
    var clock = MonotonicClock.system

    public init() {}
}

extension ServerConfiguration {
    /// The limit per reactor, because libmicrohttpd shares nothing between its daemons.
    var connectionsMaxOfReactor: Int { max(16, connectionsMax / reactors) }

    /// The limit of open descriptors of the process (`RLIMIT_NOFILE`), after the soft limit was raised to the hard
    /// limit.
    public static var descriptorsMax: Int { Int(cmhd_raise_descriptor_limit()) }

    /// Returns the configuration with the numbers of streams and connections lowered to what the limit of descriptors
    /// allows.
    ///
    /// Together they leave a reserve for the database, for connections that become streams, and for other uses.
    /// Otherwise streams could take the last descriptor, and no request could be accepted any more.
    public func within(descriptors: Int = ServerConfiguration.descriptorsMax) -> ServerConfiguration {
        let reserve = max(128, min(1024, descriptors / 50))
        var lowered = self
        lowered.connectionsMax = min(connectionsMax, max(16 * reactors, descriptors / 4))
        lowered.streamsMax = max(1, min(streamsMax, descriptors - reserve - lowered.connectionsMax))
        return lowered
    }
}
