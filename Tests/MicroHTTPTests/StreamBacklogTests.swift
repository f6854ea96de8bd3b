import CMicroHTTPD
import Glibc
import TestSupport
import Testing

@testable import MicroHTTP

/// The backlog of a slow reader, without sockets.
@Suite(.timed) struct StreamBacklogTests {
    /// Removes up to `count` bytes, as a socket would.
    private func take(_ count: Int, from backlog: StreamBacklog) -> String {
        var text: [UInt8] = []
        _ = backlog.withPieces { pieces, _ in
            for piece in pieces {
                guard let base = piece.iov_base else { continue }
                text += UnsafeRawBufferPointer(start: base, count: min(piece.iov_len, count - text.count))
            }
            return text.count
        }
        return String(decoding: text, as: UTF8.self)
    }

    private func append(_ text: String, _ collapse: UInt64 = 0, sent: Int = 0, to backlog: StreamBacklog) {
        backlog.append(SharedBytes(Array(text.utf8)), collapse: collapse, sent: sent)
    }

    @Test func bytesLeaveInOrder_inPartialWrites() {
        for step in 1...9 {
            let backlog = StreamBacklog()
            append("xxabc", sent: 2, to: backlog)
            append("de", to: backlog)
            append("fgh", to: backlog)
            var all = ""
            while !backlog.isEmpty { all += take(step, from: backlog) }
            #expect(all == "abcdefgh")
            #expect(backlog.waitingBytes == 0)
        }
    }

    @Test func collapse_keepsAPartlySentItem() {
        let backlog = StreamBacklog()
        append("a1", 1, to: backlog)
        append("b1", 2, to: backlog)
        #expect(take(1, from: backlog) == "a")
        append("a2", 1, to: backlog)
        append("b2", 2, to: backlog)
        append("a3", 1, to: backlog)
        #expect(backlog.waitingBytes == 5)
        #expect(take(100, from: backlog) == "1b2a3")
    }

    @Test func discard_keepsAPartlySentItem() {
        let backlog = StreamBacklog()
        append("abc", to: backlog)
        append("def", to: backlog)
        #expect(take(1, from: backlog) == "a")
        #expect(backlog.discard() == 1)
        #expect(backlog.waitingBytes == 2)
        append("resync", to: backlog)
        #expect(take(100, from: backlog) == "bcresync")
        append("x", to: backlog)
        #expect(backlog.discard() == 1)
        #expect(backlog.isEmpty)
        #expect(backlog.waitingBytes == 0)
    }

    @Test func moreItemsThanOneCallTakes() {
        let backlog = StreamBacklog()
        for number in 0..<500 { append("\(number);", to: backlog) }
        var all = ""
        while !backlog.isEmpty { all += take(.max, from: backlog) }
        #expect(all == (0..<500).map { "\($0);" }.joined())
    }
}

/// The lists of a batch, without sockets.
@Suite(.timed) struct StreamBatchTests {
    @Test func equalLists_areOneList() {
        var batch = StreamBatch()
        defer { batch.deallocate() }
        let (a, b) = (SharedBytes([1, 2]), SharedBytes([3]))
        var lists = [Int32](repeating: StreamBatch.empty, count: 4)
        func add(_ bytes: SharedBytes, to stream: Int) {
            let item = batch.item(for: bytes, collapse: 0)
            lists[stream] = batch.list(lists[stream], adding: item, byteCount: bytes.count)
        }
        for stream in 0..<4 { add(a, to: stream) }
        #expect(Set(lists).count == 1)
        for stream in 0..<3 { add(b, to: stream) }
        #expect(Set(lists[..<3]).count == 1)
        #expect(lists[3] != lists[0])
        #expect(batch.items.count == 2)
        #expect(batch.lists[Int(lists[0])].holders == 3)
        #expect(batch.lists[Int(lists[3])].holders == 1)
        #expect(batch.lists[Int(lists[0])].byteCount == 3)
        #expect(batch.longestBytes == 3)
        batch.join(lists[0])
        let joined = batch.lists[Int(lists[0])].joined
        #expect(joined.map { Array(UnsafeRawBufferPointer(start: $0, count: 3)) } == [1, 2, 3])
        // A single item is sent from its original memory.
        #expect(batch.lists[Int(lists[3])].joined == a.base)
    }

    @Test func sameBytesUnderAnotherKey_areAnotherItem() {
        var batch = StreamBatch()
        defer { batch.deallocate() }
        let bytes = SharedBytes([1])
        #expect(batch.item(for: bytes, collapse: 0) == 0)
        #expect(batch.item(for: bytes, collapse: 0) == 0)
        #expect(batch.item(for: bytes, collapse: 5) == 1)
    }

    @Test func batch_retainsItsItems_untilItIsEmptied() {
        var batch = StreamBatch()
        defer { batch.deallocate() }
        weak var bytes: SharedBytes?
        do {
            let made = SharedBytes([1])
            bytes = made
            _ = batch.item(for: made, collapse: 0)
        }
        #expect(bytes != nil)
        batch.removeAll()
        #expect(bytes == nil)
    }

    @Test func slot_staysWithinItsMemoryBudget() {
        #expect(MemoryLayout<SocketTable.Slot>.stride <= 200)
    }
}

@Suite(.timed) struct StreamCountersTests {
    @Test func sums_coverEveryField() {
        var one = StreamCounters()
        let fields: [WritableKeyPath<StreamCounters, Int>] = [
            \.opened, \.closed, \.delivered, \.sends, \.sentBytes, \.heartbeats, \.stalls, \.overflows, \.discarded,
            \.collapsed, \.batches, \.inboxDepth,
        ]
        for (index, field) in fields.enumerated() { one[keyPath: field] = index + 1 }
        let values = Mirror(reflecting: one + one).children.compactMap { $0.value as? Int }
        #expect(values == (1...12).map { $0 * 2 })
    }
}
