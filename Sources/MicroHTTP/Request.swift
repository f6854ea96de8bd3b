import CMicroHTTPD
import Glibc

/// One request. It is owned by one thread at a time: the reactor that read it, then whoever a handler hands it to, then
/// the reactor again.
///
/// `@unchecked Sendable`: handing it on goes through the queue of a pool or through the reactor's inbox, and each side
/// is done with it before the other begins. What belongs to libmicrohttpd (`connection`) is touched by the reactor
/// only: before the request leaves it, headers and address are copied.
public final class Request: @unchecked Sendable {
    public internal(set) var method = HTTPMethod.get
    public internal(set) var body: [UInt8] = []
    /// When its head was read: monotonic nanoseconds.
    public let receivedAt: UInt64
    /// The application's own.
    public var context: AnyObject?

    /// The request target as it came, percent-encoded, with its query.
    let target: [UInt8]
    let pathLength: Int
    var route: Route?
    var parameters = PathParameters()
    private var copiedHeaders: [(name: String, value: String)]?
    private var copiedAddress: String?

    // The reactor's own.
    var connection: OpaquePointer?
    var state = State.receiving
    var suspension: UInt32 = 0
    var suspendedAt: UInt64 = 0
    var answeredStatus = 0
    var answeredBytes = 0
    var refusal: TransportProblem?
    /// Whether it was answered before its body was read.
    var isLeftUnread = false
    /// As many as were announced; as many as may come where nothing is announced.
    var bodyBytesExpected = 0
    var chunks: ChunkFraming?
    /// The list of waiting requests, oldest first.
    var nextWaiting: Request?
    unowned(unsafe) var previousWaiting: Request?

    enum State {
        case receiving
        /// Suspended; a responder or a resumption is owed.
        case waiting
        case answerReady(Response)
        case readyToRunAgain
        case answered
    }

    init(target: [UInt8], receivedAt: UInt64) {
        self.target = target
        self.receivedAt = receivedAt
        pathLength = target.firstIndex(of: UInt8(ascii: "?")) ?? target.count
    }

    var targetMistake: RequestHead.Mistake? { target.contains { $0 <= 0x20 || $0 == 0x7F } ? .target : nil }

    /// The path as it came, without the query.
    public var path: String { String(decoding: target[..<pathLength], as: UTF8.self) }

    /// A path parameter, percent-decoded, in the order of the pattern.
    public func parameter(_ index: Int) -> String {
        // The router has refused what cannot be decoded.
        PercentEncoding.decode(target[parameters[index]], plusIsSpace: false) ?? ""
    }

    /// The items of the query, percent-decoded, in their order, with repeated names.
    public var queryItems: [(name: String, value: String?)] {
        guard pathLength < target.count else { return [] }
        return target[(pathLength + 1)...].split(separator: UInt8(ascii: "&")).map { item in
            let equals = item.firstIndex(of: UInt8(ascii: "="))
            let name = PercentEncoding.decode(item[..<(equals ?? item.endIndex)], plusIsSpace: true) ?? ""
            let value = equals.map { PercentEncoding.decode(item[($0 + 1)...], plusIsSpace: true) ?? "" }
            return (name, value)
        }
    }

    /// The first header of the name, whatever its case.
    public func header(_ name: String) -> String? {
        if let copiedHeaders {
            return copiedHeaders.first { strcasecmp($0.name, name) == 0 }?.value
        }
        guard let connection else { return nil }
        let value = name.withCString { MHD_lookup_connection_value(connection, .HEADER_KIND, $0) }
        return value.map { String(cString: $0) }
    }

    /// All headers, in their order.
    public var headers: [(name: String, value: String)] {
        if let copiedHeaders { return copiedHeaders }
        guard let connection else { return [] }
        var headers: [(name: String, value: String)] = []
        withUnsafeMutablePointer(to: &headers) { list in
            _ = MHD_get_connection_values(connection, .HEADER_KIND, collectHeader, list)
        }
        return headers
    }

    /// A header's bytes, not copied where that is possible: for what is asked of every request.
    public func withHeader<Result>(
        _ name: StaticString, _ body: (UnsafeBufferPointer<UInt8>?) -> Result
    ) -> Result {
        if copiedHeaders == nil, let connection {
            let start = UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
            guard let value = MHD_lookup_connection_value(connection, .HEADER_KIND, start) else { return body(nil) }
            let bytes = UnsafeRawPointer(value).assumingMemoryBound(to: UInt8.self)
            return body(UnsafeBufferPointer(start: bytes, count: strlen(value)))
        }
        guard var text = header("\(name)") else { return body(nil) }
        return text.withUTF8 { body($0) }
    }

    /// The client's address, without its port.
    public var remoteAddress: String {
        if let copiedAddress { return copiedAddress }
        guard let connection, let address = cmhd_client_address(connection) else { return "" }
        return SocketAddress.text(of: address)
    }

    /// Copies what libmicrohttpd owns; from here on any thread may have the request. Reactor only.
    func leaveReactor() {
        guard copiedHeaders == nil, connection != nil else { return }
        copiedAddress = remoteAddress
        copiedHeaders = headers
    }
}

/// Where the parameters of a path stand in the target; at most four.
struct PathParameters {
    static let countMax = 4
    private var bounds = SIMD8<UInt16>()
    private(set) var count = 0

    mutating func append(_ range: Range<Int>) {
        bounds[count * 2] = UInt16(range.lowerBound)
        bounds[count * 2 + 1] = UInt16(range.upperBound)
        count += 1
    }

    mutating func removeLast() { count -= 1 }

    subscript(index: Int) -> Range<Int> {
        precondition(index < count, "the route has \(count) parameters")
        return Int(bounds[index * 2])..<Int(bounds[index * 2 + 1])
    }
}

private func collectHeader(
    _ context: UnsafeMutableRawPointer?, _: MHD_ValueKind, _ name: UnsafePointer<CChar>?,
    _ value: UnsafePointer<CChar>?
) -> MHD_Result {
    guard let context, let name else { return .YES }
    let headers = context.assumingMemoryBound(to: [(name: String, value: String)].self)
    headers.pointee.append((String(cString: name), value.map { String(cString: $0) } ?? ""))
    return .YES
}

/// RFC 3986, 2.1.
enum PercentEncoding {
    /// Nil for what is no encoding of UTF-8 text, or has a NUL.
    static func decode(_ bytes: ArraySlice<UInt8>, plusIsSpace: Bool) -> String? {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "%"):
                guard index + 2 < bytes.endIndex, let high = digit(bytes[index + 1]), let low = digit(bytes[index + 2])
                else { return nil }
                out.append(high << 4 | low)
                index += 2
            case UInt8(ascii: "+") where plusIsSpace: out.append(UInt8(ascii: " "))
            default: out.append(byte)
            }
            index += 1
        }
        guard !out.contains(0) else { return nil }
        return String(validating: out, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }
}
