import Realtime
import TestSupport
import Testing
import Values

@testable import Service

/// The delivery of a large commit to the streams.
@Suite(.timed) struct LargeDeliveryTests {
    /// 1,000 rows exceed by far the buffer of one stream. The shards send between the pieces, so that a stream that
    /// receives all rows is not treated as a slow client.
    @Test func eventsOfOneCommit_reachShardsInPieces_inTheirOrder() {
        let ids = EventIDs(epoch: "e", key: Array(0..<16))
        let events = (1...1_000).map { number in
            // One event is larger than any piece.
            let bytes = number == 500 ? 3 * StreamLimits.pieceBytesMax : 400
            let event = StreamEvent(
                sequence: Int64(number), tenant: "t", name: "table:change", audience: [],
                data: Array(repeating: 0x20, count: bytes))
            return EncodedEvent(LoggedEvent(event: event), ids: ids)
        }
        let pieces = EventRouter.pieces(of: events)
        #expect(pieces.joined().map(\.event.sequence) == events.map(\.event.sequence))
        for piece in pieces where piece.count > 1 {
            #expect(piece.reduce(0) { $0 + $1.event.data.count } <= StreamLimits.pieceBytesMax)
        }
        #expect(pieces.contains { $0.map(\.event.sequence) == [500] })
    }
}
