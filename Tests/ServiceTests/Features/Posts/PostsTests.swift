import BellhopClient
import Database
import Domain
import TestSupport
import Testing

@testable import Service

/// Posts, likes, followers and feeds over real HTTP and streams.
@Suite(.timed) struct PostsTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    // MARK: Visibility

    /// R-ENG-E-6: public posts are visible to all users of the tenant, others to followers.
    @Test func post_isVisibleToItsAudience() async throws {
        let open = try await service.post("bob", "open").id
        let closed = try await service.post("bob", "closed", .followers).id
        try await service.follow("bob", as: "fay")
        let readers: [(TestService.Identity, Int, Int)] = [
            (.user("bob"), 200, 200), (.user("fay"), 200, 200), (.user("eve"), 200, 404), (.service(), 200, 200),
            (.admin, 200, 200), (.user("fay", tenant: "other"), 404, 404), (.service(tenant: "other"), 404, 404),
        ]
        for (identity, publicly, privately) in readers {
            let client = service.client(as: identity)
            #expect(try await status(of: await client.getPost(id: open)) == publicly, "\(identity)")
            #expect(try await status(of: await client.getPost(id: closed)) == privately, "\(identity)")
            let listed = try await client.listPosts(authorId: "bob").value.items.map(\.text)
            #expect(listed == ["closed", "open"].filter { $0 == "open" ? publicly == 200 : privately == 200 })
            let all = try await client.listPosts().value.items.map(\.text)
            #expect(all == (publicly == 200 ? ["open"] : []))
            #expect(try await status(of: await client.putLike(id: closed, userId: "me")) == privately)
            #expect(try await status(of: await client.deleteLike(id: closed, userId: "me")) == privately)
            if privately == 404 { #expect(try await status(of: await client.deletePost(id: closed)) == 404) }
        }
        try await service.unfollow("bob", as: "fay")
        #expect(try await status(of: await service.client("fay").getPost(id: closed)) == 404)
        #expect(try await service.client("fay").getFeed().value.items == [])
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
        let id = try await service.post("bob").id
        #expect(try await status(of: await service.client("eve").createPost(.init(authorId: "bob", text: "x"))) == 403)
        let refused = try await problem(of: await service.client("eve").deletePost(id: id))
        #expect(refused.refusal == "403 post.not_yours")
        #expect(try await status(of: await service.client("eve").putLike(id: id, userId: "bob")) == 403)
        #expect(try await status(of: await service.client("eve").follow(id: "bob", followerId: "ann")) == 403)
        // An author cannot add a follower, but may remove one.
        #expect(try await status(of: await service.client("bob").follow(id: "bob", followerId: "eve")) == 403)
        #expect(try await status(of: await service.client("bob").follow(id: "bob", followerId: "me")) == 409)
        try await service.follow("bob", as: "eve")
        #expect(try await service.client("ann").unfollow(id: "bob", followerId: "eve").status == 204)
        #expect(try await service.client("bob").getUser(id: "bob").value.followerCount == 1)
        #expect(try await service.client("bob").unfollow(id: "bob", followerId: "eve").status == 204)
        #expect(try await service.client("bob").getUser(id: "bob").value.followerCount == 0)
        // A backend posts, likes and follows on behalf of users it names.
        let backend = service.client(as: .service())
        #expect(try await problem(of: await backend.createPost(.init(text: "x"))).pointers == ["/authorId"])
        #expect(try await backend.createPost(.init(authorId: "bob", text: "x")).value.authorId == "bob")
        #expect(try await backend.putLike(id: id, userId: "ann").value.liked)
        #expect(try await backend.follow(id: "bob", followerId: "ann").status == 201)
        #expect(try await service.client("ann").getFeed().value.items.count == 2)
        #expect(try await service.client("ann").getPost(id: id).value.liked)
        try service.expectExactCounts()
    }

    @Test func sameKey_postsOnce() async throws {
        let bob = service.client("bob")
        let first = try await bob.createPost(.init(text: "x"), idempotencyKey: "k1")
        #expect(first.status == 201)
        #expect(try await bob.createPost(.init(text: "x"), idempotencyKey: "k1").value == first.value)
        #expect(try await bob.getUser(id: "me").value.postCount == 1)
    }

    // MARK: Likes and reposts

    @Test func likingAgain_changesNothing_andEachKnowsTheirOwn() async throws {
        let id = try await service.post("bob").id
        for _ in 0..<3 {
            let liked = try await service.client("ann").putLike(id: id, userId: "me").value
            #expect(liked.likeCount == 1 && liked.liked && !liked.reposted)
        }
        #expect(try await service.client("ben").putLike(id: id, userId: "me").value.likeCount == 2)
        #expect(try await service.client("ann").putRepost(id: id, userId: "me").value.repostCount == 1)
        let seen = try await service.client("ben").getPost(id: id).value
        #expect(seen.likeCount == 2 && seen.repostCount == 1 && seen.liked && !seen.reposted)
        for _ in 0..<2 {
            #expect(try await service.client("ann").deleteLike(id: id, userId: "me").value?.likeCount == 1)
        }
        #expect(try await service.client("ann").getPost(id: id).value.liked == false)
        try service.expectExactCounts()
    }

    @Test func like_canBeRemoved_fromAnInvisiblePost() async throws {
        let id = try await service.post("bob", "x", .followers).id
        try await service.follow("bob", as: "ann")
        #expect(try await service.client("ann").putLike(id: id, userId: "me").status == 200)
        try await service.unfollow("bob", as: "ann")
        #expect(try await service.client("ann").deleteLike(id: id, userId: "me").status == 204)
        #expect(try await status(of: await service.client("ann").deleteLike(id: id, userId: "me")) == 404)
        #expect(try await service.client("bob").getPost(id: id).value.likeCount == 0)
        try service.expectExactCounts()
    }

    /// A thousand concurrent toggles, some on the same user: the count equals a recount.
    @Test func thousandTogglesAtOnce_endInTheRecount() async throws {
        let id = try await service.post("bob").id
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
                if toggles[index].isOn {
                    try await client.putLike(id: id, userId: "me")
                } else {
                    #expect(try await client.deleteLike(id: id, userId: "me").status == 200)
                }
            }
        }
        var likers = 0
        for user in 0..<40 {
            likers += try await services[0].client("u\(user)").getPost(id: id).value.liked ? 1 : 0
        }
        #expect(try await services[0].client("bob").getPost(id: id).value.likeCount == likers)
        try services[0].expectExactCounts()
    }

    // MARK: The feed

    /// R-12: simultaneous posts all count, own posts are not new, and a page continues back to the cursor.
    @Test func newPostCount_isExact_sinceAnyPost() async throws {
        for author in ["bob", "cat"] { try await service.follow(author, as: "ann") }
        try await service.post("bob", "1")
        let ann = service.client("ann")
        let before = try await ann.getFeed().value.newest
        #expect(try await ann.getFeed(since: before).value.newCount == 0)
        try await concurrently(0..<12) { index in
            try await service.post(index % 2 == 0 ? "bob" : "cat", "n\(index)", .followers)
        }
        try await service.post("ann", "own")
        try await service.post("dan", "not followed")
        let page = try await ann.getFeed(since: before, limit: 5).value
        #expect(page.newCount == 12 && page.newCountIsMore == false)
        #expect(page.items.count == 5)
        #expect(page.items.first?.text == "own")
        #expect(try await service.pages(of: "ann", limit: 5, since: before).count == 13)
        #expect(try await service.pages(of: "ann", limit: 5).count == 14)
        #expect(try await ann.getFeed(since: page.newest).value.newCount == 0)
        #expect(try await ann.getFeed().value.newCount == nil)
        #expect(try await status(of: await service.client("ann").getFeed(since: -1)) == 422)
        #expect(try await status(of: await service.client("ann").getFeed(cursor: "made-up")) == 422)
    }

    @Test func unchangedFeed_isNotSentAgain() async throws {
        try await service.follow("bob", as: "ann")
        let id = try await service.post("bob").id
        let first = try await service.client("ann").getFeed()
        let tag = try #require(first.etag)
        #expect(try await service.client("ann").getFeed(ifNoneMatch: tag) == nil)
        try await service.client("ben").putLike(id: id, userId: "me")
        #expect(try await service.client("ann").getFeed(ifNoneMatch: tag) != nil)
    }

    /// The merged feed equals a naive one, after random posts, removals, follows and unfollows.
    @Test func mergedFeed_equalsThePlainOne() async throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let users = ["a", "b", "c", "d", "e", "f"]
        var posts: [Bellhop.PostView] = []
        var follows: [String: Set<String>] = [:]
        for round in 0..<effort(quick: 64, full: 160, long: 800) {
            let (user, other) = (users.randomElement(using: &random)!, users.randomElement(using: &random)!)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                posts.append(
                    try await service.post(user, "p\(round)", Bool.random(using: &random) ? .public : .followers))
            case 5 where !posts.isEmpty:
                let doomed = posts.remove(at: Int.random(in: posts.indices, using: &random))
                #expect(try await service.client(doomed.authorId).deletePost(id: doomed.id).status == 204)
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
            let expected = posts.filter { authors.contains($0.authorId) }.map(\.sequence).sorted(by: >)
            let limit = Int.random(in: 1...7, using: &random)
            #expect(try await service.pages(of: user, limit: limit) == expected, "seed \(seed)")
            let since = Int.random(in: 0...max(1, posts.last?.sequence ?? 1), using: &random)
            #expect(
                try await service.pages(of: user, limit: limit, since: since) == expected.filter { $0 > since },
                "seed \(seed)")
            let newer = posts.filter { $0.authorId != user && authors.contains($0.authorId) && $0.sequence > since }
            let feed = try await service.client(user).getFeed(since: since).value
            #expect(feed.newCount == newer.count, "seed \(seed)")
        }
        try service.expectExactCounts()
    }

    // MARK: Followers

    @Test func followers_areVisibleToBothUsers_andCountedForAll() async throws {
        try await service.follow("bob", as: "ann")
        try await service.follow("bob", as: "ben")
        try await service.follow("ann", as: "bob")
        let again = try await service.client("ann").follow(id: "bob", followerId: "me")
        #expect(again.status == 200)
        #expect(again.value.followerCount == 2)
        let seen = try await service.client("ann").getUser(id: "bob").value
        #expect(seen.followerCount == 2 && seen.followingCount == 1 && seen.followed && seen.followsYou)
        func followers(of id: String, as user: String, after cursor: String? = nil) async throws -> [String] {
            try await service.client(user).listFollowers(id: id, cursor: cursor).value.items.map(\.followerId)
        }
        #expect(try await followers(of: "me", as: "bob") == ["ann", "ben"])
        #expect(try await followers(of: "bob", as: "ann") == ["ann"])
        #expect(try await followers(of: "bob", as: "eve").isEmpty)
        #expect(try await service.client("ann").listFollowing(id: "me").value.items.map(\.authorId) == ["bob"])
        #expect(try await status(of: await service.client("eve").getFollower(id: "bob", followerId: "ann")) == 404)
        #expect(try await service.client("bob").getFollower(id: "bob", followerId: "ann").status == 200)
        let first = try await service.client("bob").listFollowers(id: "bob", limit: 1).value
        let next = try #require(first.next)
        #expect(try await followers(of: "bob", as: "bob", after: next) == ["ben"])
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
        let refused = try await problem(of: await service.client("ann").follow(id: "cat", followerId: "me"))
        #expect(refused.refusal == "409 follow.too_many")
        #expect(try await service.client("ann").follow(id: "bob", followerId: "me").status == 200)
    }

    // MARK: Live delivery

    /// R-CUT-F-1, R-31: connected followers receive the whole post, including followers added after the connection. No
    /// other user receives it.
    @Test func newPost_reachesCurrentFollowers() async throws {
        try await service.follow("bob", as: "ann")
        let early = try await service.listen(as: .user("ann"))
        let late = try await service.listen(as: .user("ben"))
        let own = try await service.listen(as: .user("bob"))
        let stranger = try await service.listen(as: .user("eve"))
        var barber = TestService.Identity.user("bob")
        barber.metadata["user_role"] = .string("barber")
        let posted = try await service.client(as: barber).createPost(.init(visibility: .public, text: "first"))
        #expect(posted.status == 201)
        let first = posted.value
        let delivered = try await early.next("feed:new_post").json
        // R-CUT-F-1: the documented member names, in addition to the post's own members.
        expect(delivered, has: ["type": "new_post", "postId": delivered["id"], "barberId": delivered["authorId"]])
        #expect(delivered["timestamp"].string != nil)
        #expect(delivered["timestamp"] == delivered["createdAt"])
        expect(delivered, has: ["id": .string(first.id), "text": "first", "liked": nil])
        #expect(delivered["sequence"].int == first.sequence)
        #expect(try await own.next("feed:new_post").json["id"].string == first.id)

        try await service.follow("bob", as: "ben")
        #expect(
            try await late.next("follow:changed").json == ["authorId": "bob", "followerId": "ben", "followed": true])
        try await service.post("bob", "second", .followers)
        #expect(try await late.next("feed:new_post").json["text"] == "second")
        let second = try await early.next("feed:new_post").json
        #expect(second["text"] == "second")
        // Without the role, the author is no barber. The other names stay.
        #expect(second["barberId"] == nil && second["postId"] == second["id"])

        try await service.unfollow("bob", as: "ann")
        try await service.post("bob", "third", .followers)
        try await service.post("ann", "mark")
        #expect(try await early.next("feed:new_post").json["text"] == "mark")
        #expect(try await late.next("feed:new_post").json["text"] == "third")
        try await service.post("eve", "mark")
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
        let gone = try await service.post("author49", "one").id
        try await first.next("feed:new_post")
        first.close()
        for index in [0, 20, 48] { try await service.post("author\(index)", "missed \(index)", .followers) }
        try await service.post("other", "not followed")
        #expect(try await service.client("author49").deletePost(id: gone).status == 204)
        let second = try await service.listen(as: .user("ann"), lastEventID: first.lastEventID)
        #expect(try await second.next("feed:post_removed").json == ["postId": .string(gone)])
        let texts = second.received.filter { $0.name == "feed:new_post" }.compactMap { $0.json["text"].string }
        #expect(texts == ["missed 0", "missed 20", "missed 48"])
        #expect(try await status(of: await service.client("ann").getPost(id: gone)) == 404)
    }

    /// The explanation names the table whose row grants the post; without that row, it names the missing one.
    @Test func explanation_namesTheFollowing() async throws {
        try await service.follow("bob", as: "ann")
        let stream = try await service.listen(as: .user("ann"))
        try await service.post("bob", "x", .followers)
        let id = try await stream.next("feed:new_post").id
        for (user, isPublished) in [("ann", true), ("eve", false)] {
            let answer = try await service.client(as: .service(tenant: "default")).explain(
                .init(eventId: id, token: service.token(for: .user(user))))
            #expect(answer.status == 200)
            #expect(answer.value.delivered == isPublished)
            let key = answer.value.keys.first { $0.key == "follower:bob" }
            #expect(key?.membership == (isPublished ? "follows" : nil))
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
            ids.append(try await service.post("bob", "p\(index)", index == 2 ? .followers : .public).id)
        }
        try await service.follow("bob", as: "fay")
        let stranger = try await service.listen(as: .user("eve"))
        let follower = try await service.listen(as: .user("fay"))
        try await stranger.subscribe(Self.watch(ids))
        try await follower.subscribe(Self.watch(ids))
        for id in ids { try await service.client("fay").putLike(id: id, userId: "me") }
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
        #expect(try await service.client("bob").deletePost(id: ids[0]).status == 204)
        let removed = try await stranger.next("table:change").json
        #expect(removed["type"] == "DELETE")
        #expect(removed["oldRecord"]["id"] == .string(ids[0]))
        #expect(try await status(of: await service.client("eve").getPost(id: ids[0])) == 404)
    }

    /// A storm of likes is published at its start, at its end, and once a second in between: the log has no event per
    /// like.
    @Test func stormOfLikes_isTwoEvents_andTheLastCount() async throws {
        let id = try await service.post("bob").id
        let stream = try await service.listen(as: .user("eve"))
        try await stream.subscribe(Self.watch([id]))
        for index in 0..<30 { try await service.client("u\(index)").putLike(id: id, userId: "me") }
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
        try await service.client("u0").deleteLike(id: id, userId: "me")
        #expect(try await stream.next("engagement_update").json["updates"][id]["likeCount"] == 29)
    }

    @Test func clockSetBack_stopsNoCounts() async throws {
        let id = try await service.post("bob").id
        let stream = try await service.listen(as: .user("eve"))
        try await stream.subscribe(Self.watch([id]))
        func like(_ user: String) async throws { try await service.client(user).putLike(id: id, userId: "me") }
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
        let answer = try await problem(
            of: await service.client("eve").replaceSubscriptions(
                id: id, .init(tables: [.init(schema: "bellhop", table: "post_engagements")])))
        #expect(answer.status == 422)
    }

    // MARK: Upkeep

    @Test func likesOfARemovedPost_areForgotten() async throws {
        let id = try await service.post("bob").id
        for user in ["ann", "ben"] { try await service.client(user).putLike(id: id, userId: "me") }
        #expect(try await service.client("bob").deletePost(id: id).status == 204)
        #expect(try await status(of: await service.client("ann").putLike(id: id, userId: "me")) == 404)
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
