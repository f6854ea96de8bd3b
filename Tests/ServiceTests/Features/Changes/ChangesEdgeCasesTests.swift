import BellhopClient
import Database
import Foundation
import Realtime
import TestSupport
import Testing

@testable import Service

/// The edge cases of SCH, and the invariants of a stream from its opening to its end.
@Suite(.timed, .serialized) struct ChangesEdgeCasesTests {
    let school: School
    let service: TestService

    init() async throws {
        school = try await School()
        service = school.service
    }

    /// The keys that a parent receives for a child's attendance.
    private static let marked: Set = ["attendance-calendar/s1", "parent-dashboard"]

    /// R-SCH-EC1, R-SCH-FR-019, R-SCH-A-007: a stream without subscriptions receives keys, whichever screen is shown.
    /// They come without notifications and counts.
    @Test func userOnAnotherScreen_receivesKeys_andNoNotification() async throws {
        let parent = try await service.listen(as: School.parent("p1"))
        try await school.send(School.attendance("a1", of: "s1", "late"))
        try await parent.receives(Self.marked)
        #expect(parent.received.map(\.name) == ["stream:ready", "query:invalidate"])
        let badges = try await service.client(as: School.parent("p1")).getBadges()
        #expect(badges.value.total == 0)
    }

    /// R-SCH-EC2, R-SCH-FR-003, R-SCH-SC-004: keys invalidated while the stream was away arrive at once in a single
    /// event, also across a restart.
    @Test func resumedStream_receivesStaleKeys_atOnce() async throws {
        let cursor = try await service.position(as: School.parent("p1"))
        try await school.send(School.attendance("a1", of: "s1", "late"))
        try await school.send(School.attendance("a1", of: "s2", "late"))
        try await school.send(School.own("homework", "w1", of: "s1"))
        try await service.restart()
        let again = try await service.listen(as: School.parent("p1"), lastEventID: cursor)
        let causes = try await again.receives(Self.marked.union(["homework/s1", "student-dashboard/s1"]))
        #expect(Set(causes.map { $0["recordId"].string }) == ["a1", "w1"])
        #expect(again.received.filter { $0.name == "query:invalidate" }.count == 1)
        #expect(again.received.contains { $0.name == "stream:resync" } == false)
    }

    /// R-SCH-EC6, R-SCH-FR-003: a client that was away longer than the log's retention must fetch everything.
    @Test func streamThatWasAwayForTooLong_resyncs() async throws {
        let cursor = try await service.position(as: School.parent("p1"))
        try await school.send(School.attendance("a1", of: "s1", "late"))
        service.clock.advance(seconds: 25 * 3600)
        try await school.send(School.own("homework", "w1", of: "s2"))
        let ids = service.app.runner.reader.log.ids
        let number = try #require(Cursor(cursor).flatMap(ids.sequence(of:)))
        try await eventually("the row is pruned") {
            try service.app.store.read { try EventLog.oldestSequence(in: $0) } > number + 1
        }
        let late = try await service.listen(as: School.parent("p1"), lastEventID: cursor)
        #expect(try await late.next("stream:resync").json["reason"].string == "gap")
    }

    /// R-SCH-EC6: more missed changes than a replay may send are reported as a gap.
    @Test func streamThatMissedTooMuch_resyncs() async throws {
        let cursor = try await service.position(as: School.parent("p1"))
        for delivery in 0...1 {
            let rows = (0...StreamLimits.replayEventsMax / 2).map {
                School.attendance("\(delivery)-\($0)", of: "s1", "late")
            }
            try await school.send(rows)
        }
        let late = try await service.listen(as: School.parent("p1"), lastEventID: cursor)
        #expect(try await late.next("stream:resync").json["reason"].string == "gap")
    }

    /// R-SCH-EC2: a connection that breaks within a window loses no key. The key is delivered again after the resume,
    /// although the cursor is past the change.
    @Test func streamThatBreaksWithinAWindow_receivesTheKeyAfterwards() async throws {
        let first = try await service.listen(as: School.parent("p1"))
        try await school.send(School.attendance("a1", of: "s1", "late"))
        // The cursor advances while the key is delayed.
        let event = Bellhop.Event(id: "e1", type: .authPasswordChanged, userId: "p1")
        #expect(try await service.client(as: .service(tenant: "A")).postEvent(event).status == 201)
        try await first.next("notification:created")
        #expect(!first.received.contains { $0.name == "query:invalidate" })
        let cursor = first.lastEventID
        first.close()
        let again = try await service.listen(as: School.parent("p1"), lastEventID: cursor)
        try await again.receives(Self.marked)
        #expect(!again.received.contains { $0.name == "notification:created" && $0.json["eventId"].string == "e1" })
    }

