import Domain
import TestSupport
import Testing
import Values

/// R-CNT-COUNTS-1 and R-16: which notification lights which badge.
@Suite(.timed) struct BadgesTests {
    @Test(arguments: ["visit", "system", "emergency", "booking", "anything-else"])
    func unseenOfMostCategories_countsForTheBell(_ word: String) throws {
        let category = try #require(NotificationCategory(rawValue: word))
        #expect(BadgeChange.share(of: category, seen: false, isOfRequest: false) == BadgeChange(bell: 1))
        #expect(BadgeChange.share(of: category, seen: true, isOfRequest: false).isNone)
    }

    @Test func requests_haveTheirOwnBadge_andMessagesAreCountedElsewhere() {
        #expect(BadgeChange.share(of: .request, seen: false, isOfRequest: true).isNone)
        #expect(BadgeChange.share(of: .request, seen: false, isOfRequest: false) == BadgeChange(bell: 1))
        func request(_ status: UserRequest.Status, isSeen: Bool = false) -> UserRequest {
            UserRequest(
                id: ID("r"), kind: .friend, fromUserId: ID("a"), toUserId: ID("b"), status: status,
                createdAt: Timestamp(microseconds: 0), seenAt: isSeen ? Timestamp(microseconds: 1) : nil)
        }
        #expect(BadgeChange.share(of: request(.open)) == BadgeChange(requests: 1))
        for counted in [request(.open, isSeen: true), request(.accepted), request(.declined)] {
            #expect(BadgeChange.share(of: counted).isNone)
        }
        #expect(BadgeChange.share(of: .message, seen: false, isOfRequest: false).isNone)
    }

    @Test func changes_addUp() {
        var change = BadgeChange(messages: 2, requests: 1) + BadgeChange(bell: 3)
        change += -BadgeChange(messages: 2, bell: 1)
        #expect(change == BadgeChange(requests: 1, bell: 2))
    }

    /// The bits are stored, so they are named here once more.
    @Test(arguments: 0..<8) func hiddenShares_areZero_andTheOthersAreNot(_ bits: Int) {
        let shown = Badges(messages: 2, requests: 3, bell: 4, version: 7, asOf: Timestamp(microseconds: 1))
            .hiding(BadgeShares(rawValue: bits))
        #expect(shown.messages == (bits & 1 == 0 ? 2 : 0))
        #expect(shown.requests == (bits & 2 == 0 ? 3 : 0))
        #expect(shown.bell == (bits & 4 == 0 ? 4 : 0))
        #expect(shown.total == shown.messages + shown.requests + shown.bell)
        #expect(shown.version == 7 && shown.asOf == Timestamp(microseconds: 1))
    }

    @Test func badges_areWrittenWithTotalVersionAndMoment() {
        let badges = Badges(messages: 2, requests: 3, bell: 120, version: 7, asOf: Timestamp(microseconds: 0))
        #expect(
            String(decoding: JSONWriter.bytes(badges.sent(in: "k3f9ab")), as: UTF8.self)
                == #"{"messages":2,"requests":3,"bell":120,"total":125,"version":7,"epoch":"k3f9ab","#
                + #""asOf":"1970-01-01T00:00:00.000Z"}"#)
    }
}
