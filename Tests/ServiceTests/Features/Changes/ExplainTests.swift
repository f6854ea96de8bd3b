import BellhopClient
import Foundation
import TestSupport
import Testing

/// `POST /v1/explain`: the key, membership, filter or topic that decides.
@Suite(.timed) struct ExplainTests {
    let school: School
    let service: TestService

    init() async throws {
        school = try await School()
        service = school.service
    }

    private func explain(
        _ eventId: String, to identity: TestService.Identity, tables: [JSON] = [],
        as asker: TestService.Identity = .service(tenant: "A")
    ) async throws -> ServiceAnswer {
        try await service.call(
            "POST", "/v1/explain", as: asker,
            ["eventId": .string(eventId), "token": .string(service.token(for: identity)), "tables": .array(tables)])
    }

    /// Returns the id of a sticker's event for `s1`, as its teacher receives it.
    private func sticker() async throws -> String {
        let teacher = try await service.listen(as: School.teacher("t1"))
        try await teacher.subscribe([["table": "student_stickers"]])
        try await school.send(
            School.insert("student_stickers", ["id": "k1", "school_id": "A", "student_id": "s1", "kind": "star"]))
        return try await teacher.next("table:change").id
    }

    @Test func explanation_namesTheDecidingKeysAndMemberships() async throws {
        let id = try await sticker()
        let answer = try await explain(id, to: School.teacher("t1"))
        #expect(answer.status == 200)
        let teacher = answer.json
        #expect(teacher["delivered"].bool == true)
        #expect(teacher["row"]["seenAfter"].string == "class:c1:staff")
        let key = try #require(teacher["keys"].array?.first { $0["key"].string == "class:c1:staff" })
        expect(key, has: ["origin": "membership", "membership": "class_teacher"])
        let classmate = try await explain(id, to: School.student("s2")).json
        #expect(classmate["delivered"].bool == true)
        #expect(classmate["row"]["seenAfter"] == .null)
        let received = classmate["invalidations"].array?.filter { $0["received"].bool == true } ?? []
        #expect(received.map { $0["key"] } == [["leaderboard", "c1"]])
        #expect(received.first?["causeReceived"].bool == false)
        let stranger = try await explain(id, to: School.teacher("t2")).json
        #expect(stranger["delivered"].bool == false)
        // Compares the claims of a token with the stored memberships.
        var liar = School.teacher("t2")
        liar.metadata["class_ids"] = ["c1"]
        let refuted = try await explain(id, to: liar).json
        let claimed = refuted["keys"].array?.first { $0["key"].string == "class:c1:staff" }
        #expect(refuted["delivered"].bool == false)
        #expect(claimed?["origin"].string == "refuted")
    }

    @Test func filter_isNamed_thatExcludesTheRow() async throws {
        let id = try await sticker()
        let wanted: [JSON] = [["id": "moons", "table": "student_stickers", "filter": "kind=eq.moon"]]
        let answer = try await explain(id, to: School.parent("p1"), tables: wanted).json
        let watched = try #require(answer["subscriptions"].array?.first)
        #expect(watched["change"] == .null)
        #expect(watched["reason"].string?.contains("kind=eq.moon") == true)
    }

    @Test func otherTenants_andOtherPeople_learnNothing() async throws {
        let id = try await sticker()
        let user = try await explain(id, to: School.teacher("t1"), as: School.admin())
        #expect(user.status == 403)
        let elsewhere = try await explain(id, to: School.teacher("t1", of: "B"), as: .service(tenant: "B"))
        #expect(elsewhere.status == 404)
        let claims: JSON = ["sub": "t1", "app_metadata": ["user_role": "teacher", "school_id": "A"]]
        let byClaims = try await service.client(as: .service(tenant: "A")).explain(.init(eventId: id, claims: claims))
        #expect(byClaims.value.delivered)
        let unknown = try await problem(
            of: await service.client(as: .service(tenant: "A")).explain(.init(eventId: "nonsense", claims: claims)))
        #expect(unknown.mistakes == "422 /eventId")
    }
}
