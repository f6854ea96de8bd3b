import CMicroHTTPD
import Glibc

/// The streams of one shard: their sockets, queued data and state.
///
/// It belongs to the shard's thread and does not call the program. Events for the program are recorded, and the shard
/// reads them between the program's calls. The class is not generic, so that the code that runs for each stream and
/// event is compiled once, fully specialized.
@usableFromInline
final class SocketTable {
    enum Phase: UInt8, BitwiseCopyable {
        case free
        case open
        /// Closing once the queued data has been sent; nothing more is accepted.
        case closing
        /// Ended, but the program has not been informed yet.
        case ended
    }

    /// The cost of an idle stream here: 32 bytes.
    struct Slot: BitwiseCopyable {
        var descriptor: Int32 = -1
        var generation: UInt32 = 0
        /// The list that the current batch has queued for it.
        var list = StreamBatch.empty
        var lastSentTick: UInt32 = 0
        /// Retained while the socket is full.
        var backlog: Unmanaged<StreamBacklog>?
        var phase = Phase.free
        var isOverflowing = false
        /// Bytes that the client has sent, which nothing reads.
        var ignoredBytes: UInt32 = 0
    }

    let shard: UInt32
    let options: StreamShardOptions
    let heartbeat: SharedBytes
    let poller: StreamPoller
    // `slots`, `batch` and `dirty` are accessed for each stream and event, so the run-time check for overlapping
    // accesses is turned off. Accesses cannot overlap: there is one thread, and no access calls out of this type.
    @exclusivity(unchecked) var slots = GrowableBuffer<Slot>(capacity: 64)
    var freeSlots = GrowableBuffer<UInt32>(capacity: 64)
    /// The number of streams in use.
    private(set) var count = 0
    var counters = StreamCounters()
    /// The current time, in ticks since the shard began.
    var tick: UInt32 = 0

    @exclusivity(unchecked) var batch = StreamBatch()
    /// Streams for which the batch has queued something. Some may have ended by now.
    @exclusivity(unchecked) var dirty = GrowableBuffer<UInt32>(capacity: 64)
    /// The number of these that are already served.
    var flushed = 0
    /// Streams that are served before sockets and program get attention again. Without this limit, clients that leave
    /// and slow readers would be ignored while a whole shard is served, which takes 50 to 100 ms.
    var flushSliceMax = 2_048
    /// Reusable storage for the items of one list.
    var scratch: [StreamBatch.Item] = []

    /// Each of these waits for the shard to call the program.
    var overflowing: [StreamHandle] = []
    var closings: [StreamHandle] = []
    private var ended: [(stream: StreamHandle, reason: StreamCloseReason)] = []
    /// Closing streams with slow readers, and the ticks of their deadlines.
    private var lingering: [(stream: StreamHandle, until: UInt32)] = []
    #if DEBUG
        /// The bytes that were noted last.
        var noted: SharedBytes?
    #endif
    /// Whether streams close because the shard stops.
    private var isStopping = false

    /// The shard's thread; 0 before it runs.
    private var owner: pthread_t = 0

    /// A client that sends more than this on a stream is disconnected, because it would occupy the shard.
    static let ignoredBytesMax: UInt32 = 64 * 1024

    init(shard: Int, options: StreamShardOptions, wakeDescriptor: Int32) throws(ServerError) {
        self.shard = UInt32(shard)
        self.options = options
        heartbeat = SharedBytes(options.heartbeat)
        poller = try StreamPoller(wakeDescriptor: wakeDescriptor)
    }

    deinit {
        for index in 0..<slots.count {
            slots[index].backlog?.release()
            if slots[index].descriptor >= 0 { Glibc.close(slots[index].descriptor) }
        }
        batch.deallocate()
        slots.deallocate()
        freeSlots.deallocate()
        dirty.deallocate()
    }

    func beginOwnership() { owner = pthread_self() }

    @inline(__always)
    func assertOwnership() {
        assert(owner != 0 && pthread_equal(pthread_self(), owner) != 0, "only the shard's thread may call this")
    }

    // MARK: Opening and closing

    /// Takes over a socket. Returns nil, and closes it, if the kernel refuses to watch it.
    func open(_ descriptor: Int32) -> StreamHandle? {
        let index: UInt32
        if let free = freeSlots.popLast() {
            index = free
        } else {
            index = UInt32(slots.count)
            slots.append(Slot())
        }
        let slot = slots.pointer(at: Int(index))
        guard poller.add(descriptor, key: UInt64(slot.pointee.generation) << 32 | UInt64(index)) else {
            freeSlots.append(index)
            Glibc.close(descriptor)
            return nil
        }
        slot.pointee.descriptor = descriptor
        slot.pointee.phase = .open
        slot.pointee.lastSentTick = firstHeartbeatPhase(index)
        count += 1
        counters.opened += 1
        return handle(index)
    }

    func handle(_ index: UInt32) -> StreamHandle {
        StreamHandle(shard: shard, index: index, generation: slots[Int(index)].generation)
    }

