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
    private var list = ListMachine(FeedRules())
    private var waiting: [Bellhop.PostView] = []
    private var newest: Int?
    private var follow = FollowedPosts()

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
    /// If more posts wait behind the banner, the first page is fetched instead of them.
    private static let waitingMax = 50

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
        let path = newest.map { "\(list.path)&since=\($0)" }
        let step = list.advance(asked(input), path: path, now: now)
        var actions = step.actions
        if let answer = step.answer {
            take(answer)
            ListMachine<FeedRules>.applySince(step, to: &self, \.list) { $0.handle($1.event, now: $1.now) }
        }
        switch input {
        case .event(let event): handle(event, now: now)
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        case .restore:
            // Without `newest`, the first answer is the whole first page: likes have changed, and posts were removed.
            if let kept = input.restored(Kept.self) { _ = list.restore(kept.posts) }
        case .timer("banner"), .command(.showNew): actions += showNew()
        case .command(.engage(let id, let set)): actions += engage(id, set, now: now)
        case .command(.more): actions += list.fetchMore()
        default: break
        }
        if newCount > 0, countBefore == 0 {
            actions.append(.timer(name: "banner", at: now + FeedMachine.bannerMilliseconds))
        }
        if newCount == 0, countBefore > 0 { actions.append(.timer(name: "banner", at: nil)) }
        show()
        return actions + follow.advance(input, (waiting + list.stored).map(\.id))
    }

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let posts: [Bellhop.PostView]
    }

    public var kept: (any Encodable & Sendable)? { list.kept.map(Kept.init) }

    /// Turns `stream:ready` into a refresh once the feed is loaded: posts are only delivered as they are made, so posts
    /// made while the stream was down are fetched.
    private func asked(_ input: FeatureInput<FeedCommand>) -> FeatureInput<FeedCommand> {
        guard case .event(let event) = input, event.name == "stream:ready", list.loading.isLoaded,
            list.loading.isCovered
        else {
            return input
        }
        return .refresh
    }

    private mutating func take(_ answer: ClassifiedAnswer) {
        let page = answer.page(of: Bellhop.PostView.self)
        let counts = answer.model(Counted.self)
        newest = max(counts?.newest ?? 0, newest ?? 0)
        guard let counted = counts?.newCount else {
            list.take(page)
            (waiting, newCount, isMore) = ([], 0, false)
            return
        }
        // New posts of others go behind the banner. The user's own posts, made on another device, show directly.
        let own = page.items.filter { $0.authorId == user }
        let others = page.items.filter { $0.authorId != user }
        let known = Set((list.stored + waiting).map(\.id))
        let fresh = others.filter { !known.contains($0.id) }
        // The service's count includes posts that are not on the page.
        newCount += fresh.count + max(0, counted - others.count)
        isMore = isMore || counts?.newCountIsMore == true
        list.merge(own)
        wait(fresh)
    }

    private mutating func handle(_ event: FeatureEvent, now: Int) {
        list.apply(event, now: now)
        switch event.typed {
        case .streamReady(let ready): user = user ?? ready.userId
        case .feedNewPost(let new):
            guard !(list.stored + waiting).contains(where: { $0.id == new.id }) else { return }
            let post = Bellhop.PostView(new)
            newest = newest.map { max($0, post.sequence) }
            if post.authorId == user {
                list.merge([post])
            } else {
                wait([post])
                newCount += 1
            }
        case .feedPostRemoved(let removal):
            if waiting.contains(where: { $0.id == removal.postId }) { newCount -= 1 }
            waiting.removeAll { $0.id == removal.postId }
        case .engagementUpdate(let update):
            waiting = waiting.map { post in update.updates[post.id].flatMap { post.with($0) } ?? post }
        default: break
        }
    }

    /// Puts posts behind the banner.
    private mutating func wait(_ posts: [Bellhop.PostView]) {
        waiting = ListMachine<FeedRules>.merged(waiting, posts, FeedMachine.waitingMax)
    }

    private mutating func showNew() -> [FeatureAction] {
        guard newCount > 0 else { return [] }
        let isWhole = waiting.count == newCount && !isMore
        list.merge(waiting)
        (waiting, newCount, isMore) = ([], 0, false)
        if isWhole { return [] }
        // More posts waited than were kept: the list restarts with the first page, so that it has no gap.
        newest = nil
        return [.fetch(path: list.path, as: "anew")]
    }

    private mutating func engage(_ id: String, _ set: Engagement, now: Int) -> [FeatureAction] {
        guard let post = posts.first(where: { $0.id == id }), !set.isIn(post) else { return [] }
        let isSet = set.liked ?? set.reposted ?? false
        let write = "\(isSet ? "" : "un")\(set.liked != nil ? "like" : "repost")"
        return list.send(write, [id], JSON(model: set), now: now)
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        if list.takeMore(name, answer) { return [] }
        if name == "anew", answer.isTaken { take(answer) }
        return list.settle(name, answer) ?? []
    }

    /// Overlays the user's unanswered changes on the posts from the service.
    private mutating func show() {
        posts = zip(list.shown, list.stored).map { shown, stored in
            var post = shown
            post.likeCount += (shown.liked ? 1 : 0) - (stored.liked ? 1 : 0)
            post.repostCount += (shown.reposted ? 1 : 0) - (stored.reposted ? 1 : 0)
            return post
        }
        (isLoaded, problem, hasMore) = (list.loading.isLoaded, list.loading.problem, list.next != nil)
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

    private enum CodingKeys: CodingKey { case user, posts, newCount, isMore, hasMore, isLoaded, problem, list }
}

/// The commands of the user or the app.
public enum FeedCommand: Sendable, Hashable {
    case more
    /// Shows the posts that wait behind the banner.
    case showNew
    case engage(postId: String, set: FeedMachine.Engagement)
}

private struct FeedRules: ListRules { typealias Data = FeedList }

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
