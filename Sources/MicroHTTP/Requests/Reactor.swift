import CMicroHTTPD
import Glibc
import Synchronization
import Threads

/// One HTTP thread: a libmicrohttpd daemon in external-poll mode, and an inbox.
///
/// This thread makes every call of libmicrohttpd for the daemon, including callbacks. So suspending, resuming and
/// completing cannot race.
///
/// `@unchecked Sendable`: other threads use only `inbox`, `start` and `join`; the rest belongs to the thread.
final class Reactor: @unchecked Sendable {
    let inbox = ReactorInbox()
    let configuration: ServerConfiguration
    let router: Router
    let streams: any StreamAcceptor
    /// The number of requests whose head was read since the start.
    let requestCount = Atomic<Int>(0)
    /// The number of open requests. Only the thread writes it.
    let requestsOpen = Atomic<Int>(0)
    /// All connections of libmicrohttpd, in no order.
    var connections: [HTTPConnection] = []
    /// The index at which the check of the connections continues, and the time of the next check.
    var nextCheckIndex = 0
    var nextCheckAt: UInt64 = 0
    private var acceptedCount: UInt64 = 0
    /// Whether the last attempt to accept a connection failed, for example because no descriptor is left. Without any
    /// connection, libmicrohttpd would retry immediately and endlessly, at the cost of a whole core.
    private var isStarved = false
    /// Grows with each turn of the loop.
    private var turn: UInt64 = 0
    private let listening: Int32
    private(set) var daemon: OpaquePointer?
    private var daemonDescriptor: Int32 = -1
    private var pollDescriptor: Int32 = -1
    /// Only the kernel writes to it, while nothing else runs.
    @exclusivity(unchecked) private var events = [epoll_event](repeating: epoll_event(), count: 16)
    /// Whether each answer is the last of its connection.
    private var isDraining = false
    private var ending: ReactorInbox.Ending?
    /// Called at the end of this turn.
    private var endOfTurnActions: [@Sendable () -> Void] = []
    private var isListening = true
    /// The connection whose request began last.
    private(set) var lastOpened: HTTPConnection?
    /// Nil before the start and from the stop on.
    var lingering: LingeringSockets?
    private var firstWaiting: Request?
    private unowned(unsafe) var lastWaiting: Request?
    private let thread = LoopThread("reactor")

    init(listening: Int32, configuration: ServerConfiguration, router: Router, streams: any StreamAcceptor) {
        self.listening = listening
        self.configuration = configuration
        self.router = router
        self.streams = streams
    }

    func start() throws(ServerError) {
        try open()
        thread.start { [self] in run() }
    }

    /// Creates the daemon, without running it.
    func open() throws(ServerError) {
        pollDescriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        lingering = LingeringSockets(pollDescriptor: pollDescriptor)
        let context = Unmanaged.passUnretained(self).toOpaque()
        var options = [
            // It must come first. C takes the function's address as an integer; the type before the cast is the type
            // that it calls. The `va_list` is not read; on x86-64 and on ARM it is passed as a pointer.
            MHD_OptionItem(
                .EXTERNAL_LOGGER,
                unsafeBitCast(
                    libraryHasLogged
                        as @convention(c) (
                            UnsafeMutableRawPointer?, UnsafePointer<CChar>?, UnsafeMutableRawPointer?
                        ) -> Void, to: Int.self), context),
            MHD_OptionItem(.LISTEN_SOCKET, Int(listening)),
            MHD_OptionItem(.CONNECTION_LIMIT, configuration.connectionsMaxOfReactor),
            MHD_OptionItem(.CONNECTION_TIMEOUT, configuration.connectionTimeoutSeconds),
            MHD_OptionItem(.CONNECTION_MEMORY_LIMIT, configuration.connectionMemoryBytes),
            // C takes the function's address as an integer; the type before the cast is the type that it calls.
            MHD_OptionItem(
                .NOTIFY_COMPLETED, unsafeBitCast(requestCompleted as MHD_RequestCompletedCallback, to: Int.self),
                context),
            // C takes the function's address as an integer; the type before the cast is the type that it calls.
            MHD_OptionItem(
                .NOTIFY_CONNECTION, unsafeBitCast(connectionChanged as MHD_NotifyConnectionCallback, to: Int.self),
                context),
            // C takes the function's address as an integer; the type before the cast is the type that it calls.
            MHD_OptionItem(
                .URI_LOG_CALLBACK,
                unsafeBitCast(
                    targetRead
                        as @convention(c) (
                            UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?
                        ) -> UnsafeMutableRawPointer?, to: Int.self), context),
            // C takes the function's address as an integer; the type before the cast is the type that it calls.
            MHD_OptionItem(
                .UNESCAPE_CALLBACK,
                unsafeBitCast(
                    keepEscapes
                        as @convention(c) (
                            UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutablePointer<CChar>?
                        ) -> Int, to: Int.self), context),
            MHD_OptionItem(.END, 0),
        ]
        let flags =
            MHD_USE_EPOLL.rawValue | MHD_USE_TURBO.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue
            | MHD_USE_ERROR_LOG.rawValue
        daemon = cmhd_start(flags, accessHandler, context, &options)
        guard let daemon else { throw ServerError(description: "libmicrohttpd refused to start") }
        daemonDescriptor = cmhd_epoll_descriptor(daemon)
        watch(daemonDescriptor)
        watch(inbox.descriptor)
    }

