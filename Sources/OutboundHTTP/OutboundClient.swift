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
        private let (allowsPrivate, allowsPublic): (Bool, Bool)
        private let timeoutMilliseconds: Int
        private let isStopping = Atomic<Bool>(false)
        /// Connections that may still be open, and that no request uses.
        private let idle = Locked([CurlConnection]())

        /// Initializes libcurl's global state, once per process.
        static let isReady = ccurl_global_init() == CURLE_OK

        /// Creates a client.
        ///
        /// - Parameters:
        ///   - allowsPrivate: Whether it may connect to private, loopback and other special addresses, also without
        ///     TLS.
        ///   - allowsPublic: Whether it may connect to addresses of the public internet.
        ///   - timeoutSeconds: The limit for a whole request, from the name resolution to the end of the answer.
        public convenience init(allowsPrivate: Bool, allowsPublic: Bool = true, timeoutSeconds: Int) {
            self.init(
                allowsPrivate: allowsPrivate, allowsPublic: allowsPublic, timeoutMilliseconds: timeoutSeconds * 1000)
        }

        init(allowsPrivate: Bool, allowsPublic: Bool = true, timeoutMilliseconds: Int) {
            precondition(Self.isReady, "libcurl cannot be initialized")
            (self.allowsPrivate, self.allowsPublic) = (allowsPrivate, allowsPublic)
            self.timeoutMilliseconds = timeoutMilliseconds
        }

        /// Ends waiting requests within a second, and refuses further ones.
        public func stop() { isStopping.store(true, ordering: .relaxed) }

        /// Sends a request and waits on the calling thread for its answer or the timeout. Several threads may call it.
        public func post(_ post: OutboundPost) -> OutboundOutcome {
            guard !isStopping.load(ordering: .relaxed) else { return .failed(.stopped) }
            let exchange = Exchange(allowsPrivate: allowsPrivate, allowsPublic: allowsPublic) { [self] in
                isStopping.load(ordering: .relaxed)
            }
            return perform(exchange) {
                $0.prepare(
                    post, exchange, version: Int(CURL_HTTP_VERSION_1_1), timeoutMilliseconds: timeoutMilliseconds)
            }
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
                    let exchange = Exchange(allowsPrivate: allowsPrivate, allowsPublic: allowsPublic) { [self] in
                        isStopping.load(ordering: .relaxed) || shouldStop()
                    }
                    exchange.observer = receive
                    let milliseconds = timeoutSeconds.map { $0 * 1000 } ?? timeoutMilliseconds
                    let outcome = perform(exchange) {
                        $0.prepare(probe, exchange, timeoutMilliseconds: milliseconds)
                    }
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

        private func perform(_ exchange: Exchange, _ prepare: (CurlHandle) -> Void) -> OutboundOutcome {
            let connection = idle.withLock { $0.popLast() } ?? CurlConnection()
            defer { idle.withLock { $0.append(connection) } }
            let curl = CurlHandle()
            prepare(curl)
            return curl.outcome(connection.perform(curl), exchange)
        }
    }
#endif
