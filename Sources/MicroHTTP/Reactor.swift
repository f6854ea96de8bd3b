import CMicroHTTPD
import Glibc
import Synchronization
import Threads

/// One thread that speaks HTTP: a libmicrohttpd daemon in external-poll mode beside an inbox.
///
/// Every call of libmicrohttpd for this daemon is made on this thread, callbacks included; so suspending, resuming and
/// completing cannot race.
///
/// `@unchecked Sendable`: what other threads use is `inbox`, `start` and `join`; the rest belongs to the thread.
final class Reactor: @unchecked Sendable {
    let inbox = ReactorInbox()
    let configuration: ServerConfiguration
    let router: Router
    let streams: any StreamAcceptor
    /// Requests whose head was read since the start.
    let requestCount = Atomic<Int>(0)
    private let listening: Int32
    private var daemon: OpaquePointer?
    private var pollDescriptor: Int32 = -1
    private var deadline: UInt64?
    private var requestsOpen = 0
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
        pollDescriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        let context = Unmanaged.passUnretained(self).toOpaque()
        var options = [
            MHD_OptionItem(.LISTEN_SOCKET, Int(listening)),
            MHD_OptionItem(.CONNECTION_LIMIT, max(16, configuration.connectionsMax / configuration.reactors)),
            MHD_OptionItem(.CONNECTION_TIMEOUT, configuration.connectionTimeoutSeconds),
            MHD_OptionItem(.CONNECTION_MEMORY_LIMIT, configuration.connectionMemoryBytes),
            // C takes the function's address as an integer; the type before the cast is the one it calls.
            MHD_OptionItem(
                .NOTIFY_COMPLETED, unsafeBitCast(requestCompleted as MHD_RequestCompletedCallback, to: Int.self),
                context),
            // C takes the function's address as an integer; the type before the cast is the one it calls.
            MHD_OptionItem(
                .URI_LOG_CALLBACK,
                unsafeBitCast(
                    targetRead
                        as @convention(c) (
                            UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?
                        ) -> UnsafeMutableRawPointer?, to: Int.self), context),
            // C takes the function's address as an integer; the type before the cast is the one it calls.
            MHD_OptionItem(
                .UNESCAPE_CALLBACK,
                unsafeBitCast(
                    keepEscapes
                        as @convention(c) (
                            UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutablePointer<CChar>?
                        ) -> Int, to: Int.self), context),
            MHD_OptionItem(.END, 0),
        ]
        let flags = MHD_USE_EPOLL.rawValue | MHD_USE_TURBO.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue
        daemon = cmhd_start(flags, accessHandler, context, &options)
        guard let daemon else { throw ServerError(description: "libmicrohttpd refused to start") }
        watch(cmhd_epoll_descriptor(daemon))
        watch(inbox.descriptor)
        thread.start { [self] in run() }
    }

    func join() { thread.join() }

    private func watch(_ descriptor: Int32) {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = descriptor
        precondition(
            epoll_ctl(pollDescriptor, EPOLL_CTL_ADD, descriptor, &event) == 0, "a descriptor cannot be watched")
    }

    // MARK: The loop

    private func run() {
        guard let daemon else { return }
        var events = [epoll_event](repeating: epoll_event(), count: 2)
        while true {
            var milliseconds: UInt64 = 0
            let isUrgent = MHD_get_timeout(daemon, &milliseconds) == .YES
            let wait = Int32(isUrgent ? min(milliseconds, 1000) : 1000)
            let found = max(0, Int(epoll_wait(pollDescriptor, &events, 2, wait)))
            // Under load almost every turn is for the daemon alone: the inbox is asked when it has rung.
            if events[..<found].contains(where: { $0.data.fd == inbox.descriptor }) {
                for item in inbox.take() { handle(item, daemon) }
            }
            MHD_run(daemon)
            giveUpWaiting()
            if let deadline, requestsOpen == 0 || cmhd_monotonic_nanoseconds() >= deadline { break }
        }
        stop(daemon)
    }

    private func handle(_ item: ReactorInbox.Item, _ daemon: OpaquePointer) {
        switch item {
        case .answer(let request, let suspension, let response):
            resume(request, suspension) { $0.state = .answerReady(response) }
        case .runAgain(let request, let suspension):
            resume(request, suspension) { $0.state = .readyToRunAgain }
        case .stop(let deadline):
            self.deadline = deadline
            // Quiescing on this very thread: from another it can abort the process under load.
            let descriptor = MHD_quiesce_daemon(daemon)
            if descriptor >= 0 { close(descriptor) }
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

    /// Answers what has waited for too long: a suspended connection neither times out nor notices that its client
    /// is gone.
    private func giveUpWaiting() {
        guard firstWaiting != nil else { return }
        let now = cmhd_monotonic_nanoseconds()
        let patience = UInt64(configuration.answerSeconds) * 1_000_000_000
        // A sum, not a difference: the clock starts with the machine, and may be younger than the patience.
        while let request = firstWaiting, request.suspendedAt + patience < now { answerUnanswered(request) }
    }

    private func answerAllUnanswered() {
        while let request = firstWaiting { answerUnanswered(request) }
    }

    private func answerUnanswered(_ request: Request) {
        let response = configuration.problem(.unanswered)
        resume(request, request.suspension) { $0.state = .answerReady(response) }
    }

    /// libmicrohttpd may not be stopped with suspended connections: they are answered first.
    private func stop(_ daemon: OpaquePointer) {
        answerAllUnanswered()
        for _ in 0..<8 where requestsOpen > 0 {
            MHD_run(daemon)
            // Behind an answered request the next one of its connection is read, and may wait again.
            answerAllUnanswered()
        }
        MHD_stop_daemon(daemon)
        close(pollDescriptor)
        self.daemon = nil
    }

    // MARK: A request's way

    /// The head is read: what is wrong with it shows before any byte of the body.
    fileprivate func begin(_ request: Request, _ connection: OpaquePointer, _ method: UnsafePointer<CChar>)
        -> MHD_Result
    {
        request.connection = connection
        request.method = HTTPMethod(rawValue: String(cString: method))
        requestCount.wrappingAdd(1, ordering: .relaxed)
        let framing = BodyFraming(request)
        request.refusal = framing.mistake.map { .malformed(detail: $0) } ?? findRoute(request)
        let max = request.route?.bodyBytesMax ?? 0
        if request.refusal == nil, case .length(let count) = framing, count > max {
            request.refusal = .bodyTooLarge(max: max)
        }
        // A body that nobody wants is not read: the answer goes out now, and the connection is closed behind it.
        if let refusal = request.refusal, framing != .none {
            return answer(request, with: configuration.problem(refusal))
        }
        if let screen = request.route?.screen, framing.isAbove(screen.bodyBytes), let refusal = screen.refuse(request) {
            return answer(request, with: refusal)
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
        case .notFound: return .notFound
        case .methodNotAllowed(let allow): return .methodNotAllowed(allow: allow)
        }
    }

    private func isDecodable(_ request: Request) -> Bool {
        guard request.target.contains(UInt8(ascii: "%")) || request.target.contains(where: { $0 >= 0x80 }) else {
            return true
        }
        return PercentEncoding.decode(request.target[...], plusIsSpace: true) != nil
    }

    fileprivate func receive(_ request: Request, _ bytes: UnsafeBufferPointer<UInt8>) -> MHD_Result {
        let max = request.route?.bodyBytesMax ?? 0
        guard request.refusal == nil, request.body.count + bytes.count <= max else {
            // A chunked body announces no length. A little more is swallowed, so that the client receives the reason.
            request.refusal = request.refusal ?? .bodyTooLarge(max: max)
            request.body = []
            request.bytesSwallowed += bytes.count
            return request.bytesSwallowed <= swallowedBytesMax ? .YES : .NO
        }
        request.body.append(contentsOf: bytes)
        return .YES
    }

    private var swallowedBytesMax: Int { 256 * 1024 }

    /// The request is whole, or its connection was resumed.
    fileprivate func proceed(_ request: Request) -> MHD_Result {
        switch request.state {
        case .receiving:
            if let refusal = request.refusal { return refuse(request, refusal) }
            return run(request)
        case .readyToRunAgain: return run(request)
        case .answerReady(let response): return answer(request, with: response)
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

    /// Suspends first, so that the answer, whenever it comes, finds a suspended connection.
    private func suspend(_ request: Request) -> UInt32 {
        request.leaveReactor()
        request.suspension &+= 1
        request.state = .waiting
        request.suspendedAt = cmhd_monotonic_nanoseconds()
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

    private func answer(_ request: Request, with response: Response) -> MHD_Result {
        guard let connection = request.connection else { return .NO }
        var response = response
        configuration.decorate(request, &response)
        let made: OpaquePointer?
        switch response.body {
        case .none: made = MHD_create_response_from_buffer(0, nil, .RESPMEM_PERSISTENT)
        case .bytes(var bytes):
            made = bytes.withUnsafeMutableBytes {
                MHD_create_response_from_buffer($0.count, $0.baseAddress, .RESPMEM_MUST_COPY)
            }
        case .shared(let shared):
            made = MHD_create_response_from_buffer(shared.bytes.count, shared.bytes.base, .RESPMEM_PERSISTENT)
        }
        guard let made else { return .NO }
        defer { MHD_destroy_response(made) }
        add(response.headers, to: made)
        request.state = .answered
        request.answeredStatus = response.status
        request.answeredBytes = response.bodyBytes
        return MHD_queue_response(connection, UInt32(response.status), made)
    }

    private func add(_ headers: [(name: String, value: String)], to response: OpaquePointer) {
        for (name, value) in headers { MHD_add_response_header(response, name, value) }
    }

    private func openStream(_ request: Request, _ opening: StreamOpening) -> MHD_Result {
        guard let connection = request.connection else { return .NO }
        guard let handOff = streams.reserve(opening) else {
            return answer(request, with: configuration.problem(.tooManyStreams))
        }
        handOff.descriptor = cmhd_connection_descriptor(connection)
        let context = Unmanaged.passRetained(handOff).toOpaque()
        guard let made = cmhd_stream_response(readStream, context, releaseStream) else {
            Unmanaged<StreamHandOff>.fromOpaque(context).release()
            return .NO
        }
        defer { MHD_destroy_response(made) }
        var response = Response(status: 200, headers: opening.headers)
        configuration.decorate(request, &response)
        add(response.headers, to: made)
        request.state = .answered
        request.answeredStatus = 200
        return MHD_queue_response(connection, 200, made)
    }

    // MARK: Beginning and end

    fileprivate func opened(_ request: Request) { requestsOpen += 1 }

    fileprivate func completed(_ request: Request) {
        requestsOpen -= 1
        if case .waiting = request.state { removeWaiting(request) }
        request.connection = nil
        guard request.answeredStatus > 0 else { return }
        configuration.completed(
            request, request.answeredStatus, request.answeredBytes, cmhd_monotonic_nanoseconds() &- request.receivedAt)
    }
}

/// How a request's body is separated from what follows it (RFC 9112, 6).
private enum BodyFraming: Equatable {
    case none
    case length(Int)
    case chunked
    /// Two readers could understand it differently, which is how requests are smuggled; or nobody knows its end.
    case unusable(String)

    init(_ request: Request) {
        let length = request.withHeader("Content-Length") { $0.map { Self.number($0) } }
        let coding = request.header("Transfer-Encoding")?.lowercased()
        if length != nil || coding != nil, request.framingHeaderCount > 1 {
            self = .unusable("Content-Length or Transfer-Encoding is there more than once.")
            return
        }
        switch (length, coding) {
        case (nil, nil), (0, nil): self = .none
        case (let count?, nil): self = count.map { .length($0) } ?? .unusable("Content-Length is no number.")
        case (nil, "chunked"): self = .chunked
        case (nil, _): self = .unusable("The transfer coding is not known here.")
        case (_, _?): self = .unusable("Content-Length and Transfer-Encoding contradict each other.")
        }
    }

    /// Whether a body may be longer than so many bytes.
    func isAbove(_ bytes: Int) -> Bool {
        switch self {
        case .none, .unusable: false
        case .length(let count): count > bytes
        case .chunked: true
        }
    }

    var mistake: String? {
        if case .unusable(let detail) = self { detail } else { nil }
    }

    /// Nil for what is no number.
    private static func number(_ bytes: UnsafeBufferPointer<UInt8>) -> Int? {
        var number = 0
        for byte in bytes {
            guard (48...57).contains(byte), number < 1 << 48 else { return nil }
            number = number * 10 + Int(byte - 48)
        }
        return bytes.isEmpty ? nil : number
    }
}

extension MHD_OptionItem {
    init(_ option: MHD_OPTION, _ value: Int, _ context: UnsafeMutableRawPointer? = nil) {
        self.init(option: option, value: value, ptr_value: context)
    }
}

// MARK: - Callbacks of libmicrohttpd, all on the reactor's thread

/// The first sign of a request: its target as it came. What is returned is the request's context from here on.
private func targetRead(
    _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let context, let target else { return nil }
    let reactor = Unmanaged<Reactor>.fromOpaque(context).takeUnretainedValue()
    let length = strlen(target)
    let bytes = target.withMemoryRebound(to: UInt8.self, capacity: length) {
        Array(UnsafeBufferPointer(start: $0, count: length))
    }
    let request = Request(target: bytes, receivedAt: cmhd_monotonic_nanoseconds())
    reactor.opened(request)
    return Unmanaged.passRetained(request).toOpaque()
}

/// Addresses stay as they came: decoding is the router's and the handlers' business.
private func keepEscapes(
    _: UnsafeMutableRawPointer?, _: OpaquePointer?, _ text: UnsafeMutablePointer<CChar>?
) -> Int {
    text.map { strlen($0) } ?? 0
}

private func accessHandler(
    _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?, _: UnsafePointer<CChar>?, _ upload: UnsafePointer<CChar>?,
    _ uploadSize: UnsafeMutablePointer<Int>?, _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let context, let connection, let method, let uploadSize, let known = slot?.pointee else { return .NO }
    let reactor = Unmanaged<Reactor>.fromOpaque(context).takeUnretainedValue()
    let request = Unmanaged<Request>.fromOpaque(known).takeUnretainedValue()
    if request.connection == nil { return reactor.begin(request, connection, method) }
    guard uploadSize.pointee > 0 else { return reactor.proceed(request) }
    defer { uploadSize.pointee = 0 }
    guard let upload else { return .NO }
    let count = uploadSize.pointee
    return upload.withMemoryRebound(to: UInt8.self, capacity: count) {
        reactor.receive(request, UnsafeBufferPointer(start: $0, count: count))
    }
}

private func requestCompleted(
    _ context: UnsafeMutableRawPointer?, _: OpaquePointer?, _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _: MHD_RequestTerminationCode
) {
    guard let context, let slot, let known = slot.pointee else { return }
    slot.pointee = nil
    let request = Unmanaged<Request>.fromOpaque(known).takeRetainedValue()
    Unmanaged<Reactor>.fromOpaque(context).takeUnretainedValue().completed(request)
}