    func join() { thread.join() }

    private func watch(_ descriptor: Int32) {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = descriptor
        precondition(
            epoll_ctl(pollDescriptor, EPOLL_CTL_ADD, descriptor, &event) == 0, "a descriptor cannot be added to epoll")
    }

    // MARK: The loop

    private func run() {
        guard let daemon else { return }
        while runTurn(of: daemon, patienceMilliseconds: ending == nil ? 1000 : 20) {}
        stop(daemon)
    }

    /// Does the pending work. Returns false if this was the last turn.
    ///
    /// - Parameter patienceMilliseconds: How long to wait for work.
    func runTurn(of daemon: OpaquePointer, patienceMilliseconds: UInt64) -> Bool {
        if isStarved { inbox.wait(milliseconds: 100) }
        var milliseconds: UInt64 = 0
        let isUrgent = MHD_get_timeout(daemon, &milliseconds) == .YES
        let wait = Int32(isUrgent ? min(milliseconds, patienceMilliseconds) : patienceMilliseconds)
        let found = max(0, Int(epoll_wait(pollDescriptor, &events, Int32(events.count), wait)))
        var isDaemonReady = false
        // Under load almost every turn is for the daemon alone. The inbox is read only if it has signalled.
        for event in events[..<found] {
            switch event.data.fd {
            case daemonDescriptor: isDaemonReady = true
            case inbox.descriptor: for item in inbox.take() { handle(item) }
            default: lingering?.drain(event.data.fd)
            }
        }
        turn &+= 1
        // Without connections, only the listening socket can be ready.
        let acceptedBefore = acceptedCount
        let mustAccept = isDaemonReady && connections.isEmpty && ending == nil
        MHD_run(daemon)
        isStarved = mustAccept && acceptedCount == acceptedBefore
        let now = configuration.clock.now()
        answerTimedOutRequests(now)
        disconnectSlowSenders(now)
        for report in endOfTurnActions { report() }
        endOfTurnActions.removeAll(keepingCapacity: true)
        guard let ending else { return true }
        if isListening, now >= min(ending.idleUntil, ending.deadline) { stopListening(daemon) }
        return !isOver(ending, now)
    }

    private func handle(_ item: ReactorInbox.Item) {
        switch item {
        case .answer(let request, let suspension, let response):
            resume(request, suspension) { $0.state = .answerReady(response) }
        case .runAgain(let request, let suspension):
            resume(request, suspension) { $0.state = .readyToRunAgain }
        case .piece(let request, let suspension, let piece):
            resume(request, suspension) { $0.continue(with: piece) }
        case .drain: isDraining = true
        case .turn(let report): endOfTurnActions.append(report)
        case .stop(let ending):
            isDraining = true
            self.ending = ending
            cmhd_refuse_new_connections(listening)
        }
    }

    /// Accepts only the connections that the kernel has already accepted. Closing the listening socket would reset
    /// them, and lose the data that they have sent.
    private func stopListening(_ daemon: OpaquePointer) {
        isListening = false
        for _ in 0..<configuration.backlog {
            let before = acceptedCount
            MHD_run(daemon)
            if acceptedCount == before { break }
        }
        // Quiesces on this thread; from another thread it can abort the process under load.
        let descriptor = MHD_quiesce_daemon(daemon)
        if descriptor >= 0 { close(descriptor) }
    }

