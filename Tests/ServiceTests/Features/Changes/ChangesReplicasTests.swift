import BellhopClient
import Database
import TestSupport
import Testing

@testable import Service

/// Table changes with two replicas on one PostgreSQL: a change sent to one is delivered by the other, once.
@Suite(.timed, .serialized) struct ChangesReplicasTests {
    private static func replicas() async throws -> (School, TestService, TestService) {
        let (a, b) = try TestService.startReplicas(School.settings())
        return (try await School(a), a, b)
    }

    private static func attendance(_ number: Int, of student: String = "s1") -> JSON {
        School.attendance("n\(number)", of: student, "present")
    }

    /// Rows, keys and counts reach the streams of both replicas, whichever receives the delivery.
    @Test func changeSentToOneReplica_isReceivedOnTheOther() async throws {
        let (school, a, b) = try await Self.replicas()
        let identity = School.parent("p1")
        let streams = [try await a.listen(as: identity), try await b.listen(as: identity)]
        for stream in streams { try await stream.subscribe([["table": "attendance"]]) }
        for (number, service) in [a, b].enumerated() {
            try await school.send([Self.attendance(number)], to: service)
            for stream in streams {
                #expect(try await stream.next("table:change").json["record"]["id"].string == "n\(number)")
                try await stream.receives(["attendance-calendar/s1", "parent-dashboard"])
            }
        }
    }

    /// R-SCH-EC9: memberships sent to one replica change the scopes of the other's streams within a second. Later
    /// changes reach the new members.
    @Test func membershipSentToOneReplica_changesScopesOnTheOther() async throws {
        let (school, _, b) = try await Self.replicas()
        let (old, new) = (try await b.listen(as: School.teacher("t1")), try await b.listen(as: School.teacher("t2")))
        let parent = try await b.listen(as: School.parent("p1"))
        try await school.send(
            School.teaches("c1", from: "t1", to: "t2"),
            School.delete("parent_students", ["parent_id": "p1", "student_id": "s1", "school_id": "A"]))
        try await old.nextScope(without: "class:c1:staff")
        try await new.nextScope(with: "class:c1:staff")
        try await parent.nextScope(without: "student:s1:parent")
        let moved: Set = ["students", "teacher-dashboard", "classes", "class/c1"]
        try await old.receives(moved)
        try await new.receives(moved)
        try await parent.receives(["parent-dashboard"])
        try await school.send(Self.attendance(1))
        try await new.receives(["attendance-calendar/s1", "class-attendance/c1"])
        #expect(
            try await b.client(as: School.teacher("t1")).getMe().value.scope == ["everyone", "user:t1"])
    }

    /// Both replicas accept deliveries concurrently. Facts are numbered without collisions, and both replicas end up
    /// with the same memberships.
    @Test func membershipsSentToBothReplicas_areKnownToBoth() async throws {
        let (school, a, b) = try await Self.replicas()
        let streams = [try await a.listen(as: School.teacher("t1")), try await b.listen(as: School.teacher("t1"))]
        let count = 40
        try await concurrently(0..<count) { index in
            let service = index % 2 == 0 ? a : b
            let row: JSON = ["id": .string("new-\(index)"), "school_id": "A", "teacher_id": "t1"]
            try await school.send([School.insert("classes", row)], to: service)
        }
        let expected = Set((0..<count).map { "class:new-\($0):staff" })
        for (stream, service) in zip(streams, [a, b]) {
            var scope: Set<String> = []
            while !expected.isSubset(of: scope) {
                scope = Set(try await stream.next("stream:scope").json["scope"].array?.compactMap(\.string) ?? [])
            }
            let me = try await service.client(as: School.teacher("t1")).getMe()
            #expect(expected.isSubset(of: me.value.scope))
        }
        let versions = try a.app.store.read { db in
            try db.rows("SELECT version FROM \(MembershipRegistry.facts, unscoped: .bookkeeping("a test counts"))") {
                try $0.integer(0)
            }
        }
        #expect(Set(versions).count == versions.count, "each delivery has its own number")
    }

    /// A repeated webhook delivery is accepted once, also when both replicas receive it concurrently and after they
    /// restart.
    @Test func deliverySentToBoth_isTakenOnce_alsoAfterARestart() async throws {
        let (school, a, b) = try await Self.replicas()
        let identity = School.parent("p1")
        let stream = try await b.listen(as: identity)
        try await stream.subscribe([["table": "attendance"]])
        @Sendable func deliver(_ id: String, _ change: JSON, to service: TestService) async throws -> ServiceAnswer {
            try await service.call(
                "POST", "/v1/changes", change, headers: ["X-Webhook-Secret": School.secret, "webhook-id": id])
        }
        for round in 0..<5 {
            let answers = try await concurrently([a, b, a, b]) { service in
                try await deliver("d\(round)", Self.attendance(round), to: service)
            }
            #expect(answers.map { $0.json["accepted"].int ?? 0 }.reduce(0, +) == 1)
            #expect(answers.map { $0.json["duplicates"].int ?? 0 }.reduce(0, +) == 3)
        }
        #expect(try await stream.rows(until: "n4") == (0..<5).map { "n\($0)" })
        try await a.restart()
        let again = try await deliver("d0", Self.attendance(0), to: a)
        #expect(again.status == 202, "\(again.json)")
        #expect(again.json["duplicates"].int == 1, "\(again.json)")
        // Memberships are the same as before.
        let teacher = try await a.listen(as: School.teacher("t1"))
        try await school.send([Self.attendance(9)], to: a)
        try await teacher.receives(["attendance-calendar/s1", "class-attendance/c1"])
    }

    /// R-ENG-E-7: any replica accepts a request about a stream, including a request for missed changes.
    @Test func subscriptionsPutToOne_areValidOnTheOther_withWhatWasMissed() async throws {
        let (school, a, b) = try await Self.replicas()
        let identity = School.parent("p1")
        let first = try await a.listen(as: identity)
        let cursor = first.ready.id
        first.close()
        try await school.send((0..<5).map { Self.attendance($0) } + [Self.attendance(99, of: "s2")])
        let stream = try await b.listen(as: identity, lastEventID: cursor)
        let rows: JSON = ["id": "rows", "table": "attendance", "select": ["status"]]
        let answer = try await stream.replaceSubscriptions([rows], since: cursor, through: a)
        #expect(answer.status == 200, "\(answer.json)")
        #expect(answer.json["tables"].array?.first?["id"].string == "rows", "\(answer.json)")
        try await school.send([Self.attendance(5)], to: a)
        #expect(try await stream.rows(until: "n5") == (0..<6).map { "n\($0)" })
        let shown = stream.received.last { $0.name == "table:change" }?.json["record"]
        #expect(shown == ["id": "n5", "status": "present"])
        let stranger = School.parent("p3")
        #expect(try await stream.replaceSubscriptions([], through: a, as: stranger).status == 404)
        let bad: JSON = ["table": "attendance", "filter": "status=eq"]
        #expect(try await stream.replaceSubscriptions([bad], through: a).status == 422)
        let unknown = try await stream.replaceSubscriptions(
            [["table": "attendance"]], since: "zzzzzz-0123456789abc", through: a)
        #expect(unknown.status == 200)
        #expect(try await stream.next("stream:resync").json["reason"].string == "epoch")
    }

    /// Both replicas write rows continuously while a stream resumes and requests missed rows through the other
    /// replica. Each row is delivered once.
    @Test func rowsMissedWhileOthersCome_areDeliveredOnce() async throws {
        let (school, a, b) = try await Self.replicas()
        let identity = School.parent("p1")
        let cursor = try await a.position(as: identity)
        let count = 120
        let flow = Task {
            for number in 0..<count { try await school.send([Self.attendance(number)], to: number % 2 == 0 ? a : b) }
        }
        var streams: [StreamListener] = []
        for service in [a, b, a, b] {
            let stream = try await service.listen(as: identity, lastEventID: cursor)
            let answer = try await stream.replaceSubscriptions([["table": "attendance"]], since: cursor, through: b)
            #expect(answer.status == 200)
            streams.append(stream)
        }
        try await flow.value
        for stream in streams {
            let rows = try await stream.rows(until: "n\(count - 1)")
            #expect(
                rows == (0..<count).map { "n\($0)" },
                "\(rows.joined(separator: " ")) \(stream.received.map(\.name).filter { $0 != "table:change" })")
        }
    }
}

