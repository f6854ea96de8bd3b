/// A GET that is watched while its answer comes: what stands in between shows by when which bytes arrive. Over HTTP/2 where
/// the server speaks it, as browsers ask.
public struct OutboundProbe: Sendable {
    public let url: String
    /// Names and values have no line ends.
    public let headers: [(name: String, value: String)]

    public init(url: String, headers: [(name: String, value: String)] = []) {
        (self.url, self.headers) = (url, headers)
    }
}

/// What was seen of an answer.
public struct ObservedAnswer: Sendable {
    /// 0 without a whole head.
    public internal(set) var status = 0
    /// As it stands in the status line: `1.1`, `2`.
    public internal(set) var httpVersion = ""
    /// By their names in lower case; of several of one name the last.
    public internal(set) var headers: [String: String] = [:]
    /// Why there is no whole head.
    public internal(set) var failure: OutboundFailure?

    /// Reads one line of a head. A status begins another one: that of 1xx stands before.
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
