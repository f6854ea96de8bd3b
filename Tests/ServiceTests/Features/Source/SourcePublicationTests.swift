import BellhopClient
import TestSupport
import Testing

/// Rows that the app's server does not publish for a while.
@Suite(.timed) struct SourcePublicationTests {
    @Test func recreatedPublication_isAReportedGap() async throws {
        let app = try AppDatabase()
        let (logger, lines) = RecordedLog.logger()
        let service = try TestService.start(app.settings.merging(["logLevel": "info"]) { $1 }, logger: logger)
        try await service.isReading()
        let stream = try await service.listenToTasks()
        try app.run("DROP PUBLICATION bellhop", "INSERT INTO tasks (id) VALUES ('missed')")
        try await eventually("the operator gets the remedy") {
            lines().contains { $0.contains("the publication bellhop does not exist: run bellhop source setup") }
        }
        try app.setUp()
        try await stream.next("stream:resync")
        try await eventually("it is read again") { lines().count { $0.contains("Reading the app's log.") } >= 2 }
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 1)
        let again = try await service.listenToTasks()
        try app.insertTasks(1...1)
        #expect(try await again.rows(until: "k1") == ["k1"])
        try await app.drop()
    }

    @Test func tableRemovedAndReadded_isAReportedGap() async throws {
        let app = try AppDatabase()
        let (logger, lines) = RecordedLog.logger()
        let service = try TestService.start(app.settings.merging(["logLevel": "info"]) { $1 }, logger: logger)
        try await service.isReading()
        let stream = try await service.listenToTasks()
        try app.run(
            "ALTER PUBLICATION bellhop DROP TABLE tasks", "INSERT INTO tasks (id) VALUES ('missed')",
            "INSERT INTO team_members VALUES ('m2', 'ada', 't2')")
        service.clock.advance(seconds: 11)
        try await eventually("the operator gets the remedy") {
            lines().contains { $0.contains("lacks public.tasks: run bellhop source setup") }
        }
        // The other tables are still read.
        try await eventually("the other rows are still read") { try await service.hasKey("team:t2:member", "ada") }
        try app.run("ALTER PUBLICATION bellhop ADD TABLE tasks")
        service.clock.advance(seconds: 11)
        try await stream.next("stream:resync")
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 1)
        try await app.drop()
    }

    @Test func tableRemovedAndReadded_whileNotReading_isAGap() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        try await service.restart {
            try app.run(
                "ALTER PUBLICATION bellhop DROP TABLE tasks", "INSERT INTO tasks (id) VALUES ('missed')",
                "ALTER PUBLICATION bellhop ADD TABLE tasks")
        }
        try await service.isReading()
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 1)
        try await app.drop()
    }

    @Test func operationRemovedAndReadded_isAReportedGap() async throws {
        let app = try AppDatabase()
        let (logger, lines) = RecordedLog.logger()
        let service = try TestService.start(app.settings.merging(["logLevel": "info"]) { $1 }, logger: logger)
        try await service.isReading()
        let stream = try await service.listenToTasks()
        try app.run("ALTER PUBLICATION bellhop SET (publish = 'insert')")
        service.clock.advance(seconds: 11)
        try await eventually("the operator gets the remedy") { lines().contains { $0.contains("lacks operations") } }
        try app.setUp()
        service.clock.advance(seconds: 11)
        try await stream.next("stream:resync")
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 1)
        try await app.drop()
    }

    /// Both changes happen between two checks, so that no check finds the publication incomplete.
    @Test(arguments: [
        ["ALTER PUBLICATION bellhop DROP TABLE tasks", "ALTER PUBLICATION bellhop ADD TABLE tasks"],
        [
            "ALTER PUBLICATION bellhop SET (publish = 'update, delete, truncate')",
            "ALTER PUBLICATION bellhop SET (publish = 'insert, update, delete, truncate')",
        ],
    ])
    func publicationThatIsIncomplete_betweenTwoChecks_isAGap_thatIsTold(changes: [String]) async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let stream = try await service.listenToTasks()
        try app.run(changes[0], "INSERT INTO tasks (id) VALUES ('missed')", changes[1])
        service.clock.advance(seconds: 11)
        try await stream.next("stream:resync")
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 1)
        try await app.drop()
    }

    @Test func setupThatRunsAgain_isNoGap() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let stream = try await service.listenToTasks()
        try app.setUp()
        try await service.restart { try app.setUp() }
        try await service.isReading()
        service.clock.advance(seconds: 11)
        let again = try await service.listenToTasks()
        try app.insertTasks(1...1)
        #expect(try await again.rows(until: "k1") == ["k1"])
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 0)
        stream.close()
        try await app.drop()
    }
}
