import Foundation

/// A stream of events that outlives its connections. It reconnects by itself and resumes after the last event it
/// delivered. A reader receives every event once and in order, or a `stream:resync` that names the gap.
///
/// Its token is replaced while the stream is open, before it expires, if the client's provider returns another one. The
/// sequence ends when the service answers 204 or the task is cancelled. It throws a ``StreamFailure`` if retrying
/// cannot help, or if the allowed number of tries has failed.
public struct BellhopStream: AsyncSequence, Sendable {
    public typealias Element = ServerSentEvent

    /// Settings of a stream.
    public struct Options: Sendable {
        public var topics: [String]
        /// The event to resume after, instead of starting with new events.
        public var lastEventID: String?
        public var limits = ConnectionMachine.Limits()
        /// Maximum number of bytes that wait for the reader. Beyond it the connection is dropped, and resumed when the
        /// reader has caught up. Without it, a slow reader would collect the stream in memory.
        public var bufferBytesMax = 1 << 20
        /// Called with every change of the connection, before the event that follows it. Of several unread changes,
        /// only the last is reported.
        public var onConnection: (@Sendable (Connection) -> Void)?
        /// Reports when the network is lost and when it returns. On return, the stream is tried at once and the failure
        /// count is reset.
        public var network: (any NetworkMonitor)?
        public var clock = ClientClock.system

        public init(topics: [String] = [], lastEventID: String? = nil) {
            self.topics = topics
            self.lastEventID = lastEventID
        }
    }

    /// State of a stream's connection.
    public struct Connection: Sendable, Hashable {
        public typealias Status = ConnectionMachine.Status
        public typealias Reason = ConnectionMachine.Reason

        public let status: Status
        /// Number of consecutive failed tries.
        public let tries: Int
        /// Time of the next try, while waiting for it.
        public let retryAt: Date?
        public let streamID: String?
        /// The topics that the stream is subscribed to.
        public let topics: [String]
        /// Why the stream is not live.
        public let reason: Reason?
        /// Topics that the service refused, with the reason. They are requested again when the user's access may have
        /// changed.
        public let refused: [String: Reason]

        public init(
            status: Status, tries: Int = 0, retryAt: Date? = nil, streamID: String? = nil, topics: [String] = [],
            reason: Reason? = nil, refused: [String: Reason] = [:]
        ) {
            self.status = status
            self.tries = tries
            self.retryAt = retryAt
            self.streamID = streamID
            self.topics = topics
            self.reason = reason
            self.refused = refused
        }

        init(_ machine: ConnectionMachine) {
            self.init(
                status: machine.status, tries: machine.tries,
                retryAt: machine.retryAt.map { Date(timeIntervalSince1970: Double($0) / 1000) },
                streamID: machine.streamId, topics: machine.ready, reason: machine.reason,
                refused: machine.refused)
        }
    }

    let client: BellhopClient
    let options: Options

    public func makeAsyncIterator() -> Iterator { Iterator(client: client, options: options) }

    public struct Iterator: AsyncIteratorProtocol {
        private let line: ReadLine
        private let client: BellhopClient
        private let options: Options
        private var hasBegun = false

        init(client: BellhopClient, options: Options) {
            let tokens = Tokens(client.token, clock: options.clock)
            // Calls made for the stream use its token.
            let own = client.with(tokens.caller)
            var lineOptions = StreamRunner.Options()
            lineOptions.topics = options.topics
            lineOptions.lastEventID = options.lastEventID ?? ""
            lineOptions.limits = options.limits
            lineOptions.bufferBytesMax = options.bufferBytesMax
            lineOptions.isOnline = options.network?.isOnline ?? true
            line = ReadLine(
                StreamRunner(client: own, tokens: tokens, clock: options.clock, options: lineOptions),
                network: options.network)
            self.client = client
            self.options = options
        }

        /// The position from which a later stream would resume: the id of the last delivered event.
        public private(set) var lastEventID: String = ""

        public mutating func next() async throws -> ServerSentEvent? {
            if !hasBegun {
                try Topics.checkNumber(of: options.topics)
                _ = try client.request("GET", "/v1/stream", headers: [:], bearer: nil)
                hasBegun = true
                await line.line.open()
            }
            while let delivery = await line.line.next() {
                switch delivery {
                case .event(let event):
                    lastEventID = event.id
                    return event
                case .connection(let connection):
                    options.onConnection?(connection)
                    if try await isOver(connection) { return nil }
                case .cursor, .tables: break
                }
            }
            return nil
        }

        private func isOver(_ connection: Connection) async throws -> Bool {
            let reason = connection.reason
            switch connection.status {
            case .closed: return true
            case .refused:
                guard let answer = await line.line.refusal else { return true }
                await line.line.close()
                throw StreamFailure.refused(answer)
            case .unreachable:
                await line.line.close()
                let text = [reason?.code, reason?.detail].compactMap(\.self).joined(separator: ": ")
                throw StreamFailure.unreachable(tries: connection.tries, reason: text)
            case .waiting where reason?.status == 401 && client.token.isFixed:
                // There is no other token to try.
                guard let answer = await line.line.refusal else { return false }
                await line.line.close()
                throw StreamFailure.refused(answer)
            default: return false
            }
        }
    }
}

/// A line that is closed when its reader releases it.
private final class ReadLine: Sendable {
    let line: StreamRunner
    private let watching: Task<Void, Never>?

    init(_ line: StreamRunner, network: (any NetworkMonitor)?) {
        self.line = line
        watching = network.map { network in
            let changes = network.changes()
            return Task { for await state in changes { await line.network(state) } }
        }
    }

    deinit {
        watching?.cancel()
        let line = line
        Task { await line.close() }
    }
}

/// Why a stream ended for good.
public enum StreamFailure: Error, Sendable, CustomStringConvertible {
    /// The service refused the stream, and a retry would get the same answer.
    case refused(ServiceAnswer)
    /// The maximum number of tries has failed.
    case unreachable(tries: Int, reason: String)

    public var description: String {
        switch self {
        case .refused(let answer): "the stream was refused: \(answer.problem)"
        case .unreachable(let tries, let reason): "the stream could not be opened after \(tries) attempts: \(reason)"
        }
    }
}

extension BellhopClient {
    /// Streams the user's own events and the named topics' events while the sequence is read.
    public func events(topics: [String] = [], lastEventID: String? = nil) -> BellhopStream {
        events(BellhopStream.Options(topics: topics, lastEventID: lastEventID))
    }

    public func events(_ options: BellhopStream.Options) -> BellhopStream {
        BellhopStream(client: self, options: options)
    }
}

extension CharacterSet {
    /// The characters that need no escaping in the value of a query item.
    static let urlQueryValueAllowed = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:,")
}
