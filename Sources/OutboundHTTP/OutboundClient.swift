#if canImport(Glibc)
    import CCurl
    import Glibc
    import Synchronization
    import Threads

    /// A client that sends requests to addresses of the public internet, and to others only if allowed. It uses libcurl
    /// without redirects, proxies from the environment, cookies and credential files.
    ///
    /// The client checks an address when its socket is created, after every name resolution. So a name that resolves to
    /// another address a moment later (DNS rebinding) gains nothing.
    public final class OutboundClient: Sendable {
        private let allowsPrivate: Bool
        private let timeoutMilliseconds: Int
        private let isStopping = Atomic<Bool>(false)
        /// Unused handles, each with a connection that may still be open.
        private let idle = Locked([CurlHandle]())

        /// Initializes libcurl's global state, once per process.
        private static let isReady = ccurl_global_init() == CURLE_OK

        /// Creates a client.
        ///
        /// - Parameters:
        ///   - allowsPrivate: Whether it may connect to private, loopback and other special addresses, also without
        ///     TLS.
        ///   - timeoutSeconds: The limit for a whole request, from the name resolution to the end of the answer.
        public convenience init(allowsPrivate: Bool, timeoutSeconds: Int) {
            self.init(allowsPrivate: allowsPrivate, timeoutMilliseconds: timeoutSeconds * 1000)
        }

        init(allowsPrivate: Bool, timeoutMilliseconds: Int) {
            precondition(Self.isReady, "libcurl cannot be initialized")
            (self.allowsPrivate, self.timeoutMilliseconds) = (allowsPrivate, timeoutMilliseconds)
        }

        /// Ends waiting requests within a second, and refuses further ones.
        public func stop() { isStopping.store(true, ordering: .relaxed) }

        /// Sends a request and waits on the calling thread for its answer or the timeout. Several threads may call it.
        public func post(_ post: OutboundPost) -> OutboundOutcome {
            guard !isStopping.load(ordering: .relaxed) else { return .failed(.stopped) }
            let exchange = Exchange(allowsPrivate: allowsPrivate) { [self] in isStopping.load(ordering: .relaxed) }
            return withHandle { $0.perform(post, exchange, timeoutMilliseconds: timeoutMilliseconds) }
        }

        /// Sends a GET request and observes the answer as it arrives, on the calling thread.
        ///
        /// - Parameters:
        ///   - timeoutSeconds: The limit for the whole request; nil for the client's own.
        ///   - shouldStop: Called about once a second, even while nothing arrives.
        ///   - receive: Receives each piece of the body, and returns whether to continue.
        public func watch(
            _ probe: OutboundProbe, timeoutSeconds: Int? = nil, shouldStop: () -> Bool = { false },
            receive: (UnsafeRawBufferPointer) -> Bool
        ) -> ObservedAnswer {
            withoutActuallyEscaping(shouldStop) { shouldStop in
                withoutActuallyEscaping(receive) { receive in
                    let exchange = Exchange(allowsPrivate: allowsPrivate) { [self] in
                        isStopping.load(ordering: .relaxed) || shouldStop()
                    }
                    exchange.observer = receive
                    let milliseconds = timeoutSeconds.map { $0 * 1000 } ?? timeoutMilliseconds
                    return withHandle { handle in
                        let outcome = handle.perform(probe, exchange, timeoutMilliseconds: milliseconds)
                        var answer = exchange.observed
                        switch outcome {
                        case .answered(let status, _): answer.status = status
                        case .failed(let failure): answer.failure = failure
                        }
                        exchange.observer = nil
                        return answer
                    }
                }
            }
        }

        private func withHandle<Result>(_ body: (CurlHandle) -> Result) -> Result {
            let handle = idle.withLock { $0.popLast() } ?? CurlHandle()
            defer { idle.withLock { $0.append(handle) } }
            return body(handle)
        }
    }

    /// The state of one request for libcurl's callbacks. All callbacks run on its thread.
    private final class Exchange {
        let allowsPrivate: Bool
        let isStopping: () -> Bool
        var hasRefusedAddress = false
        var hasOpenedSocket = false
        var headBytes = 0
        var bodyBytes = 0
        /// Whether the head of the last answer is complete. A 1xx answer may precede it.
        var isHeadComplete = false
        /// The receiver of the body; nil if nothing observes the answer.
        var observer: ((UnsafeRawBufferPointer) -> Bool)?
        var observed = ObservedAnswer()

        init(allowsPrivate: Bool, isStopping: @escaping () -> Bool) {
            (self.allowsPrivate, self.isStopping) = (allowsPrivate, isStopping)
        }

        /// Returns the exchange of the pointer that libcurl hands back while `perform` runs.
        static func of(_ context: UnsafeMutableRawPointer?) -> Exchange? {
            context.map { Unmanaged<Exchange>.fromOpaque($0).takeUnretainedValue() }
        }

        /// Handles one line of the head.
        ///
        /// - Returns: The number of bytes taken. Returning fewer than arrived ends the request.
        func receive(head line: UnsafeRawBufferPointer) -> Int {
            headBytes += line.count
            guard headBytes <= OutboundLimits.headBytesMax else { return 0 }
            // A status line begins a head. Lines after the end of the head are trailers.
            if line.starts(with: "HTTP/".utf8) { isHeadComplete = false }
            if observer != nil { observed.read(headLine: line) }
            if line.elementsEqual([0x0D, 0x0A]) || line.elementsEqual([0x0A]) { isHeadComplete = true }
            return line.count
        }

        func receive(body bytes: UnsafeRawBufferPointer) -> Int {
            if let observer { return observer(bytes) ? bytes.count : 0 }
            bodyBytes += bytes.count
            return bodyBytes <= OutboundLimits.bodyBytesMax ? bytes.count : 0
        }

        func openSocket(to address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
            let target = withUnsafePointer(to: &address.pointee.addr) {
                RemoteAddress($0, length: Int(address.pointee.addrlen))
            }
            guard let target, allowsPrivate || target.isPublic else {
                hasRefusedAddress = true
                return ccurl_bad_socket()
            }
            hasOpenedSocket = true
            let kind = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
            return socket(address.pointee.family, kind, address.pointee.protocol)
        }
    }

    /// One libcurl handle, used by one thread at a time. All calls of libcurl are made here.
    private final class CurlHandle {
        private let handle: UnsafeMutableRawPointer

        init() {
            guard let handle = curl_easy_init() else { fatalError("libcurl cannot create a handle: out of memory") }
            self.handle = handle
        }

        deinit { curl_easy_cleanup(handle) }

        func perform(_ post: OutboundPost, _ exchange: Exchange, timeoutMilliseconds: Int) -> OutboundOutcome {
            begin(post.url, timeoutMilliseconds: timeoutMilliseconds, allowsPlain: exchange.allowsPrivate)
            _ = ccurl_set_long(handle, CURLOPT_POST, 1)
            _ = ccurl_set_long(handle, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
            _ = post.body.withUnsafeBytes { ccurl_set_body(handle, $0.baseAddress, $0.count) }
            // Without Expect, which some receivers never answer.
            return perform(["Content-Type: application/json", "Expect:"], post.headers, exchange)
        }

        func perform(_ probe: OutboundProbe, _ exchange: Exchange, timeoutMilliseconds: Int) -> OutboundOutcome {
            begin(probe.url, timeoutMilliseconds: timeoutMilliseconds, allowsPlain: exchange.allowsPrivate)
            _ = ccurl_set_long(handle, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
            return perform([], probe.headers, exchange)
        }

        private func perform(
            _ own: [String], _ headers: [(name: String, value: String)], _ exchange: Exchange
        ) -> OutboundOutcome {
            var lines: UnsafeMutablePointer<curl_slist>?
            for line in own + headers.map({ "\($0.name): \($0.value)" }) { lines = curl_slist_append(lines, line) }
            defer { curl_slist_free_all(lines) }
            _ = ccurl_set_headers(handle, lines)
            ccurl_set_callbacks(
                handle, Unmanaged.passUnretained(exchange).toOpaque(),
                { bytes, size, count, context in
                    Exchange.of(context)?.receive(head: UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
                },
                { bytes, size, count, context in
                    Exchange.of(context)?.receive(body: UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
                },
                { context, _, _, _, _ in Exchange.of(context)?.isStopping() == false ? 0 : 1 },
                { context, _, address in
                    guard let exchange = Exchange.of(context), let address else { return ccurl_bad_socket() }
                    return exchange.openSocket(to: address)
                })
            let code = withExtendedLifetime(exchange) { curl_easy_perform(handle) }
            return outcome(code, exchange)
        }

        private func begin(_ url: String, timeoutMilliseconds: Int, allowsPlain: Bool) {
            // Resets the settings, and keeps the connections.
            curl_easy_reset(handle)
            let texts: [(CURLoption, String)] = [
                (CURLOPT_URL, url), (CURLOPT_USERAGENT, "Bellhop"),
                (CURLOPT_PROTOCOLS_STR, allowsPlain ? "http,https" : "https"),
                // A proxy from the environment would connect in our place, to unchecked addresses.
                (CURLOPT_PROXY, ""), (CURLOPT_NOPROXY, "*"),
            ]
            for (option, text) in texts { _ = ccurl_set_text(handle, option, text) }
            let numbers: [(CURLoption, Int)] = [
                (CURLOPT_FOLLOWLOCATION, 0),
                (CURLOPT_TIMEOUT_MS, timeoutMilliseconds), (CURLOPT_CONNECTTIMEOUT_MS, timeoutMilliseconds),
                // Signals belong to the process. A resolver that does not return is abandoned at the timeout.
                (CURLOPT_NOSIGNAL, 1), (CURLOPT_QUICK_EXIT, 1), (CURLOPT_NOPROGRESS, 0), (CURLOPT_MAXCONNECTS, 1),
            ]
            for (option, number) in numbers { _ = ccurl_set_long(handle, option, number) }
        }

        private func outcome(_ code: CURLcode, _ exchange: Exchange) -> OutboundOutcome {
            let status = Int(ccurl_status(handle))
            // The head is the answer. A body that does not end, or is malformed, does not change it.
            if exchange.isHeadComplete, status >= 200 {
                let seconds = ccurl_retry_after(handle)
                return .answered(status: status, retryAfterSeconds: seconds > 0 ? Int(seconds) : nil)
            }
            if exchange.hasRefusedAddress, !exchange.hasOpenedSocket { return .failed(.privateAddress) }
            switch code {
            case CURLE_ABORTED_BY_CALLBACK: return .failed(.stopped)
            case CURLE_OPERATION_TIMEDOUT: return .failed(.timeout)
            case CURLE_COULDNT_RESOLVE_HOST: return .failed(.unresolved)
            case CURLE_COULDNT_CONNECT: return .failed(.unreachable)
            case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
                CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER:
                return .failed(.tls)
            default: return .failed(.broken)
            }
        }
    }
#endif

/// The limits of received answers.
enum OutboundLimits {
    /// Bytes of an answer's head. Without this limit, a receiver could exhaust the memory.
    static let headBytesMax = 16 * 1024
    /// Bytes of an answer's body that are read and discarded, so that the connection can be reused. A connection with a
    /// longer body is closed.
    static let bodyBytesMax = 16 * 1024
}
