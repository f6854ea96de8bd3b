#if canImport(Glibc)
    import CCurl

    /// The libcurl handle of one request, used by one thread at a time.
    ///
    /// It is not used again. libcurl 7.88 keeps a pointer to the last header of a request that has ended, and reads and
    /// writes through it if the next answer begins with a folded line. Connections survive in a `CURLM`.
    final class CurlHandle {
        let handle: UnsafeMutableRawPointer
        /// The headers of the current request, which libcurl does not copy.
        private var lines: UnsafeMutablePointer<curl_slist>?

        init() {
            guard let handle = curl_easy_init() else { fatalError("libcurl cannot create a handle: out of memory") }
            self.handle = handle
        }

        deinit {
            curl_easy_cleanup(handle)
            curl_slist_free_all(lines)
        }

        /// Prepares a GET request. The exchange must outlive the request.
        func prepare(_ probe: OutboundProbe, _ exchange: Exchange, timeoutMilliseconds: Int) {
            begin(probe.url, timeoutMilliseconds: timeoutMilliseconds, allowsPlain: exchange.allowsPrivate)
            _ = ccurl_set_long(handle, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
            set([], probe.headers, exchange)
        }

        /// Sets everything that a request needs. The exchange must outlive the request.
        func prepare(
            _ post: OutboundPost, _ exchange: Exchange, version: Int, timeoutMilliseconds: Int
        ) {
            begin(post.url, timeoutMilliseconds: timeoutMilliseconds, allowsPlain: exchange.allowsPrivate)
            _ = ccurl_set_long(handle, CURLOPT_POST, 1)
            _ = ccurl_set_long(handle, CURLOPT_HTTP_VERSION, version)
            _ = post.body.withUnsafeBytes { ccurl_set_body(handle, $0.baseAddress, $0.count) }
            // Without Expect, which some receivers never answer.
            set(["Content-Type: \(post.contentType)", "Expect:"], post.headers, exchange)
        }

        private func set(_ own: [String], _ headers: [(name: String, value: String)], _ exchange: Exchange) {
            for line in own + headers.map({ "\($0.name): \($0.value)" }) { lines = curl_slist_append(lines, line) }
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
        }

        /// Trusts the certificates of a file (PEM), instead of the system's.
        func trust(_ certificates: String) { _ = ccurl_set_text(handle, CURLOPT_CAINFO, certificates) }

        /// Has a client note the sockets of its connections. It must outlive the connections.
        func note(in sockets: OutboundSockets) {
            ccurl_set_close_socket(handle, Unmanaged.passUnretained(sockets).toOpaque()) { context, socket in
                context.map { Unmanaged<OutboundSockets>.fromOpaque($0).takeUnretainedValue().close(socket) } ?? 0
            }
        }

        /// The local port of the request's connection; 0 without a connection.
        var localPort: Int { ccurl_local_port(handle) }

        /// Asks the exchange whether the prepared request may leave.
        func askBeforeLeaving(_ exchange: Exchange) {
            ccurl_set_leave(handle, Unmanaged.passUnretained(exchange).toOpaque()) { context, _, _, _, _ in
                Exchange.of(context)?.mayLeave() == true ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
            }
        }

        /// Adds the prepared request to the requests of `multi`, which shares connections among them.
        func add(to multi: UnsafeMutableRawPointer) -> Bool {
            // A request waits for a connection that is being opened, instead of opening another one.
            _ = ccurl_set_long(handle, CURLOPT_PIPEWAIT, 1)
            return curl_multi_add_handle(multi, handle) == CURLM_OK
        }

        func remove(from multi: UnsafeMutableRawPointer) { curl_multi_remove_handle(multi, handle) }

        private func begin(_ url: String, timeoutMilliseconds: Int, allowsPlain: Bool) {
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
                (CURLOPT_NOSIGNAL, 1), (CURLOPT_QUICK_EXIT, 1), (CURLOPT_NOPROGRESS, 0),
            ]
            for (option, number) in numbers { _ = ccurl_set_long(handle, option, number) }
        }

        func outcome(_ code: CURLcode, _ exchange: Exchange) -> OutboundOutcome {
            let status = Int(ccurl_status(handle))
            // The head is the answer. A body that does not end, or is malformed, does not change it.
            if exchange.isHeadComplete, status >= 200 {
                let seconds = ccurl_retry_after(handle)
                return .answered(status: status, retryAfterSeconds: seconds > 0 ? Int(seconds) : nil)
            }
            if exchange.hasRefusedAddress, !exchange.hasOpenedSocket { return .failed(.privateAddress) }
            switch code {
            case CURLE_ABORTED_BY_CALLBACK: return .failed(exchange.refusal ?? .stopped)
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
