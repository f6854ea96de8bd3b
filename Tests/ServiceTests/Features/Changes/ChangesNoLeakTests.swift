import BellhopClient
import Foundation
import TestSupport
import Testing

@testable import Service

/// Delivery of the school's rows over real HTTP and streams: 4 roles, 11 tables, 4 kinds of change, 2 schools. The
/// expectations come from the requirements (R-SCH-FR-006 to R-SCH-FR-017), not from the declarations.
///
/// All changes are sent once, in sequence, while every person listens. The tests examine the received events.
@Suite(.timed) struct ChangesNoLeakTests {
    enum Role: String, CaseIterable {
        case student, teacher, parent, admin

        /// First the people concerned by the rows, then the people concerned only after a move.
        var people: [String] {
            switch self {
            case .student: ["s1", "s2", "s3"]
            case .teacher: ["t1", "t2"]
            case .parent: ["p1", "p3"]
            case .admin: ["a1"]
            }
        }
    }

    struct Case: CustomTestStringConvertible {
        let role: Role
        let table: String
        let move: SchoolMoves.Move
        let school: String

        var testDescription: String { "\(role) \(table) \(move) school \(school)" }
    }

    static let cases: [Case] = Role.allCases.flatMap { role in
        SchoolMoves.tables.flatMap { table in
            SchoolMoves.Move.allCases.flatMap { move in
                School.names.map { Case(role: role, table: table, move: move, school: $0) }
            }
        }
    }

    /// The events that each person received for each change, recorded once for all cases.
    static let recording = Task { try await SchoolRecording.make() }

    @Test func theTable_namesEveryCombination() {
        #expect(Self.cases.count == 4 * 11 * 4 * 2)
        #expect(Set(Self.cases.map(\.testDescription)).count == Self.cases.count)
    }

    /// R-SCH-FR-013 to R-SCH-FR-017, R-ENG-E-6: permitted readers receive rows as enter, update or leave. The old and
    /// the new row decide, and deletes follow the same rule.
    @Test(arguments: cases) func row_reachesItsAudienceOnly(_ test: Case) async throws {
        let recording = try await Self.recording.value
        for person in test.role.people {
            let received = recording.received(test.table, test.move, of: test.school, by: person)
            let expected = SchoolMoves.sight(of: test.table, test.move, by: person)
            #expect(received.map(\.transitions) == [expected].compactMap(\.self), "\(person)")
        }
    }

    /// R-SCH-FR-006 to R-SCH-FR-017, R-32: the invalidated keys, for users with such a query.
    @Test(arguments: cases) func queryKey_reachesItsAudienceOnly(_ test: Case) async throws {
        let recording = try await Self.recording.value
        for person in test.role.people {
            let stale = recording.stale(test.table, test.move, of: test.school, by: person)
            #expect(stale == SchoolMoves.keys(of: test.table, test.move, for: person), "\(person)")
        }
    }

    /// R-SCH-FR-005, R-23: a cause is delivered only to readers of the row that it names.
    @Test(arguments: cases) func cause_reachesStreamsThatMaySeeItsRow(_ test: Case) async throws {
        let recording = try await Self.recording.value
        for person in test.role.people where !SchoolMoves.keys(of: test.table, test.move, for: person).isEmpty {
            let causes = recording.causes(test.table, test.move, of: test.school, by: person)
            let may = SchoolMoves.seesCause(of: test.table, test.move, person)
            #expect(causes.isEmpty == !may, "\(person): \(causes)")
        }
    }

    /// R-SCH-EC5, R-SCH-A-002: people of the other school have the same ids and receive nothing.
    @Test(arguments: cases) func otherSchool_receivesNothing(_ test: Case) async throws {
        let recording = try await Self.recording.value
        let other = test.school == "A" ? "B" : "A"
        for person in test.role.people {
            let events = recording.events(test.table, test.move, of: test.school, reaching: person, of: other)
            #expect(events.isEmpty, "\(person): \(events)")
        }
    }

