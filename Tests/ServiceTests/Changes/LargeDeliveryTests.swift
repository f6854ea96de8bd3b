import BellhopClient
import Testing

@testable import Service

/// The largest delivery, and those who hear all of it.
@Suite struct LargeDeliveryTests {
    /// 1,000 rows are committed at once and are many times what may wait for one stream; whoever reads them as they come
    /// gets all of them, in their order, and no `stream:resync`.
    @Test func thousandRows_reachWhoHearsAllOfThem() async throws {
        let service = try TestService.start(["changesSecret": School.secret, "tables": "posts"])
        let school = try await School(service, isKnown: false)
        let identity = TestService.Identity.user("ann")
        let stream = try await service.listen(as: identity)
        try await stream.subscribe([["table": "posts"]], through: service, as: identity)
        let text = String(repeating: "lorem ipsum ", count: 30)
        let count = 1_000
        try await school.tell(
            (1...count).map { number in
                School.insert(
                    "posts", ["id": .integer(Int64(number)), "visibility": "public", "text": .string(text)])
            })
        for number in 1...count {
            let event = try await stream.next()
            #expect(event.name == "table:change" && event.json["record"]["id"].int == number)
        }
    }
}
