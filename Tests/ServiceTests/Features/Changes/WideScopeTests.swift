import BellhopClient
import CAllocations
import Database
import Foundation
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Memberships beyond the limit of a scope, and declared column types and names in filters, over real HTTP.
@Suite(.timed) struct WideScopeTests {
    private static let tables = """
        version: 1
        tables:
          - table: members
            primaryKey: [id]
            tenant: {constant: default}
            audience: {select: ["tenant:admin"]}
            memberships:
              - {name: team, subject: "user:{user_id}", grants: "team:{team_id}"}
          - table: rooms
            primaryKey: [id]
            tenant: {constant: default}
            audience: {select: ["tenant:admin"]}
            memberships:
              - {name: room, subject: "user:{user_id}", grants: "room:{room_id}"}
          - table: Team News
            primaryKey: [id]
            tenant: {constant: default}
            types: {id: uuid, team-id: text, points: numeric, at: timestamptz}
            audience: {select: ["team:{team-id}"]}
        """

    private let service: TestService
    private let probe: FeedProbe
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        service = try TestService.start([
            "changesSecret": FeedProbe.secret, "tables": directory.write(Self.tables, to: "tables.yaml"),
        ])
        probe = FeedProbe(service)
    }

    private func send(_ table: String, _ numbers: Range<Int>) async throws {
        let column = table == "members" ? "team_id" : "room_id"
        for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: ChangeLimits.itemsMax) {
            let rows = (start..<min(start + ChangeLimits.itemsMax, numbers.upperBound)).map { number in
                School.insert(
                    table,
                    ["id": .string("\(table)\(number)"), "user_id": "ann", column: .string("k\(number)")])
            }
            #expect(try await probe.send(.array(rows)).counts == [202, rows.count, 0, 0])
        }
    }

    /// A scope contains all keys up to the limit. The number of omitted keys is reported.
    @Test func keysBeyondTheLimit_areReported_andTheRestIsKept() async throws {
        try await send("members", 0..<1_500)
        let some = try await service.client("ann").getMe().value
        #expect(some.omittedKeys == 0)
        #expect(some.scope.count > 1_500)
        try await send("members", 1_500..<TableLimits.grantedKeysMax)
        try await send("rooms", 0..<5)
        let me = try await service.client("ann").getMe().value
        #expect(me.omittedKeys == 5, "\(me.omittedKeys)")
        #expect(me.scope.count > TableLimits.grantedKeysMax)
        let stream = try await service.listen(as: .user("ann"))
        #expect(stream.ready.json["omittedKeys"].int == 5)
        try await send("rooms", 5..<6)
        let scope = try await stream.next("stream:scope").json
        #expect(scope["omittedKeys"].int == 6)
        #expect(scope["scope"].array?.count == StreamLimits.listedKeysMax)
        #expect(scope["keyCount"].int == me.scope.count)
        // A key far beyond the listed ones still gives access to its rows.
        try await stream.subscribe([["id": "news", "table": "Team News", "filter": "points=gte.5.0"]])
        let news: JSON = ["id": "9b2f3c1e-4c1a-4d2b-8e3f-0a1b2c3d4e5f", "team-id": "k9998", "points": 5, "at": nil]
        #expect(try await probe.send(School.insert("Team News", news)).counts == [202, 1, 0, 0])
        #expect(try await stream.next("table:change").json["record"]["team-id"].string == "k9998")
    }

    private func send(_ numbers: Range<Int>, of user: String) async throws {
        let rows = numbers.map { number in
            School.insert(
                "members",
                [
                    "id": .string("\(user)\(number)"), "user_id": .string(user),
                    "team_id": .string("a-team-with-a-long-id-\(number)"),
                ])
        }
        #expect(try await probe.send(.array(rows)).counts == [202, rows.count, 0, 0])
    }

    /// Attack: a user with 10,000 memberships opens streams, one after the other. Harm: each of them finds the keys again.
    @Test func keysOfACaller_areFoundAgain_onlyAfterAChange() async throws {
        try await send(0..<500, of: "ann")
        let registry = MembershipRegistry(service.app.runner.settings.tables)
        func reload() throws { try service.app.store.read { try registry.reload(in: $0) } }
        try reload()
        let claimed = Caller(
            tenant: "default", userId: "ann", role: "user", isService: false,
            scope: Scope(tenant: "default", keys: ["user:ann", "everyone"]))
        let caller = registry.scoped(claimed)
        #expect(caller.scope.keys.count == 502)
        func allocations() -> Int {
            let before = callocations_count()
            let isSame = registry.scoped(caller) === caller
            let count = Int(callocations_count() - before)
            #expect(isSame)
            return count
        }
        #expect(allocations() < 10)
        // A change of another user makes nothing of the keys wrong, which is found out once.
        try await send(0..<1, of: "ben")
        try reload()
        #expect(allocations() > 500)
        #expect(allocations() < 10)
        try await send(500..<501, of: "ann")
        try reload()
        #expect(registry.scoped(caller).scope.keys.count == 503)
        #expect(registry.scoped(claimed).scope.keys.count == 503)
        // A shard may be behind, and its streams have the keys of its own position.
        let known = registry.known
        let other = MembershipRegistry(service.app.runner.settings.tables)
        #expect(other.scoped(caller, by: other.known).scope.keys.count == 2)
        #expect(registry.scoped(caller, by: known).scope.keys.count == 503)
    }

    @Test func filterOnADeclaredTable_isRefused_withItsPlace() async throws {
        let stream = try await service.listen(as: .user("ann"))
        for (filter, place) in [
            ("points=eq.1,poinst=eq.1", "byte 12"), ("at->>x=eq.1", "byte 0"), ("points::int=eq.1", "byte 0"),
            ("at=gte.yesterday", "byte 7"), ("points=like.5%", "byte 7"),
        ] {
            let answer = try await stream.replaceSubscriptions([["table": "Team News", "filter": .string(filter)]])
            #expect(answer.status == 422, "\(filter)")
            #expect(answer.json["errors"][0]["pointer"].string == "/tables/0/filter", "\(answer.text)")
            #expect(answer.json["errors"][0]["detail"].string?.contains(place) == true, "\(answer.text)")
        }
    }

    /// An item is rejected with a reason if the sender omitted the columns that determine its audience.
    @Test func rowWithoutItsAudiencesColumn_isRejected_withTheReason() async throws {
        let bare = try await probe.send([
            School.insert("Team News", ["id": "1", "points": 5]),
            School.insert("Team News", ["id": "1", "team-id": nil]),
            School.delete("Team News", ["id": "1"]),
        ])
        #expect(bare.counts == [202, 1, 0, 2], "\(bare.text)")
        #expect(bare.places == ["0 /0/record", "2 /2/old_record"], "\(bare.text)")
        #expect(bare.json["rejected"][0]["reason"].string?.contains("lacks team-id") == true, "\(bare.text)")
    }

    /// Protocol 2.0.0 of Supabase Realtime, alone and among other items, and Debezium Server's media type for arrays.
    @Test func framesAndArrays_areAccepted() async throws {
        try await send("members", 0..<1)
        func frame(_ data: JSON) -> JSON {
            [nil, nil, "realtime:any", "postgres_changes", ["ids": [1], "data": data]]
        }
        let news: JSON = ["id": "1", "team-id": "k0", "points": 5, "at": nil]
        func data(_ record: JSON) -> JSON {
            ["type": "INSERT", "schema": "public", "table": "Team News", "record": record, "errors": nil]
        }
        #expect(try await probe.send(frame(data(news))).counts == [202, 1, 0, 0])
        let mixed = try await probe.send([
            frame(data(["points": 1])), frame(data(news)), School.insert("Team News", news),
        ])
        #expect(mixed.counts == [202, 2, 0, 1], "\(mixed.text)")
        #expect(mixed.places == ["0 /0/4/data/record/id"], "\(mixed.text)")
        let alone = try await probe.send(frame(data(["points": 1])))
        #expect(alone.places == ["0 /4/data/record/id"], "\(alone.text)")
        let type = ["Content-Type": "application/cloudevents+json"]
        let event: JSON = [
            "specversion": "1.0", "type": "row", "source": "/news", "id": "e1",
            "data": School.insert("Team News", news),
        ]
        #expect(try await probe.send([event], type).counts == [202, 1, 0, 0])
        #expect(try await probe.send(Data(#"{"type": "INSERT", "type": "DELETE"}"#.utf8)).counts == [202, 0, 0, 1])
    }
}