    /// R-SCH-NFR-002, R-SCH-A-004, R-ENG-E-6: an invalidation carries no columns except ids. An event carries the
    /// selected columns and the row's key. A user without access to a row receives no byte of it.
    @Test(arguments: cases) func event_containsOnlyVisibleColumns(_ test: Case) async throws {
        let recording = try await Self.recording.value
        for person in test.role.people {
            let sight = SchoolMoves.sight(of: test.table, test.move, by: person)
            let events = recording.events(test.table, test.move, of: test.school, reaching: person, of: test.school)
            for event in events {
                // Only an event with the whole row carries its texts. The old text goes to users with access before
                // and after the change, and the new text to users with access after it.
                let isWhole = event.name == "table:change" && event.data.contains("\"all/")
                let mayHaveOld = isWhole && sight == "update"
                let mayHaveNew = isWhole && (sight == "enter" || sight == "update")
                #expect(!event.data.contains(SchoolMoves.oldSecret) || mayHaveOld, "\(person): \(event.data)")
                #expect(!event.data.contains(SchoolMoves.newSecret) || mayHaveNew, "\(person): \(event.data)")
                // A user that loses a row must not learn its new owner.
                guard sight == "leave" || sight == nil, test.move == .leave, event.name != "stream:scope" else {
                    continue
                }
                for other in ["s3", "p3", "t2"] where other != person {
                    #expect(!event.data.contains(other), "\(person) receives \(other): \(event.data)")
                }
            }
            for row in recording.received(test.table, test.move, of: test.school, by: person) {
                for narrow in row.narrow {
                    let key = SchoolMoves.primaryKey(of: test.table)
                    #expect(narrow.isSubset(of: key.union(["school_id"])), "\(person): \(narrow)")
                }
            }
        }
    }
}

/// The changes to the rows of each table, and the expected receivers.
enum SchoolMoves {
    enum Move: String, CaseIterable {
        case insert, update, delete
        /// The row moves from `s1`, `c1`, `t1` or `p1` to `s3`, `c2`, `t2` or `p3`.
        case leave
    }

    static let tables = [
        "student_stickers", "attendance", "sessions", "students", "classes", "homework", "student_trophies",
        "student_achievements", "parent_students", "teachers", "profiles",
    ]

    static let oldSecret = "the old row's text"
    static let newSecret = "the new row's text"

    static func primaryKey(of table: String) -> Set<String> {
        table == "parent_students" ? ["parent_id", "student_id"] : ["id"]
    }

    // MARK: Rows

    static func change(_ table: String, _ move: Move, of school: String) -> JSON {
        switch move {
        case .insert: School.insert(table, .object(row(table, school, newSecret)))
        case .delete: School.delete(table, .object(row(table, school, oldSecret)))
        case .update:
            School.update(
                table, from: .object(row(table, school, oldSecret)),
                to: .object(row(table, school, newSecret).merging(["points": 2]) { $1 }))
        case .leave:
            School.update(
                table, from: .object(row(table, school, oldSecret)),
                to: .object(row(table, school, newSecret, moved: true)))
        }
    }

    private static func row(_ table: String, _ school: String, _ secret: String, moved: Bool = false) -> [String: JSON]
    {
        var row: [String: JSON] = ["school_id": .string(school), "note": .string(secret)]
        switch table {
        case "students":
            row.merge(["id": "s1", "class_id": moved ? "c2" : "c1", "points": 0]) { $1 }
        case "classes": row.merge(["id": "c1", "teacher_id": moved ? "t2" : "t1"]) { $1 }
        case "parent_students": row.merge(["parent_id": moved ? "p3" : "p1", "student_id": "s1"]) { $1 }
        case "teachers": row["id"] = moved ? "t2" : "t1"
        case "profiles": row["id"] = moved ? "s3" : "s1"
        default: row.merge(["id": "r1", "student_id": moved ? "s3" : "s1"]) { $1 }
        }
        return row
    }

    // MARK: Visible rows

    /// R-SCH-FR-014: own rows. R-SCH-FR-015: students, sessions, attendance and stickers of own classes. R-SCH-FR-016:
    /// attendance, sessions, stickers and homework of linked children. R-SCH-FR-017: the whole school. `here` is for
    /// the row at the beginning, `there` for the row after its move.
    private static let readers: [String: (here: Set<String>, there: Set<String>)] = [
        "student_stickers": (["s1", "t1", "p1", "a1"], ["s3", "t2", "p3", "a1"]),
        "attendance": (["s1", "t1", "p1", "a1"], ["s3", "t2", "p3", "a1"]),
        "sessions": (["s1", "t1", "p1", "a1"], ["s3", "t2", "p3", "a1"]),
        "students": (["s1", "t1", "a1"], ["s1", "t2", "a1"]),
        "classes": (["t1", "a1"], ["t2", "a1"]),
        "homework": (["s1", "p1", "a1"], ["s3", "p3", "a1"]),
        "student_trophies": (["s1", "a1"], ["s3", "a1"]),
        "student_achievements": (["s1", "a1"], ["s3", "a1"]),
        "parent_students": (["p1", "a1"], ["p3", "a1"]),
        "teachers": (["t1", "a1"], ["t2", "a1"]),
        "profiles": (["s1", "a1"], ["s3", "a1"]),
    ]

