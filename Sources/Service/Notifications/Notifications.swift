import Database

/// A user's list of notifications, kept to the newest and most pressing 50, with counts that are always exact.
enum NotificationsFeature {
    static let feature = Feature(
        name: "notifications", tables: [notifications, inboxes], migrations: migrations, endpoints: endpoints,
        reactions: reactions, topics: [], ticks: [forgetting], audits: [audit])
}
