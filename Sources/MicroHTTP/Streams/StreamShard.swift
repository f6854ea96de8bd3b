import CMicroHTTPD
import Glibc
import Threads

/// A thread that owns streams. Only this thread writes to their sockets and closes them.
///
/// Openings, messages and the stop come through one inbox, which defines their order. The thread takes everything that
/// waits there as one batch, lets the program handle it, and then sends each stream its queued data in one system call.
/// Whatever arrives meanwhile is the next batch. So the busier the shard, the larger its batches.
///
/// `@unchecked Sendable`: all variables belong to the shard's thread once `start` has started it.
public final class StreamShard<Program: StreamProgram>: @unchecked Sendable {
    public let index: Int
    @usableFromInline let table: SocketTable
    private let inbox: StreamInbox<Program.Message>
    private let options: StreamShardOptions
    private var program: Program?
    private var startedAt: UInt64 = 0
    private var batch: [StreamInbox<Program.Message>.Item] = []
    private let thread: LoopThread

    init(index: Int, options: StreamShardOptions) throws(ServerError) {
        self.index = index
        self.options = options
        thread = LoopThread("streams-\(index)")
        inbox = try StreamInbox()
        table = try SocketTable(shard: index, options: options, wakeDescriptor: inbox.wakeDescriptor)
    }

    // MARK: Any thread

    /// Posts a message to the program. After the shard has stopped, messages are dropped.
    public func post(_ message: Program.Message) { _ = inbox.put(.message(message)) }

    /// Posts messages in order, with nothing between them.
    public func post(contentsOf messages: some Sequence<Program.Message>) { inbox.put(messages: messages) }

    /// The counters at the end of the last batch.
    public var counters: StreamCounters { inbox.counters }

    /// Hands a descriptor to the shard, which owns it from now on. A stopped shard closes it at once.
    func adopt(descriptor: Int32, context: any Sendable) {
        if !inbox.put(.opening(descriptor: descriptor, context: context)) { refuse(descriptor) }
    }

    /// Starts the shard's thread, on which all of the program's code runs from now on.
    func start(program: Program) {
        precondition(self.program == nil, "a shard can start only once")
        self.program = program
        thread.start { [self] in run() }
    }

    /// Handles the earlier messages, lets the program send its last data, closes all streams and waits for the thread.
    /// A second call does nothing. Must not be called on the shard's own thread, which would wait for itself.
    /// - Parameter deadlineSeconds: How long slow readers may take for their last bytes.
    func stop(deadlineSeconds: Double) {
        let nanoseconds = UInt64(max(0, min(deadlineSeconds, 1e6)) * 1e9)
        inbox.requestStop(deadline: options.clock.now() + nanoseconds)
        thread.join()
        // The rest of the inbox has no thread to take it.
        for case .opening(let descriptor, _) in inbox.takeAll() { refuse(descriptor) }
    }

    private func refuse(_ descriptor: Int32) {
        Glibc.close(descriptor)
        options.released()
    }

    // MARK: Shard's thread only

    /// Queues bytes for a stream. All bytes that one batch queues for a stream are sent in one system call at its end.
    /// Bytes for a stream that is closed or closing are dropped.
    /// - Parameter collapse: If it is not 0, and the stream has a backlog, this replaces the waiting item with the same
    ///   key. It then goes to the end of the backlog. A partly sent item is not replaced.
    @inlinable
    public func send(_ bytes: SharedBytes, to stream: StreamHandle, collapse: UInt64 = 0) {
        table.send(bytes, to: stream, collapse: collapse)
    }

    /// Closes a stream once its queued data has been sent, or after a bounded wait.
    @inlinable
    public func close(_ stream: StreamHandle) { table.close(stream) }

    /// The shard's clock, in monotonic nanoseconds.
    public var now: UInt64 { options.clock.now() }

    /// Returns the bytes that wait for a stream in this process.
    @inlinable
    public func waitingBytes(of stream: StreamHandle) -> Int { table.waitingBytes(of: stream) }

    // MARK: The loop

    private func run() {
        guard let program else { preconditionFailure("the program must be set before the thread starts") }
        if options.isPinned { cmhd_keep_on_core(UInt32(index)) }
        begin()
        while true {
            let maySleep = inbox.prepareToSleep(publishing: table.counters)
            guard let deadline = turn(program, waiting: maySleep ? millisecondsToSleep(program) : 0) else { continue }
            stop(program, deadline: deadline)
            break
        }
        self.program = nil
    }

    /// Makes the calling thread the shard's own.
    func begin() {
        table.beginOwnership()
        startedAt = options.clock.now()
    }

    /// Handles the sockets, and everything that waits in the inbox as one batch. Returns the deadline if the shard must
    /// stop.
    /// - Parameter milliseconds: How long to wait for the first event.
    @discardableResult
    func turn(_ program: Program, waiting milliseconds: Int32) -> UInt64? {
        table.poll(milliseconds: milliseconds)
        let stopDeadline = inbox.take(into: &batch)
        if table.count == 0 { table.tick = tick(at: options.clock.now()) }
        if !batch.isEmpty {
            table.counters.batches += 1
            handle(batch, program)
            inbox.reuse(&batch)
        }
        tickIfDue(program)
        wakeIfDue(program)
        settle(program)
        return stopDeadline
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

    /// Sends the queued data, and calls the program for the resulting events, until nothing is left.
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

    private func tickIfDue(_ program: Program) {
        let now = options.clock.now()
        let tick = tick(at: now)
        guard tick != table.tick, table.count > 0 else { return }
        table.advance(to: tick)
        program.ticked(now)
    }

    private func tick(at now: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: (now - startedAt) / Ticks.nanoseconds)
    }

    private func wakeIfDue(_ program: Program) {
        guard let wakesAt = program.wakesAt else { return }
        let now = options.clock.now()
        if wakesAt <= now { program.woken(now) }
    }

    /// Returns how long to sleep. Without streams, nothing is due.
    private func millisecondsToSleep(_ program: Program) -> Int32 {
        guard table.count > 0 else { return -1 }
        let nextTick = startedAt + (UInt64(table.tick) + 1) * Ticks.nanoseconds
        let dueAt = min(nextTick, program.wakesAt ?? .max)
        let now = options.clock.now()
        return dueAt > now ? Int32((dueAt - now) / 1_000_000 + 1) : 0
    }
}
