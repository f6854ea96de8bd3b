import TestSupport
import Testing
import Values

@testable import Rows

/// R-SCH-FR-006 to R-SCH-FR-012, R-SCH-A-005: the queries that a change invalidates, per user. A key with `*` comes
/// without its cause.
@Suite(.timed) struct SchoolMappingTests {
    let world: SchoolWorld

    init() throws {
        world = try SchoolWorld()
    }

    private func own(_ more: RowWrite.Row = [:]) -> RowWrite.Row {
        ["id": "r1", "student_id": "s1", "school_id": "A"].merging(more) { $1 }
    }

    private func inserted(_ more: RowWrite.Row = [:]) -> RowWrite { RowWrite(.insert, old: nil, new: own(more)) }

    private func student(_ old: RowWrite.Row, _ new: RowWrite.Row) -> RowWrite {
        let row: RowWrite.Row = [
            "id": "s1", "class_id": "c1", "school_id": "A", "points": 5, "level": 1, "streak": 0, "name": "Ada",
        ]
        return RowWrite(.update, old: row.merging(old) { $1 }, new: row.merging(new) { $1 })
    }

    private func expect(
        _ change: RowWrite, of table: String, _ expected: [String: Set<String>],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for id in ["s1", "s2", "s3", "t1", "t2", "p1", "p3", "a1"] {
            let received = try world.received(change, of: table, by: id)
            #expect(received == expected[id] ?? [], "\(id)", sourceLocation: sourceLocation)
        }
    }

    /// R-SCH-FR-006, R-SCH-US1-1, R-SCH-US1-2, R-SCH-US1-4
    @Test func sticker_invalidatesDashboardStickersTrophyRoom_andTheClassesLeaderboard() throws {
        let own: Set = ["student-dashboard/s1", "stickers/s1", "trophy-room/s1"]
        try expect(
            inserted(), of: "student_stickers",
            [
                "s1": own.union(["leaderboard/c1"]), "s2": ["leaderboard/c1*"], "p1": own,
                "t1": own.union(["leaderboard/c1"]), "a1": own.union(["leaderboard/c1"]),
            ])
    }

    /// R-SCH-FR-006: only inserts
    @Test func sticker_updatedOrDeleted_invalidatesNothing() throws {
        try expect(RowWrite(.update, old: own(["note": "a"]), new: own(["note": "b"])), of: "student_stickers", [:])
        try expect(RowWrite(.delete, old: own(), new: nil), of: "student_stickers", [:])
    }

    /// R-SCH-FR-007, R-SCH-US2-1 to R-SCH-US2-3, R-SCH-US5-2, R-SCH-US6-2
    @Test func attendance_invalidatesParentDashboardCalendarAndAdminDashboard() throws {
        let expected: [String: Set<String>] = [
            "s1": ["attendance-calendar/s1"], "p1": ["attendance-calendar/s1", "parent-dashboard"],
            "t1": ["attendance-calendar/s1", "class-attendance/c1"],
            "a1": ["attendance-calendar/s1", "class-attendance/c1", "admin-dashboard"],
        ]
        try expect(inserted(["status": "absent"]), of: "attendance", expected)
        try expect(
            RowWrite(.update, old: own(["status": "absent"]), new: own(["status": "excused"])), of: "attendance",
            expected)
        try expect(RowWrite(.delete, old: own(), new: nil), of: "attendance", [:])
    }

    /// R-SCH-FR-008, R-SCH-US3-1, R-SCH-US3-2, R-SCH-US5-1
    @Test func session_invalidatesStudentDashboardHistoryAndTeacherDashboard() throws {
        let own: Set = ["student-dashboard/s1", "session-history/s1"]
        try expect(
            inserted(), of: "sessions",
            ["s1": own, "p1": own, "t1": own.union(["teacher-dashboard"]), "a1": own.union(["admin-dashboard"])])
    }

    /// R-SCH-FR-009, R-SCH-US1-3, R-SCH-US1-4
    @Test(arguments: ["points", "level", "streak"])
    func studentsFigures_invalidateLeaderboardDetailAndDashboards(_ column: String) throws {
        let detail: Set = ["student/s1", "student-dashboard/s1", "leaderboard/c1"]
        try expect(
            student([:], [column: 9]), of: "students",
            [
                "s1": detail, "s2": ["leaderboard/c1*"], "t1": detail.union(["teacher-dashboard"]),
                "a1": detail.union(["admin-dashboard", "students"]),
            ])
    }

    /// R-SCH-FR-009, R-SCH-FR-017: other columns make no figures stale; the detail and the admin's lists show them.
    @Test(arguments: ["name", "photo_url", "notes"])
    func studentsOtherColumns_invalidateTheDetail_andTheAdminsLists(_ column: String) throws {
        try expect(
            student([:], [column: "new"]), of: "students",
            ["s1": ["student/s1"], "t1": ["student/s1"], "a1": ["student/s1", "students"]])
    }

