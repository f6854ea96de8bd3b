#if os(Linux)
    import CCurl
    import Foundation
    import FoundationNetworking

    /// A request whose response is passed on as it arrives, by libcurl, on which URLSession for Linux is built.
    ///
    /// URLSession itself is not used: on Linux it keeps polling whether a connection is writable after the request is
    /// sent. The answer is always yes, so each open stream keeps a core busy.
    final class StreamTransfer: Sendable {
        private let transfer: Transfer

        init(_ request: URLRequest, _ receiver: Receiver) {
            transfer = Transfer(request, receiver)
            TransferLoop.shared.start(transfer)
        }

        func cancel() { TransferLoop.shared.cancel(transfer) }
    }

    /// One transfer, which libcurl's callbacks identify by its address.
    ///
    /// `@unchecked Sendable`: mutable state is only accessed by the loop's thread.
    private final class Transfer: @unchecked Sendable {
        let request: URLRequest
        let receiver: Receiver
        var handle: UnsafeMutableRawPointer?
        private var lines: UnsafeMutablePointer<curl_slist>?
        private var headers: [String: String] = [:]

        init(_ request: URLRequest, _ receiver: Receiver) {
            (self.request, self.receiver) = (request, receiver)
        }

        deinit { curl_slist_free_all(lines) }

        /// Returns the configured handle of the transfer; the loop's thread cleans it up.
        func prepare() -> UnsafeMutableRawPointer? {
            guard let handle = curl_easy_init() else { return nil }
            for (name, value) in request.allHTTPHeaderFields ?? [:] {
                lines = curl_slist_append(lines, "\(name): \(value)")
            }
            _ = ccurl_set_headers(handle, lines)
            let texts: [(CURLoption, String)] = [
                (CURLOPT_URL, request.url?.absoluteString ?? ""), (CURLOPT_USERAGENT, "BellhopClient"),
                (CURLOPT_PROTOCOLS_STR, "http,https"), (CURLOPT_REDIR_PROTOCOLS_STR, "http,https"),
            ]
            for (option, text) in texts { _ = ccurl_set_text(handle, option, text) }
            // A library must not install signal handlers.
            for (option, number) in [(CURLOPT_FOLLOWLOCATION, 1), (CURLOPT_MAXREDIRS, 5), (CURLOPT_NOSIGNAL, 1)] {
                _ = ccurl_set_long(handle, option, number)
            }
            _ = ccurl_set_receivers(
                handle, Unmanaged.passUnretained(self).toOpaque(),
                { bytes, size, count, context in
                    Transfer.of(context)?.take(head: UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
                },
                { bytes, size, count, context in
                    Transfer.of(context)?.take(body: UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
                })
            self.handle = handle
            return handle
        }

        private static func of(_ context: UnsafeMutableRawPointer?) -> Transfer? {
            context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
        }

        /// - Returns: the number of bytes accepted. A smaller number than received aborts the transfer.
        private func take(head bytes: UnsafeRawBufferPointer) -> Int {
            let line = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            if line.hasPrefix("HTTP/") {
                headers = [:]
            } else if let colon = line.firstIndex(of: ":") {
                let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
                headers[line[..<colon].lowercased()] = value
            } else if line.isEmpty, let handle {
                let status = ccurl_status(handle)
                // Another response follows: the final one, or that of the redirect's target.
                let isFinal = status >= 200 && !(300..<400 ~= status && headers["location"] != nil)
                if isFinal { receiver.deliver(.head(status: status, headers: headers)) }
            }
            return bytes.count
        }

        private func take(body bytes: UnsafeRawBufferPointer) -> Int {
            receiver.deliver(.bytes(Data(bytes)))
            return receiver.hasOverflowed ? 0 : bytes.count
        }

        func end(_ code: CURLcode) {
            let reason = String(cString: curl_easy_strerror(code))
            receiver.finish(code == CURLE_OK ? .success(()) : .failure(ExchangeFailure.transport(reason)))
        }
    }

    /// Runs all transfers of the process on one thread, which waits for the network in libcurl.
    ///
    /// `@unchecked Sendable`: `running` belongs to that thread. Other threads only use `multi` to wake it, which
    /// libcurl allows.
    private final class TransferLoop: @unchecked Sendable {
        static let shared = TransferLoop()

        private enum Order {
            case start(Transfer)
            case cancel(Transfer)
        }

        private let multi: UnsafeMutableRawPointer
        private let orders = Guarded([Order]())
        private var running: [UnsafeMutableRawPointer: Transfer] = [:]

        private init() {
            guard ccurl_global_init() == CURLE_OK, let multi = curl_multi_init() else {
                fatalError("libcurl cannot be initialized: out of memory")
            }
            self.multi = multi
            let thread = Thread(block: { [self] in run() })
            thread.name = "bellhop-streams"
            thread.start()
        }

        func start(_ transfer: Transfer) { send(.start(transfer)) }
        func cancel(_ transfer: Transfer) { send(.cancel(transfer)) }

        private func send(_ order: Order) {
            orders.withLock { $0.append(order) }
            curl_multi_wakeup(multi)
        }

        private func run() {
            // A connection closed by the service must surface as an error of libcurl, not as a SIGPIPE in the app.
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
            while true {
                let given = orders.withLock { orders in
                    defer { orders = [] }
                    return orders
                }
                for order in given { execute(order) }
                var count: Int32 = 0
                curl_multi_perform(multi, &count)
                var code = CURLE_OK
                while let handle = ccurl_take_ended(multi, &code) { forget(handle)?.end(code) }
                // A queued command wakes it earlier, and so do libcurl's own timeouts.
                curl_multi_poll(multi, nil, 0, 60_000, nil)
            }
        }

        private func execute(_ order: Order) {
            switch order {
            case .start(let transfer):
                guard let handle = transfer.prepare() else { return transfer.end(CURLE_OUT_OF_MEMORY) }
                running[handle] = transfer
                curl_multi_add_handle(multi, handle)
            case .cancel(let transfer):
                if let handle = transfer.handle { _ = forget(handle) }
            }
        }

        /// Removes a transfer and closes its connection, unless that can be reused. Returns nil if the transfer was
        /// already removed.
        private func forget(_ handle: UnsafeMutableRawPointer) -> Transfer? {
            guard let transfer = running.removeValue(forKey: handle) else { return nil }
            transfer.handle = nil
            curl_multi_remove_handle(multi, handle)
            curl_easy_cleanup(handle)
            return transfer
        }
    }

#endif
