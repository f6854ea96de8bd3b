import CMicroHTTPD
import Glibc

extension SocketTable {
    // MARK: Queueing

    @usableFromInline
    func send(_ bytes: SharedBytes, to stream: StreamHandle, collapse: UInt64) {
        assertOwnership()
        guard let slot = slot(of: stream), slot.pointee.phase == .open, bytes.count > 0 else { return }
        note(bytes)
        if let backlog = slot.pointee.backlog {
            counters.collapsed += backlog.takeUnretainedValue().append(bytes, collapse: collapse)
            return noteOverflow(slot, stream)
        }
        let before = slot.pointee.list
        let item = batch.item(for: bytes, collapse: collapse)
        slot.pointee.list = batch.list(before, adding: item, byteCount: bytes.count)
        if before == StreamBatch.empty { dirty.append(stream.index) }
    }

    @inline(__always)
    private func note(_ bytes: SharedBytes) {
        #if DEBUG
            guard let sends = options.sends, noted !== bytes else { return }
            noted = bytes
            bytes.withUnsafeBytes(sends)
        #endif
    }

    @usableFromInline
    func waitingBytes(of stream: StreamHandle) -> Int {
        assertOwnership()
        guard let slot = slot(of: stream) else { return 0 }
        return batch.lists[Int(slot.pointee.list)].byteCount
            + (slot.pointee.backlog?.takeUnretainedValue().waitingBytes ?? 0)
    }

    /// Whether the lists are so long that they should be sent before more is queued. A list longer than a stream's
    /// buffer would turn healthy streams into slow readers.
    var isFlushDue: Bool { batch.longestBytes >= options.bufferBytesMax / 2 }

    // MARK: Sending

    /// Sends what the batch has queued, with one system call for each stream, up to a number of streams.
    /// - Returns: False if there are more.
    func flushSlice() -> Bool {
        guard dirty.count > 0 else { return true }
        var (delivered, sends, sentBytes) = (0, 0, 0)
        let end = min(dirty.count, flushed + flushSliceMax)
        for position in flushed..<end {
            let index = dirty[position]
            let slot = slots.pointer(at: Int(index))
            let list = slot.pointee.list
            slot.pointee.list = StreamBatch.empty
            // Empty: the slot belongs to another stream by now. Ended: the socket is unusable.
            guard list != StreamBatch.empty, slot.pointee.phase != .ended else { continue }
            if batch.lists[Int(list)].joined == nil { batch.join(list) }
            let entry = batch.lists.pointer(at: Int(list))
            let sent: Int
            if let joined = entry.pointee.joined {
                sent = poller.send(joined, entry.pointee.byteCount, to: slot.pointee.descriptor)
            } else {
                sent = sendPieces(of: list, to: slot.pointee.descriptor)
            }
            guard sent == entry.pointee.byteCount else {
                stall(index, list, sent: sent)
                continue
            }
            slot.pointee.lastSentTick = tick
            delivered += Int(entry.pointee.itemCount)
            sends += 1
            sentBytes += sent
        }
        counters.delivered += delivered
        counters.sends += sends
        counters.sentBytes += sentBytes
        flushed = end
        guard end == dirty.count else { return false }
        flushed = 0
        dirty.removeAll(keepingCapacityUpTo: 65_536)
        batch.removeAll()
        return true
    }

    /// Lists with more pieces are left to the backlog, which sends them gradually.
    private static var piecesMax: Int { 64 }

    private func sendPieces(of list: Int32, to descriptor: Int32) -> Int {
        batch.items(of: list, in: &scratch)
        let count = min(scratch.count, Self.piecesMax)
        return withUnsafeTemporaryAllocation(of: iovec.self, capacity: count) { pieces in
            for index in 0..<count {
                let bytes = scratch[index].bytes.takeUnretainedValue()
                pieces.initializeElement(at: index, to: iovec(iov_base: bytes.base, iov_len: bytes.count))
            }
            return poller.send(pieces, to: descriptor)
        }
    }