    /// R-SCH-FR-009: old and new are compared.
    @Test func studentWrittenWithoutAChange_isSilent() throws {
        try expect(student([:], [:]), of: "students", [:])
        #expect(try !world.table("students").matters(student([:], [:]), memberships: world.memberships))
        // A number that is written another way is the same number.
        try expect(student([:], ["points": .number(5.0)]), of: "students", [:])
    }

    /// R-SCH-FR-010, R-SCH-US4-1, R-SCH-US4-2: the old and the new owner
    @Test func student_movedToAnotherClass_concernsBothClasses() throws {
        let moved: Set = ["students", "teacher-dashboard", "student/s1", "student-dashboard/s1"]
        try expect(
            student([:], ["class_id": "c2"]), of: "students",
            [
                "s1": ["student/s1", "student-dashboard/s1"], "t1": moved.union(["class/c1"]),
                "t2": moved.union(["class/c2"]),
                "a1": ["students", "admin-dashboard", "student/s1", "student-dashboard/s1", "class/c1", "class/c2"],
            ])
    }

    /// R-SCH-FR-010 if the old row has only the primary key: the stored membership names the class that the student
    /// leaves
    @Test func student_moved_concernsTheOldClass_evenIfTheOldRowDoesNotNameIt() throws {
        let new: RowWrite.Row = ["id": "s1", "class_id": "c2", "school_id": "A", "points": 5]
        let received = try world.received(RowWrite(.update, old: ["id": "s1"], new: new), of: "students", by: "t1")
        #expect(received.isSuperset(of: ["students", "teacher-dashboard", "class/c1"]))
        #expect(!received.contains("class/c2"))
    }

    /// R-SCH-FR-010, R-SCH-US4-3
    @Test func class_givenToAnotherTeacher_invalidatesBothTeachers() throws {
        let change = RowWrite(
            .update, old: ["id": "c1", "teacher_id": "t1", "school_id": "A"],
            new: ["id": "c1", "teacher_id": "t2", "school_id": "A"])
        let expected: Set = ["students", "teacher-dashboard", "class/c1", "classes"]
        try expect(
            change, of: "classes", ["t1": expected, "t2": expected, "a1": ["class/c1", "classes", "admin-dashboard"]])
    }

    /// R-SCH-FR-011, R-SCH-US3-3
    @Test func homework_invalidatesItsCards() throws {
        let cards: Set = ["student-dashboard/s1", "homework/s1"]
        let expected = ["s1": cards, "p1": cards, "a1": cards]
        try expect(inserted(), of: "homework", expected)
        try expect(
            RowWrite(.update, old: own(["done": .bool(false)]), new: own(["done": .bool(true)])), of: "homework",
            expected)
    }

    /// R-SCH-FR-012, R-SCH-US1-5
    @Test(arguments: ["student_trophies", "student_achievements"])
    func trophy_invalidatesTrophyRoomAndDashboard(_ table: String) throws {
        let keys: Set = ["trophy-room/s1", "student-dashboard/s1"]
        try expect(inserted(), of: table, ["s1": keys, "a1": keys])
    }

    /// R-SCH-US5-3, R-SCH-US6-1
    @Test func student_created_invalidatesTheLists() throws {
        let new: RowWrite.Row = ["id": "s9", "class_id": "c1", "school_id": "A", "points": 0]
        try expect(
            RowWrite(.insert, old: nil, new: new), of: "students",
            ["t1": ["students", "class/c1", "teacher-dashboard"], "a1": ["students", "class/c1", "admin-dashboard"]])
    }

    /// R-SCH-US6-3
    @Test func class_edited_invalidatesItsDetail() throws {
        let old: RowWrite.Row = ["id": "c1", "teacher_id": "t1", "school_id": "A", "name": "Blue"]
        let change = RowWrite(.update, old: old, new: old.merging(["name": "Red"]) { $1 })
        try expect(change, of: "classes", ["t1": ["class/c1", "classes"], "a1": ["class/c1", "classes"]])
    }

    /// R-SCH-EC9: the parent's own view
    @Test func link_made_invalidatesTheParentsDashboard() throws {
        let link: RowWrite.Row = ["parent_id": "p3", "student_id": "s1", "school_id": "A"]
        try expect(RowWrite(.insert, old: nil, new: link), of: "parent_students", ["p3": ["parent-dashboard"]])
    }

    /// R-SCH-A-010
    @Test func reports_areNeverInvalidated() throws {
        let names = world.catalog.tables.flatMap(\.invalidates).flatMap(\.keys).flatMap(\.parts)
        #expect(!names.contains { if case .constant(let text) = $0 { text.hasPrefix("report") } else { false } })
        #expect(world.catalog.find(schema: "public", table: "lesson_progress") == nil)
    }