    /// Returns the stream's slot; nil if the handle's stream has ended.
    @inline(__always)
    func slot(of stream: StreamHandle) -> UnsafeMutablePointer<Slot>? {
        guard Int(stream.index) < slots.count, stream.shard == shard else { return nil }
        let slot = slots.pointer(at: Int(stream.index))
        return slot.pointee.generation == stream.generation && slot.pointee.phase != .free ? slot : nil
    }

    @usableFromInline
    func close(_ stream: StreamHandle) {
        assertOwnership()
        guard let slot = slot(of: stream), slot.pointee.phase == .open else { return }
        slot.pointee.phase = .closing
        closings.append(stream)
    }

    func closeAll() {
        isStopping = true
        for index in 0..<UInt32(slots.count) { close(handle(index)) }
    }

    func endAll() {
        for index in 0..<UInt32(slots.count) { end(index, .shutdown) }
    }

    func end(_ index: UInt32, _ reason: StreamCloseReason) {
        let slot = slots.pointer(at: Int(index))
        guard slot.pointee.phase == .open || slot.pointee.phase == .closing else { return }
        slot.pointee.phase = .ended
        ended.append((handle(index), isStopping && reason == .requested ? .shutdown : reason))
    }

    func fail(_ index: UInt32, code: Int32) { end(index, code == ETIMEDOUT ? .timedOut : .reset) }

    /// Ends the closing streams that have nothing left to send. The others wait until their deadline.
    func concludeClosings() {
        closings.removeAll { stream in
            guard let slot = slot(of: stream), slot.pointee.phase == .closing else { return true }
            // This was queued by a call after the last send, so it is sent first.
            guard slot.pointee.list == StreamBatch.empty else { return false }
            if slot.pointee.backlog == nil {
                end(stream.index, .requested)
            } else {
                lingering.append((stream, tick &+ Ticks.count(seconds: options.closingSeconds)))
            }
            return true
        }
    }

    func endLingering() {
        lingering.removeAll { stream, until in
            guard let slot = slot(of: stream), slot.pointee.phase == .closing else { return true }
            guard tick >= until else { return false }
            end(stream.index, .requested)
            return true
        }
    }

    /// Returns the next ended stream and its reason. Its socket is closed, and its slot is free for another.
    func takeEnded() -> (stream: StreamHandle, reason: StreamCloseReason)? {
        guard let (stream, reason) = ended.popLast() else { return nil }
        let slot = slots.pointer(at: Int(stream.index))
        let descriptor = slot.pointee.descriptor
        if reason == .requested || reason == .shutdown {
            // Unread input would turn the close into a reset, which can destroy the last bytes to the client.
            poller.ignoreInput(of: descriptor, bytesMax: Int(Self.ignoredBytesMax))
            shutdown(descriptor, Int32(SHUT_WR))
        }
        // Removed explicitly, because the socket may briefly have another descriptor, and would stay watched.
        poller.remove(descriptor)
        Glibc.close(descriptor)
        slot.pointee.backlog?.release()
        slot.pointee = Slot(generation: slot.pointee.generation &+ 1)
        freeSlots.append(stream.index)
        count -= 1
        counters.closed += 1
        return (stream, reason)
    }

    /// Whether the program's last calls have left work to be done before the shard may wait.
    var hasWork: Bool { dirty.count > 0 || !overflowing.isEmpty || !closings.isEmpty || !ended.isEmpty }

    // MARK: Events

    /// Waits, and handles the events that the kernel reports.
    /// - Parameter milliseconds: -1 waits without a limit.
    func poll(milliseconds: Int32) {
        poller.wait(milliseconds: milliseconds) { key, flags in
            let index = UInt32(truncatingIfNeeded: key)
            let stream = StreamHandle(shard: shard, index: index, generation: UInt32(truncatingIfNeeded: key >> 32))
            // The event may be for a stream that an earlier event has ended.
            guard let slot = slot(of: stream), slot.pointee.phase != .ended else { return }
            handle(flags, on: index, slot)
        }
    }

    private func handle(_ flags: UInt32, on index: UInt32, _ slot: UnsafeMutablePointer<Slot>) {
        if flags & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 {
            let code = poller.error(of: slot.pointee.descriptor)
            return code == 0 ? end(index, .peerClosed) : fail(index, code: code)
        }
        if flags & EPOLLRDHUP.rawValue != 0 { return end(index, .peerClosed) }
        if flags & EPOLLIN.rawValue != 0 {
            slot.pointee.ignoredBytes &+= UInt32(
                poller.ignoreInput(of: slot.pointee.descriptor, bytesMax: Int(Self.ignoredBytesMax) + 1))
            if slot.pointee.ignoredBytes > Self.ignoredBytesMax { return end(index, .reset) }
        }
        if flags & EPOLLOUT.rawValue != 0, slot.pointee.backlog != nil { drain(index) }
    }
}