    /// Returns `enter`, `update` or `leave`; nil if the person receives nothing.
    static func sight(of table: String, _ move: Move, by person: String) -> String? {
        guard let readers = readers[table] else { return nil }
        let isHere = readers.here.contains(person)
        switch move {
        case .insert: return isHere ? "enter" : nil
        case .update: return isHere ? "update" : nil
        case .delete: return isHere ? "leave" : nil
        case .leave:
            let isThere = readers.there.contains(person)
            return isHere ? (isThere ? "update" : "leave") : (isThere ? "enter" : nil)
        }
    }

    /// Returns whether the person receives a cause. Classmates receive keys of the leaderboard without access to the
    /// row, so they receive no cause. A user that loses a row with a changed key receives no cause either, because a
    /// cause names the current key.
    static func seesCause(of table: String, _ move: Move, _ person: String) -> Bool {
        if move == .leave, let loser = ["parent_students": "p1", "teachers": "t1", "profiles": "s1"][table] {
            return person != loser
        }
        return sight(of: table, move, by: person) != nil
    }

    // MARK: Invalidated queries

    static func keys(of table: String, _ move: Move, for person: String) -> Set<String> {
        Set((stale["\(table) \(move)"]?[person] ?? "").split(separator: " ").map(String.init))
    }

    /// R-SCH-FR-006 to R-SCH-FR-012, limited by the access that R-SCH-FR-014 to R-SCH-FR-017 give. A missing entry
    /// means no keys.
    private static let stale: [String: [String: String]] = [
        // R-SCH-FR-006: dashboard, stickers, leaderboard, trophy room; only inserts.
        "student_stickers insert": [
            "s1": "student-dashboard/s1 stickers/s1 trophy-room/s1 leaderboard/c1", "s2": "leaderboard/c1",
            "t1": "student-dashboard/s1 stickers/s1 trophy-room/s1 leaderboard/c1",
            "p1": "student-dashboard/s1 stickers/s1 trophy-room/s1",
            "a1": "student-dashboard/s1 stickers/s1 trophy-room/s1 leaderboard/c1",
        ],
        // R-SCH-FR-007: the parents' dashboard, the calendar, the admins' dashboard; inserts and updates.
        "attendance insert": attendance, "attendance update": attendance,
        "attendance leave": [
            "s1": "attendance-calendar/s1", "s3": "attendance-calendar/s3",
            "p1": "attendance-calendar/s1 parent-dashboard", "p3": "attendance-calendar/s3 parent-dashboard",
            "t1": "attendance-calendar/s1 class-attendance/c1", "t2": "attendance-calendar/s3 class-attendance/c2",
            "a1":
                "attendance-calendar/s1 attendance-calendar/s3 class-attendance/c1 class-attendance/c2 admin-dashboard",
        ],
        // R-SCH-FR-008: the student's dashboard, the history, the teacher's dashboard, and the admin's (R-SCH-US5-1);
        // only inserts.
        "sessions insert": [
            "s1": "student-dashboard/s1 session-history/s1", "p1": "student-dashboard/s1 session-history/s1",
            "t1": "student-dashboard/s1 session-history/s1 teacher-dashboard",
            "a1": "student-dashboard/s1 session-history/s1 admin-dashboard",
        ],
        // R-SCH-FR-009: points: leaderboard, detail, dashboards. R-SCH-FR-017: any column: the admins' lists.
        // R-SCH-FR-010: class: lists, class detail, dashboards, of both classes. R-SCH-US5-3: a new student.
        "students insert": ["t1": "students class/c1 teacher-dashboard", "a1": "students class/c1 admin-dashboard"],
        "students update": [
            "s1": "student/s1 student-dashboard/s1 leaderboard/c1", "s2": "leaderboard/c1",
            "t1": "student/s1 student-dashboard/s1 leaderboard/c1 teacher-dashboard",
            "a1": "student/s1 student-dashboard/s1 leaderboard/c1 students admin-dashboard",
        ],
        "students delete": ["t1": "students class/c1 teacher-dashboard", "a1": "students class/c1 admin-dashboard"],
        "students leave": [
            "s1": "student/s1 student-dashboard/s1",
            "t1": "student/s1 student-dashboard/s1 students class/c1 teacher-dashboard",
            "t2": "student/s1 student-dashboard/s1 students class/c2 teacher-dashboard",
            "a1": "student/s1 student-dashboard/s1 students class/c1 class/c2 admin-dashboard",
        ],
        // R-SCH-FR-010: lists, class detail and dashboards of the old and the new teacher. R-SCH-US6-3: any edit of a
        // class.
        "classes insert": [
            "t1": "classes class/c1 students teacher-dashboard", "a1": "classes class/c1 admin-dashboard",
        ],
        "classes update": ["t1": "classes class/c1", "a1": "classes class/c1"],
        "classes delete": [
            "t1": "classes class/c1 students teacher-dashboard", "a1": "classes class/c1 admin-dashboard",
        ],
        "classes leave": [
            "t1": "classes class/c1 students teacher-dashboard", "t2": "classes class/c1 students teacher-dashboard",
            "a1": "classes class/c1 admin-dashboard",
        ],
        // R-SCH-FR-011: the dashboard's cards; inserts and updates.
        "homework insert": homework, "homework update": homework,
        "homework leave": [
            "s1": "student-dashboard/s1 homework/s1", "s3": "student-dashboard/s3 homework/s3",
            "p1": "student-dashboard/s1 homework/s1", "p3": "student-dashboard/s3 homework/s3",
            "a1": "student-dashboard/s1 homework/s1 student-dashboard/s3 homework/s3",
        ],
        // R-SCH-FR-012: trophy room and dashboard; only inserts.
        "student_trophies insert": trophy, "student_achievements insert": trophy,
        // R-SCH-EC9: links between parents and children.
        "parent_students insert": ["p1": "parent-dashboard"], "parent_students update": ["p1": "parent-dashboard"],
        "parent_students delete": ["p1": "parent-dashboard"],
        "parent_students leave": ["p1": "parent-dashboard", "p3": "parent-dashboard"],
        // R-SCH-FR-017: the admin's lists of people. R-SCH-EC9: each person's own row.
        "teachers insert": teacher, "teachers update": teacher, "teachers delete": teacher,
        "teachers leave": [
            "t1": "profile/t1", "t2": "profile/t2", "a1": "profile/t1 profile/t2 teachers admin-dashboard",
        ],
        "profiles insert": profile, "profiles update": profile, "profiles delete": profile,
        "profiles leave": ["s1": "profile/s1", "s3": "profile/s3", "a1": "profile/s1 profile/s3 profiles"],
    ]