    /// R-SCH-EC3, R-SCH-FR-004, R-SCH-NFR-001: separate rows within a window become one invalidation per key.
    @Test func rowsOfAMorning_areOneInvalidation() async throws {
        let admin = try await service.listen(as: School.admin())
        let parent = try await service.listen(as: School.parent("p1"))
        for number in 0..<20 {
            try await school.send(School.attendance("a\(number)", of: number % 2 == 0 ? "s1" : "s2", "present"))
        }
        // Each key arrives once. The next expected event proves that nothing else was sent.
        try await admin.receives([
            "admin-dashboard", "attendance-calendar/s1", "attendance-calendar/s2", "class-attendance/c1",
        ])
        try await parent.receives(Self.marked)
        try await school.send(School.own("homework", "w1", of: "s1"))
        for stream in [admin, parent] { try await stream.receives(["homework/s1", "student-dashboard/s1"]) }
    }

    /// R-SCH-EC3, R-SCH-FR-004: a steady flow is delivered once per window, not only when it ends. The windows use real
    /// time.
    @Test func steadyFlow_isReceivedOncePerWindow() async throws {
        let service = try TestService.start(School.settings(windowMs: 200))
        let school = try await School(service)
        let parent = try await service.listen(as: School.parent("p1"))
        parent.endsWindows = false
        let flow = Task {
            var number = 0
            while !Task.isCancelled {
                number += 1
                _ = try? await school.deliver(School.attendance("a\(number)", of: "s1", "late"))
            }
            return number
        }
        // The check runs while the flow continues: a window that each row extends would never end. On a slow machine,
        // a window may contain a single row; the test then waits for further windows.
        var full = 0
        while full < 3 {
            let event = try await parent.next("query:invalidate")
            #expect(event.staleKeys == Self.marked)
            if event.json["causes"].array?.count ?? 0 > 1 { full += 1 }
        }
        flow.cancel()
        #expect(await flow.value > 5)
    }

