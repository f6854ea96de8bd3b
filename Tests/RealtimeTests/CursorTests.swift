import Realtime
import TestSupport
import Testing

@Suite(.timed) struct CursorTests {
    private static func ids(_ epoch: String, key: UInt8 = 1) -> EventIDs {
        EventIDs(epoch: epoch, key: Array(repeating: key, count: KeyedPermutation.keyBytes))
    }

    @Test(arguments: [
        ("k3f9", 0), ("a", 41), ("Z9", Int64(1) << 48 - 1), (String(repeating: "x", count: 44), Int64(1) << 48 - 1),
    ])
    func cursor_isReadBack_asItWasWritten(epoch: String, sequence: Int64) throws {
        let ids = Self.ids(epoch)
        let cursor = ids.cursor(sequence)
        #expect(Cursor(cursor.text) == cursor)
        #expect(ids.sequence(of: cursor) == sequence)
        #expect(cursor.text.utf8.count <= Cursor.textBytesMax)
        #expect(cursor.text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") })
    }

    @Test(arguments: [
        "", "-", "k3f9", "k3f9-", "-0123456789abc", "k3f9--0123456789abc", "k3f9-41", "k3f9-0123456789ab",
        "k3f9-0123456789abcd", "k3f9-0123456789ab ", "k3f9-0123456789ab\n", "k3f9-0123456789abC", "k3f9-0123456789abi",
        "k3f9-g123456789abc", "k3f9-0123456789ab٤", "k.f9-0123456789abc", "k3\u{0}f9-0123456789abc",
        "é-0123456789abc", "a-b-0123456789abc", String(repeating: "x", count: 45) + "-0123456789abc",
        String(repeating: "x", count: 200) + "-0123456789abc",
    ])
    func malformedCursor_isRefused(text: String) {
        #expect(Cursor(text) == nil)
    }

    /// A cursor of another log and a forged cursor both map to no position in the log.
    @Test func forgedCursor_isAGap() throws {
        let (ids, others) = (Self.ids("k"), Self.ids("k", key: 2))
        #expect(ids.sequence(of: others.cursor(41)) == nil)
        #expect(ids.sequence(of: Self.ids("j").cursor(41)) == nil)
        var forged = 0
        for sequence in Int64(0)..<1000 {
            var text = Array(ids.cursor(sequence).text)
            // Changes one digit: by turns the last, or any of the others.
            let index = text.count - 1 - Int(sequence) % 13
            text[index] = text[index] == "0" ? "1" : "0"
            guard let cursor = Cursor(String(text)) else { continue }
            #expect(ids.sequence(of: cursor).map { $0 > 1_000_000 } != false)
            forged += ids.sequence(of: cursor) == nil ? 1 : 0
        }
        #expect(forged > 900)
    }

    /// R-SCH-FR-003, R-SCH-EC2: a position that cannot be replayed is reported, never skipped silently.
    @Test func resumption_isDecided_byEpochAndBounds() {
        let ids = Self.ids("k")
        func decide(_ sequence: Int64) -> Resumption { decide(ids.cursor(sequence).text) }
        func decide(_ id: String?) -> Resumption {
            Resumption.decide(lastEventID: id, ids: ids, oldest: 10, newest: 20)
        }
        #expect(decide(nil) == .fresh)
        #expect(decide("") == .fresh)
        #expect(decide(20) == .after(20))
        #expect(decide(15) == .after(15))
        // Directly before the oldest stored row: nothing was missed.
        #expect(decide(9) == .after(9))
        #expect(decide(8) == .resync(.gap))
        #expect(decide(21) == .resync(.gap))
        #expect(decide(Self.ids("other").cursor(15).text) == .resync(.epoch))
        #expect(decide("nonsense") == .resync(.gap))
    }
}
