import Rows
import TestSupport
import Testing
import Values

@testable import Rows

/// R-SCH-EC9: memberships derived from ingested rows, and which claims of a token still count.
@Suite(.timed) struct MembershipsTests {
    var world: SchoolWorld

    init() throws { world = try SchoolWorld() }

    private func schoolClass(_ id: JSONValue, _ teacher: JSONValue, _ school: JSONValue = "A") -> RowWrite.Row {
        ["id": id, "teacher_id": teacher, "school_id": school]
    }

    private func update(_ old: RowWrite.Row, _ new: RowWrite.Row) -> RowWrite {
        RowWrite(.update, old: old, new: new)
    }

    private func holders(_ update: MembershipUpdate) -> Set<String> { Set(update.holders.map(\.key)) }

    /// R-SCH-EC9, R-SCH-US4-3
    @Test mutating func teacher_movedToAnotherClass_stopsReceivingTheOldOne() throws {
        #expect(world.scope("t1", of: "A").contains("class:c1:staff"))
        let table = try world.table("classes")
        let moved = world.memberships.apply(update(schoolClass("c1", "t1"), schoolClass("c1", "t2")), of: table)
        #expect(holders(moved) == ["user:t1", "user:t2"])
        #expect(!world.scope("t1", of: "A").contains("class:c1:staff"))
        #expect(world.scope("t2", of: "A").isSuperset(of: ["class:c1:staff", "class:c2:staff"]))
        #expect(world.scope("t1", of: "B").contains("class:c1:staff"))
        let sticker = RowWrite(.insert, old: nil, new: ["id": "r", "student_id": "s1", "school_id": "A"])
        #expect(try world.received(sticker, of: "student_stickers", by: "t1").isEmpty)
        #expect(try world.received(sticker, of: "student_stickers", by: "t2").contains("stickers/s1"))
    }

    /// The token was issued before the move and still claims the old class.
    @Test mutating func claimOfAnOldClass_staysIgnored_whenTheTeacherHasNoClass() throws {
        _ = world.memberships.apply(
            update(schoolClass("c1", "t1"), schoolClass("c1", .null)), of: try world.table("classes"))
        #expect(!world.scope("t1", of: "A", claims: ["class:c1:staff"]).contains("class:c1:staff"))
    }

    /// The first row received for a class is its move, and the old row does not name the previous teacher.
    @Test mutating func claimOfAKnownClass_isIgnored_evenFromAnUnknownTeacher() throws {
        let claims: Set = ["class:c9:staff"]
        #expect(world.scope("t9", of: "A", claims: claims).contains("class:c9:staff"))
        let moved = world.memberships.apply(
            update(["id": "c9"], schoolClass("c9", "t2")), of: try world.table("classes"))
        #expect(holders(moved) == ["user:t2", "class:c9:staff"])
        let origins = world.memberships.origins(
            of: .init(tenant: "A", role: "teacher", claimed: claims.union(["user:t9"])))
        #expect(origins == ["user:t9": .claimed, "class:c9:staff": .refuted(by: "class_teacher")])
        let taught = world.memberships.origins(of: .init(tenant: "A", role: "teacher", claimed: ["user:t1"]))
        #expect(taught["class:c1:staff"] == .granted(by: "class_teacher"))
        #expect(!world.scope("t9", of: "A", claims: claims).contains("class:c9:staff"))
        #expect(world.scope("t9", of: "B", claims: claims).contains("class:c9:staff"))
    }

    @Test func claims_apply_toUnknownSubjects() throws {
        let claims: Set = ["class:c7:staff", "student:s7:parent"]
        #expect(world.scope("t7", of: "A", claims: claims).isSuperset(of: claims))
        #expect(world.scope("p7", of: "A", claims: claims).contains("student:s7:parent"))
        // Received rows of one object do not affect claims about another.
        #expect(world.scope("t1", of: "A", claims: ["student:s7:parent"]).contains("student:s7:parent"))
        #expect(!world.scope("p1", of: "A", claims: ["student:s7:parent"]).contains("student:s7:parent"))
    }