    /// R-SCH-EC4, R-SCH-FR-002: revoking the session closes the user's stream, and the next user of the device receives
    /// nothing of it.
    @Test func nextUserOfADevice_receivesNothingOfThePreviousOne() async throws {
        var identity = School.parent("p1")
        identity.claims["session_id"] = "session-1"
        let stream = try await service.listen(as: identity)
        let cursor = stream.ready.id
        #expect(
            try await service.call("POST", "/v1/revocations", as: .service(tenant: "A"), ["sessionId": "session-1"])
                .status == 201)
        #expect(try await stream.next("stream:closing").json["reason"].string == "revoked")
        try await school.send(School.attendance("a1", of: "s1", "late"))
        let next = try await service.listen(as: School.parent("p3"), lastEventID: cursor)
        #expect(next.ready.json["replayed"].int == 0)
        try await school.send(School.attendance("a3", of: "s3", "late"))
        try await next.receives(["attendance-calendar/s3", "parent-dashboard"])
    }

    /// R-SCH-EC4: the stream of another user can be neither read nor changed.
    @Test func anothersStream_cannotBeReadOrChanged() async throws {
        let stream = try await service.listen(as: School.parent("p1"))
        let id = stream.ready.json["streamId"].string ?? ""
        for other in [School.parent("p3"), School.parent("p1", of: "B"), School.admin()] {
            let client = service.client(as: other)
            #expect(try await status(of: await client.getSubscriptions(id: id)) == 404)
            #expect(try await status(of: await client.replaceSubscriptions(id: id, .init(tables: []))) == 404)
        }
    }

    /// R-SCH-FR-002, R-SCH-NFR-004: a stream ends when its token expires, even within a window.
    @Test func expiredStream_receivesNothingMore() async throws {
        let token = service.token(for: School.parent("p1"), lifetimeSeconds: 60)
        var options = BellhopStream.Options()
        options.limits.triesMax = 0
        let stream = StreamListener(service.anyone.with(token: token).events(options))
        try await stream.next("stream:ready")
        try await school.send(School.attendance("a1", of: "s1", "late"))
        service.clock.advance(seconds: 61)
        #expect(try await stream.next("stream:closing").json["reason"].string == "expired")
        await #expect(throws: (any Error).self) { try await stream.next("query:invalidate", within: .seconds(5)) }
    }

    /// R-SCH-EC5, R-SCH-FR-001, R-SCH-FR-013: no filter, header or user-editable claim gives access to another school's
    /// rows.
    @Test func schoolNamedByTheClient_isIgnored() async throws {
        var liar = School.admin()
        liar.claims["user_metadata"] = ["school_id": "B", "tenant": "B"]
        let stream = try await service.listen(as: liar)
        try await stream.subscribe([["id": "theirs", "table": "attendance", "filter": "school_id=eq.B"]])
        try await school.send(School.attendance("b1", of: "s1", "late", school: "B"))
        try await school.send(School.attendance("a1", of: "s1", "late"))
        try await stream.receives(["admin-dashboard", "attendance-calendar/s1", "class-attendance/c1"])
        #expect(!stream.received.contains { $0.data.contains(#""b1""#) || $0.name == "table:change" })
        #expect(try await service.call("GET", "/v1/stream?school_id=B", as: liar).status == 422)
    }

    /// R-SCH-FR-013: only backends and feeds send rows. A user's token is refused, and a backend's token covers only
    /// its own school.
    @Test func changes_areSentByFeeds_ofTheirOwnTenant() async throws {
        let row = School.attendance("a1", of: "s1", "late")
        for identity in [School.admin(), School.teacher("t1")] {
            #expect(try await status(of: await service.client(as: identity).takeChanges(row)) == 403)
        }
        #expect(try await status(of: await service.anyone.takeChanges(row)) == 401)
        let guessed = ["X-Webhook-Secret": "guessed"]
        #expect(try await service.call("POST", "/v1/changes", row, headers: guessed).status == 401)
        let parent = try await service.listen(as: School.parent("p1"))
        let others = try await service.client(as: .service(tenant: "B")).takeChanges(row)
        #expect(others.status == 202, "\(others.value)")
        #expect(others.value.rejected.count == 1, "\(others.value)")
        #expect(try await service.client(as: .service(tenant: "A")).takeChanges(row).status == 202)
        try await parent.receives(Self.marked)
    }

    /// R-SCH-EC7, R-SCH-FR-005: all readers of the row learn its author. The writer's own client recognizes its echo by
    /// the origin.
    @Test func ownWrite_isKnownByActorAndOrigin() async throws {
        let writer = try await service.listen(as: School.teacher("t1"))
        let other = try await service.listen(as: School.admin())
        try await school.send([School.sticker("k1", to: "s1", by: "t1")], from: "tablet-7")
        let keys: Set = ["student-dashboard/s1", "stickers/s1", "trophy-room/s1", "leaderboard/c1"]
        for stream in [writer, other] {
            let causes = try await stream.receives(keys)
            #expect(
                causes == [
                    [
                        "schema": "public", "table": "student_stickers", "type": "INSERT", "recordId": "k1",
                        "actorId": "t1", "originId": "tablet-7",
                    ]
                ])
            #expect(stream.received.last?.json["causesComplete"].bool == true)
        }
        // Another user changes the same key within the window, so the event is no longer only an echo.
        try await school.send([School.sticker("k2", to: "s1", by: "t1")], from: "tablet-7")
        try await school.send([School.sticker("k3", to: "s1", by: "a1")], from: "desktop-1")
        let origins = try await writer.receives(keys).map { $0["originId"].string }
        #expect(origins == ["tablet-7", "desktop-1"])
    }

    /// R-SCH-EC8: a rush in other classes sends no event to a stream that it does not concern.
    @Test func rushOfOtherClasses_sendsNothing() async throws {
        let teacher = try await service.listen(as: School.teacher("t2"))
        var streams: [StreamListener] = []
        for _ in 0..<5 { streams.append(try await service.listen(as: School.student("s3"))) }
        let before = try await sentEvents()
        try await school.send((0..<500).map { School.attendance("a\($0)", of: "s1", "present") })
        try await school.send(School.attendance("b1", of: "s3", "present"))
        try await teacher.receives(["attendance-calendar/s3", "class-attendance/c2"])
        for stream in streams { try await stream.receives(["attendance-calendar/s3"]) }
        #expect(try await sentEvents() - before == 6)
    }

    /// R-SCH-EC9, R-SCH-FR-010: a student changes class. Both teachers receive the change; afterwards only the new one
    /// receives the student's rows.
    @Test func movedStudent_isVisibleToTheNewTeacherOnly() async throws {
        let old = try await service.listen(as: School.teacher("t1"))
        let new = try await service.listen(as: School.teacher("t2"))
        let student = try await service.listen(as: School.student("s1"))
        try await school.send(School.student("s1", from: [:], to: ["class_id": "c2"]))
        try await student.nextScope(without: "class:c1:member", with: "class:c2:member")
        let moved: Set = ["students", "teacher-dashboard", "student/s1", "student-dashboard/s1"]
        try await old.receives(moved.union(["class/c1"]))
        try await new.receives(moved.union(["class/c2"]))
        try await student.receives(["student/s1", "student-dashboard/s1"])
        try await school.send(School.attendance("a1", of: "s1", "late"), School.attendance("a2", of: "s2", "late"))
        try await new.receives(["attendance-calendar/s1", "class-attendance/c2"])
        try await old.receives(["attendance-calendar/s2", "class-attendance/c1"])
        // The student now receives the leaderboard of the new class.
        try await school.send(School.student("s2", from: ["points": 1], to: ["points": 2]))
        try await school.send(School.student("s3", of: "c2", from: ["points": 1], to: ["points": 2]))
        try await student.receives(["attendance-calendar/s1", "leaderboard/c2"])
    }

    /// R-SCH-EC9: a teacher gets another class. The scope follows within a second, and rows and keys with it.
    @Test func teacherWhoMoves_receivesTheNewClass_andNotTheOldOne() async throws {
        let identity = School.teacher("t1")
        let teacher = try await service.listen(as: identity)
        try await teacher.subscribe([["id": "rows", "table": "attendance"]])
        try await school.send(School.attendance("a1", of: "s1", "late"))
        #expect(try await teacher.next("table:change").json["record"]["id"].string == "a1")
        try await school.send(School.teaches("c1", from: "t1", to: "t2"), School.teaches("c2", from: "t2", to: "t1"))
        try await teacher.nextScope(without: "class:c1:staff")
        try await school.send(School.attendance("a2", of: "s2", "late"), School.attendance("a3", of: "s3", "late"))
        #expect(try await teacher.next("table:change").json["record"]["id"].string == "a3")
        let me = try await service.client(as: identity).getMe()
        #expect(me.value.scope.contains("class:c1:staff") == false)
    }

    /// R-SCH-EC9: ingested rows override the claim of an old token, also for streams opened later.
    @Test func claimOfAnOldToken_doesNotOpenAReassignedClass() async throws {
        var identity = School.teacher("t1")
        identity.claims["app_metadata"] = ["user_role": "teacher", "school_id": "A", "class_ids": ["c1", "c2"]]
        let teacher = try await service.listen(as: identity)
        try await school.send(School.attendance("a3", of: "s3", "late"), School.attendance("a1", of: "s1", "late"))
        try await teacher.receives(["attendance-calendar/s1", "class-attendance/c1"])
    }

    /// R-SCH-EC9, R-SCH-FR-016: a child is unlinked. The dashboard is invalidated, and no later row of the child
    /// arrives.
    @Test func unlinkedChild_isNotReceivedAgain() async throws {
        try await school.send(
            School.insert("parent_students", ["parent_id": "p1", "student_id": "s2", "school_id": "A"]))
        let identity = School.parent("p1")
        let parent = try await service.listen(as: identity)
        try await parent.subscribe([["table": "attendance"]])
        try await school.send(
            School.delete("parent_students", ["parent_id": "p1", "student_id": "s1", "school_id": "A"]))
        try await parent.nextScope(without: "student:s1:parent", with: "student:s2:parent")
        try await parent.receives(["parent-dashboard"])
        try await school.send(School.attendance("a1", of: "s1", "late"), School.attendance("a2", of: "s2", "late"))
        #expect(try await parent.next("table:change").json["record"]["id"].string == "a2")
        try await parent.receives(["attendance-calendar/s2", "parent-dashboard"])
        // A resume does not replay the child's changes from the time of the link either.
        let again = try await service.listen(as: identity, lastEventID: parent.ready.id)
        let delivered = try await again.next("query:invalidate")
        #expect(delivered.staleKeys == ["attendance-calendar/s2", "parent-dashboard"])
    }

    /// R-SCH-EC5, R-23: a row that moves to another school leaves the old school and enters the new one. Neither
    /// learns the content of the other's row.
    @Test func rowThatMovesToAnotherSchool_leavesTheOne_andEntersTheOther() async throws {
        var streams: [StreamListener] = []
        for name in School.names {
            let identity = School.parent("p1", of: name)
            let stream = try await service.listen(as: identity)
            try await stream.subscribe([["table": "attendance"]])
            streams.append(stream)
        }
        try await school.send(
            School.update(
                "attendance", from: School.attendanceRow("a1", of: "s1", "absent", by: "teacher-of-A"),
                to: School.attendanceRow("a1", of: "s1", "late", by: "teacher-of-B", school: "B")))
        for (stream, isNew) in zip(streams, [false, true]) {
            let row = try await stream.next("table:change").json
            #expect(row["change"].string == (isNew ? "enter" : "leave"))
            #expect(isNew ? row["record"]["status"].string == "late" : row["oldRecord"] == ["id": "a1"])
            let causes = try await stream.receives(Self.marked)
            #expect(causes.map { $0["actorId"].string } == (isNew ? ["teacher-of-B"] : []))
            #expect(!stream.received.contains { $0.data.contains(isNew ? "teacher-of-A" : "teacher-of-B") })
        }
    }

    private static let rooms = """
        version: 1
        tables:
          - table: room_members
            primaryKey: [id]
            tenant: {constant: default}
            audience:
              select: ["room:{room_id}:member"]
            memberships:
              - name: room_member
                subject: user:{user_id}
                grants: room:{room_id}:member
        """

    /// R-23, with typical memberships: a changed row removes a member from a room. That member sees the row
    /// leave, but not the new member. A remaining member sees the change.
    @Test func replacedMember_doesNotLearnItsSuccessor() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.rooms, to: "tables.yaml")
        let service = try TestService.start(["changesSecret": School.secret, "tables": file])
        let school = try await School(service, isKnown: false)
        func member(_ id: String, _ user: String) -> JSON {
            ["id": .string(id), "user_id": .string(user), "room_id": "r1"]
        }
        try await school.send(["ann", "bob"].map { School.insert("room_members", member("of-\($0)", $0)) })
        var streams: [StreamListener] = []
        for name in ["ann", "bob", "eve"] {
            let stream = try await service.listen(as: .user(name))
            try await stream.subscribe([["table": "room_members"]])
            streams.append(stream)
        }
        try await school.send(School.update("room_members", from: member("of-ann", "ann"), to: member("of-ann", "eve")))
        let left = try await streams[0].next("table:change").json
        expect(left, has: ["change": "leave", "record": nil, "oldRecord": ["id": "of-ann"]])
        let changed = try await streams[1].next("table:change").json
        #expect(changed["change"].string == "update")
        #expect(changed["record"]["user_id"].string == "eve")
        try await streams[0].nextScope(without: "room:r1:member")
        try await streams[2].nextScope(with: "room:r1:member")
        // One row of a person still grants the room after another row of the same person has changed.
        try await school.send(School.insert("room_members", member("twice", "bob")))
        try await streams[1].next("table:change")
        try await school.send(School.update("room_members", from: member("twice", "bob"), to: member("twice", "ann")))
        #expect(try await streams[1].next("table:change").json["change"].string == "update")
    }

    /// R-SCH-EC10: each stream of a user receives all keys, and rows for its own subscriptions only.
    @Test func streamsOfOneUser_areIndependent() async throws {
        let identity = School.parent("p1")
        var streams: [StreamListener] = []
        for _ in 0..<3 { streams.append(try await service.listen(as: identity)) }
        try await streams[0].subscribe([["table": "attendance"]])
        try await streams[1].subscribe([["table": "homework"]])
        streams[2].close()
        try await school.send(School.attendance("a1", of: "s1", "late"), School.own("homework", "w1", of: "s1"))
        for stream in streams.prefix(2) {
            try await stream.receives(Self.marked.union(["homework/s1", "student-dashboard/s1"]))
        }
        let rows = streams.map { stream in
            stream.received.filter { $0.name == "table:change" }.compactMap { $0.json["table"].string }
        }
        #expect(rows == [["attendance"], ["homework"], []])
    }

    private func sentEvents() async throws -> Int {
        let text = try await service.call("GET", "/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix("bellhop_stream_events_total ") }
        return line?.split(separator: " ").last.flatMap { Double($0) }.map { Int($0) } ?? -1
    }
}
