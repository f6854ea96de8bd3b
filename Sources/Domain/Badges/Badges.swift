import Values

/// The badge counts of a user, as the server computes them (R-CNT-COUNTS-1, R-CNT-RT-3).
///
/// The counts are absolute and uncapped; a client decides whether to draw "99+". `version` grows with every change of a
/// user's counts. A client that receives two answers in the wrong order keeps the one with the higher version of one
/// epoch.
public struct Badges: Sendable, Hashable {
    /// Unread messages over all conversations.
    public var messages: Int
    /// Open requests to the user that the user has not seen, counted from their own rows.
    public var requests: Int
    /// Unseen notifications, without those about messages and without those about requests that `requests` counts.
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

/// The badge counts in the form that clients receive.
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
