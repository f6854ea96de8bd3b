/// Posts by the users that the user follows, newest first.
///
/// New posts wait behind a banner with their number, until the user requests them or five seconds have passed. Likes
/// and reposts show at once, and are reverted if the service refuses them.
public struct FeedMachine: FeatureMachine {
    public private(set) var user: String?
    public private(set) var posts: [JSON] = []
    /// The number that the banner shows.
    public private(set) var newCount = 0
    /// Whether there are more new posts than are counted.
    public private(set) var isMore = false
    public private(set) var hasMore = false
    public private(set) var isLoaded = false
    public private(set) var problem: JSON = .null
    private var stored: [JSON] = []
    private var waiting: [JSON] = []
    private var newest: Int?
    private var next: String?
    private var pending: [Pending] = []
    private var count = 0
    private var loading = Loading()

    private struct Pending: Sendable, Encodable {
        let name: String
        let postId: String
        let set: JSON
    }

    /// After this time the banner's posts show by themselves (R-CUT-F-1).
    private static let bannerMilliseconds = 5000
    /// Only the newest posts of a long list are kept; the rest is fetched again when the user scrolls there.
    private static let storedMax = 500
    /// If more posts wait behind the banner, the first page is fetched instead of them.
    private static let waitingMax = 50
    private static let first = "/v1/feed?limit=50"

    public init(user: String? = nil) {
        self.user = user
    }

