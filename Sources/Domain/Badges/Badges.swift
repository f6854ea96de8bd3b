import Values

/// The badge counts of a user, as the server computes them (CNT R-COUNTS-1, R-RT-3).
///
/// They are absolute and uncapped ("99+" is a matter of drawing). `version` grows with every change of a user's
/// counts, so that a client that receives two answers in the wrong order uses the newer one, within one epoch.
public struct Badges: Sendable, Hashable {
    /// Unread messages over all conversations.
    public var messages: Int
    /// Open requests to the user that the user has not seen, by their own rows (decision 16).
    public var requests: Int
    /// Unseen notifications but those of messages, and those of requests that are counted above.
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

/// Counts as they are sent.
public struct SentBadges: Sendable, Hashable, JSONObjectWritable {
    public let badges: Badges
    public let epoch: String

    public func write(membersTo writer: inout JSONWriter) {
        writer.member("messages", badges.messages)
        writer.member("requests", badges.requests)
        writer.member("bell", badges.bell)
        writer.member("total", badges.total)
        writer.version(badges.version, in: epoch)
        writer.member("asOf", badges.asOf)
    }
}

extension Badges {
    public func sent(in epoch: String) -> SentBadges { SentBadges(badges: self, epoch: epoch) }
}
