import BellhopClient
import TestSupport
import Testing

@testable import Service

/// An initial load and the events received after it fit together without a gap.
@Suite(.timed) struct EventPositionTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    /// While others write, a list plus the events after its position equals the later list: no item is missing or
    /// occurs twice.
    @Test func listAndLaterEvents_equalALaterList() async throws {
        let writers = Task { [service] in
            try await concurrently(Array(0..<60)) { number in
                try await service.notify(NotificationsTests.draft("news", number.isMultiple(of: 3) ? "HIGH" : "LOW"))
            }
        }
        var loaded: [(ids: [String], position: String)] = []
        repeat {
            let list = try await service.call("GET", "/v1/notifications?state=all&limit=100", as: .user("u1"))
            loaded.append((list.items.reversed().compactMap { $0["id"].string }, try position(of: list)))
        } while loaded.last?.ids.count != 60
        #expect(try await writers.value.allSatisfy { $0.status == 201 })
        _ = try await service.notify(NotificationsTests.draft("end"))
        let final = try await service.all(of: "u1").compactMap { $0["id"].string }
        #expect(final.count == 61)
        for (ids, position) in loaded {
            let stream = try await service.listen(as: .user("u1"), lastEventID: position)
            while try await stream.next("notification:created").json["id"].string != final.last {}
            let created = stream.received.filter { $0.name == "notification:created" }
            let state = ids + created.compactMap { $0.json["id"].string }
            #expect(state.sorted() == final.sorted())
            stream.close()
        }
    }

    /// Each state names its position, whether it was read with one statement or several, and also if it is empty.
    @Test(arguments: [
        "badges", "badges?include=conversations", "notifications", "conversations", "preferences", "feed",
    ])
    func everyState_carriesItsEventPosition(path: String) async throws {
        let stream = try await service.listen(as: .user("u1"))
        _ = try await service.notify(NotificationsTests.draft("news"))
        let newest = try await stream.next("badges:update").id
        let answer = try await service.call("GET", "/v1/\(path)", as: .user("u1"))
        #expect(answer.status == 200)
        #expect(try position(of: answer) == newest)
    }

    private func position(of answer: ServiceAnswer) throws -> String {
        try #require(answer[header: "Event-Position"])
    }
}
