import BellhopClient
import PostgresServer
import TestSupport
import Testing

@testable import Service

/// The roles that may send events from the app's database, and the tenants they may send for.
@Suite(.timed) struct SourceSendersTests {
    private static func refusal(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "none"
        } catch {
            return "\(error)"
        }
    }

    private static let order = #"SELECT bellhop.publish('order:changed', "to" => array['user:ada'], data => '1'"#

    @Test func messagesWithoutTheSecret_areCounted_andIgnored() async throws {
        let app = try AppDatabase()
        let (mallory, sender) = (try app.makeRole("mallory"), try app.makeRole("app"))
        try app.setUp(senders: [sender])
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let stream = try await service.listen(as: .user("ada"))
        let forged = #"{"kind": "publish", "event": "order:forged", "to": ["user:ada"], "data": 1}"#
        try app.run(
            as: mallory, "SELECT pg_logical_emit_message(true, 'bellhop', '\(forged)')",
            "SELECT pg_logical_emit_message(true, 'bellhop', repeat('0', 64) || '\(forged)')",
            "SELECT count(pg_logical_emit_message(true, 'bellhop', '\(forged)')) FROM generate_series(1, 1000)")
        #expect(Self.refusal { try app.run(as: mallory, Self.order + ")") }.contains("permission denied"))
        for table in ["secret", "senders"] {
            #expect(
                Self.refusal { try app.run(as: sender, "SELECT * FROM bellhop.\(table)") }.contains("permission denied")
            )
        }
        #expect(Self.refusal { try app.run(as: sender, "SELECT bellhop.say('{}', 'B')") }.contains("permission denied"))
        try app.run(as: sender, Self.order + ")")
        try await stream.next("order:changed")
        #expect(!stream.received.contains { $0.name == "order:forged" })
        try await eventually("they are counted") {
            try await service.metric("bellhop_source_unsigned_total") == 1002
        }
        try await app.drop()
    }

    @Test func roles_sendForTheirTenantsAlone() async throws {
        let app = try AppDatabase()
        let (all, one, member) = (try app.makeRole("all"), try app.makeRole("one"), try app.makeRole("member"))
        let web = try app.makeRole("web")
        try app.setUp(senders: [all, "\(one)=A,B"])
        try app.run("GRANT \(one) TO \(member)", "GRANT \(one) TO \(web)")
        func refusal(_ role: String, _ tenant: String?) -> String {
            Self.refusal { try app.run(as: role, Self.order + (tenant.map { ", tenant => '\($0)')" } ?? ")")) }
        }
        for tenant in ["A", "C", nil] { #expect(refusal(all, tenant) == "none") }
        for role in [one, member, web] {
            for tenant in ["A", "B"] { #expect(refusal(role, tenant) == "none", "\(role) \(tenant)") }
            #expect(refusal(role, "C").contains("the role \(role) may not send events of the tenant C"))
            #expect(refusal(role, nil).contains("may not send events of the tenant default"))
        }
        // A function of the app that runs as its owner does not extend the rights of the session's role.
        try app.run(
            "GRANT CREATE ON SCHEMA public TO \(all)", "SET ROLE \(all)",
            """
            CREATE FUNCTION send(tenant text) RETURNS void LANGUAGE sql SECURITY DEFINER AS
                $$ SELECT bellhop.publish('order:changed', "to" => array['user:ada'], tenant => tenant) $$
            """)
        #expect(Self.refusal { try app.run(as: one, "SELECT send('A')") } == "none")
        #expect(
            Self.refusal { try app.run(as: one, "SELECT send('C')") }.contains("may not send events of the tenant C"))
        #expect(Self.refusal { try app.run(as: all, "SET ROLE \(all)", "SELECT send('C')") } == "none")
        // A setup that names a role again replaces its tenants.
        try app.setUp(senders: ["\(one)=C"])
        #expect(refusal(one, "C") == "none")
        #expect(refusal(one, "A").contains("may not send events of the tenant A"))
        #expect(refusal(all, "A") == "none")
        try app.run("DROP OWNED BY \(all), \(one), \(member), \(web)")
        try await app.drop()
    }

    @Test func eventsThatAreTooLarge_areRefusedAtOnce() async throws {
        let app = try AppDatabase()
        let data = "SELECT bellhop.notify('ada', 'x', jsonb_build_object('a', repeat('x', 70000)))"
        #expect(Self.refusal { try app.run(data) }.contains("at most 65536 are accepted"))
        try await app.drop()
    }

    @Test func functions_ignoreTheCallersSearchPath() async throws {
        let app = try AppDatabase()
        try app.run(
            "CREATE SCHEMA trap", "CREATE TABLE witness (who text)",
            """
            CREATE FUNCTION trap.gen_random_uuid() RETURNS uuid LANGUAGE sql AS
                $$ INSERT INTO public.witness VALUES (current_user) RETURNING pg_catalog.gen_random_uuid() $$
            """,
            "SET search_path = trap, pg_catalog", "SELECT bellhop.notify('ada', 'visit.created')")
        #expect(try app.server.run(["SELECT count(*) FROM witness"], in: app.name) == "0")
        try await app.drop()
    }

    @Test func objectsOfAForeignRole_areRefused() async throws {
        let app = try AppDatabase(isSetUp: false)
        let low = try app.makeRole("low")
        func problem() -> String { Self.refusal { try app.setUp() } }
        try app.run("GRANT CREATE ON DATABASE \(app.name) TO \(low)")
        try app.run(as: low, "CREATE SCHEMA bellhop")
        #expect(problem().contains("the schema bellhop belongs to \(low), which could change it later"))
        try app.run("ALTER SCHEMA bellhop OWNER TO postgres", "GRANT CREATE ON SCHEMA bellhop TO \(low)")
        #expect(
            problem().contains("\(low) may create functions in the schema bellhop: REVOKE CREATE ON SCHEMA bellhop"))
        try app.run("GRANT USAGE ON SCHEMA bellhop TO \(low)")
        try app.run(
            as: low, "CREATE FUNCTION bellhop.notify(text, text) RETURNS void LANGUAGE sql AS $$ SELECT $$")
        #expect(problem().contains("the function bellhop.notify(text,text) belongs to \(low)"))
        try app.run("DROP FUNCTION bellhop.notify", "REVOKE ALL ON SCHEMA bellhop FROM \(low)")
        #expect(problem() == "none")
        // Default privileges of the database do not grant the right to send.
        try app.run(
            "DROP SCHEMA bellhop CASCADE", "ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO \(low)",
            "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO \(low)")
        #expect(problem() == "none")
        try app.run("GRANT USAGE ON SCHEMA bellhop TO \(low)")
        #expect(Self.refusal { try app.run(as: low, Self.order + ")") }.contains("permission denied for function"))
        #expect(Self.refusal { try app.run(as: low, "TABLE bellhop.secret") }.contains("permission denied for table"))
        try app.run("DROP OWNED BY \(low)")
        try await app.drop()
    }

    /// The functions as the setup of the first versions created them.
    private static let earlier = """
        CREATE FUNCTION bellhop.publish(
            event text, "to" text[] DEFAULT NULL, topic text DEFAULT NULL, data jsonb DEFAULT 'null',
            collapse text DEFAULT NULL, tenant text DEFAULT NULL)
        RETURNS void LANGUAGE sql VOLATILE AS $$
            SELECT pg_logical_emit_message(true, 'bellhop',
                jsonb_build_object('kind', 'publish', 'event', event, 'data', data, 'to', "to")::text)
        $$
        """

    @Test func databaseOfAnEarlierSetup_sendsRows_andEventsAfterANewSetup() async throws {
        let app = try AppDatabase()
        let sender = try app.makeRole("app")
        try app.run(
            "DROP SCHEMA bellhop CASCADE", "CREATE SCHEMA bellhop", Self.earlier,
            "GRANT USAGE ON SCHEMA bellhop TO \(sender)")
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let stream = try await service.listenToTasks()
        try app.run(as: sender, Self.order + ")")
        try app.insertTasks(1...1)
        try await stream.next("table:change")
        #expect(!stream.received.contains { $0.name == "order:changed" })
        try await eventually("they are counted") {
            try await service.metric("bellhop_source_unsigned_total") == 1
        }
        #expect(
            Self.refusal { try app.setUp() }.contains("\(sender) can already send events: add --sender \(sender)"))
        try app.setUp(senders: [sender])
        service.clock.advance(seconds: 1)
        try app.run(as: sender, Self.order + ")")
        try await stream.next("order:changed")
        try await app.drop()
    }

    /// The connection keeps the buffer of a large message until it is closed.
    @Test func connectionThatReadALargeMessage_isReplaced() async throws {
        let app = try AppDatabase()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let process = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = '\(app.name)'"
        let before = try app.look(process)
        let stream = try await service.listenToTasks()
        try app.run("SELECT pg_logical_emit_message(true, 'bellhop', repeat('x', 9000000))")
        try await eventually("another connection reads") {
            let now = try app.look(process)
            return !now.isEmpty && now != before
        }
        try app.insertTasks(1...1)
        #expect(try await stream.rows(until: "k1") == ["k1"])
        try await app.drop()
    }

    @Test func senders_areReadFromTheirOption() {
        #expect(SourceSender("app")?.tenants == nil)
        #expect(SourceSender("app=A,B")?.tenants == ["A", "B"])
        for text in ["", "=A", "app=", "app=A,,B", "public", "PUBLIC=A"] { #expect(SourceSender(text) == nil) }
        #expect(SourceStatements.literal(#"a'b\c$$"#) == #"E'a''b\\c\044\044'"#)
    }
}
