import CMicroHTTPD
import Foundation
import Synchronization

/// An HTTP server with event streams: reactors in front, shards behind.
public final class Server<Program: StreamProgram>: Sendable {
    public let shards: [StreamShard<Program>]
    private let configuration: ServerConfiguration
    private let reactors: [Reactor]
    private let places: StreamPlaces<Program>
    /// The port that is listened on.
    public let port: Int
    /// Descriptors that the process may have open (`RLIMIT_NOFILE`).
    public let descriptorsMax: Int

    /// Opens the listening sockets; nothing is accepted before ``start()``.
    ///
    /// - Parameter makeProgram: called once for each shard, in their order.
    /// - Throws: `ServerError` or `Router.Ambiguity`.
    public init(
        configuration: ServerConfiguration, routes: [Route],
        makeProgram: (_ index: Int, _ shard: StreamShard<Program>) -> Program
    ) throws {
        signal(SIGPIPE, SIG_IGN)
        var configuration = configuration
        let router = try Router(routes)
        let descriptors = Int(cmhd_raise_descriptor_limit())
        // A reserve for connections, the database and what else a process opens. Without it streams could take the
        // last descriptor, and nobody could ask anything any more.
        let reserve = max(128, min(1024, descriptors / 50))
        configuration.connectionsMax = min(configuration.connectionsMax, max(16, descriptors / 4))
        configuration.streamsMax = max(
            1, min(configuration.streamsMax, descriptors - reserve))
        self.configuration = configuration
        descriptorsMax = descriptors
        let places = StreamPlaces<Program>(max: configuration.streamsMax)
        var options = StreamShardOptions()
        options.bufferBytesMax = configuration.streamBufferBytesMax
        options.heartbeatSeconds = configuration.heartbeatSeconds
        options.isPinned = configuration.pinsShards
        options.released = { places.release() }
        shards = try (0..<configuration.shards).map { try StreamShard<Program>(index: $0, options: options) }
        places.shards = shards
        self.places = places
        let (listening, port) = try SocketAddress.listen(
            host: configuration.host, port: configuration.port, count: configuration.reactors,
            backlog: configuration.backlog)
        self.port = port
        let settled = configuration
        reactors = listening.map {
            Reactor(listening: $0, configuration: settled, router: router, streams: places)
        }
        for shard in shards { try shard.start(program: makeProgram(shard.index, shard)) }
    }

    /// Accepts connections from here on.
    ///
    /// - Throws: `ServerError`, also when this libmicrohttpd does not let a stream's socket live on.
    public func start() throws {
        try DetachTest.run()
        for reactor in reactors { try reactor.start() }
    }

    /// Stops accepting, lets requests finish until the deadline, then ends the streams. Blocks.
    public func shutdown(deadlineSeconds: Double) {
        let deadline = cmhd_monotonic_nanoseconds() + UInt64(deadlineSeconds * 1e9)
        for reactor in reactors { reactor.inbox.post(.stop(deadline: deadline)) }
        for reactor in reactors { reactor.join() }
        for shard in shards { shard.stop(deadlineSeconds: min(5, deadlineSeconds)) }
    }

    public var openStreams: Int { shards.reduce(0) { $0 + $1.openStreams } }
    /// Streams that may be open at a time, after the limit of descriptors.
    public var streamsMax: Int { configuration.streamsMax }
    /// Connections that may be open at a time, after the limit of descriptors.
    public var connectionsMax: Int { configuration.connectionsMax }
    /// Requests whose head was read since the start.
    public var requestCount: Int { reactors.reduce(0) { $0 + $1.counters.requests.load(ordering: .relaxed) } }
}

/// The places for streams, over all shards.
///
/// `@unchecked Sendable`: `shards` is set before the server is reachable, and only read since.
private final class StreamPlaces<Program: StreamProgram>: StreamAcceptor, @unchecked Sendable {
    var shards: [StreamShard<Program>] = []
    private let max: Int
    private let taken = Atomic<Int>(0)
    private let turn = Atomic<Int>(0)

    init(max: Int) {
        self.max = max
    }

    func release() { taken.wrappingSubtract(1, ordering: .relaxed) }

    func reserve(_ opening: StreamOpening) -> StreamReservation? {
        guard taken.wrappingAdd(1, ordering: .relaxed).newValue <= max else {
            release()
            return nil
        }
        let index = opening.shard ?? turn.wrappingAdd(1, ordering: .relaxed).newValue
        let shard = shards[index % shards.count]
        let context = opening.context
        return StreamReservation(
            adopt: { shard.adopt(descriptor: $0, context: context) }, release: { [self] in release() })
    }
}
