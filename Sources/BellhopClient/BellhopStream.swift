import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A stream of events that outlives its connections: it reconnects by itself and resumes after the last event it
/// handed out, so that a reader sees every event once and in order, or a `stream:resync` that says what is missing.
///
/// The sequence ends when the service answers 204 or the task is cancelled, and throws a ``StreamFailure`` where trying
/// again cannot help, or was tried as often as the options allow.
public struct BellhopStream: AsyncSequence, Sendable {
    public typealias Element = ServerSentEvent

    /// How a stream behaves on a bad network.
    public struct Options: Sendable {
        public var topics: [String]
        /// Resume after this event instead of starting with what happens next.
        public var lastEventID: String?
        public var reconnection = Reconnection.Policy()
        /// How long the head of the response may take (`CUT N-2`).
        public var connectTimeout: Duration = .seconds(10)
        /// A service sends a heartbeat at least every 25 s; one that is silent longer than this is gone (`CUT N-2`).
        public var silenceTimeout: Duration = .seconds(60)
        /// Bytes that may wait for the reader. Past it the connection is dropped and resumed when the reader has caught
        /// up; without it a slow reader would collect the stream in memory.
        public var bufferBytesMax = 1 << 20
        /// Receives every change, before the event that follows it.
        public var onConnection: (@Sendable (ConnectionChange) -> Void)?
        /// Between 0 and 1; tests inject it.
        public var jitter: @Sendable () -> Double = { Double.random(in: 0...1) }
        /// The wait between tries; tests inject it.
        public var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
        /// Wakes the wait between tries when the network is back.
        public var wake: ReconnectSignal?

        public init(topics: [String] = [], lastEventID: String? = nil) {
            self.topics = topics
            self.lastEventID = lastEventID
        }
    }

    /// What a stream reports about its connection.
    public enum ConnectionChange: Sendable, Hashable {
        case connected
        /// Lost, or not made, and tried again after the wait.
        case waiting(reason: String, milliseconds: Int, failures: Int)
    }

    let client: BellhopClient
    let options: Options

    public func makeAsyncIterator() -> Iterator { Iterator(client: client, options: options) }

    public struct Iterator: AsyncIteratorProtocol {
        private var connection: StreamConnection
        private var ready: ArraySlice<ServerSentEvent> = []

        init(client: BellhopClient, options: Options) {
            connection = StreamConnection(client: client, options: options)
        }

        /// Where a later stream would resume: the id of the last event handed out.
        public private(set) var lastEventID: String = ""

        public mutating func next() async throws -> ServerSentEvent? {
            while ready.isEmpty {
                guard let events = try await connection.events() else { return nil }
                ready = events[...]
            }
            let event = ready.removeFirst()
            lastEventID = event.id
            return event
        }
    }
}

/// Why a stream ended for good.
public enum StreamFailure: Error, Sendable, CustomStringConvertible {
    /// The service answered, and trying again would get the same answer.
    case refused(ServiceAnswer)
    case wrongMediaType(String)
    /// As many tries failed as the policy allows.
    case unreachable(tries: Int, reason: String)

