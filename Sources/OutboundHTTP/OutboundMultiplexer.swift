#if canImport(Glibc)
    import CCurl
    import Synchronization
    import Threads

    /// A client that sends many requests at the same time: by HTTP/2 over one connection to each host, or by HTTP/1.1 over
    /// several. Push services ask for one: they close clients that open a connection for each message.
    ///
    /// Addresses are checked as by ``OutboundClient``.
    ///
    /// `@unchecked Sendable`: `running` and `sockets` belong to the thread. Other threads use `multi` only to wake it,
    /// which libcurl allows.
    public final class OutboundMultiplexer: @unchecked Sendable {
        /// Receives the outcome and the beginning of the body, on the client's thread.
        public typealias Completion = @Sendable (OutboundOutcome, [UInt8]) -> Void

        private struct Submitted {
            let post: OutboundPost
            let leavesBy: ContinuousClock.Instant?
            let complete: Completion
        }

        private final class Running {
            let curl: CurlHandle
            let exchange: Exchange
            let complete: Completion

            init(_ curl: CurlHandle, _ exchange: Exchange, _ complete: @escaping Completion) {
                (self.curl, self.exchange, self.complete) = (curl, exchange, complete)
            }
        }

        private let allowsPrivate: Bool
        private let certificates: String?
        private let timeoutMilliseconds: Int
        private let version: Version
        private let multi: UnsafeMutableRawPointer
        private let submitted = Locked([Submitted]())
        private let isStopping = Atomic<Bool>(false)
        private let thread: LoopThread
        private var running: [UnsafeMutableRawPointer: Running] = [:]
        private let sockets = OutboundSockets()

        /// The newest version of HTTP that is used.
        public enum Version: Sendable {
            case http1, http2

            var number: Int { Int(self == .http1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS) }
        }

        /// Connections that are kept, of all hosts.
        private static let connectionsMax = 16

        /// Creates a client.
        ///
        /// - Parameters:
        ///   - name: The name of its thread.
        ///   - allowsPrivate: Whether it may connect to private, loopback and other special addresses, also without
        ///     TLS.
        ///   - certificates: A file of certificates (PEM) to trust instead of the system's.
        ///   - timeoutSeconds: The limit for a whole request, also for the time that it waits for its connection.
        ///   - hostConnectionsMax: Connections to one host.
        public init(
            _ name: String, allowsPrivate: Bool, certificates: String? = nil, timeoutSeconds: Int,
            hostConnectionsMax: Int = 1, version: Version = .http2
        ) {
            precondition(OutboundClient.isReady, "libcurl cannot be initialized")
            guard let multi = curl_multi_init() else { fatalError("libcurl cannot create a client: out of memory") }
            (self.multi, self.allowsPrivate, self.certificates) = (multi, allowsPrivate, certificates)
            self.version = version
            timeoutMilliseconds = timeoutSeconds * 1000
            thread = LoopThread(name)
            ccurl_set_multi_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, hostConnectionsMax)
            ccurl_set_multi_long(multi, CURLMOPT_MAXCONNECTS, max(Self.connectionsMax, hostConnectionsMax))
        }

        deinit { curl_multi_cleanup(multi) }

        public func start() {
            thread.start { [self] in run() }
        }

        /// Ends the running requests as ``OutboundFailure/stopped`` and returns when the thread has ended.
        public func stop() {
            submitted.withLock { _ in isStopping.store(true, ordering: .relaxed) }
            curl_multi_wakeup(multi)
            thread.stop()
        }

        /// Sends a request, once at most. After ``stop()`` it fails at once.
        ///
        /// - Parameter leavesBy: The latest time at which its connection may be ready. Later, it fails as
        ///   ``OutboundFailure/late``.
        public func submit(
            _ post: OutboundPost, leavingBy leavesBy: ContinuousClock.Instant? = nil, _ complete: @escaping Completion
        ) {
            let isTaken = submitted.withLock { submitted in
                // Under the lock: the thread takes the last requests after it has seen the flag.
                guard !isStopping.load(ordering: .relaxed) else { return false }
                submitted.append(Submitted(post: post, leavesBy: leavesBy, complete: complete))
                return true
            }
            guard isTaken else { return complete(.failed(.stopped), []) }
            curl_multi_wakeup(multi)
        }

        private func run() {
            while !isStopping.load(ordering: .relaxed) {
                for next in takeSubmitted() { begin(next) }
                var count: Int32 = 0
                curl_multi_perform(multi, &count)
                var code = CURLE_OK
                while let handle = ccurl_take_ended(multi, &code) { end(handle, code) }
                // A submitted request wakes it earlier, and so do libcurl's own timeouts.
                curl_multi_poll(multi, nil, 0, 1000, nil)
            }
            for handle in running.keys { end(handle, CURLE_ABORTED_BY_CALLBACK) }
            for next in takeSubmitted() { next.complete(.failed(.stopped), []) }
        }

        private func takeSubmitted() -> [Submitted] {
            submitted.withLock { submitted in
                defer { submitted = [] }
                return submitted
            }
        }

        private func begin(_ next: Submitted) {
            let curl = CurlHandle()
            let exchange = Exchange(allowsPrivate: allowsPrivate) { [self] in isStopping.load(ordering: .relaxed) }
            (exchange.keepsBody, exchange.leavesBy) = (true, next.leavesBy)
            // The exchange lives as long as the handle, in the list of running requests.
            exchange.opened = { [sockets] in sockets.opened($0) }
            exchange.heard = { [sockets, unowned curl] in sockets.heard(curl.localPort) }
            curl.note(in: sockets)
            curl.prepare(
                next.post, exchange, version: version.number, timeoutMilliseconds: timeoutMilliseconds)
            curl.askBeforeLeaving(exchange)
            if let certificates { curl.trust(certificates) }
            running[curl.handle] = Running(curl, exchange, next.complete)
            if !curl.add(to: multi) { end(curl.handle, CURLE_FAILED_INIT) }
        }

        private func end(_ handle: UnsafeMutableRawPointer, _ code: CURLcode) {
            guard let ended = running.removeValue(forKey: handle) else { return }
            let outcome = ended.curl.outcome(code, ended.exchange)
            if outcome == .failed(.timeout), let leftAt = ended.exchange.leftAt {
                sockets.shut(ended.curl.localPort, ifSilentSince: leftAt)
            }
            ended.curl.remove(from: multi)
            ended.complete(outcome, ended.exchange.body)
        }
    }
#endif
