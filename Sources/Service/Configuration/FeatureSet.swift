/// Features that are switched on or off together, by the setting `features`. What belongs to no set is always on: counts,
/// streams, devices, erasure, the audit log, clients and the console.
public enum FeatureSet: String, CaseIterable, Sendable {
    /// Notifications and their preferences.
    case bell
    /// Conversations.
    case chat
    /// Requests between users.
    case requests
    /// Posts, followers and reactions.
    case social
    /// Shops with queues, bookings and a music vote.
    case shops
    /// Challenges with leaderboards.
    case challenges
    /// Row changes of the app's own tables.
    case rows
    /// The app's own events.
    case publish

    /// What an answer says of a set that is off: the subject and the verb.
    var subject: String {
        switch self {
        case .bell: "notifications are"
        case .chat: "conversations are"
        case .requests: "requests between users are"
        case .social: "posts are"
        case .shops: "shops are"
        case .challenges: "challenges are"
        case .rows: "changes of rows are"
        case .publish: "an app's own events are"
        }
    }

    /// The word for every set, the default of the setting.
    static let all = "all"
}