    public var description: String {
        switch self {
        case .refused(let answer): "the stream was refused: \(answer.problem)"
        case .wrongMediaType(let type): "the answer is “\(type)”, not text/event-stream"
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

/// The connections of one stream, one after another.
struct StreamConnection {
    private let client: BellhopClient
    private let options: BellhopStream.Options
    private var exchange: StreamingExchange?
    private var parser: SSEParser
    private var reconnection: Reconnection
    /// What `stream:closing` asked for, until the next connection.
    private var closingMilliseconds: Int?

    init(client: BellhopClient, options: BellhopStream.Options) {
        self.client = client
        self.options = options
        parser = SSEParser(lastEventID: options.lastEventID ?? "")
        reconnection = Reconnection(options.reconnection)
    }

    /// The next events of this connection or of a later one; nil when the stream is over.
    mutating func events() async throws -> [ServerSentEvent]? {
        while true {
            do {
                guard let exchange else {
                    guard try await open() else { return nil }
                    continue
                }
                switch try await exchange.next(within: options.silenceTimeout) {
                case .head: continue
                case .bytes(let data):
                    let events = try parser.parse(data)
                    reconnection.retryMilliseconds = parser.retryMilliseconds
                    noteClosing(events)
                    if !events.isEmpty { return events }
                case .end:
                    try await retry(after: "the service closed the stream", serverMilliseconds: closingMilliseconds)
                }
            } catch let failure as ExchangeFailure {
                try await retry(after: failure.reason(options), serverMilliseconds: closingMilliseconds)
            } catch let failure as BellhopClient.TransportFailure {
                if case .unusableURL = failure { throw failure }
                try await retry(after: "\(failure)", serverMilliseconds: nil)
            } catch is CancellationError {
                exchange = nil
                return nil
            }
        }
    }

    /// Opens a connection; false where the service says that there is nothing to come (204).
    private mutating func open() async throws -> Bool {
        closingMilliseconds = nil
        parser.startNewConnection()
        let exchange = StreamingExchange(try await streamRequest(), bufferBytesMax: options.bufferBytesMax)
        self.exchange = exchange
        guard case .head(let status, let headers) = try await exchange.next(within: options.connectTimeout) else {
            throw ExchangeFailure.transport("the connection ended before an answer")
        }
        switch status {
        case 200:
            let type = headers["content-type"] ?? ""
            guard type.lowercased().hasPrefix("text/event-stream") else { throw StreamFailure.wrongMediaType(type) }
            reconnection.connected()
            options.onConnection?(.connected)
            return true
        case 204:
            self.exchange = nil
            return false
        case 408, 425, 429, 500...599:
            let wait = ServiceAnswer.retryAfterMilliseconds(headers["retry-after"], now: Date())
            try await retry(after: "the service answered \(status)", serverMilliseconds: wait)
            return true
        default:
            let body = await remainder(of: exchange)
            throw StreamFailure.refused(ServiceAnswer(status: status, headers: headers, body: body))
        }
    }

    private func streamRequest() async throws -> URLRequest {
        var path = "/v1/stream"
        if !options.topics.isEmpty {
            let topics = options.topics.joined(separator: ",")
            path += "?topics=" + (topics.addingPercentEncoding(withAllowedCharacters: .urlQueryValueAllowed) ?? topics)
        }
        var headers = ["Accept": "text/event-stream", "Cache-Control": "no-cache"]
        if !parser.lastEventID.isEmpty { headers["Last-Event-ID"] = parser.lastEventID }
        var request = try await client.request("GET", path, headers: headers)
        // The stream's own rules decide when it is dead; URLSession's idle timeout must not interfere.
        request.timeoutInterval = 7 * 86400
        return request
    }

    /// The explanation of a refusal, bounded, because it only serves a message.
    private func remainder(of exchange: StreamingExchange) async -> Data {
        var body = Data()
        while body.count < 65536, case .bytes(let data)? = try? await exchange.next(within: .seconds(5)) {
            body.append(data)
        }
        return body
    }

    private mutating func noteClosing(_ events: [ServerSentEvent]) {
        for event in events where event.name == "stream:closing" {
            closingMilliseconds = event.json["retryAfterMs"].int
        }
    }

    private mutating func retry(after reason: String, serverMilliseconds: Int?) async throws {
        exchange = nil
        let jitter = options.jitter()
        guard let wait = reconnection.delayAfterFailure(serverMilliseconds: serverMilliseconds, jitter: jitter) else {
            throw StreamFailure.unreachable(tries: options.reconnection.triesMax, reason: reason)
        }
        options.onConnection?(.waiting(reason: reason, milliseconds: wait, failures: reconnection.failures))
        guard let wake = options.wake else { return try await options.sleep(.milliseconds(wait)) }
        if try await wake.wait(orSleep: { [sleep = options.sleep] in try await sleep(.milliseconds(wait)) }) {
            reconnection.connected()
        }
    }
}

extension ExchangeFailure {
    fileprivate func reason(_ options: BellhopStream.Options) -> String {
        switch self {
        case .transport(let reason): reason
        case .silence: "nothing was heard in time"
        case .overflow: "more than \(options.bufferBytesMax) bytes were waiting to be read"
        }
    }
}

extension CharacterSet {
    /// What may stand in the value of a query item without being escaped.
    static let urlQueryValueAllowed = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:,")
}
