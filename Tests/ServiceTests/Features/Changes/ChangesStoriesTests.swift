import BellhopClient
import TestSupport
import Testing

/// The acceptance scenarios of R-SCH-US1 to R-SCH-US6: one user acts, which reaches the service as a webhook of the
/// school's database, while another has a screen open. R-SCH-NFR-001, R-SCH-SC-001, R-SCH-SC-002: within 5 seconds.
@Suite(.timed, .serialized) struct ChangesStoriesTests {
    let school: School
    let service: TestService

    init() async throws {
        school = try await School()
        service = school.service
    }

    // MARK: R-SCH-US1, a student sees a sticker

    /// R-SCH-US1-1: the dashboard's stickers, points and achievements.
    @Test func studentOnTheDashboard_seesTheStickerThatIsAwarded() async throws {
        let student = try await service.listen(as: School.student("s1"))
        try await school.send(
            School.sticker("k1", to: "s1", by: "t1"), School.student("s1", from: ["points": 0], to: ["points": 10]),
            School.own("student_achievements", "h1", of: "s1"))
        try await student.receives([
            "student-dashboard/s1", "stickers/s1", "trophy-room/s1", "leaderboard/c1", "student/s1",
        ])
    }

    /// R-SCH-US1-2: the collection's grid.
    @Test func studentOnTheStickersPage_seesTheNewSticker() async throws {
        let student = try await service.listen(as: School.student("s1"))
        try await school.send(School.sticker("k1", to: "s1", by: "t1"))
        let causes = try await student.receives([
            "student-dashboard/s1", "stickers/s1", "trophy-room/s1", "leaderboard/c1",
        ])
        #expect(causes.map { $0["recordId"].string } == ["k1"])
    }

    /// R-SCH-US1-3: the student reaches a new level.
    @Test func studentWhoCrossesALevel_seesTheNewLevel() async throws {
        let student = try await service.listen(as: School.student("s1"))
        try await school.send(School.student("s1", from: ["points": 95, "level": 1], to: ["points": 105, "level": 2]))
        try await student.receives(["student/s1", "student-dashboard/s1", "leaderboard/c1"])
    }

    /// R-SCH-US1-4: any classmate earns points, by any means; a student of another class does not receive it.
    @Test(arguments: ["student_stickers", "sessions", "homework"])
    func studentOnTheLeaderboard_seesClassmatesPoints(_ table: String) async throws {
        let classmate = try await service.listen(as: School.student("s2"))
        let stranger = try await service.listen(as: School.student("s3"))
        try await school.send(
            School.own(table, "r1", of: "s1"), School.student("s1", from: ["points": 0], to: ["points": 10]))
        let causes = try await classmate.receives(["leaderboard/c1"])
        #expect(causes.isEmpty, "classmates must not learn whose points they are")
        try await school.send(School.student("s3", of: "c2", from: ["points": 0], to: ["points": 1]))
        try await stranger.receives(["student/s3", "student-dashboard/s3", "leaderboard/c2"])
    }

    /// R-SCH-US1-5: the database itself awards a trophy.
    @Test(arguments: ["student_trophies", "student_achievements"])
    func studentInTheTrophyRoom_seesWhatWasEarned(_ table: String) async throws {
        let student = try await service.listen(as: School.student("s1"))
        try await school.send(School.own(table, "h1", of: "s1"))
        try await student.receives(["trophy-room/s1", "student-dashboard/s1"])
    }

    // MARK: R-SCH-US2, a parent sees attendance

    /// R-SCH-US2-1: the day in the calendar, for every status.
    @Test(arguments: ["present", "absent", "late", "excused"])
    func parentAtTheCalendar_seesTheDayThatIsMarked(_ status: String) async throws {
        let parent = try await service.listen(as: School.parent("p1"))
        try await school.send(School.attendance("a1", of: "s1", status))
        try await parent.receives(["attendance-calendar/s1", "parent-dashboard"])
    }

