import CMicroHTTPD

/// The settings of a server, each with the reason for its value, and the application's hooks.
public struct ServerConfiguration: Sendable {
    public var host = "127.0.0.1"
    /// 0: any free one.
    public var port = 0
    /// Threads that speak HTTP. More than half the cores take the others' time: one answers 100,000 requests a second.
    public var reactors = 1
    /// Threads that own streams.
    public var shards = 1
    /// Whether each shard is bound to a core of its own: less delay where nothing else runs, more where something does.
    public var pinsShards = false
    /// Connections open at a time, streams aside; lowered to a quarter of the descriptors. Without it a flood of
    /// connections takes all of them.
    public var connectionsMax = 10_000
    /// After this time without a byte a connection is closed.
    public var connectionTimeoutSeconds = 30
    /// A head has to be there as a whole after this time, a body and a client's reading of an answer have it beside what
    /// their size needs. Without it one byte a second occupies a connection for ever.
    public var senderSeconds = 10
    /// The least rate of a body: 8 MiB have 17 minutes. Slower mobile networks than that have none of the rest either.
    public var senderBytesPerSecond = 8 * 1024
    /// What is left of `senderSeconds` for a first head where three quarters of the connections are taken. Without it
    /// connections that say nothing keep everybody else out.
    public var crowdedSenderSeconds = 1
    /// Memory of one connection, which bounds its headers too. libmicrohttpd clears all of it after each request: 128 KiB
    /// would double the cost of a request.
    public var connectionMemoryBytes = 16 * 1024
    /// Streams open at a time; lowered to what the limit of descriptors allows.
    public var streamsMax = 100_000
    /// Bytes that wait for a slow stream in this process. Without a bound one stalled reader buffers everything it misses.
    public var streamBufferBytesMax = 64 * 1024
    /// Bytes the kernel may buffer unsent for a stream: with 16 KiB a stalled reader does not swallow megabytes.
    public var notSentLowWaterBytes = 16 * 1024
    /// Unacknowledged data after this time ends a stream: so vanished peers are noticed.
    public var streamUserTimeoutSeconds = 60
    /// Proxies close connections that are silent for 30 to 60 seconds.
    public var heartbeatSeconds = 15
    /// A deferred request that nobody has answered by then gets a 503; suspended connections never time out.
    public var answerSeconds = 60
    /// Connections that wait to be accepted; the default of 128 refuses bursts of clients that reconnect.
    public var backlog = 4096

    /// Adds what every answer carries.
    public var decorate: @Sendable (Request, inout Response) -> Void = { _, _ in }
    /// Makes the answer to what is refused without a handler.
    public var problem: @Sendable (TransportProblem) -> Response = { _ in Response(status: 500) }
    /// Called when a request is over: for metrics and the log.
    public var completed:
        @Sendable (_ request: Request, _ status: Int, _ bodyBytes: Int, _ nanoseconds: UInt64) -> Void = { _, _, _, _ in
        }

    /// What the server's patience is measured by.
    var clock = MonotonicClock.system

    public init() {}
}

extension ServerConfiguration {
    /// libmicrohttpd shares nothing between its daemons.
    var connectionsMaxOfReactor: Int { max(16, connectionsMax / reactors) }

    /// Descriptors that the process may have open (`RLIMIT_NOFILE`), after the soft limit was raised to the hard one.
    public static var descriptorsMax: Int { Int(cmhd_raise_descriptor_limit()) }

    /// The same with the numbers of streams and connections lowered to what the limit of descriptors allows.
    ///
    /// Together they leave a reserve for the database, for connections on their way to a stream, and for what else a
    /// process opens. Without it streams could take the last descriptor, and nobody could ask anything any more.
    public func within(descriptors: Int = ServerConfiguration.descriptorsMax) -> ServerConfiguration {
        let reserve = max(128, min(1024, descriptors / 50))
        var lowered = self
        lowered.connectionsMax = min(connectionsMax, max(16 * reactors, descriptors / 4))
        lowered.streamsMax = max(1, min(streamsMax, descriptors - reserve - lowered.connectionsMax))
        return lowered
    }
}
