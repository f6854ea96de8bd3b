import BellhopClient
import Database
import Domain
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Posts, likes, followers and feeds over real HTTP and streams.
@Suite(.timed) struct PostsTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    // MARK: Visibility

    /// R-ENG-E-6: public posts are visible to all users of the tenant, others to followers.
    @Test func post_isVisibleToItsAudience() async throws {
        let open = try #require(try await service.post("bob", "open")["id"].string)
        let closed = try #require(try await service.post("bob", "closed", "followers")["id"].string)
        try await service.follow("bob", as: "fay")
        let readers: [(TestService.Identity, Int, Int)] = [
            (.user("bob"), 200, 200), (.user("fay"), 200, 200), (.user("eve"), 200, 404), (.service(), 200, 200),
            (.admin, 200, 200), (.user("fay", tenant: "other"), 404, 404), (.service(tenant: "other"), 404, 404),
        ]
        for (identity, publicly, privately) in readers {
            let client = service.client(as: identity)
            #expect(try await client.get("/v1/posts/\(open)").status == publicly, "\(identity)")
            #expect(try await client.get("/v1/posts/\(closed)").status == privately, "\(identity)")
            let listed = try await client.get("/v1/posts?authorId=bob").json["items"].array?.compactMap {
                $0["text"].string
            }
            #expect(listed == ["closed", "open"].filter { $0 == "open" ? publicly == 200 : privately == 200 })
            let all = try await client.get("/v1/posts").json["items"].array?.compactMap { $0["text"].string }
            #expect(all == (publicly == 200 ? ["open"] : []))
            #expect(try await client.put("/v1/posts/\(closed)/likes/me").status == privately)
            #expect(try await client.delete("/v1/posts/\(closed)/likes/me").status == privately)
            if privately == 404 { #expect(try await client.delete("/v1/posts/\(closed)").status == 404) }
        }
        try await service.unfollow("bob", as: "fay")
        #expect(try await service.client("fay").get("/v1/posts/\(closed)").status == 404)
        #expect(try await service.feed("fay")["items"].array == [])
        try service.expectExactCounts()
    }

    @Test(arguments: [
        (#"{}"#, ["/text"]), (#"{"text":"a","visibility":"all","tags":[]}"#, ["/visibility", "/tags"]),
        (#"{"media":["no good"]}"#, ["/media/0"]),
    ])
    func badPost_isNamed(_ body: String, _ pointers: [String]) async throws {
        let answer = try await service.call("POST", "/v1/posts", as: .user("bob"), body)
        #expect(answer.status == 422)
        #expect(answer.pointers == pointers)
    }

    @Test func posts_andFollows_cannotBeWrittenForOthers() async throws {
        let id = try #require(try await service.post("bob")["id"].string)
        #expect(try await service.client("eve").post("/v1/posts", ["text": "x", "authorId": "bob"]).status == 403)
        let refused = try await service.client("eve").delete("/v1/posts/\(id)")
        #expect(refused.refusal == "403 post.not_yours")
        #expect(try await service.client("eve").put("/v1/posts/\(id)/likes/bob").status == 403)
        #expect(try await service.client("eve").put("/v1/users/bob/followers/ann").status == 403)
        // An author cannot add a follower, but may remove one.
        #expect(try await service.client("bob").put("/v1/users/bob/followers/eve").status == 403)
        #expect(try await service.client("bob").put("/v1/users/bob/followers/me").status == 409)
        try await service.follow("bob", as: "eve")
        #expect(try await service.client("ann").delete("/v1/users/bob/followers/eve").status == 204)
        #expect(try await service.client("bob").get("/v1/users/bob").json["followerCount"] == 1)
        #expect(try await service.client("bob").delete("/v1/users/bob/followers/eve").status == 204)
        #expect(try await service.client("bob").get("/v1/users/bob").json["followerCount"] == 0)
        // A backend posts, likes and follows on behalf of users it names.
        let backend = service.client(as: .service())
        #expect(
            try await backend.post("/v1/posts", ["text": "x"]).json["errors"].array?.first?["pointer"] == "/authorId")
        #expect(try await backend.post("/v1/posts", ["text": "x", "authorId": "bob"]).json["authorId"] == "bob")
        #expect(try await backend.put("/v1/posts/\(id)/likes/ann").json["liked"] == true)
        #expect(try await backend.put("/v1/users/bob/followers/ann").status == 201)
        #expect(try await service.feed("ann")["items"].array?.count == 2)
        #expect(try await service.client("ann").get("/v1/posts/\(id)").json["liked"] == true)
        try service.expectExactCounts()
    }

    @Test func sameKey_postsOnce() async throws {
        let headers = ["Idempotency-Key": "k1"]
        let first = try await service.client("bob").post("/v1/posts", ["text": "x"], headers: headers)
        let again = try await service.client("bob").post("/v1/posts", ["text": "x"], headers: headers)
        #expect(first.status == 201)
        #expect(again.json == first.json)
        #expect(try await service.client("bob").get("/v1/users/me").json["postCount"] == 1)
    }

    // MARK: Likes and reposts

    @Test func likingAgain_changesNothing_andEachKnowsTheirOwn() async throws {
        let id = try #require(try await service.post("bob")["id"].string)
        let likes = "/v1/posts/\(id)/likes/me"
        for _ in 0..<3 {
            let liked = try await service.client("ann").put(likes).json
            expect(liked, has: ["likeCount": 1, "liked": true, "reposted": false])
        }
        #expect(try await service.client("ben").put(likes).json["likeCount"] == 2)
        #expect(try await service.client("ann").put("/v1/posts/\(id)/reposts/me").json["repostCount"] == 1)
        let seen = try await service.client("ben").get("/v1/posts/\(id)").json
        expect(seen, has: ["likeCount": 2, "repostCount": 1, "liked": true, "reposted": false])
        for _ in 0..<2 { #expect(try await service.client("ann").delete(likes).json["likeCount"] == 1) }
        #expect(try await service.client("ann").get("/v1/posts/\(id)").json["liked"] == false)
        try service.expectExactCounts()
    }

    @Test func like_canBeRemoved_fromAnInvisiblePost() async throws {
        let id = try #require(try await service.post("bob", "x", "followers")["id"].string)
        try await service.follow("bob", as: "ann")
        #expect(try await service.client("ann").put("/v1/posts/\(id)/likes/me").status == 200)
        try await service.unfollow("bob", as: "ann")
        #expect(try await service.client("ann").delete("/v1/posts/\(id)/likes/me").status == 204)
        #expect(try await service.client("ann").delete("/v1/posts/\(id)/likes/me").status == 404)
        #expect(try await service.client("bob").get("/v1/posts/\(id)").json["likeCount"] == 0)
        try service.expectExactCounts()
    }

    /// A thousand concurrent toggles, some on the same user: the count equals a recount.
    @Test func thousandTogglesAtOnce_endInTheRecount() async throws {
        let id = try #require(try await service.post("bob")["id"].string)
        let seed = randomSeed()
        try await Self.toggle(id, times: effort(quick: 250, full: 1000, long: 4000), seed: seed, through: [service])
    }

    /// Sends toggles of forty users, twenty-five at a time. At the end, compares the count with the users' own answers.
    static func toggle(_ id: String, times: Int, seed: UInt64, through services: [TestService]) async throws {
        var random = SeededGenerator(seed: seed)
        let toggles = (0..<times).map { _ in
            (user: Int.random(in: 0..<40, using: &random), isOn: Bool.random(using: &random))
        }
        try await concurrently(0..<25) { lane in
            for index in stride(from: lane, to: times, by: 25) {
                let client = services[index % services.count].client("u\(toggles[index].user)")
                let path = "/v1/posts/\(id)/likes/me"
                let answer = toggles[index].isOn ? try await client.put(path) : try await client.delete(path)
                #expect(answer.status == 200, "\(answer.problem)")
            }
        }
        var likers = 0
        for user in 0..<40 {
            likers += try await services[0].client("u\(user)").get("/v1/posts/\(id)").json["liked"] == true ? 1 : 0
        }
        #expect(try await services[0].client("bob").get("/v1/posts/\(id)").json["likeCount"].int == likers)
        try services[0].expectExactCounts()
    }

    // MARK: The feed

    /// R-12: simultaneous posts all count, own posts are not new, and a page continues back to the cursor.
    @Test func newPostCount_isExact_sinceAnyPost() async throws {
        for author in ["bob", "cat"] { try await service.follow(author, as: "ann") }
        _ = try await service.post("bob", "1")
        let before = try #require(try await service.feed("ann")["newest"].int)
        #expect(try await service.feed("ann", "?since=\(before)")["newCount"] == 0)
        try await concurrently(0..<12) { index in
            _ = try await service.post(index % 2 == 0 ? "bob" : "cat", "n\(index)", "followers")
        }
        _ = try await service.post("ann", "own")
        _ = try await service.post("dan", "not followed")
        let page = try await service.feed("ann", "?since=\(before)&limit=5")
        expect(page, has: ["newCount": 12, "newCountIsMore": false])
        #expect(page["items"].array?.count == 5)
        #expect(page["items"].array?.first?["text"] == "own")
        #expect(try await service.pages(of: "ann", limit: 5, since: before).count == 13)
        #expect(try await service.pages(of: "ann", limit: 5).count == 14)
        let newest = try #require(page["newest"].int)
        #expect(try await service.feed("ann", "?since=\(newest)")["newCount"] == 0)
        #expect(try await service.feed("ann")["newCount"] == .null)
        #expect(try await service.client("ann").get("/v1/feed?since=-1").status == 422)
        #expect(try await service.client("ann").get("/v1/feed?cursor=made-up").status == 422)
    }

    @Test func unchangedFeed_isNotSentAgain() async throws {
        try await service.follow("bob", as: "ann")
        let id = try #require(try await service.post("bob")["id"].string)
        let first = try await service.client("ann").get("/v1/feed")
        let tag = try #require(first[header: "ETag"])
        #expect(try await service.client("ann").get("/v1/feed", headers: ["If-None-Match": tag]).status == 304)
        _ = try await service.client("ben").put("/v1/posts/\(id)/likes/me")
        #expect(try await service.client("ann").get("/v1/feed", headers: ["If-None-Match": tag]).status == 200)
    }

    /// The merged feed equals a naive one, after random posts, removals, follows and unfollows.
    @Test func mergedFeed_equalsThePlainOne() async throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let users = ["a", "b", "c", "d", "e", "f"]
        var posts: [(id: String, author: String, sequence: Int)] = []
        var follows: [String: Set<String>] = [:]
        for round in 0..<effort(quick: 64, full: 160, long: 800) {
            let (user, other) = (users.randomElement(using: &random)!, users.randomElement(using: &random)!)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                let visibility = Bool.random(using: &random) ? "public" : "followers"
                let made = try await service.post(user, "p\(round)", visibility)
                posts.append((made["id"].string ?? "", user, made["sequence"].int ?? 0))
            case 5 where !posts.isEmpty:
                let doomed = posts.remove(at: Int.random(in: posts.indices, using: &random))
                #expect(try await service.client(doomed.author).delete("/v1/posts/\(doomed.id)").status == 204)
            case 6 where user != other:
                try await service.unfollow(other, as: user)
                follows[user]?.remove(other)
            default:
                guard user != other else { continue }
                try await service.follow(other, as: user)
                follows[user, default: []].insert(other)
            }
            guard round % 8 == 7 else { continue }
            let authors = (follows[user] ?? []).union([user])
            let expected = posts.filter { authors.contains($0.author) }.map(\.sequence).sorted(by: >)
            let limit = Int.random(in: 1...7, using: &random)
            #expect(try await service.pages(of: user, limit: limit) == expected, "seed \(seed)")
            let since = Int.random(in: 0...max(1, posts.last?.sequence ?? 1), using: &random)
            #expect(
                try await service.pages(of: user, limit: limit, since: since) == expected.filter { $0 > since },
                "seed \(seed)")
            let newer = posts.filter { $0.author != user && authors.contains($0.author) && $0.sequence > since }
            #expect(try await service.feed(user, "?since=\(since)")["newCount"].int == newer.count, "seed \(seed)")
        }
        try service.expectExactCounts()
    }

    // MARK: Followers

    @Test func followers_areVisibleToBothUsers_andCountedForAll() async throws {
        try await service.follow("bob", as: "ann")
        try await service.follow("bob", as: "ben")
        try await service.follow("ann", as: "bob")
        let again = try await service.client("ann").put("/v1/users/bob/followers/me")
        #expect(again.status == 200)
        #expect(again.json["followerCount"] == 2)
        let seen = try await service.client("ann").get("/v1/users/bob").json
        expect(seen, has: ["followerCount": 2, "followingCount": 1, "followed": true, "followsYou": true])
        func ids(_ path: String, as user: String, _ name: String) async throws -> [String] {
            (try await service.client(user).get(path).json["items"].array ?? []).compactMap { $0[name].string }
        }
        #expect(try await ids("/v1/users/me/followers", as: "bob", "followerId") == ["ann", "ben"])
        #expect(try await ids("/v1/users/bob/followers", as: "ann", "followerId") == ["ann"])
        #expect(try await ids("/v1/users/bob/followers", as: "eve", "followerId").isEmpty)
        #expect(try await ids("/v1/users/me/following", as: "ann", "authorId") == ["bob"])
        #expect(try await service.client("eve").get("/v1/users/bob/followers/ann").status == 404)
        #expect(try await service.client("bob").get("/v1/users/bob/followers/ann").status == 200)
        let first = try await service.client("bob").get("/v1/users/bob/followers?limit=1").json
        let next = try #require(first["next"].string)
        #expect(try await ids("/v1/users/bob/followers?limit=1&cursor=\(next)", as: "bob", "followerId") == ["ben"])
        try service.expectExactCounts()
    }

    @Test func followLimit_isEnforced() async throws {
        try await service.follow("bob", as: "ann")
        try await service.app.store.write { db in
            _ = try db.run(
                """
                UPDATE \(PostsFeature.authors, unscoped: .bookkeeping("test"))
                SET following_count = \(PostLimits.followedMax) WHERE user_id = \("ann")
                """)
        }
        let refused = try await service.client("ann").put("/v1/users/cat/followers/me")
        #expect(refused.refusal == "409 follow.too_many")
        #expect(try await service.client("ann").put("/v1/users/bob/followers/me").status == 200)
    }

    // MARK: Live delivery

    /// R-CUT-F-1: connected followers receive the whole post, including followers added after the connection. No other
    /// user receives it.
    @Test func newPost_reachesCurrentFollowers() async throws {
        try await service.follow("bob", as: "ann")
        let early = try await service.listen(as: .user("ann"))
        let late = try await service.listen(as: .user("ben"))
        let own = try await service.listen(as: .user("bob"))
        let stranger = try await service.listen(as: .user("eve"))
        var barber = TestService.Identity.user("bob")
        barber.claims["role"] = .string("barber")
        let posted = try await service.client(as: barber).post("/v1/posts", ["text": "first", "visibility": "public"])
        #expect(posted.status == 201, "\(posted.problem)")
        let first = posted.json
        let delivered = try await early.next("feed:new_post").json
        // R-CUT-F-1: the documented member names, in addition to the post's own members.
        expect(delivered, has: ["type": "new_post", "postId": delivered["id"], "barberId": delivered["authorId"]])
        #expect(delivered["timestamp"].string != nil)
        #expect(delivered["timestamp"] == delivered["createdAt"])
        expect(delivered, has: ["id": first["id"], "text": "first", "sequence": first["sequence"], "liked": nil])
        #expect(try await own.next("feed:new_post").json["id"] == first["id"])

        try await service.follow("bob", as: "ben")
        #expect(
            try await late.next("follow:changed").json == ["authorId": "bob", "followerId": "ben", "followed": true])
        _ = try await service.post("bob", "second", "followers")
        #expect(try await late.next("feed:new_post").json["text"] == "second")
        let second = try await early.next("feed:new_post").json
        #expect(second["text"] == "second")
        // Without the role, the author is no barber. The other names stay.
        #expect(second["barberId"] == nil && second["postId"] == second["id"])

        try await service.unfollow("bob", as: "ann")
        _ = try await service.post("bob", "third", "followers")
        _ = try await service.post("ann", "mark")
        #expect(try await early.next("feed:new_post").json["text"] == "mark")
        #expect(try await late.next("feed:new_post").json["text"] == "third")
        _ = try await service.post("eve", "mark")
        #expect(try await stranger.next("feed:new_post").json["text"] == "mark")
        #expect(stranger.received.filter { $0.name == "feed:new_post" }.count == 1)
        #expect(!late.received.contains { $0.json["text"] == "first" })
    }

    /// Posts published while no stream was open are replayed to current followers. Following another author adds no
    /// old posts.
    @Test func resumedStream_getsWhatItMissed_andRemovals() async throws {
        // More authors than the replay queries one by one.
        for index in 0..<50 { try await service.follow("author\(index)", as: "ann") }
        let first = try await service.listen(as: .user("ann"))
        let gone = try #require(try await service.post("author49", "one")["id"].string)
        try await first.next("feed:new_post")
        first.close()
        for index in [0, 20, 48] { _ = try await service.post("author\(index)", "missed \(index)", "followers") }
        _ = try await service.post("other", "not followed")
        #expect(try await service.client("author49").delete("/v1/posts/\(gone)").status == 204)
        let second = try await service.listen(as: .user("ann"), lastEventID: first.lastEventID)
        #expect(try await second.next("feed:post_removed").json == ["postId": .string(gone)])
        let texts = second.received.filter { $0.name == "feed:new_post" }.compactMap { $0.json["text"].string }
        #expect(texts == ["missed 0", "missed 20", "missed 48"])
        #expect(try await service.client("ann").get("/v1/posts/\(gone)").status == 404)
    }

    /// The explanation names the table whose row grants the post; without that row, it names the missing one.
    @Test func explanation_namesTheFollowing() async throws {
        try await service.follow("bob", as: "ann")
        let stream = try await service.listen(as: .user("ann"))
        _ = try await service.post("bob", "x", "followers")
        let id = try await stream.next("feed:new_post").id
        for (user, isPublished) in [("ann", true), ("eve", false)] {
            let answer = try await service.client(as: .service(tenant: "default")).post(
                "/v1/explain", ["eventId": .string(id), "token": .string(service.token(for: .user(user)))])
            #expect(answer.status == 200, "\(answer.problem)")
            #expect(answer.json["delivered"].bool == isPublished)
            let key = answer.json["keys"].array?.first { $0["key"] == "follower:bob" }
            #expect(key?["membership"].string == (isPublished ? "follows" : nil))
        }
    }

    // MARK: Watching

    private static func watch(_ ids: [String]) -> [JSON] {
        [["schema": "bellhop", "table": "posts", "filter": .string("id=in.(\(ids.joined(separator: ",")))")]]
    }

    /// R-ENG-E-1, R-ENG-E-6 to R-ENG-E-8: watchers receive counts in batches, for the posts that they may see.
    @Test func engagement_reachesWatchers_inBatches() async throws {
        var ids: [String] = []
        for index in 0..<3 {
            ids.append(
                try await service.post("bob", "p\(index)", index == 2 ? "followers" : "public")["id"].string ?? "")
        }
        try await service.follow("bob", as: "fay")
        let stranger = try await service.listen(as: .user("eve"))
        let follower = try await service.listen(as: .user("fay"))
        try await stranger.subscribe(Self.watch(ids))
        try await follower.subscribe(Self.watch(ids))
        for id in ids { _ = try await service.client("fay").put("/v1/posts/\(id)/likes/me") }
        var seen: Set<String> = []
        while seen.count < 3 {
            let batch = try await follower.next("engagement_update").json
            for id in batch["postIds"].array ?? [] {
                seen.insert(id.string ?? "")
                #expect(batch["updates"][id.string ?? ""] == ["likeCount": 1, "repostCount": 0])
            }
        }
        #expect(seen == Set(ids))
        var received: Set<String> = []
        while received.count < 2 {
            let batch = try await stranger.next("engagement_update").json
            received.formUnion((batch["postIds"].array ?? []).compactMap(\.string))
        }
        #expect(received == Set(ids[..<2]))
        // A deleted post is delivered as a deleted row.
        #expect(try await service.client("bob").delete("/v1/posts/\(ids[0])").status == 204)
        let removed = try await stranger.next("table:change").json
        #expect(removed["type"] == "DELETE")
        #expect(removed["oldRecord"]["id"] == .string(ids[0]))
        #expect(try await service.client("eve").get("/v1/posts/\(ids[0])").status == 404)
    }

    /// A storm of likes is published at its start, at its end, and once a second in between: the log has no event per
    /// like.
    @Test func stormOfLikes_isTwoEvents_andTheLastCount() async throws {
        let id = try #require(try await service.post("bob")["id"].string)
        let stream = try await service.listen(as: .user("eve"))
        try await stream.subscribe(Self.watch([id]))
        for index in 0..<30 { _ = try await service.client("u\(index)").put("/v1/posts/\(id)/likes/me") }
        #expect(try await stream.next("engagement_update").json["updates"][id]["likeCount"] == 1)
        service.clock.advance(seconds: 2)
        #expect(try await stream.next("engagement_update").json["updates"][id]["likeCount"] == 30)
        let delivered = try service.app.store.read { db in
            try db.integer(
                """
                SELECT COUNT(*) FROM \(EventLog.events, unscoped: .bookkeeping("test"))
                WHERE name = \("\(EventLog.change)")
                """)
        }
        #expect(delivered == 2)
        // After a pause, a single like is delivered immediately.
        service.clock.advance(seconds: 2)
        _ = try await service.client("u0").delete("/v1/posts/\(id)/likes/me")
        #expect(try await stream.next("engagement_update").json["updates"][id]["likeCount"] == 29)
    }

    @Test func clockSetBack_stopsNoCounts() async throws {
        let id = try #require(try await service.post("bob")["id"].string)
        let stream = try await service.listen(as: .user("eve"))
        try await stream.subscribe(Self.watch([id]))
        func like(_ user: String) async throws { _ = try await service.client(user).put("/v1/posts/\(id)/likes/me") }
        func watch(until likes: Int) async throws {
            while try await stream.next("engagement_update").json["updates"][id]["likeCount"].int != likes {}
        }
        try await like("u0")
        try await watch(until: 1)
        service.clock.advance(seconds: -7200)
        try await like("u1")
        try await like("u2")
        service.clock.advance(seconds: 2)
        try await watch(until: 3)
    }

    @Test func unknownTableOfTheService_isRefused() async throws {
        let stream = try await service.listen(as: .user("eve"))
        let id = stream.ready.json["streamId"].string ?? ""
        let answer = try await service.client("eve").put(
            "/v1/streams/\(id)/subscriptions", ["tables": [["schema": "bellhop", "table": "post_engagements"]]])
        #expect(answer.status == 422)
    }

    // MARK: Upkeep

    @Test func likesOfARemovedPost_areForgotten() async throws {
        let id = try #require(try await service.post("bob")["id"].string)
        for user in ["ann", "ben"] { _ = try await service.client(user).put("/v1/posts/\(id)/likes/me") }
        #expect(try await service.client("bob").delete("/v1/posts/\(id)").status == 204)
        #expect(try await service.client("ann").put("/v1/posts/\(id)/likes/me").status == 404)
        try service.expectExactCounts()
        let left = {
            try service.app.store.read { db in
                try db.integer("SELECT COUNT(*) FROM \(PostsFeature.engagements, unscoped: .bookkeeping("test"))")
            }
        }
        #expect(try left() == 2)
        service.clock.advance(seconds: 2)
        try await eventually("the likes are deleted") { try left() == 0 }
        try service.expectExactCounts()
    }
}
