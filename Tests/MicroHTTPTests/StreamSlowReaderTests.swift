import Foundation
import TestSupport
import Testing

@testable import MicroHTTP

/// Clients that do not read: memory is bounded, events stay whole, and other clients do not wait.
@Suite(.timed, .timeLimit(.minutes(10)))
struct StreamSlowReaderTests {
    /// More than the kernel's buffers of a narrow connection hold.
    private static let kernelBytesMax = 32_768

    /// Sends until the stream has a backlog. Returns how many events that took.
    ///
    /// - Parameter backlog: The least size of the backlog. A smaller one than ``kernelBytesMax`` may vanish without a
    ///   reader: the kernel moves bytes to the receiver's buffer some time after it has reported that the sender's is
    ///   full.
    private func stall(_ fixture: ShardFixture, at index: Int = 0, backlog: Int = 1) -> Int {
        var number = 0
        while fixture.perform({ $0.shard.waitingBytes(of: $0.streams[index]) }) < backlog, number < 100_000 {
            let next = number
            fixture.perform { $0.shard.send(SharedBytes(Array(event(next).utf8)), to: $0.streams[index]) }
            number += 1
        }
        return number
    }

    @Test func slowReader_eventuallyGetsEverything() throws {
        let fixture = try ShardFixture()
        let client = try fixture.open(isNarrow: true)
        let stalledAt = stall(fixture)
        for number in stalledAt..<stalledAt + 100 { fixture.post { $0.sendAll(event(number)) } }
        fixture.perform { _ in }
        #expect(fixture.perform { $0.shard.waitingBytes(of: $0.streams[0]) } > 100 * 200)
        let expected = (0..<stalledAt + 100).map { event($0) }.joined()
        #expect(client.read(expected.utf8.count) == expected)
        fixture.waitForCounters("every event is delivered") { $0.delivered == stalledAt + 100 }
        #expect(fixture.perform { $0.shard.waitingBytes(of: $0.streams[0]) } == 0)
        // The reader has caught up.
        fixture.post { $0.sendAll("again") }
        #expect(client.read(5) == "again")
    }

    /// A stalled reader must not delay the others.
    @Test func slowReader_delaysNobodyElse() throws {
        let fixture = try ShardFixture()
        _ = try withExtendedLifetime(fixture.open(isNarrow: true)) { _ in
            let healthy = try fixture.open()
            let stalledAt = stall(fixture)
            fixture.post { $0.sendAll(event(stalledAt)) }
            #expect(healthy.read(200) == event(stalledAt))
        }
    }