    @Test func membership_countsForItsRoleOnly() throws {
        let keys = world.memberships.keys(of: .init(tenant: "A", role: "parent", claimed: ["user:t1", "student:s1"]))
        #expect(keys == ["user:t1", "student:s1"])
    }

    /// R-SCH-US4-2; R-23
    @Test mutating func student_movedOrDeleted_leavesTheClass() throws {
        let table = try world.table("students")
        #expect(world.scope("s1", of: "A").contains("class:c1:member"))
        let moved = world.memberships.apply(
            update(["id": "s1"], ["id": "s1", "class_id": "c2", "school_id": "A"]), of: table)
        #expect(holders(moved) == ["student:s1"])
        #expect(world.scope("s1", of: "A").contains("class:c2:member"))
        #expect(!world.scope("s1", of: "A", claims: ["class:c1:member"]).contains("class:c1:member"))
        // Both schools have an s1: a deletion that does not name the school cannot be attributed to either.
        #expect(world.memberships.apply(RowWrite(.delete, old: ["id": "s1"], new: nil), of: table).refusal != nil)
        let gone = RowWrite(.delete, old: ["id": "s1", "school_id": "A"], new: nil)
        #expect(holders(world.memberships.apply(gone, of: table)) == ["student:s1"])
        #expect(!world.scope("s1", of: "A").contains("class:c2:member"))
        #expect(world.scope("s1", of: "B").contains("class:c1:member"))
    }

    /// R-SCH-FR-013: a student that moves to another school belongs to no class of the first one.
    @Test mutating func student_movedToAnotherSchool_leavesTheFirst() throws {
        let table = try world.table("students")
        try world.load("students", ["id": "s8", "class_id": "c1", "school_id": "A"])
        let moved = update(
            ["id": "s8", "class_id": "c1", "school_id": "A"], ["id": "s8", "class_id": "c1", "school_id": "B"])
        let update = world.memberships.apply(moved, of: table)
        #expect(Set(update.holders.map(\.tenant)) == ["A", "B"])
        #expect(!world.scope("s8", of: "A", claims: ["class:c1:member"]).contains("class:c1:member"))
        #expect(world.scope("s8", of: "B").contains("class:c1:member"))
    }

    /// A primary key may change: the row under the old key is gone.
    @Test mutating func rowThatChangesItsKey_isOneRow() throws {
        let table = try world.table("parent_students")
        let moved = update(
            ["parent_id": "p1", "student_id": "s1", "school_id": "A"],
            ["parent_id": "p3", "student_id": "s1", "school_id": "A"])
        #expect(holders(world.memberships.apply(moved, of: table)) == ["user:p1", "user:p3"])
        #expect(!world.scope("p1", of: "A").contains("student:s1:parent"))
        #expect(world.scope("p3", of: "A").isSuperset(of: ["student:s1:parent", "student:s3:parent"]))
    }

    /// Databases send only the primary key of a deleted row, unless they are configured to send more.
    @Test mutating func deletionWithThePrimaryKeyAlone_usesTheRememberedRow() throws {
        let table = try world.table("students")
        try world.load("students", ["id": "s8", "class_id": "c1", "school_id": "B"])
        // Some senders omit the other columns, others set them to null.
        let nulls: RowWrite.Row = ["id": "s8", "class_id": .null, "school_id": .null]
        for old in [["id": "s8"], nulls] {
            let gone = RowWrite(.delete, old: old, new: nil)
            let reach = try table.reach(of: gone, memberships: world.memberships)
            #expect(reach.old == RowAudience(tenant: "B", keys: ["student:s8", "class:c1:staff", "tenant:admin"]))
        }
        let gone = RowWrite(.delete, old: nulls, new: nil)
        #expect(holders(world.memberships.apply(gone, of: table)) == ["student:s8"])
    }

