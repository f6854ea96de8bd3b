import BellhopClient
import CAllocations
import Database
import Foundation
import Rows
import TestSupport
import Testing
import Values
import Visibility

@testable import Service

/// The rules of contacts over time, with repetitions, and on two replicas.
@Suite(.timed) struct ContactsTests {
    private static let friends =
        "{conversations: {any: ['friend-of:{user}'], not: ['blocked-by:{user}', 'blocks:{user}']}}"

    /// Threat: ben blocks ann after they have written to each other. From the answer to the row on, neither writes to the
    /// other, and nothing tells ben of the attempts. The numbers of the messages have no gap.
    @Test func laterBlock_endsADirectConversation_untilItIsRemoved() async throws {
        let town = try ContactTown(Self.friends)
        try await town.add("friends", "ann", "ben")
        try await town.add("friends", "ben", "ann")
        let id = try await town.service.client("ann").createConversation(.init(kind: .direct, memberIds: ["ben"])).value
            .id
        #expect(try await town.say("one", in: id, as: "ann").status == 201)
        try await town.add("blocks", "ben", "ann")
        for user in ["ann", "ben"] {
            let answer = try await town.service.expectEvents([:]) { try await town.say("two", in: id, as: user) }
            #expect(answer.refusal == "403 contact.refused")
        }
        #expect(try await town.service.badges(of: "ben") == [1, 0, 0, 1])
        // Both keep the conversation: they may read it, delete their messages and leave.
        #expect(try await town.service.client("ann").listMessages(id: id).value.items.count == 1)
        #expect(try await town.service.client("ann").getConversation(id: id).status == 200)
        try await town.remove("blocks", "ben", "ann")
        let sent = try await town.say("three", in: id, as: "ann")
        #expect(sent.json["message"]["sequence"].int == 2, "\(sent.text)")
        try town.service.expectExactCounts()
    }

    /// A user who has left a direct conversation is not put back into it by someone who may not contact the user.
    @Test func blockedCaller_doesNotBringAUserBack() async throws {
        let town = try ContactTown("{conversations: {any: [everyone], not: ['blocked-by:{user}']}}")
        let id = try await town.direct("ann", "ben")
        #expect(try await town.service.client("ben").removeMember(id: id, userId: "me").status == 200)
        try await town.add("blocks", "ben", "ann")
        let body: JSON = ["kind": "direct", "memberIds": ["ben"]]
        let refused = try await town.service.call("POST", "/v1/conversations", as: .user("ann"), body)
        #expect(refused.refusal == "403 contact.refused")
        #expect(try await town.say("still here?", in: id, as: "ann").refusal == "403 contact.refused")
        #expect(try await town.service.client("ben").listConversations().value.items.isEmpty)
        // The rule names one direction alone.
        let again = try await town.service.client("ben").createConversation(.init(kind: .direct, memberIds: ["ann"]))
        #expect(again.value.id == id)
    }

    /// What was done before a block is answered as before, because a client repeats requests whose answers were lost.
    @Test func repeatedRequests_areAnsweredAsBefore() async throws {
        let town = try ContactTown("{conversations: {any: [everyone], not: ['blocked-by:{user}']}}")
        let id = try await town.direct("ann", "ben")
        let key = ["Idempotency-Key": "k1"]
        let message: JSON = ["id": "m1", "text": "Hi"]
        let path = "/v1/conversations/\(id)/messages"
        let first = try await town.service.call("POST", path, as: .user("ann"), message, headers: key)
        #expect(first.status == 201)
        let group: JSON = ["id": "1b671a64-40d5-491e-99b0-da01ff1f3341", "memberIds": ["ben"]]
        #expect(try await town.service.call("POST", "/v1/conversations", as: .user("ann"), group).status == 201)
        try await town.add("blocks", "ben", "ann")
        let repeated = try await town.service.call("POST", path, as: .user("ann"), message, headers: key)
        #expect(repeated.status == 201)
        #expect(repeated.json == first.json)
        #expect(try await town.service.call("POST", path, as: .user("ann"), message).status == 200)
        #expect(try await town.service.call("POST", "/v1/conversations", as: .user("ann"), group).status == 200)
        // A refusal is stored too, and is no longer true once the block is removed.
        let other = ["Idempotency-Key": "k2"]
        #expect(try await town.say("Hi", in: id, as: "ann", other).status == 403)
        try await town.remove("blocks", "ben", "ann")
        #expect(try await town.say("Hi", in: id, as: "ann", other).status == 403)
        #expect(try await town.say("Hi", in: id, as: "ann").status == 201)
    }

