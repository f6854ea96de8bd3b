import BellhopClient
import Foundation
import TestSupport
import Testing
import Yams

@testable import Service

/// What a backend with limited capabilities may call.
@Suite(.timed) struct CapabilityTests {
    /// The operations that need neither `read` for a GET nor `manage` for another method.
    private static let special: [String: Capability] = [
        "POST /v1/events": .notify, "POST /v1/notifications": .notify, "POST /v1/publish": .publish,
        "POST /v1/changes": .rows, "POST /v1/explain": .read, "POST /v1/stream-tickets": .read,
        "PUT /v1/streams/{id}/subscriptions": .read, "PUT /v1/streams/{id}/token": .read,
        "DELETE /v1/users/{id}": .erase, "GET /v1/users/{id}/erasure": .erase, "GET /v1/users/{id}/export": .erase,
    ]

    /// Returns the capability of an operation by the rule of Docs/how-to/backends.md.
    private static func needed(_ operation: String) -> Capability {
        special[operation] ?? (operation.hasPrefix("GET ") ? .read : .manage)
    }

    private static func key(_ capability: Capability) -> TestService.Identity {
        .bearer(ServiceKeysTests.key(capability.rawValue))
    }

    private static let keys = Capability.allCases.map {
        "only-\($0):\(ServiceKeysTests.key($0.rawValue)):tenant=A:can=\($0)"
    }.joined(separator: ",")

    @Test func capabilities_areThoseOfTheContract() throws {
        let text = try String(contentsOf: repository.appendingPathComponent("openapi.yaml"), encoding: .utf8)
        let paths = try #require(try Yams.compose(yaml: text)?["paths"])
        var found: Set<String> = []
        for route in Operations.routes {
            let operation = "\(route.method) \(route.pattern)"
            let described = paths[route.pattern]?[route.method.lowercased()]?["x-capability"]?.string
            #expect(described == route.capability, "\(operation)")
            #expect(route.capability == (route.access == "anyone" ? nil : Self.needed(operation).rawValue))
            if Self.special[operation] != nil { found.insert(operation) }
        }
        #expect(found == Set(Self.special.keys))
    }

