import TestSupport
import Testing
import Values

@testable import Rows

/// The rules of a file of tables about who may contact whom.
@Suite(.timed) struct ContactPolicyTests {
    /// Pupils of a class by rows alone, employees by two steps, and friends, rivals and blocks.
    private static let tables = """
        tables:
          - table: members
            primaryKey: [id]
            tenant: {column: org}
            audience: {select: ["user:{person}"]}
            memberships:
              - {name: team, subject: "user:{person}", grants: "team:{team}:member", when: {active: true}}
              - {name: friend, subject: "user:{person}", grants: "friend-of:{friend}"}
              - {name: block, subject: "user:{blocked}", grants: "blocked-by:{person}"}
          - table: companies
            primaryKey: [id]
            tenant: {column: org}
            audience: {select: ["user:{person}"]}
            memberships:
              - {name: company, subject: "team:{team}:member", grants: "company:{company}"}
              - {name: pupil, subject: "student:{student}", grants: "class:{class}:member"}
              - {name: coach, subject: "user:{person}", role: coach, grants: "coach:{coached}"}
              - {name: league, subject: "coach:{coached}", grants: "league:{league}"}
        """

    private static func catalog(_ contacts: String) throws -> TableCatalog {
        try TableCatalog(
            reading: ShippedTables.value(yaml: "version: 1\ncontacts: \(contacts)\n\(tables)"),
            reserved: ShippedTables.reserved)
    }

    private struct World {
        let catalog: TableCatalog
        var memberships: Memberships
        private var count: Int64 = 0

        init(_ contacts: String) throws {
            catalog = try ContactPolicyTests.catalog(contacts)
            memberships = Memberships(catalog)
        }

        mutating func add(_ row: RowWrite.Row, to table: String = "members", in org: String = "a") throws {
            count += 1
            let declaration = try #require(catalog.find(schema: "public", table: table))
            let row = row.merging(["id": .integer(count), "org": .string(org)]) { $1 }
            _ = memberships.apply(RowWrite(.insert, old: nil, new: row), of: declaration)
        }

        /// Whether a user with some claims may begin a conversation.
        func allows(_ user: String, _ other: String, claims: Set<String> = [], in org: String = "a") -> Bool {
            let (keys, omitted) = memberships.scope(
                of: .init(tenant: ID(org), role: "any", claimed: claims.union(["user:\(user)", "everyone"])))
            let caller = ContactPolicy.Caller(
                tenant: ID(org), userId: ID(user), role: "any", keys: keys, omittedKeys: omitted)
            return catalog.contacts.allows(.conversations, from: caller, to: ID(other), by: memberships)
        }
    }

    @Test func kindWithoutRule_isOpen_andAnEmptyRuleIsForBackends() throws {
        var world = try World("{requests: [], follows: {any: []}}")
        #expect(world.allows("ann", "bob"))
        let caller = ContactPolicy.Caller(tenant: "a", userId: "ann", role: "any", keys: ["user:ann"], omittedKeys: 0)
        for kind in [ContactKind.requests, .follows] {
            #expect(!world.catalog.contacts.allows(kind, from: caller, to: "bob", by: world.memberships))
        }
        world = try World("{conversations: {any: [everyone]}}")
        #expect(world.allows("ann", "bob"))
    }

    @Test func keyForTheAddressedUser_isHeldByTheCaller() throws {
        var world = try World("{conversations: {any: ['friend-of:{user}']}}")
        try world.add(["person": "ann", "friend": "b:o%b"])
        #expect(world.allows("ann", "b:o%b"))
        #expect(!world.allows("b:o%b", "ann"))
        #expect(!world.allows("ann", "b"))
        #expect(!world.allows("ann", "b:o%b", in: "b"))
        // A token may give the key, unless rows say what the caller has.
        #expect(world.allows("cid", "ann", claims: ["friend-of:ann"]))
        #expect(!world.allows("ann", "cid", claims: ["friend-of:cid"]))
    }