    @Test func eachKind_hasItsOwnRule() async throws {
        func statuses(_ contacts: String) async throws -> [Int] {
            let town = try ContactTown(contacts)
            let calls: [(String, String, JSON?)] = [
                ("POST", "/v1/conversations", ["memberIds": ["ben"]]),
                ("POST", "/v1/requests", ["kind": "friend", "toUserId": "ben"]),
                ("PUT", "/v1/users/ben/followers/me", nil),
            ]
            var statuses: [Int] = []
            for (method, path, body) in calls {
                statuses.append(try await town.service.call(method, path, as: .user("ann"), body).status)
            }
            return statuses
        }
        #expect(try await statuses("{conversations: []}") == [403, 201, 201])
        #expect(try await statuses("{requests: []}") == [201, 403, 201])
        #expect(try await statuses("{follows: []}") == [201, 201, 403])
    }

    /// One member whom the caller may not contact refuses a group as a whole.
    @Test func group_needsEachMember() async throws {
        let town = try ContactTown(Self.friends)
        try await town.add("friends", "ann", "ben")
        for members: JSON in [["ben", "cid"], ["cid", "ben"]] {
            let answer = try await town.service.call(
                "POST", "/v1/conversations", as: .user("ann"), ["memberIds": members])
            #expect(answer.refusal == "403 contact.refused")
        }
        let group = try await town.service.client("ann").createConversation(.init(memberIds: ["ben"]))
        // The member who adds another is asked, not the creator.
        let byBen = "/v1/conversations/\(group.value.id)/members/cid"
        #expect(try await town.service.call("PUT", byBen, as: .user("ben")).refusal == "403 contact.refused")
        try await town.add("friends", "ben", "cid")
        #expect(try await town.service.call("PUT", byBen, as: .user("ben")).status == 200)
    }

    /// A block that one replica has taken in refuses on the other as of the block's event, before any later event.
    @Test func blockOnOneReplica_refusesOnTheOther() async throws {
        let (a, b) = try TestService.startReplicas(ContactTown.settings(Self.friends))
        let town = ContactTown(a)
        for (user, friend) in [("ann", "ben"), ("ben", "ann")] { try await town.add("friends", user, friend) }
        let id = try await town.direct("ann", "ben")
        let other = ContactTown(b)
        let streams = [try await a.listen(as: .user("ann")), try await b.listen(as: .user("ann"))]
        // An event after those of the rows, which both replicas have published then.
        func pass(_ name: String) async throws {
            try await a.publish(name, to: "ann")
            for stream in streams { try await stream.next("notification:created") }
        }
        for round in 1...5 {
            #expect(try await other.say("\(round)", in: id, as: "ann").status == 201)
            try await town.add("blocks", "ben", "ann")
            try await pass("blocked-\(round)")
            #expect(try await town.say("no", in: id, as: "ann").status == 403)
            #expect(try await other.say("no", in: id, as: "ann").status == 403)
            try await town.remove("blocks", "ben", "ann")
            try await pass("removed-\(round)")
        }
    }

    /// Threat: a stranger measures how long a refusal takes, and learns whether the user is busy at the moment. A refusal
    /// waits for no lock of the user.
    @Test func refusal_waitsForNothingOfTheUser() async throws {
        let (a, b) = try TestService.startReplicas(
            ContactTown.settings("{conversations: [], requests: [], follows: []}"))
        let keys = [LockKey.user("ben"), LockKey.author("ben")].map { $0.name(in: "default") }
        let (held, released) = (Gate(), Gate())
        try a.app.store.write { db in
            try db.lock(keys)
            // Locks are acquired with the next statement.
            _ = try db.exists("SELECT 1")
            held.open()
            released.wait()
        } completion: { _ in
        }
        held.wait()
        defer { released.open() }
        let calls: [(String, String, JSON?)] = [
            ("POST", "/v1/conversations", ["memberIds": ["ben"]]),
            ("POST", "/v1/requests", ["kind": "friend", "toUserId": "ben"]),
            ("PUT", "/v1/users/ben/followers/me", nil),
        ]
        for (method, path, body) in calls {
            #expect(try await b.call(method, path, as: .user("ann"), body).refusal == "403 contact.refused")
        }
    }