    public mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = FeedMachine(user: user)
            return [.timer(name: "banner", at: nil)] + begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        if case .start(let user, _) = input { self.user = user ?? self.user }
        let countBefore = newCount
        let path = newest.map { "\(FeedMachine.first)&since=\($0)" } ?? FeedMachine.first
        let plan = Loading.Plan(name: "feed", path: path, events: ["feed:new_post", "feed:post_removed"])
        let step = loading.advance(asked(input), plan, now: now)
        var actions = step.actions
        if let body = step.body {
            take(body)
            for event in step.since { handle(event.name, event.data) }
        }
        switch input {
        case .event(let name, let data, _): handle(name, data)
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        case .timer("banner"), .command("showNew", _): actions += showNew()
        case .command("engage", let write): actions += engage(write)
        case .command("more", _):
            if let next { actions.append(.fetch(path: "\(FeedMachine.first)&cursor=\(next.pathSegment)", as: "more")) }
        default: break
        }
        if newCount > 0, countBefore == 0 {
            actions.append(.timer(name: "banner", at: now + FeedMachine.bannerMilliseconds))
        }
        if newCount == 0, countBefore > 0 { actions.append(.timer(name: "banner", at: nil)) }
        show()
        return actions
    }

    /// Turns `stream:ready` into a refresh once the feed is loaded: posts are only delivered as they are made, so posts
    /// made while the stream was down are fetched.
    private func asked(_ input: FeatureInput) -> FeatureInput {
        guard case .event("stream:ready", _, _) = input, loading.isLoaded, loading.isCovered else { return input }
        return .command("refresh", .null)
    }

    private mutating func take(_ body: JSON) {
        let page = body["items"].array ?? []
        newest = max(body["newest"].int ?? 0, newest ?? 0)
        guard let counted = body["newCount"].int else {
            (stored, next, waiting, newCount, isMore) = (page, body["next"].string, [], 0, false)
            return
        }
        // New posts of others go behind the banner. The user's own posts, made on another device, show directly.
        let own = page.filter { $0["authorId"].string == user }
        let others = page.filter { $0["authorId"].string != user }
        let known = stored + waiting
        let fresh = others.filter { post in !known.contains { $0["id"] == post["id"] } }
        // The service's count includes posts that are not on the page.
        newCount += fresh.count + max(0, counted - others.count)
        isMore = isMore || body["newCountIsMore"].bool == true
        stored = FeedMachine.merged(stored, own, FeedMachine.storedMax)
        waiting = FeedMachine.merged(waiting, fresh, FeedMachine.waitingMax)
    }

    private mutating func handle(_ name: String, _ data: JSON) {
        switch name {
        case "stream:ready": user = user ?? data["userId"].string
        case "feed:new_post":
            guard !(stored + waiting).contains(where: { $0["id"] == data["id"] }) else { return }
            let told = data.without(["type", "postId", "barberId", "timestamp"])
            let post = (["liked": false, "reposted": false] as JSON).with(told.object ?? [:])
            newest = newest.map { max($0, post["sequence"].int ?? 0) }
            if post["authorId"].string == user {
                stored = FeedMachine.merged(stored, [post], FeedMachine.storedMax)
            } else {
                waiting = FeedMachine.merged(waiting, [post], FeedMachine.waitingMax)
                newCount += 1
            }
        case "feed:post_removed":
            if waiting.contains(where: { $0["id"] == data["postId"] }) { newCount -= 1 }
            stored.removeAll { $0["id"] == data["postId"] }
            waiting.removeAll { $0["id"] == data["postId"] }
        case "engagement_update":
            stored = FeedMachine.counted(stored, data["updates"])
            waiting = FeedMachine.counted(waiting, data["updates"])
        default: break
        }
    }

    private static func counted(_ posts: [JSON], _ updates: JSON) -> [JSON] {
        posts.map { $0.with(updates[$0["id"].string ?? ""].object ?? [:]) }
    }

    private mutating func showNew() -> [FeatureAction] {
        guard newCount > 0 else { return [] }
        let isWhole = waiting.count == newCount && !isMore
        stored = FeedMachine.merged(stored, waiting, FeedMachine.storedMax)
        (waiting, newCount, isMore) = ([], 0, false)
        if isWhole { return [] }
        // More posts waited than were kept: the list restarts with the first page, so that it has no gap.
        newest = nil
        return [.fetch(path: FeedMachine.first, as: "anew")]
    }

    private mutating func engage(_ write: JSON) -> [FeatureAction] {
        let (id, set) = (write["postId"].string ?? "", write["set"])
        let name = set["liked"].isNull ? "reposted" : "liked"
        guard let post = posts.first(where: { $0["id"].string == id }), post[name] != set[name] else { return [] }
        count += 1
        pending.append(Pending(name: "engage-\(count)", postId: id, set: set))
        let path = "/v1/posts/\(id.pathSegment)/\(name == "liked" ? "likes" : "reposts")/me"
        return [.send(set[name].bool == true ? "PUT" : "DELETE", path, as: "engage-\(count)")]
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        if name == "more", answer.isTaken {
            stored = FeedMachine.merged(stored, answer.body["items"].array ?? [], FeedMachine.storedMax)
            next = stored.count < FeedMachine.storedMax ? answer.body["next"].string : nil
        }
        if name == "anew", answer.isTaken { take(answer.body) }
        guard let index = pending.firstIndex(where: { $0.name == name }) else { return [] }
        let write = pending.remove(at: index)
        guard answer.isTaken else {
            return [.tell(name: "feed:refused", data: ["postId": .string(write.postId), "problem": answer.problem])]
        }
        let confirmed = answer.body.isNull ? write.set : answer.body.without(["postId"])
        stored = FeedMachine.counted(stored, .object([write.postId: confirmed]))
        return []
    }

    /// Overlays the user's unanswered changes on the posts from the service.
    private mutating func show() {
        posts = stored.map { post in
            let writes = pending.filter { $0.postId == post["id"].string }
            let wanted = writes.reduce(post) { $0.with($1.set.object ?? [:]) }
            guard !writes.isEmpty else { return post }
            let counts = [("liked", "likeCount"), ("reposted", "repostCount")].map { name, count -> (String, JSON) in
                let more = (wanted[name].bool == true ? 1 : 0) - (post[name].bool == true ? 1 : 0)
                return (count, .integer(Int64((post[count].int ?? 0) + more)))
            }
            return wanted.with(Dictionary(uniqueKeysWithValues: counts))
        }
        (isLoaded, problem, hasMore) = (loading.isLoaded, loading.problem, next != nil)
    }

    private static func merged(_ posts: [JSON], _ newer: [JSON], _ countMax: Int) -> [JSON] {
        let ids = Set(newer.compactMap { $0["id"].string })
        let all = newer + posts.filter { !ids.contains($0["id"].string ?? "") }
        return Array(all.sorted { ($0["sequence"].int ?? 0) > ($1["sequence"].int ?? 0) }.prefix(countMax))
    }

    private enum CodingKeys: CodingKey { case user, posts, newCount, isMore, hasMore, isLoaded, problem, pending }
}