    private static let attendance = [
        "s1": "attendance-calendar/s1", "p1": "attendance-calendar/s1 parent-dashboard",
        "t1": "attendance-calendar/s1 class-attendance/c1",
        "a1": "attendance-calendar/s1 class-attendance/c1 admin-dashboard",
    ]

    private static let homework = [
        "s1": "student-dashboard/s1 homework/s1", "p1": "student-dashboard/s1 homework/s1",
        "a1": "student-dashboard/s1 homework/s1",
    ]

    private static let teacher = ["t1": "profile/t1", "a1": "profile/t1 teachers admin-dashboard"]
    private static let profile = ["s1": "profile/s1", "a1": "profile/s1 profiles"]

    private static let trophy = [
        "s1": "trophy-room/s1 student-dashboard/s1", "a1": "trophy-room/s1 student-dashboard/s1",
    ]
}

/// The events that each person received for each change.
struct SchoolRecording: Sendable {
    /// One change and one listener.
    struct Name: Hashable {
        let change: String
        let listener: String
    }

    /// One row's events: the transition for the listener, and the columns that the narrow subscription received.
    struct ReceivedRow {
        let transitions: String
        let narrow: [Set<String>]
    }

    private var events: [Name: [ServerSentEvent]] = [:]

    private static func change(_ table: String, _ move: SchoolMoves.Move, _ school: String) -> String {
        "\(table) \(move) \(school)"
    }

    /// Returns the events without the barriers that end a step. Scope events are not recorded.
    func events(
        _ table: String, _ move: SchoolMoves.Move, of school: String, reaching person: String, of own: String
    ) -> [ServerSentEvent] {
        let name = Name(change: Self.change(table, move, school), listener: "\(person) \(own)")
        return (events[name] ?? []).filter { event in
            guard event.name == "query:invalidate" else { return true }
            return !event.staleKeys.allSatisfy { $0.hasPrefix("barrier") }
        }
    }

    /// Returns the received rows. Each change is delivered to the subscription to all columns and to the narrow one,
    /// with the same transition.
    func received(_ table: String, _ move: SchoolMoves.Move, of school: String, by person: String) -> [ReceivedRow] {
        let rows = events(table, move, of: school, reaching: person, of: school).filter { $0.name == "table:change" }
        let narrow = rows.filter { $0.json["subscriptionIds"].array == [.string("narrow/\(table)")] }
        let all = rows.filter { $0.json["subscriptionIds"].array == [.string("all/\(table)")] }
        guard narrow.count == all.count, narrow.count + all.count == rows.count else {
            return rows.map { ReceivedRow(transitions: "unexpected: \($0.data)", narrow: []) }
        }
        return zip(all, narrow).map { all, narrow in
            let change = all.json["change"].string ?? ""
            let isOne = change == narrow.json["change"].string
            let columns = [narrow.json["record"], narrow.json["oldRecord"]].compactMap { row -> Set<String>? in
                if case .object(let members) = row { Set(members.keys) } else { nil }
            }
            return ReceivedRow(transitions: isOne ? change : "two", narrow: columns)
        }
    }

