import Domain
import TestSupport
import Testing
import Values

@Suite(.timed) struct NotificationTests {
    static func notification(
        _ id: String, _ priority: Priority = .normal, seen: Bool = false, read: Bool = false, archived: Bool = false
    ) -> Notification {
        let moment = Timestamp(microseconds: 1)
        var notification = Notification()
        notification.id = ID(id)
        notification.draft.priority = priority
        notification.state = NotificationState(
            seenAt: seen || read || archived ? moment : nil, readAt: read ? moment : nil,
            archivedAt: archived ? moment : nil)
        return notification
    }

    /// R-VIS-NFR-1.4 and R-22: the complete eviction order, first to be evicted first.
    @Test func eviction_takesReadThenSeenThenLowThenOldest_andUnreadHighAndUrgentLast() {
        let order = [
            Self.notification("07", .low, read: true), Self.notification("08", .low, archived: true),
            Self.notification("01", .urgent, read: true), Self.notification("09", .high, read: true),
            Self.notification("10", .low, seen: true), Self.notification("02", .normal, seen: true),
            Self.notification("12", .low), Self.notification("13", .low), Self.notification("03", .normal),
            Self.notification("04", .high), Self.notification("11", .high, seen: true),
            Self.notification("05", .urgent), Self.notification("06", .urgent, seen: true),
        ]
        let ids = order.map(\.id)
        #expect(order.shuffled().sorted { EvictionRule.rank(of: $0) < EvictionRule.rank(of: $1) }.map(\.id) == ids)
    }

    /// R-VIS-FR-1.4, R-VIS-D-3: the complete notification, with its members in the order of the documented example.
    @Test func notification_isWrittenWhole() throws {
        let draft = try NotificationEventTests.draft("visit.created")
        let notification = Notification(
            draft, id: ID("n1"), delivery: Preferences().delivery(of: draft.priority, atMinuteOfDay: 0),
            createdAt: Timestamp(microseconds: 0))
        #expect(
            String(decoding: JSONWriter.bytes(notification), as: UTF8.self) == """
                {"id":"n1","eventId":"e1","userId":"u1","type":"VISIT","category":"visit","priority":"HIGH",\
                "title":"Check-up Scheduled","message":"Your check-up at St. Mary is confirmed",\
                "lockScreen":"You have a new update","data":{"visitId":"v1"},\
                "haptic":{"notification":"warning","impacts":[],"pulses":2},"sound":true,\
                "createdAt":"1970-01-01T00:00:00.000Z","seenAt":null,"readAt":null,"archivedAt":null}
                """)
        #expect(notification.badgeShare == BadgeChange(bell: 1))
    }

    static func draft(_ body: String) throws(Failure) -> NotificationDraft {
        var fields = try Fields(Array(body.utf8))
        let draft = NotificationDraft(reading: &fields)
        try fields.finish()
        return draft
    }

    @Test func draftThatIsNoEvent_isReadWhole() throws {
        let draft = try Self.draft(
            """
            {"userId":"u1","category":"request","priority":"NORMAL","title":"Ann","message":"wants to\\nfollow you",\
            "data":{"from":"u2","n":[1]}}
            """)
        #expect(draft.type.rawValue == "REQUEST")
        #expect(draft.eventId == nil)
        #expect(draft.lockScreen == "You have a new update")
        #expect(draft.data == ["from": .string("u2"), "n": .array([.integer(1)])])
    }

    @Test(arguments: [
        ("{}", ["/userId", "/category", "/priority", "/title", "/message"]),
        (#"{"userId":"u","category":"Visit","priority":"NORMAL","title":"t","message":"m"}"#, ["/category"]),
        (#"{"userId":"u","category":"a b","priority":"NORMAL","title":"t","message":"m"}"#, ["/category"]),
        (#"{"userId":"u","category":"a","priority":"normal","title":"t","message":"m"}"#, ["/priority"]),
        (#"{"userId":"u","category":"a","priority":"LOW","title":"t\n","message":"m"}"#, ["/title"]),
        (#"{"userId":"u","category":"a","priority":"LOW","title":"t","message":""}"#, ["/message"]),
        (#"{"userId":"u","category":"a","priority":"LOW","title":"t","message":"m","type":"visit"}"#, ["/type"]),
        (#"{"userId":"u","category":"a","priority":"LOW","title":"t","message":"m","data":"x"}"#, ["/data"]),
        (#"{"userId":"u","category":"a","priority":"LOW","title":"t","message":"m","id":"a\tb"}"#, ["/id"]),
        (
            #"{"userId":"u","category":"a","priority":"LOW","title":"t","message":"m","lockScreen":"\r"}"#,
            ["/lockScreen"]
        ),
        (#"{"userId":"u","category":"a","priority":"LOW","title":"t","message":"m","seen":true}"#, ["/seen"]),
    ])
    func badDraft_isNamedByItsPointer(_ body: String, _ pointers: [String]) {
        let failure = #expect(throws: Failure.self) { try Self.draft(body) }
        #expect(failure?.fields.map(\.pointer) == pointers)
    }

    @Test func overlongTexts_areRefused() {
        func body(title: Int = 1, message: Int = 1, data: Int = 1) -> String {
            func text(_ count: Int) -> String { String(repeating: "x", count: count) }
            return """
                {"userId":"u","category":"a","priority":"LOW","title":"\(text(title))","message":"\(text(message))",\
                "data":{"k":"\(text(data))"}}
                """
        }
        #expect(throws: Never.self) { try Self.draft(body(title: 200, message: 2000, data: 4096 - 8)) }
        #expect(throws: Failure.self) { try Self.draft(body(title: 201)) }
        #expect(throws: Failure.self) { try Self.draft(body(message: 2001)) }
        #expect(throws: Failure.self) { try Self.draft(body(data: 4097 - 8)) }
    }
}