    /// Whether no request has to be waited for any more. Every complete request gets an answer. A partial head is not a
    /// request, and neither is the silence between two requests.
    private func isOver(_ ending: ReactorInbox.Ending, _ now: UInt64) -> Bool {
        if now >= ending.deadline { return true }
        return now >= ending.idleUntil
            && connections.allSatisfy { connection in
                switch connection.phase {
                case .head, .nextRequest: true
                case .body, .answer, .sending: false
                }
            }
    }

    private func resume(_ request: Request, _ suspension: UInt32, _ change: (Request) -> Void) {
        guard case .waiting = request.state, request.suspension == suspension, let connection = request.connection
        else {
            return
        }
        removeWaiting(request)
        change(request)
        MHD_resume_connection(connection)
    }

    /// Answers requests that have waited for too long. A suspended connection neither times out nor notices that its
    /// client is gone.
    private func answerTimedOutRequests(_ now: UInt64) {
        guard firstWaiting != nil else { return }
        let patience = UInt64(configuration.answerSeconds) * 1_000_000_000
        // A sum, not a difference: the clock starts with the machine, and may be smaller than the time limit.
        while let request = firstWaiting, request.suspendedAt + patience < now { answerUnanswered(request) }
    }

    private func answerAllUnanswered() {
        while let request = firstWaiting { answerUnanswered(request) }
    }

    private func answerUnanswered(_ request: Request) {
        let response = configuration.problem(.unanswered)
        resume(request, request.suspension) { request in
            // The head of an answer in pieces has already left.
            if request.pieces != nil { request.continue(with: .failed) } else { request.state = .answerReady(response) }
        }
    }

    /// Stops the daemon. libmicrohttpd may not be stopped with suspended connections, so they are answered first.
    private func stop(_ daemon: OpaquePointer) {
        answerAllUnanswered()
        for _ in 0..<8 where requestsOpen.load(ordering: .relaxed) > 0 {
            MHD_run(daemon)
            // After an answered request, the next one of its connection is read, and may wait again.
            answerAllUnanswered()
        }
        lingering?.removeAll()
        lingering = nil
        MHD_stop_daemon(daemon)
        close(pollDescriptor)
        self.daemon = nil
    }

    // MARK: The steps of a request

    /// Handles a complete head. Its errors are found before any byte of the body is read.
    func begin(_ request: Request, _ connection: OpaquePointer, _ head: RequestHead) -> MHD_Result {
        request.connection = connection
        requestCount.wrappingAdd(1, ordering: .relaxed)
        let framing = BodyFraming(head)
        let mistake = head.mistake?.rawValue ?? framing.mistake ?? request.targetMistake?.rawValue
        request.refusal = mistake.map { .malformed(detail: $0) } ?? findRoute(request)
        let max = request.route?.bodyBytesMax ?? 0
        if request.refusal == nil, case .length(let count) = framing, count > max {
            request.refusal = .bodyTooLarge(max: max)
        }
        // An unwanted body is not read: the answer is sent now, and the connection is then closed. The same applies if
        // the end of the request is uncertain.
        request.isBodyUnread = framing != .none || mistake != nil
        if let refusal = request.refusal, framing != .none || mistake != nil {
            return answer(request, with: configuration.problem(refusal))
        }
        if let refusal = admitBody(of: request, framing, max: max) { return answer(request, with: refusal) }
        request.isBodyUnread = false
        switch framing {
        case .none, .unusable: break
        case .length(let count): request.bodyBytesExpected = count
        case .chunked:
            request.bodyBytesExpected = max
            request.chunks = head.withBodyStart { ChunkFraming(bufferStart: $0, turn: turn) }
        }
        return .YES
    }

    private func findRoute(_ request: Request) -> TransportProblem? {
        let match = request.target.withUnsafeBufferPointer { target in
            router.match(request.method, UnsafeBufferPointer(rebasing: target[..<request.pathLength]))
        }
        switch match {
        case .found(let route, let parameters):
            request.route = route
            request.parameters = parameters
            return isDecodable(request) ? nil : .malformed(detail: "The address is not percent-encoded UTF-8.")
        case .notFound: return request.concernsServer ? .methodNotAllowed(allow: router.allow) : .notFound
        case .methodNotAllowed(let allow): return .methodNotAllowed(allow: allow)
        }
    }

    private func isDecodable(_ request: Request) -> Bool {
        !request.isEncoded || PercentEncoding.decode(request.target[...], plusIsSpace: true) != nil
    }

