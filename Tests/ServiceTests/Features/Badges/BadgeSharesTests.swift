import BellhopClient
import Database
import Domain
import Logging
import TestSupport
import Testing
import Values

@testable import Service

/// Shares of the badges whose features are off: they are hidden wherever counts are shown, they stay exact, and they
/// come back.
@Suite(.timed) struct BadgeSharesTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    /// Gives ben two messages, one request and three notifications that count for the bell.
    private static func fill(_ service: TestService) async throws -> String {
        let id = try await service.converse("ana", "ben")
        for text in ["one", "two"] { try await service.send(text, to: id, as: "ana") }
        _ = try await service.ask(.init(kind: .friend, toUserId: "ben", fromName: "Ana"), as: "ana")
        for number in 1...3 { try await service.publish("e\(number)", to: "ben") }
        return id
    }

    private static func shown(_ counts: [Int], hiding bits: Int) -> [Int] {
        let shown = counts.indices.map { bits & (1 << $0) == 0 ? counts[$0] : 0 }
        return shown + [shown.reduce(0, +)]
    }

    // MARK: What is shown

    @Test(arguments: 1..<8)
    func hiddenShares_areLeftOutEverywhere_andComeBack(_ bits: Int) async throws {
        let conversation = try await Self.fill(service)
        let before = try await service.client("ben").getBadges().value
        try await service.restart(hiding: BadgeShares(rawValue: bits))
        try await service.expectWalk(to: bits)
        let hidden = try await service.client("ben").getBadges(include: .conversations).value
        #expect(try await service.badges(of: "ben") == Self.shown([2, 1, 3], hiding: bits))
        #expect(hidden.version == before.version + 1)
        // The parts add up to the badge, with the same version.
        #expect(hidden.conversations?.map(\.unread) == (bits & 1 == 0 ? [2] : []))
        #expect(try await service.listen(as: .user("ben")).ready.json["badges"]["total"].int == hidden.total)
        #expect(try service.audit() == [])

        // What is hidden goes on being counted.
        try await service.send("three", to: conversation, as: "ana")
        let id = try await service.publish(NotificationsTests.event("e4", to: "ben")).notificationID
        #expect(try await service.badges(of: "ben") == Self.shown([3, 1, 4], hiding: bits))
        let read = try await service.client("ben").changeNotifications(
            .init(upTo: id, category: "visit", set: .init(seen: true)))
        #expect(read.value.badges.total == (bits & 1 == 0 ? 3 : 0) + (bits & 2 == 0 ? 1 : 0))
        #expect(try service.audit() == [])

        let last = try await service.client("ben").getBadges().value.version
        try await service.restart(hiding: [])
        try await service.expectWalk(to: 0)
        #expect(try await service.badges(of: "ben") == [3, 1, 0, 4])
        // Only a count that comes back is a change: the bell is empty.
        let version = try await service.client("ben").getBadges().value.version
        #expect(version == last + (bits & 3 == 0 ? 0 : 1))
        #expect(try service.audit() == [])
    }

    /// A user's first row hides what the process hides, whichever statement writes it.
    @Test func newUsers_beginWithTheHiddenShares() async throws {
        try await service.restart(hiding: [.messages, .bell])
        let id = try await service.converse("ana", "ben", "cem", "dan")
        try await service.send("hello", to: id, as: "ana")
        try await service.publish("e1", to: "eve")
        _ = try await service.ask(.init(kind: .friend, toUserId: "eve", fromName: "Ana"), as: "ana")
        #expect(try await service.badges(of: "cem") == [0, 0, 0, 0])
        #expect(try await service.badges(of: "eve") == [0, 1, 0, 1])
        let rows = try service.badgeRows()
        #expect(rows.keys.sorted() == ["default/ben", "default/cem", "default/dan", "default/eve"])
        #expect(rows.values.allSatisfy { $0.hidden == 5 })
        try await service.restart(hiding: [])
        try await service.expectWalk(to: 0)
        #expect(try await service.badges(of: "cem") == [1, 0, 0, 1])
        #expect(try await service.badges(of: "eve") == [0, 1, 1, 2])
    }

    /// A walk is like every other change: an event with the counts of the next GET, and the number on the devices.
    @Test func walk_isHeardByStreamsAndDevices() async throws {
        let probe = try PushProbe()
        let service = probe.service
        for number in 1...2 { try await service.publish("e\(number)", to: "ada") }
        _ = try await service.ask(.init(kind: .friend, toUserId: "ada", fromName: "Ana"), as: "ana")
        try await probe.register("phone")
        let stream = try await service.listen(as: .user("ada"))
        let calm = try await service.listen(as: .user("calm"))
        try await service.walk(hiding: .bell)
        let update = try await stream.next("badges:update").json
        let got = try await service.call("GET", "/v1/badges", as: .user("ada")).json
        #expect(update == got && got["total"] == 1)
        let sent = try await probe.messages(1, advancing: 1)
        #expect(sent.map(\.summary) == ["badge \(PushProbe.token("phone"))"] && sent.map(\.badge) == [1])
        // A poll with the old version gets the new counts.
        #expect(got["version"].int == stream.ready.json["badges"]["version"].int.map { $0 + 1 })
        try await service.walk(hiding: .messages)
        #expect(try await stream.next("badges:update").json["total"] == 3)
        // There are no messages to hide, so nothing changes for anybody.
        try await service.publish("end", to: "calm")
        _ = try await calm.next("notification:created")
        #expect(!calm.received.dropLast().contains { $0.name == "badges:update" })
    }

    // MARK: The check

    /// `bellhop check` finds a wrong number in each share, shown or hidden, and of a user without counts.
    @Test(arguments: BadgeShare.allCases, [BadgeShares(), [.messages, .requests, .bell]])
    func plantedDifference_isFound(_ share: BadgeShare, _ hidden: BadgeShares) async throws {
        _ = try await Self.fill(service)
        try await service.walk(hiding: hidden)
        #expect(try service.audit() == [])
        let column = SQL(unchecked: share.column)
        let count = BadgeChange(messages: 2, requests: 1, bell: 3)[share]
        let why = Unscoped.audit("a test corrupts stored rows")
        try await service.app.store.write { db in
            _ = try db.run("UPDATE \(BadgeLedger.badges, unscoped: why) SET \(column) = 7 WHERE user_id = 'ben'")
        }
        let sentence = "default/ben: the stored number of \(share.column) is"
        #expect(try service.audit() == ["\(sentence) 7, but the actual value is \(count)"])
        try await service.app.store.write { db in
            _ = try db.run("DELETE FROM \(BadgeLedger.badges, unscoped: why)")
        }
        #expect(try service.audit().contains("\(sentence) 0, but the actual value is \(count)"))
    }

    /// An export has the stored counts of a user, and an erasure deletes them, whatever is hidden.
    @Test func exportAndErasure_includeHiddenShares() async throws {
        _ = try await Self.fill(service)
        try await service.walk(hiding: [.messages, .requests, .bell])
        let backend = TestService.Identity.service()
        let export = try await service.call("GET", "/v1/users/ben/export", as: backend).text
        #expect(export.contains(#""messages":2,"requests":1,"bell":3"#), "\(export)")
        service.clock.advance(seconds: 1)
        #expect(try await service.call("DELETE", "/v1/users/ben", as: backend).status == 202)
        try await eventually("the erasure ends", step: { service.clock.advance(seconds: 1) }) {
            try await service.call("GET", "/v1/users/ben/erasure", as: backend).json["state"].string == "done"
        }
        #expect(try service.badgeRows()["default/ben"] == nil)
        #expect(try service.audit() == [])
    }
}

