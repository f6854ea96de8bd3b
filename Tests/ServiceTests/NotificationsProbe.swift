import BellhopClient
import Domain
import Foundation
import Testing

@testable import Service

/// Requests and streams of the notification tests, in few words.
final class NotificationsProbe: Sendable {
    enum Identity {
        case user(String)
        case userOf(String, tenant: String)
        case service
        case serviceOf(String)

        var identity: TestService.Identity {
            switch self {
            case .user(let name): .user(name)
            case .userOf(let name, let tenant): .user(name, tenant: tenant)
            case .service: .service()
            case .serviceOf(let tenant): .service(tenant: tenant)
            }
        }
    }

    struct Reply {
        let status: Int
        let json: JSONValue

        var items: [JSONValue] { if case .array(let items) = json["items"] { items } else { [] } }
        var id: String { get throws { try #require(json["notification"]["id"].text) } }
        var pointers: [String] {
            if case .array(let errors) = json["errors"] { errors.compactMap { $0["pointer"].text } } else { [] }
        }
    }

    /// A stream from its `stream:ready` on.
    struct Listener {
        let listener: StreamListener

        func next(_ name: String) async throws -> JSONValue {
            try JSONValue(parsing: Array(try await listener.next(name).data.utf8))
        }
    }

    let service: TestService

    init(_ service: TestService) {
        self.service = service
    }

    static func start() async throws -> NotificationsProbe {
        NotificationsProbe(try TestService.start(at: "2026-01-10T10:00:00Z"))
    }

    func setClock(_ moment: String) async throws {
        service.clock.set(try #require(Timestamp(rfc3339: moment)))
    }

    func call(_ method: String, _ path: String, as who: Identity, _ body: String? = nil) async throws -> Reply {
        // Each request has its own moment, as with a real clock.
        service.clock.set(Timestamp(microseconds: service.clock.now.microseconds + 1000))
        let answer = try await service.client(as: who.identity).send(
            method, path, bytes: body.map { Data($0.utf8) },
            headers: body == nil ? [:] : ["Content-Type": "application/json"])
        return Reply(
            status: answer.status,
            json: answer.body.isEmpty ? .null : try JSONValue(parsing: Array(answer.body)))
    }

    func listen(as who: Identity) async throws -> Listener {
        Listener(listener: try await service.listen(as: who.identity))
    }

    func expectExactCounts() async throws { try service.expectExactCounts() }
}
