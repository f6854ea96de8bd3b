import BellhopClient
import Foundation
import TestSupport
import Testing
import Yams

@testable import Service

/// Every operation of `openapi.yaml` and every stream, as every kind of caller. No answer or event contains a text
/// that its receiver may not see, and each permitted reader finds each text. `Tests/VisibilityMatrix.md` lists the
/// permissions.
@Suite(.timed) struct VisibilityMatrixTests {
    private typealias Caller = VisibilityWorld.Caller
    private typealias Mark = VisibilityWorld.Mark

    /// A stream is opened and read separately, not as a request.
    private static let stream = "GET /v1/stream"
    private static let verbs: Set = ["get", "put", "post", "patch", "delete"]

    /// Returns the operations of the contract. An operation that is missing here fails the test.
    private static func operations() throws -> [String] {
        let root = repository
        let text = try String(contentsOf: root.appendingPathComponent("openapi.yaml"), encoding: .utf8)
        let paths = try #require(try Yams.compose(yaml: text)?["paths"]?.mapping)
        return paths.flatMap { path, item in
            (item.mapping ?? [:]).keys.compactMap(\.string).filter(verbs.contains).map {
                "\($0.uppercased()) \(path.string ?? "")"
            }
        }
    }

    @Test func everyCaller_seesItsVisibleRowsOnly() async throws {
        let world = try await VisibilityWorld.make()
        var seen: [Mark: Set<Caller>] = [:]
        for (caller, events) in try await world.receivedByStreams() {
            for event in events { note(world.marks(in: event.data), to: caller, "the event \(event.name)", &seen) }
        }
        let operations = try Self.operations()
        #expect(operations.count > 80)
        for operation in operations where operation.hasPrefix("GET ") {
            for caller in Caller.allCases { try await ask(operation, as: caller, in: world, &seen) }
        }
        // Every permitted reader must find the text, because a text that is never found proves nothing.
        for mark in Mark.allCases {
            let missing = mark.readers.subtracting(seen[mark] ?? []).map(\.rawValue).sorted()
            #expect(missing == [], "\(mark) is missing for callers that may see it")
        }

        let writing = operations.filter { !$0.hasPrefix("GET ") }
        let owners: Set<Caller> = Mark.allCases.filter { !$0.readers.contains(.guest) }.reduce(into: Set()) {
            $0.formUnion($1.readers)
        }
        for operation in writing {
            for caller in Caller.allCases where !owners.contains(caller) {
                try await ask(operation, as: caller, in: world, &seen)
            }
        }
        // The writes of strangers have not changed the texts.
        var left: [Mark: Set<Caller>] = [:]
        for operation in operations where operation.hasPrefix("GET ") {
            for caller in [Caller.ada, .ben, .fay, .staff] { try await ask(operation, as: caller, in: world, &left) }
        }
        for mark in Mark.allCases where mark != .row {
            #expect(
                left[mark] == mark.readers.intersection([.ada, .ben, .fay, .staff]),
                "\(mark) after the writes of callers without access")
        }
        // A public action shows the user's name, so the name is not a secret from here on.
        let secrets = Set(Mark.allCases).subtracting([.follower])
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
        try world.service.expectExactCounts()
    }

    private func ask(
        _ operation: String, as caller: Caller, in world: VisibilityWorld, only marks: Set<Mark> = Set(Mark.allCases),
        _ seen: inout [Mark: Set<Caller>]
    ) async throws {
        let method = String(operation.prefix { $0 != " " })
        if operation == Self.stream, caller.hasToken { return }
        let asked = operation == Self.stream ? [.init(path: "/v1/stream")] : world.requests(operation, as: caller)
        let requests = try #require(asked, "\(operation) is not in the matrix")
        for request in requests {
            let answer = try await world.service.call(
                method, request.path, as: world.identity(caller), request.body, headers: request.headers)
            let name = "\(method) \(request.path)"
            #expect(answer.status < 500, "\(name) as \(caller): \(answer.problem)")
            // The export of ada shows a backend what only ada sees otherwise.
            let isExport = operation == "GET /v1/users/{id}/export" && caller == .backend
            let exported: Set<Mark> = isExport ? [.notification, .device] : []
            let found = world.marks(in: answer.text + "\(answer.headers)").filter(
                marks.subtracting(exported).contains)
            note(found, to: caller, name, &seen)
            expectGate(operation, caller, answer, name)
        }
    }

    private func note(_ marks: [Mark], to caller: Caller, _ place: String, _ seen: inout [Mark: Set<Caller>]) {
        for mark in marks {
            #expect(mark.readers.contains(caller), "\(place) discloses \(mark) to \(caller)")
            seen[mark, default: []].insert(caller)
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
    }
}
