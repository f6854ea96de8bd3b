import Values

/// The badge counts of a user, as the server computes them (CNT R-COUNTS-1, R-RT-3).
///
/// They are absolute and uncapped ("99+" is a matter of drawing). `version` grows with every change of a user's
/// counts, so that a client that receives two answers in the wrong order uses the newer one.
public struct Badges: Sendable, Hashable {
    /// Unread messages over all conversations.
    public var messages: Int
    /// Unseen notifications of category `request`.
    public var requests: Int
    /// Unseen notifications of every other category but `message` (decision 16).
    public var bell: Int
    public var version: Int
    /// When the counts were last changed.
    public var asOf: Timestamp

    public init(messages: Int, requests: Int, bell: Int, version: Int, asOf: Timestamp) {
        self.messages = messages
        self.requests = requests
        self.bell = bell
        self.version = version
        self.asOf = asOf
    }

    public var total: Int { messages + requests + bell }
}

extension Badges: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("messages", messages)
        writer.member("requests", requests)
        writer.member("bell", bell)
        writer.member("total", total)
        writer.member("version", version)
        writer.member("asOf", asOf)
    }
}
