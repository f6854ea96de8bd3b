import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

/// The credentials that may send rows, and the tenants they are valid for.
@Suite(.timed) struct FeedCredentialsTests {
    let probe: FeedProbe

    init() throws { probe = try FeedProbe() }

    private static let row = School.insert("notes", FeedProbe.note("n1"))

    private static func member(_ id: String, of tenant: String, _ user: String = "ann") -> JSON {
        School.insert(
            "members", ["id": .string(id), "tenant": .string(tenant), "user_id": .string(user), "team_id": "t1"])
    }

    // MARK: The shared secret

    @Test func sharedSecret_isAccepted_asHeaderOrBearer_andOnlyExactly() async throws {
        for proof in [["X-Webhook-Secret": FeedProbe.secret], ["Authorization": "Bearer \(FeedProbe.secret)"]] {
            #expect(try await probe.send(Self.row, with: proof).counts == [202, 1, 0, 0])
        }
        let wrong = [
            [:], ["X-Webhook-Secret": ""], ["X-Webhook-Secret": "the feed's shared secre"],
            ["X-Webhook-Secret": FeedProbe.secret + "!"], ["X-Webhook-Secret": "Bearer \(FeedProbe.secret)"],
            ["Authorization": "Bearer \(FeedProbe.secret)!"], ["Authorization": FeedProbe.secret],
            // A wrong secret is refused even if a valid token accompanies it.
            ["X-Webhook-Secret": "wrong", "Authorization": "Bearer \(probe.service.token(for: .service()))"],
        ]
        for proof in wrong {
            let answer = try await probe.send(Self.row, with: proof)
            #expect(answer.status == 401, "\(proof): \(answer.text)")
            #expect(answer[header: "WWW-Authenticate"]?.hasPrefix("Bearer") == true)
            #expect(answer[header: "Content-Type"] == "application/problem+json")
            #expect(!answer.text.contains(FeedProbe.secret))
        }
    }

    /// A secret that the service does not expect, or a wrong one, gets an error that says so.
    @Test func uselessSecret_isRefusedWithAnExplanation() async throws {
        let service = try TestService.start()
        func refusal(_ service: TestService, _ headers: [String: String]) async throws -> (String, String) {
            let answer = try await service.call("POST", "/v1/changes", Self.row, headers: headers)
            return (answer.refusal, answer.json["detail"].string ?? "")
        }
        let unset = try await refusal(service, ["X-Webhook-Secret": FeedProbe.secret])
        #expect(unset.0 == "401 webhook.refused")
        #expect(unset.1.contains("The request has X-Webhook-Secret"))
        #expect(unset.1.contains("set BELLHOP_CHANGES_SECRET"))
        let unsigned = try await refusal(service, ["webhook-signature": "v1,YQ=="])
        #expect(unsigned.1.contains("set BELLHOP_CHANGES_SIGNING_SECRETS"))
        let wrong = try await refusal(probe.service, ["X-Webhook-Secret": "another"])
        #expect(wrong == ("401 webhook.refused", "The secret in X-Webhook-Secret is wrong."))
        #expect(try await refusal(service, [:]).0 == "401 unauthenticated")
    }

    /// Without the setting, the header has no meaning, and an empty secret grants no access.
    @Test func feed_needsAToken_withoutASecret() async throws {
        let service = try TestService.start()
        let probe = FeedProbe(service)
        let row = School.insert("homework", ["id": "h1", "school_id": "A", "student_id": "s1"])
        #expect(try await probe.send(row).status == 401)
        #expect(try await probe.send(row, with: ["X-Webhook-Secret": ""]).status == 401)
        #expect(try await probe.send(row, as: .service(tenant: "A")).counts == [202, 1, 0, 0])
    }

