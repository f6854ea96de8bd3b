/// A user's preferences are now these; whoever makes notifications keeps what it needs of them.
public struct PreferencesChanged: Fact {
    public let userId: ID<User>
    public let preferences: Preferences

    public init(userId: ID<User>, preferences: Preferences) {
        self.userId = userId
        self.preferences = preferences
    }
}
