import Database
import Domain
import Values

extension NotificationsFeature {
    /// Returns the content of an alert about a notification; nil if the user has seen or removed it.
    static func pushText(
        _ id: ID<Notification>, _ owner: Owner, _ db: DatabaseConnection
    ) throws -> PushText? {
        let found = try db.row(
            """
            SELECT \(columns) FROM \(notifications, of: owner)
            WHERE id = \(id) AND seen_at IS NULL
                AND removed_at IS NULL
            """, Notification.init(row:))
        return found.map { notification in
            PushText(
                generic: (title: notification.lockScreen, body: ""),
                full: (title: notification.title, body: notification.message), priority: notification.priority,
                data: JSONWriter.object { writer in
                    writer.member("type", "notification")
                    writer.member("id", notification.id)
                    writer.member("notificationType", notification.type)
                })
        }
    }
}
