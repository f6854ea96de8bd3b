import BellhopClient
import Database
import Foundation
import MicroHTTP
import TestSupport
import Testing
import Values

@testable import Service

/// The metrics at `/metrics`, and their documentation for operators.
@Suite(.timed) struct MetricsTests {
    private static func value(_ sample: String, _ page: String) -> Double? {
        page.split(separator: "\n").first { $0.hasPrefix(sample + " ") }?.split(separator: " ").last.flatMap {
            Double($0)
        }
    }

    private static func page(_ service: TestService) async throws -> String {
        try await service.call("GET", "/metrics", as: .admin).text
    }

    @Test func everyMetric_isInTheListForOperators() async throws {
        let service = try TestService.start([
            "webhookURL": "https://app.example/hook",
            "webhookSecrets": "whsec_\(Data(count: 32).base64EncodedString())",
        ])
        let list = try String(
            contentsOf: repository.appendingPathComponent("Docs/operations.md"), encoding: .utf8)
        let page = try await Self.page(service)
        let names = page.matches(of: #/TYPE ([a-z_]+)/#).map { String($0.1) }
        #expect(names.count > 50)
        for name in names { #expect(list.contains("`\(name)`") || list.contains("`\(name){"), "\(name)") }
    }

    @Test func process_exportsTheStandardMetrics() async throws {
        let started = Date().timeIntervalSince1970
        let service = try TestService.start()
        let page = try await Self.page(service)
        let at = try #require(Self.value("process_start_time_seconds", page))
        #expect(at >= started - 1 && at <= Date().timeIntervalSince1970 + 1)
        #expect(try #require(Self.value("process_cpu_seconds_total", page)) > 0)
        #expect(try #require(Self.value("process_resident_memory_bytes", page)) > 1e6)
        let open = try #require(Self.value("process_open_fds", page))
        let most = try #require(Self.value("process_max_fds", page))
        #expect(open > 5 && open < most)
        let store = service.app.store.engine.rawValue.lowercased()
        #expect(page.contains(#"bellhop_build_info{version="\#(BellhopVersion.text)",store="\#(store)",replica=""#))
    }

    @Test func version_matchesTheContract() throws {
        #expect(
            String(decoding: Resource.bytes("openapi.yaml"), as: UTF8.self).contains(
                "\n  version: \(BellhopVersion.text)\n"))
    }

    @Test func endedStreams_areCountedByReason() async throws {
        let service = try TestService.start()
        func closed(_ reason: String) async throws -> Double {
            let page = try await Self.page(service)
            return try #require(Self.value("bellhop_streams_closed_total{reason=\"\(reason)\"}", page))
        }
        for ending in StreamEnding.allCases { #expect(try await closed(ending.rawValue) == 0) }
        let left = try await service.listen(as: .user("ada"))
        let revoked = try await service.listen(as: .user("bob"))
        left.close()
        try await eventually("the closing by the client is counted") {
            try await closed("client") + closed("reset") == 1
        }
        let answer = try await service.call(
            "POST", "/v1/revocations", as: .service(),
            #"{"userId": "bob", "issuedBefore": "\#(service.clock.now.adding(seconds: 1).rfc3339)"}"#)
        #expect(answer.isSuccess, "\(answer.text)")
        try await eventually("the closing by the service is counted") { try await closed("revoked") == 1 }
        withExtendedLifetime(revoked) {}
        #expect(StreamEnding(.overflow, as: nil) == .slow)
        #expect(StreamEnding(.timedOut, as: nil) == .timedOut)
        #expect(StreamEnding(.reset, as: .expired) == .expired)
    }
}
