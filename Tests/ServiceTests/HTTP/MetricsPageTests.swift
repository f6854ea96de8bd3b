import BellhopClient
import Foundation
import MicroHTTP
import Synchronization
import TestSupport
import Testing
import Threads

@testable import Service

/// Attack: a client without a token requests the metrics again and again. Harm: each text takes milliseconds, and the
/// reactor serves no other request meanwhile.
@Suite(.timed) struct MetricsPageTests {
    /// A page whose text is the number of times that it was made.
    private final class Counted: Sendable {
        let clock = ManualClock(nil)
        let page: MetricsPage
        let texts = Locked([String]())
        /// Opened by the test. The making of a text waits for it.
        let gate: Gate?
        private let made: MadeCount

        private final class MadeCount: Sendable { let value = Atomic<Int>(0) }

        init(age: Duration, gate: Gate? = nil) {
            self.gate = gate
            let (registry, made) = (MetricsRegistry(), MadeCount())
            self.made = made
            registry.register { text in
                let number = made.value.wrappingAdd(1, ordering: .relaxed).newValue
                gate?.wait()
                text.single("made", .counter, "", value: number)
            }
            page = MetricsPage(registry, age: age, clock: clock.clock)
        }

        deinit { page.stop() }

        var timesMade: Int { made.value.load(ordering: .relaxed) }

        func ask() {
            page.answer { [texts] answer in
                guard case .success(let response) = answer, case .bytes(let bytes) = response.body else { return }
                let text = String(decoding: bytes, as: UTF8.self).split(separator: "\n").last.map(String.init)
                texts.withLock { $0.append(text ?? "") }
            }
        }

        func answers(_ count: Int) async throws -> [String] {
            try await eventually("\(count) answers") { texts.withLock { $0.count } >= count }
            return texts.withLock { $0 }
        }
    }

    @Test func text_isMadeOnceASecond() async throws {
        let counted = Counted(age: .seconds(1))
        for count in 1...3 {
            counted.ask()
            #expect(try await counted.answers(count) == Array(repeating: "made 1", count: count))
        }
        counted.clock.advance(seconds: 1)
        counted.ask()
        #expect(try await counted.answers(4).last == "made 2")
    }

    /// The caller is a reactor.
    @Test func whoAsksMeanwhile_receivesTheSameText_andDoesNotWaitForIt() async throws {
        let counted = Counted(age: .seconds(1), gate: Gate())
        for _ in 0..<5 { counted.ask() }
        #expect(counted.texts.withLock { $0 }.isEmpty)
        counted.gate?.open()
        #expect(try await counted.answers(5) == Array(repeating: "made 1", count: 5))
    }

    /// A text whose making began too long ago does not count what happened before the question.
    @Test func whoAsksTooLate_receivesTheNextText() async throws {
        for (age, seconds) in [(Duration.zero, Int64(0)), (.seconds(1), 1)] {
            let counted = Counted(age: age, gate: Gate())
            counted.ask()
            try await eventually("the text is being made") { counted.timesMade == 1 }
            counted.clock.advance(seconds: seconds)
            for _ in 0..<3 { counted.ask() }
            counted.gate?.open()
            #expect(try await counted.answers(4) == ["made 1", "made 2", "made 2", "made 2"])
        }
    }

    @Test func service_answersWithTheTextOfThisSecond() async throws {
        let service = try TestService.start(["metricsSeconds": "1"])
        func requests() async throws -> String? {
            let page = try await service.call("GET", "/metrics").text
            return page.split(separator: "\n").first { $0.hasPrefix("bellhop_http_requests_read_total") }.map(
                String.init)
        }
        let first = try await requests()
        #expect(try await service.call("GET", "/healthz").status == 200)
        #expect(try await requests() == first)
        service.clock.advance(seconds: 1)
        #expect(try await requests() != first)
    }

    @Test func metrics_canHaveAnAddressOfTheirOwn() async throws {
        let service = try TestService.start(["metricsListen": "127.0.0.1:0"])
        let port = try #require(service.app.metricsPort)
        let own = BellhopClient(baseURL: "http://127.0.0.1:\(port)")
        let page = try await own.send("GET", "/metrics")
        #expect(page.status == 200)
        #expect(page.text.contains("bellhop_streams_open 0"))
        for path in ["/healthz", "/v1/me", "/"] {
            #expect(try await own.send("GET", path).status == 404, "\(path)")
        }
        #expect(try await service.call("GET", "/metrics").status == 404)
        #expect(try await service.call("GET", "/healthz").status == 200)
    }

    @Test func addresses_areReadStrictly() {
        for (text, host, port) in [
            ("127.0.0.1:9464", "127.0.0.1", 9464), ("[::1]:9464", "::1", 9464),
            ("metrics.internal:0", "metrics.internal", 0),
        ] {
            let address = ListenAddress(text)
            #expect(address?.host == host && address?.port == port, "\(text)")
        }
        for text in ["9464", ":9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:9464", "[::1", "[]:1", "a:-1"]
        {
            #expect(ListenAddress(text) == nil, "\(text)")
        }
    }
}