    func stale(_ table: String, _ move: SchoolMoves.Move, of school: String, by person: String) -> Set<String> {
        events(table, move, of: school, reaching: person, of: school)
            .reduce(into: Set()) { if $1.name == "query:invalidate" { $0.formUnion($1.staleKeys) } }
            .filter { !$0.hasPrefix("barrier") }
    }

    func causes(_ table: String, _ move: SchoolMoves.Move, of school: String, by person: String) -> [JSON] {
        events(table, move, of: school, reaching: person, of: school).filter { $0.name == "query:invalidate" }
            .flatMap { $0.json["causes"].array ?? [] }.filter { $0["table"].string == table }
    }

    // MARK: Recording

    private static let people = ["s1", "s2", "s3", "t1", "t2", "p1", "p3", "a1"]

    static func identity(_ person: String, of school: String) -> TestService.Identity {
        switch person.first {
        case "s": School.student(person, of: school)
        case "t": School.teacher(person, of: school)
        case "p": School.parent(person, of: school)
        default: School.admin(person, of: school)
        }
    }

    /// The shipped declarations, and a table that every user receives, whose key ends a step.
    private static func declarations() -> String {
        let shipped = String(decoding: Resource.bytes("school.yaml"), as: UTF8.self)
        let long = shipped.replacingOccurrences(of: "    primaryKey:", with: "    windowMs: 60000\n    primaryKey:")
        let barrier = """
              - table: barriers
                windowMs: 60000
                primaryKey: [id]
                tenant: {column: school_id}
                audience:
                  select: [everyone]
                invalidates:
                  - keys: [[barrier, "{id}"]]

            """
        return long + "\n" + barrier
    }

    static func make() async throws -> SchoolRecording {
        let directory = try TemporaryDirectory()
        let file = try directory.write(declarations(), to: "tables.yaml")
        let service = try TestService.start(["changesSecret": School.secret, "tables": file])
        let school = try await School(service)
        var listeners: [(name: String, stream: StreamListener)] = []
        let wishes: [JSON] = SchoolMoves.tables.flatMap { table -> [JSON] in
            [
                ["id": .string("all/\(table)"), "table": .string(table)],
                ["id": .string("narrow/\(table)"), "table": .string(table), "select": ["school_id"]],
            ]
        }
        for own in School.names {
            for person in people {
                let identity = identity(person, of: own)
                let stream = try await service.listen(as: identity)
                try await stream.subscribe(wishes)
                listeners.append(("\(person) \(own)", stream))
            }
        }
        var recording = SchoolRecording()
        for own in School.names {
            for table in SchoolMoves.tables {
                for move in SchoolMoves.Move.allCases {
                    let change = change(table, move, own)
                    let received = try await send(SchoolMoves.change(table, move, of: own), change, school, listeners)
                    for (name, events) in received { recording.events[Name(change: change, listener: name)] = events }
                    // Restores all memberships.
                    guard ["students", "classes", "parent_students"].contains(table) else { continue }
                    let gone = School.delete(
                        "parent_students", ["parent_id": "p3", "student_id": "s1", "school_id": .string(own)])
                    try await school.send(gone)
                    try await school.sendMemberships(of: own)
                    _ = try await send(nil, "after \(change)", school, listeners)
                }
            }
        }
        return recording
    }

    /// Sends a change, and collects the events of each listener until the end of its window.
    private static func send(
        _ change: JSON?, _ name: String, _ school: School, _ listeners: [(name: String, stream: StreamListener)]
    ) async throws -> [(String, [ServerSentEvent])] {
        let id = name.replacingOccurrences(of: " ", with: "-")
        let barriers = School.names.map { School.insert("barriers", ["id": .string(id), "school_id": .string($0)]) }
        try await school.send([change].compactMap(\.self) + barriers)
        var received: [(String, [ServerSentEvent])] = []
        for (listener, stream) in listeners {
            let start = stream.received.count
            while try await !stream.next("query:invalidate").staleKeys.contains("barrier/\(id)") {}
            received.append((listener, stream.received[start...].filter { $0.name != "stream:scope" }))
        }
        return received
    }
}
