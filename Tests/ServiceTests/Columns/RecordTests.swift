import Database
import Domain
import TestSupport
import Testing
import Values

@testable import Service

/// Records, whose one declaration gives their columns, their reader, their values and their JSON.
@Suite(.timed) struct RecordTests {
    private static func row<Value>(_ values: SQL, _ map: (Row) throws -> Value) throws -> Value? {
        let directory = try TemporaryDirectory()
        let database = TestDatabase(url: "sqlite:\(directory.file("test.sqlite"))", name: nil)
        let service = try TestService.start(on: database, in: directory, at: "2026-01-10T09:00:00Z")
        return try service.app.store.read { try $0.row("SELECT \(values)", map) }
    }

    private static var notification: Notification {
        var draft = Notification().draft
        draft.userId = "u1"
        draft.eventId = "e1"
        (draft.type, draft.category, draft.priority) = (.visit, .visit, .urgent)
        (draft.title, draft.message, draft.lockScreen) = ("Title", "Message", "Lock screen")
        draft.data = ["visitId": .string("v1")]
        draft.requestId = "r1"
        var notification = Notification(
            draft, id: "n1", delivery: Delivery(sounds: true, vibrates: false), createdAt: Timestamp(microseconds: 5))
        notification.state = NotificationState(
            seenAt: Timestamp(microseconds: 6), readAt: Timestamp(microseconds: 7),
            archivedAt: Timestamp(microseconds: 8))
        return notification
    }

    @Test func record_isReadAsItWasWritten() throws {
        #expect(try Self.row(Self.notification.values, Notification.init(row:)) == Self.notification)
        let empty = Notification(
            Notification().draft, id: "", delivery: Delivery(sounds: false, vibrates: true),
            createdAt: Timestamp(microseconds: 0))
        #expect(try Self.row(empty.values, Notification.init(row:)) == empty)
    }

    @Test func columns_areNamedAfterMembers_inTheirOrder() {
        #expect(
            Notification.columns().text == """
                id, event_id, user_id, type, category, priority, title, message, lock_screen, data, request_id, sounds, \
                vibrates, created_at, seen_at, read_at, archived_at
                """)
        #expect(Shop.columns(of: "s").text == "s.shop_id, s.name, s.time_zone, s.created_at, s.updated_at")
        #expect(
            Shop.replacement(keeping: ["shop_id", "created_at"]).text == """
                name = excluded.name, time_zone = excluded.time_zone, updated_at = excluded.updated_at
                """)
    }

    /// The text is the key of the prepared statement.
    @Test func values_haveOneText_forAllRecords() {
        #expect(Notification().values.text == Self.notification.values.text)
        #expect(Self.notification.values.binds.count == Notification.columnNames.count)
    }

    @Test func unknownWord_isAnError() throws {
        var binds = Self.notification.values.binds
        binds[3] = .text("no type")
        let values = SQL(unchecked: Self.notification.values.text, binds: binds)
        let error = #expect(throws: DatabaseError.self) { try Self.row(values, Notification.init(row:)) }
        #expect(error?.code == .corrupt)
    }
}
