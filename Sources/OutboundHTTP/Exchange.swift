#if canImport(Glibc)
    import CCurl
    import Glibc

    /// The state of one request for libcurl's callbacks. All callbacks run on its thread.
    final class Exchange {
        let (allowsPrivate, allowsPublic): (Bool, Bool)
        let isStopping: () -> Bool
        var hasRefusedAddress = false
        var hasOpenedSocket = false
        var headBytes = 0
        var bodyBytes = 0
        /// The latest time at which the request may leave; nil for no limit.
        var leavesBy: ContinuousClock.Instant?
        /// When the request left; nil if its connection was never ready.
        private(set) var leftAt: ContinuousClock.Instant?
        /// Called with each socket that is opened.
        var opened: ((curl_socket_t) -> Void)?
        /// Called when something arrives.
        var heard: (() -> Void)?
        /// Why the request may not leave; nil if it may.
        private(set) var refusal: OutboundFailure?
        /// Whether the head of the last answer is complete. A 1xx answer may precede it.
        var isHeadComplete = false
        /// The receiver of the body; nil if nothing observes the answer.
        var observer: ((UnsafeRawBufferPointer) -> Bool)?
        var observed = ObservedAnswer()
        /// Whether the body is kept, up to ``OutboundLimits/bodyBytesMax``.
        var keepsBody = false
        private(set) var body: [UInt8] = []

        init(allowsPrivate: Bool, allowsPublic: Bool = true, isStopping: @escaping () -> Bool) {
            (self.allowsPrivate, self.allowsPublic, self.isStopping) = (allowsPrivate, allowsPublic, isStopping)
        }

        /// Returns the exchange of the pointer that libcurl hands back while `perform` runs.
        static func of(_ context: UnsafeMutableRawPointer?) -> Exchange? {
            context.map { Unmanaged<Exchange>.fromOpaque($0).takeUnretainedValue() }
        }

        /// Decides whether the request may leave, when its connection is ready.
        ///
        /// libcurl sends a request again by itself if its connection ends before an answer. The first one may have
        /// taken effect, and this one may be outdated. So only the caller may repeat it.
        func mayLeave() -> Bool {
            if leftAt != nil {
                refusal = .broken
            } else if let leavesBy, ContinuousClock.now > leavesBy {
                refusal = .late
            }
            if refusal == nil { leftAt = .now }
            return refusal == nil
        }

        /// Handles one line of the head.
        ///
        /// - Returns: The number of bytes taken. Returning fewer than arrived ends the request.
        func receive(head line: UnsafeRawBufferPointer) -> Int {
            heard?()
            headBytes += line.count
            guard headBytes <= OutboundLimits.headBytesMax else { return 0 }
            // A status line begins a head. Lines after the end of the head are trailers.
            if line.starts(with: "HTTP/".utf8) { isHeadComplete = false }
            if observer != nil { observed.read(headLine: line) }
            if line.elementsEqual([0x0D, 0x0A]) || line.elementsEqual([0x0A]) { isHeadComplete = true }
            return line.count
        }

        func receive(body bytes: UnsafeRawBufferPointer) -> Int {
            heard?()
            if let observer { return observer(bytes) ? bytes.count : 0 }
            bodyBytes += bytes.count
            guard bodyBytes <= OutboundLimits.bodyBytesMax else { return 0 }
            if keepsBody { body += bytes }
            return bytes.count
        }

        func openSocket(to address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
            let target = withUnsafePointer(to: &address.pointee.addr) {
                RemoteAddress($0, length: Int(address.pointee.addrlen))
            }
            guard let target, target.isPublic ? allowsPublic : allowsPrivate else {
                hasRefusedAddress = true
                return ccurl_bad_socket()
            }
            hasOpenedSocket = true
            let kind = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
            let descriptor = socket(address.pointee.family, kind, address.pointee.protocol)
            opened?(descriptor)
            return descriptor
        }
    }
#endif

/// The limits of received answers.
enum OutboundLimits {
    /// Bytes of an answer's head. Without this limit, a receiver could exhaust the memory.
    static let headBytesMax = 16 * 1024
    /// Bytes of an answer's body that are read, so that the connection can be reused. A connection with a longer body is
    /// closed.
    static let bodyBytesMax = 16 * 1024
}
