import Database
import Values

/// The counts of all icons in one call (CNT G1…G3, R-COUNTS-1, D-CNT-1).
///
/// Each transaction stores the numbers that it changes; this feature only reads them.
enum BadgesFeature {
    /// - Parameter conversations: the caller's unread messages by conversation, as rows of an id and a number. It is a
    ///   parameter because features do not depend on one another.
    static func feature(conversations: @escaping @Sendable (Caller) -> SQL) -> Feature {
        Feature(
            name: "badges", endpoints: endpoints(conversations), events: ["badges:update"],
            constants: { writer, _ in
                writer.member("polling") { writer in
                    writer.member("connectedSeconds", PollIntervals.connectedSeconds)
                    writer.member("disconnectedSeconds", PollIntervals.disconnectedSeconds)
                    writer.member("tabSwitchStaleSeconds", PollIntervals.tabSwitchStaleSeconds)
                }
            })
    }
}

/// How often clients may ask (CNT D-CNT-2, CONST-POLL).
enum PollIntervals {
    /// With an open stream, as a safety net.
    static let connectedSeconds = 10
    static let disconnectedSeconds = 90
    /// A tab that comes to the front asks again if its counts are older.
    static let tabSwitchStaleSeconds = 15
}
