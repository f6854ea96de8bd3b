import Foundation
import TestSupport
import Testing

@testable import BellhopClient

/// The outbox over real sockets and files (R-VIS-NFR-2.3, R-CUT-N-3).
@Suite(.timed, .timeLimit(.minutes(10)))
struct OutboxTests {
    private let clock = StandingClock()
    private let directory = try? TemporaryDirectory()

    private func storage() throws -> FileStorage {
        FileStorage(directory: URL(fileURLWithPath: try #require(directory).path))
    }

    private func outbox(_ server: ScriptedServer, _ storage: any ClientStorage, isOnline: Bool = true) -> Outbox {
        Outbox(
            client: BellhopClient(baseURL: server.baseURL), storage: storage, prefix: "ada outbox/",
            isOnline: isOnline, clock: clock.clock)
    }

    private func keys(_ server: ScriptedServer) -> [String] {
        server.requests.compactMap { head in
            head.split(separator: "\r\n").first { $0.hasPrefix("Idempotency-Key:") }.map(String.init)
        }
    }

    @Test func writes_areSentInOrder_eachWithOneKey_untilAnswered() async throws {
        let server = try ScriptedServer([
            .answer("503 Service Unavailable", headers: "Connection: close\r\n"),
            .answer("201 Created", headers: "Connection: close\r\n"),
            .answer("409 Conflict", headers: "Connection: close\r\n"),
        ])
        let outbox = outbox(server, MemoryStorage())
        await outbox.start()
        async let first = outbox.send("POST", "/v1/a", [:])
        try await eventually("the first write is refused for now") { server.requests.count == 1 }
        async let second = outbox.send("POST", "/v1/b", [:])
        try await eventually("both writes are answered", step: { clock.advance(milliseconds: 1000) }) {
            server.requests.count == 3
        }
        #expect(try await first.status == 201)
        #expect(try await second.status == 409)
        let keys = keys(server)
        try #require(keys.count == 3)
        #expect(keys[0] == keys[1])
        #expect(keys[1] != keys[2])
        #expect(server.requests.map { $0.prefix(10) } == ["POST /v1/a", "POST /v1/a", "POST /v1/b"])
        #expect(outbox.waitingCount == 0)
    }

    @Test func writesOfAnEarlierProcess_areSentFirst_withTheirKeys() async throws {
        let answers = (1...40).map { _ in ScriptedServer.Turn.answer("201 Created", headers: "Connection: close\r\n") }
        let server = try ScriptedServer(answers)
        let before = outbox(server, try storage(), isOnline: false)
        await before.start()
        for number in 1...30 {
            try before.put("POST", "/v1/p/\(number)", ["n": .integer(Int64(number))], key: "k\(number)") { _ in }
        }
        // The process ends without closing the outbox when all writes are on disk.
        let files = try storage()
        try await eventually("all writes are stored") { try await files.keys(beginningWith: "ada outbox/").count == 30 }
        let after = outbox(server, try storage(), isOnline: false)
        for number in 31...40 { try after.put("POST", "/v1/p/\(number)", nil, key: "k\(number)") { _ in } }
        await after.start()
        after.network(isOnline: true)
        try await eventually("all writes are sent") { server.requests.count == 40 && after.waitingCount == 0 }
        #expect(keys(server) == (1...40).map { "Idempotency-Key: k\($0)" })
        try await eventually("all files are removed") { try await files.keys(beginningWith: "").isEmpty }
    }

    /// A process that was killed while it refused a write may leave more writes than the limit.
    @Test func writesBeyondTheLimit_areStillSent() {
        let items = (0..<1003).map { number in
            OutboxItem(
                key: "k\(number)", order: "\(number + 10_000)", method: "POST", path: "/v1/a", body: nil, headers: nil)
        }
        var machine = OutboxMachine(isRestored: false)
        _ = machine.receive(.restored(items.reversed()), now: clock.now, random: 0)
        #expect(machine.items.map(\.key) == items.map(\.key))
        for item in items {
            _ = machine.receive(.marked(item), now: clock.now, random: 0)
            _ = machine.receive(.answer(key: item.key, .init(status: 201)), now: clock.now, random: 0)
        }
        #expect(machine.items.isEmpty)
    }

    @Test func anotherUsersWrites_stayTheirs() async throws {
        let server = try ScriptedServer([.answer("201 Created", headers: "Connection: close\r\n")])
        let before = outbox(server, try storage(), isOnline: false)
        await before.start()
        let outcome = Collected<String>()
        let files = try storage()
        try before.put("POST", "/v1/a", nil, key: "k1") { outcome.append("\($0)") }
        try await eventually("the write is stored") { try await files.keys(beginningWith: "ada outbox/").count == 1 }
        before.close()
        #expect(outcome.all.count == 1 && outcome.all[0].contains("signed_out"))
        let other = Outbox(
            client: BellhopClient(baseURL: server.baseURL), storage: files, prefix: "ada2 outbox/", isOnline: true,
            clock: clock.clock)
        await other.start()
        #expect(other.waitingCount == 0)
        #expect(try await other.send("POST", "/v1/b", nil, key: "k2").status == 201)
        #expect(keys(server) == ["Idempotency-Key: k2"])
        #expect(try await files.keys(beginningWith: "ada outbox/").count == 1)
    }

    /// A write that is repeated before its answer counts as the same write. A different write may not have its key.
    @Test func repeatedKey_hasOneAnswer_andIsNoOthers() async throws {
        let server = try ScriptedServer([.answer("201 Created", headers: "Connection: close\r\n")])
        let outbox = outbox(server, MemoryStorage(), isOnline: false)
        await outbox.start()
        let told = Collected<Int>()
        for _ in 1...2 {
            try outbox.put("POST", "/v1/a", ["n": 1], key: "k1") { told.append((try? $0.get().status) ?? 0) }
        }
        for (path, body) in [("/v1/a", ["n": 2] as JSON), ("/v1/b", ["n": 1])] {
            #expect(throws: UnusableWrite.self) { try outbox.put("POST", path, body, key: "k1") { _ in } }
        }
        outbox.network(isOnline: true)
        try await eventually("both receive the outcome") { told.all == [201, 201] }
        #expect(server.requests.count == 1)
    }

    /// A16: unsent writes do not stay readable after their user signs out.
    @Test func signOut_clearsTheStorage_andReturnsUnsentWrites() async throws {
        let server = try ScriptedServer([])
        let files = try storage()
        let outbox = outbox(server, files, isOnline: false)
        await outbox.start()
        for number in 1...3 {
            try outbox.put("POST", "/v1/\(number)", ["secret": "text"], key: "k\(number)") { _ in }
        }
        let unsent = await outbox.forget()
        #expect(unsent.map(\.key) == ["k1", "k2", "k3"])
        #expect(try await files.keys(beginningWith: "").isEmpty)
    }

    /// The limit counts bytes, as in the service.
    @Test(arguments: [
        ("x", (1 << 18) - 2, true), ("x", (1 << 18) - 1, false), ("ü", (1 << 17) - 1, true), ("ü", 1 << 17, false),
    ])
    func bodies_areBoundedByBytes(_ letter: String, _ count: Int, _ isTaken: Bool) throws {
        let outbox = outbox(try ScriptedServer([]), MemoryStorage(), isOnline: false)
        let body = JSON.string(String(repeating: letter, count: count))
        if isTaken {
            try outbox.put("POST", "/v1/a", body, key: "k") { _ in }
        } else {
            #expect(throws: UnusableWrite.self) { try outbox.put("POST", "/v1/a", body, key: "k") { _ in } }
        }
    }

    @Test func outbox_isBounded_andRefusesUnsendableWrites() async throws {
        let server = try ScriptedServer([])
        let outbox = outbox(server, MemoryStorage(), isOnline: false)
        let refused = Collected<String>()
        for number in 0...1000 {
            try outbox.put("POST", "/v1/a", nil, key: "k\(number)") { refused.append("\($0)") }
        }
        #expect(refused.all.count == 1 && refused.all[0].contains("full"))
        let large = JSON.string(String(repeating: "x", count: 1 << 18))
        for (path, key, body) in [("v1/a", "k", JSON.null), ("/v1/a", "a key", .null), ("/v1/a", "k", large)] {
            await #expect(throws: UnusableWrite.self) { _ = try await outbox.send("POST", path, body, key: key) }
        }
    }
}

@Suite(.timed) struct FileStorageTests {
    @Test(arguments: ["", "a", "../up", "a/b", "ä ö", String(repeating: "long ", count: 200), "a+/b=", "."])
    func keys_mayHaveAnyText(_ key: String) async throws {
        let directory = try TemporaryDirectory()
        let folder = URL(fileURLWithPath: directory.path).appendingPathComponent("inside")
        let storage = FileStorage(directory: folder)
        #expect(try await storage.keys(beginningWith: "").isEmpty)
        #expect(try await storage.get(key) == nil)
        try await storage.set(key, Data("1".utf8))
        try await storage.set(key, Data("2".utf8))
        try await storage.set(key + "x", Data("3".utf8))
        #expect(try await storage.get(key) == Data("2".utf8))
        #expect(try await storage.keys(beginningWith: key) == [key, key + "x"])
        try await storage.remove(key)
        try await storage.remove(key)
        #expect(try await storage.get(key) == nil)
        #expect(try await storage.keys(beginningWith: "") == [key + "x"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["inside"])
    }
}
