/// One event of a stream, as the WHATWG's event stream format dispatches it.
public struct ServerSentEvent: Sendable, Hashable {
    /// The last event id when the event was dispatched: the position to resume from. Empty if the service has sent no
    /// id.
    public let id: String
    /// `message` if the server sent no name.
    public let name: String
    public let data: String
    /// Whether the event has its own id. Such an event is replayed to a client that resumes before it. An event that
    /// reports a current state, such as the length of a queue, has no id.
    public let isReplayed: Bool

    /// - Parameter isReplayed: whether the event has its own id, if that differs from the current last event id.
    public init(id: String, name: String, data: String, isReplayed: Bool? = nil) {
        self.isReplayed = isReplayed ?? !id.isEmpty
        self.id = id
        self.name = name
        self.data = data
    }

    /// The data as JSON; `null` if it is not JSON.
    public var json: JSON { (try? JSON(parsing: data)) ?? .null }
}

/// A parser that turns the bytes of a `text/event-stream` into events as the WHATWG HTML standard defines, in whatever
/// pieces the network delivers them.
///
/// Line ends are CR, LF or CRLF, even if a piece ends between CR and LF. A leading byte order mark is dropped. An id
/// with NUL is ignored, and `retry` must consist of digits. An id without data moves the cursor without an event. An
/// event that the stream's end truncates is not dispatched.
public struct SSEParser: Sendable {
    /// An event exceeded the size limit.
    public struct EventTooLarge: Error, Hashable {
        public let bytesMax: Int
    }

    /// The position to resume from: the id of the last complete block.
    public private(set) var lastEventID: String
    /// The last `retry:` value of the stream.
    public private(set) var retryMilliseconds: Int?

    private let eventBytesMax: Int
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var name = ""
    private var pendingID: String
    private var hasID = false
    private var isAfterCarriageReturn = false
    private var isAtStart = true

    /// - Parameter eventBytesMax: limit of one event. Without it, a server that never ends a line would fill the
    ///   client's memory.
    public init(lastEventID: String = "", eventBytesMax: Int = 16 << 20) {
        self.lastEventID = lastEventID
        self.pendingID = lastEventID
        self.eventBytesMax = eventBytesMax
    }

    /// Discards the state of one connection (a half-received event); the cursor and `retry` stay.
    public mutating func startNewConnection() {
        line.removeAll(keepingCapacity: true)
        resetEvent()
        pendingID = lastEventID
        isAfterCarriageReturn = false
        isAtStart = true
    }

    /// Reads further bytes and returns the events that they complete.
    public mutating func parse(_ bytes: some Sequence<UInt8>) throws(EventTooLarge) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in bytes {
            if isAfterCarriageReturn {
                isAfterCarriageReturn = false
                if byte == UInt8(ascii: "\n") { continue }
            }
            switch byte {
            case UInt8(ascii: "\n"):
                endLine(&events)
            case UInt8(ascii: "\r"):
                endLine(&events)
                isAfterCarriageReturn = true
            default:
                guard line.count + data.count < eventBytesMax else { throw EventTooLarge(bytesMax: eventBytesMax) }
                line.append(byte)
            }
        }
        return events
    }

    /// As in bellhop.js: the longest time that a timer of JavaScript can wait.
    private static let retryMillisecondsMax = Int(Int32.max)
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private mutating func endLine(_ events: inout [ServerSentEvent]) {
        if isAtStart {
            isAtStart = false
            if line.starts(with: SSEParser.byteOrderMark) { line.removeFirst(3) }
        }
        defer { line.removeAll(keepingCapacity: true) }
        guard !line.isEmpty else { return dispatch(&events) }
        let name = line.prefix { $0 != UInt8(ascii: ":") }
        guard !name.isEmpty else { return }
        var value = line.dropFirst(name.count + 1)
        if value.first == UInt8(ascii: " ") { value.removeFirst() }
        field(String(decoding: name, as: UTF8.self), value)
    }

    private mutating func field(_ field: String, _ value: ArraySlice<UInt8>) {
        switch field {
        case "data":
            if hasData { data.append(UInt8(ascii: "\n")) }
            data.append(contentsOf: value)
            hasData = true
        case "event": name = String(decoding: value, as: UTF8.self)
        case "id":
            guard !value.contains(0) else { break }
            (pendingID, hasID) = (String(decoding: value, as: UTF8.self), true)
        case "retry":
            let isNumber = !value.isEmpty && value.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
            if isNumber {
                let milliseconds = Int(String(decoding: value, as: UTF8.self)) ?? .max
                retryMilliseconds = min(milliseconds, SSEParser.retryMillisecondsMax)
            }
        default: break
        }
    }

    private mutating func dispatch(_ events: inout [ServerSentEvent]) {
        lastEventID = pendingID
        defer { resetEvent() }
        guard hasData else { return }
        events.append(
            ServerSentEvent(
                id: lastEventID, name: name.isEmpty ? "message" : name, data: String(decoding: data, as: UTF8.self),
                isReplayed: hasID && !lastEventID.isEmpty))
    }

    private mutating func resetEvent() {
        data.removeAll(keepingCapacity: true)
        hasData = false
        hasID = false
        name = ""
    }
}
