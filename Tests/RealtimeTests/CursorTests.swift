import Realtime
import Testing

@Suite struct CursorTests {
    @Test(arguments: [("k3f9", 0), ("a", 41), ("Z9", Int64.max), (String(repeating: "x", count: 44), Int64.max)])
    func cursor_isReadBack_asItWasWritten(epoch: String, sequence: Int64) throws {
        let cursor = Cursor(epoch: epoch, sequence: sequence)
        #expect(Cursor(cursor.text) == cursor)
        #expect(cursor.text.utf8.count <= Cursor.textBytesMax)
        #expect(cursor.text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") })
    }

    @Test(arguments: [
        "", "-", "k3f9", "k3f9-", "-41", "k3f9--41", "k3f9-4 1", "k3f9-+41", "k3f9-041", "k3f9-00", "k3f9-41\n",
        "k3f9-٤١", "k.f9-41", "k3\u{0}f9-41", "é-1", "k3f9-9223372036854775808", "k3f9-99999999999999999999", "a-b-1",
        String(repeating: "x", count: 45) + "-1", String(repeating: "x", count: 200) + "-1",
    ])
    func strangeCursor_isRefused(text: String) {
        #expect(Cursor(text) == nil)
    }

    /// SCH FR-003, EC2: what cannot be replayed is said, never passed over.
    @Test func resumption_isDecided_byEpochAndBounds() {
        func decide(_ id: String?) -> Resumption {
            Resumption.decide(lastEventID: id, epoch: "k", oldest: 10, newest: 20)
        }
        #expect(decide(nil) == .fresh)
        #expect(decide("") == .fresh)
        #expect(decide("k-20") == .after(20))
        #expect(decide("k-15") == .after(15))
        // Right before the oldest row that is stored: nothing was missed.
        #expect(decide("k-9") == .after(9))
        #expect(decide("k-8") == .resync(.gap))
        #expect(decide("k-21") == .resync(.gap))
        #expect(decide("other-15") == .resync(.epoch))
        #expect(decide("nonsense") == .resync(.gap))
    }
}
