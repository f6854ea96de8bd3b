import BellhopClient
import Database
import Domain
import TestSupport
import Testing

@testable import Service

/// The messages besides alerts of the configured priorities, and the number of devices that get them.
@Suite(.timed) struct PushReachTests {
    /// The number is exact on every device, also if nothing else is sent. It is sent at most every 30 s.
    @Test func numberThatRisesAlone_isSent() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        try await probe.notify("ada", .low)
        #expect(try await probe.messages(1)[0].badge == 1)
        try await probe.settled()
        try await probe.notify("ada", .low)
        try await probe.notify("ada", .normal)
        #expect(try probe.rows("type = 'badge'") == 1)
        probe.service.clock.advance(seconds: 31)
        let second = try await probe.messages(2)[1]
        #expect(second.badge == 3 && second.title == nil)
        try await probe.settled()
        #expect(try probe.rows() == 0)
    }

    /// Types of the settings are sent whatever their priority.
    @Test func types_areSent_inEveryPriority() async throws {
        let probe = try PushProbe(["pushTypes": "VISIT"])
        try await probe.register("phone")
        let id = try await probe.notify("ada", .low)
        let alert = try await probe.messages(1)[0]
        #expect(alert.title != nil && alert.tag == id)
    }

    @Test func everyStatusOfABooking_andEachRequest_isSentByDefault() throws {
        let types = try #require(
            TestService.settings(["jwtSecret": TestService.secret].merging(PushProbe.browsers) { $1 }).push
        )
        .types
        #expect(types == [.booking, NotificationType(for: .request)])
    }

    /// A request adds one message for each user if there are many devices. The sender distributes it.
    @Test func messageToManyDevices_reachesEachOnce_orNoneOnceItWasRead() async throws {
        let probe = try PushProbe(["rateLimitUser": "0"])
        let members = ["u0", "u1", "u2", "u3"]
        for user in members {
            for number in 0..<DeviceLimits.ofUserMax { try await probe.register("\(user)-\(number)", "fcm", of: user) }
        }
        let made = try await probe.service.call(
            "POST", "/v1/conversations", as: .user("ana"), #"{"memberIds":["u0","u1","u2","u3"],"title":"All"}"#)
        let id = try #require(made.json["id"].string)
        _ = try await probe.service.send("hi", to: id, as: "ana")
        let count = members.count * DeviceLimits.ofUserMax
        let sent = try await probe.messages(count)
        #expect(Set(sent.map(\.device)).count == count && sent.allSatisfy { $0.tag == "conversation:\(id)" })
        try await probe.settled()
        #expect(probe.sent.all.count == count)
        #expect(try probe.rows("state = 1") == count && probe.rows() == count)
        // With a stream, the user has time to read it before it is distributed.
        let stream = try await probe.service.listen(as: .user("u0"))
        _ = try await probe.service.send("again", to: id, as: "ana")
        try await eventually("it is postponed") { try probe.rows("route = 'devices' AND user_id = 'u0'") == 1 }
        let read = try await probe.service.call(
            "PUT", "/v1/conversations/\(id)/read-position", as: .user("u0"), #"{"sequence":2}"#)
        #expect(read.status == 200)
        #expect(try probe.rows("route = 'devices' AND user_id = 'u0'") == 0)
        stream.close()
    }
}