    @Test mutating func parent_unlinked_stopsReceivingTheChild() throws {
        let table = try world.table("parent_students")
        #expect(world.scope("p1", of: "A").contains("student:s1:parent"))
        let link: RowWrite.Row = ["parent_id": "p1", "student_id": "s1", "school_id": "A"]
        let unlinked = world.memberships.apply(RowWrite(.delete, old: link, new: nil), of: table)
        #expect(holders(unlinked) == ["user:p1"])
        #expect(!world.scope("p1", of: "A", claims: ["student:s1:parent"]).contains("student:s1:parent"))
    }

    /// R-26: the link table has two columns.
    @Test mutating func linkWithoutSchool_takesItsStudentsSchool_ifUnambiguous() throws {
        let table = try world.table("parent_students")
        try world.load("students", ["id": "s8", "class_id": "c1", "school_id": "B"])
        let link: RowWrite.Row = ["parent_id": "p8", "student_id": "s8"]
        _ = world.memberships.apply(RowWrite(.insert, old: nil, new: link), of: table)
        #expect(world.scope("p8", of: "B").contains("student:s8:parent"))
        #expect(!world.scope("p8", of: "A").contains("student:s8:parent"))
        for student in ["s1", "s99"] {
            let link: RowWrite.Row = ["parent_id": "p8", "student_id": .string(student)]
            let refused = world.memberships.apply(RowWrite(.insert, old: nil, new: link), of: table)
            #expect(refused.refusal?.fields.first?.pointer == "/record/school_id", "\(student)")
        }
    }

    private static let stateful = """
        version: 1
        tables:
          - table: members
            primaryKey: [id]
            tenant: {column: org}
            audience: {select: ["team:{team}"]}
            memberships:
              - name: team_member
                subject: user:{person}
                grants: team:{team}
                when: {active: true, left_at: null}
        """

    private func member(_ id: String, _ person: String, _ team: String, active: Bool = true) -> RowWrite {
        RowWrite(
            .insert, old: nil,
            new: [
                "id": .string(id), "org": "o", "person": .string(person), "team": .string(team),
                "active": .bool(active),
            ])
    }

    private func teams(_ memberships: Memberships, _ person: String, claims: Set<String> = []) -> Set<String> {
        memberships.keys(of: .init(tenant: "o", role: "any", claimed: claims.union(["user:\(person)"])))
            .subtracting(["user:\(person)"])
    }

    @Test func rowCounts_onlyInItsState() throws {
        let catalog = try TableCatalog(reading: ShippedTables.value(yaml: Self.stateful))
        var memberships = Memberships(catalog)
        let table = catalog.tables[0]
        _ = memberships.apply(member("1", "ann", "red"), of: table)
        _ = memberships.apply(member("2", "ann", "red"), of: table)
        _ = memberships.apply(member("3", "ann", "blue", active: false), of: table)
        #expect(teams(memberships, "ann") == ["team:red"])
        // Two rows grant the same membership: removing one of them changes nothing yet.
        _ = memberships.apply(member("1", "ann", "red", active: false), of: table)
        #expect(teams(memberships, "ann") == ["team:red"])
        _ = memberships.apply(member("2", "ann", "red", active: false), of: table)
        #expect(teams(memberships, "ann", claims: ["team:red", "team:blue"]).isEmpty)
        #expect(memberships.apply(member("2", "ann", "red", active: false), of: table).isEmpty)
    }

    /// A restart must not revive old claims. The reassigned row is stored with its new owner, and the former owner is
    /// stored as a user whose rows have been received.
    @Test func formerOwnerOfARow_isKnown_afterARestart() throws {
        let catalog = try TableCatalog(reading: ShippedTables.value(yaml: Self.stateful))
        var memberships = Memberships(catalog)
        var stored: [String: MembershipFact] = [:]
        for person in ["ann", "ben"] {
            let update = memberships.apply(member("1", person, "red"), of: catalog.tables[0])
            for fact in update.facts { stored[fact.identity] = fact }
        }
        var restored = Memberships(catalog)
        for fact in stored.values { _ = restored.restore(fact, isCurrent: true) }
        for memberships in [memberships, restored] {
            #expect(teams(memberships, "ann", claims: ["team:red"]).isEmpty)
            #expect(teams(memberships, "ben") == ["team:red"])
        }
    }

