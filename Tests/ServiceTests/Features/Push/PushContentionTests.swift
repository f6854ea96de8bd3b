import BellhopClient
import Database
import PostgresServer
import TestSupport
import Testing

@testable import Service

/// Requests and senders that change the same rows at the same time, and outcomes that cannot be stored at once.
@Suite(.timed) struct PushContentionTests {
    private static func body(_ token: String) -> String { #"{"platform":"fcm","token":"\#(token)"}"# }

    @Test func firstDevicesOfTwoUsers_areRegisteredAtTheSameTime() async throws {
        let probe = try PushProbe(replicas: true)
        let other = try #require(probe.other)
        async let ada = probe.service.call("PUT", "/v1/devices/d1", as: .user("ada"), Self.body("a"))
        async let ben = other.call("PUT", "/v1/devices/d1", as: .user("ben"), Self.body("b"))
        #expect(try await [ada.status, ben.status] == [201, 201])
    }

    /// On a shared phone, two apps may register the token at the same time. It belongs to one of the users then.
    @Test func sameToken_isRegisteredByTwoUsersAtTheSameTime() async throws {
        let probe = try PushProbe(replicas: true)
        let other = try #require(probe.other)
        for round in 1...20 {
            let (id, token) = ("d\(round)", "token-\(round)")
            async let ada = probe.service.call("PUT", "/v1/devices/\(id)", as: .user("ada"), Self.body(token))
            async let ben = other.call("PUT", "/v1/devices/\(id)", as: .user("ben"), Self.body(token))
            #expect(try await [ada.status, ben.status] == [201, 201])
            var owners = 0
            for user in ["ada", "ben"] {
                let answer = try await probe.service.call("GET", "/v1/devices/\(id)", as: .user(user))
                owners += answer.status == 200 ? 1 : 0
                _ = try await probe.service.call("DELETE", "/v1/devices/\(id)", as: .user(user))
            }
            #expect(owners == 1)
        }
    }

    /// Phones change hands and users sign out while two senders send to them. PostgreSQL counts each deadlock.
    @Test func registrations_andSignOuts_neverDeadlock_withTheSenders() async throws {
        let probe = try PushProbe(["pushAfterSeconds": "0"], replicas: true)
        let other = try #require(probe.other)
        let users = (1...8).map { "u\($0)" }
        // The devices of all users. Each user has the tokens of three phones.
        for user in users {
            for phone in 1...3 { try await probe.register("phone-\(user)-\(phone)", "fcm", of: user) }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, user) in users.enumerated() {
                let service = index % 2 == 0 ? probe.service : other
                let neighbour = users[(index + 1) % users.count]
                group.addTask {
                    for round in 1...4 {
                        let note = try await service.notify(NotificationsTests.draft("visit", .high, to: user))
                            .notificationID
                        // The neighbour's phone changes hands, and back.
                        let token = "phone-\(neighbour)-\(1 + round % 3)"
                        let moved = try await service.call(
                            "PUT", "/v1/devices/\(token)", as: .user(user), Self.body(token))
                        #expect(moved.status < 300, "\(moved.refusal)")
                        let left = try await service.call("DELETE", "/v1/devices/\(token)", as: .user(user))
                        #expect([204, 404].contains(left.status), "\(left.refusal)")
                        let back = try await service.call(
                            "PUT", "/v1/devices/\(token)", as: .user(neighbour), Self.body(token))
                        #expect(back.status < 300, "\(back.refusal)")
                        let seen = #"{"seen":true}"#
                        let path = "/v1/notifications/\(note)"
                        #expect(try await service.call("PATCH", path, as: .user(user), seen).status == 200)
                    }
                }
            }
            try await group.waitForAll()
        }
        let name = try #require(probe.service.database.name)
        // A session reports its deadlocks at its end.
        await other.app.shutdown()
        await probe.service.app.shutdown()
        try await eventually("the sessions end") { try PushContention.sessions(in: name) == 0 }
        #expect(try PushContention.deadlocks(in: name) == 0)
    }

