import CMicroHTTPD
import Glibc

/// The sockets of one shard, and what waits for them. One thread.
///
/// The way of an event through here decides how many streams a core can serve, so it allocates nothing: a stream is a
/// record in one block of memory, what a batch queues is a list in another, and shared bytes are held once a batch and
/// not once a stream.
final class StreamSockets {
    /// One stream's place. Idle streams cost this and nothing else.
    private struct Slot {
        var descriptor: Int32 = -1
        var generation: UInt32 = 0
        /// What the present batch has queued: indices into `entries`; -1: nothing.
        var first: Int32 = -1
        var last: Int32 = -1
        var isDirty = false
        var isClosing = false
        var reason = StreamCloseReason.requested
        /// When a closing stream is given up; monotonic nanoseconds.
        var closeBy: UInt64 = 0
        /// Bytes the client has sent, which nobody reads.
        var bytesIgnored: UInt32 = 0
        /// What the kernel did not take.
        var backlog: Unmanaged<Backlog>?
    }

    private struct Entry {
        /// Kept alive by `held` until the batch is flushed.
        unowned(unsafe) let bytes: SharedBytes
        let collapse: UInt64
        var next: Int32
    }

    var overflowed: (StreamHandle) -> OverflowAction = { _ in .close }
    var closed: (StreamHandle, StreamCloseReason) -> Void = { _, _ in }
    private(set) var count = 0

    private let shard: UInt32
    private let options: StreamShardOptions
    private let heartbeat: SharedBytes
    private let wakeup: Int32
    private let poll: Int32
    private var slots: UnsafeMutableBufferPointer<Slot> = .init(start: nil, count: 0)
    private var used = 0
    private var free: [UInt32] = []
    private var entries: [Entry] = []
    private var dirty: [UInt32] = []
    private var held: [SharedBytes] = []
    private var closing: Set<UInt32> = []
    private let events: UnsafeMutableBufferPointer<epoll_event>
    private var eventCount = 0
    private let scratch: UnsafeMutableRawBuffer
    /// The entries that are joined in `scratch`: streams that get the same events share the copy.
    private var joined: [ObjectIdentifier] = []
    private var joinedBytes = 0
    private var beat = 0

    private static let eventsMax = 1024
    /// Joined in one send; more is sent in several.
    private static let joinedBytesMax = 64 * 1024
    /// A client that sends more than this on its stream, where nobody listens, is cut off.
    private static let ignoredBytesMax: UInt32 = 64 * 1024

    init(shard: UInt32, options: StreamShardOptions, wakeup: Int32) {
        self.shard = shard
        self.options = options
        self.wakeup = wakeup
        heartbeat = SharedBytes(options.heartbeat)
        poll = epoll_create1(Int32(EPOLL_CLOEXEC))
        events = .allocate(capacity: Self.eventsMax)
        events.initialize(repeating: epoll_event())
        scratch = UnsafeMutableRawBuffer(byteCount: Self.joinedBytesMax)
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.u64 = .max
        precondition(epoll_ctl(poll, EPOLL_CTL_ADD, wakeup, &event) == 0, "a shard cannot wait for its inbox")
    }

    deinit {
        for index in 0..<used where slots[index].descriptor >= 0 {
            close(slots[index].descriptor)
            slots[index].backlog?.release()
        }
        slots.deallocate()
        events.deallocate()
        close(poll)
    }

    // MARK: Places

