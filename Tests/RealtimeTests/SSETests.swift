import Realtime
import TestSupport
import Testing
import Values

@Suite(.timed) struct SSETests {
    private static let ids = EventIDs(epoch: "k", key: Array(0..<16))
    private static let id = ids.cursor(7).text

    private func encode(_ data: String, name: String = "n") -> String {
        let event = StreamEvent(sequence: 7, tenant: "t", name: name, audience: [], data: Array(data.utf8))
        return String(decoding: SSE.encode(event, at: Self.ids.cursor(7)), as: UTF8.self)
    }

    @Test func event_carriesIdNameAndData() {
        #expect(encode("{}") == "id: \(Self.id)\nevent: n\ndata: {}\n\n")
    }

    @Test(arguments: [
        ("a\nb", "data: a\ndata: b\n\n"), ("a\rb", "data: a\ndata: b\n\n"), ("a\r\nb", "data: a\ndata: b\n\n"),
        ("a\n\rb", "data: a\ndata: \ndata: b\n\n"), ("a\n", "data: a\ndata: \n\n"), ("\r\n", "data: \ndata: \n\n"),
        ("", "data: \n\n"), ("\n\n", "data: \ndata: \ndata: \n\n"),
    ])
    func lineEnds_areSplit_allThreeKinds(data: String, expected: String) {
        #expect(encode(data) == "id: \(Self.id)\nevent: n\n" + expected)
    }

    @Test func lineEndInName_startsNoField() {
        #expect(encode("x", name: "a\ndata: forged") == "id: \(Self.id)\nevent: adata: forged\ndata: x\n\n")
    }

    @Test func retry_isWellFormed() {
        var bytes: [UInt8] = []
        SSE.appendRetry(milliseconds: 1000, to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == "retry: 1000\n\n")
    }

    @Test func streamEvent_carriesIdOnlyIfGiven() {
        var bytes: [UInt8] = []
        SSE.append("stream:expiring", data: Array("{}".utf8), to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == "event: stream:expiring\ndata: {}\n\n")
        bytes = []
        SSE.append("stream:ready", data: Array("{}".utf8), id: Self.ids.cursor(7), to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == "id: \(Self.id)\nevent: stream:ready\ndata: {}\n\n")
    }

    @Test(arguments: [
        ("", 0), (": \n\n", 0), ("retry: 1000\n\n", 0), ("event: n\ndata: event: m\n\n", 1),
        ("id: a\nevent: n\ndata: event: m\ndata: event\n\nevent: o\ndata: \n\n", 2), ("event: n", 1), ("event:", 0),
    ])
    func eventCount_countsFieldsAtTheBeginningOfLines(text: String, expected: Int) {
        #expect(Array(text.utf8).withUnsafeBytes(SSE.eventCount) == expected)
    }

    @Test func collapsing_sendsTheLatestOfEachState_andEveryLogEvent() {
        func event(_ sequence: Int64, _ collapse: UInt64) -> StreamEvent {
            StreamEvent(sequence: sequence, tenant: "t", name: "n", audience: [], collapse: collapse, data: [])
        }
        let events = [event(1, 5), event(2, 0), event(3, 5), event(4, 6), event(5, 0), event(6, 5)]
        #expect(StreamEvent.collapsed(events).map(\.sequence) == [2, 4, 5, 6])
    }

    @Test func collapseKey_isTheSameEverywhere_andNeverZero() {
        #expect(CollapseKey.of("") == 0xcbf2_9ce4_8422_2325)
        #expect(CollapseKey.of("a") == 0xaf63_dc4c_8601_ec8c)
        #expect(CollapseKey.of("badges:u1") != CollapseKey.of("badges:u2"))
    }
}
