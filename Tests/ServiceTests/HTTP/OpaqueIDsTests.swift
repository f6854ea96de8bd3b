import BellhopClient
import Database
import Realtime
import TestSupport
import Testing

@testable import Service

/// Sequence numbers stay internal: ids on the wire do not reveal how much activity other users have.
@Suite(.timed) struct OpaqueIDsTests {
    /// Returns how often a text is larger than the one before it. For a counter, that is nearly always.
    private static func rises(_ texts: [String]) -> Int { zip(texts, texts.dropFirst()).count { $0.0 < $0.1 } }

    @Test func eventIds_revealNothingAboutOtherTenants() async throws {
        let service = try TestService.start()
        let stream = try await service.listen(as: .user("ada"))
        // Two events of another clinic lie between any two of Ada's.
        let count = effort(quick: 24, full: 40, long: 400)
        for index in 0..<count {
            try await service.publish("a\(index)", to: "ada")
            try await service.publish("t\(index)", to: "theirs", tenant: "other")
        }
        while stream.received.filter({ $0.name == "badges:update" }).count < count { try await stream.next() }
        let ids = stream.received.map(\.id)
        #expect(Set(ids).count == ids.count)
        let digits = try ids.map { id in try #require(id.split(separator: "-").last) }
        #expect(digits.allSatisfy { $0.utf8.count == OpaqueID.digits })
        // The texts of a counter rise, whatever its digits; these texts rise as often as they fall.
        let rises = Self.rises(digits.map(String.init))
        #expect(rises > digits.count / 4)
        #expect(rises < digits.count * 3 / 4)
        // Internally they are the log's numbers, in its order.
        let numbers = service.sequences(stream.received)
        #expect(numbers.count == ids.count)
        #expect(numbers == numbers.sorted())
        let newest = try service.app.store.read { try EventLog.newestSequence(in: $0) }
        #expect(numbers.last.map { newest - $0 < 3 } == true)
    }

    @Test func ids_areTheSameAfterARestart_andOthersInAnotherEpoch() async throws {
        let service = try TestService.start()
        try await service.publish("a0", to: "ada")
        let before = try await service.position(as: .user("ada"))
        try await service.restart()
        #expect(try await service.position(as: .user("ada")) == before)
        try await service.alterTable(sqlite: "DELETE FROM event_epochs", postgres: "DELETE FROM event_epochs")
        try await service.restart()
        let after = try await service.position(as: .user("ada"))
        let (epoch, oldEpoch) = (after.prefix { $0 != "-" }, before.prefix { $0 != "-" })
        #expect(epoch != oldEpoch)
        #expect(after.suffix(OpaqueID.digits) != before.suffix(OpaqueID.digits))
        // The old number with the new epoch maps to no position.
        let mixed = "\(epoch)-\(before.suffix(OpaqueID.digits))"
        let stream = try await service.listen(as: .user("ada"), lastEventID: mixed)
        #expect(try await stream.next("stream:resync").json["reason"] == "gap")
    }

    /// A forged id is treated like any other invalid one: a stream starts with a resync, and an explanation is
    /// refused with the position of the mistake.
    @Test func forgedID_isRefused() async throws {
        let service = try TestService.start()
        try await service.publish("a0", to: "ada")
        let here = try await service.position(as: .user("ada"))
        let epoch = here.prefix { $0 != "-" }
        let backend = service.client(as: .service())
        for forged in [
            "\(epoch)-1", "\(epoch)-0000000000001", "\(epoch)-\(OpaqueID(bits: .random(in: .min ... .max)).text)",
        ] {
            let stream = try await service.listen(as: .user("ada"), lastEventID: forged)
            #expect(try await stream.next("stream:resync").json["reason"] == "gap", "\(forged)")
            #expect(stream.ready.id == here)
            let explained = try await problem(of: await backend.explain(.init(eventId: forged, claims: ["sub": "ada"])))
            #expect(explained.mistakes == "422 /eventId", "\(forged)")
        }
        let explained = try await backend.explain(.init(eventId: here, claims: ["sub": "ada"]))
        #expect(explained.value.event.id == here)
    }

    @Test func idsOfRequests_doNotCount() async throws {
        let service = try TestService.start()
        var ids: [String] = []
        for _ in 0..<64 {
            ids.append(try await service.call("GET", "/v1/me", as: .user("ada"))[header: "X-Request-Id"] ?? "")
        }
        #expect(Set(ids).count == 64)
        #expect(ids.allSatisfy { OpaqueID($0.utf8) != nil }, "\(ids.prefix(3))")
        #expect((16...48).contains(Self.rises(ids)))
        // A client's own id is kept.
        let own = try await service.call("GET", "/v1/me", as: .user("ada"), headers: ["X-Request-Id": "mine-1"])
        #expect(own[header: "X-Request-Id"] == "mine-1")
    }

    /// Only the process that owns a stream can resolve its name, and the name does not reveal the number of streams.
    @Test func namesOfStreams_doNotCount() async throws {
        let service = try TestService.start()
        var names: [String] = []
        for _ in 0..<12 {
            let stream = try await service.listen(as: .user("ada"))
            names.append(stream.ready.json["streamId"].string ?? "")
            let name = names.last ?? ""
            #expect(try await service.client("ada").getSubscriptions(id: name).status == 200)
            stream.close()
        }
        #expect(Set(names).count == names.count)
        let digits = try names.map { try #require($0.split(separator: "-").last) }
        #expect(digits.allSatisfy { OpaqueID($0.utf8) != nil }, "\(names)")
        // Nearly all digits of neighbouring names differ.
        for (one, next) in zip(digits, digits.dropFirst()) {
            let differing = zip(one, next).count { $0.0 != $0.1 }
            #expect(differing > 6)
        }
        let process = names[0].prefix { $0 != "-" }
        let made = "\(process)-0123456789abc"
        #expect(try await status(of: await service.client("ada").getSubscriptions(id: made)) == 404)
    }
}
