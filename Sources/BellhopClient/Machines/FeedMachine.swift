/// Posts by the users that the user follows, newest first.
///
/// New posts wait behind a banner with their number, until the user requests them or five seconds have passed. Likes
/// and reposts show at once, and are reverted if the service refuses them.
public struct FeedMachine: ShownMachine {
    public private(set) var user: String?
    public private(set) var posts: [Bellhop.PostView] = []
    /// The number that the banner shows.
    public private(set) var newCount = 0
    /// Whether there are more new posts than are counted.
    public private(set) var isMore = false
    public private(set) var hasMore = false
    public private(set) var isLoaded = false
    public private(set) var problem: JSON = .null
    private var stored: [Bellhop.PostView] = []
    private var waiting: [Bellhop.PostView] = []
    private var newest: Int?
    private var next: String?
    private var pending: [Pending] = []
    private var count = 0
    private var loading = Loading()
    private var follow = FollowedPosts()

    private struct Pending: Sendable, Encodable {
        let name: String
        let postId: String
        let set: Engagement
    }

    /// The user's own like or repost.
    public struct Engagement: Sendable, Hashable, Codable {
        public var liked: Bool?
        public var reposted: Bool?

        public init(liked: Bool? = nil, reposted: Bool? = nil) { (self.liked, self.reposted) = (liked, reposted) }

        fileprivate func isIn(_ post: Bellhop.PostView) -> Bool {
            (liked ?? post.liked) == post.liked && (reposted ?? post.reposted) == post.reposted
        }
    }

    private struct Counted: Decodable {
        let newest: Int?
        let newCount: Int?
        let newCountIsMore: Bool?
    }

    /// After this time the banner's posts show by themselves (R-CUT-F-1).
    private static let bannerMilliseconds = 5000
    /// Only the newest posts of a long list are kept; the rest is fetched again when the user scrolls there.
    private static let storedMax = 500
    /// If more posts wait behind the banner, the first page is fetched instead of them.
    private static let waitingMax = 50
    /// The number of posts that a device keeps: one page.
    private static let keptMax = 50
    private static let first = "/v1/feed?limit=50"

    public init(user: String? = nil) {
        self.user = user
    }

