import Glibc

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
        case .shared(let shared): shared.count
        }
    }
}

/// A body that is made once and sent for ever without copying. Its memory is never given back: libmicrohttpd may still
/// be sending it when nobody else knows of it.
///
/// `@unchecked Sendable`: the bytes are written before the object exists, and only read since.
public final class SharedBody: @unchecked Sendable {
    let base: UnsafeMutableRawPointer
    public let count: Int

    public init(_ bytes: [UInt8]) {
        count = bytes.count
        base = UnsafeMutableRawPointer.allocate(byteCount: max(1, bytes.count), alignment: 16)
        bytes.withUnsafeBytes { source in
            if let start = source.baseAddress { base.copyMemory(from: start, byteCount: source.count) }
        }
    }
}

/// How a handler answers.
public enum Reply {
    case response(Response)
    /// The connection waits, then the closure is called: it hands the work on, and must not block.
    case deferred(@Sendable (Responder) -> Void)
    /// The connection waits; when `resume` is called the handler runs again from its beginning, with the same request.
    case again(@Sendable (_ resume: @escaping @Sendable () -> Void) -> Void)
    case stream(StreamOpening)
}

/// The beginning of an event stream: 200, a body without end, and what the stream's program is told.
public struct StreamOpening {
    public var headers: [(name: String, value: String)]
    /// Given to the program; released if the stream never opens.
    public var context: any Sendable
    /// Nil: the shards take turns.
    public var shard: Int?

    public init(headers: [(name: String, value: String)], context: any Sendable, shard: Int? = nil) {
        self.headers = headers
        self.context = context
        self.shard = shard
    }
}

/// The right to answer one deferred request, once, from any thread.
public final class Responder: Sendable {
    private let request: Request
    private let suspension: UInt32
    private let inbox: ReactorInbox

    init(request: Request, suspension: UInt32, inbox: ReactorInbox) {
        self.request = request
        self.suspension = suspension
        self.inbox = inbox
    }

    /// A second answer, and one that comes after the server gave up waiting, goes nowhere.
    public func complete(_ response: Response) {
        inbox.post(.answer(request, suspension: suspension, response))
    }
}
