import BellhopClient
import Foundation
import Testing

/// A service that tests call: ``TestService`` in this process, or ``RunningBellhop`` in its own.
protocol CalledService {
    /// A client without a token.
    var anyone: BellhopClient { get }
    /// Returns a client for calls that keep to the contract. Raw requests use `call`.
    func client(as identity: TestService.Identity) -> BellhopClient
}

extension CalledService {
    func client(_ user: String) -> BellhopClient { client(as: .user(user)) }

    /// Sends a raw request: one that the contract does not allow, or one whose test compares the exact answer.
    ///
    /// - Parameters:
    ///   - identity: the caller; nil for a request without a token.
    ///   - body: bytes, text or JSON. Bytes and text may be malformed JSON.
    func call(
        _ method: String, _ path: String, as identity: TestService.Identity? = nil, _ body: Data?,
        headers: [String: String] = [:]
    ) async throws -> ServiceAnswer {
        var headers = headers
        if body != nil { headers["Content-Type"] = headers["Content-Type"] ?? "application/json" }
        let client = identity.map { self.client(as: $0) } ?? anyone
        return try await client.send(method, path, bytes: body, headers: headers)
    }

    func call(
        _ method: String, _ path: String, as identity: TestService.Identity? = nil, _ body: String?,
        headers: [String: String] = [:]
    ) async throws -> ServiceAnswer {
        try await call(method, path, as: identity, body.map { Data($0.utf8) }, headers: headers)
    }

    func call(
        _ method: String, _ path: String, as identity: TestService.Identity? = nil, _ body: JSON? = nil,
        headers: [String: String] = [:]
    ) async throws -> ServiceAnswer {
        try await call(method, path, as: identity, body?.data, headers: headers)
    }

    func call(
        _ method: String, _ path: String, as identity: TestService.Identity? = nil, model: some Encodable,
        headers: [String: String] = [:]
    ) async throws -> ServiceAnswer {
        try await call(method, path, as: identity, try Bellhop.encoder.encode(model), headers: headers)
    }
}

extension TestService: CalledService {}
extension RunningBellhop: CalledService {}

/// Returns the refusal of a call. Fails if the service accepts the call.
func problem<Answer: Sendable>(
    of call: @autoclosure () async throws -> Answer, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> Bellhop.Problem {
    try #require(await #expect(throws: Bellhop.Problem.self, sourceLocation: sourceLocation) { _ = try await call() })
}

/// Returns the status and code of the refusal of a call: `409 booking.overlap`.
func refusal<Answer: Sendable>(
    of call: @autoclosure () async throws -> Answer, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> String {
    try await problem(of: await call(), sourceLocation: sourceLocation).refusal
}

/// Returns the status of the answer to a call, which the service may accept or refuse.
func status<Value>(of call: @autoclosure () async throws -> Bellhop.Answer<Value>) async throws -> Int {
    do {
        return try await call().status
    } catch let problem as Bellhop.Problem {
        return problem.status
    }
}

/// Returns a time that a test gives in the format of the service.
func moment(_ text: String) -> Date {
    guard let moment = try? Bellhop.decoder.decode(Date.self, from: JSON.string(text).data) else {
        preconditionFailure("\(text) is no time")
    }
    return moment
}

extension Bellhop.Problem {
    /// The status and code: `409 booking.overlap`.
    var refusal: String { "\(status) \(code?.rawValue ?? "without a code")" }
    /// The JSON pointers of the invalid places.
    var pointers: [String] { errors.map(\.pointer) }
    /// The status and pointers: `422 /userId`.
    var mistakes: String { ([String(status)] + pointers).joined(separator: " ") }
}

extension Bellhop.Answer<Bellhop.Notified> {
    /// The id of the created notification.
    var notificationID: String { get throws { try #require(value.notification?.id) } }
}
