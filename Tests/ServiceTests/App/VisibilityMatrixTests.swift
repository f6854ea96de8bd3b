import BellhopClient
import Database
import TestSupport
import Testing

@testable import Service

/// Every operation of `openapi.yaml` and every stream, as every kind of caller. No answer or event contains a text
/// that its receiver may not see, and each permitted reader finds each text. `Tests/VisibilityMatrix.md` lists the
/// permissions.
@Suite(.timed) struct VisibilityMatrixTests {
    private typealias Caller = VisibilityWorld.Caller
    private typealias Mark = VisibilityWorld.Mark

    /// A stream is opened and read separately, not as a request.
    private static let stream = "GET /v1/stream"

    /// The operations that no caller here calls with success: others have removed their resource before, or they need a
    /// version, a code or a dead webhook. The stream is opened by itself.
    private static let refused: Set = [
        "DELETE /v1/challenges/{id}/scores/{userId}", "DELETE /v1/posts/{id}/likes/{userId}",
        "DELETE /v1/posts/{id}/reposts/{userId}", "DELETE /v1/requests/{id}", "DELETE /v1/revocations",
        "DELETE /v1/shops/{id}/dj/tracks/{trackId}", "GET /v1/stream", "GET /v1/users/{id}/erasure",
        "PATCH /v1/bookings/{id}", "POST /v1/challenges/{id}/scores", "POST /v1/devices/{id}/test",
        "POST /v1/webhooks/dead/{id}/retry", "PUT /v1/conversations/{id}/read-position",
        "PUT /v1/posts/{id}/likes/{userId}", "PUT /v1/posts/{id}/reposts/{userId}",
        "PUT /v1/shops/{id}/dj/tracks/{trackId}/vote", "PUT /v1/shops/{id}/presence/me",
    ]

    /// The callers that have found each text, and the operations that some caller has called with success.
    private struct Seen {
        var marks: [Mark: Set<Caller>] = [:]
        var answered: Set<String> = []
    }

    /// A feature whose texts are not in the matrix fails here.
    @Test func everyTable_isInTheMatrix() throws {
        let matrix = try VisibilityMatrix.shared.get()
        let readable = Catalog.tables.filter { !$0.read.templates.isEmpty }.map(\.name)
        let withTexts = matrix.marks.reduce(into: Set()) { $0.formUnion($1.tables) }
        #expect(Set(readable) == withTexts.union(matrix.tablesWithoutTexts))
        #expect(withTexts.isDisjoint(with: matrix.tablesWithoutTexts))
        #expect(Set(matrix.marks.map(\.name)).count == matrix.marks.count)
    }

    @Test func everyCaller_seesItsVisibleRowsOnly() async throws {
        let world = try await VisibilityWorld.make()
        var seen = Seen()
        for (caller, events) in try await world.receivedByStreams() {
            for event in events { note(world.marks(in: event.data), to: caller, "the event \(event.name)", &seen) }
        }
        let operations = try ContractDocument.shared.get().operations
        #expect(operations.count > 80)
        for operation in operations where operation.hasPrefix("GET ") {
            for caller in Caller.allCases { try await ask(operation, as: caller, in: world, &seen) }
        }
        // Every permitted reader must find the text, because a text that is never found proves nothing.
        for mark in world.marks {
            let missing = mark.readers.subtracting(seen.marks[mark] ?? []).map(\.rawValue).sorted()
            #expect(missing == [], "\(mark) is missing for callers that may see it")
        }

        let writing = operations.filter { !$0.hasPrefix("GET ") }
        let owners: Set<Caller> = world.marks.filter { !$0.readers.contains(.guest) }.reduce(into: Set()) {
            $0.formUnion($1.readers)
        }
        for operation in writing {
            for caller in Caller.allCases where !owners.contains(caller) {
                try await ask(operation, as: caller, in: world, &seen)
            }
        }
        // The writes of strangers have not changed the texts.
        var left = Seen()
        for operation in operations where operation.hasPrefix("GET ") {
            for caller in [Caller.ada, .ben, .fay, .staff] { try await ask(operation, as: caller, in: world, &left) }
        }
        for mark in world.marks where mark.name != "row" {
            #expect(
                left.marks[mark] == mark.readers.intersection([.ada, .ben, .fay, .staff]),
                "\(mark) after the writes of callers without access")
        }
        // A public action shows the user's name, so the name is not a secret from here on.
        let secrets = Set(world.marks.filter { $0.name != "follower" })
        for operation in writing {
            for caller in Caller.allCases where owners.contains(caller) {
                try await ask(operation, as: caller, in: world, only: secrets, &seen)
            }
        }
        for (caller, events) in try await world.receivedByStreams() {
            for event in events {
                note(world.marks(in: event.data).filter(secrets.contains), to: caller, "the event \(event.name)", &seen)
            }
        }
        // A new operation that refuses all callers proves nothing.
        #expect(Set(operations).subtracting(seen.answered).subtracting(Self.refused) == [])
        try world.service.expectExactCounts()
    }

    private func ask(
        _ operation: String, as caller: Caller, in world: VisibilityWorld, only marks: Set<Mark>? = nil,
        _ seen: inout Seen
    ) async throws {
        let method = String(operation.prefix { $0 != " " })
        if operation == Self.stream, caller.reads { return }
        let requests =
            operation == Self.stream ? [.init(path: "/v1/stream")] : try world.requests(operation, as: caller)
        for request in requests {
            let answer = try await world.service.call(
                method, request.path, as: world.identity(caller), request.body, headers: request.headers)
            let name = "\(method) \(request.path)"
            #expect(answer.status < 500, "\(name) as \(caller): \(answer.problem)")
            // The export of ada shows a backend what ada sees.
            let isExport = operation == "GET /v1/users/{id}/export" && [.backend, .key].contains(caller)
            let found = world.marks(in: answer.text + "\(answer.headers)").filter { mark in
                marks?.contains(mark) != false && !(isExport && mark.readers.contains(.ada))
            }
            note(found, to: caller, name, &seen)
            if answer.isSuccess { seen.answered.insert(operation) }
            expectGate(operation, caller, answer, name)
        }
    }

    private func note(_ marks: [Mark], to caller: Caller, _ place: String, _ seen: inout Seen) {
        for mark in marks {
            #expect(mark.readers.contains(caller), "\(place) discloses \(mark) to \(caller)")
            seen.marks[mark, default: []].insert(caller)
        }
    }

    /// Expects 401 without a valid token, and 403 for users in operations of backends.
    private func expectGate(_ operation: String, _ caller: Caller, _ answer: ServiceAnswer, _ name: String) {
        let route = Operations.routes.first { "\($0.method) \($0.pattern)" == operation }
        let isFeed = caller == .feed && route?.access == "feed"
        if route?.access != "anyone", !caller.hasToken, !isFeed {
            #expect(answer.status == 401, "\(name) as \(caller)")
        }
        if route?.access == "service", caller.hasToken, !caller.isBackend {
            #expect(answer.status == 403, "\(name) as \(caller)")
        }
        let limits: [Caller: String] = [.keyToRead: "read", .keyToNotify: "notify"]
        if let capability = limits[caller], let needed = route?.capability, needed != capability {
            #expect(answer.status == 403, "\(name) as \(caller)")
        }
    }
}
