import CMicroHTTPD
import Glibc

/// A request's head as libmicrohttpd has left it in its buffer. It is read once for deviations that libmicrohttpd
/// accepts and RFC 9112 does not. Servers that read one head differently can be made to disagree about where a request
/// ends.
///
/// libmicrohttpd 0.9.75 has no mode that refuses all deviations, and its strict mode answers twice. It cuts the head
/// into C strings in place, with NULs instead of separators. So a sound head is a chain without gaps: each name begins
/// two bytes after the value before it, and the last value ends four bytes before the head does. A folded line, a NUL,
/// a bare LF and a skipped line each break the chain.
struct RequestHead {
    enum Mistake: String {
        case line = "The request line is malformed."
        case broken = "A header is folded, does not end with CRLF, or contains NUL or CR."
        case name = "A header name is empty or contains an invalid character."
        case host = "The request must have exactly one Host header."
        case target = "The request target contains a space or a control character."
    }

    private(set) var mistake: Mistake?
    private(set) var contentLength: UnsafeBufferPointer<UInt8>?
    private(set) var transferCoding: UnsafePointer<CChar>?
    /// The number of headers that define where the body ends.
    private(set) var framingHeaderCount = 0
    let isHTTP10: Bool
    private var hostCount = 0
    /// The expected position of the next name.
    private var next: UnsafePointer<CChar>
    private let start: UnsafePointer<CChar>
    private let byteCount: Int

    /// Creates a reader of the head.
    ///
    /// - Parameters:
    ///   - targetCount: The bytes of the target as received; `target` may be cut off.
    ///   - byteCount: The bytes of the whole head, from the method to the empty line.
    init(
        method: UnsafePointer<CChar>, target: UnsafePointer<CChar>, targetCount: Int, version: UnsafePointer<CChar>,
        byteCount: Int
    ) {
        let versionCount = strlen(version)
        isHTTP10 = strcmp(version, "HTTP/1.0") == 0
        start = method
        self.byteCount = byteCount
        next = version + versionCount + 2
        if target != method + strlen(method) + 1 || version != target + targetCount + 1 { mistake = .line }
    }

    /// The whole head, as it is in the buffer.
    var bytes: UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: UnsafeRawPointer(start).assumingMemoryBound(to: UInt8.self), count: byteCount)
    }

    mutating func add(
        name: UnsafePointer<CChar>, _ nameCount: Int, value: UnsafePointer<CChar>, _ valueCount: Int
    ) {
        if name != next { note(.broken) }
        next = value + valueCount + 2
        let characters = UnsafeRawBufferPointer(start: name, count: nameCount)
        if characters.isEmpty || !characters.allSatisfy(Self.isTokenByte) { note(.name) }
        switch nameCount {
        case 4 where strcasecmp(name, "Host") == 0: hostCount += 1
        case 14 where strcasecmp(name, "Content-Length") == 0:
            framingHeaderCount += 1
            let bytes = UnsafeRawPointer(value).assumingMemoryBound(to: UInt8.self)
            contentLength = UnsafeBufferPointer(start: bytes, count: valueCount)
        case 17 where strcasecmp(name, "Transfer-Encoding") == 0:
            framingHeaderCount += 1
            transferCoding = value
        default: break
        }
    }

    /// Finishes the check. To be called when all headers are added.
    mutating func finish() {
        // A remaining CR was not part of a line's end.
        if next + 2 != start + byteCount || memchr(start, 0x0D, byteCount) != nil { note(.broken) }
        if hostCount > 1 || hostCount == 0 && !isHTTP10 { note(.host) }
    }

    /// Calls the body with the position into which libmicrohttpd reads the body: right after the head.
    func withBodyStart<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
        (start + byteCount).withMemoryRebound(to: UInt8.self, capacity: 1) { body($0) }
    }

    /// The token characters of RFC 9110 §5.6.2: letters, digits and !#$%&'*+-.^_`|~, as a bit for each ASCII character.
    private static let tokenBytes: (low: UInt64, high: UInt64) = (0x03FF_6CFA_0000_0000, 0x57FF_FFFF_C7FF_FFFE)

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        (byte < 64 ? tokenBytes.low >> UInt64(byte) : byte < 128 ? tokenBytes.high >> UInt64(byte - 64) : 0) & 1 == 1
    }

    private mutating func note(_ found: Mistake) { mistake = mistake ?? found }
}

/// The rule that separates a request's body from the following bytes (RFC 9112 §6).
enum BodyFraming: Equatable {
    case none
    case length(Int)
    case chunked
    /// Ambiguous, which allows request smuggling; or without a known end.
    case unusable(String)

    init(_ head: RequestHead) {
        if head.framingHeaderCount > 1 {
            self = .unusable("The request has more than one Content-Length or Transfer-Encoding header.")
        } else if let coding = head.transferCoding {
            let isKnown = strcasecmp(coding, "chunked") == 0 && !head.isHTTP10
            self = isKnown ? .chunked : .unusable("The transfer coding is not supported.")
        } else if let length = head.contentLength {
            self =
                Self.number(length).map { $0 == 0 ? BodyFraming.none : .length($0) }
                ?? .unusable("Content-Length is not a number.")
        } else {
            self = .none
        }
    }

    var mistake: String? {
        if case .unusable(let detail) = self { detail } else { nil }
    }

    /// Returns the fault of the Content-Length among the headers read so far; nil if it is valid or absent.
    static func refusal(ofLengthIn connection: OpaquePointer) -> TransportProblem? {
        guard let text = MHD_lookup_connection_value(connection, .HEADER_KIND, "Content-Length") else { return nil }
        let bytes = UnsafeRawPointer(text).assumingMemoryBound(to: UInt8.self)
        let value = UnsafeBufferPointer(start: bytes, count: strlen(text))
        guard number(value) == nil else { return nil }
        let isNumber = !value.isEmpty && value.allSatisfy { (48...57).contains($0) }
        return isNumber ? .bodyTooLarge(max: 0) : .malformed(detail: "Content-Length is not a number.")
    }

    /// Returns nil if the text is not a number.
    private static func number(_ bytes: UnsafeBufferPointer<UInt8>) -> Int? {
        var number = 0
        for byte in bytes {
            guard (48...57).contains(byte), number < 1 << 48 else { return nil }
            number = number * 10 + Int(byte - 48)
        }
        return bytes.isEmpty ? nil : number
    }
}
