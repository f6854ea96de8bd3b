import Foundation
import Synchronization

/// An HTTP server with event streams: reactors in front, shards behind.
public final class Server: Sendable {
    private let streams: any StreamAcceptor
    private let configuration: ServerConfiguration
    private let reactors: [Reactor]
    /// The port that is listened on.
    public let port: Int

    /// Opens the listening sockets; nothing is accepted before ``start()``.
    ///
    /// - Parameter streams: made from the same configuration, and started by whoever made them; this server ends them.
    /// - Throws: `ServerError` or `Router.Ambiguity`.
    public init(
        configuration: ServerConfiguration, routes: [Route], streams: StreamShards<some StreamProgram>
    ) throws {
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

    /// Accepts connections from here on.
    ///
    /// - Throws: `ServerError`, also when this libmicrohttpd does not let a stream's socket live on.
    public func start() throws {
        try DetachTest.run()
        for reactor in reactors { try reactor.start() }
    }

    /// From here on each answer is the last of its connection, so that clients come back to whoever serves next. New
    /// connections are accepted as before.
    public func drain() {
        for reactor in reactors { reactor.inbox.post(.drain) }
    }

    /// Waits until every reactor has made a turn that began after this call. For tests that move the clock.
    func completeTurn() async {
        for reactor in reactors {
            await withCheckedContinuation { waiting in reactor.inbox.post(.turn { waiting.resume() }) }
        }
    }

    /// Stops accepting, lets requests finish until the deadline, then ends the streams. Blocks.
    ///
    /// - Parameter idleSeconds: how long connections without a request are waited for. One that is closed while a request
    ///   is on its way leaves its client without knowing whether that was done.
    public func shutdown(deadlineSeconds: Double, idleSeconds: Double = 0) {
        let now = configuration.clock.now()
        let ending = ReactorInbox.Ending(
            deadline: now + UInt64(deadlineSeconds * 1e9), idleUntil: now + UInt64(idleSeconds * 1e9))
        for reactor in reactors { reactor.inbox.post(.stop(ending)) }
        for reactor in reactors { reactor.join() }
        streams.stop(deadlineSeconds: min(5, deadlineSeconds))
    }

    /// Connections that may be open at a time, after the limit of descriptors.
    public var connectionsMax: Int { configuration.connectionsMax }
    /// Requests that have begun and are not over.
    public var requestsOpen: Int { reactors.reduce(0) { $0 + $1.requestsOpen.load(ordering: .relaxed) } }
    /// Requests whose head was read since the start.
    public var requestCount: Int { reactors.reduce(0) { $0 + $1.requestCount.load(ordering: .relaxed) } }
}
