import BellhopClient
import TestSupport
import Testing

/// Table changes from their delivery to the streams, over real HTTP.
@Suite(.timed) struct TableChangesTests {
    /// R-SCH-SC-006, "morning rush": 20 rows at the same time are one invalidation per key.
    @Test func burst_isOneInvalidation_withAllCauses() async throws {
        let school = try await School()
        let teacher = try await school.service.listen(as: School.teacher("t1"))
        let rows = (1...20).map { number in
            School.insert(
                "attendance",
                [
                    "id": .string("a\(number)"), "school_id": "A", "student_id": "s1", "marked_by": "t1",
                    "status": "present",
                ])
        }
        try await school.send(rows)
        let event = try await teacher.next("query:invalidate")
        #expect(event.staleKeys == ["attendance-calendar/s1", "class-attendance/c1"])
        #expect(event.json["causes"].array?.count == 20)
        #expect(event.json["causes"].array?.first?["actorId"].string == "t1")
        #expect(event.json["causesComplete"].bool == true)
        // A key of another kind ends the wait and proves that nothing came in between.
        try await school.send(
            School.insert("sessions", ["id": "x1", "school_id": "A", "student_id": "s1", "teacher_id": "t1"]))
        let next = try await teacher.next("query:invalidate")
        #expect(next.staleKeys == ["student-dashboard/s1", "session-history/s1", "teacher-dashboard"])
    }

    /// R-ENG-E-1, R-ENG-E-7: matching rows enter, change and leave. After a replacement, the previous subscriptions no
    /// longer deliver rows.
    @Test func subscriptions_deliverRows_andAreReplacedAtOnce() async throws {
        let service = try TestService.start(School.settings("posts"))
        let school = try await School(service, isKnown: false)
        let identity = TestService.Identity.user("ann")
        let stream = try await service.listen(as: identity)
        try await stream.subscribe(
            [["id": "seen", "table": "posts", "filter": "id=in.(p1,p2)", "select": ["id", "text", "like_count"]]])
        func post(_ id: String, _ likes: Int, _ visibility: String = "public") -> JSON {
            [
                "id": .string(id), "user_id": "bob", "visibility": .string(visibility),
                "like_count": .integer(Int64(likes)),
                "repost_count": 0, "text": "hello", "secret": "x",
            ]
        }
        try await school.send(School.insert("posts", post("p1", 0)), School.insert("posts", post("p9", 0)))
        let entered = try await stream.next("table:change")
        #expect(entered.json["change"].string == "enter")
        expect(entered.json["record"], has: ["id": "p1", "secret": nil])
        #expect(entered.json["subscriptionIds"].array == ["seen"])
        try await school.send(School.update("posts", from: post("p1", 0), to: post("p1", 1)))
        let counted = try await stream.next("engagement_update")
        #expect(counted.json["updates"]["p1"] == ["likeCount": 1])
        try await school.send(School.update("posts", from: post("p1", 1), to: post("p1", 1, "private")))
        let left = try await stream.next("table:change")
        expect(left.json, has: ["change": "leave", "record": nil, "oldRecord": ["id": "p1"]])
        try await stream.subscribe([["table": "posts", "filter": "id=eq.p9"]])
        try await school.send(
            School.update("posts", from: post("p2", 0), to: post("p2", 1)), School.delete("posts", post("p9", 0)))
        let gone = try await stream.next("table:change")
        expect(gone.json, has: ["type": "DELETE", "oldRecord": ["id": "p9"]])
    }

    /// R-SCH-EC9: a teacher that gets another class no longer receives the old one.
    @Test func movedTeacher_losesTheOldClass() async throws {
        let school = try await School()
        let teacher = try await school.service.listen(as: School.teacher("t2"))
        try await school.send(
            School.update(
                "classes", from: ["id": "c2", "school_id": "A", "teacher_id": "t2"],
                to: ["id": "c2", "school_id": "A", "teacher_id": "t1"]))
        let scope = try await teacher.next("stream:scope")
        #expect(scope.json["scope"].array?.contains("class:c2:staff") == false)
    }

    /// The service does not buffer megabytes for a sender without valid credentials.
    @Test func largeBody_isNotRead_fromAnUnauthorizedSender() async throws {
        let service = try TestService.start(["changesSecret": School.secret])
        func head(_ path: String, _ credential: String) async throws -> String {
            let raw = try RawConnection(service.port)
            try raw.send(
                "POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n"
                    + "\(credential)\r\n\r\n")
            return try raw.read(until: "\r\n\r\n")
        }
        for wrong in ["X: y", "X-Webhook-Secret: guessed", "Authorization: Bearer nonsense"] {
            #expect(try await head("/v1/changes", wrong).hasPrefix("HTTP/1.1 401"))
        }
        let user = "Authorization: Bearer \(service.token(for: .user("ann")))"
        #expect(try await head("/v1/changes", user).hasPrefix("HTTP/1.1 403"))
        let large = try await School(service, isKnown: false).deliver(
            .array(
                (1...800).map {
                    School.insert("classes", ["id": .integer($0), "text": .string(String(repeating: "x", count: 200))])
                }))
        #expect(large.status == 202)
    }
}