    /// The secret is valid for one endpoint only.
    @Test func sharedSecret_authorizesChangesOnly() async throws {
        for headers in [["X-Webhook-Secret": FeedProbe.secret], ["Authorization": "Bearer \(FeedProbe.secret)"]] {
            for path in ["/v1/me", "/v1/badges", "/v1/stream"] {
                #expect(try await probe.service.call("GET", path, headers: headers).status == 401, "\(path)")
            }
            #expect(try await probe.service.call("POST", "/v1/events", ["id": "e"], headers: headers).status == 401)
            #expect(
                try await probe.service.call("POST", "/v1/revocations", ["tokenId": "t"], headers: headers).status
                    == 401)
        }
    }

    // MARK: Signatures

    private static func signing() throws -> FeedProbe {
        try FeedProbe(["changesSigningSecrets": "\(FeedProbe.signingSecret),\(FeedProbe.nextSigningSecret)"])
    }

    @Test func signedDelivery_isTaken_withEitherKeyWhileKeysChange() async throws {
        let probe = try Self.signing()
        for (index, secret) in [FeedProbe.signingSecret, FeedProbe.nextSigningSecret].enumerated() {
            let headers = try probe.signed(Self.row.data, id: "msg_\(index)", secret: secret)
            #expect(try await probe.send(Self.row, with: headers).counts == [202, 1, 0, 0])
        }
        // A sender that rotates its keys signs with both. An unknown signature does not invalidate the other.
        var both = try probe.signed(Self.row.data, id: "msg_3", secret: "whsec_" + String(repeating: "Q", count: 32))
        let good = try probe.signed(Self.row.data, id: "msg_3")
        both["webhook-signature"] = "v1a,abc \(both["webhook-signature"] ?? "") \(good["webhook-signature"] ?? "")"
        #expect(try await probe.send(Self.row, with: both).counts == [202, 1, 0, 0])
    }

    /// Timestamps may differ by exactly five minutes in either direction.
    @Test func signedDelivery_hasItsTime() async throws {
        let probe = try Self.signing()
        let now = probe.service.clock.now.seconds
        for (offset, status) in [(-301, 401), (-300, 202), (0, 202), (300, 202), (301, 401)] {
            let headers = try probe.signed(Self.row.data, id: "msg_\(offset)", at: now + Int64(offset))
            #expect(try await probe.send(Self.row, with: headers).status == status, "\(offset) s")
        }
    }

    @Test func alteredDelivery_isRefused() async throws {
        let probe = try Self.signing()
        let good = try probe.signed(Self.row.data)
        func changed(_ name: String, _ value: String?) -> [String: String] {
            var headers = good
            headers[name] = value
            return headers
        }
        let signature = good["webhook-signature"] ?? ""
        let zeros = Data(count: 32).base64EncodedString()
        let stranger = "whsec_" + String(repeating: "Q", count: 32)
        let altered: [(String, [String: String], JSON)] = [
            ("body", good, School.insert("notes", FeedProbe.note("n1", "altered"))),
            ("id", changed("webhook-id", "msg_2"), Self.row),
            ("time", changed("webhook-timestamp", "\(probe.service.clock.now.seconds - 1)"), Self.row),
            ("signature", changed("webhook-signature", "v1,\(zeros)"), Self.row),
            ("version", changed("webhook-signature", "v2,\(signature.dropFirst(3))"), Self.row),
            ("no id", changed("webhook-id", nil), Self.row),
            ("no time", changed("webhook-timestamp", nil), Self.row),
            ("another key", try probe.signed(Self.row.data, secret: stranger), Self.row),
            // After an invalid signature, other credentials are not considered.
            (
                "beside a secret",
                changed("webhook-id", "msg_2").merging(["X-Webhook-Secret": FeedProbe.secret]) { $1 }, Self.row
            ),
        ]
        for (what, headers, body) in altered {
            let answer = try await probe.send(body, with: headers)
            #expect(answer.refusal == "401 webhook.refused", "\(what): \(answer.text)")
        }
        #expect(try await probe.send(Self.row, with: good).counts == [202, 1, 0, 0])
        // A replay of the recorded delivery by a third party is a duplicate.
        #expect(try await probe.send(Self.row, with: good).counts == [202, 0, 1, 0])
    }

    // MARK: Tokens

    @Test func tokenOfATenant_sendsRowsOfItsOwn() async throws {
        let (ann, other) = (try await probe.listen(tenant: "A"), try await probe.listen(tenant: "B"))
        let answer = try await probe.send(
            [Self.member("m1", of: "A"), Self.member("m2", of: "B"), Self.member("m3", of: "default")],
            as: .service(tenant: "A"))
        #expect(answer.counts == [202, 1, 0, 2], "\(answer.text)")
        #expect(answer.places == ["1 /1/record", "2 /2/record"], "\(answer.text)")
        #expect(answer.text.contains("belongs to the tenant B, but the sender belongs to A"))
        #expect(try await ann.next("query:invalidate").json["causes"][0]["recordId"].string == "m1")
        // An update can neither take over nor give away a row of another tenant, and a delete cannot remove one.
        let moved = try await probe.send(
            [
                School.update(
                    "members", from: ["id": "m9", "tenant": "B", "user_id": "ann"],
                    to: ["id": "m9", "tenant": "A", "user_id": "ann"]),
                School.update(
                    "members", from: ["id": "m1", "tenant": "A", "user_id": "ann"],
                    to: ["id": "m1", "tenant": "B", "user_id": "ann"]),
                School.delete("members", ["id": "m2", "tenant": "B", "user_id": "ann"]),
            ], as: .service(tenant: "A"))
        #expect(moved.counts == [202, 0, 0, 3], "\(moved.text)")
        // A table with a constant tenant is closed to other tenants.
        #expect(try await probe.send(Self.row, as: .service(tenant: "A")).counts == [202, 0, 0, 1])
        #expect(try await probe.send(Self.member("end", of: "B"), as: .service(tenant: "B")).counts == [202, 1, 0, 0])
        #expect(try await other.next("query:invalidate").json["causes"].array?.map { $0["recordId"] } == ["end"])
    }

    /// A row that names no tenant reveals nothing about other tenants' rows: the answer is the same for a known and
    /// an unknown id.
    @Test func tokenOfATenant_seesNoRowsOfOtherTenants() async throws {
        let school = try await School()
        let probe = FeedProbe(school.service)
        try await school.send(School.insert("students", ["id": "only-in-b", "school_id": "B", "class_id": "c1"]))
        func reasons(of student: String) async throws -> [String] {
            let answer = try await probe.send(
                [
                    School.delete("students", ["id": .string(student)]),
                    School.insert("parent_students", ["parent_id": "p9", "student_id": .string(student)]),
                    School.update(
                        "students", from: ["id": .string(student)], to: ["id": .string(student), "points": 5]),
                ], as: .service(tenant: "A"))
            #expect(answer.counts == [202, 0, 0, 3], "\(answer.text)")
            #expect(!answer.text.contains("tenant B"))
            return (answer.json["rejected"].array ?? []).map { "\($0["pointer"]) \($0["reason"])" }
        }
        let (others, nobodys) = (try await reasons(of: "only-in-b"), try await reasons(of: "nobodys"))
        #expect(others == nobodys)
        // The feed of all tenants may omit the tenant of a known row.
        try await school.send(School.delete("students", ["id": "only-in-b"]))
    }

    @Test func tokenWithoutATenant_andTheFeed_sendRowsOfAllTenants() async throws {
        let (a, b) = (try await probe.listen(tenant: "A"), try await probe.listen(tenant: "B"))
        let rows: JSON = [Self.member("m1", of: "A"), Self.member("m1", of: "B")]
        #expect(try await probe.send(rows, as: .service()).counts == [202, 2, 0, 0])
        #expect(try await a.next("query:invalidate").json["causes"].array?.count == 1)
        #expect(try await b.next("query:invalidate").json["causes"].array?.count == 1)
        #expect(try await probe.send(rows).counts == [202, 2, 0, 0])
    }

    @Test func usersAndAdmins_cannotSendRows() async throws {
        for identity in [TestService.Identity.user("ann"), .staff(of: "s1"), .admin, School.teacher("t1")] {
            let answer = try await probe.send(Self.row, as: identity)
            #expect(answer.refusal == "403 insufficient_scope", "\(identity)")
        }
        // Users can edit this claim themselves, so it grants no authority.
        let pretended = TestService.Identity(
            subject: "ann", claims: ["role": "authenticated", "user_metadata": ["user_role": "service_role"]])
        #expect(try await probe.send(Self.row, as: pretended).status == 403)
        #expect(try await probe.send(Self.row, with: ["Authorization": "Bearer x.y.z"]).status == 401)
    }

    /// A TRUNCATE affects the rows of all tenants.
    @Test func truncate_isForFeedsOfAllTenants() async throws {
        let body = try FeedProbe.fixture("debezium-truncate")
        let token = ["Authorization": "Bearer \(probe.service.token(for: .service(tenant: "A")))"]
        let refused = try await probe.send(body, with: token)
        #expect(refused.counts == [202, 0, 0, 1], "\(refused.text)")
        // The refused TRUNCATE is not recorded as a duplicate.
        #expect(try await probe.send(body).counts == [202, 1, 0, 0])
    }
}
