import BellhopClient
import Testing

/// SCH FR-005: a client drops the echo of its own change, and nothing else.
@Suite struct QueryInvalidationTests {
    private static func event(_ causes: String, isComplete: Bool = true) -> ServerSentEvent {
        ServerSentEvent(
            id: "", name: "query:invalidate",
            data: #"{"keys":[["leaderboard","c1"],["classes"]],"causes":[\#(causes)],"causesComplete":\#(isComplete)}"#)
    }

    private static let own = #"{"table":"students","type":"UPDATE","recordId":"s1","actorId":"t1","originId":"tab-1"}"#
    private static let foreign = #"{"table":"students","type":"UPDATE","recordId":"s2","actorId":"t2","originId":null}"#

    @Test func echo_hasOwnChangesAlone_forTwoSeconds() throws {
        var mutations = OwnMutations()
        mutations.note(table: "students", recordId: "s1", at: 10)
        let echo = try #require(QueryInvalidation(Self.event(Self.own)))
        #expect(echo.keys == [["leaderboard", "c1"], ["classes"]])
        #expect(echo.causes.first?.originId == "tab-1")
        #expect(mutations.isEcho(echo, at: 11))
        #expect(!mutations.isEcho(echo, at: 12))
        for (causes, isComplete) in [(Self.own + "," + Self.foreign, true), (Self.own, false), ("", true)] {
            let news = try #require(QueryInvalidation(Self.event(causes, isComplete: isComplete)))
            #expect(!mutations.isEcho(news, at: 10.5))
        }
    }

    @Test func otherEvents_areNone() {
        #expect(QueryInvalidation(ServerSentEvent(id: "", name: "badges:update", data: "{}")) == nil)
    }
}
