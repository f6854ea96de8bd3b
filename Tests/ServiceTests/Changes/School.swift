import BellhopClient
import Foundation
import Testing

@testable import Service

/// Two schools, A and B, whose people have the same ids: `s1` and `s2` are in class `c1` of teacher `t1`, `s3` is in
/// `c2` of `t2`; `p1` and `p3` are the parents of `s1` and `s3`; `a1` is the admin. Nothing but the tenant keeps the
/// schools apart.
///
/// Rows come as a database's webhook would send them, with the shared secret.
struct School {
    static let secret = "the feed's shared secret"
    static let names = ["A", "B"]

    let service: TestService

    /// - Parameter isKnown: whether the rows that tell who belongs where have come.
    init(_ service: TestService? = nil, isKnown: Bool = true) async throws {
        self.service = try service ?? TestService.start(["changesSecret": Self.secret])
        if isKnown { for name in Self.names { try await tellMemberships(of: name) } }
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

    /// Everybody's place, in one delivery.
    func tellMemberships(of school: String) async throws {
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
        try await tell(rows)
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

    /// Delivers rows' changes and expects all of them to be taken.
    func tell(_ changes: [JSON], to replica: TestService? = nil) async throws {
        let answer = try await deliver(.array(changes), to: replica)
        #expect(answer.status == 202, "\(answer.json)")
        #expect(answer.json["accepted"].int == changes.count, "\(answer.json)")
    }

    func tell(_ changes: JSON...) async throws { try await tell(changes) }

    func deliver(_ body: JSON, to replica: TestService? = nil) async throws -> ServiceAnswer {
        try await BellhopClient(baseURL: (replica ?? service).baseURL)
            .post("/v1/changes", body, headers: ["X-Webhook-Secret": Self.secret])
    }
}

extension ServerSentEvent {
    /// The keys of a `query:invalidate`, as texts that are easy to compare: `leaderboard/c1`.
    var staleKeys: Set<String> {
        Set((json["keys"].array ?? []).map { ($0.array ?? []).compactMap(\.string).joined(separator: "/") })
    }
}

extension StreamListener {
    /// Asks for rows of tables, and waits until it is so.
    func subscribe(
        _ tables: [JSON], through service: TestService, as identity: TestService.Identity, since cursor: String? = nil
    ) async throws {
        var body: [String: JSON] = ["tables": .array(tables)]
        if let cursor { body["lastEventId"] = .string(cursor) }
        let id = ready.json["streamId"].string ?? ""
        let answer = try await service.client(as: identity).put("/v1/streams/\(id)/subscriptions", .object(body))
        #expect(answer.status == 200, "\(answer.json)")
    }
}
