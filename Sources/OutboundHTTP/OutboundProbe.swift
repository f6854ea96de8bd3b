/// A GET request whose answer is observed as it arrives. The arrival times of the bytes reveal buffering by
/// intermediaries. The request uses HTTP/2 if the server supports it, as browsers do.
public struct OutboundProbe: Sendable {
    public let url: String
    /// Names and values have no line breaks.
    public let headers: [(name: String, value: String)]

    public init(url: String, headers: [(name: String, value: String)] = []) {
        (self.url, self.headers) = (url, headers)
    }
}

/// The observed parts of an answer.
public struct ObservedAnswer: Sendable {
    /// 0 without a complete head.
    public internal(set) var status = 0
    /// The version as in the status line: `1.1`, `2`.
    public internal(set) var httpVersion = ""
    /// The headers by lower-case name. Of several headers with one name, the last is kept.
    public internal(set) var headers: [String: String] = [:]
    /// The reason why there is no complete head.
    public internal(set) var failure: OutboundFailure?

    /// Reads one line of the head. A status line begins a new head, because 1xx answers may precede the final one.
    mutating func read(headLine line: UnsafeRawBufferPointer) {
        let text = String(decoding: line, as: UTF8.self).filter { $0 != "\r" && $0 != "\n" && $0 != "\r\n" }
        if text.hasPrefix("HTTP/") {
            (httpVersion, headers) = (String(text.dropFirst(5).prefix { $0 != " " }), [:])
        } else if let colon = text.firstIndex(of: ":") {
            headers[text[..<colon].lowercased()] = String(
                text[text.index(after: colon)...].drop { $0 == " " })
        }
    }
}
