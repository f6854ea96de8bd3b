/// What a request is answered with.
public struct Response: Sendable {
    public enum Body: Sendable {
        case none
        case bytes([UInt8])
        case shared(SharedBody)
    }

    public var status: Int
    /// In the order they are sent; `Date`, `Content-Length` and `Connection` are the server's.
    public var headers: [(name: String, value: String)]
    public var body: Body

    public init(status: Int, headers: [(name: String, value: String)] = [], body: Body = .none) {
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