/// The stored log and memberships, on either engine.
@Suite(.timed, .serialized) struct ChangesLogTests {
    let school: School
    let service: TestService

    init() async throws {
        school = try await School()
        service = school.service
    }

    /// Memberships and accepted deliveries survive a restart.
    @Test func restart_losesNoMembershipsAndNoDeliveries() async throws {
        func deliver() async throws -> ServiceAnswer {
            try await service.call(
                "POST", "/v1/changes", School.teaches("c1", from: "t1", to: "t2"),
                headers: ["X-Webhook-Secret": School.secret, "webhook-id": "d1"])
        }
        #expect(try await deliver().json["accepted"].int == 1)
        try await service.restart()
        #expect(try await deliver().json["duplicates"].int == 1)
        let scope = try await service.client(as: School.teacher("t2")).getMe().value.scope
        #expect(scope.contains("class:c1:staff"))
        #expect(scope.contains("class:c2:staff"))
        let old = try await service.listen(as: School.teacher("t1"))
        let new = try await service.listen(as: School.teacher("t2"))
        try await school.send(School.attendance("a1", of: "s1", "late"))
        try await new.receives(["attendance-calendar/s1", "class-attendance/c1"])
        #expect(old.received.map(\.name) == ["stream:ready"])
    }

    /// A rolled-back transaction leaves no trace in the memberships, the log or the stored delivery ids.
    @Test func rolledBackDelivery_leavesNoTrace() async throws {
        let teacher = try await service.listen(as: School.teacher("t2"))
        // The last event of the batch cannot be written to the log.
        try await service.alterTable(
            sqlite: """
                CREATE TRIGGER refused BEFORE INSERT ON events WHEN NEW.data LIKE '%poison%'
                BEGIN SELECT RAISE(ABORT, 'refused'); END
                """,
            postgres: "ALTER TABLE events ADD CONSTRAINT refused CHECK (data NOT LIKE '%poison%') NOT VALID")
        let body: JSON = [School.teaches("c1", from: "t1", to: "t2"), School.attendance("poison", of: "s1", "late")]
        func deliver(_ body: JSON) async throws -> ServiceAnswer {
            try await service.call(
                "POST", "/v1/changes", body, headers: ["X-Webhook-Secret": School.secret, "webhook-id": "d1"])
        }
        #expect(try await deliver(body).status >= 500)
        let me = try await service.client(as: School.teacher("t2")).getMe()
        #expect(me.value.scope.contains("class:c1:staff") == false)
        let retried = try await deliver([
            School.attendance("a1", of: "s1", "late"), School.attendance("a3", of: "s3", "late"),
        ])
        #expect(retried.json["accepted"].int == 2, "\(retried.json)")
        try await teacher.receives(["attendance-calendar/s3", "class-attendance/c2"])
        #expect(teacher.received.map(\.name) == ["stream:ready", "query:invalidate"])
    }

