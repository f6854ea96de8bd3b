import Database
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// The intake of changes without a request.
@Suite(.timed) struct ChangeIntakeTests {
    @Test func eachChange_hasItsOwnOutcome() async throws {
        let probe = try FeedProbe()
        let runner = probe.service.app.runner
        let intake = ChangeIntake(memberships: MembershipRegistry(runner.settings.tables), restartStreams: { _ in })
        func insert(_ table: String, _ id: String) -> String {
            #"{"type": "INSERT", "schema": "public", "table": "\#(table)", "record": {"id": \#(id), "n": 1}, "old_record": null}"#
        }
        let items = [insert("notes", "1"), insert("notes", "1"), insert("unknown", "1"), insert("notes", "null")]
        var changes = try ChangeBatch(reading: Array("[\(items.joined(separator: ","))]".utf8)).changes
        try #require(changes.count == 4)
        for index in 0..<2 { changes[index].deduplicationID = "same" }
        let outcomes = try await runner.store.write { [changes] db in
            try runner.write(as: .system(tenant: "default"), in: db) { try intake.take(changes, $0) }
        }
        #expect(
            outcomes == [
                .accepted, .duplicate, .rejected(ChangeFault("/table", "the table public.unknown is not declared")),
                .rejected(ChangeFault("/record/id", "is null, but belongs to the primary key")),
            ])
    }
}
