import BellhopClient
import Foundation
import TestSupport
import Testing

@testable import Service

/// A rule of a membership that changes in the file while rows of the earlier rule are stored.
@Suite(.timed) struct MembershipRuleTests {
    private static let directory = Result { try TemporaryDirectory() }
    private static let always = ""
    private static let ifActive = ", when: {state: [active]}"

    /// Returns a file in which members of a team see its notes.
    ///
    /// - Parameter memberships: The list of memberships.
    private static func file(_ memberships: String) throws -> String {
        let text = """
            version: 1
            tables:
              - table: members
                primaryKey: [id]
                tenant: {constant: default}
                audience: {select: ["user:{user_id}"]}
                \(memberships.isEmpty ? "windowMs: 1000" : "memberships: [\(memberships)]")
              - table: notes
                primaryKey: [id]
                tenant: {constant: default}
                audience: {select: ["team:{team_id}:member"]}
            """
        return try directory.get().write(text, to: "\(UUID().uuidString).yaml")
    }

    private static func team(_ rest: String, subject: String = "user_id") -> String {
        "{name: team, subject: \"user:{\(subject)}\", grants: \"team:{team_id}:member\"\(rest)}"
    }

    private static func row(_ id: String, _ user: String, _ state: String) -> JSON {
        .object([
            "id": .string(id), "user_id": .string(user), "owner_id": "olga", "team_id": "t1", "state": .string(state),
        ])
    }

    private static func send(
        _ type: String, _ row: JSON, of table: String = "members", to service: TestService
    ) async throws {
        let isDelete = type == "DELETE"
        let change: JSON = .object([
            "type": .string(type), "schema": "public", "table": .string(table), "record": isDelete ? .null : row,
            "old_record": isDelete ? row : .null,
        ])
        let answer = try await service.call("POST", "/v1/changes", as: .service(), change)
        #expect(answer.status == 202 && answer.json["accepted"].int == 1, "\(answer.text)")
    }

