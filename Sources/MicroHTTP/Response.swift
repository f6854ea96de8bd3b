import CMicroHTTPD

/// What a request is answered with.
public struct Response: Sendable {
    public enum Body: Sendable {
        case none
        case bytes([UInt8])
        case shared(SharedBody)
    }

    public var status: Int
    /// In the order they are sent; `Date`, `Content-Length` and `Connection` are the server's.
    public var headers: HeaderFields
    public var body: Body

    public init(status: Int, headers: HeaderFields = [], body: Body = .none) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    var bodyBytes: Int {
        switch body {
        case .none: 0
        case .bytes(let bytes): bytes.count
        case .shared(let shared): shared.bytes.count
        }
    }

    /// The whole answer as it is sent, as the last one of its connection.
    var closingBytes: [UInt8] {
        var fields = headers
        fields.append("Content-Length", "\(bodyBytes)")
        fields.append("Connection", "close")
        let reason = MHD_get_reason_phrase_for(UInt32(status)).map { String(cString: $0) } ?? ""
        let head = "HTTP/1.1 \(status) \(reason)\r\n" + fields.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n"
        guard case .bytes(let body) = body else { return Array(head.utf8) }
        return Array(head.utf8) + body
    }
}

/// A body that is made once and sent for ever without copying. Its memory is never given back: libmicrohttpd may still
/// be sending it when nobody else knows of it.
public struct SharedBody: Sendable {
    let bytes: SharedBytes

    public init(_ bytes: [UInt8]) {
        self.bytes = SharedBytes(bytes)
        // Never released.
        _ = Unmanaged.passRetained(self.bytes)
    }
}
