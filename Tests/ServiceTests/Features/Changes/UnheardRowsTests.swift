import BellhopClient
import Logging
import TestSupport
import Testing

@testable import Service

extension UnheardRows {
    /// Misses no rows.
    static var none: UnheardRows {
        UnheardRows(metrics: MetricsRegistry(), logger: Logger(label: "test")) { _ in false }
    }
}

/// Rows and tokens that disagree about tenants are noticed. `notes` of the probe are of the tenant `default`, `members` of
/// the one that their column names.
@Suite(.timed) struct UnheardRowsTests {
    private let lines: @Sendable () -> [String]
    private let probe: FeedProbe

    init() throws {
        let (logger, lines) = RecordedLog.logger()
        self.lines = lines
        probe = FeedProbe(try TestService.start(FeedProbe.settings(["logLevel": "warning"]), logger: logger))
    }

    /// Sends a row of `notes` and one of `members`, which the service accepts.
    private func send(_ number: Int) async throws {
        let member: JSON = ["id": .integer(Int64(number)), "tenant": "A", "user_id": "ada", "team_id": "t"]
        let answer = try await probe.send([
            School.insert("notes", FeedProbe.note("n\(number)")), School.insert("members", member),
        ])
        #expect(answer.status == 202 && answer.json["accepted"] == 2)
    }

    private func counted(_ table: String) async throws -> String? {
        let name = "bellhop_changes_unheard_total{table=\"public.\(table)\"} "
        let text = try await probe.service.call("GET", "/metrics").text
        return text.split(separator: "\n").first { $0.hasPrefix(name) }.map { String($0.dropFirst(name.count)) }
    }

    @Test(arguments: [
        (user: "A", missed: "notes", received: "members", remedy: "tenant: {column: …}"),
        (user: nil, missed: "members", received: "notes", remedy: "set BELLHOP_CLAIM_TENANT"),
    ])
    func rowsOfNobodysTenant_areCounted_andLoggedOnce(
        user: String?, missed: String, received: String, remedy: String
    ) async throws {
        // Without streams, nothing is known about the users.
        try await send(0)
        #expect(try await counted(missed) == nil)
        let stream = try await probe.service.listen(as: .user("eve", tenant: user))
        defer { stream.close() }
        for number in 1...3 { try await send(number) }
        #expect(try await counted(missed) == "3")
        #expect(try await counted(received) == nil)
        let logged = lines().filter { $0.contains("but not received") }
        #expect(logged.count == 1)
        #expect(
            logged.first?.contains("public.\(missed)") == true && logged.first?.contains(remedy) == true, "\(logged)")
    }

    /// A school whose pupils are asleep while another one's are awake is no mistake.
    @Test func rowsOfAnotherNamedTenant_areNotCounted() async throws {
        let stream = try await probe.service.listen(as: .user("eve", tenant: "B"))
        defer { stream.close() }
        try await send(1)
        #expect(try await counted("members") == nil)
    }

    @Test func refusedRows_areNotCounted() async throws {
        let stream = try await probe.service.listen(as: .user("eve", tenant: "A"))
        defer { stream.close() }
        let answer = try await probe.send(School.insert("notes", ["body": "no key"]))
        #expect(answer.json["accepted"] == 0)
        #expect(try await counted("notes") == nil)
    }
}