    private static func outdated(_ service: TestService) async throws -> Double? {
        try await service.metric(#"bellhop_membership_rows_outdated{membership="team"}"#)
    }

    /// The rule of today gives no key to an invited member, whatever the rule of yesterday gave.
    @Test func rowsOfTheEarlierRule_giveNoKey_untilTheyAreSentAgain() async throws {
        let (logger, lines) = RecordedLog.logger()
        let before = try Self.file(Self.team(Self.always))
        let after = try Self.file(Self.team(Self.ifActive))
        let service = try TestService.start(["tables": before, "logLevel": "info"], logger: logger)
        try await Self.send("INSERT", Self.row("1", "ada", "invited"), to: service)
        try await Self.send("INSERT", Self.row("2", "ben", "active"), to: service)
        #expect(try await service.hasKey("team:t1:member", "ada"))
        try await service.restart(with: ["tables": after])
        for user in ["ada", "ben"] { #expect(try await !service.hasKey("team:t1:member", user)) }
        #expect(try await Self.outdated(service) == 2)
        let isNamed = lines().contains {
            $0.contains("The rule of a membership has changed") && $0.contains("table=public.members")
        }
        #expect(isNamed)
        let (ada, ben) = (try await service.listen(as: .user("ada")), try await service.listen(as: .user("ben")))
        for stream in [ada, ben] { try await stream.subscribe([["table": "notes"]]) }
        try await Self.send("INSERT", Self.row("1", "ada", "invited"), to: service)
        try await Self.send("UPDATE", Self.row("2", "ben", "active"), to: service)
        try await ben.nextScope(with: "team:t1:member")
        try await Self.send("INSERT", ["id": "n1", "team_id": "t1"], of: "notes", to: service)
        #expect(try await ben.next("table:change").json["record"]["id"].string == "n1")
        #expect(try await !service.hasKey("team:t1:member", "ada"))
        #expect(try await Self.outdated(service) == nil)
        // A key that ends the wait shows that the note did not reach Ada.
        try await Self.send("UPDATE", Self.row("1", "ada", "active"), to: service)
        try await ada.nextScope(with: "team:t1:member")
        try await Self.send("INSERT", ["id": "n2", "team_id": "t1"], of: "notes", to: service)
        #expect(try await ada.next("table:change").json["record"]["id"].string == "n2")
    }

    /// A claim of the token must not take the place of the row that does not count.
    @Test func claim_doesNotReplaceARowOfTheEarlierRule() async throws {
        let claim = "{name: class, subject: \"user:{user_id}\", grants: \"class:{team_id}:staff\""
        let service = try TestService.start(["tables": try Self.file(claim + "}")])
        try await Self.send("INSERT", Self.row("1", "ada", "active"), to: service)
        let teacher = TestService.Identity(
            subject: "ada", claims: ["role": "teacher", "class_ids": .array(["t1", "t2"])])
        func keys() async throws -> Set<String> {
            Set(try await service.client(as: teacher).getMe().value.scope.filter { $0.hasPrefix("class:") })
        }
        #expect(try await keys() == ["class:t1:staff"])
        try await service.restart(with: ["tables": try Self.file(claim + Self.ifActive + "}")])
        #expect(try await keys() == [])
    }

    @Test func earlierFile_findsItsRowsAgain_ifNoneHasChanged() async throws {
        let before = try Self.file(Self.team(Self.always))
        let service = try TestService.start(["tables": before])
        try await Self.send("INSERT", Self.row("1", "ada", "invited"), to: service)
        try await service.restart(with: ["tables": try Self.file(Self.team("", subject: "owner_id"))])
        for user in ["ada", "olga"] { #expect(try await !service.hasKey("team:t1:member", user)) }
        try await service.restart(with: ["tables": before])
        #expect(try await service.hasKey("team:t1:member", "ada"))
        #expect(try await Self.outdated(service) == nil)
    }

    /// While the file does not declare the membership, its rows change without it.
    @Test func membershipThatReturns_doesNotFindItsEarlierRows() async throws {
        let before = try Self.file(Self.team(Self.always))
        let service = try TestService.start(["tables": before])
        try await Self.send("INSERT", Self.row("1", "ada", "active"), to: service)
        try await service.restart(with: ["tables": try Self.file("")])
        try await Self.send("DELETE", Self.row("1", "ada", "active"), to: service)
        try await service.restart(with: ["tables": before])
        #expect(try await !service.hasKey("team:t1:member", "ada"))
        #expect(try await Self.outdated(service) == 1)
        try await Self.send("DELETE", Self.row("1", "ada", "active"), to: service)
        #expect(try await Self.outdated(service) == nil)
    }

    /// The keys of `grants` and the role are applied to stored rows, which need not be sent again.
    @Test func grantedKeyThatChanges_needsNoRows() async throws {
        let service = try TestService.start(["tables": try Self.file(Self.team(Self.always))])
        try await Self.send("INSERT", Self.row("1", "ada", "active"), to: service)
        let grants = "{name: team, subject: \"user:{user_id}\", grants: \"team:{team_id}:member\", role: clerk}"
        try await service.restart(with: ["tables": try Self.file(grants)])
        #expect(try await !service.hasKey("team:t1:member", "ada"))
        #expect(try await Self.outdated(service) == nil)
        let clerk = TestService.Identity(subject: "ada", metadata: ["user_role": "clerk"])
        #expect(try await service.client(as: clerk).getMe().value.scope.contains("team:t1:member"))
    }

    /// One replica has the new file first. A row counts on a replica if a replica with the same rule has taken it in.
    @Test func replicasWithDifferentFiles_honourOnlyTheirOwnRule() async throws {
        let (old, new) = try TestService.startReplicas(["tables": try Self.file(Self.team(Self.always))])
        for (id, user) in [("1", "ada"), ("2", "ben")] {
            try await Self.send("INSERT", Self.row(id, user, "invited"), to: old)
        }
        try await eventually("both know it") { try await new.hasKey("team:t1:member", "ada") }
        let stream = try await old.listen(as: .user("ada"))
        try await new.restart(with: ["tables": try Self.file(Self.team(Self.ifActive))])
        #expect(try await !new.hasKey("team:t1:member", "ada"))
        #expect(try await old.hasKey("team:t1:member", "ada"))
        try await Self.send("UPDATE", Self.row("1", "ada", "invited"), to: new)
        try await stream.nextScope(without: "team:t1:member")
        #expect(try await old.hasKey("team:t1:member", "ben"))
        // The old replica takes in an active row. Its rule is not the new one, which must see the row itself.
        try await Self.send("UPDATE", Self.row("2", "ben", "active"), to: old)
        #expect(try await !new.hasKey("team:t1:member", "ben"))
        try await Self.send("UPDATE", Self.row("2", "ben", "active"), to: new)
        try await eventually("it counts") { try await new.hasKey("team:t1:member", "ben") }
    }

    @Test func replicaWithoutTheMembership_endsIt_onTheOthers() async throws {
        let (old, new) = try TestService.startReplicas(["tables": try Self.file(Self.team(Self.always))])
        try await Self.send("INSERT", Self.row("1", "ada", "active"), to: old)
        let stream = try await old.listen(as: .user("ada"))
        #expect(try await old.hasKey("team:t1:member", "ada"))
        try await new.restart(with: ["tables": try Self.file("")])
        try await stream.nextScope(without: "team:t1:member")
        #expect(try await Self.outdated(old) == 1)
    }

    @Test func doctor_namesTheTable() async throws {
        let service = try TestService.start(["tables": try Self.file(Self.team(Self.always))])
        try await Self.send("INSERT", Self.row("1", "ada", "active"), to: service)
        let store = service.app.store
        #expect(try Finding.outdatedMemberships(service.app.runner.settings, in: store).isEmpty)
        let file = try Self.file(Self.team(Self.ifActive))
        try await service.restart(with: ["tables": file])
        let found = try Finding.outdatedMemberships(service.app.runner.settings, in: service.app.store)
        #expect(found.map(\.text) == ["1 rows of public.members give no keys, because the rule of team has changed"])
        #expect(found.first?.remedy?.hasPrefix("send all rows of the table again") == true)
    }
}