    /// R-SCH-FR-005: actor, origin and record
    @Test func cause_namesRecordActorAndOrigin() throws {
        let table = try world.table("student_stickers")
        let fromRow = table.cause(of: inserted(["awarded_by": "t1"]))
        #expect(fromRow.recordId == "r1")
        #expect(fromRow.actorId == "t1")
        #expect(fromRow.originId == nil)
        let named = RowWrite(.insert, old: nil, new: own(["awarded_by": "t1"]), actorId: "t2", originId: "tab-7")
        #expect(table.cause(of: named).actorId == "t2")
        #expect(table.cause(of: named).originId == "tab-7")
        let link = RowWrite(.delete, old: ["parent_id": "p:1", "student_id": "s1"], new: nil)
        #expect(try world.table("parent_students").cause(of: link).recordId == #"["p:1","s1"]"#)
    }

    /// R-SCH-FR-013: the tenant is checked before anything else
    @Test func rowWithoutSchool_isRefusedWithItsPointer() throws {
        let table = try world.table("attendance")
        let change = RowWrite(.insert, old: nil, new: ["id": "r1", "student_id": "s1"])
        let failure = #expect(throws: Failure.self) { try table.reach(of: change, memberships: world.memberships) }
        #expect(failure?.fields.first?.pointer == "/record/school_id")
    }

    /// If the old row has only the primary key, it is assumed to have been visible: readers of the new row receive an
    /// update, not an enter.
    @Test func oldRowWithThePrimaryKeyAlone_countsAsVisible() throws {
        let table = try world.table("homework")
        let change = RowWrite(.update, old: ["id": "r1"], new: own(["done": .bool(true)]))
        let reach = try table.reach(of: change, memberships: world.memberships)
        #expect(reach.old == reach.new)
        #expect(reach.new?.keys.contains("student:s1") == true)
        #expect(table.matters(change, memberships: world.memberships))
    }

    /// Ids may be numbers: remembered ids are compared by the value they denote.
    @Test func idsThatAreNumbers_doNotLookChanged() throws {
        var world = world
        let row: RowWrite.Row = ["id": 5, "class_id": 7, "school_id": 9, "points": 1]
        _ = world.memberships.apply(RowWrite(.insert, old: nil, new: row), of: try world.table("students"))
        let named = RowWrite(.update, old: ["id": 5, "points": 1, "level": 1, "streak": 1], new: row)
        #expect(try !world.table("students").matters(named, memberships: world.memberships))
        let reach = try world.table("students").reach(of: named, memberships: world.memberships)
        #expect(reach.old == reach.new)
        #expect(reach.new?.tenant == "9")
    }

    /// A column omitted from an update keeps its stored value. A column that the sender withheld is unknown, and
    /// grants no access.
    @Test func omittedColumn_keepsItsValue_unlessItWasWithheld() throws {
        let table = try world.table("students")
        func write(_ withheld: Set<String>) -> RowWrite {
            RowWrite(
                .update, old: ["id": "s1", "points": 1], new: ["id": "s1", "points": 1, "school_id": "A"],
                withheldColumns: withheld)
        }
        let whole = try table.reach(of: write([]), memberships: world.memberships)
        #expect(whole.new?.keys == ["student:s1", "class:c1:staff", "tenant:admin"])
        // A name that the sender truncated may have changed.
        #expect(table.matters(write(["name"]), memberships: world.memberships))
        let cut = try table.reach(of: write(["class_id"]), memberships: world.memberships)
        #expect(cut.old?.keys.contains("class:c1:staff") == true)
        #expect(cut.new?.keys == ["student:s1", "tenant:admin"])
        #expect(table.matters(write(["class_id"]), memberships: world.memberships))
        var world = world
        _ = world.memberships.apply(write([]), of: table)
        #expect(world.scope("s1", of: "A").contains("class:c1:member"))
        _ = world.memberships.apply(write(["class_id"]), of: table)
        #expect(!world.scope("s1", of: "A").contains("class:c1:member"))
    }

    /// The stored class of a student takes precedence over the class in a row. Without a stored class, the row's
    /// class is used.
    @Test func classOfAStudent_comesFromMemberships_orElseFromTheRow() throws {
        let table = try world.table("attendance")
        func keys(_ student: JSONValue) throws -> [String] {
            let row: RowWrite.Row = ["id": "r1", "student_id": student, "class_id": "c9", "school_id": "A"]
            return try table.reach(of: RowWrite(.insert, old: nil, new: row), memberships: world.memberships).new?.keys
                ?? []
        }
        #expect(try keys("s1").contains("class:c1:staff"))
        #expect(try !keys("s1").contains("class:c9:staff"))
        #expect(try keys("s77").contains("class:c9:staff"))
    }

    @Test func rowMovedToAnotherSchool_isSeenLeavingThereAndEnteringHere() throws {
        let table = try world.table("students")
        let old: RowWrite.Row = ["id": "s1", "class_id": "c1", "school_id": "A"]
        let change = RowWrite(.update, old: old, new: old.merging(["school_id": "B"]) { $1 })
        let reach = try table.reach(of: change, memberships: world.memberships)
        #expect(reach.old?.tenant == "A")
        #expect(reach.new?.tenant == "B")
        #expect(table.matters(change, memberships: world.memberships))
    }
}