    /// Takes a socket over; nil if the kernel refuses to watch it.
    func adopt(_ descriptor: Int32) -> StreamHandle? {
        let index = free.popLast() ?? makePlace()
        var event = epoll_event()
        // Edge-triggered, for reading and writing at once: a stalled stream needs no call to be watched again.
        event.events = EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
        event.data.u64 = UInt64(slots[Int(index)].generation) << 32 | UInt64(index)
        guard epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
            close(descriptor)
            free.append(index)
            options.released()
            return nil
        }
        slots[Int(index)].descriptor = descriptor
        count += 1
        return handle(index)
    }

    private func makePlace() -> UInt32 {
        if used == slots.count {
            let larger = UnsafeMutableBufferPointer<Slot>.allocate(capacity: max(64, slots.count * 2))
            let rest = larger.moveInitialize(fromContentsOf: slots[..<used])
            larger[rest...].initialize(repeating: Slot())
            slots.deallocate()
            slots = larger
        }
        used += 1
        return UInt32(used - 1)
    }

    private func handle(_ index: UInt32) -> StreamHandle {
        StreamHandle(shard: shard, index: index, generation: slots[Int(index)].generation)
    }

    private func isOpen(_ stream: StreamHandle) -> Bool {
        let index = Int(stream.index)
        return index < used && slots[index].generation == stream.generation && slots[index].descriptor >= 0
    }

    /// Ends a stream now. Its place is free for another, under a new generation.
    private func remove(_ index: UInt32, _ reason: StreamCloseReason) {
        let stream = handle(index)
        let slot = slots[Int(index)]
        close(slot.descriptor)
        slot.backlog?.release()
        closing.remove(index)
        var next = Slot()
        next.generation = slot.generation &+ 1
        // What the batch has queued for it is skipped when its turn comes.
        next.isDirty = slot.isDirty
        slots[Int(index)] = next
        count -= 1
        free.append(index)
        options.released()
        closed(stream, reason)
    }

    // MARK: Sending

    func queue(_ bytes: SharedBytes, for stream: StreamHandle, collapse: UInt64) {
        guard isOpen(stream), !slots[Int(stream.index)].isClosing else { return }
        // The same event goes to thousands of streams in a row: it is held once.
        if held.last !== bytes { held.append(bytes) }
        let place = Int32(entries.count)
        entries.append(Entry(bytes: bytes, collapse: collapse, next: -1))
        let index = Int(stream.index)
        if slots[index].first < 0 {
            slots[index].first = place
        } else {
            entries[Int(slots[index].last)].next = place
        }
        slots[index].last = place
        markDirty(stream.index)
    }

    private func markDirty(_ index: UInt32) {
        guard !slots[Int(index)].isDirty else { return }
        slots[Int(index)].isDirty = true
        dirty.append(index)
    }

    func beginClosing(_ stream: StreamHandle, reason: StreamCloseReason) {
        guard isOpen(stream), !slots[Int(stream.index)].isClosing else { return }
        let index = Int(stream.index)
        slots[index].isClosing = true
        slots[index].reason = reason
        slots[index].closeBy = cmhd_monotonic_nanoseconds() + options.closingSeconds * 1_000_000_000
        closing.insert(stream.index)
        markDirty(stream.index)
    }

    /// Closes every stream, those that were closing already by the given time too.
    func closeAll(by deadline: UInt64) {
        for index in 0..<UInt32(used) where slots[Int(index)].descriptor >= 0 {
            beginClosing(handle(index), reason: .shutdown)
            slots[Int(index)].closeBy = min(slots[Int(index)].closeBy, deadline)
        }
    }

    func waitingBytes(of stream: StreamHandle) -> Int {
        guard isOpen(stream) else { return 0 }
        let slot = slots[Int(stream.index)]
        var bytes = slot.backlog?.takeUnretainedValue().bytes ?? 0
        var place = slot.first
        while place >= 0 {
            bytes += entries[Int(place)].bytes.count
            place = entries[Int(place)].next
        }
        return bytes
    }

    /// Sends what the batch has queued, one call of the kernel for each stream.
    func flush() {
        // A slow client's program may queue more while this runs: the list grows under the loop.
        var turn = 0
        while turn < dirty.count {
            let index = dirty[turn]
            turn += 1
            slots[Int(index)].isDirty = false
            let first = slots[Int(index)].first
            slots[Int(index)].first = -1
            slots[Int(index)].last = -1
            guard slots[Int(index)].descriptor >= 0 else { continue }
            if first >= 0 { send(from: first, to: index) }
            finishClosing(index)
        }
        dirty.removeAll(keepingCapacity: true)
        entries.removeAll(keepingCapacity: true)
        held.removeAll(keepingCapacity: true)
        joined.removeAll(keepingCapacity: true)
    }

    private func send(from first: Int32, to index: UInt32) {
        if let backlog = slots[Int(index)].backlog {
            append(from: first, sent: 0, to: backlog.takeUnretainedValue())
            return checkBound(index)
        }
        let entry = entries[Int(first)]
        var sent: Int
        var total = entry.bytes.count
        if entry.next < 0 {
            sent = write(index, entry.bytes.base, total)
        } else {
            total = join(from: first)
            guard total > 0 else {
                // Too much for one send: it goes through the backlog, which sends piece by piece.
                append(from: first, sent: 0, to: makeBacklog(index))
                drain(index)
                return checkBound(index)
            }
            sent = write(index, scratch.base, total)
        }
        guard slots[Int(index)].descriptor >= 0, sent < total else { return }
        sent = max(0, sent)
        append(from: first, sent: sent, to: makeBacklog(index))
        checkBound(index)
    }

    /// Copies the entries of a list behind one another, unless the last stream had the very same; 0: too long.
    private func join(from first: Int32) -> Int {
        if isJoined(first) { return joinedBytes }
        joined.removeAll(keepingCapacity: true)
        joinedBytes = 0
        var place = first
        while place >= 0 {
            let bytes = entries[Int(place)].bytes
            guard joinedBytes + bytes.count <= Self.joinedBytesMax else {
                joined.removeAll(keepingCapacity: true)
                return 0
            }
            (scratch.base + joinedBytes).copyMemory(from: bytes.base, byteCount: bytes.count)
            joinedBytes += bytes.count
            joined.append(ObjectIdentifier(bytes))
            place = entries[Int(place)].next
        }
        return joinedBytes
    }

    private func isJoined(_ first: Int32) -> Bool {
        var (place, turn) = (first, 0)
        while place >= 0, turn < joined.count, joined[turn] == ObjectIdentifier(entries[Int(place)].bytes) {
            place = entries[Int(place)].next
            turn += 1
        }
        return place < 0 && turn == joined.count
    }

    /// Bytes the kernel took; -1 if the stream had to be ended.
    private func write(_ index: UInt32, _ base: UnsafeMutableRawPointer, _ count: Int) -> Int {
        while true {
            let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
            let sent = Glibc.send(slots[Int(index)].descriptor, base, count, flags)
            if sent >= 0 { return sent }
            switch errno {
            case EINTR: continue
            case EAGAIN: return 0
            case ETIMEDOUT: remove(index, .timedOut)
            default: remove(index, .reset)
            }
            return -1
        }
    }

    // MARK: Slow clients

    private func makeBacklog(_ index: UInt32) -> Backlog {
        if let backlog = slots[Int(index)].backlog { return backlog.takeUnretainedValue() }
        let backlog = Backlog()
        slots[Int(index)].backlog = Unmanaged.passRetained(backlog)
        return backlog
    }

    private func append(from first: Int32, sent: Int, to backlog: Backlog) {
        var (place, skipped) = (first, sent)
        while place >= 0 {
            let entry = entries[Int(place)]
            if skipped >= entry.bytes.count {
                skipped -= entry.bytes.count
            } else {
                backlog.append(entry.bytes, collapse: entry.collapse, sent: skipped)
                skipped = 0
            }
            place = entry.next
        }
    }

    private func checkBound(_ index: UInt32) {
        guard slots[Int(index)].descriptor >= 0, let backlog = slots[Int(index)].backlog?.takeUnretainedValue(),
            backlog.bytes > options.bufferBytesMax
        else { return }
        guard !slots[Int(index)].isClosing else { return remove(index, .overflow) }
        switch overflowed(handle(index)) {
        case .close: remove(index, .overflow)
        case .discard(let notice):
            backlog.discardWaiting()
            if let notice { backlog.append(notice, collapse: 0, sent: 0) }
        }
    }

    /// Sends what waits until the kernel takes no more.
    private func drain(_ index: UInt32) {
        guard let backlog = slots[Int(index)].backlog?.takeUnretainedValue() else { return }
        while let (bytes, sent) = backlog.first {
            let taken = write(index, bytes.base + sent, bytes.count - sent)
            guard taken >= 0 else { return }
            guard taken > 0 else { return }
            backlog.advance(taken)
        }
        slots[Int(index)].backlog?.release()
        slots[Int(index)].backlog = nil
    }

    private func finishClosing(_ index: UInt32) {
        let slot = slots[Int(index)]
        guard slot.descriptor >= 0, slot.isClosing, slot.backlog == nil else { return }
        // Unread input would turn the close into a reset, which can take the last bytes from the client.
        ignoreInput(index)
        guard slots[Int(index)].descriptor >= 0 else { return }
        shutdown(slot.descriptor, Int32(SHUT_WR))
        remove(index, slot.reason)
    }

    // MARK: Events and time

    func wait(milliseconds: Int) {
        eventCount = max(0, Int(epoll_wait(poll, events.baseAddress, Int32(Self.eventsMax), Int32(milliseconds))))
    }

    /// Handles what `wait` has found.
    func readEvents() {
        for turn in 0..<eventCount {
            let event = events[turn]
            guard event.data.u64 != .max else { continue }
            let index = UInt32(truncatingIfNeeded: event.data.u64)
            let generation = UInt32(truncatingIfNeeded: event.data.u64 >> 32)
            guard Int(index) < used, slots[Int(index)].generation == generation, slots[Int(index)].descriptor >= 0
            else {
                continue
            }
            handle(event.events, index, generation)
        }
        eventCount = 0
    }

    private func handle(_ flags: UInt32, _ index: UInt32, _ generation: UInt32) {
        func isGone() -> Bool { slots[Int(index)].generation != generation || slots[Int(index)].descriptor < 0 }
        if flags & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 { return remove(index, errorReason(index)) }
        if flags & EPOLLRDHUP.rawValue != 0 { return remove(index, .peerClosed) }
        if flags & EPOLLIN.rawValue != 0 {
            ignoreInput(index)
            if isGone() { return }
        }
        if flags & EPOLLOUT.rawValue != 0, slots[Int(index)].backlog != nil {
            drain(index)
            if !isGone() { finishClosing(index) }
        }
    }

    private func errorReason(_ index: UInt32) -> StreamCloseReason {
        var (error, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        getsockopt(slots[Int(index)].descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
        return error == ETIMEDOUT ? .timedOut : error == 0 ? .peerClosed : .reset
    }

    private func ignoreInput(_ index: UInt32) {
        let descriptor = slots[Int(index)].descriptor
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            while true {
                let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
                guard count > 0 else { return }
                slots[Int(index)].bytesIgnored += UInt32(count)
                if slots[Int(index)].bytesIgnored > Self.ignoredBytesMax { return remove(index, .overflow) }
            }
        }
    }

    /// Sends the heartbeats that are due, and gives up on streams that do not read their last bytes.
    ///
    /// Each stream has its own place in the interval, so that not all beat at once.
    func tick(_ now: UInt64, perSecond: Int) {
        let beats = max(1, options.heartbeatSeconds * perSecond)
        beat = (beat + 1) % beats
        for index in stride(from: beat, to: used, by: beats)
        where slots[index].descriptor >= 0 && slots[index].backlog == nil && slots[index].first < 0 {
            queue(heartbeat, for: handle(UInt32(index)), collapse: 0)
        }
        for index in closing where now >= slots[Int(index)].closeBy { remove(index, slots[Int(index)].reason) }
    }
}

