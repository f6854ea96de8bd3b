import TestSupport
import Testing

@testable import BellhopClient

@Suite(.timed) struct CombinedSubscriptionsTests {
    private final class Owner {}

    /// The limit counts each topic once. Beyond it, the app gets an error instead of losing a topic silently.
    @Test func moreTopicsThanAStreamMayHave_haveNoRoom() {
        let (one, other) = (Owner(), Owner())
        var subscriptions = CombinedSubscriptions()
        let topics = (0..<100).map { "queue:s\($0)" }
        #expect(subscriptions.hasRoom(for: topics))
        subscriptions.set(ObjectIdentifier(one), topics: topics)
        #expect(subscriptions.hasRoom(for: ["queue:s7"]))
        #expect(!subscriptions.hasRoom(for: ["queue:other"]))
        #expect(subscriptions.hasRoom(for: ["queue:other"], of: ObjectIdentifier(one)))
        subscriptions.set(ObjectIdentifier(other), topics: ["queue:s7"])
        #expect(subscriptions.topics == topics)
    }
}
