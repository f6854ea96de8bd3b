import BellhopClient
import Database
import Domain
import Foundation
import TestSupport
import Testing

@testable import Service

/// Conversations over real HTTP: visibility, unread counts, and delivery.
@Suite(.timed) struct ConversationsTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    // MARK: Creation

    @Test func conversation_isVisibleToItsMembers_andTheTenantsBackend() async throws {
        let made = try await service.client("ana").createConversation(.init(memberIds: ["ben"], title: "Trip"))
        #expect(made.status == 201)
        let id = made.value.id
        #expect(made.value.kind == .group && made.value.members == ["ana", "ben"] && made.value.memberCount == 2)
        #expect(made.value.unread == 0)
        #expect(made.value.lastMessage == nil)

        for member in ["ana", "ben"] {
            #expect(try await service.client(member).getConversation(id: id).value == made.value, "\(member)")
            #expect(try await service.conversations(of: member).count == 1)
        }
        // A backend of the tenant can see the conversation without being a member.
        let backend = try await service.client(as: .service()).getConversation(id: id)
        #expect(backend.value.memberCount == 2 && backend.value.unread == nil)
        try service.expectExactCounts()
    }

    @Test func outsiders_findNoConversation_andChangeNone() async throws {
        let id = try await service.converse("ana", "ben")
        try await service.send("hello", to: id, as: "ana")
        let outsiders: [TestService.Identity] = [
            .user("eve"), .user("ben", tenant: "other"), .service(tenant: "other"),
        ]
        for outsider in outsiders.map({ service.client(as: $0) }) {
            #expect(try await status(of: await outsider.getConversation(id: id)) == 404)
            #expect(try await status(of: await outsider.listMessages(id: id)) == 404)
            #expect(try await outsider.listConversations().value.items.isEmpty)
            #expect(
                try await status(of: await outsider.sendMessage(id: id, .init(text: "let me in"))) == 404)
            #expect(
                try await status(of: await outsider.readConversation(id: id, .init(sequence: 1))) == 404)
            #expect(try await status(of: await outsider.addMember(id: id, userId: "me")) == 404)
            #expect(try await status(of: await outsider.removeMember(id: id, userId: "ben")) == 404)
            #expect(
                try await status(of: await outsider.changeConversation(id: id, .init(title: "x")))
                    == 404)
        }
        try service.expectExactCounts()
    }

    @Test func sameId_isTheSameConversation_unlessItIsSomebodyElses() async throws {
        let body = Bellhop.CreateConversationBody(id: "0197b2c4-9d3e-7a51-8c2f-4b6d8e0f1a23", memberIds: ["ben"])
        let first = try await service.client("ana").createConversation(body)
        #expect(first.status == 201)
        let again = try await service.client("ana").createConversation(body)
        #expect(again.status == 200)
        #expect(again.value == first.value)
        let stolen = try await problem(of: await service.client("eve").createConversation(body))
        #expect(stolen.refusal == "409 conversation.id_taken")
        #expect(try await service.conversations(of: "eve").isEmpty)
        let elsewhere = try await service.client(as: .user("eve", tenant: "other")).createConversation(body)
        #expect(elsewhere.status == 201)
        try service.expectExactCounts()
    }

    /// Probing ids reveals nothing about conversations that the user may not see. Only backends may choose guessable
    /// ids, so the answer is the same for taken and free ones.
    @Test func guessableIds_areReservedForBackends() async throws {
        let eve = service.client("eve")
        func body(_ id: String) -> Bellhop.CreateConversationBody { .init(id: id, memberIds: ["ben"]) }
        #expect(try await service.client(as: .service()).createConversation(body("order-17")).status == 201)
        let taken = try await problem(of: await eve.createConversation(body("order-17")))
        let free = try await problem(of: await eve.createConversation(body("order-18")))
        #expect(taken.status == 422 && free.status == 422)
        #expect(taken.errors == free.errors)
        #expect(taken.pointers == ["/id"])
        for id in [
            "00000000-0000-0000-0000-000000000000", "0197b2c4-9d3e-1a51-8c2f-4b6d8e0f1a23",
            "0197b2c4-9d3e-7a51-cc2f-4b6d8e0f1a23", "0197b2c49d3e7a518c2f4b6d8e0f1a23",
            "0197b2c4-9d3e-7a51-8c2f-4b6d8e0f1a2g", "{197b2c4-9d3e-7a51-8c2f-4b6d8e0f1a23",
        ] {
            #expect(try await status(of: await eve.createConversation(body(id))) == 422, "\(id)")
        }
        #expect(try await eve.createConversation(body(UUID().uuidString)).status == 201)
    }

    @Test func pair_hasOneConversation_evenAfterLeaving() async throws {
        func begin(
            _ user: String, with other: String
        ) async throws -> Bellhop.Answer<Bellhop.ConversationWithMembers> {
            try await service.client(user).createConversation(.init(kind: .direct, memberIds: [other]))
        }
        let first = try await begin("ana", with: "ben")
        #expect(first.status == 201)
        let id = first.value.id
        #expect(try await begin("ben", with: "ana").value.id == id)
        try await service.send("one", to: id, as: "ana")
        #expect(try await service.badges(of: "ben") == [1, 0, 0, 1])
        #expect(try await service.client("ben").removeMember(id: id, userId: "me").status == 200)
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        let back = try await begin("ben", with: "ana")
        #expect(back.status == 200)
        #expect(back.value.id == id && back.value.unread == 0 && back.value.memberCount == 2)
        #expect(try await status(of: await service.client("ana").addMember(id: id, userId: "eve")) == 409)
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
        let renamed = try await service.client("ana").changeConversation(id: id, .init(title: "Trip"))
        #expect(renamed.value.title == "Trip")
        #expect(try await stream.next("conversation:updated").json["conversation"]["title"] == "Trip")
        #expect(try await service.client("ben").changeConversation(id: id, .init(title: nil)).value.title == nil)
        let nothing = try await service.call("PATCH", "/v1/conversations/\(id)", as: .user("ben"), "{}")
        #expect(nothing.pointers == ["/title"])
    }

    // MARK: Messages

    /// R-CNT-RT-1, R-CNT-RECON-3: the event carries preview, order, unread and absolute counts; every answer carries
    /// counts.
    @Test func message_isDeliveredToEachMember_withTheirOwnCounts() async throws {
        let id = try await service.converse("ana", "ben", "cem")
        try await service.send("zero", to: id, as: "cem")
        let ben = try await service.listen(as: .user("ben"))
        let ana = try await service.listen(as: .user("ana"))
        let sent = try await service.call(
            "POST", "/v1/conversations/\(id)/messages", as: .user("ana"), ["text": "Hello\n  you"])
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
        #expect(listed.lastMessage?.preview == "Hello you")
        #expect(listed.order == delivered["order"].string && listed.unread == 2)
        try service.expectExactCounts()
    }

    @Test func messages_pageBack_andForwardFromANumber() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...7 { try await service.send("m\(number)", to: id, as: number % 2 == 0 ? "ana" : "ben") }
        let (ana, ben) = (service.client("ana"), service.client("ben"))
        let newest = try await ben.listMessages(id: id, limit: 3).value
        #expect(newest.items.map(\.sequence) == [7, 6, 5])
        let older = try await ben.listMessages(id: id, limit: 3, cursor: newest.next).value
        #expect(older.items.map(\.sequence) == [4, 3, 2])
        let since = try await ben.listMessages(id: id, since: 4, limit: 2).value
        #expect(since.items.map(\.sequence) == [5, 6])
        let (next, rest) = (try #require(newest.next), try #require(since.next))
        let last = try await ben.listMessages(id: id, since: 4, limit: 2, cursor: rest).value
        #expect(last.items.map(\.sequence) == [7])
        #expect(last.next == nil)
        // A cursor is valid only for its list and its user.
        #expect(try await status(of: await ben.listMessages(id: id, cursor: rest)) == 422)
        #expect(try await status(of: await ana.listMessages(id: id, cursor: next)) == 422)
        #expect(try await status(of: await ana.listMessages(id: id, since: -1)) == 422)
    }

    @Test func messageOfAnId_isSentOnce() async throws {
        let id = try await service.converse("ana", "ben")
        let body = Bellhop.SendMessageBody(id: "m-1", text: "once")
        let first = try await service.client("ana").sendMessage(id: id, body)
        #expect(first.status == 201)
        let again = try await service.client("ana").sendMessage(id: id, body)
        #expect(again.status == 200)
        #expect(again.value.message == first.value.message)
        #expect(try await status(of: await service.client("ben").sendMessage(id: id, body)) == 409)
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
        #expect(try await service.send("ok", to: id, as: "ana").value.message.sequence == 1)
    }

    @Test func deletedMessage_isNoLongerUnread_andKeepsItsNumber() async throws {
        let id = try await service.converse("ana", "ben", "cem")
        let sent = try await service.send("secret", to: id, as: "ana")
        let messageId = sent.value.message.id
        try await service.read(1, of: id, as: "cem")
        let (ben, cem) = (try await service.listen(as: .user("ben")), try await service.listen(as: .user("cem")))
        let refused = try await problem(of: await service.client("ben").deleteMessage(id: id, messageId: messageId))
        #expect(refused.refusal == "403 message.not_yours")
        #expect(try await service.client("ana").deleteMessage(id: id, messageId: messageId).status == 200)

        let delivered = try await ben.next("message:deleted").json
        expect(delivered, has: ["messageId": .string(messageId), "unread": 0])
        #expect(delivered["badges"]["messages"] == 0)
        // If a member had already read the message, only its text changes.
        #expect(try await cem.next("message:deleted").json["badges"] == .null)
        let listed = try await service.client("ben").listMessages(id: id).value.items
        #expect(listed.map(\.text) == [""])
        #expect(listed.first?.deletedAt != nil)
        let conversation = try #require(try await service.conversations(of: "ben").first)
        #expect(conversation.lastMessage != nil && conversation.lastMessage?.preview == nil)
        // A second deletion changes nothing.
        #expect(try await service.client("ana").deleteMessage(id: id, messageId: messageId).status == 200)
        #expect(
            try await status(of: await service.client("ana").deleteMessage(id: id, messageId: "\(messageId)x")) == 404)
        try service.expectExactCounts()
    }

    @Test func backend_deletesWhatOthersWrote() async throws {
        let id = try await service.converse("ana", "ben")
        let rude = try await service.send("rude", to: id, as: "ana").value.message.id
        #expect(try await service.badges(of: "ben") == [1, 0, 0, 1])
        #expect(
            try await service.client(as: .service()).deleteMessage(id: id, messageId: rude).status == 200)
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        try service.expectExactCounts()
    }

    // MARK: Read positions

    /// R-CNT-RT-2: the answer carries the counts, and all devices of the user receive them.
    @Test func readPosition_isMonotonic_andDeliveredToOwnDevices() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...5 { try await service.send("m\(number)", to: id, as: "ana") }
        let device = try await service.listen(as: .user("ben"))
        let path = "/v1/conversations/\(id)/read-position"
        let read = try await service.call("PUT", path, as: .user("ben"), ["sequence": 3])
        #expect(read.status == 200)
        expect(read.json, has: ["readPosition": 3, "unread": 2])
        #expect(read.json["badges"]["messages"] == 2)
        #expect(try await device.next("conversation:read").json == read.json)
        // A slower device reports an older position, which changes nothing.
        let late = try await service.call("PUT", path, as: .user("ben"), ["sequence": 2])
        expect(late.json, has: ["readPosition": 3, "badges": read.json["badges"]])
        // Marking messages as unread again must be requested explicitly.
        let back = try await service.read(2, rewinding: true, of: id, as: "ben")
        #expect(back.value.unread == 3)
        #expect(try await device.next("conversation:read").json["unread"] == 3)
        #expect(try await service.badges(of: "ben") == [3, 0, 0, 3])
        #expect(try await problem(of: await service.read(6, of: id, as: "ben")).pointers == ["/sequence"])
        let negative = try await problem(of: await service.client("ben").readConversation(id: id, .init(sequence: -1)))
        #expect(negative.status == 422)
        try service.expectExactCounts()
    }

    /// With own and deleted messages on the way, a position between them counts only the messages it has passed.
    @Test func positionsBetweenOwnAndDeletedMessages_areExact() async throws {
        let id = try await service.converse("ana", "ben")
        var ids: [String] = []
        for sender in ["ana", "ben", "ana", "ana", "ben", "ana"] {
            ids.append(try await service.send("m", to: id, as: sender).value.message.id)
        }
        for index in [2, 4] {
            #expect(try await service.client(as: .service()).deleteMessage(id: id, messageId: ids[index]).status == 200)
        }
        for (sequence, unread) in [(2, 2), (3, 2), (1, 2), (4, 1), (5, 1), (0, 3), (6, 0), (3, 2)] {
            let read = try await service.read(sequence, rewinding: true, of: id, as: "ben").value
            #expect(read.unread == unread, "up to \(sequence)")
            try service.expectExactCounts()
        }
    }

    // MARK: Members

    @Test func newMember_findsNothingUnread() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...3 { try await service.send("m\(number)", to: id, as: "ana") }
        let cem = try await service.listen(as: .user("cem"))
        let added = try await service.client("ben").addMember(id: id, userId: "cem")
        #expect(added.status == 200)
        #expect(added.value.memberCount == 3)
        let joined = try await cem.next("conversation:updated").json
        #expect(joined["joined"] == ["cem"])
        let seen = try await service.client("cem").getConversation(id: id)
        #expect(seen.value.unread == 0)
        #expect(try await service.client("cem").listMessages(id: id).value.items.count == 3)
        // Messages from before the member joined cannot be marked unread.
        #expect(try await service.read(0, rewinding: true, of: id, as: "cem").value.unread == 0)
        try await service.send("m4", to: id, as: "ana")
        #expect(try await cem.next("message:created").json["unread"] == 1)
        #expect(try await service.badges(of: "ben") == [4, 0, 0, 4])
        try service.expectExactCounts()
    }

    @Test func leavingMember_losesItsCounts() async throws {
        let id = try await service.converse("ana", "ben", "cem")
        let cem = try await service.listen(as: .user("cem"))
        try await service.send("m1", to: id, as: "ana")
        #expect(try await service.badges(of: "cem") == [1, 0, 0, 1])
        let refused = try await problem(of: await service.client("ben").removeMember(id: id, userId: "cem"))
        #expect(refused.status == 403)
        let left = try await service.client("cem").removeMember(id: id, userId: "me")
        #expect(left.value.badges.messages == 0)
        #expect(try await cem.next("conversation:removed").json["conversationId"] == .string(id))
        #expect(try await status(of: await service.client("cem").getConversation(id: id)) == 404)
        #expect(try await status(of: await service.client("cem").listMessages(id: id)) == 404)
        #expect(try await status(of: await service.client("cem").removeMember(id: id, userId: "me")) == 404)
        try service.expectExactCounts()
    }

    @Test func readdedMember_hasNothingUnread() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...4 { try await service.send("m\(number)", to: id, as: "ana") }
        #expect(try await service.client(as: .service()).removeMember(id: id, userId: "ben").status == 200)
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        #expect(try await service.client(as: .service()).addMember(id: id, userId: "ben").status == 200)
        try await service.send("m5", to: id, as: "ana")
        #expect(try await service.badges(of: "ben") == [1, 0, 0, 1])
        try service.expectExactCounts()
    }

    @Test func fullConversation_refusesMembers_andDeliversToAll() async throws {
        let names = (1..<ConversationLimits.membersMax).map { "u\($0)" }
        let made = try await service.client("ana").createConversation(.init(memberIds: names)).value
        let id = made.id
        #expect(made.memberCount == ConversationLimits.membersMax)
        let more = try await problem(of: await service.client("u7").addMember(id: id, userId: "eve"))
        #expect(more.refusal == "409 conversation.full")
        #expect(try await service.send("all", to: id, as: "u1").status == 201)
        #expect(try await service.badges(of: "u255") == [1, 0, 0, 1])
        try service.expectExactCounts()
    }

    @Test func abandonedConversation_isPrunedAfterItsRetention() async throws {
        let id = try await service.converse("ana", "ben")
        try await service.send("bye", to: id, as: "ana")
        for member in ["ana", "ben"] {
            #expect(try await service.client(member).removeMember(id: id, userId: "me").status == 200)
        }
        #expect(try await service.client(as: .service()).getConversation(id: id).value.memberCount == 0)
        try await service.run(ConversationsFeature.pruning)
        #expect(try await service.client(as: .service()).getConversation(id: id).status == 200)
        service.clock.advance(seconds: ConversationLimits.abandonedRetentionSeconds + 1)
        try await service.run(ConversationsFeature.pruning)
        #expect(try await status(of: await service.client(as: .service()).getConversation(id: id)) == 404)
        try service.expectExactCounts()
    }

    // MARK: Counts

    /// The drift that `bellhop check` finds when a stored number differs from the recount.
    @Test func recount_findsEachKindOfDrift() async throws {
        let id = try await service.converse("ana", "ben")
        for number in 1...3 { try await service.send("m\(number)", to: id, as: "ana") }
        try service.expectExactCounts()
        let why = Unscoped.audit("a test corrupts stored rows")
        let damages: [(SQL, String)] = [
            (
                "UPDATE \(ConversationsFeature.members, unscoped: why) SET excluded = 1 WHERE user_id = 'ben'",
                "unread in"
            ),
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
        for number in 1...3 { try await service.send("m\(number)", to: one, as: "ana") }
        try await service.send("m", to: two, as: "cem")
        let ben = service.client("ben")
        let answer = try await ben.getBadges(include: .conversations)
        let parts = try #require(answer.value.conversations)
        let expected = [(one, 3), (two, 1)].sorted { $0.0 < $1.0 }
        #expect(parts.map(\.conversationId) == expected.map(\.0) && parts.map(\.unread) == expected.map(\.1))
        #expect(answer.value.messages == 4)
        let tag = try #require(answer.etag)
        #expect(try await ben.getBadges(include: .conversations, ifNoneMatch: tag) == nil)
        try await service.read(1, of: one, as: "ben")
        #expect(try await ben.getBadges(include: .conversations, ifNoneMatch: tag) != nil)
    }
}

extension TestService {
    /// Creates a conversation of the named users; the first one creates it.
    func converse(_ first: String, _ others: String...) async throws -> String {
        try await client(first).createConversation(.init(memberIds: others)).value.id
    }

    @discardableResult
    func send(
        _ text: String, to conversation: String, as user: String
    ) async throws -> Bellhop.Answer<Bellhop.SentMessage> {
        try await client(user).sendMessage(id: conversation, .init(text: text))
    }

    @discardableResult
    func read(
        _ sequence: Int, rewinding: Bool = false, of conversation: String, as user: String
    ) async throws -> Bellhop.Answer<Bellhop.ReadPosition> {
        let position = Bellhop.ReadConversationBody(sequence: sequence, allowRewind: rewinding ? true : nil)
        return try await client(user).readConversation(id: conversation, position)
    }

    func conversations(of user: String) async throws -> [Bellhop.Conversation] {
        try await client(user).listConversations().value.items
    }
}