/// A row of the stored counts.
struct BadgeRow: Equatable {
    var counts: [Int]
    var version: Int
    var hidden: Int
}

extension Logger {
    static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}

extension TestService {
    /// Returns the stored counts by `tenant/user`.
    func badgeRows() throws -> [String: BadgeRow] {
        let rows = try app.store.read { db in
            try db.rows(
                """
                SELECT tenant || '/' || user_id, messages, requests, bell, version, hidden
                FROM \(BadgeLedger.badges, unscoped: .audit("a test reads the rows of all users"))
                """
            ) { row in
                let numbers = try (1...5).map { try row.integer($0) }
                return (
                    try row.text(0), BadgeRow(counts: Array(numbers[..<3]), version: numbers[3], hidden: numbers[4])
                )
            }
        }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    /// Waits until all rows hide these shares.
    func expectWalk(to bits: Int) async throws {
        try await eventually("all rows hide \(bits)", step: { clock.advance(seconds: 1) }) {
            try badgeRows().values.allSatisfy { $0.hidden == bits }
        }
    }

    /// Waits until the service's own walk, which begins at its start, is no longer under way: it would undo another's.
    func restWalk() async throws { try await eventually("the walk of the start has ended") { app.shareWalk.isResting } }

    /// Walks over all badges at once.
    func walk(hiding hidden: BadgeShares) async throws {
        try await restWalk()
        let walk = ShareWalk(hiding: hidden, logger: .silent)
        while try walk.step(app.runner) {}
    }
}
