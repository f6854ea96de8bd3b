import Values

/// The writer of Server-Sent Events, in the format that the WHATWG standard defines.
public enum SSE {
    /// Encodes one event of the log: id, name and data.
    public static func encode(_ event: StreamEvent, at cursor: Cursor) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(event.data.count + event.name.utf8.count + Cursor.textBytesMax)
        append(event.name, data: event.data, id: cursor, traceparent: event.traceparent, to: &bytes)
        return bytes
    }

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
        bytes.append(contentsOf: "retry: ".utf8)
        bytes.append(contentsOf: String(milliseconds).utf8)
        bytes.append(contentsOf: "\n\n".utf8)
    }

    /// Returns the number of events in encoded bytes.
    public static func eventCount(in bytes: UnsafeRawBufferPointer) -> Int {
        let field = Array("event: ".utf8)
        var (count, start) = (0, 0)
        while start < bytes.count {
            if bytes[start...].starts(with: field) { count += 1 }
            guard let end = bytes[start...].firstIndex(of: lineFeed) else { break }
            start = end + 1
        }
        return count
    }

    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")

    private static func appendID(_ cursor: Cursor, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "id: ".utf8)
        cursor.append(to: &bytes)
        bytes.append(lineFeed)
    }

    private static func appendBody(_ name: String, _ data: [UInt8], to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "event: ".utf8)
        // A line break inside the name would start another field.
        bytes.append(contentsOf: name.utf8.lazy.filter { $0 != lineFeed && $0 != carriageReturn })
        bytes.append(contentsOf: "\ndata: ".utf8)
        appendLines(data, to: &bytes)
        bytes.append(contentsOf: [lineFeed, lineFeed])
    }

    /// Splits the data at LF, CR and CRLF alike. Clients end a line at each of them, so a bare CR in the data would
    /// turn the rest into a field.
    private static func appendLines(_ data: [UInt8], to bytes: inout [UInt8]) {
        var start = 0
        var index = 0
        while true {
            // JSON written by this service has no line breaks, so this reads each byte once and copies it once.
            index = data.withUnsafeBufferPointer { $0.endOfLine(from: index) }
            bytes.append(contentsOf: data[start..<index])
            guard index < data.count else { return }
            bytes.append(contentsOf: "\ndata: ".utf8)
            let isPair = data[index] == carriageReturn && index + 1 < data.count && data[index + 1] == lineFeed
            index += isPair ? 2 : 1
            start = index
        }
    }
}
