/// An address to listen on.
struct ListenAddress: Sendable, Equatable {
    let host: String
    let port: Int

    /// Reads `HOST:PORT`. An IPv6 address stands in brackets (RFC 3986 §3.2.2). Nil for any other text.
    init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = text[..<colon]
        if host.first == "[" {
            guard host.last == "]" else { return nil }
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty else { return nil }
        (self.host, self.port) = (String(host), Int(port))
    }
}