    /// Moves the rest of a list to the backlog, because the socket did not accept all of it.
    private func stall(_ index: UInt32, _ list: Int32, sent: Int) {
        guard sent >= 0 else { return fail(index, code: Int32(-sent)) }
        counters.sentBytes += sent
        if sent > 0 { counters.sends += 1 }
        let slot = slots.pointer(at: Int(index))
        if sent > 0 { slot.pointee.lastSentTick = tick }
        let backlog = StreamBacklog()
        slot.pointee.backlog = Unmanaged.passRetained(backlog)
        counters.stalls += 1
        batch.items(of: list, in: &scratch)
        var skipped = sent
        for item in scratch {
            let bytes = item.bytes.takeUnretainedValue()
            if skipped >= bytes.count {
                skipped -= bytes.count
                counters.delivered += 1
            } else {
                counters.collapsed += backlog.append(bytes, collapse: item.collapse, sent: skipped)
                skipped = 0
            }
        }
        // If only the number of pieces cut the list off, the socket is still ready, and no event would report that.
        if scratch.count > Self.piecesMax { drain(index) }
        if slot.pointee.phase == .open { noteOverflow(slot, handle(index)) }
    }

    /// Sends the backlog until the socket is full again.
    func drain(_ index: UInt32) {
        let slot = slots.pointer(at: Int(index))
        guard let backlog = slot.pointee.backlog?.takeUnretainedValue() else { return }
        while !backlog.isEmpty {
            var (offered, code) = (0, Int32(0))
            let (sent, items) = backlog.withPieces { pieces, byteCount in
                offered = byteCount
                let sent = poller.send(pieces, to: slot.pointee.descriptor)
                if sent < 0 { code = Int32(-sent) }
                return max(0, sent)
            }
            guard code == 0 else { return fail(index, code: code) }
            guard sent > 0 else { return }
            counters.sends += 1
            counters.sentBytes += sent
            counters.delivered += items
            slot.pointee.lastSentTick = tick
            guard sent == offered else { return }
        }
        dropBacklog(slot)
        if slot.pointee.phase == .closing { closings.append(handle(index)) }
    }

    private func dropBacklog(_ slot: UnsafeMutablePointer<Slot>) {
        slot.pointee.backlog?.release()
        slot.pointee.backlog = nil
    }

    // MARK: Slow readers

    private func noteOverflow(_ slot: UnsafeMutablePointer<Slot>, _ stream: StreamHandle) {
        guard !slot.pointee.isOverflowing, let backlog = slot.pointee.backlog?.takeUnretainedValue(),
            backlog.waitingBytes > options.bufferBytesMax
        else { return }
        slot.pointee.isOverflowing = true
        overflowing.append(stream)
    }

    /// Returns the next stream whose backlog exceeds the limit although its socket was tried once more.
    func takeOverflowing() -> StreamHandle? {
        while let stream = overflowing.popLast() {
            guard let slot = slot(of: stream), slot.pointee.phase == .open else { continue }
            slot.pointee.isOverflowing = false
            drain(stream.index)
            guard slot.pointee.phase == .open, let backlog = slot.pointee.backlog?.takeUnretainedValue(),
                backlog.waitingBytes > options.bufferBytesMax
            else { continue }
            counters.overflows += 1
            return stream
        }
        return nil
    }

    func resolve(_ stream: StreamHandle, _ action: OverflowAction) {
        guard let slot = slot(of: stream), slot.pointee.phase != .ended else { return }
        switch action {
        case .close: end(stream.index, .overflow)
        case .discard(let next):
            guard let backlog = slot.pointee.backlog?.takeUnretainedValue() else { return }
            counters.discarded += backlog.discard()
            if let next, next.count > 0 {
                note(next)
                backlog.append(next, collapse: 0)
            }
            guard backlog.isEmpty else { return }
            dropBacklog(slot)
            if slot.pointee.phase == .closing { closings.append(stream) }
        }
    }
}
