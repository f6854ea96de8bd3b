/// Something that happened inside a transaction and that other features react to, before the transaction ends.
///
/// Facts are how features meet: each knows the facts, none knows another feature.
public protocol Fact: Sendable {}

/// Some feature wants its user notified; the notifications feature makes the draft real in the same transaction.
public struct NotificationRequested: Fact {
    public let draft: NotificationDraft

    public init(draft: NotificationDraft) {
        self.draft = draft
    }
}
