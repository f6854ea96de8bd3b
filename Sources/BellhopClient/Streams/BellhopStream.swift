import Foundation

/// A stream of events that outlives its connections: it reconnects by itself and resumes after the last event it
/// handed out, so that a reader sees every event once and in order, or a `stream:resync` that says what is missing.
///
/// Its token is replaced while it is open, before it expires, where the client's provider gives another one. The sequence
/// ends when the service answers 204 or the task is cancelled, and throws a ``StreamFailure`` where trying again cannot
/// help, or was tried as often as the options allow.
public struct BellhopStream: AsyncSequence, Sendable {
    public typealias Element = ServerSentEvent

    /// How a stream behaves on a bad network.
    public struct Options: Sendable {
        public var topics: [String]
        /// Resume after this event instead of starting with what happens next.
        public var lastEventID: String?
        public var limits = ConnectionMachine.Limits()
        /// Bytes that may wait for the reader. Past it the connection is dropped and resumed when the reader has caught
        /// up; without it a slow reader would collect the stream in memory.
        public var bufferBytesMax = 1 << 20
        /// Receives every change, before the event that follows it; of several that nobody has read yet, the last.
        public var onConnection: (@Sendable (Connection) -> Void)?
        /// Says when there is no network, and when it is back: then the stream is tried at once, and counts from the start.
        public var network: (any NetworkMonitor)?
        public var clock = ClientClock.system

        public init(topics: [String] = [], lastEventID: String? = nil) {
            self.topics = topics
            self.lastEventID = lastEventID
        }
    }

    /// How a stream stands.
    public struct Connection: Sendable, Hashable {
        public typealias Status = ConnectionMachine.Status
        public typealias Reason = ConnectionMachine.Reason

        public let status: Status
        /// That failed in a row.
        public let tries: Int
        /// When the next one is made, while it waits for it.
        public let retryAt: Date?
        public let streamID: String?
        /// Those that the stream has.
        public let topics: [String]
        /// Why it is not live.
        public let reason: Reason?
        /// Topics that the service refused, and why. They are asked for again when the user may hear of something else.
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
            // What is called for the stream has its token.
            let own = client.with(tokens.caller)
            var lineOptions = StreamLine.Options()
            lineOptions.topics = options.topics
            lineOptions.lastEventID = options.lastEventID ?? ""
            lineOptions.limits = options.limits
            lineOptions.bufferBytesMax = options.bufferBytesMax
            lineOptions.isOnline = options.network?.isOnline ?? true
            line = ReadLine(
                StreamLine(client: own, tokens: tokens, clock: options.clock, options: lineOptions),
                network: options.network)
            self.client = client
            self.options = options
        }

        /// Where a later stream would resume: the id of the last event handed out.
        public private(set) var lastEventID: String = ""

        public mutating func next() async throws -> ServerSentEvent? {
            if !hasBegun {
                _ = try client.request("GET", "/v1/stream", headers: [:], bearer: nil)
                hasBegun = true
                await line.line.open()
            }
            while let saying = await line.line.next() {
                switch saying {
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
                // There is no other token to come.
                guard let answer = await line.line.refusal else { return false }
                await line.line.close()
                throw StreamFailure.refused(answer)
            default: return false
            }
        }
    }
}

/// A line that is closed when nobody reads it any more.
private final class ReadLine: Sendable {
    let line: StreamLine
    private let watching: Task<Void, Never>?

    init(_ line: StreamLine, network: (any NetworkMonitor)?) {
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
    /// The service answered, and trying again would get the same answer.
    case refused(ServiceAnswer)
    /// As many tries failed as the limits allow.
    case unreachable(tries: Int, reason: String)

    public var description: String {
        switch self {
        case .refused(let answer): "the stream was refused: \(answer.problem)"
        case .unreachable(let tries, let reason): "the stream could not be reached in \(tries) tries: \(reason)"
        }
    }
}

extension BellhopClient {
    /// The caller's own events, and those of the topics named, for as long as they are read.
    public func events(topics: [String] = [], lastEventID: String? = nil) -> BellhopStream {
        events(BellhopStream.Options(topics: topics, lastEventID: lastEventID))
    }

    public func events(_ options: BellhopStream.Options) -> BellhopStream {
        BellhopStream(client: self, options: options)
    }
}

extension CharacterSet {
    /// What may stand in the value of a query item without being escaped.
    static let urlQueryValueAllowed = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:,")
}
