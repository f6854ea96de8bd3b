import Database
import Domain
import Values

/// The reads of other features that a message needs at the moment of sending. The start of the service passes them,
/// because features do not know one another.
struct PushSources: Sendable {
    /// Returns an unseen notification of a user; nil if it was seen or removed.
    let notification: @Sendable (ID<Notification>, Owner, DatabaseConnection) throws -> PushText?
    /// Returns the unread messages of a member; nil if all are read.
    let message: @Sendable (ID<Conversation>, Owner, DatabaseConnection) throws -> UnreadConversation?
    let preferences: @Sendable (Owner, DatabaseConnection) throws -> Preferences
}
