import TestSupport
import Testing

@testable import BellhopClient

@Suite(.timed) struct WishesTests {
    private final class Wisher {}

    /// The limit counts each topic once. Beyond it, the app gets an error instead of losing a topic silently.
    @Test func moreTopicsThanAStreamMayHave_haveNoRoom() {
        let (one, other) = (Wisher(), Wisher())
        var wishes = Wishes()
        let topics = (0..<100).map { "queue:s\($0)" }
        #expect(wishes.hasRoom(for: topics))
        wishes.set(ObjectIdentifier(one), topics: topics)
        #expect(wishes.hasRoom(for: ["queue:s7"]))
        #expect(!wishes.hasRoom(for: ["queue:other"]))
        #expect(wishes.hasRoom(for: ["queue:other"], of: ObjectIdentifier(one)))
        wishes.set(ObjectIdentifier(other), topics: ["queue:s7"])
        #expect(wishes.topics == topics)
    }
}
