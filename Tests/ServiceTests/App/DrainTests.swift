import Foundation
import TestSupport
import Testing

/// The shutdown of a service.
@Suite(.timed) struct DrainTests {
    private static func request(_ event: String, _ token: String) -> String {
        let body = #"{"id":"\#(event)","type":"visit.created","userId":"user-\#(event)"}"#
        return "POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n"
            + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body
    }

    /// Writes events one after the other, on one connection while it stays open, until no server listens. Events
    /// without an answer are recorded as lost.
    private static func write(
        _ name: String, to port: Int, _ token: String, _ written: Collected<String>, _ lost: Collected<String>
    ) {
        var connection: RawConnection?
        for number in 0... {
            let event = "\(name)-\(number)"
            if connection == nil { connection = try? RawConnection(port) }
            guard let open = connection else { return }
            do {
                try open.send(request(event, token))
                let answer = try open.readAnswer()
                if answer.status == 201 { written.append(event) } else { lost.append("\(event): \(answer.status)") }
                if answer.isLast { connection = nil }
            } catch {
                connection = nil
                lost.append("\(event): \(error)")
            }
        }
    }

    /// A draining service reports that it is not ready, and answers every request that arrives before the end.
    @Test func drainingServer_isNotReady_andAnswersEverything() async throws {
        let service = try TestService.start()
        let (port, token) = (service.port, service.token(for: .service()))
        let (written, lost, ended) = (Collected<String>(), Collected<String>(), Collected<Void>())
        for writer in 0..<16 {
            Thread {
                Self.write("w\(writer)", to: port, token, written, lost)
                ended.append(())
            }.start()
        }
        let known = try RawConnection(port)
        let ready = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
        try known.send(ready)
        #expect(try known.readAnswer().status == 200)
        try await eventually("events are written") { written.all.count >= 32 }

        // The service's clock stands still, so the drain lasts until the test advances it.
        async let restarted: Void = service.restart(drainSeconds: 60)
        try await eventually("the service is not ready") {
            let new = try RawConnection(port)
            try new.send(ready)
            return try new.readAnswer().status == 503
        }
        let since = written.all.count
        try await eventually("the service continues to answer") { written.all.count >= since + 32 }
        try known.send(ready)
        let last = try known.readAnswer()
        #expect(last.status == 503 && last.isLast)
        service.clock.advance(seconds: 60)
        try await eventually("all writers have stopped because no server listens") { ended.all.count == 16 }
        try await restarted
        #expect(lost.all == [])

        // Every acknowledged event is stored: repeating it returns its notification.
        let connection = try RawConnection(service.port)
        for event in written.all {
            try connection.send(Self.request(event, service.token(for: .service())))
            let answer = try connection.readAnswer()
            #expect(answer.status == 200, "\(event)")
            #expect(answer.body != Array(#"{"notification":null}"#.utf8), "\(event)")
        }
    }

    /// SIGTERM drains the built service for the configured time; SIGINT does not.
    @Test(arguments: [(SIGTERM, true), (SIGINT, false)])
    func terminated_drains_andInterrupted_doesNot(_ signal: Int32, _ drains: Bool) throws {
        let settings = [
            "JWT_SECRET": TestService.secret, "PORT": "0", "DATABASE": "sqlite::memory:", "DRAIN_SECONDS": "1",
        ]
        let service = try BellhopProcess(["serve"], settings: settings)
        _ = try service.awaitPort()
        service.send(signal)
        let (status, text) = service.finish()
        #expect(status == 0)
        #expect(text.contains("Bellhop is draining.") == drains, "\(text)")
        #expect(text.contains("Bellhop has stopped."), "\(text)")
    }

    @Test func hangupSignal_isIgnored() throws {
        let settings = ["JWT_SECRET": TestService.secret, "PORT": "0", "DATABASE": "sqlite::memory:"]
        let service = try BellhopProcess(["serve"], settings: settings)
        let port = try service.awaitPort()
        service.send(SIGHUP)
        for _ in 0..<10 {
            let raw = try RawConnection(port)
            try raw.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(try raw.readAnswer().status == 200)
        }
        service.terminate()
        #expect(service.finish().status == 0)
    }
}