    /// Upkeep changes a part of the rows at a time, because it locks their users.
    @Test func allMessagesThatAreTooOld_areDeleted() async throws {
        let probe = try PushProbe()
        try await probe.service.app.store.write { db in
            for number in 0...OutboxLimits.prunedAtOnceMax {
                try db.run(
                    """
                    INSERT INTO \(Outbox.messages, unscoped: .audit("a test")) (tenant, lane, route, id, user_id, device_id,
                        type, subject, data, state, version, created_at, due_at, patient_until, gives_up_at, attempts, lease)
                    VALUES ('', 'push:x', 'apns', '', \("u\(number)"), 'd', 'test', 'test', '', 0, 1, 0, 0, 0, 1, 0, 0)
                    """)
            }
        }
        // Nothing is deleted by its age in the first hour.
        try await eventually("the outbox is empty", step: { probe.service.clock.advance(seconds: 60) }) {
            try probe.rows() == 0
        }
    }

    /// The database refuses to store that a message was accepted for one device. The outcome for the other is stored;
    /// otherwise that one would be sent again when its lease ends.
    @Test func outcomeThatCannotBeStored_holdsUpNoOther() async throws {
        let probe = try PushProbe()
        try await probe.register("bad", "fcm", of: "ada")
        try await probe.register("good", "fcm", of: "ben")
        try await PushContention.refuse("NEW.id = 'bad' AND NEW.badge IS NOT NULL", in: probe.service)
        try await probe.notify("ada")
        _ = try await probe.messages(1)
        try await probe.notify("ben")
        _ = try await probe.messages(2)
        try await eventually("the other outcome is stored") { try probe.rows("device_id = 'good' AND state = 1") == 1 }
        #expect(try probe.rows("device_id = 'bad' AND lease <> 0") == 1)
        try await PushContention.allow(in: probe.service)
        try await eventually("it is stored as soon as possible") {
            try probe.rows("device_id = 'bad' AND state = 1") == 1
        }
        #expect(probe.sent.all.count == 2)
    }
}

/// What a test sees of a database from outside, and a database that refuses a change.
enum PushContention {
    private static func count(_ query: String) throws -> Int {
        Int(try PostgresServer.shared().run([query])) ?? 0
    }

    /// Returns the number of sessions that wait for the lock of another transaction.
    static func waiting(in database: String) throws -> Int {
        try count("SELECT count(*) FROM pg_stat_activity WHERE datname = '\(database)' AND wait_event_type = 'Lock'")
    }

    static func sessions(in database: String) throws -> Int {
        try count("SELECT count(*) FROM pg_stat_activity WHERE datname = '\(database)'")
    }

    static func deadlocks(in database: String) throws -> Int {
        try count("SELECT deadlocks FROM pg_stat_database WHERE datname = '\(database)'")
    }

    /// Makes the database refuse updates of devices.
    static func refuse(_ condition: String, in service: TestService) async throws {
        if let name = service.database.name {
            try PostgresServer.shared().run(
                [
                    """
                    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                    $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'check_violation'; END $$
                    """,
                    """
                    CREATE TRIGGER refused BEFORE UPDATE ON devices
                    FOR EACH ROW WHEN (\(condition)) EXECUTE FUNCTION refuse()
                    """,
                ], in: name)
        } else {
            let sql = SQL(
                unchecked: """
                    CREATE TRIGGER refused BEFORE UPDATE ON devices WHEN \(condition)
                    BEGIN SELECT RAISE(ABORT, 'refused'); END
                    """)
            try await service.app.store.write { try $0.run(sql) }
        }
    }

    static func allow(in service: TestService) async throws {
        if let name = service.database.name {
            try PostgresServer.shared().run(["DROP TRIGGER refused ON devices"], in: name)
        } else {
            try await service.app.store.write { try $0.run(SQL(unchecked: "DROP TRIGGER refused")) }
        }
    }
}
