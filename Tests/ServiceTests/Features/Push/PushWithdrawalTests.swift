import BellhopClient
import Database
import Foundation
import Push
import TestSupport
import Testing
import Threads

@testable import Service

/// R-27: how many withdrawals one message carries.
@Suite(.timed) struct PushWithdrawalTests {
    /// One message has a limited number of withdrawals, its own included. The others follow.
    @Test func manyWithdrawals_areSentInParts() async throws {
        let probe = try PushProbe()
        try await probe.register("phone")
        var ids: [String] = []
        for _ in 0...PushOutboxLimits.withdrawalsMax { ids.append(try await probe.notify()) }
        _ = try await probe.messages(ids.count)
        try await probe.settled()
        let last = try #require(ids.last)
        let seen = try await probe.service.call(
            "PATCH", "/v1/notifications", as: .user("ada"), #"{"upTo":"\#(last)","set":{"seen":true}}"#)
        #expect(seen.status == 200, "\(seen.text)")
        try await eventually("all are withdrawn") { try probe.rows("type = 'withdrawal'") == 0 }
        let parts = probe.sent.all.dropFirst(ids.count).map(\.withdrawn)
        #expect(parts.map(\.count) == [PushOutboxLimits.withdrawalsMax, 1])
        #expect(Set(parts.joined()) == Set(ids))
    }

    /// Backends choose ids of conversations. FCM answers a payload that is too long as it answers an invalid token, which
    /// would remove the device.
    @Test func withdrawalsWithLongTags_fitThePayload() async throws {
        let probe = try PushProbe()
        try await probe.register("phone", "fcm", of: "ben")
        let ids = (0..<24).map { "\(100 + $0)" + String(repeating: "\"", count: 125) }
        for (index, id) in ids.enumerated() {
            let members: JSON = ["id": .string(id), "memberIds": ["ana", "ben"]]
            let body = String(decoding: members.data, as: UTF8.self)
            #expect(try await probe.service.call("POST", "/v1/conversations", as: .service(), body).status == 201)
            let path = id.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            let sent = try await probe.service.call(
                "POST", "/v1/conversations/\(path)/messages", as: .user("ana"), #"{"text":"hi"}"#)
            #expect(sent.status == 201, "\(sent.refusal)")
            _ = try await probe.messages(index + 1)
        }
        try await probe.settled()
        probe.answers.withLock { $0["phone"] = (503, ["Retry-After: 3600"], "") }
        for id in ids {
            let path = id.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            let read = try await probe.service.call(
                "PUT", "/v1/conversations/\(path)/read-position", as: .user("ben"), #"{"sequence":1}"#)
            #expect(read.status == 200, "\(read.refusal)")
        }
        try await probe.settled()
        let count = probe.sent.all.count
        probe.answers.withLock { $0 = [:] }
        probe.service.clock.advance(seconds: 3601)
        try await eventually("all are withdrawn") { try probe.rows("type = 'withdrawal'") == 0 }
        let withdrawals = probe.sent.all.dropFirst(count).filter { !$0.withdrawn.isEmpty }
        #expect(withdrawals.allSatisfy { $0.json.data.count <= PushLimits.payloadBytesMax })
        #expect(Set(withdrawals.flatMap(\.withdrawn)) == Set(ids.map { "conversation:\($0)" }))
        #expect(withdrawals.count < ids.count, "one message carries several")
    }
}
