import BellhopClient
import Foundation
import TestSupport
import Testing

/// How the built service ends.
@Suite(.timed) struct DrainTests {
    private static let backend = TestService.sign([
        "sub": "backend", "role": "service_role", "iat": .integer(Int64(Date().timeIntervalSince1970)),
        "exp": .integer(Int64(Date().timeIntervalSince1970) + 3600),
    ])

    private static func request(_ event: String) -> String {
        let body = #"{"id":"\#(event)","type":"visit.created","userId":"user-\#(event)"}"#
        return "POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(backend)\r\n"
            + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body
    }

    /// Writes one event after the other, on one connection as long as that is open, until nobody listens any more. Whatever
    /// is not answered then is lost.
    private static func write(
        _ name: String, to port: Int, _ written: Collected<String>, _ lost: Collected<String>
    ) {
        var connection: RawConnection?
        for number in 0... {
            let event = "\(name)-\(number)"
            if connection == nil { connection = try? RawConnection(port) }
            guard let open = connection else { return }
            do {
                try open.send(request(event))
                let answer = try open.readAnswer()
                if answer.status == 201 { written.append(event) } else { lost.append("\(event): \(answer.status)") }
                if answer.isLast { connection = nil }
            } catch {
                connection = nil
                lost.append("\(event): \(error)")
            }
        }
    }

    @Test func terminated_servesOn_asNotReady_andLosesNothing() throws {
        let directory = try TemporaryDirectory()
        let settings = [
            "JWT_SECRET": TestService.secret, "PORT": "0", "DATABASE": "sqlite:\(directory.file("a.sqlite"))",
            "DRAIN_SECONDS": "2",
        ]
        let service = try BellhopProcess(["serve"], settings: settings)
        let port = try service.awaitPort()
        let (written, lost, ended) = (Collected<String>(), Collected<String>(), Collected<Void>())
        for writer in 0..<16 {
            Thread {
                Self.write("w\(writer)", to: port, written, lost)
                ended.append(())
            }.start()
        }
        let known = try RawConnection(port)
        let ready = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
        try known.send(ready)
        #expect(try known.readAnswer().status == 200)
        #expect(written.wait(for: 100).count >= 100)

        service.terminate()
        try service.awaitText("Bellhop is draining.")
        let before = written.all.count
        var status = 200
        while status == 200 {
            let new = try RawConnection(port)
            try new.send(ready)
            status = try new.readAnswer().status
        }
        #expect(status == 503)
        #expect(written.wait(for: before + 50).count >= before + 50, "it serves on")
        try known.send(ready)
        let last = try known.readAnswer()
        #expect(last.status == 503 && last.isLast)
        #expect(ended.wait(for: 16).count == 16)
        #expect(service.finish().status == 0)
        #expect(lost.all == [])

        // What was answered is there: the same event again is answered with the first one's notification.
        let next = try BellhopProcess(["serve"], settings: settings)
        let connection = try RawConnection(try next.awaitPort())
        for event in written.all {
            try connection.send(Self.request(event))
            let answer = try connection.readAnswer()
            #expect(answer.status == 200, "\(event)")
            #expect(answer.body != Array(#"{"notification":null}"#.utf8), "\(event)")
        }
        next.send(SIGINT)
        #expect(next.finish().status == 0)
    }

    @Test func hangingUp_endsNothing() throws {
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
