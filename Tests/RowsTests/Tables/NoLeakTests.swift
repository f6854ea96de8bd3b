import TestSupport
import Testing
import Values

@testable import Rows

/// R-SCH-FR-013 to R-SCH-FR-017, R-23, R-32: which role may see which row of the school, for every kind of change to a row.
@Suite(.timed) struct NoLeakTests {
    enum Role: String, CaseIterable {
        case student, teacher, parent, admin
    }

    enum Move: String, CaseIterable {
        case insert, update, delete, leave
    }

    /// The versions of a changed row that a person may see: the old row and the new row.
    struct Sight: Hashable {
        var old = false
        var new = false
    }

    struct Case: CustomTestStringConvertible {
        let role: Role
        let table: String
        let move: Move
        let school: String

        var testDescription: String { "\(role) \(table) \(move) school \(school)" }
    }

    /// The roles that may see the row of `s1`, `c1`, `t1` and `p1`: R-SCH-FR-014 (own rows), R-SCH-FR-015 (students,
    /// sessions, attendance, stickers of own classes), R-SCH-FR-016 (attendance, sessions, stickers, homework of linked
    /// children), R-SCH-FR-017 (the whole school).
    static let readers: [(table: String, roles: Set<Role>)] = [
        ("student_stickers", [.student, .teacher, .parent, .admin]),
        ("attendance", [.student, .teacher, .parent, .admin]),
        ("sessions", [.student, .teacher, .parent, .admin]),
        ("students", [.student, .teacher, .admin]),
        ("classes", [.teacher, .admin]),
        ("homework", [.student, .parent, .admin]),
        ("student_trophies", [.student, .admin]),
        ("student_achievements", [.student, .admin]),
        ("parent_students", [.parent, .admin]),
        ("teachers", [.teacher, .admin]),
        ("profiles", [.student, .admin]),
    ]

    static let cases: [Case] = Role.allCases.flatMap { role in
        readers.flatMap { table, _ in
            Move.allCases.flatMap { move in
                SchoolWorld.schools.map { Case(role: role, table: table, move: move, school: $0) }
            }
        }
    }

    static func row(_ table: String, _ school: String, moved: Bool) -> RowWrite.Row {
        var row: RowWrite.Row
        switch table {
        case "students": row = ["id": "s1", "class_id": moved ? "c2" : "c1", "points": 1]
        case "classes": row = ["id": "c1", "teacher_id": moved ? "t2" : "t1"]
        case "parent_students": row = ["parent_id": moved ? "p3" : "p1", "student_id": "s1"]
        case "teachers": row = ["id": moved ? "t2" : "t1"]
        case "profiles": row = ["id": moved ? "s3" : "s1"]
        default: row = ["id": "r1", "student_id": moved ? "s3" : "s1"]
        }
        row["school_id"] = .string(school)
        row["note"] = moved ? "moved" : "first"
        return row
    }

    static func change(_ test: Case) -> RowWrite {
        let first = row(test.table, test.school, moved: false)
        switch test.move {
        case .insert: return RowWrite(.insert, old: nil, new: first)
        case .delete: return RowWrite(.delete, old: first, new: nil)
        case .leave: return RowWrite(.update, old: first, new: row(test.table, test.school, moved: true))
        case .update:
            var new = first
            new["points"] = 2
            new["note"] = "second"
            return RowWrite(.update, old: first, new: new)
        }
    }

    /// Returns the owner of the row before the move (`insider`) and after it (`outsider`), for a role.
    static func people(_ role: Role) -> (insider: String, outsider: String) {
        switch role {
        case .student: ("s1", "s3")
        case .teacher: ("t1", "t2")
        case .parent: ("p1", "p3")
        case .admin: ("a1", "a1")
        }
    }

    static func expected(_ test: Case, insider: Bool) -> Sight {
        guard readers.contains(where: { $0.table == test.table && $0.roles.contains(test.role) }) else {
            return Sight()
        }
        // After a change of class, students can still see their own row; an admin sees all rows of the school.
        let stays = test.role == .admin || (test.table == "students" && test.role == .student)
        switch test.move {
        case .insert: return Sight(new: stays ? insider || test.role == .admin : insider)
        case .update: return insider || test.role == .admin ? Sight(old: true, new: true) : Sight()
        case .delete: return Sight(old: insider || test.role == .admin)
        case .leave:
            if stays { return insider || test.role == .admin ? Sight(old: true, new: true) : Sight() }
            return insider ? Sight(old: true) : Sight(new: true)
        }
    }

    @Test func theTable_namesEveryCombination() {
        #expect(Self.cases.count == 4 * 11 * 4 * 2)
        #expect(Set(Self.cases.map(\.testDescription)).count == Self.cases.count)
    }

    @Test(arguments: cases) func row_isVisibleToItsAudienceOnly(_ test: Case) throws {
        var world = try SchoolWorld()
        let table = try world.table(test.table)
        let change = Self.change(test)
        let reach = try table.reach(of: change, memberships: world.memberships)
        let before = world
        _ = world.memberships.apply(change, of: table)
        let other = test.school == "A" ? "B" : "A"
        let people = Self.people(test.role)

        func sight(_ id: String, _ school: String) -> Sight {
            Sight(
                old: reach.old?.isSeen(by: before.scope(id, of: school), of: school) ?? false,
                new: reach.new?.isSeen(by: world.scope(id, of: school), of: school) ?? false)
        }
        #expect(sight(people.insider, test.school) == Self.expected(test, insider: true))
        if test.role != .admin {
            #expect(sight(people.outsider, test.school) == Self.expected(test, insider: false))
        }
        if test.role == .student { #expect(sight("s2", test.school) == Sight(), "a classmate") }
        for id in [people.insider, people.outsider, "s2"] {
            #expect(sight(id, other) == Sight(), "\(id) of the other school")
        }
    }

    /// No person receives a cause without access to the row, no other school receives a key, and a classmate receives
    /// only the leaderboard's key.
    @Test(arguments: cases) func invalidation_containsVisibleKeysOnly(_ test: Case) throws {
        let world = try SchoolWorld()
        let table = try world.table(test.table)
        let change = Self.change(test)
        let reach = try table.reach(of: change, memberships: world.memberships)
        let invalidations = try table.invalidations(of: change, memberships: world.memberships)
        let other = test.school == "A" ? "B" : "A"
        let people = Self.people(test.role)
        #expect(invalidations.allSatisfy { $0.tenant == ID(test.school) })
        for id in [people.insider, people.outsider, "s2"] {
            #expect(try world.received(change, of: test.table, by: id, of: other).isEmpty)
            let keys = world.scope(id, of: test.school)
            let sees = [reach.old, reach.new].contains { $0?.isSeen(by: keys, of: test.school) ?? false }
            let received = try world.received(change, of: test.table, by: id, of: test.school)
            if !sees {
                #expect(
                    received.allSatisfy { $0 == "leaderboard/c1*" || $0 == "leaderboard/c2*" }, "\(id): \(received)")
            }
        }
        let classmate = try world.received(change, of: test.table, by: "s2", of: test.school)
        #expect(classmate.isSubset(of: ["leaderboard/c1*"]))
    }
}