    /// R-SCH-US2-2: the card of each child.
    @Test func parentAtTheDashboard_seesAnyOfTheChildren() async throws {
        try await school.send(
            School.insert("parent_students", ["parent_id": "p1", "student_id": "s3", "school_id": "A"]))
        let parent = try await service.listen(as: School.parent("p1"))
        try await school.send(School.attendance("a1", of: "s1", "present"))
        try await parent.receives(["attendance-calendar/s1", "parent-dashboard"])
        try await school.send(School.attendance("a3", of: "s3", "late"))
        try await parent.receives(["attendance-calendar/s3", "parent-dashboard"])
        // Changes of other children are not delivered; the next event concerns the own child.
        try await school.send(School.attendance("a2", of: "s2", "late"))
        try await school.send(School.own("homework", "w1", of: "s1"))
        try await parent.receives(["student-dashboard/s1", "homework/s1"])
    }

    /// R-SCH-US2-3: absent becomes excused.
    @Test func parentAtTheCalendar_seesAStatusThatIsChanged() async throws {
        let parent = try await service.listen(as: School.parent("p1"))
        try await school.send(
            School.update(
                "attendance", from: School.attendanceRow("a1", of: "s1", "absent"),
                to: School.attendanceRow("a1", of: "s1", "excused")))
        let causes = try await parent.receives(["attendance-calendar/s1", "parent-dashboard"])
        #expect(causes.map { $0["type"].string } == ["UPDATE"])
    }

    // MARK: R-SCH-US3, a student sees a session

    /// R-SCH-US3-1: the history's first entry.
    @Test func studentAtTheHistory_seesTheNewSession() async throws {
        let student = try await service.listen(as: School.student("s1"))
        try await school.send(School.own("sessions", "e1", of: "s1"))
        try await student.receives(["student-dashboard/s1", "session-history/s1"])
    }

    /// R-SCH-US3-2: points and the number of sessions on the dashboard.
    @Test func studentOnTheDashboard_seesPointsAndSessions() async throws {
        let student = try await service.listen(as: School.student("s1"))
        try await school.send(
            School.own("sessions", "e1", of: "s1"), School.student("s1", from: ["points": 0], to: ["points": 5]))
        try await student.receives(["student-dashboard/s1", "session-history/s1", "student/s1", "leaderboard/c1"])
    }

    /// R-SCH-US3-3: a session with homework, whose card appears and changes.
    @Test func studentOnTheDashboard_seesHomework() async throws {
        let student = try await service.listen(as: School.student("s1"))
        try await school.send(School.own("sessions", "e1", of: "s1"), School.own("homework", "w1", of: "s1"))
        try await student.receives(["student-dashboard/s1", "session-history/s1", "homework/s1"])
        let row: JSON = ["id": "w1", "school_id": "A", "student_id": "s1", "done": false]
        let done: JSON = ["id": "w1", "school_id": "A", "student_id": "s1", "done": true]
        try await school.send(School.update("homework", from: row, to: done))
        try await student.receives(["student-dashboard/s1", "homework/s1"])
    }

    // MARK: R-SCH-US4, a teacher's dashboard

    /// R-SCH-US4-1: a student joins the class, either as a new student or from another class.
    @Test func teacherAtTheDashboard_seesAStudentWhoJoins() async throws {
        let teacher = try await service.listen(as: School.teacher("t1"))
        try await school.send(School.insert("students", ["id": "s9", "school_id": "A", "class_id": "c1", "points": 0]))
        try await teacher.receives(["students", "class/c1", "teacher-dashboard"])
        try await school.send(School.student("s3", of: "c2", from: [:], to: ["class_id": "c1"]))
        try await teacher.receives(["students", "class/c1", "teacher-dashboard", "student/s3", "student-dashboard/s3"])
    }

    /// R-SCH-US4-2: a student leaves the class, and their rows are no longer delivered.
    @Test func teacherAtTheList_seesAStudentWhoLeaves() async throws {
        let teacher = try await service.listen(as: School.teacher("t1"))
        try await school.send(School.student("s1", from: [:], to: ["class_id": "c2"]))
        try await teacher.receives(["students", "class/c1", "teacher-dashboard", "student/s1", "student-dashboard/s1"])
        try await school.send(School.attendance("a1", of: "s1", "late"), School.own("sessions", "e1", of: "s1"))
        try await school.send(School.attendance("a2", of: "s2", "late"))
        try await teacher.receives(["attendance-calendar/s2", "class-attendance/c1"])
    }

