import BellhopClient
import Database
import Foundation
import PostgresServer
import Rows
import TestSupport
import Testing

@testable import Service

/// Rows from the app's own log, read over a real server's replication.
@Suite(.timed) struct SourceTests {
    /// The transaction fails, like such a request, because no user would receive the event.
    @Test func keyWithoutAPrefix_isRefusedByTheFunction() async throws {
        let app = try AppDatabase()
        let error = #expect(throws: (any Error).self) {
            try app.run(#"SELECT bellhop.publish('order:changed', "to" => array['everyone', 'ada'], data => '1')"#)
        }
        #expect(error.map { "\($0)" }?.contains("the key \"ada\" matches no user") == true)
        try app.run(#"SELECT bellhop.publish('order:changed', "to" => array['everyone', 'user:ada'], data => '1')"#)
        try app.run("SELECT bellhop.publish('order:changed', topic => 'order:ada', data => '1')")
        try await app.drop()
    }

    /// Without a slot, changes of rows would be missed. With one, the app's server may be away.
    @Test func service_isNotReady_beforeTheFirstSlot() async throws {
        let app = try AppDatabase()
        let partition = try PartitionProxy(to: app.server.port)
        defer { partition.stop() }
        partition.cut()
        var settings = app.settings
        settings["source"] = settings["source"]?.replacingOccurrences(
            of: ":\(partition.target)/", with: ":\(partition.port)/")
        let service = try TestService.start(settings)
        let ready = try await service.call("GET", "/readyz")
        #expect(ready.refusal == "503 not_ready")
        #expect(ready.json["detail"].string?.contains("has no slot yet") == true)
        partition.heal()
        try await eventually("the service is ready") { try await service.call("GET", "/readyz").status == 200 }
        #expect(try app.look("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '\(app.name)'") == "1")
        partition.cut()
        try await service.restart()
        try await eventually("the service is ready again") { try await service.call("GET", "/readyz").status == 200 }
        partition.heal()
        try await service.isReading()
        try await app.drop()
    }

    @Test func rows_comeInOrder_onceEach_overRestarts() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let stream = try await service.listenToTasks()
        try app.run(
            "INSERT INTO tasks (id, note) VALUES ('k1', 'a')", "UPDATE tasks SET note = 'b'", "DELETE FROM tasks",
            "BEGIN", "INSERT INTO tasks (id) VALUES ('never')", "ROLLBACK")
        let changes = [
            try await stream.next("table:change"), try await stream.next("table:change"),
            try await stream.next("table:change"),
        ]
        #expect(changes.map { $0.json["type"].string } == ["INSERT", "UPDATE", "DELETE"])
        #expect(changes[1].json["record"]["note"].string == "b")
        let position = stream.lastEventID
        stream.close()
        // While no service reads, the slot retains the log.
        for round in 0..<3 {
            try await service.restart()
            try app.insertTasks((round * 10 + 10)...(round * 10 + 19))
        }
        try await eventually("all rows are published") { try service.publishedRows() == 33 }
        let resumed = try await service.listen(as: .user("ada"), lastEventID: position)
        try await resumed.subscribe([["table": "tasks"]], since: position)
        #expect(try await resumed.rows(until: "k39") == (10...39).map { "k\($0)" })
        #expect(try await service.metric("bellhop_source_rejected_total") == 0)
        try await app.drop()
    }

    @Test func existingMemberships_areReadFirst_andFollowed() async throws {
        let app = try AppDatabase()
        try app.run(
            "INSERT INTO team_members SELECT 'x' || n, 'u' || n, 't1' FROM generate_series(1, 900) AS n")
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let last = try await service.listen(as: .user("u900"))
        #expect(try await service.hasKey("team:t1:member", "u900"))
        let ben = try await service.listen(as: .user("ben"))
        try app.run("INSERT INTO team_members VALUES ('m2', 'ben', 't1')")
        try await ben.nextScope(with: "team:t1:member")
        try app.run("DELETE FROM team_members WHERE id = 'm2'")
        try await ben.nextScope(without: "team:t1:member")
        try app.run("TRUNCATE team_members")
        try await last.nextScope(without: "team:t1:member")
        try await app.drop()
    }

