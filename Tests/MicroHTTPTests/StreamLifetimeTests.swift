import Foundation
import Glibc
import TestSupport
import Testing

@testable import MicroHTTP

/// The end of streams, the reuse of their handles, and the shutdown of a shard.
@Suite(.timed, .timeLimit(.minutes(10))) struct StreamLifetimeTests {
    let fixture: ShardFixture

    init() throws { fixture = try ShardFixture() }

    @Test func peerThatCloses_isNoticed() throws {
        let client = try fixture.open()
        client.close()
        fixture.record.wait("the disconnect is noticed") { $0.closings == 1 && $0.released == 1 }
        #expect(fixture.record.closings == [.peerClosed])
        #expect(fixture.perform { $0.shard.table.count } == 0)
    }

    @Test func peerThatResets_isNoticed() throws {
        let client = try fixture.open()
        client.reset()
        fixture.record.wait("the disconnect is noticed") { $0.closings == 1 }
        #expect(fixture.record.closings == [.reset])
    }

    /// A client that disconnected before its stream was opened is reported as opened and closed, so that programs
    /// need no third case.
    @Test func alreadyClosedPeer_isOpenedAndClosed() throws {
        let pair = try Loopback()
        pair.client.close()
        fixture.shard.adopt(descriptor: pair.server, context: "")
        fixture.record.wait("the opening and the close are recorded") { $0.openings == 1 && $0.closings == 1 }
    }

    @Test func descriptorThatCannotBeWatched_isReleased() throws {
        fixture.shard.adopt(descriptor: dup(open("/dev/null", O_RDONLY | O_CLOEXEC)), context: "")
        fixture.record.wait("the descriptor is released") { $0.released == 1 }
        #expect(fixture.record.entries.isEmpty)
        _ = try fixture.open()
    }

    /// Without generations, a handle of a closed stream would reach the next client in its slot.
    @Test func staleHandle_reachesNobody() throws {
        let first = try fixture.open()
        let stale = fixture.perform { $0.streams[0] }
        first.close()
        fixture.record.wait("the first stream is closed") { $0.closings == 1 }
        let second = try fixture.open()
        let fresh = fixture.perform { $0.streams[0] }
        #expect(fresh.index == stale.index)
        #expect(fresh.generation != stale.generation)
        fixture.post { program in
            program.shard.send(SharedBytes(Array("stale".utf8)), to: stale)
            program.shard.close(stale)
            program.shard.send(SharedBytes(Array("fresh".utf8)), to: fresh)
            program.record.add(.note("\(program.shard.waitingBytes(of: stale))"))
        }
        #expect(second.read(5) == "fresh")
        #expect(fixture.record.notes == ["0"])
        let foreign = StreamHandle(shard: 9, index: fresh.index, generation: fresh.generation)
        let unknown = StreamHandle(shard: 3, index: 5_000, generation: 0)
        fixture.perform { program in
            for handle in [foreign, unknown] {
                program.shard.send(SharedBytes(Array("no".utf8)), to: handle)
                program.shard.close(handle)
            }
        }
        #expect(fixture.record.closings.count == 1)
    }

    @Test func nothingIsSentAfterAClose_inTheSameBatch() throws {
        let client = try fixture.open()
        fixture.post { program in
            let stream = program.streams[0]
            program.sendAll("before")
            program.shard.close(stream)
            program.shard.close(stream)
            program.shard.send(SharedBytes(Array("after".utf8)), to: stream)
        }
        fixture.post { $0.sendAll("later") }
        #expect(client.readToEnd() == "before")
        fixture.record.wait("the stream is closed once") { $0.closings == 1 }
        #expect(fixture.record.closings == [.requested])
    }

    /// Unread input of a client causes no reset, so the client still receives the last bytes.
    @Test func unreadInput_doesNotTakeTheLastBytes() throws {
        let client = try fixture.open()
        client.write("GET / HTTP/1.1\r\n\r\n")
        fixture.post { program in
            program.sendAll("last")
            program.shard.close(program.streams[0])
        }
        #expect(client.readToEnd() == "last")
    }

    /// Without this limit, a client could occupy a shard with unwanted input.
    @Test func unwantedInput_endsTheStream() throws {
        let client = try fixture.open()
        let text = String(repeating: "x", count: 40_000)
        client.write(text)
        client.write(text)
        fixture.record.wait("the client is cut off") { $0.closings == 1 }
        #expect(fixture.record.closings == [.reset])
    }

    /// 1,000 clients connect and disconnect while events flow, and every slot is released.
    @Test func churn_leavesNothingBehind() throws {
        let fixture = try ShardFixture(.init(heartbeatSeconds: 1))
        let rounds = 1_000
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for round in 0..<rounds / 4 {
                guard let pair = try? Loopback() else { continue }
                fixture.shard.adopt(descriptor: pair.server, context: "")
                fixture.post { $0.sendAll(event(round)) }
                if round % 3 == 0 { _ = pair.client.read(1) }
                round % 2 == 0 ? pair.client.close() : pair.client.reset()
            }
        }
        fixture.record.wait("all streams are closed") { $0.closings == rounds && $0.released == rounds }
        #expect(fixture.perform { $0.shard.table.count } == 0)
        fixture.waitForCounters("all streams are counted") { $0.opened == rounds && $0.closed == rounds }
    }

    // MARK: Cores

    /// The fixture's shard is the fourth. It is pinned to the fourth core from the end of the cores that the process
    /// may use.
    @Test func pinnedShard_staysOnItsCore_andOthersMayUseAll() throws {
        @Sendable func cores() -> [Int] {
            let status = (try? String(contentsOfFile: "/proc/thread-self/status", encoding: .utf8)) ?? ""
            let line = status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") }
            let ranges = line?.split(separator: "\t").last?.split(separator: ",") ?? []
            return ranges.flatMap { range in
                let ends = range.split(separator: "-").compactMap { Int($0) }
                return ends.isEmpty ? [] : Array(ends[0]...ends[ends.count - 1])
            }
        }
        let allowed = cores()
        try #require(!allowed.isEmpty)
        #expect(try ShardFixture().perform { _ in cores() } == allowed)
        let pinned = try ShardFixture(.init(heartbeatSeconds: 0, isPinned: true))
        #expect(pinned.perform { _ in cores() } == [allowed[allowed.count - 1 - 3 % allowed.count]])
    }

    // MARK: Time

    @Test func silentStream_getsHeartbeats() throws {
        let time = ServerTime()
        let fixture = try ShardFixture(.init(heartbeatSeconds: 1, clock: time.clock))
        let clients = try (0..<8).map { _ in try fixture.open() }
        // In the first second, the streams fall into step; after it, each has one heartbeat per second.
        for _ in 0..<4 * 4 {
            time.pass(milliseconds: 250)
            fixture.perform { _ in }
        }
        for client in clients { #expect(client.read(9) == ":\n\n:\n\n:\n\n") }
    }

    @Test func program_isTickedWhileThereAreStreams() throws {
        let time = ServerTime()
        let fixture = try ShardFixture(.init(heartbeatSeconds: 0, clock: time.clock))
        let client = try fixture.open()
        for _ in 0..<3 {
            time.pass(milliseconds: 250)
            fixture.perform { _ in }
        }
        fixture.record.wait("the ticks continue") { $0.ticks >= 3 }
        client.close()
    }

    // MARK: Stopping

    /// The order of a shutdown: posted messages, the program's last items, the end of the streams, then the thread.
    @Test func stop_sendsQueuedItems_andCloses() throws {
        let clients = try (0..<50).map { _ in try fixture.open() }
        fixture.post { $0.atStop = { $0.sendAll("retry: 5000\n\n") } }
        for number in 0..<10 { fixture.post { $0.sendAll(event(number)) } }
        fixture.shard.stop(deadlineSeconds: patience / .seconds(1))
        let expected = (0..<10).map { event($0) }.joined() + "retry: 5000\n\n"
        for client in clients { #expect(client.readToEnd() == expected) }
        #expect(fixture.record.closings == Array(repeating: .shutdown, count: 50))
        #expect(fixture.record.released == 50)
        #expect(fixture.shard.counters.closed == 50)
    }

    /// Without the deadline, one stalled reader would keep the process from ending.
    @Test func stop_waitsForSlowReaders_upToItsTimeout() throws {
        let fixture = try ShardFixture(.init(bufferBytesMax: 10_000_000, heartbeatSeconds: 0))
        let client = try fixture.open(isNarrow: true)
        for number in 0..<2_000 { fixture.post { $0.sendAll(event(number)) } }
        fixture.shard.stop(deadlineSeconds: 0.2)
        #expect(fixture.record.closings == [.shutdown])
        client.close()
    }

    @Test func stop_letsSlowReadersFinish() throws {
        let fixture = try ShardFixture(.init(bufferBytesMax: 10_000_000, heartbeatSeconds: 0))
        let client = try fixture.open(isNarrow: true)
        let expected = (0..<2_000).map { event($0) }.joined()
        for number in 0..<2_000 { fixture.post { $0.sendAll(event(number)) } }
        let matches = Collected<Bool>()
        DispatchQueue(label: "reader").async { matches.append(client.readToEnd() == expected) }
        fixture.shard.stop(deadlineSeconds: patience / .seconds(1))
        #expect(matches.wait(for: 1) == [true])
        #expect(fixture.record.closings == [.shutdown])
    }

    @Test func adoptionAfterStop_closesTheDescriptor() throws {
        fixture.shard.stop(deadlineSeconds: 1)
        fixture.shard.stop(deadlineSeconds: 1)
        let pair = try Loopback()
        fixture.shard.adopt(descriptor: pair.server, context: "")
        fixture.post { $0.record.add(.note("never")) }
        #expect(pair.client.readToEnd() == "")
        #expect(fixture.record.released == 1)
        #expect(fixture.record.entries.isEmpty)
    }

    @Test func shardThatNeverStarted_closesItsSockets() throws {
        let fixture = try ShardFixture(isStarted: false)
        let pair = try Loopback()
        fixture.shard.adopt(descriptor: pair.server, context: "")
        fixture.shard.stop(deadlineSeconds: 1)
        #expect(pair.client.readToEnd() == "")
        #expect(fixture.record.released == 1)
    }

    /// The shard and its program refer to each other only while the shard runs.
    @Test func stoppedShard_isFreed() throws {
        weak var shard: StreamShard<RecordingProgram>?
        do {
            let fixture = try ShardFixture()
            shard = fixture.shard
            _ = try fixture.open()
            fixture.shard.stop(deadlineSeconds: 5)
        }
        #expect(shard == nil)
    }
}