    /// Every operation of the contract, with a key for each capability.
    @Test func operation_isRefusedWithoutItsCapability_andOnlyThen() async throws {
        let service = try TestService.start(["serviceKeys": Self.keys])
        let document = try ContractDocument.shared.get()
        let open = Set(Operations.routes.filter { $0.access == "anyone" }.map { "\($0.method) \($0.pattern)" })
        var refused = 0
        for operation in document.operations where !open.contains(operation) {
            let parts = operation.split(separator: " ").map(String.init)
            let path = parts[1].replacing(/\{[a-zA-Z]+\}/, with: "x1")
            // The stream is asked about without opening it.
            let method = parts[1] == "/v1/stream" ? "HEAD" : parts[0]
            for capability in Capability.allCases {
                let answer = try await service.call(
                    method, path, as: Self.key(capability), document.body(operation))
                let what: Comment = "\(operation) with \(capability): \(answer.status) \(answer.text)"
                #expect((200..<500).contains(answer.status), what)
                let isRefused = capability != Self.needed(operation)
                #expect((answer.status == 403) == isRefused || !isRefused && method != "HEAD", what)
                guard isRefused else {
                    #expect(!answer.text.contains("capability"), what)
                    continue
                }
                refused += 1
                guard method != "HEAD" else { continue }
                #expect(answer.json["code"] == "insufficient_scope", what)
                #expect(
                    answer.json["detail"].string
                        == "This operation requires the capability \(Self.needed(operation)). The backend has \(capability).",
                    what)
            }
        }
        #expect(refused > 450)
    }

    @Test func severalCapabilities_areNamedInTheRefusal() async throws {
        let service = try ServiceKeysTests.start("jobs:\(ServiceKeysTests.key("a")):can=publish+notify")
        let jobs = TestService.Identity.bearer(ServiceKeysTests.key("a"))
        let answer = try await service.call("GET", "/v1/badges", as: jobs)
        #expect(answer.json["detail"].string?.hasSuffix("The backend has notify, publish.") == true)
        #expect(answer[header: "WWW-Authenticate"]?.contains("insufficient_scope") == true)
        let event: JSON = ["event": "e", "to": ["user:ada"], "data": 1]
        #expect(try await service.call("POST", "/v1/publish", as: jobs, event).status == 202)
    }

    /// The claim limits a backend by the words that it has; unknown words give nothing. A user has no capabilities.
    @Test func claim_limitsABackend_andNoUser() async throws {
        let service = try TestService.start()
        for (claim, reads): (JSON?, Bool) in [
            (nil, true), (["read"], true), (["bellhop:notify", "bellhop/read"], true), ("read", true),
            (["notify"], false), (["Read", "everything"], false), ([], false),
        ] {
            for (role, isLimited) in [("service_role", true), ("admin", false)] {
                var caller = TestService.Identity(subject: "worker", metadata: ["user_role": .string(role)])
                caller.metadata["capabilities"] = claim
                let status = try await service.call("GET", "/v1/badges", as: caller).status
                #expect(status == (isLimited && !reads ? 403 : 200), "\(claim ?? .null) \(role)")
            }
        }
    }

    @Test func limits_areShown() async throws {
        let (limited, free) = (ServiceKeysTests.key("a"), ServiceKeysTests.key("b"))
        let service = try ServiceKeysTests.start("jobs:\(limited):can=read+notify", "all:\(free)")
        func shown(_ key: String) async throws -> JSON {
            try await service.call("GET", "/v1/me", as: .bearer(key)).json["capabilities"]
        }
        #expect(try await shown(limited) == ["notify", "read"])
        #expect(try await shown(free) == .null)
    }

    /// The head is refused before its body is read, and the refusal changes nothing.
    @Test func refusedWrite_changesNothing() async throws {
        let service = try TestService.start(["serviceKeys": Self.keys])
        let ada = try await service.listen(as: .user("ada", tenant: "A"))
        let event: JSON = ["event": "e", "to": ["user:ada"], "data": 1]
        #expect(try await service.call("POST", "/v1/publish", as: Self.key(.notify), event).status == 403)
        let erased = try await service.call("DELETE", "/v1/users/ada", as: Self.key(.manage))
        #expect(erased.status == 403)
        #expect(try await service.call("GET", "/v1/me", as: .user("ada", tenant: "A")).status == 200)
        let last: JSON = ["event": "last", "to": ["user:ada"], "data": 1]
        #expect(try await service.call("POST", "/v1/publish", as: Self.key(.publish), last).status == 202)
        try await ada.next("last")
        #expect(!ada.received.contains { $0.name == "e" })
    }

    /// The token in a body and in a cookie opens or renews a stream only with `read`, too.
    @Test func stream_needsRead_howeverTheKeyIsSent() async throws {
        let key = ServiceKeysTests.key("b")
        let service = try ServiceKeysTests.start(
            "jobs:\(ServiceKeysTests.key("a")):can=read", "mail:\(key):can=notify")
        let reader = TestService.Identity.bearer(ServiceKeysTests.key("a"))
        let stream = try await service.listen(as: reader)
        let id = try #require(stream.ready.json["streamId"].string)
        for headers in [["Authorization": "Bearer \(key)"], ["Cookie": "bellhop_token=\(key)"]] {
            #expect(try await service.call("HEAD", "/v1/stream", headers: headers).status == 403, "\(headers.keys)")
        }
        let renewed = try await service.call("PUT", "/v1/streams/\(id)/token", as: reader, ["token": .string(key)])
        #expect(renewed.status == 422 && renewed.text.contains("requires the capability read"), "\(renewed.text)")
    }

    /// A feed has its own credentials and no capabilities.
    @Test func feed_isNotLimited() async throws {
        let probe = try FeedProbe(["serviceKeys": Self.keys])
        #expect(try await probe.send(School.insert("notes", FeedProbe.note("n1"))).counts == [202, 1, 0, 0])
    }
}