    @Test func truncatedMemberships_countAsDeletedRows() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let stream = try await service.listen(as: .user("ada"))
        try await stream.subscribe([["table": "team_members"]])
        try app.run("TRUNCATE team_members")
        let change = try await stream.next("table:change").json
        #expect(change["type"].string == "DELETE")
        #expect(change["oldRecord"]["id"].string == "m1")
        try await stream.nextScope(without: "team:t1:member")
        // More rows than the limit of a delivery: all streams restart, and no row has its own event.
        try app.run(
            "INSERT INTO team_members SELECT 'x' || n, 'u' || n, 't1' FROM generate_series(1, 1001) AS n",
            "INSERT INTO team_members VALUES ('m2', 'ada', 't2')")
        try await stream.nextScope(with: "team:t2:member")
        try app.run("TRUNCATE team_members")
        try await stream.next("stream:resync")
        try await eventually("it is removed") { try await !service.hasKey("team:t2:member", "ada") }
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 0)
        try await app.drop()
    }

    /// One statement removes more memberships than an event holds.
    @Test func truncationOfManyMemberships_isSeveralEvents() async throws {
        let app = try AppDatabase()
        let count = effort(quick: 1_100, full: 2_500, long: 50_000)
        try app.run(
            "INSERT INTO team_members SELECT 'x' || n, 'u' || n, 't1' FROM generate_series(1, \(count)) AS n")
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let last = "u\(count)"
        try await eventually("the rows are read") { try await service.hasKey("team:t1:member", last) }
        let known = try service.app.store.read { try EventLog.newestSequence(in: $0) }
        try app.run("TRUNCATE team_members")
        for user in ["ada", "u1", last] {
            try await eventually("the rows are gone") { try await !service.hasKey("team:t1:member", user) }
        }
        let facts = try service.app.store.read { db in
            try db.rows(
                """
                SELECT data FROM \(EventLog.events, unscoped: EventLog.bookkeeping)
                WHERE sequence > \(known) AND name = \(MembershipRegistry.event.description)
                """
            ) { MembershipChange(reading: try $0.bytes(0))?.update.facts.count ?? 0 }
        }
        #expect(facts.reduce(0, +) == count + 1 && facts.allSatisfy { $0 <= MembershipRegistry.factsPerEventMax })
        try app.run("INSERT INTO team_members VALUES ('m1', 'ada', 't2')")
        try await eventually("later rows count") { try await service.hasKey("team:t2:member", "ada") }
        try await app.drop()
    }

    /// A large transaction is taken in by parts, and continues after a restart where it stopped.
    @Test func largeTransaction_isStoredInParts_onceEach_acrossRestarts() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let count = effort(quick: 6_000, full: 20_000, long: 200_000)
        try app.insertTasks(1...count)
        for _ in 0..<3 {
            let before = try service.publishedRows()
            try await eventually("more rows are published") {
                let now = try service.publishedRows()
                return now > before || now == count
            }
            try await service.restart()
        }
        try await eventually("all rows are published") { try service.publishedRows() >= count }
        try app.insertTasks((count + 1)...(count + 1))
        try await eventually("the next row is published") { try service.publishedRows() > count }
        #expect(try service.publishedRows() == count + 1)
        try await app.drop()
    }

    @Test func messages_arePublishedWithTheirTransaction_orNever() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let stream = try await service.listen(as: .user("ada"), topics: ["order:ada"])
        try app.run(
            "BEGIN",
            "SELECT bellhop.notify('ada', 'visit.created', jsonb_build_object('visitId', 'v0', 'visitType', 'Never'))",
            "ROLLBACK",
            "SELECT bellhop.notify('ada', 'no.such.kind')", "SELECT bellhop.publish('badges:update', data => '1')",
            "SELECT pg_logical_emit_message(true, 'bellhop', 'no JSON')",
            "SELECT pg_logical_emit_message(false, 'bellhop', '{}')",
            "SELECT bellhop.notify('ada', 'visit.created', jsonb_build_object('visitId', 'v1', 'visitType', 'Check-up'))",
            """
            SELECT bellhop.publish('order:changed', "to" => array['user:ada'], data => '{"orderId": "o1"}')
            """,
            "SELECT bellhop.publish('order:moved', topic => 'order:ada', data => '[1]', collapse => 'o')")
        let notification = try await stream.next("notification:created")
        #expect(notification.json["data"]["visitId"].string == "v1")
        #expect(try await stream.next("order:changed").json["orderId"].string == "o1")
        #expect(try await stream.next("order:moved").json.array?.first?.int == 1)
        // The reader counts a piece of the log after its commit, and the commit has published the events.
        try await eventually("the rejected messages are counted") {
            try await service.metric("bellhop_source_rejected_total") ?? 0 >= 2
        }
        #expect(try await service.metric("bellhop_source_rejected_total") == 2)
        #expect(try await service.metric("bellhop_source_unsigned_total") == 1)
        try await app.drop()
    }

    @Test func unacceptableRows_areRejectedAlone() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let stream = try await service.listenToTasks()
        try app.run(
            "INSERT INTO tasks (id, tenant) VALUES ('k1', NULL)",
            "INSERT INTO tasks (id, note) VALUES ('k2', repeat('x', 1100000))",
            "INSERT INTO tasks (id) VALUES ('k3')")
        #expect(try await stream.rows(until: "k3") == ["k3"])
        // They are counted after the rows are stored, and so perhaps after these have arrived.
        try await eventually("both are counted") { try await service.metric("bellhop_source_rejected_total") == 2 }
        try await app.drop()
    }

    @Test func tableAddedToTheFile_isReadAtTheNextStart() async throws {
        let app = try AppDatabase(isSetUp: false)
        let later = try #require(AppDatabase.tables.range(of: "  - table: team_members"))
        let end = try #require(AppDatabase.tables.range(of: "  - table: tasks"))
        let without = AppDatabase.tables.replacingCharacters(in: later.lowerBound..<end.lowerBound, with: "")
        let directory = try TemporaryDirectory()
        let before = try directory.write(without, to: "before.yaml")
        try app.setUp()
        let service = try TestService.start(app.settings.merging(["tables": before]) { $1 })
        try await service.isReading()
        #expect(try await !service.hasKey("team:t1:member", "ada"))
        let file = try #require(app.settings["tables"])
        try await service.restart(with: ["tables": file]) {
            try app.run("INSERT INTO team_members VALUES ('m2', 'ben', 't1')")
        }
        // The table is read once the log is taken in up to its first look at the catalog.
        for user in ["ada", "ben"] {
            try await eventually("the table is read") { try await service.hasKey("team:t1:member", user) }
        }
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 0)
        try await app.drop()
    }

    @Test func tablesChange_whileTheirRowsCome() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let stream = try await service.listenToTasks()
        try app.run(
            "INSERT INTO tasks (id) VALUES ('k1')", "CREATE EXTENSION hstore",
            "ALTER TABLE tasks ADD COLUMN extra hstore DEFAULT 'a=>1', DROP COLUMN note",
            "INSERT INTO tasks (id) VALUES ('k2')", "ALTER TABLE tasks RENAME COLUMN extra TO more",
            "UPDATE tasks SET more = 'b=>\"2 \\\"x\\\"\", c=>NULL' WHERE id = 'k2'", "DROP TABLE tasks",
            "CREATE TABLE tasks (id text PRIMARY KEY, tenant text, team_id text)",
            "INSERT INTO tasks VALUES ('unheard', 'default', 't1')",
            "INSERT INTO team_members VALUES ('m2', 'ada', 't2')")
        var records: [JSON] = []
        for _ in 0..<3 { records.append(try await stream.next("table:change").json["record"]) }
        #expect(records[0].object?.keys.sorted() == ["id", "note", "team_id", "tenant"])
        #expect(records[1].object?.keys.sorted() == ["extra", "id", "team_id", "tenant"])
        // Types of extensions arrive in their text form.
        #expect(records[1]["extra"].string == #""a"=>"1""#)
        #expect(records[2]["more"].string == #""b"=>"2 \"x\"", "c"=>NULL"#)
        // A recreated table is a new one to PostgreSQL. It is published once the setup has run again, and the start
        // reports this.
        try await eventually("the later rows are accepted") { try await service.hasKey("team:t2:member", "ada") }
        #expect(try await service.metric("bellhop_source_rejected_total") == 0)
        let problem = await #expect(throws: SourceProblem.self) { try await service.restart() }
        #expect(problem?.description.contains("lacks public.tasks") == true)
        try await app.drop()
    }

    @Test func lostSlot_isReported_andRecreated() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let position = try await service.position(as: .user("ada"))
        try await service.restart {
            try app.run(
                "SELECT pg_drop_replication_slot('\(app.name)')", "DELETE FROM team_members",
                "INSERT INTO team_members VALUES ('m9', 'ben', 't1')")
        }
        try await service.isReading()
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 1)
        let ada = try await service.listen(as: .user("ada"), lastEventID: position)
        try await ada.next("stream:resync")
        #expect(try await !service.hasKey("team:t1:member", "ada"))
        let ben = try await service.listen(as: .user("ben"))
        try await ben.subscribe([["table": "tasks"]])
        try app.insertTasks(1...1)
        #expect(try await ben.rows(until: "k1") == ["k1"])
        try await app.drop()
    }

    /// While the log is read, only stored positions are confirmed to the server. An idle source still confirms, so
    /// that the server can discard its log.
    @Test func heartbeat_advancesTheSlot_withoutTraffic() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let place = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '\(app.name)'"
        for _ in 0..<2 {
            // A message outside this database produces no event.
            let before = try app.look(place)
            try app.server.run(["SELECT pg_logical_emit_message(true, 'elsewhere', 'x')"])
            service.clock.advance(seconds: 11)
            try await eventually("the slot advances") { try app.look(place) != before }
        }
        try await app.drop()
    }

    @Test func secondReplica_standsBy_andTakesOver() async throws {
        let app = try AppDatabase()
        let (first, second) = try TestService.startReplicas(app.settings)
        try await eventually("exactly one replica reads") {
            let (one, other) = (
                try await first.metric("bellhop_source_connected"), try await second.metric("bellhop_source_connected")
            )
            return (one ?? 0) + (other ?? 0) == 1
        }
        let isFirst = try await first.metric("bellhop_source_connected") == 1
        let (reading, waiting) = isFirst ? (first, second) : (second, first)
        let stream = try await waiting.listenToTasks()
        try app.insertTasks(1...5)
        #expect(try await stream.rows(until: "k5").count == 5)
        reading.app.source?.stop()
        try await waiting.isReading()
        try app.insertTasks(6...9)
        #expect(try await stream.rows(until: "k9").count == 4)
        try await app.drop()
    }
}
