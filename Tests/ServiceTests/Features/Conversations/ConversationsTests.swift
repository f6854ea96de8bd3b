import BellhopClient
import Database
import Domain
import Foundation
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Conversations over real HTTP: visibility, unread counts, and delivery.
@Suite(.timed) struct ConversationsTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    // MARK: Creation

    @Test func conversation_isVisibleToItsMembers_andTheTenantsBackend() async throws {
        let made = try await service.call(
            "POST", "/v1/conversations", as: .user("ana"), #"{"memberIds":["ben"],"title":"Trip"}"#)
        #expect(made.status == 201)
        let id = try #require(made.json["id"].string)
        expect(made.json, has: ["kind": "group", "members": ["ana", "ben"], "memberCount": 2, "unread": 0])
        expect(made.json, has: ["lastMessage": nil])

        for member in ["ana", "ben"] {
            let seen = try await service.call("GET", "/v1/conversations/\(id)", as: .user(member))
            #expect(seen.json == made.json, "\(member)")
            #expect(try await service.conversations(of: member).count == 1)
        }
        // A backend of the tenant can see the conversation without being a member.
        let backend = try await service.call("GET", "/v1/conversations/\(id)", as: .service())
        expect(backend.json, has: ["memberCount": 2, "unread": nil])
        try service.expectExactCounts()
    }

    @Test func outsiders_findNoConversation_andChangeNone() async throws {
        let id = try await service.converse("ana", "ben")
        _ = try await service.send("hello", to: id, as: "ana")
        let outsiders: [TestService.Identity] = [
            .user("eve"), .user("ben", tenant: "other"), .service(tenant: "other"),
        ]
        for outsider in outsiders {
            #expect(try await service.call("GET", "/v1/conversations/\(id)", as: outsider).status == 404)
            #expect(try await service.call("GET", "/v1/conversations/\(id)/messages", as: outsider).status == 404)
            #expect(try await service.call("GET", "/v1/conversations", as: outsider).items.isEmpty)
            let text = #"{"text":"let me in"}"#
            #expect(
                try await service.call("POST", "/v1/conversations/\(id)/messages", as: outsider, text).status == 404)
            let position = #"{"sequence":1}"#
            let path = "/v1/conversations/\(id)/read-position"
            #expect(try await service.call("PUT", path, as: outsider, position).status == 404)
            #expect(try await service.call("PUT", "/v1/conversations/\(id)/members/me", as: outsider).status == 404)
            #expect(try await service.call("DELETE", "/v1/conversations/\(id)/members/ben", as: outsider).status == 404)
            #expect(
                try await service.call("PATCH", "/v1/conversations/\(id)", as: outsider, #"{"title":"x"}"#).status
                    == 404)
        }
        try service.expectExactCounts()
    }

    @Test func sameId_isTheSameConversation_unlessItIsSomebodyElses() async throws {
        let body = #"{"id":"0197b2c4-9d3e-7a51-8c2f-4b6d8e0f1a23","memberIds":["ben"]}"#
        let first = try await service.call("POST", "/v1/conversations", as: .user("ana"), body)
        #expect(first.status == 201)
        let again = try await service.call("POST", "/v1/conversations", as: .user("ana"), body)
        #expect(again.status == 200)
        #expect(again.json == first.json)
        let stolen = try await service.call("POST", "/v1/conversations", as: .user("eve"), body)
        #expect(stolen.refusal == "409 conversation.id_taken")
        #expect(try await service.conversations(of: "eve").isEmpty)
        let elsewhere = try await service.call("POST", "/v1/conversations", as: .user("eve", tenant: "other"), body)
        #expect(elsewhere.status == 201)
        try service.expectExactCounts()
    }

    /// Probing ids reveals nothing about conversations that the user may not see. Only backends may choose guessable
    /// ids, so the answer is the same for taken and free ones.
    @Test func guessableIds_areReservedForBackends() async throws {
        func create(_ id: String, as identity: TestService.Identity) async throws -> ServiceAnswer {
            try await service.call("POST", "/v1/conversations", as: identity, #"{"id":"\#(id)","memberIds":["ben"]}"#)
        }
        #expect(try await create("order-17", as: .service()).status == 201)
        let (taken, free) = (
            try await create("order-17", as: .user("eve")), try await create("order-18", as: .user("eve"))
        )
        #expect(taken.status == 422)
        #expect(taken.status == free.status)
        #expect(taken.json["errors"] == free.json["errors"])
        #expect(taken.json["errors"][0]["pointer"].string == "/id")
        for id in [
            "00000000-0000-0000-0000-000000000000", "0197b2c4-9d3e-1a51-8c2f-4b6d8e0f1a23",
            "0197b2c4-9d3e-7a51-cc2f-4b6d8e0f1a23", "0197b2c49d3e7a518c2f4b6d8e0f1a23",
            "0197b2c4-9d3e-7a51-8c2f-4b6d8e0f1a2g", "{197b2c4-9d3e-7a51-8c2f-4b6d8e0f1a23",
        ] {
            #expect(try await create(id, as: .user("eve")).status == 422, "\(id)")
        }
        #expect(try await create(UUID().uuidString, as: .user("eve")).status == 201)
    }

    @Test func pair_hasOneConversation_evenAfterLeaving() async throws {
        func begin(_ user: String, with other: String) async throws -> ServiceAnswer {
            let body = #"{"kind":"direct","memberIds":["\#(other)"]}"#
            return try await service.call("POST", "/v1/conversations", as: .user(user), body)
        }
        let first = try await begin("ana", with: "ben")
        #expect(first.status == 201)
        let id = try #require(first.json["id"].string)
        #expect(try await begin("ben", with: "ana").json["id"] == .string(id))
        _ = try await service.send("one", to: id, as: "ana")
        #expect(try await service.badges(of: "ben") == [1, 0, 0, 1])
        #expect(try await service.call("DELETE", "/v1/conversations/\(id)/members/me", as: .user("ben")).status == 200)
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        let back = try await begin("ben", with: "ana")
        #expect(back.status == 200)
        expect(back.json, has: ["id": .string(id), "unread": 0, "memberCount": 2])
        #expect(try await service.call("PUT", "/v1/conversations/\(id)/members/eve", as: .user("ana")).status == 409)
        try service.expectExactCounts()
    }

    @Test(arguments: [
        (#"{}"#, ["/memberIds"]), (#"{"memberIds":[7]}"#, ["/memberIds/0"]),
        (#"{"memberIds":["a"],"kind":"mob"}"#, ["/kind"]), (#"{"memberIds":["ana"],"kind":"direct"}"#, ["/memberIds"]),
        (#"{"memberIds":["a"],"id":"","titel":"x"}"#, ["/id", "/titel"]),
    ])
    func badConversation_isNamed(_ body: String, _ pointers: [String]) async throws {
        let answer = try await service.call("POST", "/v1/conversations", as: .user("ana"), body)
        #expect(answer.status == 422)
        #expect(answer.pointers == pointers)
    }

    @Test func title_isChangedByMembers_andDeliveredToAll() async throws {
        let id = try await service.converse("ana", "ben")
        let stream = try await service.listen(as: .user("ben"))
        let path = "/v1/conversations/\(id)"
        let renamed = try await service.call("PATCH", path, as: .user("ana"), #"{"title":"Trip"}"#)
        #expect(renamed.json["title"] == "Trip")
        #expect(try await stream.next("conversation:updated").json["conversation"]["title"] == "Trip")
        #expect(try await service.call("PATCH", path, as: .user("ben"), #"{"title":null}"#).json["title"] == .null)
        #expect(try await service.call("PATCH", path, as: .user("ben"), "{}").pointers == ["/title"])
    }

    // MARK: Messages

    /// R-CNT-RT-1, R-CNT-RECON-3: the event carries preview, order, unread and absolute counts; every answer carries
    /// counts.
    @Test func message_isDeliveredToEachMember_withTheirOwnCounts() async throws {
        let id = try await service.converse("ana", "ben", "cem")
        _ = try await service.send("zero", to: id, as: "cem")
        let ben = try await service.listen(as: .user("ben"))
        let ana = try await service.listen(as: .user("ana"))
        let sent = try await service.send("Hello\n  you", to: id, as: "ana")
        #expect(sent.status == 201)
        #expect(sent.json["message"]["sequence"] == 2)
        #expect(sent.json["unread"] == 1)
        #expect(sent.json["badges"]["messages"] == 1)

        let delivered = try await ben.next("message:created").json
        expect(
            delivered, has: ["message": sent.json["message"], "conversationId": .string(id), "preview": "Hello you"])
        expect(delivered, has: ["unread": 2])
        #expect(delivered["badges"]["messages"] == 2)
        let badges = try await ben.next("badges:update").json
        #expect(badges == delivered["badges"])
        // The sender's other devices receive the message, and it is not unread for the sender.
        let own = try await ana.next("message:created").json
        #expect(own["unread"] == 1)
        #expect(own["badges"]["messages"] == 1)

        let listed = try #require(try await service.conversations(of: "ben").first)
        #expect(listed["lastMessage"]["preview"] == "Hello you")
        expect(listed, has: ["order": delivered["order"], "unread": 2])
        try service.expectExactCounts()
    }

    @Test func messages_pageBack_andForwardFromANumber() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...7 { _ = try await service.send("m\(number)", to: id, as: number % 2 == 0 ? "ana" : "ben") }
        func sequences(_ reply: ServiceAnswer) -> [Int?] { reply.items.map { $0["sequence"].int } }
        let path = "/v1/conversations/\(id)/messages"
        let newest = try await service.call("GET", "\(path)?limit=3", as: .user("ben"))
        #expect(sequences(newest) == [7, 6, 5])
        let next = try #require(newest.json["next"].string)
        let older = try await service.call("GET", "\(path)?limit=3&cursor=\(next)", as: .user("ben"))
        #expect(sequences(older) == [4, 3, 2])
        let since = try await service.call("GET", "\(path)?since=4&limit=2", as: .user("ben"))
        #expect(sequences(since) == [5, 6])
        let rest = try #require(since.json["next"].string)
        let last = try await service.call("GET", "\(path)?since=4&limit=2&cursor=\(rest)", as: .user("ben"))
        #expect(sequences(last) == [7])
        #expect(last.json["next"] == .null)
        // A cursor is valid only for its list and its user.
        #expect(try await service.call("GET", "\(path)?cursor=\(rest)", as: .user("ben")).status == 422)
        #expect(try await service.call("GET", "\(path)?cursor=\(next)", as: .user("ana")).status == 422)
        #expect(try await service.call("GET", "\(path)?since=-1", as: .user("ana")).status == 422)
    }

    @Test func messageOfAnId_isSentOnce() async throws {
        let id = try await service.converse("ana", "ben")
        let path = "/v1/conversations/\(id)/messages"
        let body = #"{"id":"m-1","text":"once"}"#
        let first = try await service.call("POST", path, as: .user("ana"), body)
        #expect(first.status == 201)
        let again = try await service.call("POST", path, as: .user("ana"), body)
        #expect(again.status == 200)
        #expect(again.json["message"] == first.json["message"])
        #expect(try await service.call("POST", path, as: .user("ben"), body).status == 409)
        #expect(try await service.badges(of: "ben") == [1, 0, 0, 1])
        try service.expectExactCounts()
    }

    @Test(arguments: [
        (#"{}"#, "/text"), (#"{"text":"  "}"#, "/text"), (#"{"text":"a","to":"b"}"#, "/to"), (#"{"text":[]}"#, "/text"),
    ])
    func badMessage_isNamed_andTakesNoNumber(_ body: String, _ pointer: String) async throws {
        let id = try await service.converse("ana", "ben")
        let path = "/v1/conversations/\(id)/messages"
        let answer = try await service.call("POST", path, as: .user("ana"), body)
        #expect(answer.status == 422)
        #expect(answer.pointers == [pointer])
        let long = #"{"text":"\#(String(repeating: "a", count: ConversationLimits.textBytesMax + 1))"}"#
        #expect(try await service.call("POST", path, as: .user("ana"), long).status == 422)
        #expect(try await service.send("ok", to: id, as: "ana").json["message"]["sequence"] == 1)
    }

    @Test func deletedMessage_isNoLongerUnread_andKeepsItsNumber() async throws {
        let id = try await service.converse("ana", "ben", "cem")
        let sent = try await service.send("secret", to: id, as: "ana")
        let messageId = try #require(sent.json["message"]["id"].string)
        _ = try await service.read(1, of: id, as: "cem")
        let (ben, cem) = (try await service.listen(as: .user("ben")), try await service.listen(as: .user("cem")))
        let path = "/v1/conversations/\(id)/messages/\(messageId)"
        let refused = try await service.call("DELETE", path, as: .user("ben"))
        #expect(refused.refusal == "403 message.not_yours")
        #expect(try await service.call("DELETE", path, as: .user("ana")).status == 200)

        let delivered = try await ben.next("message:deleted").json
        expect(delivered, has: ["messageId": .string(messageId), "unread": 0])
        #expect(delivered["badges"]["messages"] == 0)
        // If a member had already read the message, only its text changes.
        #expect(try await cem.next("message:deleted").json["badges"] == .null)
        let listed = try await service.call("GET", "/v1/conversations/\(id)/messages", as: .user("ben")).items
        #expect(listed.map { $0["text"] } == [.string("")])
        #expect(listed.first?["deletedAt"] != .null)
        #expect(try await service.conversations(of: "ben").first?["lastMessage"]["preview"] == .null)
        // A second deletion changes nothing.
        #expect(try await service.call("DELETE", path, as: .user("ana")).status == 200)
        #expect(try await service.call("DELETE", path + "x", as: .user("ana")).status == 404)
        try service.expectExactCounts()
    }

    @Test func backend_deletesWhatOthersWrote() async throws {
        let id = try await service.converse("ana", "ben")
        let rude = try #require(try await service.send("rude", to: id, as: "ana").json["message"]["id"].string)
        #expect(try await service.badges(of: "ben") == [1, 0, 0, 1])
        #expect(
            try await service.call("DELETE", "/v1/conversations/\(id)/messages/\(rude)", as: .service()).status == 200)
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        try service.expectExactCounts()
    }

    // MARK: Read positions

    /// R-CNT-RT-2: the answer carries the counts, and all devices of the user receive them.
    @Test func readPosition_isMonotonic_andDeliveredToOwnDevices() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...5 { _ = try await service.send("m\(number)", to: id, as: "ana") }
        let device = try await service.listen(as: .user("ben"))
        let read = try await service.read(3, of: id, as: "ben")
        #expect(read.status == 200)
        expect(read.json, has: ["readPosition": 3, "unread": 2])
        #expect(read.json["badges"]["messages"] == 2)
        #expect(try await device.next("conversation:read").json == read.json)
        // A slower device reports an older position, which changes nothing.
        let late = try await service.read(2, of: id, as: "ben")
        expect(late.json, has: ["readPosition": 3, "badges": read.json["badges"]])
        // Marking messages as unread again must be requested explicitly.
        let back = try await service.read(2, rewinding: true, of: id, as: "ben")
        #expect(back.json["unread"] == 3)
        #expect(try await device.next("conversation:read").json["unread"] == 3)
        #expect(try await service.badges(of: "ben") == [3, 0, 0, 3])
        #expect(try await service.read(6, of: id, as: "ben").pointers == ["/sequence"])
        let negative = try await service.call(
            "PUT", "/v1/conversations/\(id)/read-position", as: .user("ben"), #"{"sequence":-1}"#)
        #expect(negative.status == 422)
        try service.expectExactCounts()
    }

    /// With own and deleted messages on the way, a position between them counts only the messages it has passed.
    @Test func positionsBetweenOwnAndDeletedMessages_areExact() async throws {
        let id = try await service.converse("ana", "ben")
        var ids: [String] = []
        for sender in ["ana", "ben", "ana", "ana", "ben", "ana"] {
            ids.append(try await service.send("m", to: id, as: sender).json["message"]["id"].string ?? "")
        }
        for index in [2, 4] {
            let path = "/v1/conversations/\(id)/messages/\(ids[index])"
            #expect(try await service.call("DELETE", path, as: .service()).status == 200)
        }
        for (sequence, unread) in [(2, 2), (3, 2), (1, 2), (4, 1), (5, 1), (0, 3), (6, 0), (3, 2)] {
            let reply = try await service.read(sequence, rewinding: true, of: id, as: "ben")
            #expect(reply.json["unread"] == .integer(Int64(unread)), "up to \(sequence)")
            try service.expectExactCounts()
        }
    }

    // MARK: Members

    @Test func newMember_findsNothingUnread() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...3 { _ = try await service.send("m\(number)", to: id, as: "ana") }
        let cem = try await service.listen(as: .user("cem"))
        let added = try await service.call("PUT", "/v1/conversations/\(id)/members/cem", as: .user("ben"))
        #expect(added.status == 200)
        #expect(added.json["memberCount"] == 3)
        let joined = try await cem.next("conversation:updated").json
        #expect(joined["joined"] == ["cem"])
        let seen = try await service.call("GET", "/v1/conversations/\(id)", as: .user("cem"))
        #expect(seen.json["unread"] == 0)
        #expect(try await service.call("GET", "/v1/conversations/\(id)/messages", as: .user("cem")).items.count == 3)
        // Messages from before the member joined cannot be marked unread.
        #expect(try await service.read(0, rewinding: true, of: id, as: "cem").json["unread"] == 0)
        _ = try await service.send("m4", to: id, as: "ana")
        #expect(try await cem.next("message:created").json["unread"] == 1)
        #expect(try await service.badges(of: "ben") == [4, 0, 0, 4])
        try service.expectExactCounts()
    }

    @Test func leavingMember_losesItsCounts() async throws {
        let id = try await service.converse("ana", "ben", "cem")
        let cem = try await service.listen(as: .user("cem"))
        _ = try await service.send("m1", to: id, as: "ana")
        #expect(try await service.badges(of: "cem") == [1, 0, 0, 1])
        let refused = try await service.call("DELETE", "/v1/conversations/\(id)/members/cem", as: .user("ben"))
        #expect(refused.status == 403)
        let left = try await service.call("DELETE", "/v1/conversations/\(id)/members/me", as: .user("cem"))
        #expect(left.json["badges"]["messages"] == 0)
        #expect(try await cem.next("conversation:removed").json["conversationId"] == .string(id))
        #expect(try await service.call("GET", "/v1/conversations/\(id)", as: .user("cem")).status == 404)
        #expect(try await service.call("GET", "/v1/conversations/\(id)/messages", as: .user("cem")).status == 404)
        #expect(try await service.call("DELETE", "/v1/conversations/\(id)/members/me", as: .user("cem")).status == 404)
        try service.expectExactCounts()
    }

    @Test func readdedMember_hasNothingUnread() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...4 { _ = try await service.send("m\(number)", to: id, as: "ana") }
        #expect(try await service.call("DELETE", "/v1/conversations/\(id)/members/ben", as: .service()).status == 200)
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        #expect(try await service.call("PUT", "/v1/conversations/\(id)/members/ben", as: .service()).status == 200)
        _ = try await service.send("m5", to: id, as: "ana")
        #expect(try await service.badges(of: "ben") == [1, 0, 0, 1])
        try service.expectExactCounts()
    }

    @Test func fullConversation_refusesMembers_andDeliversToAll() async throws {
        let names = (1..<ConversationLimits.membersMax).map { "\"u\($0)\"" }.joined(separator: ",")
        let made = try await service.call(
            "POST", "/v1/conversations", as: .user("ana"), #"{"memberIds":[\#(names)]}"#)
        let id = try #require(made.json["id"].string)
        #expect(made.json["memberCount"] == .integer(Int64(ConversationLimits.membersMax)))
        let more = try await service.call("PUT", "/v1/conversations/\(id)/members/eve", as: .user("u7"))
        #expect(more.refusal == "409 conversation.full")
        #expect(try await service.send("all", to: id, as: "u1").status == 201)
        #expect(try await service.badges(of: "u255") == [1, 0, 0, 1])
        try service.expectExactCounts()
    }

    @Test func abandonedConversation_isPrunedAfterItsRetention() async throws {
        let id = try await service.converse("ana", "ben")
        _ = try await service.send("bye", to: id, as: "ana")
        for member in ["ana", "ben"] {
            let path = "/v1/conversations/\(id)/members/me"
            #expect(try await service.call("DELETE", path, as: .user(member)).status == 200)
        }
        #expect(try await service.call("GET", "/v1/conversations/\(id)", as: .service()).json["memberCount"] == 0)
        try await service.run(ConversationsFeature.pruning)
        #expect(try await service.call("GET", "/v1/conversations/\(id)", as: .service()).status == 200)
        service.clock.advance(seconds: ConversationLimits.abandonedRetentionSeconds + 1)
        try await service.run(ConversationsFeature.pruning)
        #expect(try await service.call("GET", "/v1/conversations/\(id)", as: .service()).status == 404)
        try service.expectExactCounts()
    }

    // MARK: Counts

    /// The drift that `bellhop check` finds when a stored number differs from the recount.
    @Test func recount_findsEachKindOfDrift() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...3 { _ = try await service.send("m\(number)", to: id, as: "ana") }
        try service.expectExactCounts()
        let why = Unscoped.audit("a test corrupts stored rows")
        let damages: [(SQL, String)] = [
            (
                "UPDATE \(ConversationsFeature.members, unscoped: why) SET excluded = 1 WHERE user_id = 'ben'",
                "unread in"
            ),
            ("UPDATE \(BadgeLedger.badges, unscoped: why) SET messages = 7", "the stored number of messages is 7"),
            ("DELETE FROM \(ConversationsFeature.messages, unscoped: why) WHERE sequence = 2", "last number"),
            ("UPDATE \(ConversationsFeature.conversations, unscoped: why) SET member_count = 9", "members are counted"),
        ]
        for (damage, finding) in damages {
            let store = service.app.store
            let found = try await store.write { db in
                struct Undone: Error { let found: [String] }
                do {
                    try db.savepoint {
                        try db.run(damage)
                        throw Undone(found: try ConversationsFeature.audit.run(db))
                    }
                } catch let undone as Undone {
                    return undone.found
                }
                return []
            }
            #expect(found.contains { $0.contains(finding) }, "\(damage.text): \(found)")
        }
        try service.expectExactCounts()
    }

    /// R-CNT-COUNTS-3: the parts add up to the badge, in one answer with one version.
    @Test func badges_nameTheConversationsTheyComeFrom() async throws {
        let (one, two) = (try await service.converse("ana", "ben"), try await service.converse("cem", "ben"))
        _ = try await service.converse("dan", "ben")
        for number in 1...3 { _ = try await service.send("m\(number)", to: one, as: "ana") }
        _ = try await service.send("m", to: two, as: "cem")
        let client = service.client(as: .user("ben"))
        let answer = try await client.send("GET", "/v1/badges?include=conversations")
        let json = answer.json
        let expected = [(one, 3), (two, 1)].sorted { $0.0 < $1.0 }.map { id, unread in
            JSON.object(["conversationId": .string(id), "unread": .integer(Int64(unread))])
        }
        expect(json, has: ["conversations": .array(expected), "messages": 4])
        let tag = try #require(answer.headers["etag"])
        let poll = try await client.send("GET", "/v1/badges?include=conversations", headers: ["If-None-Match": tag])
        #expect(poll.status == 304)
        _ = try await service.read(1, of: one, as: "ben")
        let changed = try await client.send("GET", "/v1/badges?include=conversations", headers: ["If-None-Match": tag])
        #expect(changed.status == 200)
    }
}

extension TestService {
    /// Creates a conversation of the named users; the first one creates it.
    func converse(_ first: String, _ others: String...) async throws -> String {
        let names = others.map { "\"\($0)\"" }.joined(separator: ",")
        let made = try await call("POST", "/v1/conversations", as: .user(first), #"{"memberIds":[\#(names)]}"#)
        return try #require(made.json["id"].string)
    }

    func send(_ text: String, to conversation: String, as user: String) async throws -> ServiceAnswer {
        let body = JSONWriter.object { $0.member("text", text) }
        return try await call(
            "POST", "/v1/conversations/\(conversation)/messages", as: .user(user), String(decoding: body, as: UTF8.self)
        )
    }

    func read(
        _ sequence: Int, rewinding: Bool = false, of conversation: String, as user: String
    ) async throws -> ServiceAnswer {
        try await call(
            "PUT", "/v1/conversations/\(conversation)/read-position", as: .user(user),
            #"{"sequence":\#(sequence)\#(rewinding ? #","allowRewind":true"# : "")}"#)
    }

    func conversations(of user: String) async throws -> [JSON] {
        try await call("GET", "/v1/conversations", as: .user(user)).items
    }
}
