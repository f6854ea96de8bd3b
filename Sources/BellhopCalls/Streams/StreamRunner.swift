import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Runs the connection and token machines: one stream that reconnects by itself and delivers to one reader.
package actor StreamRunner {
    /// An item for the reader, delivered in order.
    package enum Delivery: Sendable {
        case event(ServerSentEvent)
        case connection(BellhopStream.Connection)
        /// An id without an event: nothing is delivered, but a later connection resumes from there.
        case cursor(String)
        /// The answer to the last requested tables.
        case tables(TablesMachine.Outcome)
    }

    package struct Options: Sendable {
        package var topics: [String] = []
        package var lastEventID = ""
        package var limits = ConnectionMachine.Limits()
        package var bufferBytesMax = 1 << 20
        package var isOnline = true
        package var isForeground = true
        /// The user that a stream must belong to.
        package var user: String?
        /// Called once, before the first connection, when the tokens have an identity. Returns the position from which the
        /// stream resumes; nil to not connect.
        package var begin: (@Sendable () async -> String?)?

        package init() {}
    }

    /// Maximum number of undelivered events before reading from the network pauses.
    private static let undeliveredMax = 256

    private let client: BellhopClient
    private let tokens: Tokens
    private let clock: ClientClock
    private let bufferBytesMax: Int

    private var machine: ConnectionMachine
    private var shown: BellhopStream.Connection
    private var timers = Timers()
    private var reading: Task<Void, Never>?
    private var exchange: StreamingExchange?
    private var parser: SSEParser
    /// The last event delivered to the reader: the next connection starts here.
    private var cursor: String
    private var begin: (@Sendable () async -> String?)?
    private var streamToken: String?
    /// The service's last answer that refused the stream.
    private(set) var refusal: ServiceAnswer?

    private var tables = TablesMachine()
    /// Changes of the subscriptions run one after the other; otherwise an older one could win.
    private var lastChange: Task<ServiceAnswer, Never>?

    private var undelivered: [Delivery] = []
    private var reader: CheckedContinuation<Delivery?, Never>?
    private var stalled: [CheckedContinuation<Void, Never>] = []
    private var isClosed = false

    /// - Parameter client: must use the given tokens.
    package init(client: BellhopClient, tokens: Tokens, clock: ClientClock, options: Options) {
        self.client = client
        self.tokens = tokens
        self.clock = clock
        bufferBytesMax = options.bufferBytesMax
        machine = ConnectionMachine(
            topics: options.topics, isOnline: options.isOnline, isForeground: options.isForeground,
            user: options.user, limits: options.limits)
        begin = options.begin
        shown = BellhopStream.Connection(machine)
        cursor = options.lastEventID
        parser = SSEParser(lastEventID: cursor)
    }

    // MARK: Commands

    /// Opens the stream, or retries at once.
    package func open() {
        tokens.observe(
            Tokens.Events(
                renew: { id, token in Task { [weak self] in await self?.renew(id, token) } },
                reconnect: { Task { [weak self] in await self?.reconnect() } }))
        receive(.open)
    }

    package func network(_ state: NetworkState) {
        receive(.network(isOnline: state.isOnline, isChanged: state.isChanged))
    }

    package func lifecycle(isForeground: Bool) { receive(.lifecycle(isForeground: isForeground)) }

    /// Replaces the topics, the tables, or both.
    ///
    /// - Parameter lastEventId: the last event of an earlier stream; rows that changed since are sent first.
    package func want(topics: [String]? = nil, tables wanted: [JSON]? = nil, lastEventId: String? = nil) {
        if let topics { receive(.topics(topics)) }
        if let wanted { receive(.want(wanted, lastEventId: lastEventId)) }
    }

    package func close() {
        guard !isClosed else { return }
        receive(.close)
        isClosed = true
        timers.stopAll()
        tokens.close()
        reader?.resume(returning: nil)
        reader = nil
        proceed()
    }

    // MARK: The reader

    /// Returns the next item, or nil once the line is closed or the reader's task is cancelled.
    package func next() async -> Delivery? {
        await withTaskCancellationHandler {
            if Task.isCancelled { return nil }
            return await withCheckedContinuation { continuation in
                precondition(reader == nil, "a line can have only one reader")
                if !undelivered.isEmpty {
                    continuation.resume(returning: undelivered.removeFirst())
                    if undelivered.count < StreamRunner.undeliveredMax / 2 { proceed() }
                } else if isClosed {
                    continuation.resume(returning: nil)
                } else {
                    reader = continuation
                }
            }
        } onCancel: {
            Task { await self.close() }
        }
    }

    private func deliver(_ delivery: Delivery) {
        if let waiting = reader {
            reader = nil
            waiting.resume(returning: delivery)
            return
        }
        // Only the latest connection state is useful, and many may arrive while the reader is busy.
        if case .connection = delivery, case .connection? = undelivered.last { undelivered.removeLast() }
        undelivered.append(delivery)
    }

    private func proceed() {
        for continuation in stalled { continuation.resume() }
        stalled = []
    }

    // MARK: The machine

    private func receive(_ input: ConnectionMachine.Input) {
        guard !isClosed else { return }
        let wasLive = machine.streamId != nil
        let actions = machine.receive(input, now: clock.now(), random: clock.random())
        for action in actions {
            switch action {
            case .timer(let name, let at): setTimer(name, at)
            case .connect(let attempt, let topics, let isFresh): connect(attempt, topics, isFresh)
            case .disconnect: disconnect()
            case .subscribe(let attempt, let id, let topics): subscribe(attempt, id, topics)
            }
        }
        if wasLive, machine.streamId == nil {
            tokens.receive(.lost)
            receive(TablesMachine.Input.lost)
        }
        let connection = BellhopStream.Connection(machine)
        guard connection != shown else { return }
        shown = connection
        deliver(.connection(connection))
    }

    private func setTimer(_ name: String, _ at: Int?) {
        timers.set(name, at: at, clock) { [weak self] number in await self?.fire(name, number) }
    }

    private func fire(_ name: String, _ number: Int) {
        guard timers.take(name, number), !isClosed else { return }
        if name == "tables" { return receive(TablesMachine.Input.timer) }
        // Bytes that wait for a slow reader count as activity, so this is not silence.
        if name == "silence", let heardAt = exchange?.heardAt, heardAt > machine.lastHeardAt {
            receive(.from(attempt: machine.attempt, .bytes(at: heardAt)))
        }
        receive(.timer(name))
    }

    private func disconnect() {
        reading?.cancel()
        (reading, exchange) = (nil, nil)
        proceed()
    }

    private func reconnect() { report(.again(isFresh: true), machine.attempt) }

    private func report(_ transportEvent: ConnectionMachine.TransportEvent, _ attempt: Int) {
        receive(.from(attempt: attempt, transportEvent))
    }

    private func isCurrent(_ attempt: Int) -> Bool {
        !isClosed && machine.attempt == attempt && (machine.status == .connecting || machine.status == .live)
    }

    // MARK: One connection

    private func connect(_ attempt: Int, _ topics: [String], _ isFresh: Bool) {
        reading = Task { [weak self] in await self?.read(attempt, topics, isFresh) }
    }

    private func read(_ attempt: Int, _ topics: [String], _ isFresh: Bool) async {
        let spent = isFresh ? streamToken : nil
        let bearer = await tokens.get(spent: spent, problem: spent == nil ? nil : refusal?.reason)
        guard isCurrent(attempt) else { return }
        if bearer == nil, !tokens.provider.isFixed || tokens.problem?.code != "token.none" || begin != nil {
            return report(withoutToken(isFresh), attempt)
        }
        if let begin {
            guard let position = await begin() else { return }
            (cursor, self.begin) = (position, nil)
            machine.expect(tokens.identity)
            guard isCurrent(attempt) else { return }
        }
        streamToken = bearer
        let since = cursor
        parser = SSEParser(lastEventID: since)
        do {
            let exchange = StreamingExchange(
                try request(topics, bearer, since), bufferBytesMax: bufferBytesMax, clock: clock)
            self.exchange = exchange
            while isCurrent(attempt) {
                switch try await exchange.next() {
                case .head(let status, let headers):
                    guard try await begin(status, headers: headers, exchange, attempt: attempt) else { return }
                case .bytes(let data):
                    guard isCurrent(attempt) else { return }
                    try take(data, attempt, since)
                    await rest()
                case .end: return report(.ended(code: "lost", detail: "the service closed the stream"), attempt)
                }
            }
        } catch is CancellationError {
        } catch ExchangeFailure.overflow {
            // Delivered events stay; the rest is replayed on a new connection.
            report(.again(isFresh: false), attempt)
        } catch ExchangeFailure.transport(let reason) {
            report(.ended(code: "lost", detail: reason), attempt)
        } catch is SSEParser.EventTooLarge {
            report(.ended(code: "overflow", detail: "an event is larger than this client accepts"), attempt)
        } catch {
            report(.ended(code: "lost", detail: "\(error)"), attempt)
        }
    }

    /// Returns why there is no token.
    private func withoutToken(_ isFresh: Bool) -> ConnectionMachine.TransportEvent {
        if let answer = tokens.refusal, answer.status != 0 { return StreamRunner.head(answer, clock) }
        let problem = tokens.problem ?? .init(code: "token.none")
        guard isFresh, let status = problem.status else { return .ended(code: problem.code, detail: problem.detail) }
        // The app has no other token than the one that was refused.
        return .head(status: status, problem: ["code": .string(problem.code), "detail": JSON(problem.detail)])
    }

    private func request(_ topics: [String], _ bearer: String?, _ since: String) throws -> URLRequest {
        var path = "/v1/stream"
        if !topics.isEmpty {
            let joined = topics.joined(separator: ",")
            path += "?topics=" + (joined.addingPercentEncoding(withAllowedCharacters: .urlQueryValueAllowed) ?? joined)
        }
        var headers = ["Accept": "text/event-stream", "Cache-Control": "no-cache"]
        if !since.isEmpty { headers["Last-Event-ID"] = since }
        var request = try client.request("GET", path, headers: headers, bearer: bearer)
        // The machine decides when the stream is dead; URLSession's idle timeout must not interfere.
        request.timeoutInterval = 7 * 86400
        return request
    }

    /// Returns false if no connection was established.
    private func begin(
        _ status: Int, headers: [String: String], _ exchange: StreamingExchange, attempt: Int
    ) async throws -> Bool {
        guard status == 200 else {
            // The body of a refusal is bounded, because it only serves as a message.
            var body = Data()
            while status != 204, body.count < 65536, case .bytes(let data)? = try? await exchange.next() {
                body.append(data)
            }
            guard isCurrent(attempt) else { return false }
            let answer = ServiceAnswer(status: status, headers: headers, body: body)
            refusal = answer
            report(StreamRunner.head(answer, clock), attempt)
            return false
        }
        let type = headers["content-type"] ?? ""
        let essence = type.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
        guard essence.lowercased() == "text/event-stream" else {
            report(
                .ended(code: "media_type", detail: "the response has the type “\(type)”, not text/event-stream"),
                attempt)
            return false
        }
        report(.head(status: 200), attempt)
        return true
    }

    private static func head(_ answer: ServiceAnswer, _ clock: ClientClock) -> ConnectionMachine.TransportEvent {
        .head(status: answer.status, problem: answer.json, retryAfterMilliseconds: answer.waitMilliseconds(clock))
    }

    private func take(_ data: Data, _ attempt: Int, _ since: String) throws(SSEParser.EventTooLarge) {
        report(.bytes(at: clock.now()), attempt)
        let events = try parser.parse(data)
        for event in events {
            guard isCurrent(attempt) else { return }
            guard take(event, attempt, since) else { return }
            cursor = event.id
            deliver(.event(event))
        }
        guard isCurrent(attempt) else { return }
        if let retry = parser.retryMilliseconds, retry != machine.retryMilliseconds {
            receive(.retry(milliseconds: retry))
        }
        if parser.lastEventID != cursor {
            cursor = parser.lastEventID
            deliver(.cursor(cursor))
        }
    }

    /// The members of the stream's own events, and of the answer to its topics.
    private struct StreamParts: Decodable {
        package let streamId, userId, identity, reason: String?
        package let topics: [String]?
        package let retryAfterMs: Int?
    }

    /// Returns false if the stream's first event belongs to another user or tenant.
    private func take(_ event: ServerSentEvent, _ attempt: Int, _ since: String) -> Bool {
        switch event.name {
        case "stream:ready":
            let data = event.json.model(StreamParts.self)
            if let id = data?.streamId {
                report(
                    .ready(
                        streamId: id, topics: data?.topics ?? [], userId: data?.userId,
                        identity: data?.identity), attempt)
                guard machine.streamId == id else { return false }
                tokens.receive(.ready(streamId: id, token: streamToken))
                receive(TablesMachine.Input.ready(streamId: id, since: since))
            }
        case "stream:expiring": tokens.receive(.expiring)
        case "stream:scope": receive(ConnectionMachine.Input.scope)
        case "stream:closing":
            let data = event.json.model(StreamParts.self)
            report(.closing(reason: data?.reason, retryAfterMilliseconds: data?.retryAfterMs ?? 0), attempt)
        default: break
        }
        return true
    }

    /// Waits until the reader has caught up; unread bytes stay in the network's buffers.
    private func rest() async {
        guard undelivered.count >= StreamRunner.undeliveredMax, !Task.isCancelled else { return }
        await withCheckedContinuation { stalled.append($0) }
    }

    // MARK: Subscription requests

    private func renew(_ id: String, _ token: String) async {
        let body: JSON = ["token": .string(token)]
        let answer = await client.attempt("PUT", "/v1/streams/\(id.pathSegment)/token", body)
        if answer.status == 200, id == machine.streamId {
            streamToken = token
            receive(ConnectionMachine.Input.scope)
        }
        tokens.receive(.renewed(streamId: id, token: token, status: answer.status))
    }

    private func change(_ id: String, _ body: JSON) async -> ServiceAnswer {
        let before = lastChange
        let task = Task { [client] in
            _ = await before?.value
            return await client.attempt("PUT", "/v1/streams/\(id.pathSegment)/subscriptions", body)
        }
        lastChange = task
        return await task.value
    }

    private func subscribe(_ attempt: Int, _ id: String, _ topics: [String]) {
        Task { [weak self] in
            guard let self else { return }
            let answer = await change(id, ["topics": .array(topics.map(JSON.string))])
            await subscribed(answer, attempt, topics)
        }
    }

    private func subscribed(_ answer: ServiceAnswer, _ attempt: Int, _ asked: [String]) {
        let json = answer.json
        if answer.status != 200, isCurrent(attempt) { refusal = answer }
        report(
            .subscribed(
                asked: asked, topics: json.model(StreamParts.self)?.topics ?? [], status: answer.status, problem: json,
                retryAfterMilliseconds: answer.waitMilliseconds(clock)), attempt)
    }

    private func receive(_ input: TablesMachine.Input) {
        guard !isClosed else { return }
        for action in tables.receive(input, now: clock.now()) {
            switch action {
            case .timer(let at): setTimer("tables", at)
            case .answered(let answer): deliver(.tables(answer))
            case .put(let id, let count, let wanted, let since):
                var body: [String: JSON] = ["tables": .array(wanted)]
                if let since { body["lastEventId"] = .string(since) }
                Task { [weak self, body] in
                    guard let self else { return }
                    await answered(await change(id, .object(body)), count)
                }
            }
        }
    }

    private func answered(_ answer: ServiceAnswer, _ count: Int) {
        receive(
            TablesMachine.Input.answer(
                count: count, status: answer.status, body: answer.json,
                retryAfterMilliseconds: answer.waitMilliseconds(clock)))
    }
}

extension ServiceAnswer {
    /// Why the service refused a request.
    var reason: ConnectionMachine.Reason {
        let refusal = Refusal(body)
        return .init(code: refusal.code ?? "http.\(status)", status: status, detail: refusal.detail)
    }

    /// Returns the delay that the service requests, or 0.
    package func waitMilliseconds(_ clock: ClientClock) -> Int {
        retryAfterMilliseconds(now: Date(timeIntervalSince1970: Double(clock.now()) / 1000)) ?? 0
    }
}
