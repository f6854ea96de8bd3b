import CMicroHTTPD

/// An answer to a request.
public struct Response: Sendable {
    public enum Body: Sendable {
        case none
        case bytes([UInt8])
        case shared(SharedBody)
        case pieces(PieceBody)
    }

    public var status: Int
    /// The headers in the order in which they are sent. The server adds `Date`, `Content-Length` and `Connection`.
    public var headers: HeaderFields
    public var body: Body

    public init(status: Int, headers: HeaderFields = [], body: Body = .none) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    var bodyBytes: Int {
        switch body {
        // The bytes of pieces are counted as they are sent.
        case .none, .pieces: 0
        case .bytes(let bytes): bytes.count
        case .shared(let shared): shared.bytes.count
        }
    }

    /// Returns the complete answer on the wire, as the last one of its connection. An answer to HEAD has no body.
    func closingBytes(to method: HTTPMethod) -> [UInt8] {
        var fields = headers
        fields.append("Content-Length", "\(bodyBytes)")
        fields.append("Connection", "close")
        let reason = MHD_get_reason_phrase_for(UInt32(status)).map { String(cString: $0) } ?? ""
        let head = "HTTP/1.1 \(status) \(reason)\r\n" + fields.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n"
        guard method != .head, case .bytes(let body) = body else { return Array(head.utf8) }
        return Array(head.utf8) + body
    }
}

/// A body that is created once and sent any number of times without copying. Its memory is never freed, because
/// libmicrohttpd may still be sending it when nothing else refers to it.
public struct SharedBody: Sendable {
    let bytes: SharedBytes

    public init(_ bytes: [UInt8]) {
        self.bytes = SharedBytes(bytes)
        // Never released.
        _ = Unmanaged.passRetained(self.bytes)
    }
}