    @Test mutating func truncatedTable_revokesAllItsMemberships() throws {
        let gone = world.memberships.truncate(try world.table("classes")) { tenant, _ in tenant != "A" }
        #expect(holders(gone) == ["user:t1", "user:t2"])
        #expect(!world.scope("t1", of: "A", claims: ["class:c1:staff"]).contains("class:c1:staff"))
        #expect(world.scope("t1", of: "B").contains("class:c1:staff"))
    }

    @Test func fullMemberships_refuseGrantsWithTheReason_andStillRevoke() throws {
        let catalog = try TableCatalog(reading: ShippedTables.value(yaml: Self.stateful))
        let table = catalog.tables[0]
        var memberships = Memberships(catalog, entriesMax: 2)
        #expect(memberships.apply(member("1", "ann", "red"), of: table).refusal == nil)
        #expect(memberships.apply(member("2", "ben", "red"), of: table).refusal?.code == "memberships.full")
        #expect(memberships.entryCount == 2)
        // The new owner exceeds the limit, so the grant is refused. The former owner still loses it.
        #expect(memberships.apply(member("1", "ben", "red"), of: table).refusal?.code == "memberships.full")
        #expect(teams(memberships, "ann").isEmpty)
        #expect(teams(memberships, "ben").isEmpty)
    }

    @Test func subject_hasNoMoreGrantsThanFitAScope() throws {
        let catalog = try TableCatalog(reading: ShippedTables.value(yaml: Self.stateful))
        var memberships = Memberships(catalog)
        for index in 0..<TableLimits.grantsPerSubjectMax {
            #expect(memberships.apply(member("\(index)", "ann", "t\(index)"), of: catalog.tables[0]).refusal == nil)
        }
        let refused = memberships.apply(member("x", "ann", "one-more"), of: catalog.tables[0]).refusal
        #expect(refused?.fields.first?.pointer == "/record/team")
        #expect(teams(memberships, "ann").count == TableLimits.grantsPerSubjectMax)
    }

    /// Keys beyond the limit of a scope are counted, and the same keys are kept every time.
    @Test func scope_reportsItsOmittedKeys() throws {
        let catalog = try TableCatalog(reading: ShippedTables.value(yaml: Self.stateful))
        var memberships = Memberships(catalog)
        let claimant = MembershipClaimant(tenant: "o", role: "any", claimed: ["user:ann", "user:ben"])
        let half = TableLimits.grantedKeysMax / 2
        for index in 0..<half {
            _ = memberships.apply(member("a\(index)", "ann", "a\(index)"), of: catalog.tables[0])
            _ = memberships.apply(member("b\(index)", "ben", "b\(index)"), of: catalog.tables[0])
        }
        #expect(memberships.scope(of: claimant).omitted == 0)
        #expect(memberships.keys(of: claimant).count == TableLimits.grantedKeysMax + 2)
        for index in 0..<7 { _ = memberships.apply(member("c\(index)", "ann", "c\(index)"), of: catalog.tables[0]) }
        // Another row grants one of the seven keys, and a claim already holds a key: neither is counted twice.
        _ = memberships.apply(member("d", "ben", "c0"), of: catalog.tables[0])
        let (keys, omitted) = memberships.scope(of: claimant)
        #expect(omitted == 7)
        #expect(keys.count == TableLimits.grantedKeysMax + 2)
        #expect(!keys.contains { $0.hasPrefix("team:c") })
    }

