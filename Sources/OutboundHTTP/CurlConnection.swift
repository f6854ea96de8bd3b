#if canImport(Glibc)
    import CCurl

    /// A connection that stays open between requests.
    ///
    /// `@unchecked Sendable`: one thread uses it at a time, because it is taken out of the list of unused ones.
    final class CurlConnection: @unchecked Sendable {
        private let multi: UnsafeMutableRawPointer

        init() {
            guard let multi = curl_multi_init() else { fatalError("libcurl cannot create a client: out of memory") }
            self.multi = multi
            ccurl_set_multi_long(multi, CURLMOPT_MAXCONNECTS, 1)
        }

        deinit { curl_multi_cleanup(multi) }

        /// Sends a prepared request and waits for its end.
        func perform(_ curl: CurlHandle) -> CURLcode {
            guard curl_multi_add_handle(multi, curl.handle) == CURLM_OK else { return CURLE_FAILED_INIT }
            defer { curl.remove(from: multi) }
            var (code, count) = (CURLE_OK, Int32(1))
            while true {
                curl_multi_perform(multi, &count)
                if ccurl_take_ended(multi, &code) != nil { return code }
                // libcurl's own timeouts wake it earlier.
                curl_multi_poll(multi, nil, 0, 1000, nil)
            }
        }
    }
#endif
