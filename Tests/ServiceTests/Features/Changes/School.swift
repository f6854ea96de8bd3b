import BellhopClient
import Foundation
import TestSupport
import Testing

@testable import Service

/// Two schools, A and B, whose people have the same ids: `s1` and `s2` are in class `c1` of teacher `t1`, `s3` is in
/// `c2` of `t2`; `p1` and `p3` are the parents of `s1` and `s3`; `a1` is the admin. Only the tenant separates the
/// schools.
///
/// Rows arrive as from a database's webhook, with the shared secret.
struct School {
    static let secret = "the feed's shared secret"
    static let names = ["A", "B"]

    let service: TestService

    /// Returns the settings of a service with a shipped table file that accepts rows with the shared secret.
    ///
    /// - Parameter windowMs: the length of every window. A waiting stream ends the windows, so the default is the
    ///   maximum: everything a test sends before it waits falls into one window, however slow the machine is.
    static func settings(_ tables: String = "school", windowMs: Int = 60_000) throws -> [String: String] {
        let shipped = String(decoding: Resource.bytes("\(tables).yaml"), as: UTF8.self)
        let text = shipped.replacingOccurrences(
            of: "    primaryKey:", with: "    windowMs: \(windowMs)\n    primaryKey:")
        return ["changesSecret": secret, "tables": try directory.get().write(text, to: "\(tables)-\(windowMs).yaml")]
    }

    private static let directory = Result { try TemporaryDirectory() }

    /// - Parameter isKnown: whether the rows that define the memberships are sent.
    init(_ service: TestService? = nil, isKnown: Bool = true) async throws {
        self.service = try service ?? TestService.start(Self.settings())
        guard isKnown else { return }
        for name in Self.names { try await sendMemberships(of: name) }
        // Moves past the replay of recent changes: a resumed stream receives again the changes whose window may not
        // have ended. Its position is the newest event of its own school, so each school gets one.
        self.service.clock.advance(seconds: 120)
        for name in Self.names {
            let event: JSON = ["id": .string("setup-\(name)"), "type": "visit.created", "userId": "nobody"]
            let answer = try await self.service.call("POST", "/v1/events", as: .service(tenant: name), event)
            #expect(answer.status == 201)
        }
        try await send(Self.own("homework", "w0", of: "s0", school: "C"))
    }

    // MARK: People

    static func student(_ id: String, of school: String = "A") -> TestService.Identity {
        person(id, "student", school, ["student_id": .string(id)])
    }

    static func teacher(_ id: String, of school: String = "A") -> TestService.Identity { person(id, "teacher", school) }

    static func parent(_ id: String, of school: String = "A") -> TestService.Identity { person(id, "parent", school) }

    static func admin(_ id: String = "a1", of school: String = "A") -> TestService.Identity {
        person(id, "admin", school)
    }

    private static func person(
        _ id: String, _ role: String, _ school: String, _ claims: [String: JSON] = [:]
    ) -> TestService.Identity {
        var metadata = claims
        metadata["user_role"] = .string(role)
        metadata["school_id"] = .string(school)
        return .init(subject: id, claims: ["role": "authenticated", "app_metadata": .object(metadata)])
    }

    // MARK: Rows

    /// Sends the memberships of all people in one delivery.
    func sendMemberships(of school: String) async throws {
        let school = JSON.string(school)
        var rows: [JSON] = []
        for (teacher, schoolClass) in [("t1", "c1"), ("t2", "c2")] {
            rows.append(
                Self.insert(
                    "classes", ["id": .string(schoolClass), "school_id": school, "teacher_id": .string(teacher)]))
        }
        for (student, schoolClass) in [("s1", "c1"), ("s2", "c1"), ("s3", "c2")] {
            rows.append(
                Self.insert(
                    "students",
                    ["id": .string(student), "school_id": school, "class_id": .string(schoolClass), "points": 0]))
        }
        for (parent, student) in [("p1", "s1"), ("p3", "s3")] {
            rows.append(
                Self.insert(
                    "parent_students",
                    ["parent_id": .string(parent), "student_id": .string(student), "school_id": school]))
        }
        try await send(rows)
    }

    static func insert(_ table: String, _ record: JSON) -> JSON {
        ["type": "INSERT", "schema": "public", "table": .string(table), "record": record, "old_record": .null]
    }

    static func update(_ table: String, from old: JSON, to record: JSON) -> JSON {
        ["type": "UPDATE", "schema": "public", "table": .string(table), "record": record, "old_record": old]
    }

    static func delete(_ table: String, _ old: JSON) -> JSON {
        ["type": "DELETE", "schema": "public", "table": .string(table), "record": .null, "old_record": old]
    }

    static func own(_ table: String, _ id: String, of student: String, school: String = "A") -> JSON {
        insert(table, ["id": .string(id), "school_id": .string(school), "student_id": .string(student)])
    }

    static func sticker(_ id: String, to student: String, by teacher: String, school: String = "A") -> JSON {
        insert(
            "student_stickers",
            [
                "id": .string(id), "school_id": .string(school), "student_id": .string(student),
                "awarded_by": .string(teacher),
            ])
    }

