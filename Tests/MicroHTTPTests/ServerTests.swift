import Foundation
import Synchronization
import TestSupport
import Testing

@testable import MicroHTTP

/// The server over real sockets: its answers, its refusals, and the completeness of bodies and headers.
@Suite(.timed) struct ServerTests {
    let service: EchoServer

    init() throws { service = try EchoServer() }

    /// Sends a request and returns its connection.
    private func get(_ path: String, of other: EchoServer? = nil) throws -> RawConnection {
        let raw = try RawConnection((other ?? service).port)
        try raw.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
        return raw
    }

    @Test func requests_areAnswered_oneAfterTheOtherOnAConnection() throws {
        let raw = try RawConnection(service.port)
        try raw.send("GET /hello?name=a%20b&flag HTTP/1.1\r\nHost: x\r\nX-Name: Ä\r\n\r\n")
        #expect(try raw.read(until: "hello a b").hasPrefix("HTTP/1.1 200"))
        // Three pipelined requests. The second one waits for another thread.
        try raw.send(
            "GET /hello?name=1 HTTP/1.1\r\nHost: x\r\n\r\nGET /later?name=2 HTTP/1.1\r\nHost: x\r\n\r\n"
                + "GET /hello?name=3 HTTP/1.1\r\nHost: x\r\n\r\n")
        let answers = try raw.read(until: "hello 3")
        let order = ["hello 1", "later 2", "hello 3"].compactMap { answers.range(of: $0)?.lowerBound }
        #expect(order.count == 3)
        #expect(order == order.sorted())
    }

    /// Answers without a body reuse the fields of an earlier answer on their connection.
    @Test func answersWithoutBody_haveTheirOwnFields() throws {
        let raw = try RawConnection(service.port)
        let queries = [
            "x-a=1&x-b=2", "x-a=1&x-b=3&x-c=4", "x-b=3", "", "x-c=5&x-c=6&x-a=1", "x-c=6&x-a=1", "x-a=1&x-a=1", "x-a=1",
        ]
        for query in queries {
            try raw.send("GET /fields?\(query) HTTP/1.1\r\nHost: x\r\n\r\n")
            let answer = try raw.read(until: "\r\n\r\n")
            let fields = answer.components(separatedBy: "\r\n").filter { $0.hasPrefix("x-") }
            let wanted = query.split(separator: "&").map { $0.replacingOccurrences(of: "=", with: ": ") }
            #expect(fields.sorted() == wanted.sorted())
            #expect(answer.contains("X-Decorated: yes\r\n"))
            // An answer with a body in between.
            try raw.send("GET /hello?name=1 HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(try !raw.read(until: "hello 1").contains("x-"))
        }
    }

    @Test func port_isExclusive_withSeveralReactors() throws {
        let first = try SocketAddress.listen(host: "127.0.0.1", port: 0, count: 2, backlog: 16)
        defer { for descriptor in first.descriptors { close(descriptor) } }
        #expect(first.descriptors.count == 2)
        for count in [1, 2] {
            #expect(throws: ServerError.self) {
                try SocketAddress.listen(host: "127.0.0.1", port: first.port, count: count, backlog: 16)
            }
        }
    }

