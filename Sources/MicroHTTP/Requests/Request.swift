/// A request. One thread owns it at a time: the reactor that read it, then the thread to which a handler hands it, then
/// the reactor again.
///
/// `@unchecked Sendable`: it is handed over through the queue of a pool or the reactor's inbox, and each side has
/// finished with it before the other begins. Only the reactor touches what belongs to libmicrohttpd (`connection`, and
/// the head's bytes); before the request leaves the reactor, the headers are copied. Another request reuses the object
/// when nothing else refers to it.
///
/// `@exclusivity(unchecked)`: only the owner's thread reads, replaces or appends to the marked properties, and these
/// operations never call back into the request. So two accesses cannot overlap. Run-time checks took a twelfth of the
/// instructions of a 304 answer.
public final class Request: @unchecked Sendable {
    public internal(set) var method = HTTPMethod.get
    @exclusivity(unchecked) public internal(set) var body: [UInt8] = []
    /// The time when its head was read, in monotonic nanoseconds.
    public private(set) var receivedAt: UInt64 = 0
    /// For use by the application.
    @exclusivity(unchecked) public var context: AnyObject?

    /// The raw path and query, percent-encoded.
    @exclusivity(unchecked) private(set) var target: [UInt8] = []
    private(set) var pathLength = 0
    /// The bytes of the target as received, and the place of its `?` there; without one, the number of its bytes.
    private(set) var received: (count: Int, queryStart: Int) = (0, 0)
    private(set) var targetMistake: RequestHead.Mistake?
    /// Whether the target contains anything to decode.
    private(set) var isEncoded = false
    @exclusivity(unchecked) var route: Route?
    var parameters = PathParameters()
    /// The header fields as received.
    let fields = RequestFields()

    // Used by the reactor only.
    var connection: OpaquePointer?
    @exclusivity(unchecked) var state = State.receiving
    /// A unique number per suspension, to detect an answer to an earlier one.
    var suspension: UInt32 = 0
    var suspendedAt: UInt64 = 0
    var answeredStatus = 0
    var answeredBytes = 0
    @exclusivity(unchecked) var refusal: TransportProblem?
    /// Whether it was answered before its body was read.
    var isBodyUnread = false
    /// The announced length, or the maximum without an announcement.
    var bodyBytesExpected = 0
    /// The answer to a request whose short body is read and discarded.
    @exclusivity(unchecked) var earlyAnswer: Response?
    /// The body's bytes for which memory is reserved so far.
    var bodyBytesReserved = 0
    @exclusivity(unchecked) var reservation: (any BodyReservation)?
    @exclusivity(unchecked) var chunks: ChunkFraming?
    /// The sending of an answer in pieces.
    var pieces: PieceReading?
    /// The list of waiting requests, oldest first.
    var nextWaiting: Request?
    unowned(unsafe) var previousWaiting: Request?

    enum State {
        case receiving
        /// Suspended; a responder or a resumption is outstanding.
        case waiting
        case answerReady(Response)
        case readyToRunAgain
        case answered
    }

    /// Returns a request whose head was never read.
    static func unread(receivedAt: UInt64) -> Request {
        let request = Request()
        [UInt8(ascii: "/")].withUnsafeBufferPointer { request.begin($0, receivedAt: receivedAt) }
        return request
    }

    /// Reuses this object for another request, once nothing else refers to it.
    func begin(_ target: UnsafeBufferPointer<UInt8>, receivedAt: UInt64) {
        self.receivedAt = receivedAt
        method = .get
        releaseBody()
        context = nil
        (route, parameters) = (nil, PathParameters())
        state = .receiving
        (suspendedAt, answeredStatus, answeredBytes) = (0, 0, 0)
        (refusal, isBodyUnread, bodyBytesExpected, chunks) = (nil, false, 0, nil)
        earlyAnswer = nil
        fields.clear()
        self.target.removeAll(keepingCapacity: target.count <= Self.targetBytesRetained)
        guard target.first == UInt8(ascii: "/") else { return beginUnusual(target) }
        self.target.append(contentsOf: target)
        readTarget(target)
        received = (target.count, pathLength)
    }

