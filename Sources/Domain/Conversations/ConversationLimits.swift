/// The limits of conversations, each with its reason.
public enum ConversationLimits {
    /// Members of a conversation. Each message changes a badge of every other member and publishes that member's
    /// counts. That is two events and one row per member, in one transaction for which all other writes wait.
    public static let membersMax = 256
    /// Conversations of a user. Sorting a list reads all of them.
    public static let conversationsOfUserMax = 1000
    /// Bytes of a message. It is stored once, and sent to each member.
    public static let textBytesMax = 4000
    /// Bytes of a title, which is one line of a list.
    static let titleBytesMax = 200
    /// Characters of a message in the preview of a list.
    public static let previewCharactersMax = 120
    /// Messages that one step back of a read position may mark as unread. The reader's own and the deleted messages
    /// among them are counted again, by an index.
    public static let rewindMax = 10_000
    /// Items of one page.
    public static let pageMax = 100
    /// How long a conversation without members stays stored, in case a member is added again.
    public static let abandonedRetentionSeconds: Int64 = 30 * 86_400
}
