import BellhopClient
import TestSupport
import Testing
import Values

/// What a bell keeps and loads beyond its newest state, against the real service.
@MainActor @Suite(.timed, .timeLimit(.minutes(3)))
struct BellOfflineTests {
    private let service: TestService
    private let backend: BellhopClient
    private let ben: BellhopClient

    init() throws {
        service = try TestService.start(at: TestService.morning)
        backend = service.client(as: .service())
        ben = service.client(as: .user("ben"))
    }

    private func notify(_ title: String) async throws {
        // Ids grow with time.
        service.clock.set(.init(microseconds: service.clock.now.microseconds + 1000))
        try await backend.postNotification(
            .init(userId: "ada", category: "news", priority: .high, title: title, message: "M"))
    }

    private func options(_ storage: any ClientStorage) -> Bell.Options {
        var options = Bell.Options()
        (options.storage, options.user) = (storage, "ada")
        return options
    }

    /// R-VIS-NFR-1.4: the last state shows at a start without a network, and the service's after its return.
    @Test func lastState_isReplaced_whenTheNetworkReturns() async throws {
        try await notify("N1")
        let storage = MemoryStorage()
        let first = BellProbe.still(service, as: .user("ada"), options(storage))
        let shown = first.bell.notifications
        try await first.until("the list is loaded") { shown.snapshot.items.count == 1 && first.bell.user != nil }
        try await first.live()
        first.close()
        try await first.until("the state is stored") {
            await storage.keys(beginningWith: "").contains { $0.hasSuffix(" state") }
        }
        try await notify("N2")
        let network = ManualNetwork(isOnline: false)
        var again = options(storage)
        again.network = network
        let (isReady, token) = (Collected<Bool>(), service.token(for: .user("ada")))
        let second = BellProbe(service, token: .init { isReady.all.isEmpty ? nil : token }, again)
        defer { second.close() }
        let notifications = second.bell.notifications
        try await second.until("the last state shows") { !notifications.snapshot.items.isEmpty }
        #expect(notifications.snapshot.items.map(\.title) == ["N1"])
        isReady.append(true)
        network.report(isOnline: true)
        try await second.until("the service's state shows") {
            notifications.snapshot.items.map(\.title) == ["N2", "N1"]
        }
    }

    /// R-VIS-NFR-1.4: older notifications are loaded on demand, and each is there once.
    @Test func olderNotifications_areLoaded_onDemand() async throws {
        for number in 1...60 { try await notify("N\(number)") }
        let ada = BellProbe.still(service, as: .user("ada"))
        defer { ada.close() }
        // A list that is fetched before the stream is live is fetched again, and begins with one page again.
        try await ada.live()
        let notifications = ada.bell.notifications
        try await ada.until("the newest are loaded") { notifications.snapshot.items.count == 50 }
        #expect(notifications.snapshot.hasMore)
        try await notifications.loadMore().answer()
        try await ada.until("all are loaded") { notifications.snapshot.items.count == 60 }
        #expect(!notifications.snapshot.hasMore)
        #expect(notifications.snapshot.items.map(\.title) == (1...60).reversed().map { "N\($0)" })
    }

    /// R-VIS-NFR-1.4: older messages are loaded on demand, and each is there once.
    @Test func earlierMessages_areLoaded_onDemand() async throws {
        let id = try await ben.createConversation(.init(memberIds: ["ada"])).value.id
        for number in 1...60 { try await ben.sendMessage(id: id, .init(text: "\(number)")) }
        let ada = BellProbe.still(service, as: .user("ada"))
        defer { ada.close() }
        try await ada.live()
        let conversation = ada.bell.conversation(id)
        try await ada.until("the newest are loaded") { conversation.snapshot.messages.count == 50 }
        #expect(conversation.snapshot.hasEarlier)
        try await conversation.loadEarlier().answer()
        try await ada.until("all are loaded") { conversation.snapshot.messages.count == 60 }
        #expect(!conversation.snapshot.hasEarlier)
        #expect(conversation.snapshot.messages.map(\.text) == (1...60).map(String.init))
    }

