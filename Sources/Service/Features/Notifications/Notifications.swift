import Database

/// A user's notifications: the newest and most urgent 50, with counts that are always exact.
enum NotificationsFeature {
    static let feature = Feature(
        name: "notifications", tables: [notifications, inboxes], migrations: migrations, endpoints: endpoints,
        reactions: reactions, ticks: [pruning], audits: [audit],
        events: ["notification:created", "notification:updated", "notification:removed"])
}
