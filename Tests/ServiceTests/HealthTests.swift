import Foundation
import Testing

@testable import MicroHTTP

/// `bellhop health`, which containers run.
@Suite struct HealthTests {
    /// Containers may have no IPv6.
    private static let hosts: [String] = {
        let found = try? SocketAddress.listen(host: "::1", port: 0, count: 1, backlog: 1)
        if let found { close(found.descriptors[0]) }
        return ["127.0.0.1", "0.0.0.0", "localhost", ""] + (found == nil ? [] : ["::1", "::"])
    }()

    @Test(arguments: hosts) func runningService_isHealthy_whereverItListens(_ host: String) throws {
        let service = try TestService.start(["host": host])
        let health = try BellhopProcess(["health"], settings: ["HOST": host, "PORT": "\(service.port)"])
        let (status, text) = health.finish()
        #expect(status == 0 && text == "")
        #expect(health.leavings == [])
    }

    @Test func flagsAndFiles_countAsForServe() throws {
        let service = try TestService.start()
        #expect(try BellhopProcess(["health", "--port", "\(service.port)"]).finish().status == 0)
        let file = service.directory.appendingPathComponent("settings.yaml")
        try "port: \(service.port)\n".write(to: file, atomically: true, encoding: .utf8)
        #expect(try BellhopProcess(["health"], settings: ["CONFIG": file.path]).finish().status == 0)
    }

    @Test func nobodyThere_isToldInOneLine() throws {
        let (status, text) = try BellhopProcess(["health"], settings: ["PORT": "1"]).finish()
        #expect(status == 1 && text == "bellhop: 127.0.0.1:1 cannot be reached: Connection refused\n")
    }

    @Test func answerOtherThan200_isNotHealthy() throws {
        let socket = try AnsweringSocket("HTTP/1.1 503 Service Unavailable\r\n\r\n")
        let (status, text) = try BellhopProcess(["health"], settings: ["PORT": "\(socket.port)"]).finish()
        #expect(status == 1 && text == "bellhop: 127.0.0.1:\(socket.port)/healthz answered 503\n")
    }

    @Test func otherProtocols_areNotHealthy() throws {
        let socket = try AnsweringSocket("220 mail.example ESMTP\r\n")
        let (status, text) = try BellhopProcess(["health"], settings: ["PORT": "\(socket.port)"]).finish()
        #expect(status == 1 && text.hasSuffix("does not speak HTTP\n"))
    }

    @Test func silence_isGivenUpAfterThreeSeconds() throws {
        let socket = try AnsweringSocket(nil)
        let start = ContinuousClock.now
        let (status, text) = try BellhopProcess(["health"], settings: ["PORT": "\(socket.port)"]).finish()
        #expect(status == 1 && text.hasSuffix("did not answer within 3 seconds\n"))
        #expect(.now - start >= .seconds(3))
    }

    @Test func openPort_cannotBeKnown() throws {
        let (status, text) = try BellhopProcess(["health"], settings: ["PORT": "0"]).finish()
        #expect(status == 1 && text.contains("the settings leave the port open"))
    }

    /// Docker knows exit codes 0 and 1 only.
    @Test func unusableSettings_areToldToo() throws {
        let (status, text) = try BellhopProcess(["health"], settings: ["PORT": "eighty"]).finish()
        #expect(status == 1 && text.hasPrefix("bellhop: port (BELLHOP_PORT): eighty"))
    }
}

/// A listening socket that gives one connection a text; with none it lets connections wait.
private final class AnsweringSocket: Sendable {
    let port: Int
    private let listening: Int32

    init(_ text: String?) throws {
        let (descriptors, port) = try SocketAddress.listen(host: "127.0.0.1", port: 0, count: 1, backlog: 8)
        (listening, self.port) = (descriptors[0], port)
        guard let text else { return }
        let listening = descriptors[0]
        Thread.detachNewThread {
            var awaited = pollfd(fd: listening, events: Int16(POLLIN), revents: 0)
            guard poll(&awaited, 1, 30_000) > 0 else { return }
            let connection = accept(listening, nil, nil)
            // A socket that is closed with bytes unread is reset, and the answer may be lost.
            var request = [UInt8](repeating: 0, count: 1024)
            _ = read(connection, &request, request.count)
            _ = write(connection, text, text.utf8.count)
            close(connection)
        }
    }

    deinit { close(listening) }
}
