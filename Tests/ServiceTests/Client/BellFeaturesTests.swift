import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

/// Each store of a bell against the real service: its content, and the effects of its commands. R-VIS-FR-4.1 to
/// R-VIS-FR-4.3: a notification plays its haptic pattern.
@MainActor @Suite(.timed, .timeLimit(.minutes(3)))
struct BellFeaturesTests {
    private let service: TestService
    private let backend: BellhopClient
    private let ben: BellhopClient
    private let staff: BellhopClient

    init() throws {
        service = try TestService.start(at: TestService.morning)
        backend = service.client(as: .service())
        ben = service.client("ben")
        staff = service.client(as: .staff(of: "s1"))
    }

    private func notify(_ title: String) async throws {
        service.clock.set(.init(microseconds: service.clock.now.microseconds + 1000))
        try await backend.postNotification(
            .init(userId: "ada", category: "news", priority: .high, title: title, message: "M"))
    }

    private func openShop() async throws {
        try await backend.replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "Europe/Berlin"))
        try await backend.replaceBarber(id: "s1", barberId: "b1", .init(onDuty: true, name: "Bo"))
    }

    /// R-VIS-FR-4.1 to R-VIS-FR-4.3: each notification is played once.
    private struct Player: NotificationPlayer {
        let played = Collected<Bellhop.Haptic?>()
        func play(haptic: Bellhop.Haptic?, sound _: Bool, text _: NotificationText?) async { played.append(haptic) }
    }

    @Test func notifications_areShown_changed_andPlayedOnce() async throws {
        let player = Player()
        var options = Bell.Options()
        options.player = player
        let ada = BellProbe.still(service, as: .user("ada"), options)
        defer { ada.close() }
        // Waits for the stream first. Otherwise the list is fetched again when the stream opens, and fetched
        // notifications do not ring.
        try await ada.live()
        let (notifications, badges) = (ada.bell.notifications, ada.bell.badges)
        try await ada.until("the list is loaded") { notifications.snapshot.isLoaded }
        for number in 1...3 { try await notify("N\(number)") }
        try await ada.until("three are shown") { notifications.snapshot.items.count == 3 && badges.snapshot?.bell == 3 }
        let newest = notifications.snapshot.items[0]
        let command = notifications.markRead(newest.id)
        #expect(notifications.snapshot.items[0].readAt != nil, "the state changes before the answer arrives")
        #expect(try await command.answer()?.status == 200)
        try await ada.until("the unread count decreases") { badges.snapshot?.bell == 2 }
        #expect(try await notifications.markRead(newest.id).answer() == nil, "nothing needs to be sent")
        try await notifications.markAllSeen().answer()
        try await notifications.remove(newest.id).answer()
        #expect(notifications.snapshot.items.map(\.title) == ["N2", "N1"])
        try await ada.until("no notification is unread") { badges.snapshot?.bell == 0 }
        try await notifications.setPreferences(.init(sound: false)).answer()
        #expect(notifications.snapshot.preferences?.sound == false)
        try await ada.until("all notifications are played") { player.played.all.count == 3 }
        let problem = await #expect(throws: Bellhop.Problem.self) {
            try await notifications.setPreferences(.init(timeZone: "nowhere")).answer()
        }
        #expect(problem?.status == 422)
        try await ada.until("the app is informed") { ada.heard("notifications:refused").count == 1 }
        #expect(notifications.snapshot.preferences?.timeZone == "UTC", "the refused change is reverted")
    }

    @Test func updates_haveEachChange_andObserversSeeIt() async throws {
        let ada = BellProbe.still(service, as: .user("ada"))
        defer { ada.close() }
        var updates = ada.bell.badges.updates.makeAsyncIterator()
        let observed = Observed(ada.bell.notifications)
        let connection = ObservedConnection(ada.bell)
        try await ada.live()
        try await notify("N1")
        while let counts = await updates.next() {
            if counts?.bell == 1 { break }
        }
        try await ada.until("the observer sees the notification") { observed.items.map(\.title) == ["N1"] }
        try await ada.until("the observer sees the connection") { connection.connection.status == .live }
        ada.bell.close()
        while await updates.next() != nil {}
    }

    @Test func conversations_goBackAndForth() async throws {
        let made = try await ben.createConversation(.init(memberIds: ["ada"], title: "Trip"))
        let ada = BellProbe.still(service, as: .user("ada"))
        defer { ada.close() }
        let (list, talk, badges) = (ada.bell.conversations, ada.bell.conversation(made.value.id), ada.bell.badges)
        try await ada.until("the conversation is loaded") { list.snapshot.items.count == 1 && talk.snapshot.isLoaded }
        try await ada.live()
        try await ben.sendMessage(id: made.value.id, .init(text: "Hello"))
        try await ada.until("the message is shown in every store") {
            talk.snapshot.messages.map(\.text) == ["Hello"] && badges.snapshot?.messages == 1
                && list.snapshot.items[0].conversation.lastMessage?.preview == "Hello"
        }
        try await talk.markRead().answer()
        try await ada.until("no message is unread") { badges.snapshot?.messages == 0 && talk.snapshot.unread == 0 }
        let sent = try talk.send("Hello yourself")
        #expect(talk.snapshot.sending.map(\.text) == ["Hello yourself"])
        #expect(list.snapshot.items[0].isSending)
        #expect(list.snapshot.items[0].conversation.lastMessage?.preview == "Hello yourself")
        try await sent.answer()
        #expect(throws: Bellhop.UnusableParameter.self) { try talk.send(" ") }
        try await ada.until("both are sent") { talk.snapshot.messages.count == 2 && !list.snapshot.items[0].isSending }
        try await backend.removeMember(id: made.value.id, userId: "ada")
        let refused = try talk.send("Are you there?", id: "m3")
        await #expect(throws: Bellhop.Problem.self) { try await refused.answer() }
        try await ada.until("the refused message waits for the user") { talk.snapshot.refused.count == 1 }
        talk.discard("m3")
        #expect(talk.snapshot.refused.isEmpty)
    }

    @Test func shop_itsQueueBookingsAndMusic() async throws {
        try await openShop()
        let ada = BellProbe.still(service, as: .user("ada"))
        defer { ada.close() }
        let (queue, dj) = (ada.bell.queue("s1"), ada.bell.dj("s1"))
        try await ada.until("both are loaded") { queue.snapshot.status != nil && dj.snapshot.isLoaded }
        try await ada.until("both topics are subscribed to") {
            ada.bell.connection.status == .live && queue.snapshot.isLive && dj.snapshot.isLive
        }
        try await staff.addWalkIn(id: "s1", .init(service: "cut", customerName: "Cy"))
        try await ada.until("the queue grows", step: { service.clock.advance(seconds: 1) }) {
            queue.snapshot.status?.queueLength == 1
        }
        let start = Date(timeIntervalSince1970: Double(service.clock.now.seconds + 7200))
        let made = try await ada.bell.client.createBooking(
            .init(shopId: "s1", barberId: "b1", service: "cut", scheduledStart: start, durationMinutes: 30))
        let booking = ada.bell.booking(made.value.id)
        try await ada.until("the booking is shown") { booking.snapshot.booking?.status == .pending }
        try await staff.changeBooking(
            id: made.value.id, ifMatch: made.value.versionTag, .init(status: .confirmed))
        try await ada.until("the booking is confirmed") { booking.snapshot.booking?.status == .confirmed }
        try await booking.cancel().answer()
        #expect(booking.snapshot.booking?.status == .cancelled)
        try await staff.replaceDJSession(id: "s1", .init(isActive: true))
        try await ada.until("the session is active") { dj.snapshot.queue.isActive }
        try await ada.bell.client.showPresence(id: "s1")
        try await dj.add(.init(trackId: "t1", trackName: "Song", artistName: "Artist")).answer()
        try await ada.until("the track is listed") { dj.snapshot.queue.tracks.count == 1 }
        let before = dj.snapshot.queue.tracks[0].vote
        try await dj.vote(before == .up ? .down : .up, on: "t1").answer()
        #expect(dj.snapshot.queue.tracks[0].vote != before)
    }

    @Test func bell_showsBoardAndFeed() async throws {
        let day = Date(timeIntervalSince1970: Double(service.clock.now.seconds))
        try await backend.replaceChallenge(
            id: "c1",
            .init(name: "Laps", startsAt: day, endsAt: day.addingTimeInterval(86_400), mode: .add))
        let ada = BellProbe.still(service, as: .user("ada"))
        defer { ada.close() }
        let (board, feed) = (ada.bell.leaderboard("c1"), ada.bell.feed)
        try await ada.bell.client.follow(id: "ben", followerId: "me")
        try await ada.until("the board and the feed are loaded") { board.snapshot.isLive && feed.snapshot.isLoaded }
        try await backend.addScore(id: "c1", .init(userId: "ada", score: 7), idempotencyKey: "k1")
        try await backend.addScore(id: "c1", .init(userId: "ben", score: 9), idempotencyKey: "k2")
        try await ada.until("both users are on the board", step: { service.clock.advance(seconds: 1) }) {
            board.snapshot.lines.map(\.userId) == ["ben", "ada"] && board.snapshot.me?.rank == 2
        }
        let post = try await ben.createPost(.init(visibility: .followers, text: "hello")).value
        try await ada.until("the banner counts the new post") { feed.snapshot.newCount == 1 }
        feed.showNew()
        #expect(feed.snapshot.posts.map(\.text) == ["hello"])
        let like = feed.like(post.id)
        #expect(feed.snapshot.posts[0].liked && feed.snapshot.posts[0].likeCount == 1)
        try await like.answer()
        try await feed.unlike(post.id).answer()
        #expect(feed.snapshot.posts[0].likeCount == 0)
    }

    private struct Line: Codable, Hashable {
        let id: String
        let text: String
        var likeCount: Int?
    }

    @Test func rowsByFilter_areDecoded_andTakeWhatTheAppHasFetched() async throws {
        let ada = BellProbe.still(service, as: .user("ada"))
        defer { ada.close() }
        var query = RowsMachine.Query("posts", filter: "author_id=eq.ben")
        query.schema = "bellhop"
        let rows = ada.bell.rows(query)
        #expect(rows === ada.bell.rows(query))
        let post = try await ben.createPost(.init(visibility: .public, text: "hello")).value
        try rows.load([Line(id: post.id, text: "from the app's backend")])
        let reading = Task { for await _ in rows.updates {} }
        defer { reading.cancel() }
        try await ada.live()
        try await ada.until("the filter is active") { rows.snapshot.isLive }
        try await ben.putLike(id: post.id, userId: "me")
        try await ada.until("the count is shown", step: { service.endWindows() }) {
            try rows.snapshot.decode(as: Line.self) == [Line(id: post.id, text: "from the app's backend", likeCount: 1)]
        }
        #expect(throws: DecodingError.self) { try rows.snapshot.decode(as: [Int].self) }
    }

    @Test func queriesAndRows_areKeptUpToDate() async throws {
        let post = try await ben.createPost(.init(visibility: .public, text: "hello")).value
        let ada = BellProbe.still(service, as: .user("ada"))
        defer { ada.close() }
        var table = VisibleRowsMachine.Table("posts")
        table.schema = "bellhop"
        table.select = ["like_count"]
        let rows = ada.bell.visibleRows(table)
        let reasons = Collected<String>()
        let query = ada.bell.invalidation.watch(["posts"]) { reasons.append($0) }
        try await ada.live()
        try await ada.until("missed changes are fetched") { reasons.all.contains("stream:ready") }
        rows.show([post.id])
        try await ada.until("the subscription is active") { rows.snapshot.isLive }
        try await ben.putLike(id: post.id, userId: "me")
        try await ada.until("the count is shown", step: { service.endWindows() }) {
            rows.snapshot.rows[post.id]?["like_count"].int == 1 || rows.snapshot.rows[post.id]?["likeCount"].int == 1
        }
        let count = reasons.all.count
        ada.bell.invalidation.refetch(["posts"])
        try await ada.until("the manual refresh is performed") { reasons.all.count == count + 1 }
        query.stop()
        ada.bell.invalidation.refetch(["posts"])
        #expect(reasons.all.count == count + 1)
        let topics = try ada.bell.subscribe(["queue:s1"])
        try await ada.until("the topic is added") { ada.bell.connection.topics.contains("queue:s1") }
        topics.cancel()
        try await ada.until("the topic is removed") { !ada.bell.connection.topics.contains("queue:s1") }
        #expect(throws: Bellhop.UnusableParameter.self) { try ada.bell.subscribe(["a,b"]) }
    }
}