    @Test func sharedKey_isTheSameForBoth_andFromRowsForTheAddressed() throws {
        var world = try World("{conversations: {any: ['team:{id}:member']}}")
        for (person, team) in [("ann", "t1"), ("bob", "t1"), ("cid", "t2")] {
            try world.add(["person": .string(person), "team": .string(team), "active": .bool(true)])
        }
        try world.add(["person": "dan", "team": "t1", "active": .bool(false)])
        try world.add(["person": "eve", "team": "t1", "active": .bool(true)], in: "b")
        #expect(world.allows("ann", "bob"))
        for other in ["cid", "dan", "eve", "nobody", "t1"] { #expect(!world.allows("ann", other), "\(other)") }
        #expect(world.allows("fay", "bob", claims: ["team:t1:member"]))
        #expect(!world.allows("bob", "fay", claims: ["team:t1:member"]))
    }

    @Test func sharedKey_isFoundOverTwoSteps() throws {
        var world = try World("{conversations: {any: ['company:{id}']}}")
        for (person, team) in [("ann", "t1"), ("bob", "t2"), ("cid", "t3")] {
            try world.add(["person": .string(person), "team": .string(team), "active": .bool(true)])
        }
        for (team, company) in [("t1", "c1"), ("t2", "c1"), ("t3", "c2")] {
            try world.add(["team": .string(team), "company": .string(company)], to: "companies")
        }
        #expect(world.allows("ann", "bob"))
        #expect(!world.allows("ann", "cid"))
    }

    @Test func denial_winsOverAnyRelation() throws {
        var world = try World("{conversations: {any: ['friend-of:{user}'], not: ['blocked-by:{user}']}}")
        try world.add(["person": "ann", "friend": "bob"])
        try world.add(["person": "bob", "friend": "ann"])
        #expect(world.allows("ann", "bob"))
        try world.add(["person": "bob", "blocked": "ann"])
        #expect(!world.allows("ann", "bob"))
        #expect(world.allows("bob", "ann"))
    }

    /// Attack: a spammer is blocked by so many users that the row of the last one is rejected. Harm: that user receives
    /// messages again.
    @Test func callerWithVeryManyDenials_contactsNobody() throws {
        var world = try World("{conversations: {any: [everyone], not: ['blocked-by:{user}']}}")
        for number in 1..<TableLimits.grantsPerSubjectMax {
            try world.add(["person": .string("u\(number)"), "blocked": "spam"])
        }
        #expect(world.allows("spam", "last"))
        #expect(!world.allows("spam", "u1"))
        try world.add(["person": "u0", "blocked": "spam"])
        #expect(!world.allows("spam", "last"))
        #expect(world.allows("u0", "last"))
    }

    /// A scope that is full lacks keys. A key that forbids a contact is found nevertheless.
    @Test func callerWithAFullScope_isStillDenied() throws {
        var world = try World("{conversations: {any: [everyone], not: ['friend-of:{user}', 'company:{user}']}}")
        for number in 0..<TableLimits.grantedKeysMax {
            try world.add(["person": "ann", "team": .string("t\(number)"), "active": .bool(true)])
        }
        #expect(world.allows("ann", "ben"))
        try world.add(["person": "ann", "friend": "ben"])
        #expect(!world.allows("ann", "ben"))
        try world.add(["team": "t7", "company": "cid"], to: "companies")
        #expect(!world.allows("ann", "cid"))
        #expect(world.allows("ann", "dan"))
    }

    /// A full scope may lack the key that leads to a denial. Then the caller contacts nobody.
    @Test func subjectWithoutRoom_mayBeOneThatIsDenied() throws {
        let text = """
            version: 1
            contacts: {conversations: {any: [everyone], not: ['avoided:{user}']}}
            tables:
              - table: rooms
                primaryKey: [id]
                tenant: {column: org}
                audience: {select: ["room:{room}"]}
                memberships:
                  - {name: room, subject: "user:{person}", grants: "room:{room}"}
                  - {name: avoided, subject: "room:{room}", grants: "avoided:{avoided}"}
              - table: clubs
                primaryKey: [id]
                tenant: {column: org}
                audience: {select: ["user:{person}"]}
                memberships:
                  - {name: club, subject: "user:{person}", grants: "club:{club}"}
                  - {name: sold, subject: "club:{club}", grants: "avoided:{avoided}"}
            """
        let catalog = try TableCatalog(reading: ShippedTables.value(yaml: text), reserved: ShippedTables.reserved)
        var memberships = Memberships(catalog)
        func add(_ table: String, _ id: Int64, _ row: RowWrite.Row) throws {
            let declaration = try #require(catalog.find(schema: "public", table: table))
            let row = row.merging(["id": .integer(id), "org": "a"]) { $1 }
            _ = memberships.apply(RowWrite(.insert, old: nil, new: row), of: declaration)
        }
        func allows() -> Bool {
            let (keys, omitted) = memberships.scope(of: .init(tenant: "a", role: "any", claimed: ["user:ann"]))
            let caller = ContactPolicy.Caller(
                tenant: "a", userId: "ann", role: "any", keys: keys, omittedKeys: omitted)
            return catalog.contacts.allows(.conversations, from: caller, to: "ben", by: memberships)
        }
        for number in 0..<TableLimits.grantedKeysMax {
            try add("rooms", Int64(number), ["person": "ann", "room": .string("r\(number)")])
        }
        #expect(allows())
        try add("clubs", 0, ["person": "ann", "club": "c1"])
        #expect(!allows())
    }

    /// A membership of one role tells nothing about the addressed user, beside one for all roles.
    @Test func sharedKeyOfOneRole_isNotThatOfTheAddressedUser() throws {
        let text = """
            version: 1
            contacts: {conversations: {any: ['team:{id}']}}
            tables:
              - table: members
                primaryKey: [id]
                tenant: {column: org}
                audience: {select: ["user:{person}"]}
                memberships:
                  - {name: player, subject: "user:{player}", grants: "team:{team}"}
                  - {name: coach, subject: "user:{coach}", role: coach, grants: "team:{team}"}
            """
        let catalog = try TableCatalog(reading: ShippedTables.value(yaml: text), reserved: ShippedTables.reserved)
        var memberships = Memberships(catalog)
        let rows: [RowWrite.Row] = [
            ["id": 1, "org": "a", "player": "ann", "team": "t1"], ["id": 2, "org": "a", "player": "ben", "team": "t1"],
            ["id": 3, "org": "a", "coach": "cid", "team": "t1"],
        ]
        for row in rows { _ = memberships.apply(RowWrite(.insert, old: nil, new: row), of: catalog.tables[0]) }
        func allows(_ user: String, _ other: ID<User>, role: String = "user") -> Bool {
            let keys = memberships.keys(of: .init(tenant: "a", role: role, claimed: ["user:\(user)"]))
            let caller = ContactPolicy.Caller(
                tenant: "a", userId: ID(user), role: role, keys: keys, omittedKeys: 0)
            return catalog.contacts.allows(.conversations, from: caller, to: other, by: memberships)
        }
        #expect(allows("ann", "ben"))
        #expect(allows("cid", "ann", role: "coach"))
        #expect(!allows("cid", "ann", role: "player"))
        #expect(!allows("ann", "cid"))
    }

    /// A scope is shown to its user, who must not learn who has blocked it. A key with another use stays in the scope.
    @Test func keysThatOnlyForbid_areInNoScope() throws {
        func keys(_ contacts: String) throws -> Set<String> {
            var world = try World(contacts)
            try world.add(["person": "bob", "blocked": "ann"])
            try world.add(["person": "ann", "friend": "cid", "team": "t1", "active": .bool(true)])
            try world.add(["team": "t1", "company": "c1"], to: "companies")
            #expect(!world.allows("ann", "bob"))
            return world.memberships.keys(of: .init(tenant: "a", role: "any", claimed: ["user:ann"]))
        }
        let others: Set = ["user:ann", "team:t1:member", "company:c1"]
        let denying = "conversations: {any: [everyone], not: ['blocked-by:{user}', 'friend-of:{user}']}"
        #expect(try keys("{\(denying)}") == others)
        #expect(try keys("{\(denying), follows: {any: ['friend-of:{user}']}}") == others.union(["friend-of:cid"]))
        #expect(
            try keys("{conversations: {any: [], not: ['team:{user}:member']}}")
                == others.union(["friend-of:cid", "blocked-by:bob"]))
        #expect(
            try keys("{conversations: {any: ['friend-of:{id}'], not: ['friend-of:{user}', 'blocked-by:{user}']}}")
                == others.union(["friend-of:cid"]))
    }

    @Test(arguments: [
        ("7", "/contacts", "must be an object"),
        ("null", "/contacts", "is missing"),
        ("{conversation: []}", "/contacts/conversation", "is not a known field"),
        ("{follows: null}", "/contacts/follows", "must be {any: […], not: […]}, or []"),
        ("{follows: everyone}", "/contacts/follows", "must be {any: […], not: […]}, or []"),
        ("{follows: [everyone]}", "/contacts/follows", "must be {any: […], not: […]}, or []"),
        ("{follows: {}}", "/contacts/follows/any", "must be a list"),
        ("{follows: {any: null}}", "/contacts/follows/any", "must be a list"),
        ("{follows: {any: [everyone], not: null}}", "/contacts/follows/not", "must be a list"),
        ("{follows: {any: [everyone], nto: []}}", "/contacts/follows/nto", "is not a known field"),
        ("{follows: {any: [everyone, 'friend-of:{user}']}}", "/contacts/follows/any/0", "must be the only entry"),
        ("{follows: {any: ['friend-of:{user}', everyone]}}", "/contacts/follows/any/1", "must be the only entry"),
        ("{follows: {any: [], not: [everyone]}}", "/contacts/follows/not/0", "write follows: []"),
        ("{follows: {any: [7]}}", "/contacts/follows/any/0", "must be a template"),
        ("{follows: {any: ['{user}']}}", "/contacts/follows/any/0", "must begin with a constant"),
        ("{follows: {any: ['tenant:admin']}}", "/contacts/follows/any/0", "must have one column"),
        ("{follows: {any: ['a:{user}:{id}']}}", "/contacts/follows/any/0", "must have one column"),
        ("{follows: {any: ['user:{user}']}}", "/contacts/follows/any/0", "no two users share"),
        ("{follows: {any: ['freind-of:{user}']}}", "/contacts/follows/any/0", "did you mean friend-of:{user}?"),
        ("{follows: {any: ['team:{id}']}}", "/contacts/follows/any/0", "is no key that a membership or a token gives"),
        ("{follows: {any: ['taem:{id}:member']}}", "/contacts/follows/any/0", "did you mean team:{id}:member?"),
        ("{follows: {any: ['class:{id}:member']}}", "/contacts/follows/any/0", "cannot be known of the addressed user"),
        ("{follows: {any: ['shop:{id}:staff']}}", "/contacts/follows/any/0", "cannot be known of the addressed user"),
        ("{follows: {any: ['coach:{id}']}}", "/contacts/follows/any/0", "cannot be known of the addressed user"),
        ("{follows: {any: [], not: ['coach:{id}']}}", "/contacts/follows/not/0", "must name the addressed user"),
        ("{follows: {any: [], not: ['blocked-by:{usr}']}}", "/contacts/follows/not/0", "write {user}"),
        ("{follows: {any: ['friend-of:{User}']}}", "/contacts/follows/any/0", "write {user}"),
    ])
    func mistake_isRefused_withThePlace(_ contacts: String, _ place: String, _ detail: String) throws {
        guard !place.isEmpty else {
            // Another name than {user} is an id that both share.
            let rule = try #require(try Self.catalog(contacts).contacts.rules[.follows])
            #expect(rule.not.map(\.description) == ["blocked-by:{usr}"])
            return
        }
        let failure = #expect(throws: Failure.self) { try Self.catalog(contacts) }
        #expect(failure?.fields.map(\.pointer) == [place], "\(failure?.fields ?? [])")
        #expect(failure?.fields.first?.detail.contains(detail) == true, "\(failure?.fields ?? [])")
    }

    /// The role of a caller is known, so a key for the addressed user may depend on it.
    @Test func keyOfOneRole_isAllowedForTheCaller() throws {
        var world = try World("{conversations: {any: ['coach:{user}']}}")
        try world.add(["person": "ann", "coached": "bob"], to: "companies")
        func allows(_ role: String) -> Bool {
            let keys = world.memberships.keys(of: .init(tenant: "a", role: role, claimed: ["user:ann"]))
            let caller = ContactPolicy.Caller(
                tenant: "a", userId: "ann", role: role, keys: keys, omittedKeys: 0)
            return world.catalog.contacts.allows(.conversations, from: caller, to: "bob", by: world.memberships)
        }
        #expect(allows("coach"))
        #expect(!allows("player"))
    }

    /// A file may have rules alone, if they need no memberships.
    @Test func rules_areRead_withoutTables() throws {
        let catalog = try TableCatalog(
            reading: ShippedTables.value(
                yaml: "version: 1\ncontacts: {requests: [], follows: {any: ['student:{user}:parent']}}"),
            reserved: ShippedTables.reserved)
        #expect(catalog.contacts.rules.keys.count == 2)
    }
}