    /// R-SCH-US4-3: the teacher gets another class, and the scope follows.
    @Test func teacherAtTheDashboard_seesTheClassThatIsNewlyTheirs() async throws {
        let teacher = try await service.listen(as: School.teacher("t1"))
        try await school.send(School.teaches("c1", from: "t1", to: "t2"), School.teaches("c2", from: "t2", to: "t1"))
        try await teacher.nextScope(without: "class:c1:staff", with: "class:c2:staff")
        try await teacher.receives(["students", "teacher-dashboard", "classes", "class/c1", "class/c2"])
        // The old class sends nothing, the new one is delivered.
        try await school.send(School.own("sessions", "e1", of: "s1"))
        try await school.send(School.own("sessions", "e3", of: "s3"))
        try await teacher.receives(["student-dashboard/s3", "session-history/s3", "teacher-dashboard"])
    }

    // MARK: R-SCH-US5, an admin's dashboard

    /// R-SCH-US5-1: today's sessions.
    @Test func adminAtTheDashboard_seesASessionThatIsLogged() async throws {
        let admin = try await service.listen(as: School.admin())
        try await school.send(School.own("sessions", "e1", of: "s3"))
        try await admin.receives(["admin-dashboard", "student-dashboard/s3", "session-history/s3"])
    }

    /// R-SCH-US5-2: a whole class is marked at once, by this admin or by another.
    @Test(arguments: ["a1", "a2"]) func adminAtTheDashboard_seesTheAttendanceOfAClass(_ marker: String) async throws {
        let admin = try await service.listen(as: School.admin())
        try await school.send(["s1", "s2"].map { School.attendance("a-\($0)", of: $0, "present", by: marker) })
        let causes = try await admin.receives([
            "admin-dashboard", "class-attendance/c1", "attendance-calendar/s1", "attendance-calendar/s2",
        ])
        #expect(Set(causes.map { $0["actorId"].string }) == [marker])
        #expect(causes.count == 2)
    }

    /// R-SCH-US5-3: another admin creates a student.
    @Test func adminAtTheList_seesANewStudent() async throws {
        let admin = try await service.listen(as: School.admin())
        try await school.send(School.insert("students", ["id": "s9", "school_id": "A", "class_id": "c1", "points": 0]))
        try await admin.receives(["students", "class/c1", "admin-dashboard"])
    }

    // MARK: R-SCH-US6, two admins

    /// R-SCH-US6-1: both admins receive the student that one of them creates; the author recognizes the echo.
    @Test func createdStudent_isSeenByBothAdmins() async throws {
        let first = try await service.listen(as: School.admin("a1"))
        let second = try await service.listen(as: School.admin("a2"))
        let row: JSON = ["id": "s9", "school_id": "A", "class_id": "c1", "points": 0]
        try await school.send([School.insert("students", row)], from: "the first admin's browser")
        for admin in [first, second] {
            let causes = try await admin.receives(["students", "class/c1", "admin-dashboard"])
            #expect(causes.map { $0["originId"].string } == ["the first admin's browser"])
        }
    }

    /// R-SCH-US6-2: the page of the class shows the attendance that another admin has marked.
    @Test func adminAtAClassesAttendance_seesWhatAnotherOneMarks() async throws {
        let other = try await service.listen(as: School.admin("a2"))
        try await school.send(["s1", "s2"].map { School.attendance("a-\($0)", of: $0, "late", by: "a1") })
        try await other.receives([
            "admin-dashboard", "class-attendance/c1", "attendance-calendar/s1", "attendance-calendar/s2",
        ])
    }

    /// R-SCH-US6-3: another admin edits the open class: name, teacher, schedule.
    @Test(arguments: ["name", "teacher_id", "schedule"])
    func adminAtAClass_seesAnothersEdit(_ column: String) async throws {
        let other = try await service.listen(as: School.admin("a2"))
        let row: [String: JSON] = ["id": "c1", "school_id": "A", "teacher_id": "t1", "name": "1a", "schedule": "Mon"]
        try await school.send(
            School.update("classes", from: .object(row), to: .object(row.merging([column: "t2"]) { $1 })))
        try await other.receives(
            column == "teacher_id" ? ["classes", "class/c1", "admin-dashboard"] : ["classes", "class/c1"])
    }
}
