import CMicroHTTPD
import Glibc
import Threads

/// A thread that owns streams: the only one that writes to their sockets, and that closes them.
///
/// Openings, messages and the end come through one inbox, which gives them one order. The thread takes all that waits
/// there as one batch, lets the program handle it, and then sends each stream what the batch has queued for it in one
/// call of the kernel; what comes meanwhile is the next batch. So the busier the shard, the more it joins.
///
/// `@unchecked Sendable`: `table` and `program` belong to the shard's thread once `start` has started it.
public final class StreamShard<Program: StreamProgram>: @unchecked Sendable {
    public let index: Int
    @usableFromInline let table: SocketTable
    private let inbox: StreamInbox<Program.Message>
    private let options: StreamShardOptions
    private var program: Program?
    private let thread: LoopThread

    init(index: Int, options: StreamShardOptions) throws(ServerError) {
        self.index = index
        self.options = options
        thread = LoopThread("streams-\(index)")
        inbox = try StreamInbox()
        table = try SocketTable(shard: index, options: options, wakeDescriptor: inbox.wakeDescriptor)
    }

    // MARK: Any thread

    /// Hands the program a message. After the shard has stopped, messages are dropped.
    public func post(_ message: Program.Message) { _ = inbox.put(.message(message)) }

    /// The same for many, in order and with nothing between them.
    public func post(contentsOf messages: some Sequence<Program.Message>) { inbox.put(messages: messages) }

    /// As of the end of the last batch.
    public var counters: StreamCounters { inbox.counters }

    /// The shard owns the descriptor from here on; after it has stopped, it closes it at once.
    func adopt(descriptor: Int32, context: any Sendable) {
        if !inbox.put(.opening(descriptor: descriptor, context: context)) { refuse(descriptor) }
    }

    /// Starts the shard's thread, on which everything of the program happens from here on.
    func start(program: Program) {
        precondition(self.program == nil, "a shard starts once")
        self.program = program
        thread.start { [self] in run() }
    }

    /// Handles what was posted before, lets the program send its last, sends that, closes all streams and waits for the
    /// thread. A second call does nothing. Never to be called from the shard's own thread, which would wait for itself.
    /// - Parameter deadlineSeconds: how long slow readers may take for their last bytes.
    func stop(deadlineSeconds: Double) {
        let nanoseconds = UInt64(max(0, min(deadlineSeconds, 1e6)) * 1e9)
        inbox.requestStop(deadline: options.clock.now() + nanoseconds)
        thread.join()
        // What is left in the inbox has no thread to take it.
        for case .opening(let descriptor, _) in inbox.takeAll() { refuse(descriptor) }
    }

    private func refuse(_ descriptor: Int32) {
        Glibc.close(descriptor)
        options.released()
    }

    // MARK: The shard's thread only

    /// Queues bytes for a stream. All that one batch queues for a stream leaves in one call of the kernel at its end.
    /// What is sent to a stream that is closed, or that is to be closed, is dropped.
    /// - Parameter collapse: not 0: while the stream is backed up, this replaces what waits under the same key, unless
    ///   that is partly sent, and goes to the end of what waits.
    @inlinable
    public func send(_ bytes: SharedBytes, to stream: StreamHandle, collapse: UInt64 = 0) {
        table.send(bytes, to: stream, collapse: collapse)
    }

    /// Closes a stream when what was queued for it has left, or after a bounded wait.
    @inlinable
    public func close(_ stream: StreamHandle) { table.close(stream) }

    /// The shard's clock: monotonic nanoseconds.
    public var now: UInt64 { options.clock.now() }

    /// Bytes that wait for a stream in this process.
    @inlinable
    public func waitingBytes(of stream: StreamHandle) -> Int { table.waitingBytes(of: stream) }

    // MARK: The loop

    private func run() {
        guard let program else { preconditionFailure("the program is set before the thread is made") }
        table.beginOwnership()
        if options.isPinned { cmhd_keep_on_core(UInt32(index)) }
        let startedAt = options.clock.now()
        var batch: [StreamInbox<Program.Message>.Item] = []
        while true {
            let maySleep = inbox.prepareToSleep(publishing: table.counters)
            table.poll(milliseconds: maySleep ? millisecondsToSleep(startedAt, program) : 0)
            let stopDeadline = inbox.take(into: &batch)
            if table.count == 0 { table.tick = tick(startedAt, at: options.clock.now()) }
            if !batch.isEmpty {
                table.counters.batches += 1
                handle(batch, program)
                inbox.reuse(&batch)
            }
            tickIfDue(startedAt, program)
            wakeIfDue(program)
            settle(program)
            if let stopDeadline {
                stop(program, deadline: stopDeadline)
                break
            }
        }
        self.program = nil
    }

    private func handle(_ batch: [StreamInbox<Program.Message>.Item], _ program: Program) {
        for item in batch {
            switch item {
            case .message(let message): program.received(message)
            case .opening(let descriptor, let context):
                guard let stream = table.open(descriptor) else {
                    options.released()
                    continue
                }
                program.streamOpened(stream, context: context)
            }
            if table.isFlushDue { settle(program) }
        }
    }

    /// Sends what is queued, and calls the program for what has come of it, until nothing is left.
    private func settle(_ program: Program) {
        while table.hasWork {
            if !table.flushSlice() { table.poll(milliseconds: 0) }
            while let stream = table.takeOverflowing() {
                table.resolve(stream, program.streamOverflowed(stream))
            }
            table.concludeClosings()
            while let (stream, reason) = table.takeEnded() {
                program.streamClosed(stream, reason: reason)
                options.released()
            }
        }
    }

    private func stop(_ program: Program, deadline: UInt64) {
        program.shardWillStop()
        settle(program)
        table.closeAll()
        settle(program)
        while table.count > 0 {
            let now = options.clock.now()
            guard now < deadline else { break }
            table.poll(milliseconds: Int32(min((deadline - now) / 1_000_000 + 1, 1_000)))
            settle(program)
        }
        table.endAll()
        settle(program)
        inbox.publish(table.counters)
    }

    // MARK: Time

    private func tickIfDue(_ startedAt: UInt64, _ program: Program) {
        let now = options.clock.now()
        let tick = tick(startedAt, at: now)
        guard tick != table.tick, table.count > 0 else { return }
        table.advance(to: tick)
        program.ticked(now)
    }

    private func tick(_ startedAt: UInt64, at now: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: (now - startedAt) / Ticks.nanoseconds)
    }

    private func wakeIfDue(_ program: Program) {
        guard let wakesAt = program.wakesAt else { return }
        let now = options.clock.now()
        if wakesAt <= now { program.woken(now) }
    }

    /// Without streams nothing is due.
    private func millisecondsToSleep(_ startedAt: UInt64, _ program: Program) -> Int32 {
        guard table.count > 0 else { return -1 }
        let nextTick = startedAt + (UInt64(table.tick) + 1) * Ticks.nanoseconds
        let dueAt = min(nextTick, program.wakesAt ?? .max)
        let now = options.clock.now()
        return dueAt > now ? Int32((dueAt - now) / 1_000_000 + 1) : 0
    }
}