    /// Reads a target in absolute form, which proxies may send (RFC 9112 §3.2.2). Its scheme and authority say nothing
    /// here: one service answers for all names.
    private func beginUnusual(_ target: UnsafeBufferPointer<UInt8>) {
        let start = Self.pathStart(inAbsolute: target) ?? 0
        let path = UnsafeBufferPointer(rebasing: target[start...])
        let isEmptyPath = start > 0 && path.first != UInt8(ascii: "/")
        if isEmptyPath { self.target.append(UInt8(ascii: "/")) }
        self.target.append(contentsOf: path)
        self.target.withUnsafeBufferPointer { readTarget($0) }
        if target[..<start].contains(where: { $0 <= 0x20 || $0 == 0x7F }) { targetMistake = .target }
        received = (target.count, start + pathLength - (isEmptyPath ? 1 : 0))
    }

    /// Returns the end of the scheme and the authority; nil if the target is not in absolute form.
    private static func pathStart(inAbsolute target: UnsafeBufferPointer<UInt8>) -> Int? {
        let scheme = ["http://", "https://"].first { scheme in
            target.count > scheme.utf8.count && zip(target, scheme.utf8).allSatisfy { $0 | 0x20 == $1 | 0x20 }
        }
        guard let scheme else { return nil }
        let authority = target[scheme.utf8.count...].prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        return authority.isEmpty ? nil : authority.endIndex
    }

    /// The memory of a longer target is freed.
    private static let targetBytesRetained = 256

    private func readTarget(_ target: UnsafeBufferPointer<UInt8>) {
        var (length, isDamaged, isEncoded) = (target.count, false, false)
        for index in target.indices {
            switch target[index] {
            case UInt8(ascii: "?"): length = min(length, index)
            case 0...0x20, 0x7F: isDamaged = true
            case 0x80..., UInt8(ascii: "%"): isEncoded = true
            default: break
            }
        }
        (pathLength, targetMistake, self.isEncoded) = (length, isDamaged ? .target : nil, isEncoded)
    }

    /// Releases the memory of the body, and then its reservation.
    func releaseBody() {
        body = []
        bodyBytesReserved = 0
        reservation = nil
    }

    /// Continues an answer in pieces.
    func `continue`(with piece: PieceBody.Piece) {
        state = .answered
        pieces?.receive(piece)
    }

    /// Drops all references to libmicrohttpd's memory.
    func end() {
        (connection, pieces) = (nil, nil)
        fields.forget()
    }

    /// Whether it asks about the server as a whole: `OPTIONS *` (RFC 9110 §9.3.7).
    var concernsServer: Bool { method == .options && target == [UInt8(ascii: "*")] }

    /// The raw path, without the query.
    public var path: String { String(decoding: target[..<pathLength], as: UTF8.self) }

    /// Returns a path parameter, percent-decoded, by its index in the pattern.
    public func parameter(_ index: Int) -> String {
        // The router has refused undecodable parameters.
        PercentEncoding.decode(target[parameters[index]], plusIsSpace: false) ?? ""
    }

    /// The items of the query, percent-decoded, in order, including repeated names.
    public var queryItems: [(name: String, value: String?)] {
        guard pathLength < target.count else { return [] }
        return target[(pathLength + 1)...].split(separator: UInt8(ascii: "&")).map { item in
            let equals = item.firstIndex(of: UInt8(ascii: "="))
            let name = PercentEncoding.decode(item[..<(equals ?? item.endIndex)], plusIsSpace: true) ?? ""
            let value = equals.map { PercentEncoding.decode(item[($0 + 1)...], plusIsSpace: true) ?? "" }
            return (name, value)
        }
    }

    /// Returns the header of the name, in any case. Several lines of a name are one list (``RequestFields``).
    public func header(_ name: StaticString) -> String? {
        withHeader(name) { $0.map { String(decoding: $0, as: UTF8.self) } }
    }

    /// All lines of headers, in order.
    public var headers: [(name: String, value: String)] { fields.texts }

    /// Calls the body with a header's bytes, without a copy. For headers that every request needs.
    public func withHeader<Result>(
        _ name: StaticString, _ body: (UnsafeBufferPointer<UInt8>?) -> Result
    ) -> Result {
        fields.withValue(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), body)
    }

    /// Copies what libmicrohttpd owns. From now on, any thread may own the request. Only the reactor may call it.
    func detachFromReactor() { fields.detachFromBuffer() }
}

/// The positions of path parameters in the target; at most four.
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

/// Percent-encoding (RFC 3986 §2.1).
enum PercentEncoding {
    /// Decodes; nil if the result is not UTF-8 text, or contains a NUL.
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
