import Glibc
import Values

/// The writer of Server-Sent Events, in the format that the WHATWG standard defines.
public enum SSE {
    /// Encodes one event of the log: id, name and data.
    public static func encode(_ event: StreamEvent, at cursor: Cursor) -> [UInt8] {
        encode(event.name, data: event.data, id: cursor, traceparent: event.traceparent)
    }

    /// Encodes one event in bytes of its own. The parameters are the same as in ``append(_:data:id:traceparent:to:)``.
    public static func encode(
        _ name: String, data: [UInt8], id cursor: Cursor? = nil, traceparent: String? = nil
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(name.utf8.count + data.count + Cursor.textBytesMax + fieldBytesMax)
        append(name, data: data, id: cursor, traceparent: traceparent, to: &bytes)
        return bytes
    }

    /// The names of the fields of one event, with their line breaks, and a `traceparent`.
    private static let fieldBytesMax = 96

    /// Appends an event about the stream itself (`stream:ready`). It carries the cursor only if it moves the client's
    /// position.
    ///
    /// - Parameter traceparent: Written in a comment before the event, because clients ignore comments.
    public static func append(
        _ name: String, data: [UInt8], id cursor: Cursor? = nil, traceparent: String? = nil, to bytes: inout [UInt8]
    ) {
        if let traceparent { bytes.append(contentsOf: ": traceparent=\(traceparent)\n".utf8) }
        if let cursor { appendID(cursor, to: &bytes) }
        appendBody(name, data, to: &bytes)
    }

    /// Encodes an id without an event. Clients store it as their last event id and dispatch nothing.
    public static func place(_ cursor: Cursor) -> [UInt8] {
        var bytes: [UInt8] = []
        appendID(cursor, to: &bytes)
        bytes.append(lineFeed)
        return bytes
    }

    /// Appends the pause of a client before it reconnects. It must be digits only, because clients ignore anything
    /// else.
    public static func appendRetry(milliseconds: Int, to bytes: inout [UInt8]) {
        precondition(milliseconds >= 0, "a retry is digits only")
        append("retry: ", to: &bytes)
        bytes.append(decimal: Int64(milliseconds))
        append("\n\n", to: &bytes)
    }

    /// Returns the number of events in encoded bytes.
    public static func eventCount(in bytes: UnsafeRawBufferPointer) -> Int {
        let field: StaticString = "event: "
        var (count, rest) = (0, bytes)
        while rest.count > field.utf8CodeUnitCount, let start = rest.baseAddress {
            if memcmp(start, field.utf8Start, field.utf8CodeUnitCount) == 0 { count += 1 }
            guard let end = memchr(start, Int32(lineFeed), rest.count) else { break }
            rest = UnsafeRawBufferPointer(rebasing: rest[(UnsafeRawPointer(end) - start + 1)...])
        }
        return count
    }

    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")

    private static func appendID(_ cursor: Cursor, to bytes: inout [UInt8]) {
        append("id: ", to: &bytes)
        cursor.append(to: &bytes)
        bytes.append(lineFeed)
    }

    private static func appendBody(_ name: String, _ data: [UInt8], to bytes: inout [UInt8]) {
        append("event: ", to: &bytes)
        // A line break inside the name would start another field.
        name.withUTF8Bytes { append($0, joiningLinesWith: "", to: &bytes) }
        append(nextData, to: &bytes)
        data.withUnsafeBufferPointer { append($0, joiningLinesWith: nextData, to: &bytes) }
        append("\n\n", to: &bytes)
    }

    private static let nextData: StaticString = "\ndata: "

    /// Splits the text at LF, CR and CRLF alike. Clients end a line at each of them, so a bare CR in the text would turn
    /// the rest into a field.
    private static func append(
        _ text: UnsafeBufferPointer<UInt8>, joiningLinesWith separator: StaticString, to bytes: inout [UInt8]
    ) {
        var start = 0
        while true {
            // JSON written by this service has no line breaks, so this reads each byte once and copies it once.
            let end = text.endOfLine(from: start)
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[start..<end]))
            guard end < text.count else { return }
            append(separator, to: &bytes)
            let isPair = text[end] == carriageReturn && end + 1 < text.count && text[end + 1] == lineFeed
            start = end + (isPair ? 2 : 1)
        }
    }

    private static func append(_ text: StaticString, to bytes: inout [UInt8]) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }
}
