import CMicroHTTPD
import Foundation
import Synchronization

/// How a shard treats its streams.
struct StreamShardOptions: Sendable {
    var bufferBytesMax = 64 * 1024
    var heartbeatSeconds = 15
    var heartbeat = Array(":\n\n".utf8)
    /// How long a stream that is being closed may take to read its last bytes.
    var closingSeconds: UInt64 = 5
    /// Called when a stream's place is free again.
    var released: @Sendable () -> Void = {}
}

/// A thread that owns streams: the only one that writes to their sockets, and that closes them.
///
/// Openings, messages and the end come through one inbox, which gives them one order.
///
/// `@unchecked Sendable`: `inbox` and `isStopped` are only touched while `lock` is held; `sockets` and `program` belong
/// to the shard's thread from `start` on.
public final class StreamShard<Program: StreamProgram>: @unchecked Sendable {
    private enum Item {
        case message(Program.Message)
        case adopted(Int32, any Sendable)
        case stop(deadline: UInt64)
    }

    public let index: Int
    private let sockets: StreamSockets
    private var program: Program?
    private let wakeup: Int32
    /// Guards `inbox` and `isStopped`.
    private let lock = NSLock()
    private var inbox: [Item] = []
    private var isStopped = false
    private let open = Atomic<Int>(0)
    private let ended = DispatchSemaphore(value: 0)

    init(index: Int, options: StreamShardOptions) {
        self.index = index
        wakeup = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        precondition(wakeup >= 0, "no descriptor is left for a shard")
        sockets = StreamSockets(shard: UInt32(index), options: options, wakeup: wakeup)
    }

    deinit { close(wakeup) }

    /// Streams of this shard. Any thread.
    public var openStreams: Int { open.load(ordering: .relaxed) }

    func start(program: Program) {
        self.program = program
        let thread = Thread { [self] in
            if let program = self.program { run(program) }
            ended.signal()
        }
        thread.name = "shard-\(index)"
        thread.start()
    }

    // MARK: From any thread

    public func post(_ message: Program.Message) { append([.message(message)]) }

    public func post(contentsOf messages: some Sequence<Program.Message>) { append(messages.map { .message($0) }) }

    func adopt(descriptor: Int32, context: any Sendable) {
        if !append([.adopted(descriptor, context)]) { close(descriptor) }
    }

    /// Tells the program, lets the streams read what is on its way, closes them and ends the thread.
    func stop(deadlineSeconds: Double) {
        append([.stop(deadline: cmhd_monotonic_nanoseconds() + UInt64(deadlineSeconds * 1e9))])
        ended.wait()
    }

    @discardableResult
    private func append(_ items: [Item]) -> Bool {
        let (isTaken, isFirst) = lock.withLock {
            guard !isStopped else { return (false, false) }
            defer { inbox += items }
            return (true, inbox.isEmpty)
        }
        if isFirst { eventfd_write(wakeup, 1) }
        return isTaken
    }

    // MARK: From the shard's thread only

    /// Queues bytes for a stream. All that one batch queues for a stream leaves in one call of the kernel at its end.
    ///
    /// - Parameter collapse: not 0: while the stream is backed up, what waits under the same key is dropped for it.
    public func send(_ bytes: SharedBytes, to stream: StreamHandle, collapse: UInt64 = 0) {
        sockets.queue(bytes, for: stream, collapse: collapse)
    }

    /// Closes a stream when what is queued for it has left, or after a bounded wait.
    public func close(_ stream: StreamHandle) { sockets.beginClosing(stream, reason: .requested) }

    /// Bytes that wait in this process for a stream.
    public func waitingBytes(of stream: StreamHandle) -> Int { sockets.waitingBytes(of: stream) }

    public var streamCount: Int { sockets.count }

    // MARK: The loop

    private func run(_ program: Program) {
        sockets.overflowed = { [unowned program] in program.streamOverflowed($0) }
        sockets.closed = { [unowned self, unowned program] stream, reason in
            open.wrappingSubtract(1, ordering: .relaxed)
            program.streamClosed(stream, reason: reason)
        }
        var stopAt: UInt64?
        var tickAt = cmhd_monotonic_nanoseconds()
        while true {
            sockets.wait(milliseconds: sockets.count > 0 || stopAt != nil ? Self.tickMilliseconds : 1000)
            for item in take() {
                switch item {
                case .message(let message): program.received(message)
                case .adopted(let descriptor, let context): adopt(descriptor, context, program)
                case .stop(let deadline):
                    stopAt = deadline
                    program.shardWillStop()
                    sockets.closeAll(by: deadline)
                }
            }
            sockets.readEvents()
            let now = cmhd_monotonic_nanoseconds()
            if now >= tickAt {
                tickAt = now + UInt64(Self.tickMilliseconds) * 1_000_000
                program.ticked(now)
                sockets.tick(now, perSecond: 1000 / Self.tickMilliseconds)
            }
            sockets.flush()
            if stopAt != nil && sockets.count == 0 { break }
        }
        end()
    }

    private static var tickMilliseconds: Int { 250 }

    private func adopt(_ descriptor: Int32, _ context: any Sendable, _ program: Program) {
        guard let stream = sockets.adopt(descriptor) else { return }
        open.wrappingAdd(1, ordering: .relaxed)
        program.streamOpened(stream, context: context)
    }

    private func take() -> [Item] {
        var count: eventfd_t = 0
        eventfd_read(wakeup, &count)
        return lock.withLock {
            guard !inbox.isEmpty else { return [] }
            defer { inbox = [] }
            return inbox
        }
    }

    /// What came after the stop is let go: connections are closed, messages forgotten.
    private func end() {
        let late = lock.withLock {
            isStopped = true
            defer { inbox = [] }
            return inbox
        }
        for case .adopted(let descriptor, _) in late { close(descriptor) }
        sockets.overflowed = { _ in .close }
        sockets.closed = { _, _ in }
        program = nil
    }

    private func close(_ descriptor: Int32) { _ = Glibc.close(descriptor) }
}
