import Foundation
import TestSupport
import Testing

@testable import MicroHTTP

/// Delivery to streams: items arrive whole, once, in order, and joined into few sends.
@Suite(.timed, .timeLimit(.minutes(10))) struct StreamDeliveryTests {
    let fixture: ShardFixture

    init() throws { fixture = try ShardFixture() }

    @Test func bytesReachTheClient_inOrder() throws {
        let client = try fixture.open(context: "hello")
        for number in 0..<100 { fixture.post { $0.sendAll(event(number)) } }
        let expected = (0..<100).map { event($0) }.joined()
        #expect(client.read(expected.utf8.count) == expected)
        #expect(fixture.record.entries.first == .opened(.init(shard: 3, index: 0, generation: 0), "hello"))
    }

    /// Eight events posted together cost each stream one system call.
    @Test func eventsPostedTogether_leaveInOneSend() throws {
        let clients = try (0..<10).map { _ in try fixture.open() }
        fixture.shard.post(contentsOf: (0..<8).map { number in { @Sendable in $0.sendAll(event(number)) } })
        let expected = (0..<8).map { event($0) }.joined()
        for client in clients { #expect(client.read(expected.utf8.count) == expected) }
        fixture.waitForCounters("all deliveries are counted") { $0.delivered == 80 }
        #expect(fixture.shard.counters.sends == 10)
        #expect(fixture.shard.counters.sentBytes == 10 * expected.utf8.count)
        #expect(fixture.shard.counters.stalls == 0)
    }

    /// Streams with different lists receive their own list, whether it is joined or sent in pieces.
    @Test func eachStream_getsItsOwnList() throws {
        let clients = try (0..<20).map { _ in try fixture.open() }
        fixture.post { program in
            for number in 0..<12 {
                let bytes = SharedBytes(Array(event(number).utf8))
                for (index, stream) in program.streams.enumerated() where (index >> (number % 4)) & 1 == 0 {
                    program.shard.send(bytes, to: stream)
                }
            }
            for stream in program.streams { program.shard.send(SharedBytes(Array("end\n\n".utf8)), to: stream) }
        }
        for (index, client) in clients.enumerated() {
            let expected = (0..<12).filter { (index >> ($0 % 4)) & 1 == 0 }.map { event($0) }.joined() + "end\n\n"
            #expect(client.read(expected.utf8.count) == expected)
        }
        fixture.waitForCounters("each stream has one send") { $0.sends == 20 }
    }

    /// More pieces than one system call accepts.
    @Test func manyDistinctItems_reachOneStream() throws {
        let client = try fixture.open()
        let other = try fixture.open()
        fixture.post { program in
            for number in 0..<300 {
                program.shard.send(SharedBytes(Array(event(number, bytes: 40).utf8)), to: program.streams[0])
            }
            program.shard.send(SharedBytes(Array("other".utf8)), to: program.streams[1])
        }
        let expected = (0..<300).map { event($0, bytes: 40) }.joined()
        #expect(client.read(expected.utf8.count) == expected)
        #expect(other.read(5) == "other")
    }

    @Test func emptyItem_isIgnored() throws {
        let client = try fixture.open()
        fixture.post { program in
            program.sendAll("")
            program.sendAll("a")
            program.sendAll("")
        }
        #expect(client.read(1) == "a")
        fixture.waitForCounters("one delivery is counted") { $0.delivered == 1 }
    }

    /// Openings and messages are processed in one order: a message posted after an opening finds the stream.
    @Test func openingsAndMessages_areInOrder() throws {
        var clients: [StreamClient] = []
        for number in 0..<50 {
            let pair = try Loopback()
            clients.append(pair.client)
            fixture.shard.adopt(descriptor: pair.server, context: "\(number)")
            fixture.post { $0.record.add(.note("\($0.streams.count)")) }
        }
        fixture.record.wait("all entries are recorded") { $0.entries.count { $0 != .ticked } == 100 }
        #expect(fixture.record.notes == (1...50).map { "\($0)" })
        #expect(fixture.perform { $0.shard.table.count } == 50)
    }

    /// A message that a program posts to itself is handled after its batch was sent.
    @Test func ownMessages_areHandledInTheNextBatch() throws {
        let client = try fixture.open()
        fixture.post { program in
            program.sendAll("0123456789")
            let stream = program.streams[0]
            program.record.add(.note("\(program.shard.waitingBytes(of: stream))"))
            program.shard.post { program in
                program.record.add(.note("\(program.shard.waitingBytes(of: stream))"))
            }
        }
        #expect(client.read(10) == "0123456789")
        fixture.record.wait("both messages are handled") { $0.entries.contains(.note("0")) }
        #expect(fixture.record.notes == ["10", "0"])
    }

    @Test func postersOnManyThreads_areEachInOrder() throws {
        let client = try fixture.open()
        let (posters, each) = (4, 2_000)
        DispatchQueue.concurrentPerform(iterations: posters) { poster in
            for number in 0..<each {
                fixture.post { $0.sendAll("\(poster) \(number)\n") }
            }
        }
        fixture.post { $0.sendAll("end\n") }
        let lines = client.read(untilSuffix: "end\n").split(separator: "\n").dropLast()
        #expect(lines.count == posters * each)
        for poster in 0..<posters {
            let numbers = lines.filter { $0.hasPrefix("\(poster) ") }.compactMap { Int($0.dropFirst(2)) }
            #expect(numbers == Array(0..<each))
        }
    }

    /// A batch larger than a stream's buffer does not turn healthy readers into slow ones.
    @Test func longBatch_isSentInParts() throws {
        let fixture = try ShardFixture(.init(bufferBytesMax: 16_384, heartbeatSeconds: 0))
        let client = try fixture.open()
        let reading = DispatchQueue(label: "reader")
        let expected = (0..<1_000).map { event($0) }.joined()
        let matches = Collected<Bool>()
        reading.async { matches.append(client.read(expected.utf8.count) == expected) }
        for first in stride(from: 0, to: 1_000, by: 50) {
            fixture.shard.post(contentsOf: (first..<first + 50).map { n in { @Sendable in $0.sendAll(event(n)) } })
            fixture.perform { _ in }
        }
        #expect(matches.wait(for: 1) == [true])
        #expect(fixture.shard.counters.overflows == 0)
    }

    @Test func manyStreams_allGetAll() throws {
        let clients = try (0..<100).map { _ in try fixture.open() }
        // Sends to few streams at a time, so that a batch takes many turns.
        fixture.perform { $0.shard.table.flushSliceMax = 7 }
        for number in 0..<20 { fixture.post { $0.sendAll(event(number)) } }
        let expected = (0..<20).map { event($0) }.joined()
        for client in clients { #expect(client.read(expected.utf8.count) == expected) }
    }
}

extension StreamDeliveryTests {
    /// A client that disconnects within a batch receives no more of it, and the other clients lose nothing.
    @Test func clientThatDisconnectsWithinABatch_affectsNoOther() throws {
        let clients = try (0..<60).map { _ in try fixture.open() }
        fixture.perform { $0.shard.table.flushSliceMax = 5 }
        for client in clients[..<30] { client.close() }
        fixture.post { program in for number in 0..<5 { program.sendAll(event(number)) } }
        fixture.record.wait("the disconnects are noticed") { $0.closings == 30 }
        fixture.post { $0.sendAll("end") }
        let expected = (0..<5).map { event($0) }.joined() + "end"
        for client in clients[30...] { #expect(client.read(expected.utf8.count) == expected) }
    }
}