/// What a slow client has not been able to take.
private final class Backlog {
    private struct Item {
        let bytes: SharedBytes
        let collapse: UInt64
        var sent: Int
    }

    private var items: [Item] = []
    /// The first item that is left; those before it are dropped together.
    private var start = 0
    private(set) var bytes = 0

    func append(_ shared: SharedBytes, collapse: UInt64, sent: Int) {
        if collapse != 0, let old = items[start...].firstIndex(where: { $0.collapse == collapse && $0.sent == 0 }) {
            bytes -= items[old].bytes.count
            items.remove(at: old)
        }
        items.append(Item(bytes: shared, collapse: collapse, sent: sent))
        bytes += shared.count - sent
    }

    /// The next bytes to send, and how many of them are sent already.
    var first: (bytes: SharedBytes, sent: Int)? {
        start < items.count ? (items[start].bytes, items[start].sent) : nil
    }

    func advance(_ count: Int) {
        bytes -= count
        items[start].sent += count
        guard items[start].sent == items[start].bytes.count else { return }
        start += 1
        if start == items.count || start > 256 {
            items.removeFirst(start)
            start = 0
        }
    }

    /// Drops all but an item that has been sent in part, which would leave half an event on the wire.
    func discardWaiting() {
        let kept = items[start...].first.flatMap { $0.sent > 0 ? $0 : nil }
        items = kept.map { [$0] } ?? []
        start = 0
        bytes = kept.map { $0.bytes.count - $0.sent } ?? 0
    }
}

/// One block of memory, given back with its owner.
private final class UnsafeMutableRawBuffer {
    let base: UnsafeMutableRawPointer

    init(byteCount: Int) {
        base = .allocate(byteCount: byteCount, alignment: 64)
    }

    deinit { base.deallocate() }
}