    /// Grants are followed transitively: user → student → class.
    @Test func grantedObject_isAKnownSubject() throws {
        let catalog = try TableCatalog(
            reading: ShippedTables.value(
                yaml: """
                    version: 1
                    tables:
                      - table: students
                        primaryKey: [id]
                        tenant: {column: school_id}
                        audience: {select: ["student:{id}"]}
                        memberships:
                          - {name: student_class, subject: "student:{id}", grants: "class:{class_id}:member"}
                          - {name: user_student, subject: "user:{user_id}", grants: "student:{id}"}
                    """))
        var memberships = Memberships(catalog)
        for number in ["1", "7"] {
            let row: RowWrite.Row = [
                "id": .string("s\(number)"), "user_id": .string("u\(number)"), "class_id": .string("c\(number)"),
                "school_id": "A",
            ]
            _ = memberships.apply(RowWrite(.insert, old: nil, new: row), of: catalog.tables[0])
        }
        // The received rows refute the claim of the other student, so that claim grants no class either.
        let keys = memberships.keys(of: .init(tenant: "A", role: "student", claimed: ["user:u1", "student:s7"]))
        #expect(keys == ["user:u1", "student:s1", "class:c1:member"])
    }

    /// A naive model: the last row of each class.
    private struct ClassRows {
        static let teachers = ["t1", "t2", "t3"]
        static let claims: Set = ["class:c0:staff", "class:c5:staff"]

        private var rows: [String: RowWrite.Row] = [:]
        private var everKnown: (teachers: Set<String>, classes: Set<String>) = ([], [])

        /// Returns a random change: another teacher for a class, no teacher, or the deletion of the class.
        mutating func change(_ random: inout SeededGenerator) -> RowWrite {
            let id = "c\(Int.random(in: 0..<6, using: &random))"
            let teacher = Self.teachers.randomElement(using: &random).map(JSONValue.string) ?? .null
            let old = rows[id]
            if old != nil, Int.random(in: 0..<4, using: &random) == 0 {
                rows[id] = nil
                return RowWrite(.delete, old: ["id": .string(id), "school_id": "A"], new: nil)
            }
            let new: RowWrite.Row = ["id": .string(id), "teacher_id": teacher, "school_id": "A"]
            rows[id] = new
            everKnown.classes.insert(id)
            if case .string(let name) = teacher { everKnown.teachers.insert(name) }
            return RowWrite(old == nil ? .insert : .update, old: old, new: new)
        }

        func keys(of teacher: String) -> Set<String> {
            var keys: Set = ["everyone", "user:\(teacher)"]
            for (id, row) in rows where row["teacher_id"] == .string(teacher) { keys.insert("class:\(id):staff") }
            guard !everKnown.teachers.contains(teacher) else { return keys }
            return keys.union(["c0", "c5"].filter { !everKnown.classes.contains($0) }.map { "class:\($0):staff" })
        }
    }