    public mutating func receive(_ input: FeatureInput<FeedCommand>, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            let follow = follow.forAnotherUser
            self = FeedMachine(user: user)
            self.follow = follow
            return [.timer(name: "banner", at: nil)] + begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        if case .start(let user, _) = input { self.user = user ?? self.user }
        let countBefore = newCount
        let path = newest.map { "\(FeedMachine.first)&since=\($0)" } ?? FeedMachine.first
        let plan = Loading.Plan(name: "feed", path: path, events: ["feed:new_post", "feed:post_removed"])
        let step = loading.advance(asked(input), plan, now: now)
        var actions = step.actions
        if step.isGone { stored = [] }
        if let answer = step.answer {
            take(answer)
            for event in step.since { handle(event.event) }
        }
        switch input {
        case .event(let event): handle(event)
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        case .restore:
            // Without `newest`, the first answer is the whole first page: likes have changed, and posts were removed.
            if let kept = input.restored(Kept.self), loading.restore() {
                stored = FeedMachine.merged(kept.posts, stored, FeedMachine.storedMax)
            }
        case .waiting(let items): for item in items { wait(for: item) }
        case .timer("banner"), .command(.showNew): actions += showNew()
        case .command(.engage(let id, let set)): actions += engage(id, set)
        case .command(.more):
            if let next { actions.append(.fetch(path: "\(FeedMachine.first)&cursor=\(next.pathSegment)", as: "more")) }
        default: break
        }
        if newCount > 0, countBefore == 0 {
            actions.append(.timer(name: "banner", at: now + FeedMachine.bannerMilliseconds))
        }
        if newCount == 0, countBefore > 0 { actions.append(.timer(name: "banner", at: nil)) }
        show()
        return actions + follow.advance(input, (waiting + stored).map(\.id))
    }

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let posts: [Bellhop.PostView]
    }

    public var kept: (any Encodable & Sendable)? {
        loading.isLoaded ? Kept(posts: Array(stored.prefix(FeedMachine.keptMax))) : nil
    }

    /// Shows the like or repost of a write that an earlier start made.
    private mutating func wait(for item: OutboxItem) {
        for (place, isLike) in [("likes", true), ("reposts", false)] {
            for (method, isSet) in [("PUT", true), ("DELETE", false)] {
                guard let id = item.match(method, "/v1/posts/*/\(place)/me")?.first else { continue }
                let set = Engagement(liked: isLike ? isSet : nil, reposted: isLike ? nil : isSet)
                pending.append(Pending(name: item.answerName, postId: id, set: set))
            }
        }
    }

    /// Turns `stream:ready` into a refresh once the feed is loaded: posts are only delivered as they are made, so posts
    /// made while the stream was down are fetched.
    private func asked(_ input: FeatureInput<FeedCommand>) -> FeatureInput<FeedCommand> {
        guard case .event(let event) = input, event.name == "stream:ready", loading.isLoaded, loading.isCovered else {
            return input
        }
        return .refresh
    }

    private mutating func take(_ answer: ClassifiedAnswer) {
        let page = answer.page(of: Bellhop.PostView.self)
        let counts = answer.model(Counted.self)
        newest = max(counts?.newest ?? 0, newest ?? 0)
        guard let counted = counts?.newCount else {
            (stored, next, waiting, newCount, isMore) = (page.items, page.next, [], 0, false)
            return
        }
        // New posts of others go behind the banner. The user's own posts, made on another device, show directly.
        let own = page.items.filter { $0.authorId == user }
        let others = page.items.filter { $0.authorId != user }
        let known = Set((stored + waiting).map(\.id))
        let fresh = others.filter { !known.contains($0.id) }
        // The service's count includes posts that are not on the page.
        newCount += fresh.count + max(0, counted - others.count)
        isMore = isMore || counts?.newCountIsMore == true
        stored = FeedMachine.merged(stored, own, FeedMachine.storedMax)
        waiting = FeedMachine.merged(waiting, fresh, FeedMachine.waitingMax)
    }

    private mutating func handle(_ event: FeatureEvent) {
        switch event.typed {
        case .streamReady(let ready): user = user ?? ready.userId
        case .feedNewPost(let new):
            guard !(stored + waiting).contains(where: { $0.id == new.id }) else { return }
            let post = Bellhop.PostView(new)
            newest = newest.map { max($0, post.sequence) }
            if post.authorId == user {
                stored = FeedMachine.merged(stored, [post], FeedMachine.storedMax)
            } else {
                waiting = FeedMachine.merged(waiting, [post], FeedMachine.waitingMax)
                newCount += 1
            }
        case .feedPostRemoved(let removal):
            if waiting.contains(where: { $0.id == removal.postId }) { newCount -= 1 }
            stored.removeAll { $0.id == removal.postId }
            waiting.removeAll { $0.id == removal.postId }
        case .engagementUpdate(let update):
            stored = FeedMachine.counted(stored, update.updates)
            waiting = FeedMachine.counted(waiting, update.updates)
        default: break
        }
    }

    private static func counted(_ posts: [Bellhop.PostView], _ updates: [String: JSON]) -> [Bellhop.PostView] {
        posts.map { post in updates[post.id].flatMap { post.with($0) } ?? post }
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

    private mutating func engage(_ id: String, _ set: Engagement) -> [FeatureAction] {
        guard let post = posts.first(where: { $0.id == id }), !set.isIn(post) else { return [] }
        count += 1
        pending.append(Pending(name: "engage-\(count)", postId: id, set: set))
        let path = "/v1/posts/\(id.pathSegment)/\(set.liked != nil ? "likes" : "reposts")/me"
        let isSet = set.liked ?? set.reposted ?? false
        return [.send(isSet ? "PUT" : "DELETE", path, as: "engage-\(count)")]
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        if name == "more", answer.isTaken {
            let page = answer.page(of: Bellhop.PostView.self)
            stored = FeedMachine.merged(stored, page.items, FeedMachine.storedMax)
            next = stored.count < FeedMachine.storedMax ? page.next : nil
        }
        if name == "anew", answer.isTaken { take(answer) }
        guard let index = pending.firstIndex(where: { $0.name == name }) else { return [] }
        let write = pending.remove(at: index)
        guard answer.isTaken else {
            return [.publish(name: "feed:refused", data: ["postId": .string(write.postId), "problem": answer.problem])]
        }
        let confirmed = answer.body.isNull ? JSON(model: write.set) : answer.body
        stored = FeedMachine.counted(stored, [write.postId: confirmed])
        return []
    }

    /// Overlays the user's unanswered changes on the posts from the service.
    private mutating func show() {
        posts = stored.map { post in
            var shown = post
            for write in pending where write.postId == post.id {
                (shown.liked, shown.reposted) = (write.set.liked ?? shown.liked, write.set.reposted ?? shown.reposted)
            }
            shown.likeCount += (shown.liked ? 1 : 0) - (post.liked ? 1 : 0)
            shown.repostCount += (shown.reposted ? 1 : 0) - (post.reposted ? 1 : 0)
            return shown
        }
        (isLoaded, problem, hasMore) = (loading.isLoaded, loading.problem, next != nil)
    }

    private static func merged(_ posts: [Bellhop.PostView], _ newer: [Bellhop.PostView], _ countMax: Int)
        -> [Bellhop.PostView]
    {
        let ids = Set(newer.map(\.id))
        let all = newer + posts.filter { !ids.contains($0.id) }
        return Array(all.sorted { $0.sequence > $1.sequence }.prefix(countMax))
    }

    public struct Snapshot: Sendable, Hashable {
        /// Newest first.
        public let posts: [Bellhop.PostView]
        /// The number that the banner shows.
        public let newCount: Int
        /// Whether there are more new posts than are counted.
        public let isMore: Bool
        /// Whether there are older posts.
        public let hasMore: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public var snapshot: Snapshot {
        Snapshot(
            posts: posts, newCount: newCount, isMore: isMore, hasMore: hasMore, isLoaded: isLoaded,
            problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey { case user, posts, newCount, isMore, hasMore, isLoaded, problem, pending }
}

/// The subscription to the counts of the posts of a feed, while a screen watches them.
private struct FollowedPosts: Sendable {
    /// Posts whose counts are followed. A screen does not show more.
    private static let countMax = 200

    private var isWatched = false
    private var isForeground = true
    /// The ids in the filter that was put last.
    private var placed: [String] = []
    private var lastEventId: String?
    /// The next filter begins with the changes since this event.
    private var since: String?

    /// A copy for another user, without the positions of the former one.
    var forAnotherUser: FollowedPosts {
        var other = FollowedPosts()
        (other.isWatched, other.isForeground, other.placed) = (isWatched, isForeground, placed)
        return other
    }

    /// - Parameter posts: The ids of the posts of the feed.
    mutating func advance(_ input: FeatureInput<FeedCommand>, _ posts: [String]) -> [FeatureAction] {
        switch input {
        case .event(let event): if !event.id.isEmpty, isWatched { lastEventId = event.id }
        case .watch(let isWatched): self.isWatched = isWatched
        case .lifecycle(let isForeground): self.isForeground = isForeground
        case .answer("tables", 200..<300, _, _): since = nil
        default: break
        }
        let before = placed
        placed = isWatched && isForeground ? posts.prefix(FollowedPosts.countMax).sorted() : []
        guard placed != before else { return [] }
        let missed = since ?? lastEventId
        guard !placed.isEmpty else {
            since = missed
            return [.tables([], lastEventId: nil, as: "tables")]
        }
        let table: JSON = [
            "id": "posts", "schema": "bellhop", "table": "posts", "event": "UPDATE",
            "filter": .string("id=in.(\(placed.joined(separator: ",")))"),
        ]
        // Without a filter, the missed changes are the changes of the next filter.
        return [.tables([table], lastEventId: before.isEmpty ? missed : nil, as: "tables")]
    }
}

extension Bellhop.PostView {
    /// An event to all followers does not carry the reader's own likes, and a new post has no likes yet.
    fileprivate init(_ post: Bellhop.FeedNewPost) {
        self.init(
            id: post.id, authorId: post.authorId, sequence: post.sequence, visibility: post.visibility, text: post.text,
            media: post.media, createdAt: post.createdAt, likeCount: post.likeCount, repostCount: post.repostCount,
            liked: false, reposted: false)
    }
}
