import TestSupport
import Testing

@testable import BellhopClient

/// Events and answers of a newer service: they must not lose an item or stop a store.
@Suite(.timed) struct NewerServiceTests {
    private static func notification(_ id: String, _ changes: [String: JSON] = [:]) -> JSON {
        let whole: JSON = [
            "id": .string(id), "eventId": nil, "userId": "ada", "type": "VISIT", "category": "visit",
            "priority": "HIGH", "title": "T", "message": "M", "lockScreen": "L", "data": [:], "haptic": nil,
            "sound": false, "createdAt": "2026-01-10T09:00:00.000Z", "seenAt": nil, "readAt": nil, "archivedAt": nil,
        ]
        return whole.with(changes)
    }

    private static func loaded(_ items: [JSON]) -> NotificationsMachine {
        var machine = NotificationsMachine()
        _ = machine.receive(.start(user: "ada", isLive: true), now: 0)
        let page: JSON = ["items": .array(items), "next": nil, "total": 1]
        _ = machine.receive(.answer(as: "list", status: 200, body: page, retryAfterSeconds: nil), now: 0)
        return machine
    }

    @Test func unknownWordsAndMembers_loseNoItem() {
        var machine = Self.loaded([Self.notification("n1", ["priority": "COSMIC", "colour": ["is": "new"]])])
        #expect(machine.snapshot.items.map(\.priority.rawValue) == ["COSMIC"])
        let created = Self.notification("n2", ["priority": "MILD", "size": 3])
        _ = machine.receive(.event(FeatureEvent("notification:created", created)), now: 0)
        #expect(machine.snapshot.items.map(\.id) == ["n2", "n1"])
        _ = machine.receive(.command(.change(id: "n1", set: .init(read: true))), now: 0)
        #expect(machine.snapshot.items.last?.readAt != nil)
        #expect(machine.snapshot.items.last?.priority.rawValue == "COSMIC")
    }

    @Test func unreadableItem_isSkipped_andTheOthersStay() {
        let machine = Self.loaded([Self.notification("n3"), ["id": 7], Self.notification("n1")])
        #expect(machine.snapshot.items.map(\.id) == ["n3", "n1"])
        #expect(machine.snapshot.isLoaded)
    }

    @Test func unknownEvents_changeNothing() throws {
        for (name, make) in FeatureVectors.machines {
            var running = make(["filter": "list_id=eq.7"])
            _ = try running.receive(["type": "start", "user": "ada", "connection": "live"])
            let before = try running.described()
            let event: JSON = ["name": "comet:seen", "data": ["id": "x"], "id": "e1"]
            let actions = try running.receive(["type": "event", "event": event])
            #expect(actions.isEmpty, "\(name)")
            #expect(try running.described() == before, "\(name)")
        }
    }

    /// All preferences are sent in one request. Without its members, a newer service would reset them.
    @Test func unknownPreference_isSentBack() throws {
        var machine = Self.loaded([])
        let preferences: JSON = ["sound": true, "haptics": true, "quietHours": nil, "timeZone": "UTC", "light": "red"]
        _ = machine.receive(
            .answer(as: "preferences", status: 200, body: preferences, retryAfterSeconds: nil), now: 0)
        let actions = machine.receive(.command(.prefer(set: ["sound": false])), now: 0)
        #expect(
            actions == [
                .send("PUT", "/v1/preferences", preferences.with(["sound": false]), as: "change-1")
            ])
        #expect(machine.snapshot.preferences?.sound == false)
    }
}
