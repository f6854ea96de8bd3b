import MicroHTTP

/// Entity tags: versions in quotes (RFC 9110, 8.8.3).
enum ETags {
    static func quoted(_ version: String) -> String { "\"\(version)\"" }

    /// The version of a tag, whether it is a weak one or lacks its quotes.
    static func unquoted(_ tag: String) -> String {
        var text = tag.drop { $0 == " " }
        if text.hasPrefix("W/") { text = text.dropFirst(2) }
        while text.last == " " { text = text.dropLast() }
        guard text.count >= 2, text.first == "\"", text.last == "\"" else { return String(text) }
        return String(text.dropFirst().dropLast())
    }
}

extension Request {
    /// Whether `If-None-Match` names the version. Tags are compared weakly (RFC 9110, 13.1.2).
    func hasSeen(_ version: String) -> Bool {
        guard let wanted = header("If-None-Match") else { return false }
        return wanted.split(separator: ",").contains { candidate in
            let text = candidate.drop { $0 == " " }
            return text == "*" || ETags.unquoted(String(text)) == version
        }
    }
}
