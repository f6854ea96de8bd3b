/// The bounds of conversations, each with what breaks without it.
public enum ConversationLimits {
    /// Members of a conversation. Each message changes a badge of every other member and publishes each one's counts:
    /// two events and a row a member, in one transaction that all other writes wait for.
    public static let membersMax = 256
    /// Conversations that a user can be in. A list is put in order from all of them.
    public static let conversationsOfUserMax = 1000
    /// Bytes of a message. It is stored once, and sent to each member.
    public static let textBytesMax = 4000
    /// Bytes of a title: one line of a list.
    static let titleBytesMax = 200
    /// Characters of a message that a list shows of it.
    public static let previewCharactersMax = 120
    /// Messages that one step back of a read position may mark unread: those among them that are the reader's own
    /// or deleted are counted anew, by an index.
    public static let rewindMax = 10_000
    /// Items of one page.
    public static let pageMax = 100
    /// How long a conversation without members stays stored, in case somebody is added again.
    public static let abandonedRetentionSeconds: Int64 = 30 * 86_400
}