    /// A stalled reader takes bounded memory, and still receives only whole events.
    @Test func overflow_discardsTheBacklog_butFinishesAPartlySentEvent() throws {
        let fixture = try ShardFixture(.init(bufferBytesMax: 8_192, heartbeatSeconds: 0))
        let client = try fixture.open(isNarrow: true)
        fixture.perform { $0.overflowAction = .discard(thenSend: SharedBytes(Array("id: 0\ndata: resync\n\n".utf8))) }
        var number = stall(fixture)
        while !fixture.record.entries.contains(where: { if case .overflowed = $0 { true } else { false } }) {
            let next = number
            fixture.perform { $0.sendAll(event(next)) }
            number += 1
        }
        #expect(fixture.perform { $0.shard.waitingBytes(of: $0.streams[0]) } < 8_192)
        fixture.post { $0.sendAll("id: 0\ndata: last\n\n") }
        let events = client.read(untilSuffix: "data: last\n\n").components(separatedBy: "\n\n").dropLast()
        let resync = try #require(events.firstIndex(of: "id: 0\ndata: resync"))
        for (index, text) in events[..<resync].enumerated() { #expect(text + "\n\n" == event(index)) }
        #expect(Array(events[(resync + 1)...]) == ["id: 0\ndata: last"])
        #expect(fixture.shard.counters.overflows == 1)
        #expect(fixture.shard.counters.discarded > 30)
    }

    @Test func overflow_closesTheStream_ifTheProgramDecidesSo() throws {
        let fixture = try ShardFixture(.init(bufferBytesMax: 8_192, heartbeatSeconds: 0))
        let client = try fixture.open(isNarrow: true)
        var number = stall(fixture)
        while fixture.perform({ $0.streams.count }) > 0 {
            let next = number
            fixture.perform { $0.sendAll(event(next)) }
            number += 1
        }
        #expect(fixture.record.closings == [.overflow])
        let text = client.readToEnd()
        // The stream may end within an event, which a client drops; all earlier events are whole.
        for (index, part) in text.components(separatedBy: "\n\n").dropLast().enumerated() {
            #expect(part + "\n\n" == event(index))
        }
        fixture.record.wait("the slot is released") { $0.released == 1 }
    }

    /// A stream whose socket can accept more does not overflow: its backlog is sent first.
    @Test func readerThatCaughtUp_doesNotOverflow() throws {
        let fixture = try ShardFixture(.init(bufferBytesMax: 8_192, heartbeatSeconds: 0))
        let client = try fixture.open(isNarrow: true)
        let stalledAt = stall(fixture)
        let expected = (0..<stalledAt + 30).map { event($0) }.joined()
        for number in stalledAt..<stalledAt + 30 { fixture.post { $0.sendAll(event(number)) } }
        fixture.perform { _ in }
        #expect(client.read(expected.utf8.count) == expected)
        #expect(fixture.shard.counters.overflows == 0)
    }

    @Test func laterItem_replacesTheWaitingOneOfItsKey() throws {
        let fixture = try ShardFixture()
        let client = try fixture.open(isNarrow: true)
        let stalledAt = stall(fixture, backlog: Self.kernelBytesMax)
        fixture.perform { program in
            program.sendAll("a1;", collapse: 1)
            program.sendAll("b1;", collapse: 2)
            program.sendAll("a2;", collapse: 1)
            program.sendAll("c;")
            program.sendAll("b2;", collapse: 2)
            program.sendAll("c;")
            program.sendAll("a3;", collapse: 1)
        }
        fixture.post { $0.sendAll("end") }
        let text = client.read(untilSuffix: "end")
        #expect(text == (0..<stalledAt).map { event($0) }.joined() + "c;b2;c;a3;end")
        fixture.waitForCounters("the replaced items are counted") { $0.collapsed == 3 }
    }

    /// A fast reader receives every item, despite the collapse keys.
    @Test func collapseKeys_doNotAffectAFastReader() throws {
        let fixture = try ShardFixture()
        let client = try fixture.open()
        fixture.post { program in for number in 0..<5 { program.sendAll("\(number)", collapse: 7) } }
        #expect(client.read(5) == "01234")
    }

    @Test func close_waitsForSentWrites() throws {
        let fixture = try ShardFixture(.init(heartbeatSeconds: 0, closingSeconds: 60))
        let client = try fixture.open(isNarrow: true)
        let stalledAt = stall(fixture, backlog: Self.kernelBytesMax)
        fixture.perform { program in
            program.sendAll("last")
            program.shard.close(program.streams[0])
            program.sendAll("too late")
        }
        #expect(fixture.record.closings.isEmpty)
        #expect(client.readToEnd() == (0..<stalledAt).map { event($0) }.joined() + "last")
        fixture.record.wait("the stream is closed") { $0.closings == 1 }
        #expect(fixture.record.closings == [.requested])
    }

    /// Clients that never read must not keep their streams open forever.
    @Test func close_waitsAtMostItsTimeout() throws {
        let time = ServerTime()
        let fixture = try ShardFixture(.init(heartbeatSeconds: 0, closingSeconds: 0.5, clock: time.clock))
        let client = try fixture.open(isNarrow: true)
        _ = stall(fixture, backlog: Self.kernelBytesMax)
        fixture.perform { $0.shard.close($0.streams[0]) }
        #expect(fixture.record.closings.isEmpty)
        for _ in 0..<3 {
            time.pass(milliseconds: 250)
            fixture.perform { _ in }
        }
        fixture.record.wait("the stream is closed after its deadline") { $0.closings == 1 }
        #expect(fixture.record.closings == [.requested])
        client.close()
    }

    /// Items that a program sends before it closes a stream, from within an overflow callback, are delivered before
    /// the close.
    @Test func closeWithinAnOverflow_sendsFirst() throws {
        let fixture = try ShardFixture(.init(bufferBytesMax: 8_192, heartbeatSeconds: 0))
        let slow = try fixture.open(isNarrow: true)
        let other = try fixture.open()
        fixture.perform { program in
            program.atOverflow = { program in
                let other = program.streams[1]
                program.shard.send(SharedBytes(Array("goodbye".utf8)), to: other)
                program.shard.close(other)
            }
        }
        let stalled = fixture.perform { $0.streams[0] }
        let stalledAt = stall(fixture)
        for number in stalledAt..<stalledAt + 100 {
            fixture.post { $0.shard.send(SharedBytes(Array(event(number).utf8)), to: stalled) }
        }
        #expect(other.readToEnd() == "goodbye")
        slow.close()
    }
}