    /// Missed rows are delivered once, in the order of the log, while more rows arrive. The stream's own cursor
    /// advances.
    @Test func rowsMissed_areDeliveredOnce_whileOthersCome() async throws {
        let identity = School.parent("p1")
        let cursor = try await service.position(as: identity)
        let count = 150
        let flow = Task {
            for number in 0..<count { try await school.send(School.attendance("n\(number)", of: "s1", "late")) }
        }
        for _ in 0..<6 {
            let stream = try await service.listen(as: identity, lastEventID: cursor)
            try await stream.subscribe([["table": "attendance"]], since: cursor)
            #expect(try await stream.rows(until: "n\(count - 1)") == (0..<count).map { "n\($0)" })
            #expect(!stream.received.contains { $0.name == "stream:resync" })
        }
        try await flow.value
    }

    /// A burst before the connection broke may exceed the replay limit without a gap, because the client has received
    /// it.
    @Test func burstBeforeADisconnect_causesNoGap() async throws {
        let identity = School.parent("p1")
        let first = try await service.listen(as: identity)
        try await first.subscribe([["table": "attendance"]])
        let count = 1200
        for start in stride(from: 0, to: count, by: 600) {
            try await school.send((start..<start + 600).map { School.attendance("n\($0)", of: "s1", "late") })
        }
        var last = try await first.next("table:change")
        while last.json["record"]["id"].string != "n\(count - 1)" { last = try await first.next("table:change") }
        first.close()
        try await school.send(School.attendance("after", of: "s1", "late"))
        let again = try await service.listen(as: identity)
        try await again.subscribe([["table": "attendance"]], since: last.id)
        #expect(try await again.next("table:change").json["record"]["id"].string == "after")
        #expect(!again.received.contains { $0.name == "stream:resync" })
    }

    /// Missed rows arrive without ids, followed by the id to resume from, so they are never delivered again.
    @Test func rowsMissed_moveTheLastId() async throws {
        let identity = School.parent("p1")
        let mine: [JSON] = [["table": "attendance"]]
        let first = try await service.listen(as: identity)
        first.close()
        try await school.send(School.attendance("missed", of: "s1", "late"))
        let second = try await service.listen(as: identity)
        try await second.subscribe(mine, since: first.ready.id)
        let missed = try await second.next("table:change")
        #expect(missed.json["record"]["id"].string == "missed")
        #expect(missed.id == second.ready.id)
        // An event without an id of its own reports the last id.
        try await second.subscribe(mine, since: "zzzzzz-0123456789abc")
        let place = try await second.next("stream:resync").id
        #expect(place != first.ready.id)
        second.close()
        try await school.send(School.attendance("after", of: "s1", "late"))
        let third = try await service.listen(as: identity)
        try await third.subscribe(mine, since: place)
        #expect(try await third.next("table:change").json["record"]["id"].string == "after")
    }

    /// A cursor that is no longer retained is reported, and the subscriptions apply from now on.
    @Test func prunedCursor_isAGap_andRowsContinue() async throws {
        let identity = School.parent("p1")
        let stream = try await service.listen(as: identity)
        let epoch = stream.ready.id.split(separator: "-").first.map(String.init) ?? ""
        for (cursor, reason) in [
            ("\(epoch)-0123456789abc", "gap"), ("zzzzzz-0123456789abc", "epoch"), ("nonsense", "gap"),
        ] {
            try await stream.subscribe([["table": "attendance"]], since: cursor)
            #expect(try await stream.next("stream:resync").json["reason"].string == reason, "\(cursor)")
        }
        try await school.send(School.attendance("a1", of: "s1", "late"))
        #expect(try await stream.next("table:change").json["record"]["id"].string == "a1")
    }
}
