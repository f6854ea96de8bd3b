import BellhopClient
import PostgresServer
import TestSupport
import Testing

/// A stream receives the same from the log as from webhooks for the same rows.
@Suite(.timed) struct SourceOracleTests {
    /// SQL that makes the database record each change as its webhook would send it.
    private static let webhooks = [
        "CREATE TABLE webhooks (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body jsonb)",
        """
        CREATE FUNCTION note_webhook() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO webhooks (body) VALUES (jsonb_build_object(
                'type', TG_OP, 'schema', TG_TABLE_SCHEMA, 'table', TG_TABLE_NAME,
                'record', CASE WHEN TG_OP = 'DELETE' THEN NULL ELSE to_jsonb(NEW) END,
                'old_record', CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE to_jsonb(OLD) END));
            RETURN NULL;
        END $$
        """,
        "CREATE TRIGGER t AFTER INSERT OR UPDATE OR DELETE ON tasks FOR EACH ROW EXECUTE FUNCTION note_webhook()",
        "CREATE TRIGGER t AFTER INSERT OR UPDATE OR DELETE ON team_members FOR EACH ROW EXECUTE FUNCTION note_webhook()",
    ]
    private static let people = ["ada", "ben"]

    @Test(arguments: 1...UInt64(effort(quick: 1, full: 2, long: 6)))
    func streams_receiveTheSame_fromTheLogAndByWebhook(seed: UInt64) async throws {
        let app = try AppDatabase()
        _ = try app.server.run(
            Self.webhooks + ["DELETE FROM team_members", "TRUNCATE webhooks RESTART IDENTITY"], in: app.name)
        let byLog = try TestService.start(app.settings)
        let tables = try #require(app.settings["tables"])
        let byWebhook = try TestService.start(["tables": tables, "changesSecret": School.secret])
        try await byLog.isReading()
        var streams: [[StreamListener]] = []
        for service in [byLog, byWebhook] {
            var ofPeople: [StreamListener] = []
            for person in Self.people {
                let stream = try await service.listen(as: .user(person))
                try await stream.subscribe([["id": "tasks", "table": "tasks"]])
                ofPeople.append(stream)
            }
            streams.append(ofPeople)
        }
        var random = SeededGenerator(seed: seed)
        var sent = 0
        let last = Self.people.map { "INSERT INTO team_members VALUES ('end-\($0)', '\($0)', 'end')" }
        for statement in (0..<effort(quick: 25, full: 60, long: 300)).map({ _ in Self.statement(&random) }) + last
            + ["INSERT INTO tasks (id, team_id) VALUES ('end', 'end')"]
        {
            try app.run(statement)
            let text = try app.server.run(
                ["SELECT coalesce(jsonb_agg(body ORDER BY n), '[]') FROM webhooks WHERE n > \(sent)"], in: app.name)
            let rows = try #require(try JSON(parsing: text).array)
            guard !rows.isEmpty else { continue }
            sent += rows.count
            let answer = try await byWebhook.call(
                "POST", "/v1/changes", .array(rows), headers: ["X-Webhook-Secret": School.secret])
            #expect(answer.json["accepted"].int == rows.count, "\(answer.text)")
            let taken = Double(sent)
            try await eventually("the log is read") { try await byLog.metric("bellhop_source_rows_total") == taken }
        }
        for (fromLog, fromWebhook) in zip(streams[0], streams[1]) {
            let received = try await Self.changes(of: fromLog)
            #expect(received.count > 1)
            #expect(try await Self.changes(of: fromWebhook) == received)
        }
        try await app.drop()
    }

    /// Returns a random statement: inserts, updates or deletes one of a few rows, or adds or removes a team member.
    private static func statement(_ random: inout SeededGenerator) -> String {
        let (id, team) = (Int.random(in: 1...6, using: &random), Int.random(in: 1...2, using: &random))
        let note = ["NULL", "''", "'a \"b\" \\ c'", "'Größe 🛎'", "repeat('long ', 2000)"].randomElement(using: &random)
        let person = people.randomElement(using: &random) ?? ""
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4:
            return """
                INSERT INTO tasks (id, team_id, note) VALUES ('k\(id)', 't\(team)', \(note ?? ""))
                ON CONFLICT (id) DO UPDATE SET team_id = excluded.team_id
                """
        case 4: return "UPDATE tasks SET note = \(note ?? "") WHERE id <> 'k\(id)'"
        case 5: return "DELETE FROM tasks WHERE id = 'k\(id)'"
        case 6..<9:
            return
                "INSERT INTO team_members VALUES ('\(person)-\(team)', '\(person)', 't\(team)') ON CONFLICT DO NOTHING"
        default: return "DELETE FROM team_members WHERE id = '\(person)-\(team)'"
        }
    }

    /// Returns the changes up to the last row, without commit times, which webhooks do not contain.
    private static func changes(of stream: StreamListener) async throws -> [JSON] {
        var found: [JSON] = []
        while found.last?["record"]["id"].string != "end" {
            var members = try await stream.next("table:change").json.object ?? [:]
            members["commitTimestamp"] = nil
            found.append(.object(members))
        }
        return found
    }
}