    func receive(_ request: Request, _ bytes: UnsafeBufferPointer<UInt8>) -> MHD_Result {
        guard request.earlyAnswer == nil else { return .YES }
        let max = request.route?.bodyBytesMax ?? 0
        request.chunks?.receive(bytes, turn: turn)
        let count = request.body.count + bytes.count
        // A chunked body announces no length.
        guard count <= max else { return abortBody(request, with: .bodyTooLarge(max: max)) }
        if count > request.bodyBytesReserved {
            let wanted = min(max, Swift.max(count, request.bodyBytesReserved * 2))
            guard request.reservation?.grow(to: wanted) != false else {
                return abortBody(request, with: .noRoomForBody)
            }
            request.bodyBytesReserved = wanted
        }
        if request.body.capacity < count { request.body.reserveCapacity(request.bodyBytesReserved) }
        request.body.append(contentsOf: bytes)
        return .YES
    }

    /// Answers a request in the middle of its body, which is not read further.
    private func abortBody(_ request: Request, with problem: TransportProblem) -> MHD_Result {
        request.releaseBody()
        request.isBodyUnread = true
        answerIncomplete(request, on: cmhd_connection_descriptor(request.connection), with: problem)
        return .NO
    }

    /// Continues a request that is complete, or whose connection was resumed.
    func proceed(_ request: Request) -> MHD_Result {
        switch request.state {
        case .receiving:
            if let response = request.earlyAnswer { return answer(request, with: response) }
            request.chunks?.finish(turn: turn)
            if request.chunks?.verdict == .bad {
                request.refusal = .malformed(detail: "A line of the chunked body ends without CR.")
            }
            if let refusal = request.refusal { return refuse(request, refusal) }
            return run(request)
        case .readyToRunAgain: return run(request)
        case .answerReady(let response):
            // From here on its headers are not shared, and grow in place.
            request.state = .answered
            return answer(request, with: response)
        case .waiting, .answered: return .YES
        }
    }

    private func refuse(_ request: Request, _ refusal: TransportProblem) -> MHD_Result {
        if request.method == .options, case .methodNotAllowed(let allow) = refusal {
            return answer(request, with: Response(status: 204, headers: [("Allow", allow)]))
        }
        return answer(request, with: configuration.problem(refusal))
    }

    private func run(_ request: Request) -> MHD_Result {
        guard let route = request.route else { return .NO }
        switch route.handler(request) {
        case .response(let response): return answer(request, with: response)
        case .deferred(let start):
            let (suspension, inbox) = (suspend(request), inbox)
            start(Responder { inbox.post(.answer(request, suspension: suspension, $0)) })
            return .YES
        case .again(let start):
            let (suspension, inbox) = (suspend(request), inbox)
            start { inbox.post(.runAgain(request, suspension: suspension)) }
            return .YES
        case .stream(let opening): return openStream(request, opening)
        }
    }

    /// Suspends the connection first, so that the answer always finds a suspended connection.
    func suspend(_ request: Request) -> UInt32 {
        request.detachFromReactor()
        request.suspension &+= 1
        request.state = .waiting
        request.suspendedAt = configuration.clock.now()
        appendWaiting(request)
        if let connection = request.connection { MHD_suspend_connection(connection) }
        return request.suspension
    }

    private func appendWaiting(_ request: Request) {
        request.previousWaiting = lastWaiting
        if let last = lastWaiting { last.nextWaiting = request } else { firstWaiting = request }
        lastWaiting = request
    }

    private func removeWaiting(_ request: Request) {
        let (previous, next) = (request.previousWaiting, request.nextWaiting)
        request.previousWaiting = nil
        request.nextWaiting = nil
        next?.previousWaiting = previous
        if lastWaiting === request { lastWaiting = previous }
        if let previous { previous.nextWaiting = next } else { firstWaiting = next }
    }

    // MARK: Answers

