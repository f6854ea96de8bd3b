import TestSupport
import Testing

@testable import BellhopCalls
@testable import BellhopClient

@Suite(.timed) struct CombinedSubscriptionsTests {
    private final class Owner {}

    @MainActor private final class Answers {
        var all: [String] = []
    }

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

    /// The caller of replaced or removed tables gets an answer, as in bellhop.js, instead of waiting forever.
    @MainActor @Test func replacedTables_areAnswered() {
        let (one, other) = (Owner(), Owner())
        var subscriptions = CombinedSubscriptions()
        let answers = Answers()
        func set(_ owner: Owner, _ name: String) -> CombinedSubscriptions.Callback? {
            subscriptions.set(ObjectIdentifier(owner), tables: [["id": "t", "table": "tasks"]]) { answer in
                answers.all.append("\(name) \(answer.status) \(answer.json["code"].string ?? "")")
            }
        }
        #expect(set(one, "first") == nil)
        #expect(set(other, "other") == nil)
        let first = set(one, "second")
        first?(CombinedSubscriptions.superseded)
        #expect(answers.all == ["first 0 tables.superseded"])
        // An answered callback is not answered again.
        for (callback, answer) in subscriptions.takeAnswers(.init(status: 200, body: .null, refused: [:])) {
            callback(answer)
        }
        #expect(answers.all == ["first 0 tables.superseded", "second 200 ", "other 200 "])
        #expect(set(one, "third") == nil)
        let (isChange, third) = subscriptions.remove(ObjectIdentifier(one))
        third?(CombinedSubscriptions.superseded)
        #expect(isChange && answers.all.last == "third 0 tables.superseded")
        #expect(subscriptions.remove(ObjectIdentifier(one)).unanswered == nil)
    }
}