    @Test func bodies_arriveWhole_alsoInPiecesAndChunks() throws {
        let raw = try RawConnection(service.port)
        for piece in ["POST /echo HTTP/1.1\r\nHo", "st: x\r\nContent-Length: 10\r\n\r\n01234", "56789"] {
            try raw.send(piece)
        }
        _ = try raw.read(until: "0123456789")
        try raw.send(
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
        _ = try raw.read(until: "abcdefg")
        try raw.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        #expect(try raw.read(until: "100 Continue").hasPrefix("HTTP/1.1 100"))
        try raw.send("ok")
        _ = try raw.read(until: "ok")
    }

    @Test(arguments: [
        ("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
        ("DELETE /hello HTTP/1.1\r\nHost: x\r\n\r\n", "405"),
        ("GET /hello/%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
        ("GET /hello?name=%00 HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", "413"),
        ("GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", "413"),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "400"),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", "400"),
        ("OPTIONS /hello HTTP/1.1\r\nHost: x\r\n\r\n", "204"),
        ("GET * HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
        ("OPTIONS *?a HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
        ("HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
    ])
    func invalidHeads_areAnswered_beforeTheBody(_ request: String, _ status: String) throws {
        let raw = try RawConnection(service.port)
        try raw.send(request)
        let answer = try raw.read(until: "\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 \(status)"), "\(answer)")
        #expect(answer.contains("X-Decorated: yes"))
    }

    /// RFC 9110 §9.3.7.
    @Test func optionsOfTheServer_namesTheMethodsOfAllRoutes() throws {
        let raw = try RawConnection(service.port)
        try raw.send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
        let answer = try raw.read(until: "\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 204"), "\(answer)")
        #expect(answer.contains("Allow: GET, POST, HEAD, OPTIONS\r\n"), "\(answer)")
    }

    /// The values of several lines are one list (RFC 9110 §5.3), also when the head is no longer in the library's buffer.
    @Test(arguments: [
        ("X-Name: a\r\nX-Other: b\r\nx-name: c, d\r\nX-NAME: e", "a, c, d, e"), ("X-Name:\r\nX-Name: a", ", a"),
        ("X-Name: a", "a"),
    ])
    func repeatedLines_areOneList(_ lines: String, _ value: String) throws {
        let raw = try RawConnection(service.port)
        try raw.send("POST /again HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\(lines)\r\n\r\nabc")
        #expect(try String(decoding: raw.readAnswer().body, as: UTF8.self) == "second abc \(value)")
    }

    @Test func absoluteForm_hasTheSamePathAndQuery() throws {
        let raw = try RawConnection(service.port)
        try raw.send("GET http://x:80/hello?name=you&more=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try raw.read(until: "hello you").hasPrefix("HTTP/1.1 200"))
    }

    /// An answer to HEAD has no body, also if a body of the request is refused before its end.
    @Test func refusalOfABody_hasNoBodyItself_inAnAnswerToHEAD() throws {
        let raw = try RawConnection(service.port)
        try raw.send("HEAD /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        let answer = try raw.read()
        #expect(answer.hasPrefix("HTTP/1.1 413"), "\(answer)")
        #expect(answer.hasSuffix("\r\n\r\n"), "\(answer)")
    }

    @Test func chunkedBody_thatGrowsTooLarge_isRefused() throws {
        let raw = try RawConnection(service.port)
        let chunk = "32\r\n" + String(repeating: "x", count: 50) + "\r\n"
        try raw.send(
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)\(chunk)\(chunk)0\r\n\r\n")
        #expect(try raw.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 413"))
        // A body that never ends is cut off.
        let endless = try RawConnection(service.port)
        try endless.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        let large = "4000\r\n" + String(repeating: "x", count: 0x4000) + "\r\n"
        #expect(throws: (any Error).self) { for _ in 0..<10_000 { try endless.send(large) } }
    }

    @Test func handler_runsAgain_withTheSameRequest() throws {
        let raw = try RawConnection(service.port)
        try raw.send("POST /again HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nX-Name: again\r\n\r\nabc")
        #expect(try raw.read(until: "second abc again").contains("200"))
    }

    @Test func deferredRequests_doNotTimeOut_onAFreshlyBootedMachine() throws {
        // A timeout longer than the machine's uptime, as in the first minute after it has started.
        let service = try EchoServer(answerSeconds: 1_000_000_000)
        let raw = try get("/deferred", of: service)
        service.waitUntilDeferred(1)
        // The reactor checks for expired requests before it answers this one.
        let next = try get("/hello?name=next", of: service)
        _ = try next.read(until: "hello next")
        service.answerDeferred()
        #expect(try raw.read(until: "released").hasPrefix("HTTP/1.1 200"))
    }

    @Test func clientThatDisconnects_whileItsRequestWaits_affectsNoOther() throws {
        for _ in 0..<50 { _ = try get("/deferred") }
        let patient = try get("/deferred")
        service.waitUntilDeferred(51)
        service.answerDeferred()
        _ = try patient.read(until: "released")
        let next = try get("/hello?name=alive")
        _ = try next.read(until: "hello alive")
    }

    @Test func answersFromOtherThreads_areNotMixedUp() throws {
        DispatchQueue.concurrentPerform(iterations: 8) { worker in
            do {
                let raw = try RawConnection(service.port)
                for number in 0..<100 {
                    try raw.send("GET /later?name=\(worker)-\(number)! HTTP/1.1\r\nHost: x\r\n\r\n")
                    let answer = try raw.read(until: "later \(worker)-\(number)!")
                    #expect(answer.hasPrefix("HTTP/1.1 200"))
                }
            } catch {
                Issue.record(error)
            }
        }
    }

    @Test func streams_areHandedToAShard_andReceiveData() throws {
        let raw = try get("/stream")
        let head = try raw.read(until: "opened\n")
        #expect(head.hasPrefix("HTTP/1.1 200"))
        #expect(head.contains("Connection: close"))
        service.streams.all[0].post("to all\n")
        #expect(try raw.read(until: "to all\n").hasSuffix("to all\n"))
        #expect(service.streams.counters.opened == 1 && service.streams.counters.closed == 0)
        raw.finishSending()
        #expect(try raw.read() == "")
        let many = try (0..<20).map { _ in try RawConnection(service.port) }
        for raw in many { try raw.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n") }
        for raw in many.prefix(8) { _ = try raw.read(until: "opened\n") }
    }

    @Test func shutdown_finishesRequests_closesStreams_andEnds() throws {
        let stream = try get("/stream")
        _ = try stream.read(until: "opened\n")
        let deferred = try get("/deferred")
        service.waitUntilDeferred(1)
        let stopped = DispatchSemaphore(value: 0)
        Thread {
            service.server.shutdown(deadlineSeconds: patience / .seconds(1))
            stopped.signal()
        }.start()
        service.answerDeferred()
        #expect(try deferred.read(until: "released").hasPrefix("HTTP/1.1 200"))
        #expect(try stream.read() == "bye\n")
        stopped.wait()
        #expect(throws: (any Error).self) { try RawConnection(service.port) }
    }

    @Test func shutdown_answersDeferredRequests() throws {
        let deferred = try get("/deferred")
        service.waitUntilDeferred(1)
        service.server.shutdown(deadlineSeconds: 0.2)
        #expect(try deferred.read().hasPrefix("HTTP/1.1 503"))
        service.answerDeferred()
    }

    @Test func shutdown_answersPipelinedRequestsBehindDeferredOnes() throws {
        let deferred = try RawConnection(service.port)
        try deferred.send(String(repeating: "GET /deferred HTTP/1.1\r\nHost: x\r\n\r\n", count: 12))
        service.waitUntilDeferred(1)
        // Stopping the library with a suspended connection would abort the process.
        service.server.shutdown(deadlineSeconds: 0.2)
        #expect(try deferred.read().hasPrefix("HTTP/1.1 503"))
        service.answerDeferred()
    }

    @Test func portThatIsTaken_isReportedClearly() throws {
        #expect(throws: ServerError.self) { try EchoServer(port: service.port) }
        #expect(throws: ServerError.self) { try EchoServer(host: "no.such.host.invalid") }
        for port in [-1, 65_536] { #expect(throws: ServerError.self) { try EchoServer(port: port) } }
        _ = try EchoServer(host: "::1")
    }

    /// Queues jobs while the only thread of a pool is busy. Returns the order in which they ran, and those refused.
    private func order(
        _ jobs: [(String, WorkerPool.Owner?)], ownerMax: Int
    ) -> (done: [String], refused: [String]) {
        let pool = WorkerPool(name: "test", threads: 1, queueMax: 100, ownerMax: ownerMax)
        let (gate, started) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let done = Collected<String>()
        _ = pool.submit {
            started.signal()
            gate.wait()
        }
        started.wait()
        let refused = jobs.filter { name, owner in !pool.submit(of: owner) { done.append(name) } }
        #expect(pool.depth == jobs.count - refused.count)
        gate.signal()
        pool.shutdown()
        #expect(pool.depth == 0)
        return (done.all, refused.map(\.0))
    }

    /// Attack: one user queues many jobs. Harm: all other users wait behind them.
    @Test func workers_takeTurnsBetweenOwners() {
        // The queue has room for a8, but the owner's share is full.
        let many = (0..<9).map { number in ("a\(number)", WorkerPool.Owner(group: 1, member: 1)) }
        let few = (0..<2).map { number in ("b\(number)", WorkerPool.Owner(group: 1, member: 2)) }
        let (done, refused) = order(many + few + [("c", WorkerPool.Owner(group: 1, member: nil))], ownerMax: 8)
        #expect(done == ["a0", "b0", "c", "a1", "b1", "a2", "a3", "a4", "a5", "a6", "a7"])
        #expect(refused == ["a8"])
    }

    /// Attack: many users and the backend of one tenant queue jobs. Harm: other tenants wait behind them.
    @Test func workers_takeTurnsBetweenTenants() {
        let users = (0..<4).map { (user: Int) in ("a\(user)", WorkerPool.Owner(group: 1, member: user)) }
        let backend = (0..<2).map { number in ("backend\(number)", WorkerPool.Owner(group: 1, member: nil)) }
        let other = (0..<2).map { number in ("b\(number)", WorkerPool.Owner(group: 2, member: 0)) }
        let (done, _) = order(users + backend + other + [("nobody", nil)], ownerMax: 8)
        #expect(done == ["a0", "b0", "nobody", "a1", "b1", "a2", "a3", "backend0", "backend1"])
    }

    @Test func workers_refuseMoreThanTheirQueueMax_andFinishWhatTheyTook() {
        let pool = WorkerPool(name: "test", threads: 1, queueMax: 2)
        let gate = DispatchSemaphore(value: 0)
        let started = DispatchSemaphore(value: 0)
        let done = Atomic<Int>(0)
        #expect(
            pool.submit {
                started.signal()
                gate.wait()
            })
        started.wait()
        for _ in 0..<2 { #expect(pool.submit { done.wrappingAdd(1, ordering: .relaxed) }) }
        #expect(!pool.submit {})
        gate.signal()
        pool.shutdown()
        #expect(done.load(ordering: .relaxed) == 2)
        #expect(!pool.submit {})
    }
}