    private func answer(_ request: Request, with response: consuming Response) -> MHD_Result {
        guard let connection = request.connection else { return .NO }
        configuration.decorate(request, &response)
        // If the end of the body is uncertain, the following bytes must not be taken for a request.
        let isUncertain = request.chunks.map { $0.verdict != .sound } ?? false
        if isUncertain || isDraining { response.headers.append("Connection", "close") }
        request.state = .answered
        request.answeredStatus = response.status
        request.answeredBytes = response.bodyBytes
        let made: OpaquePointer?
        switch response.body {
        case .none:
            guard let made = owner(of: connection)?.bodilessResponse(response.headers) else { return .NO }
            return MHD_queue_response(connection, UInt32(response.status), made)
        case .bytes(var bytes):
            made = bytes.withUnsafeMutableBytes {
                MHD_create_response_from_buffer($0.count, $0.baseAddress, .RESPMEM_MUST_COPY)
            }
        case .shared(let shared):
            made = MHD_create_response_from_buffer(shared.bytes.count, shared.bytes.base, .RESPMEM_PERSISTENT)
        case .pieces where request.method == .head: made = cmhd_unsized_response()
        case .pieces(let body): made = piecesResponse(request, body)
        }
        guard let made else { return .NO }
        defer { MHD_destroy_response(made) }
        response.headers.forEachCString { _ = MHD_add_response_header(made, $0, $1) }
        return MHD_queue_response(connection, UInt32(response.status), made)
    }

    private func owner(of handle: OpaquePointer) -> HTTPConnection? {
        cmhd_connection_context(handle).map { Unmanaged<HTTPConnection>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Answers an incomplete request. libmicrohttpd accepts no answer before it has received everything, and sends
    /// nothing meanwhile. So the answer is written directly to the socket, and the connection must then end.
    func answerIncomplete(_ request: Request, on descriptor: Int32, with problem: TransportProblem) {
        var response = configuration.problem(problem)
        configuration.decorate(request, &response)
        request.state = .answered
        request.answeredStatus = response.status
        request.answeredBytes = response.bodyBytes
        // A socket to which nothing was sent yet accepts the whole answer.
        _ = response.closingBytes(to: request.method).withUnsafeBytes {
            send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
    }

    private func openStream(_ request: Request, _ opening: StreamOpening) -> MHD_Result {
        guard let connection = request.connection else { return .NO }
        guard let handOff = streams.reserve(opening), handOff.duplicate(cmhd_connection_descriptor(connection)) else {
            return answer(request, with: configuration.problem(.tooManyStreams))
        }
        let context = Unmanaged.passRetained(handOff).toOpaque()
        guard let made = cmhd_stream_response(readStream, context, releaseStream) else {
            Unmanaged<StreamHandOff>.fromOpaque(context).release()
            return .NO
        }
        defer { MHD_destroy_response(made) }
        var response = Response(status: 200, headers: opening.headers)
        configuration.decorate(request, &response)
        response.headers.forEachCString { _ = MHD_add_response_header(made, $0, $1) }
        request.state = .answered
        request.answeredStatus = 200
        return MHD_queue_response(connection, 200, made)
    }

    // MARK: Beginning and end

    func opened(_ connection: HTTPConnection, _ target: UnsafeBufferPointer<UInt8>) -> Request {
        // libmicrohttpd has not announced the end of the previous request.
        completed(connection)
        requestsOpen.store(requestsOpen.load(ordering: .relaxed) + 1, ordering: .relaxed)
        lastOpened = connection
        return connection.begin(target, receivedAt: configuration.clock.now())
    }

    /// Ends the connection's request, if it has one.
    func completed(_ connection: HTTPConnection) {
        guard let request = connection.end() else { return }
        requestsOpen.store(requestsOpen.load(ordering: .relaxed) - 1, ordering: .relaxed)
        if case .waiting = request.state { removeWaiting(request) }
        connection.lingers = request.isBodyUnread || request.answeredStatus == 0
        request.end()
        if request.answeredStatus > 0 {
            configuration.completed(
                request, request.answeredStatus, request.answeredBytes,
                configuration.clock.now() &- request.receivedAt)
        }
        connection.release(request)
    }

    func accepted(_ handle: OpaquePointer) -> HTTPConnection {
        let connection = HTTPConnection(handle, acceptedAt: configuration.clock.now())
        acceptedCount &+= 1
        connection.place = connections.count
        connections.append(connection)
        return connection
    }

    func closed(_ connection: HTTPConnection) {
        completed(connection)
        if lastOpened === connection { lastOpened = nil }
        // The socket is closed behind this.
        if connection.lingers, case let descriptor = cmhd_connection_descriptor(connection.handle), descriptor >= 0 {
            lingering?.add(descriptor, configuration.clock.now())
        }
        let last = connections.removeLast()
        guard last !== connection else { return }
        last.place = connection.place
        connections[last.place] = last
    }
}
