import Database
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// The intake of changes without a request.
@Suite(.timed) struct ChangeIntakeTests {
    /// Returns insertions into tables, by the table and the JSON of the id.
    private static func insertions(_ rows: (table: String, id: String)...) throws -> [TableChange] {
        let items = rows.map { table, id in
            #"{"type": "INSERT", "schema": "public", "table": "\#(table)", "record": {"id": \#(id), "n": 1}, "old_record": null}"#
        }
        return try ChangeBatch(reading: Array("[\(items.joined(separator: ","))]".utf8)).changes
    }

    private static func intake(_ runner: TransactionRunner) -> ChangeIntake {
        ChangeIntake(
            memberships: MembershipRegistry(runner.settings.tables), unheard: .none, restartStreams: { _ in })
    }

    @Test func eachChange_hasItsOwnOutcome() async throws {
        let probe = try FeedProbe()
        let runner = probe.service.app.runner
        let intake = Self.intake(runner)
        var changes = try Self.insertions(("notes", "1"), ("notes", "1"), ("unknown", "1"), ("notes", "null"))
        try #require(changes.count == 4)
        for index in 0..<2 { changes[index].deduplicationID = "same" }
        let outcomes = try await runner.store.write { [changes] db in
            try runner.write(as: .system(tenant: "default"), in: db) { try intake.take(changes, $0) }
        }
        #expect(
            outcomes == [
                .accepted, .duplicate, .rejected(ChangeFault("/table", TableCatalog.undeclared("public", "unknown"))),
                .rejected(ChangeFault("/record/id", "is null, but belongs to the primary key")),
            ])
    }

    @Test func rejectedRowOfTheLog_isNamedByItsTableAndPlace() throws {
        let probe = try FeedProbe()
        let runner = probe.service.app.runner
        let source = SourceIntake(runner: runner, changes: Self.intake(runner), slot: "test", receivers: [:])
        let changes = try Self.insertions(("notes", "1"), ("unknown", "1"))
        let outcome = try source.write(.init(changes.map { .change($0) }, from: nil, to: nil))
        #expect(outcome.taken == 1)
        #expect(outcome.rejected == ["public.unknown: /table \(TableCatalog.undeclared("public", "unknown"))"])
    }
}
