import BellhopCalls

/// The part of the demo with the barbers' posts and followers.
extension DemoScenario {
    private static let texts = [
        "Fresh fade for the weekend.", "Two chairs are free right now.", "Before and after: beard trim.",
        "New scissors, new mood.", "Late shift today, come by.", "A regular is back after a year!",
    ]
    /// The number of posts that are liked or removed; older ones are left alone.
    private static let postsMax = 12

    /// Lets every customer follow one barber, and ada all of them.
    func followBarbers() async throws {
        for (index, customer) in DemoScenario.customers.enumerated() {
            let authors = index == 0 ? DemoScenario.barbers : [DemoScenario.barbers[index % DemoScenario.barbers.count]]
            for (author, _) in authors {
                try await expect(
                    user(customer).put("/v1/users/\(author)/followers/me"), "follow \(author) as \(customer)")
            }
        }
        say("Each customer follows a barber; \(DemoScenario.customers[0]) follows all \(DemoScenario.barbers.count).")
    }

    func post() async throws {
        if posts.count > 3, number(in: 1...6) == 1 { return try await removePost() }
        let (author, name) = pick(DemoScenario.barbers)
        let text = pick(DemoScenario.texts)
        let body: JSON = ["authorId": .string(author), "text": .string(text)]
        let answer = try expect(await backend.post("/v1/posts", body), "post as \(author)")
        guard let id = answer.json["id"].string else { return }
        posts.append((id, author))
        if posts.count > DemoScenario.postsMax { posts.removeFirst() }
        say("\(name) posts: \(text)")
    }

    private func removePost() async throws {
        let (id, author) = posts.removeFirst()
        let answer = try await user(author).delete("/v1/posts/\(id)")
        guard answer.status != 404 else { return }
        try expect(answer, "remove a post as \(author)")
        say("\(author) removes an old post.")
    }

    func like() async throws {
        guard !posts.isEmpty else { return try await post() }
        let (customer, liked) = (pick(DemoScenario.customers), pick(posts))
        let kind = pick(["likes", "likes", "likes", "reposts"])
        let answer = try await user(customer).put("/v1/posts/\(liked.id)/\(kind)/me")
        // Another demo has removed the post.
        guard answer.status != 404 else { return posts.removeAll { $0.id == liked.id } }
        let counts = try expect(answer, "like a post as \(customer)").json
        let (likes, reposts) = (counts["likeCount"].int ?? 0, counts["repostCount"].int ?? 0)
        say("\(customer) \(kind) a post of \(liked.author): \(likes) likes, \(reposts) reposts.")
    }

    func changeWhomToFollow() async throws {
        // The first customer always follows all of them: the help text suggests listening by that name.
        let customer = pick(Array(DemoScenario.customers.dropFirst()))
        let (author, name) = pick(DemoScenario.barbers)
        let path = "/v1/users/\(author)/followers/me"
        let answer = try await user(customer).put(path)
        let isNew = try expect(answer, "follow \(author) as \(customer)").status == 201
        if isNew { return say("\(customer) follows \(name).") }
        try await expect(user(customer).delete(path), "unfollow \(author) as \(customer)")
        say("\(customer) no longer follows \(name).")
    }

    func viewFeed() async throws {
        let customer = pick(DemoScenario.customers)
        let since = feedsSeen[customer].map { "&since=\($0)" } ?? ""
        let answer = try await user(customer).get("/v1/feed?limit=5\(since)")
        let feed = try expect(answer, "read \(customer)'s feed").json
        feedsSeen[customer] = feed["newest"].int
        let count = feed["newCount"].int ?? feed["items"].array?.count ?? 0
        let author = feed["items"][0]["authorId"].string.map { ", the newest by \($0)" } ?? ""
        say("\(customer) looks at the feed: \(count) new posts\(author).")
    }
}
