import BellhopClient
import Foundation
import TestSupport
import Testing

/// Calls each family of the client's methods once, as an app does, against the real service.
@Suite(.timed) struct TypedClientTests {
    let service: TestService
    let backend: BellhopClient
    let ada: BellhopClient
    let ben: BellhopClient
    let staff: BellhopClient

    init() throws {
        service = try TestService.start(at: "2026-01-10T08:00:00Z")
        backend = service.client(as: .service())
        ada = service.client("ada")
        ben = service.client("ben")
        staff = service.client(as: .staff(of: "s1"))
    }

    private func date(_ text: String) throws -> Date { try Date(text, strategy: .iso8601) }

    private func openShop() async throws {
        let shop = try await backend.replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "Europe/Berlin"))
        #expect(shop.status == 201)
        #expect(shop.value.name == "The Cut Club")
        let barber = try await backend.replaceBarber(id: "s1", barberId: "b1", .init(onDuty: true, name: "Bo"))
        #expect(barber.value.onDuty)
    }

    @Test func unchangedCounts_areNotTransferred() async throws {
        let first = try await ada.getBadges()
        let etag = try #require(first.etag)
        #expect(first.value.total == 0)
        #expect(first.pollInterval != nil)
        #expect(try await ada.getBadges(ifNoneMatch: etag) == nil)
        try await backend.postNotification(
            .init(userId: "ada", category: "news", priority: .high, title: "T", message: "M", data: ["k": [1, nil]]))
        let second = try #require(try await ada.getBadges(include: .conversations, ifNoneMatch: etag))
        #expect(second.value.bell == 1)
        #expect(second.value.conversations == [])
        #expect(second.value.epoch == first.value.epoch)
    }

    @Test func notifications_areListedPageByPage_andChanged() async throws {
        for number in 0..<5 {
            try await backend.postNotification(
                .init(userId: "ada", category: "news", priority: .normal, title: "N\(number)", message: "M"))
        }
        var pages: [[String]] = []
        for try await page in ada.notificationPages(limit: 2) { pages.append(page.value.items.map(\.title)) }
        #expect(pages == [["N4", "N3"], ["N2", "N1"], ["N0"]])
        let list = try await ada.listNotifications(limit: 1)
        let newest = try #require(list.value.items.first)
        #expect(list.eventPosition != nil)
        let seen = try await ada.changeNotification(id: newest.id, .init(seen: true)).value
        #expect(seen.badges.bell == 4)
        #expect(seen.notification.seenAt != nil)
        #expect(try await ada.changeNotifications(.init(upTo: newest.id, set: .init(read: true))).value.changed == 5)
        #expect(try await ada.deleteNotification(id: newest.id).value.badges.bell == 0)
        let gone = await #expect(throws: Bellhop.Problem.self) { try await ada.getNotification(id: newest.id) }
        #expect(gone?.code == .notFound)
        let event = try await backend.postEvent(
            .init(id: "e1", type: .visitCreated, userId: "ada", data: .init(visitType: "Check-up", hospital: "H")))
        #expect(event.value.notification?.priority == .high)
        #expect(event.value.notification?.haptic?.notification == .warning)
    }

    @Test func preferences_areReplaced() async throws {
        let hours = Bellhop.QuietHours(start: "22:00", end: "06:30")
        try await ada.replacePreferences(.init(sound: false, quietHours: hours, timeZone: "Europe/Berlin"))
        let found = try await ada.getPreferences().value
        #expect(!found.sound && found.haptics)
        #expect(found.quietHours == hours)
    }

    @Test func conversations_andRequests_goBackAndForth() async throws {
        let made = try await ada.createConversation(.init(memberIds: ["ben"], title: "Trip"))
        #expect(made.status == 201)
        #expect(made.location?.hasSuffix(made.value.id) == true)
        #expect(made.value.kind == .group)
        let id = made.value.id
        let first = try await ada.sendMessage(id: id, .init(text: "See you at nine."), idempotencyKey: "k1")
        #expect(!first.isReplayed)
        let again = try await ada.sendMessage(id: id, .init(text: "See you at nine."), idempotencyKey: "k1")
        #expect(again.isReplayed)
        #expect(again.value == first.value)
        #expect(try await ben.getConversation(id: id).value.unread == 1)
        #expect(try await ben.readConversation(id: id, .init(sequence: 1)).value.badges.messages == 0)
        var texts: [String] = []
        for try await message in ben.messagePages(id: id, since: 0).items { texts.append(message.text) }
        #expect(texts == ["See you at nine."])
        #expect(try await ada.changeConversation(id: id, .init(title: nil)).value.title == nil)
        #expect(try await ben.removeMember(id: id, userId: "me").value.badges.messages == 0)

        let asked = try await ada.createRequest(.init(kind: .friend, toUserId: "ben"))
        #expect(asked.value.request.status == .open)
        #expect(try await ben.listRequests(direction: .incoming).value.items.map(\.id) == [asked.value.request.id])
        #expect(try await ben.seeRequests(.init(seenUpTo: asked.value.request.id)).value.changed == 1)
        let answer = try await ben.answerRequest(id: asked.value.request.id, .init(status: .accepted))
        #expect(answer.value.request.answeredAt != nil)
    }

    @Test func bookings_guardTheirVersions_andTheQueueMoves() async throws {
        try await openShop()
        let start = try date("2026-01-10T09:00:00Z")
        let made = try await ada.createBooking(
            .init(shopId: "s1", barberId: "b1", service: "cut", scheduledStart: start, durationMinutes: 30))
        #expect(made.value.scheduledStart == start)
        let id = made.value.id
        let etag = try #require(made.etag)
        let confirmed = try await staff.changeBooking(id: id, ifMatch: etag, .init(status: .confirmed))
        #expect(confirmed.value.status == .confirmed)
        #expect(try await ada.getBooking(id: id, ifNoneMatch: try #require(confirmed.etag)) != nil, "foreign tag")
        let stale = await #expect(throws: Bellhop.Problem.self) {
            try await staff.changeBooking(id: id, ifMatch: etag, .init(status: .cancelled))
        }
        #expect(stale?.status == 412)
        #expect(stale?.code == .preconditionStale)
        let listed = try #require(try await ada.listBookings(shopId: "s1", day: "2026-01-10").value.items.first)
        let wrong = await #expect(throws: Bellhop.Problem.self) {
            try await staff.changeBooking(id: id, ifMatch: listed.versionTag, .init(status: .completed))
        }
        #expect(wrong?.code == .bookingInvalidTransition)
        #expect(wrong?.allowed.isEmpty == false)
        #expect(try await ada.getBookingHistory(id: id).value.items.map(\.to).contains(.confirmed))
        let walkIn = try await staff.addWalkIn(id: "s1", .init(service: "cut", customerName: "Cy"))
        #expect(walkIn.value.source == .walkIn)
        #expect(try await ada.getQueue(id: "s1").value.state == .open)
        #expect(try await staff.listQueueEntries(id: "s1").value.items.isEmpty == false)
        #expect(try await staff.getQueueAccuracy(id: "s1").value.overall.n == 0)
        #expect(try await ada.listBarbers(id: "s1").value.items.map(\.id) == ["b1"])
        #expect(try await ada.shopPages().items.first { _ in true }?.id == "s1")
    }

    @Test func music_isChosenByPresentGuests() async throws {
        try await openShop()
        #expect(try await staff.replaceDJSession(id: "s1", .init(isActive: true)).value.isActive)
        let absent = await #expect(throws: Bellhop.Problem.self) {
            try await ada.addTrack(id: "s1", .init(trackId: "t1", trackName: "Song", artistName: "Artist"))
        }
        #expect(absent?.code == .djNotPresent)
        #expect(try await ada.showPresence(id: "s1").value.isPresent)
        try await ada.addTrack(id: "s1", .init(trackId: "t1", trackName: "Song", artistName: "Artist"))
        let vote = try await ada.voteOnTrack(id: "s1", trackId: "t1", .init(vote: .down))
        #expect(vote.value.userVote == .down)
        #expect(try await staff.playNextTrack(id: "s1").value.currentTrack?.trackName == "Song")
        #expect(try await staff.playTrack(id: "s1", .init(trackId: nil)).value.currentTrack == nil)
        let session = try await ada.getDJSession(id: "s1")
        #expect(try await ada.getDJSession(id: "s1", ifNoneMatch: try #require(session.etag)) == nil)
        #expect(try await ada.endPresence(id: "s1").status == 204)
        #expect(try await staff.getPresenceRule(id: "s1").value.codeRequired == false)
    }

    @Test func challenges_postsAndFollowers() async throws {
        try await backend.replaceChallenge(
            id: "c1",
            .init(name: "C", startsAt: date("2026-01-01T00:00:00Z"), endsAt: date("2026-02-01T00:00:00Z"), mode: .add))
        let score = try await backend.addScore(id: "c1", .init(userId: "ada", score: 7), idempotencyKey: "k1")
        #expect(score.value.rank == 1)
        let board = try await ada.getLeaderboard(id: "c1", around: .me)
        #expect(board.value.me?.score == 7)
        #expect(try await backend.withdrawScore(id: "c1", userId: "ada").status == 204)

        try await ben.follow(id: "ada", followerId: "me")
        let post = try await ada.createPost(.init(visibility: .followers, text: "hello")).value
        let feed = try await ben.getFeed()
        #expect(feed.value.items.map(\.id) == [post.id])
        #expect(try await ben.getFeed(ifNoneMatch: try #require(feed.etag)) == nil)
        #expect(try await ben.feedPages(limit: 1).items.first { _ in true }?.text == "hello")
        #expect(try await ben.putLike(id: post.id, userId: "me").value.likeCount == 1)
        #expect(try await ben.deleteLike(id: post.id, userId: "me").value?.likeCount == 0)
        #expect(try await ada.getUser(id: "me").value.followerCount == 1)
        #expect(try await ada.deletePost(id: post.id).status == 204)
    }

    @Test func streams_areDescribedAndChanged() async throws {
        let position = try #require(try await ada.getBadges().eventPosition)
        try await backend.postNotification(
            .init(userId: "ada", category: "news", priority: .low, title: "Behind it", message: "M"))
        let stream = StreamListener(ada.events(lastEventID: position))
        guard case .streamReady(let ready) = try await stream.next("stream:ready").typed else {
            Issue.record("the first event is not stream:ready")
            return
        }
        #expect(ready.userId == "ada")
        guard case .notificationCreated(let missed) = try await stream.next("notification:created").typed else {
            Issue.record("no event after the position arrived")
            return
        }
        #expect(missed.title == "Behind it")
        let wanted = try await ada.replaceSubscriptions(id: ready.streamId, .init(topics: ["queue:s1"])).value
        #expect(wanted.topics.contains("queue:s1"))
        #expect(try await ada.getSubscriptions(id: ready.streamId).value == wanted)
        #expect(try await ada.createStreamTicket().value.ticket.isEmpty == false)
        stream.close()
        let why = try await backend.explain(
            .init(eventId: try #require(stream.received.last).id, claims: ["sub": "ada", "exp": 4_000_000_000]))
        #expect(why.value.event.name == "notification:created")
        try await backend.revoke(.sessionId(.init(sessionId: "of-yesterday")))
    }

    @Test func serviceInfo_andProblems_areTyped() async throws {
        #expect(try await ada.getMe().value.userId == "ada")
        let config = try await ada.getConfig()
        #expect(config.value.polling.connectedSeconds == 10)
        #expect(try await ada.getConfig(ifNoneMatch: try #require(config.etag)) == nil)
        let invalid = await #expect(throws: Bellhop.Problem.self) {
            try await backend.postNotification(
                .init(userId: "ada", category: "news", priority: .init(rawValue: "COSMIC"), title: "", message: "M"))
        }
        #expect(invalid?.code == .requestInvalid)
        #expect(invalid?.errors.map(\.pointer).contains("/priority") == true)
        #expect(invalid?.requestID != nil)
        let nobody = service.anyone
        let unknown = await #expect(throws: Bellhop.Problem.self) { try await nobody.getBadges() }
        #expect(unknown?.code == .unauthenticated)
        let accepted = try await backend.takeChanges([
            "type": "INSERT", "table": "nobody_declared_it", "schema": "public", "record": ["id": 1],
            "old_record": nil,
        ])
        #expect(accepted.status == 202)
    }
}