    /// Random rows, moves and deletions. The keys equal the keys of the naive model. A holder whose keys changed holds
    /// a key that the update names. The stored facts restore the same structure.
    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    mutating func memberships_followTheLatestRows(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var stored: [String: MembershipFact] = [:]
        var plain = ClassRows()
        world.memberships = Memberships(world.catalog)
        let table = try world.table("classes")
        for _ in 0..<300 {
            let before = world
            let update = world.memberships.apply(plain.change(&random), of: table)
            for fact in update.facts { stored[fact.identity] = fact }
            for name in ClassRows.teachers {
                let old = before.scope(name, of: "A", claims: ClassRows.claims)
                let new = world.scope(name, of: "A", claims: ClassRows.claims)
                #expect(new == plain.keys(of: name), "seed \(seed), \(name)")
                if new != old { #expect(!holders(update).isDisjoint(with: old), "seed \(seed), \(name)") }
            }
        }
        var restored = Memberships(world.catalog)
        for fact in stored.values { _ = restored.restore(fact, isCurrent: true) }
        for name in ClassRows.teachers {
            let holder = MembershipClaimant(
                tenant: "A", role: "teacher", claimed: ClassRows.claims.union(["user:\(name)"]))
            #expect(restored.keys(of: holder) == world.memberships.keys(of: holder), "seed \(seed)")
        }
    }

    // MARK: Rules of the file

    private static func catalog(_ members: String, tenant: String = "{constant: default}") throws -> TableCatalog {
        try TableCatalog(
            reading: ShippedTables.value(
                yaml: """
                    version: 1
                    tables:
                      - table: schools
                        primaryKey: [id]
                        tenant: {column: tenant}
                        audience: {select: [everyone]}
                        memberships: [{name: school, subject: "school:{id}", grants: "tenant-of:{tenant}"}]
                      - table: members
                        primaryKey: [id]
                        tenant: \(tenant)
                        audience: {select: ["user:{user_id}"]}
                        memberships: [\(members)]
                    """))
    }

    private static let team = #"name: team, subject: "user:{user_id}", grants: "team:{team_id}:member""#

    /// The rule is what decides which fact a row gives, and nothing else.
    @Test func rule_changesWithWhatDecidesTheFacts() throws {
        let rule = try #require(try Self.catalog("{\(Self.team), when: {state: [a, b], kind: [1]}}").rules["team"])
        for same in [
            "{\(Self.team), when: {kind: [1], state: [b, a]}}",
            "{\(Self.team), role: clerk, when: {state: [a, b], kind: [1]}}",
            #"{name: team, subject: "user:{user_id}", grants: "squad:{team_id}", when: {state: [a, b], kind: [1]}}"#,
        ] { #expect(try Self.catalog(same).rules["team"] == rule) }
        for other in [
            "{\(Self.team)}", "{\(Self.team), when: {state: [a, b], kind: ['1']}}",
            "{\(Self.team), when: {state: {not: [a, b]}, kind: [1]}}",
            #"{name: team, subject: "user:{owner_id}", grants: "team:{team_id}:member", when: {state: [a, b], kind: [1]}}"#,
            #"{name: team, subject: "student:{user_id}", grants: "team:{team_id}:member", when: {state: [a, b], kind: [1]}}"#,
            #"{name: team, subject: "user:{user_id}", grants: "team:{club_id}:member", when: {state: [a, b], kind: [1]}}"#,
        ] { #expect(try Self.catalog(other).rules["team"] != rule) }
        let tenants = ["{constant: other}", "{column: tenant}", "{through: schools, of: school_id}"]
        let rules = try tenants.map { try Self.catalog("{\(Self.team)}", tenant: $0).rules["team"] }
        #expect(Set(rules).count == 3)
    }

    @Test func outdatedFact_givesNothing_untilItsRowComesAgain() throws {
        let catalog = try TableCatalog(reading: ShippedTables.value(yaml: Self.stateful))
        let table = catalog.tables[0]
        var memberships = Memberships(catalog)
        let facts = memberships.apply(member("1", "ann", "red"), of: table).facts
        var restored = Memberships(catalog)
        for fact in facts { _ = restored.restore(fact, isCurrent: false) }
        #expect(teams(restored, "ann", claims: ["team:red"]).isEmpty)
        #expect(restored.outdated.map(\.rows) == [1])
        #expect(restored.tenant(ofRow: "1", of: table) == nil)
        #expect(restored.storedColumns(table: table, row: "1", tenant: facts[0].tenant) == nil)
        var removed = restored
        #expect(removed.truncate(table).facts.count == 1 && removed.outdated.isEmpty)
        #expect(restored.apply(member("1", "ann", "red"), of: table).facts.count == 1)
        #expect(teams(restored, "ann") == ["team:red"] && restored.outdated.isEmpty)
        #expect(memberships.retire(["team_member"]).map(\.key) == ["user:ann"])
        #expect(teams(memberships, "ann").isEmpty)
    }
}
