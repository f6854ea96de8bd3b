import BellhopClient
import Database
import Foundation
import PostgresServer
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// The answers of `POST /v1/changes`: accepted items, duplicates, and rejected items.
@Suite(.timed) struct DeliveryTests {
    let probe: FeedProbe

    init() throws { probe = try FeedProbe() }

    // MARK: Rejected items

    /// A bad row affects only itself, and its position is given in terms of the delivery.
    @Test func badRows_areRejectedAlone_withIndexPointerAndReason() async throws {
        let stream = try await probe.listen()
        let items: [(place: String?, item: JSON)] = [
            (nil, School.insert("notes", FeedProbe.note("n0"))),
            ("1 /1/table", School.insert("parcels", FeedProbe.note("n1"))),
            ("2 /2/record/id", School.insert("notes", ["body": "keyless"])),
            ("3 /3/record/id", School.insert("notes", ["id": nil, "body": "keyless"])),
            ("4 /4/record/id", School.insert("notes", ["id": ["a": 1]])),
            ("5 /5/old_record/id", School.delete("notes", ["body": "keyless"])),
            ("6 /6/record", School.insert("notes", "a text")),
            ("7 /7/type", ["type": "UPSERT", "schema": "public", "table": "notes", "record": FeedProbe.note("n7")]),
            ("8 /8", "a text"), ("9 /9", ["hello": "world"]), ("10 /10", []),
            ("11 /11/after/id", FeedProbe.debezium(1).with("after", ["body": "keyless"])),
            ("12 /12/data/record/id", FeedProbe.event(1).with("data", School.insert("notes", ["body": "keyless"]))),
            (
                "13 /13/payload/record/id",
                FeedProbe.insertion(1, in: .broadcastChanges).with(
                    "payload",
                    ["operation": "INSERT", "schema": "public", "table": "notes", "record": ["body": "keyless"]])
            ),
            ("14 /14/record/tenant", School.insert("members", ["id": "m", "user_id": "ann"])),
            (nil, nil), (nil, School.insert("notes", FeedProbe.note("n16"))),
        ]
        let answer = try await probe.send(.array(items.map(\.item)))
        let expected = items.compactMap(\.place)
        #expect(answer.counts == [202, items.count - expected.count, 0, expected.count], "\(answer.text)")
        #expect(answer.places == expected, "\(answer.text)")
        let reasons = (answer.json["rejected"].array ?? []).map { $0["reason"].string ?? "" }
        #expect(
            reasons.first
                == "the table public.parcels is not declared: add it to your table file, which BELLHOP_TABLES names")
        #expect(reasons.allSatisfy { !$0.isEmpty })
        #expect(try await probe.received(stream).map { $0["recordId"] } == ["n0", "n16"])
        // In a delivery of a single object, positions start at the body.
        let alone = try await probe.send(School.insert("notes", ["body": "keyless"]))
        #expect(alone.places == ["0 /record/id"], "\(alone.text)")
    }

    /// PostgreSQL cannot store U+0000 in text. A row with one must not affect the other rows of its delivery, on
    /// either store.
    @Test func unstorableTexts_rejectTheirRowOnly() async throws {
        let stream = try await probe.listen()
        func member(_ id: String, _ tenant: String = "default", _ user: String = "ann", _ team: String = "t1") -> JSON {
            School.insert(
                "members",
                ["id": .string(id), "tenant": .string(tenant), "user_id": .string(user), "team_id": .string(team)])
        }
        let answer = try await probe.send([
            member("m0"), member("m\u{0}"), member("m2", "a\u{0}b"), member("m3", "default", "ann\u{0}"),
            member("m4", "default", "ann", "t\u{0}"), FeedProbe.event(5, id: "e\u{0}"),
            FeedProbe.event(6, source: "/notes\u{0}"),
            FeedProbe.insertion(7, in: .broadcastChanges).with(
                "payload",
                [
                    "id": "b\u{0}", "operation": "INSERT", "schema": "public", "table": "notes",
                    "record": FeedProbe.note("n7"),
                ]),
            School.insert("notes", FeedProbe.note("n8", "a text with \u{0} in it")), member("m9"),
        ])
        #expect(answer.status == 202, "\(answer.text)")
        let rejected = Set((answer.json["rejected"].array ?? []).compactMap { $0["index"].int })
        // A row whose tenant cannot be stored belongs to no tenant, and an id that cannot be stored finds no
        // duplicates. All other rows are delivered.
        #expect(rejected == [2, 5, 6, 7], "\(answer.text)")
        let delivered = try await probe.received(stream).compactMap { $0["recordId"].string }
        #expect(delivered.contains("m0"), "\(delivered)")
        #expect(delivered.contains("m9"), "\(delivered)")
        #expect(delivered.contains("n8"), "\(delivered)")
    }

    @Test func unreadableBodies_areRefusedAsAWhole_withThePlace() async throws {
        let bodies: [(String, String)] = [
            ("", "byte 0"), ("   ", "byte 3"), ("[", "byte 1"), (#"[{"a":1}"#, "byte 8"), (#"[{"a":1},]"#, "byte 9"),
            (#"[{"a":1}{"b":2}]"#, "byte 8"), (#"{"a":1} {"b":2}"#, "byte 8"), (#"{"a":"unended}"#, "byte 5"),
        ]
        for (text, place) in bodies {
            let answer = try await probe.send(Data(text.utf8))
            #expect(answer.refusal == "400 request.malformed_json", "\(text)")
            #expect(answer.json["detail"].string?.contains(place) == true, "\(text): \(answer.text)")
        }
        // An item whose end can be found affects only itself.
        let half = try await probe.send(Data(#"[{"type":tru}, {"a": 01}, null]"#.utf8))
        #expect(half.counts == [202, 1, 0, 2], "\(half.text)")
        #expect(half.places == ["0 /0", "1 /1"], "\(half.text)")
        #expect(try await probe.send([]).counts == [202, 0, 0, 0])
        #expect(try await probe.send([], format: "debezium").counts == [202, 0, 0, 0])
    }

    // MARK: Limits

    @Test func batch_takesAThousandRows_andNotOneMore() async throws {
        let rows = (1...ChangeLimits.itemsMax + 1).map { School.insert("notes", FeedProbe.note("n\($0)")) }
        let answer = try await probe.send(.array(Array(rows.dropLast())))
        #expect(answer.counts == [202, 1000, 0, 0])
        let refused = try await probe.send(.array(rows))
        #expect(refused.refusal == "413 changes.too_many", "\(refused.text)")
        #expect(refused.json["detail"].string?.contains("byte ") == true)
    }

    @Test func largeBodies_areRefused_andALargeRowIsRejectedAlone() async throws {
        func note(_ id: String, bytes: Int) -> JSON {
            School.insert("notes", FeedProbe.note(id, String(repeating: "x", count: bytes)))
        }
        let answer = try await probe.send([note("small", bytes: 10), note("large", bytes: 1 << 20)])
        #expect(answer.counts == [202, 1, 0, 1], "\(answer.text.prefix(300))")
        #expect(answer.places == ["1 /1"], "\(answer.text.prefix(300))")
        let many = (0..<8).map { note("n\($0)", bytes: (1 << 20) - 400) }
        #expect(try await probe.send(.array(many)).counts == [202, 8, 0, 0])
        // The answer precedes the body and closes the connection, so anything sent meanwhile is lost. `Expect:
        // 100-continue` avoids that.
        func refusal(of bytes: Int, _ proof: String) throws -> String {
            let raw = try RawConnection(probe.service.port)
            try raw.send(
                "POST /v1/changes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\(proof)"
                    + "Content-Length: \(bytes)\r\nExpect: 100-continue\r\n\r\n")
            return try raw.read(until: "\r\n\r\n")
        }
        let proof = "X-Webhook-Secret: \(FeedProbe.secret)\r\n"
        let tooMany = JSON.array(many + [note("n9", bytes: 1 << 12)]).data.count
        #expect(try refusal(of: tooMany, proof).hasPrefix("HTTP/1.1 413 "))
        // Without a valid secret, an oversized body gets the same 413, and a body of permitted size gets 401.
        #expect(try refusal(of: tooMany, "").hasPrefix("HTTP/1.1 413 "))
        #expect(try refusal(of: JSON.array(many).data.count, "").hasPrefix("HTTP/1.1 401 "))
    }

    @Test func deepRows_areRejectedAlone() async throws {
        let deep = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)
        let body = """
            [{"type":"INSERT","schema":"public","table":"notes","record":{"id":"n1","body":\(deep)},"old_record":null},
             {"type":"INSERT","schema":"public","table":"notes","record":{"id":"n2"},"old_record":null}]
            """
        let answer = try await probe.send(Data(body.utf8))
        #expect(answer.counts == [202, 1, 0, 1], "\(answer.text)")
        #expect(answer.places == ["0 /0"], "\(answer.text)")
    }

    @Test func headers_thatSayTwoThings_areRefused() async throws {
        let row = School.insert("notes", FeedProbe.note("n1"))
        #expect(try await probe.send(row, ["webhook-id": ""]).status == 422)
        #expect(try await probe.send(row, ["X-Client-Id": String(repeating: "x", count: 129)]).status == 422)
        #expect(try await probe.send(row, ["ce-id": "%zz"]).status == 422)
        let named = try await probe.send(row, ["X-Client-Id": "tab-1"])
        #expect(named.counts == [202, 1, 0, 0])
    }

    // MARK: Duplicates

    /// CloudEvents: the source and the id together identify an event.
    @Test func repeatedEvent_isADuplicate_alsoWithinADelivery_andAfterARestart() async throws {
        let stream = try await probe.listen()
        let (one, two) = (FeedProbe.event(1, id: "a"), FeedProbe.event(2, id: "a", source: "/others"))
        #expect(try await probe.send(one).counts == [202, 1, 0, 0])
        #expect(try await probe.send(one).counts == [202, 0, 1, 0])
        #expect(try await probe.send([one, two, two, FeedProbe.event(3, id: "b")]).counts == [202, 2, 2, 0])
        // Only the id counts, whatever the row contains: two events with one id are one event sent twice.
        #expect(try await probe.send(FeedProbe.event(4, id: "a")).counts == [202, 0, 1, 0])
        #expect(try await probe.received(stream).map { $0["recordId"] } == ["n1", "n2", "n3"])
        try await probe.service.restart()
        #expect(try await probe.send([one, two, FeedProbe.event(5, id: "c")]).counts == [202, 1, 2, 0])
    }

    /// A rejected item was not accepted: its sender can correct it and send it again.
    @Test func rejectedEvent_isNoDuplicate_whenCorrected() async throws {
        let broken = FeedProbe.event(1).with("data", School.insert("notes", ["body": "keyless"]))
        #expect(try await probe.send([broken, broken]).counts == [202, 0, 0, 2])
        #expect(try await probe.send(FeedProbe.event(1)).counts == [202, 1, 0, 0])
    }

    /// A scope has a maximum number of memberships. An item beyond it is rejected each time it arrives.
    @Test func rejectedMembership_isNoDuplicate_whenSentAgain() async throws {
        func member(_ number: Int) -> JSON {
            School.insert(
                "members",
                [
                    "id": .string("m\(number)"), "tenant": "default", "user_id": "ann",
                    "team_id": .string("t\(number)"),
                ])
        }
        func rows(_ numbers: Range<Int>) -> JSON {
            .array(numbers.map { FeedProbe.event($0).with("data", member($0)) })
        }
        let most = TableLimits.grantsPerSubjectMax
        for start in stride(from: 0, to: most - 1000, by: 1000) {
            // These rows have no ids of their own, because the service would store each id.
            let others = JSON.array((start..<start + 1000).map(member))
            #expect(try await probe.send(others).counts == [202, 1000, 0, 0])
        }
        let last = rows(most - 999..<most + 1)
        #expect(try await probe.send(rows(most - 1000..<most - 999)).counts == [202, 1, 0, 0])
        #expect(try await probe.send(last).counts == [202, 999, 0, 1])
        #expect(try await probe.send(last).counts == [202, 0, 999, 1])
    }

    /// Debezium: the log position and the row identify a change, because rows of one statement share a position.
    @Test func repeatedPosition_isADuplicate_andAnotherIsNot() async throws {
        let first = FeedProbe.debezium(1, lsn: 7)
        #expect(try await probe.send(first).counts == [202, 1, 0, 0])
        #expect(try await probe.send([first, FeedProbe.debezium(2, lsn: 7)]).counts == [202, 1, 1, 0])
        #expect(try await probe.send([FeedProbe.debezium(1, lsn: 8)]).counts == [202, 1, 0, 0])
        // Wrapped in {schema, payload}, it is the same event.
        #expect(try await probe.send(["schema": nil, "payload": first]).counts == [202, 0, 1, 0])
    }

    /// Standard Webhooks: the delivery's id and the item's index. A retried delivery is unchanged.
    @Test func repeatedDelivery_isADuplicate_byItsWebhookID() async throws {
        let rows: JSON = [
            School.insert("notes", FeedProbe.note("n1")), School.insert("notes", FeedProbe.note("n2")),
            FeedProbe.event(3),
        ]
        #expect(try await probe.send(rows, ["webhook-id": "d1"]).counts == [202, 3, 0, 0])
        #expect(try await probe.send(rows, ["webhook-id": "d1"]).counts == [202, 0, 3, 0])
        // An item's own id takes precedence over the delivery's.
        #expect(try await probe.send(rows, ["webhook-id": "d2"]).counts == [202, 2, 1, 0])
        #expect(try await probe.send(rows).counts == [202, 2, 1, 0])
    }

    /// A→B→A→B is four changes. A Supabase webhook contains nothing that distinguishes a retry from another change.
    @Test func supabaseWebhooks_areNeverDuplicates_byTheirContent() async throws {
        let stream = try await probe.listen()
        let (a, b) = (FeedProbe.note("n1", "A"), FeedProbe.note("n1", "B"))
        let (there, back) = (School.update("notes", from: a, to: b), School.update("notes", from: b, to: a))
        for change in [there, back, there, back] { #expect(try await probe.send(change).counts == [202, 1, 0, 0]) }
        #expect(try await probe.send([there, back, there, back]).counts == [202, 4, 0, 0])
        #expect(!(try await probe.received(stream)).isEmpty)
    }

    /// The ids of different tenants' feeds are independent.
    @Test func ids_areOfTheSendersTenant() async throws {
        func event(of tenant: String) -> JSON {
            FeedProbe.event(1).with(
                "data", School.insert("members", ["id": "m1", "tenant": .string(tenant), "user_id": "ann"]))
        }
        for tenant in ["A", "B"] {
            #expect(try await probe.send(event(of: tenant), as: .service(tenant: tenant)).counts == [202, 1, 0, 0])
            #expect(try await probe.send(event(of: tenant), as: .service(tenant: tenant)).counts == [202, 0, 1, 0])
        }
    }

    /// A repeated request gets the first answer and is not performed again.
    @Test func idempotencyKey_replaysTheAnswer() async throws {
        let stream = try await probe.listen()
        let rows: JSON = [School.insert("notes", FeedProbe.note("n1")), School.insert("parcels", [:])]
        let first = try await probe.send(rows, ["Idempotency-Key": "k1"])
        let second = try await probe.send(rows, ["Idempotency-Key": "k1"])
        #expect(first.counts == [202, 1, 0, 1])
        #expect(second.counts == first.counts)
        #expect(second.json == first.json)
        #expect(first[header: "Idempotency-Replayed"] == nil)
        #expect(second[header: "Idempotency-Replayed"] == "true")
        let other = try await probe.send(School.insert("notes", FeedProbe.note("n2")), ["Idempotency-Key": "k1"])
        #expect(other.refusal == "422 idempotency.key_reused")
        #expect(try await probe.received(stream).count == 1)
    }

    /// In binary mode, the headers are part of the event: a different header is a different request.
    @Test func idempotencyKey_coversHeadersThatInterpretTheBody() async throws {
        let stream = try await probe.listen()
        let row = School.insert("notes", FeedProbe.note("n1"))
        func send(
            _ changed: [String: String], _ row: JSON = row, with key: String = "k1"
        ) async throws -> ServiceAnswer {
            let headers = [
                "Idempotency-Key": key, "ce-specversion": "1.0", "ce-id": "e1", "ce-type": "t", "ce-source": "/notes",
            ]
            return try await probe.send(row, headers.merging(changed) { $1 })
        }
        let first = try await send([:])
        #expect(first.counts == [202, 1, 0, 0], "\(first.text)")
        for same in [[:], ["Content-Type": "Application/JSON; charset=utf-8"]] {
            let again = try await send(same)
            #expect(again.counts == first.counts, "\(same)")
            #expect(again[header: "Idempotency-Replayed"] == "true", "\(same)")
        }
        for other in [
            ["ce-id": "e2"], ["ce-type": "u"], ["ce-source": "/other"], ["ce-authid": "ann"], ["webhook-id": "w1"],
            ["Content-Type": "application/cloudevents+json"],
        ] {
            let refused = try await send(other)
            #expect(refused.status == 422, "\(other): \(refused.text)")
            #expect(refused.json["code"].string == "idempotency.key_reused", "\(other)")
        }
        // Another row, because two changes of one row in a window are one cause.
        let another = School.insert("notes", FeedProbe.note("n2"))
        #expect(try await send(["ce-id": "e2"], another, with: "k2").counts == [202, 1, 0, 0])
        #expect(try await probe.received(stream).map { $0["recordId"] } == ["n1", "n2"])
    }

    // MARK: Durability

    /// An acknowledged change is stored: a stream opened later, in another process, receives it.
    @Test func acceptedChanges_areDelivered_afterARestart() async throws {
        let stream = try await probe.listen()
        let first = try await probe.send(School.insert("notes", FeedProbe.note("n1")))
        #expect(first.status == 202)
        let delivered = try await stream.next("query:invalidate")
        let cursor = delivered.id
        stream.close()
        let more = (2...40).map { School.insert("notes", FeedProbe.note("n\($0)")) }
        #expect(try await probe.send(.array(more)).counts == [202, 39, 0, 0])
        try await probe.service.restart()
        let resumed = try await probe.service.listen(as: .user("ann"), lastEventID: cursor)
        let missed = try await resumed.next("query:invalidate")
        #expect(missed.staleKeys == ["public.notes"])
    }

    /// Memberships from a delivery are known to a process that starts afterwards.
    @Test func memberships_areKnown_afterARestart() async throws {
        let row = School.insert("members", ["id": "m1", "tenant": "default", "user_id": "ann", "team_id": "t1"])
        #expect(try await probe.send(row).counts == [202, 1, 0, 0])
        func scope() async throws -> [String] {
            try await probe.service.client("ann").getMe().value.scope
        }
        #expect(try await scope().contains("team:t1:member"))
        try await probe.service.restart()
        #expect(try await scope().contains("team:t1:member"))
        #expect(try await probe.send(School.delete("members", ["id": "m1"])).counts == [202, 1, 0, 0])
        #expect(try await scope().contains("team:t1:member") == false)
    }

    /// A delivery that both replicas receive at the same time is accepted once.
    @Test(.enabled(if: PostgresServer.isTheStore, "needs replicas"))
    func sameDelivery_onBothReplicas_isTakenOnce() async throws {
        let (first, second) = try TestService.startReplicas(FeedProbe.settings())
        let probes = [FeedProbe(first), FeedProbe(second)]
        for round in 0..<10 {
            let rows = JSON.array((0..<20).map { FeedProbe.event(round * 20 + $0) })
            let answers = try await concurrently(probes) { probe in try await probe.send(rows) }
            let (accepted, duplicates) = (answers.map { $0.counts[1] }, answers.map { $0.counts[2] })
            #expect(accepted.reduce(0, +) == 20, "\(accepted) \(duplicates)")
            #expect(duplicates.reduce(0, +) == 20, "\(accepted) \(duplicates)")
        }
    }

    /// Ids are stored for three days.
    @Test func ids_arePruned_afterTheirRetention() async throws {
        let event = FeedProbe.event(1)
        #expect(try await probe.send(event).counts == [202, 1, 0, 0])
        probe.service.clock.advance(seconds: ChangeDeduplication.deliverySeconds - 60)
        try tidy(probe.service)
        #expect(try await probe.send(event).counts == [202, 0, 1, 0])
        probe.service.clock.advance(seconds: 120)
        try tidy(probe.service)
        #expect(try await probe.send(event).counts == [202, 1, 0, 0])
    }

    private func tidy(_ service: TestService) throws {
        try service.app.store.writeAndWait { db in
            try service.app.runner.write(as: .system(tenant: "default"), in: db) { tx in
                try ChangesFeature.pruning.body(tx)
            }
        }
    }
}

extension JSON {
    /// Returns the object with one member changed.
    func with(_ name: String, _ value: JSON) -> JSON {
        var members = object ?? [:]
        members[name] = value
        return .object(members)
    }
}
