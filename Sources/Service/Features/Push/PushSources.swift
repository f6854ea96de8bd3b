import Database
import Domain
import Values

/// The reads of other features that a message needs at the moment of sending. The catalog passes them, because features
/// do not know one another.
struct PushSources: Sendable {
    /// Returns an unseen notification of a user; nil if it was seen or removed.
    let notification: @Sendable (ID<Notification>, Owner, DatabaseConnection) throws -> PushText?
    /// Returns the newest unread message of a user in a conversation; nil if there is none.
    let message: @Sendable (ID<Conversation>, Owner, DatabaseConnection) throws -> PushText?
    let preferences: @Sendable (Owner, DatabaseConnection) throws -> Preferences
}