    /// Threat: ann looks for a sign that ben has blocked her. Neither her scope nor her stream shows one.
    @Test func blockedUser_isNotTold() async throws {
        let town = try ContactTown(Self.friends)
        let before = try await town.service.client("ann").getMe().value.scope
        let stream = try await town.service.listen(as: .user("ann"))
        try await town.add("blocks", "ben", "ann")
        try await town.add("friends", "ann", "cid")
        #expect(try await stream.next("stream:scope").json["scope"].array?.contains("blocked-by:ben") == false)
        #expect(stream.received.map(\.name).filter { $0 != "stream:ready" } == ["stream:scope"])
        #expect(try await town.service.client("ann").getMe().value.scope == (before + ["friend-of:cid"]).sorted())
        #expect(try await town.service.client("ben").getMe().value.scope == ["everyone", "user:ben"])
    }

    /// A write may wait in the queue while memberships change. The keys of now count, not those of its arrival.
    @Test func contact_isDecidedByTheKeysOfNow() async throws {
        let town = try ContactTown(Self.friends)
        let registry = MembershipRegistry(town.service.app.runner.settings.tables)
        func reload() throws { try town.service.app.store.read { try registry.reload(in: $0) } }
        let arrived = registry.scoped(
            Caller(
                tenant: "default", userId: "ann", role: "user", isService: false,
                scope: Scope(tenant: "default", keys: ["user:ann", "everyone"])))
        func isAllowed() -> Bool { registry.allows(.conversations, from: arrived, to: ["ben"]) }
        #expect(!isAllowed())
        try await town.add("friends", "ann", "ben")
        try reload()
        #expect(isAllowed())
        try await town.add("blocks", "ben", "ann")
        try reload()
        #expect(!isAllowed())
    }

    /// The list of templates that a rule may name has those of tokens.
    @Test func keysOfTokens_areListed() throws {
        let settings = try TestService.settings(["jwtSecret": TestService.secret])
        let claims = Claims(settings: settings, rules: try #require(settings.issuers.first))
        var shapes: Set<String> = []
        for role in ["student", "teacher", "staff", "admin", "service_role"] {
            let metadata: JSONValue = .object([
                "user_role": .string(role), "student_id": .string("x"), "class_ids": .array([.string("x")]),
                "child_ids": .array([.string("x")]), "shop_ids": .array([.string("x")]),
            ])
            let payload = JSONValue.object([
                "sub": .string("x"), "exp": .integer(2_000_000_000), "app_metadata": metadata,
            ])
            let caller = try claims.caller(
                of: payload, signedBy: .issuer, at: Timestamp(microseconds: 1_999_999_000_000_000))
            shapes.formUnion(caller.scope.keys.map { $0.replacingOccurrences(of: ":x", with: ":{}") })
        }
        #expect(shapes.filter { $0.contains("{}") } == Set(Claims.templates.map(\.shape)))
    }

    /// A message must not cost more for a caller with many memberships.
    @Test func question_costsFewAllocations_forACallerWithManyKeys() throws {
        let tables = try TestService.settings(
            ContactTown.settings(Self.friends, ["jwtSecret": TestService.secret])
        ).tables
        let registry = MembershipRegistry(tables)
        func allocations(_ user: ID<User>, _ isAllowed: Bool) -> Int {
            let keys = Set((1...5_000).map { "friend-of:u\($0)" } + ["user:ann", "everyone"])
            let caller = registry.scoped(
                Caller(
                    tenant: "default", userId: "ann", role: "user", isService: false,
                    scope: Scope(tenant: "default", keys: keys)))
            let before = callocations_count()
            let answer = registry.allows(.conversations, from: caller, to: [user])
            let allocations = Int(callocations_count() - before)
            #expect(answer == isAllowed)
            return allocations
        }
        for (user, isAllowed): (ID<User>, Bool) in [("u1", true), ("stranger", false)] {
            #expect(allocations(user, isAllowed) < 60)
        }
    }
}