    /// a request shows to both users, and so does its answer.
    @Test func requests_areAskedAndAnswered() async throws {
        let ada = BellProbe.still(service, as: .user("ada"))
        let bo = BellProbe.still(service, as: .user("bo"))
        defer {
            ada.close()
            bo.close()
        }
        let (incoming, outgoing) = (ada.bell.requests(), bo.bell.requests(.outgoing))
        try await ada.live()
        try await bo.live()
        try await bo.until("both are loaded") { incoming.snapshot.isLoaded && outgoing.snapshot.isLoaded }
        try await outgoing.ask(.init(kind: .friend, toUserId: "ada")).answer()
        try await ada.until("the request shows to both") {
            incoming.snapshot.items.count == 1 && outgoing.snapshot.items.count == 1
        }
        try await incoming.markSeen().answer()
        let id = incoming.snapshot.items[0].id
        let accepting = incoming.accept(id)
        #expect(incoming.snapshot.items[0].status == .accepted, "the answer shows before the service confirms it")
        try await accepting.answer()
        try await bo.until("the answer shows") { outgoing.snapshot.items.first?.status == .accepted }
        let problem = await #expect(throws: Bellhop.Problem.self) {
            try await outgoing.ask(.init(kind: .friend, toUserId: "bo")).answer()
        }
        #expect((400..<500).contains(problem?.status ?? 0))
        try await bo.until("the app is informed") { bo.heard("requests:refused").count == 1 }
    }

    /// R-ENG-E-8: the likes of a watched feed are live, and an own like shows in the rows of posts at once.
    @Test func likes_areLive_andOwnOnesShowInRows() async throws {
        let ada = BellProbe.still(service, as: .user("ada"))
        defer { ada.close() }
        try await ada.bell.client.follow(id: "ben", followerId: "me")
        let post = try await ben.createPost(.init(visibility: .public, text: "hello")).value
        let feed = ada.bell.feed
        let reading = Task { for await _ in feed.updates {} }
        defer { reading.cancel() }
        try await ada.live()
        try await ada.until("the post shows") { feed.snapshot.posts.map(\.id) == [post.id] }
        var table = VisibleRowsMachine.Table("posts")
        table.schema = "bellhop"
        let rows = ada.bell.visibleRows(table)
        rows.show([post.id])
        let like = feed.like(post.id)
        #expect(rows.snapshot.rows[post.id]?["likeCount"].int == 1)
        try await like.answer()
        // The service publishes the counts of a post at most once a second.
        service.clock.advance(seconds: 2)
        try await ben.putLike(id: post.id, userId: "me")
        try await ada.until("the other like shows", step: { service.endWindows() }) {
            feed.snapshot.posts.first?.likeCount == 2
        }
        rows.apply(["id": .string(post.id), "likeCount": 7])
        #expect(rows.snapshot.rows[post.id]?["likeCount"].int == 7)
    }

    /// R-VIS-FR-4.2: an app in the background shows a local notification with the text.
    @Test func player_receivesTheText() async throws {
        struct Player: NotificationPlayer {
            let texts = Collected<NotificationText?>()
            func play(haptic _: Bellhop.Haptic?, sound _: Bool, text: NotificationText?) async { texts.append(text) }
        }
        let player = Player()
        var options = Bell.Options()
        options.player = player
        let ada = BellProbe.still(service, as: .user("ada"), options)
        defer { ada.close() }
        let notifications = ada.bell.notifications
        try await ada.live()
        try await ada.until("the list is loaded") { notifications.snapshot.isLoaded }
        try await notify("N1")
        try await ada.until("it is played") { player.texts.all.count == 1 }
        let item = try #require(notifications.snapshot.items.first)
        #expect(
            player.texts.all == [.init(id: item.id, title: "N1", text: "M", lockScreen: item.lockScreen)])
    }
}
