import Values

/// A user's preferences were changed, in this transaction; the notifications feature stores what it needs of them.
public struct PreferencesChanged: Fact {
    public let userId: ID<User>
    public let preferences: Preferences

    public init(userId: ID<User>, preferences: Preferences) {
        self.userId = userId
        self.preferences = preferences
    }
}
