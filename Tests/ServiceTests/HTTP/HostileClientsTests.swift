import BellhopClient
import Foundation
import TestSupport
import Testing

/// The memory and the descriptors of the built service under attack by clients without a token.
@Suite(.timed) struct HostileClientsTests {
    private static let settings = [
        "JWT_SECRET": TestService.secret, "PORT": "0", "DATABASE": "sqlite::memory:", "REACTORS": "1", "SHARDS": "1",
        "CONNECTION_TIMEOUT_SECONDS": "2", "METRICS_SECONDS": "0",
    ]

    private static func metric(_ name: String, at port: Int) throws -> Int {
        let raw = try RawConnection(port)
        try raw.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        let page = String(decoding: try raw.readAnswer().body, as: UTF8.self)
        let line = try #require(page.split(separator: "\n").first { $0.hasPrefix(name + " ") })
        return try #require(Int(line.split(separator: " ")[1]))
    }

    /// Waits until only this request is open. Returns the number of allocated bytes.
    private static func settle(_ port: Int) async throws -> Int {
        try await eventually("only this request is open") {
            try metric("bellhop_http_requests_open", at: port) == 1
        }
        return try metric("bellhop_process_allocated_bytes", at: port)
    }

    private static func send(_ count: Int, to port: Int) {
        for number in 0..<count {
            let shape = MalformedRequests.all[number % MalformedRequests.all.count]
            guard let raw = try? RawConnection(port) else { continue }
            try? raw.send(shape)
            // A truncated request gets no answer. A client that has its answer disconnects.
            if number % 8 == 0 { _ = raw.hasAnswer(within: 5) }
        }
    }

    /// `TEST_MALFORMED_REQUESTS` raises the number of requests.
    @Test func malformedRequests_leaveNothingBehind() async throws {
        let count = ProcessInfo.processInfo.environment["TEST_MALFORMED_REQUESTS"].flatMap { Int($0) } ?? 4_000
        let service = try BellhopProcess(["serve"], settings: Self.settings)
        let port = try service.awaitPort()
        // Warms up, so that one-time allocations do not count.
        Self.send(1_000, to: port)
        let before = try await Self.settle(port)
        Self.send(count, to: port)
        let after = try await Self.settle(port)
        // A leaked connection takes 9.7 KB. Tables that grow by doubling do so at most once.
        #expect(after - before < 256 * 1024 + count, "\(after - before) bytes by \(count) requests")
        service.terminate()
        #expect(service.finish().status == 0)
    }

    // MARK: No free descriptors

    private static func limit(_ process: Int32, descriptors: Int) throws {
        let change = try ChildProcess(["prlimit", "--pid", "\(process)", "--nofile=\(descriptors):4096"])
        #expect(change.finish().status == 0)
    }

    /// Returns the descriptor limit at which the process cannot open another one.
    private static func firstFreeDescriptor(_ process: Int32) throws -> Int {
        let taken = Set(
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").compactMap { Int($0) })
        return try #require((0...).first { !taken.contains($0) })
    }

    /// Returns the CPU time that the process has used.
    private static func computedSeconds(_ process: Int32) throws -> Double {
        let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        let fields = text.drop { $0 != ")" }.split(separator: " ")
        return (Double(fields[12]) ?? 0) / 100 + (Double(fields[13]) ?? 0) / 100
    }

    @Test func accepting_pausesWithoutDescriptors_andGoesOn() async throws {
        let service = try BellhopProcess(["serve"], settings: Self.settings, through: ["prlimit", "--nofile=4096"])
        let port = try service.awaitPort()
        // No client is connected. libmicrohttpd alone would poll the kernel in a busy loop.
        try Self.limit(service.identifier, descriptors: try Self.firstFreeDescriptor(service.identifier))
        let waiting = try RawConnection(port)
        try waiting.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        let before = try Self.computedSeconds(service.identifier)
        #expect(!waiting.hasAnswer(within: 1000))
        #expect(try Self.computedSeconds(service.identifier) - before < 0.5)
        try Self.limit(service.identifier, descriptors: 4096)
        #expect(try waiting.readAnswer().status == 200)

        // A connected client asks for a stream, which needs a second descriptor.
        try Self.limit(service.identifier, descriptors: try Self.firstFreeDescriptor(service.identifier))
        let token = TestService.sign([
            "sub": "ada", "iat": .integer(Int64(Date().timeIntervalSince1970)),
            "exp": .integer(Int64(Date().timeIntervalSince1970) + 3600),
        ])
        try waiting.send("GET /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\r\n")
        let refusal = try waiting.readAnswer()
        #expect(refusal.status == 503)
        #expect(String(decoding: refusal.body, as: UTF8.self).contains("stream.capacity"))
        try Self.limit(service.identifier, descriptors: 4096)
        service.terminate()
        #expect(service.finish().status == 0)
    }
}