    static func attendanceRow(
        _ id: String, of student: String, _ status: String, by marker: String = "a1", school: String = "A"
    ) -> JSON {
        [
            "id": .string(id), "school_id": .string(school), "student_id": .string(student),
            "status": .string(status), "marked_by": .string(marker),
        ]
    }

    static func attendance(
        _ id: String, of student: String, _ status: String, by marker: String = "a1", school: String = "A"
    ) -> JSON {
        insert("attendance", attendanceRow(id, of: student, status, by: marker, school: school))
    }

    /// Returns an update of a student in a class.
    static func student(
        _ id: String, of schoolClass: String = "c1", school: String = "A", from old: [String: JSON],
        to new: [String: JSON]
    ) -> JSON {
        let row: [String: JSON] = [
            "id": .string(id), "school_id": .string(school), "class_id": .string(schoolClass), "points": 0, "level": 1,
            "streak": 0,
        ]
        return update(
            "students", from: .object(row.merging(old) { $1 }),
            to: .object(row.merging(old) { $1 }.merging(new) { $1 }))
    }

    /// Returns the update that gives a class to another teacher.
    static func teaches(_ schoolClass: String, from old: String, to new: String, school: String = "A") -> JSON {
        let row: [String: JSON] = ["id": .string(schoolClass), "school_id": .string(school)]
        return update(
            "classes", from: .object(row.merging(["teacher_id": .string(old)]) { $1 }),
            to: .object(row.merging(["teacher_id": .string(new)]) { $1 }))
    }

    /// Delivers changes and expects all of them to be accepted.
    ///
    /// - Parameter origin: the client that wrote the rows.
    func send(_ changes: [JSON], to replica: TestService? = nil, from origin: String? = nil) async throws {
        let answer = try await deliver(.array(changes), to: replica, from: origin)
        #expect(answer.status == 202, "\(answer.json)")
        #expect(answer.json["accepted"].int == changes.count, "\(answer.json)")
    }

    func send(_ changes: JSON...) async throws { try await send(changes) }

    func deliver(_ body: JSON, to replica: TestService? = nil, from origin: String? = nil) async throws -> ServiceAnswer
    {
        var headers = ["X-Webhook-Secret": Self.secret]
        headers["X-Client-Id"] = origin ?? "the database"
        return try await (replica ?? service).call("POST", "/v1/changes", body, headers: headers)
    }
}

extension ServerSentEvent {
    /// The keys of a `query:invalidate`, as text for comparison: `leaderboard/c1`.
    var staleKeys: Set<String> {
        Set((json["keys"].array ?? []).map { ($0.array ?? []).compactMap(\.string).joined(separator: "/") })
    }
}

extension StreamListener {
    /// Waits until these query keys have been invalidated, and expects each exactly once and no others. Returns their
    /// causes.
    ///
    /// A replica may split the keys of one delivery into two events if it reads the log meanwhile.
    @discardableResult
    func receives(
        _ keys: Set<String>, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> [JSON] {
        var (stale, causes): ([String], [JSON]) = ([], [])
        while !keys.isSubset(of: stale) {
            let event = try await next("query:invalidate")
            stale += event.staleKeys
            for cause in event.json["causes"].array ?? [] where !causes.contains(cause) { causes.append(cause) }
            guard keys.isSuperset(of: stale) else { break }
        }
        #expect(stale.count == keys.count, "\(stale.sorted())", sourceLocation: sourceLocation)
        #expect(Set(stale) == keys, "\(stale.sorted())", sourceLocation: sourceLocation)
        return causes
    }

    /// Returns the ids of the received rows in order, up to and including `last`.
    func rows(until last: String) async throws -> [String] {
        var ids: [String] = []
        while ids.last != last { ids.append(try await next("table:change").json["record"]["id"].string ?? "") }
        return ids
    }

    /// Waits for a scope without the key `lost` and with the key `gained`. Each sent row may produce a scope of its
    /// own.
    func nextScope(without lost: String? = nil, with gained: String? = nil) async throws {
        while true {
            let scope = try await next("stream:scope").json["scope"].array?.compactMap(\.string) ?? []
            if lost.map({ !scope.contains($0) }) ?? true, gained.map(scope.contains) ?? true { return }
        }
    }

    /// Subscribes to rows of tables, and waits for the confirmation.
    func subscribe(_ tables: [JSON], since cursor: String? = nil) async throws {
        let answer = try await replaceSubscriptions(tables, since: cursor)
        #expect(answer.status == 200, "\(answer.json)")
    }

    /// Replaces the subscriptions and returns the answer; by default with the identity that opened the stream, at the
    /// replica that serves it.
    func replaceSubscriptions(
        _ tables: [JSON], since cursor: String? = nil, through replica: TestService? = nil,
        as identity: TestService.Identity? = nil
    ) async throws -> ServiceAnswer {
        let opener = try #require(opener)
        var body: [String: JSON] = ["tables": .array(tables)]
        body["lastEventId"] = cursor.map(JSON.string)
        let path = "/v1/streams/\(ready.json["streamId"].string ?? "")/subscriptions"
        return try await (replica ?? opener.service).call("PUT", path, as: identity ?? opener.identity, .object(body))
    }
}
