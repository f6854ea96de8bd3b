import Foundation
import Glibc
import TestSupport
import Testing

@testable import MicroHTTP

/// Both ends of a TCP connection over the loopback interface.
struct Loopback {
    let client: StreamClient
    /// The server's descriptor, for `StreamShard.adopt`, which takes ownership.
    let server: Int32

    /// - Parameter isNarrow: uses the smallest buffers that the kernel allows, so that a reader stalls early.
    init(isNarrow: Bool = false) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { Glibc.close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if isNarrow {
            Self.set(descriptor, SO_RCVBUF, 2_048)
            Self.set(listener, SO_SNDBUF, 4_096)
        }
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try #require(bind(listener, address, size) == 0)
                try #require(listen(listener, 16) == 0)
                try #require(getsockname(listener, address, &size) == 0)
                try #require(connect(descriptor, address, size) == 0)
            }
        }
        server = accept(listener, nil, nil)
        try #require(server >= 0)
        var one: Int32 = 1
        setsockopt(server, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        // The timeout only bounds a failure; no test waits for it to expire.
        var timeout = timeval(tv_sec: Int(patience / .seconds(1)), tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        client = StreamClient(descriptor)
    }

    private static func set(_ descriptor: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}

/// The reading end. `@unchecked Sendable`: a test uses it from one thread at a time.
final class StreamClient: @unchecked Sendable {
    private let descriptor: Int32
    private var isOpen = true

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close() }

    func close() {
        if isOpen { Glibc.close(descriptor) }
        isOpen = false
    }

    /// Ends the connection with RST.
    func reset() {
        var lingering = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &lingering, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    func write(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Reads `count` bytes; fewer if the connection ends first, or if nothing arrives within ``patience``.
    func read(_ count: Int) -> String { String(decoding: bytes(upTo: count), as: UTF8.self) }

    /// Reads to the end of the connection.
    func readToEnd() -> String { read(.max) }

    /// Reads until the text ends with `suffix`.
    func read(untilSuffix suffix: String) -> String {
        var all: [UInt8] = []
        let suffix = Array(suffix.utf8)
        while all.suffix(suffix.count) != suffix[...] {
            let next = bytes(upTo: 1)
            guard !next.isEmpty else { break }
            all += next
        }
        return String(decoding: all, as: UTF8.self)
    }

    private func bytes(upTo count: Int) -> [UInt8] {
        var all: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: min(count, 65_536))
        while all.count < count {
            let got = recv(descriptor, &piece, min(piece.count, count - all.count), 0)
            guard got > 0 else { break }
            all += piece[..<got]
        }
        return all
    }
}

/// A program that runs the closures posted by a test and records its callbacks.
final class RecordingProgram: StreamProgram {
    typealias Message = @Sendable (RecordingProgram) -> Void

    let shard: StreamShard<RecordingProgram>
    let record: StreamRecord
    var streams: [StreamHandle] = []
    var overflowAction = OverflowAction.close
    var atOverflow: (RecordingProgram) -> Void = { _ in }
    var atStop: (RecordingProgram) -> Void = { _ in }

    init(_ shard: StreamShard<RecordingProgram>, _ record: StreamRecord) {
        self.shard = shard
        self.record = record
    }

    func streamOpened(_ stream: StreamHandle, context: any Sendable) {
        streams.append(stream)
        record.add(.opened(stream, context as? String ?? ""))
    }

    func received(_ message: @Sendable (RecordingProgram) -> Void) { message(self) }

    func streamClosed(_ stream: StreamHandle, reason: StreamCloseReason) {
        streams.removeAll { $0 == stream }
        record.add(.closed(stream, reason))
    }

    func streamOverflowed(_ stream: StreamHandle) -> OverflowAction {
        record.add(.overflowed(stream))
        atOverflow(self)
        return overflowAction
    }

    func ticked(_: UInt64) { record.add(.ticked) }
    func shardWillStop() { atStop(self) }

    func sendAll(_ text: String, collapse: UInt64 = 0) {
        let bytes = SharedBytes(Array(text.utf8))
        for stream in streams { shard.send(bytes, to: stream, collapse: collapse) }
    }
}

/// The recorded callbacks of a program, with waits for the test's thread.
final class StreamRecord: @unchecked Sendable {
    enum Entry: Equatable {
        case opened(StreamHandle, String)
        case closed(StreamHandle, StreamCloseReason)
        case overflowed(StreamHandle)
        case ticked
        case note(String)
    }

    /// Guards `list` and `releases`.
    private let condition = NSCondition()
    private var list: [Entry] = []
    private var releases = 0

    var entries: [Entry] { condition.withLock { list.filter { $0 != .ticked } } }
    var released: Int { condition.withLock { releases } }
    var closings: [StreamCloseReason] {
        entries.compactMap { if case .closed(_, let reason) = $0 { reason } else { nil } }
    }
    var notes: [String] { entries.compactMap { if case .note(let text) = $0 { text } else { nil } } }

    func add(_ entry: Entry) {
        condition.withLock {
            list.append(entry)
            condition.broadcast()
        }
    }

    func release() {
        condition.withLock {
            releases += 1
            condition.broadcast()
        }
    }

    /// Waits until a condition holds. The test fails if that takes longer than ``patience``.
    func wait(_ comment: Comment, until isMet: (StreamRecord.State) -> Bool) {
        let deadline = Date(timeIntervalSinceNow: patience / .seconds(1))
        condition.lock()
        defer { condition.unlock() }
        while !isMet(State(entries: list, released: releases)) {
            guard condition.wait(until: deadline) else {
                Issue.record(comment)
                return
            }
        }
    }

    struct State {
        let entries: [Entry]
        let released: Int

        var openings: Int { entries.count { if case .opened = $0 { true } else { false } } }
        var closings: Int { entries.count { if case .closed = $0 { true } else { false } } }
        var overflows: Int { entries.count { if case .overflowed = $0 { true } else { false } } }
        var ticks: Int { entries.count { $0 == .ticked } }
    }
}

/// A running shard with its program.
final class ShardFixture: Sendable {
    let shard: StreamShard<RecordingProgram>
    let record: StreamRecord

    init(_ options: StreamShardOptions = StreamShardOptions(heartbeatSeconds: 0), isStarted: Bool = true) throws {
        let record = StreamRecord()
        var options = options
        options.released = { record.release() }
        self.record = record
        shard = try StreamShard(index: 3, options: options)
        if isStarted { shard.start(program: RecordingProgram(shard, record)) }
    }

    deinit { shard.stop(deadlineSeconds: 0) }

    /// Opens a stream and waits until the program has it.
    func open(isNarrow: Bool = false, context: String = "") throws -> StreamClient {
        let pair = try Loopback(isNarrow: isNarrow)
        let before = StreamRecord.State(entries: record.entries, released: 0).openings
        shard.adopt(descriptor: pair.server, context: context)
        record.wait("the stream is opened") { $0.openings > before }
        return pair.client
    }

    /// Runs a closure on the shard's thread.
    func post(_ body: @escaping @Sendable (RecordingProgram) -> Void) { shard.post(body) }

    /// Runs a closure on the shard's thread, and waits until its batch was sent.
    func perform<Value: Sendable>(_ body: @escaping @Sendable (RecordingProgram) -> Value) -> Value {
        let result = Result<Value>()
        shard.post { program in
            let value = body(program)
            // A message that the program posts itself is handled in the next batch.
            program.shard.post { _ in result.set(value) }
        }
        return result.wait()
    }

    /// Waits until the shard's counters meet a condition. They are published after the last call of a batch.
    func waitForCounters(_ comment: Comment, until isMet: @escaping @Sendable (StreamCounters) -> Bool) {
        let deadline = Date(timeIntervalSinceNow: patience / .seconds(1))
        while !isMet(shard.counters) {
            guard Date() < deadline else {
                Issue.record(comment)
                return
            }
            perform { _ in }
        }
    }

    private final class Result<Value: Sendable>: @unchecked Sendable {
        private let ready = DispatchSemaphore(value: 0)
        /// Written before the semaphore is signalled, and read after it.
        private var value: Value?

        func set(_ value: Value) {
            self.value = value
            ready.signal()
        }

        func wait() -> Value {
            ready.wait()
            guard let value else { preconditionFailure("signalled without a value") }
            return value
        }
    }
}

func event(_ number: Int, bytes: Int = 200) -> String {
    let head = "id: \(number)\ndata: "
    return head + String(repeating: "x", count: max(0, bytes - head.utf8.count - 2)) + "\n\n"
}
