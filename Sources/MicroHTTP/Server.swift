import Foundation
import Synchronization

/// The streams of a server without streams.
private struct NoStreams: StreamAcceptor {
    func reserve(_: StreamOpening) -> StreamHandOff? { nil }
    func stop(deadlineSeconds _: Double) {}
}

/// An HTTP server with event streams: reactors accept requests, shards own the streams.
public final class Server: Sendable {
    private let streams: any StreamAcceptor
    private let configuration: ServerConfiguration
    private let reactors: [Reactor]
    /// The port on which the server listens.
    public let port: Int

    /// Opens the listening sockets. No connection is accepted before ``start()``.
    ///
    /// - Parameter streams: Created from the same configuration, and started by their creator; this server stops them.
    /// - Throws: `ServerError` or `Router.Ambiguity`.
    public convenience init(
        configuration: ServerConfiguration, routes: [Route], streams: StreamShards<some StreamProgram>
    ) throws {
        try self.init(configuration, routes, streams)
    }

    /// Opens the listening sockets of a server without streams.
    ///
    /// - Throws: `ServerError` or `Router.Ambiguity`.
    public convenience init(configuration: ServerConfiguration, routes: [Route]) throws {
        try self.init(configuration, routes, NoStreams())
    }

    private init(_ configuration: ServerConfiguration, _ routes: [Route], _ streams: any StreamAcceptor) throws {
        signal(SIGPIPE, SIG_IGN)
        let configuration = configuration.within()
        let router = try Router(routes)
        self.configuration = configuration
        self.streams = streams
        let (listening, port) = try SocketAddress.listen(
            host: configuration.host, port: configuration.port, count: configuration.reactors,
            backlog: configuration.backlog)
        self.port = port
        reactors = listening.map {
            Reactor(listening: $0, configuration: configuration, router: router, streams: streams)
        }
    }

    /// Starts accepting connections.
    ///
    /// - Throws: `ServerError`, also if this version of libmicrohttpd closes a stream's socket.
    public func start() throws {
        try DetachTest.run()
        for reactor in reactors { try reactor.start() }
    }

    /// Makes each answer the last of its connection from now on, so that clients move to the next server. New
    /// connections are accepted as before.
    public func drain() {
        for reactor in reactors { reactor.inbox.post(.drain) }
    }

    /// Waits until every reactor has completed a turn that began after this call. For tests that move the clock.
    func completeTurn() async {
        for reactor in reactors {
            await withCheckedContinuation { waiting in reactor.inbox.post(.turn { waiting.resume() }) }
        }
    }

    /// Stops accepting, lets requests finish until the deadline, then ends the streams. Blocks.
    ///
    /// - Parameter idleSeconds: How long to wait for connections without a request. If a connection is closed while a
    ///   request is on its way, its client cannot know whether the request was processed.
    public func shutdown(deadlineSeconds: Double, idleSeconds: Double = 0) {
        let now = configuration.clock.now()
        let ending = ReactorInbox.Ending(
            deadline: now + UInt64(deadlineSeconds * 1e9), idleUntil: now + UInt64(idleSeconds * 1e9))
        for reactor in reactors { reactor.inbox.post(.stop(ending)) }
        for reactor in reactors { reactor.join() }
        streams.stop(deadlineSeconds: min(5, deadlineSeconds))
    }

    /// The maximum number of open connections, after applying the limit of descriptors.
    public var connectionsMax: Int { configuration.connectionsMax }
    public var requestsOpen: Int { reactors.reduce(0) { $0 + $1.requestsOpen.load(ordering: .relaxed) } }
    /// The number of requests whose head was read since the start.
    public var requestCount: Int { reactors.reduce(0) { $0 + $1.requestCount.load(ordering: .relaxed) } }
}
