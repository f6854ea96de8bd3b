import Foundation
import TestSupport
import Testing

@testable import MicroHTTP

/// `bellhop health`, the health check of containers.
@Suite(.timed) struct HealthTests {
    /// Containers may lack IPv6.
    private static let hosts: [String] = {
        let found = try? SocketAddress.listen(host: "::1", port: 0, count: 1, backlog: 1)
        if let found { close(found.descriptors[0]) }
        return ["127.0.0.1", "0.0.0.0", "localhost", ""] + (found == nil ? [] : ["::1", "::"])
    }()

    private static func listener(answering text: String) throws -> LoopbackListener {
        let listener = try LoopbackListener()
        listener.serve { connection in
            // Closing a socket with unread bytes resets the connection, and the answer may be lost.
            var request = [UInt8](repeating: 0, count: 1024)
            _ = read(connection, &request, request.count)
            _ = write(connection, text, text.utf8.count)
            close(connection)
        }
        return listener
    }

    /// Returns the output of `bellhop health` for a port without a healthy service.
    private static func unhealthyText(port: String) throws -> String {
        let (status, text) = try BellhopProcess(["health"], settings: ["PORT": port]).finish()
        #expect(status == 1)
        return text
    }

    @Test(arguments: hosts) func runningService_isHealthy_onAnyAddress(_ host: String) throws {
        let service = try TestService.start(["host": host])
        let health = try BellhopProcess(["health"], settings: ["HOST": host, "PORT": "\(service.port)"])
        let (status, text) = health.finish()
        #expect(status == 0)
        #expect(text == "")
        #expect(health.leavings == [])
    }

    @Test func flagsAndFiles_countAsForServe() throws {
        let service = try TestService.start()
        #expect(try BellhopProcess(["health", "--port", "\(service.port)"]).finish().status == 0)
        let file = try service.directory.write("port: \(service.port)\n", to: "settings.yaml")
        #expect(try BellhopProcess(["health"], settings: ["CONFIG": file]).finish().status == 0)
    }

    @Test func unreachableService_isReportedInOneLine() throws {
        let text = try Self.unhealthyText(port: "1")
        #expect(text == "bellhop: 127.0.0.1:1 cannot be reached: Connection refused\n")
    }

    @Test func answerOtherThan200_isNotHealthy() throws {
        let socket = try Self.listener(answering: "HTTP/1.1 503 Service Unavailable\r\n\r\n")
        defer { socket.stop() }
        let text = try Self.unhealthyText(port: "\(socket.port)")
        #expect(text == "bellhop: 127.0.0.1:\(socket.port)/healthz answered 503\n")
    }

    @Test func otherProtocols_areNotHealthy() throws {
        let socket = try Self.listener(answering: "220 mail.example ESMTP\r\n")
        defer { socket.stop() }
        let text = try Self.unhealthyText(port: "\(socket.port)")
        #expect(text.hasSuffix("is not HTTP\n"))
    }

    @Test func silence_failsAfterThreeSeconds() throws {
        // The listener never accepts, so the connection waits in its backlog.
        let socket = try LoopbackListener()
        defer { socket.stop() }
        let start = ContinuousClock.now
        let text = try Self.unhealthyText(port: "\(socket.port)")
        #expect(text.hasSuffix("did not answer within 3 seconds\n"))
        #expect(.now - start >= .seconds(3))
    }

    @Test func portZero_isReportedAsUnknown() throws {
        let text = try Self.unhealthyText(port: "0")
        #expect(text.contains("the port in the settings is 0"))
    }

    /// Docker accepts only the exit codes 0 and 1.
    @Test func unusableSettings_areReportedToo() throws {
        let text = try Self.unhealthyText(port: "eighty")
        #expect(text.hasPrefix("bellhop: port (BELLHOP_PORT): eighty"))
    }
}
