import Foundation

extension Bellhop {
    /// A parameter value that cannot be sent.
    public struct UnusableParameter: Error, Sendable, Hashable, CustomStringConvertible {
        public let name: String
        public let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        public var description: String { "“\(value)” is not a valid value for the parameter \(name)" }
    }

    /// One call before it is sent.
    package struct Call {
        package let method: String
        private(set) var path: String
        private(set) var headers: [String: String] = [:]
        private(set) var body: Data?

        /// - Parameters:
        ///   - path: the path template of the contract: `/v1/shops/{id}`.
        ///   - values: the template's values; any non-empty text. `.` and `..` are refused: they would be resolved to
        ///     another path on the way.
        package init(_ method: String, _ path: String, _ values: KeyValuePairs<String, String> = [:]) throws {
            self.method = method
            self.path = path
            for (name, value) in values {
                guard !value.isEmpty, value != ".", value != "..",
                    let escaped = value.addingPercentEncoding(withAllowedCharacters: .urlPathSegmentAllowed)
                else { throw UnusableParameter(name: name, value: value) }
                self.path = self.path.replacingOccurrences(of: "{\(name)}", with: escaped)
            }
        }

        package mutating func query(_ name: String, _ value: String?) {
            guard let value else { return }
            let escaped = value.addingPercentEncoding(withAllowedCharacters: .urlQueryValueAllowed) ?? value
            path += (path.contains("?") ? "&" : "?") + "\(name)=\(escaped)"
        }

        package mutating func query(_ name: String, _ value: Int?) { query(name, value.map(String.init)) }
        package mutating func query(_ name: String, _ value: Bool?) { query(name, value.map { $0 ? "true" : "false" }) }
        package mutating func query(_ name: String, _ value: Date?) { query(name, value.map(Moment.text)) }
        package mutating func query(_ name: String, _ value: (any Word)?) { query(name, value?.rawValue) }

        /// Sets a header. A line break in its value is refused: it would begin another header.
        package mutating func header(_ name: String, _ value: String?) throws {
            guard let value else { return }
            guard !value.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
                throw UnusableParameter(name: name, value: value)
            }
            headers[name] = value
        }

        package mutating func json(_ value: (some Encodable)?) throws {
            guard let value else { return }
            body = try Bellhop.encoder.encode(value)
            headers["Content-Type"] = "application/json"
        }
    }
}

extension BellhopClient {
    /// Returns the value of a call; throws ``Bellhop/Problem`` if the service refuses it.
    package func answer<Value: Decodable & Sendable>(_ call: Bellhop.Call) async throws -> Bellhop.Answer<Value> {
        try read(try await accepted(call))
    }

    /// Returns the value of a call, or nil if the state still matches `If-None-Match`.
    package func answerUnlessCurrent<Value: Decodable & Sendable>(_ call: Bellhop.Call) async throws -> Bellhop.Answer<
        Value
    >? {
        let answer = try await accepted(call)
        return try answer.status == 304 ? nil : read(answer)
    }

    /// Returns the value of a call, or nil for an answer without a body (204).
    package func answerIfAny<Value: Decodable & Sendable>(_ call: Bellhop.Call) async throws -> Bellhop.Answer<Value?> {
        let answer = try await accepted(call)
        let value: Value? = try answer.status == 204 ? nil : model(answer)
        return Bellhop.Answer(value: value, status: answer.status, headers: answer.headers)
    }

    /// Returns the answer of a call that has no value.
    package func answer(_ call: Bellhop.Call) async throws -> Bellhop.Answer<Void> {
        let answer = try await accepted(call)
        return Bellhop.Answer(value: (), status: answer.status, headers: answer.headers)
    }

    private func accepted(_ call: Bellhop.Call) async throws -> ServiceAnswer {
        let answer = try await send(call.method, call.path, bytes: call.body, headers: call.headers)
        let isCurrent = answer.status == 304 && call.headers["If-None-Match"] != nil
        guard answer.isSuccess || isCurrent else { throw Bellhop.Problem(answer) }
        return answer
    }

    private func read<Value: Decodable & Sendable>(_ answer: ServiceAnswer) throws -> Bellhop.Answer<Value> {
        Bellhop.Answer(value: try model(answer), status: answer.status, headers: answer.headers)
    }

    private func model<Value: Decodable & Sendable>(_ answer: ServiceAnswer) throws -> Value {
        do {
            return try Bellhop.decoder.decode(Value.self, from: answer.body)
        } catch {
            throw Bellhop.UnreadableAnswer(
                status: answer.status, requestID: answer[header: "X-Request-Id"], reason: "\(error)")
        }
    }
}

extension CharacterSet {
    /// The characters that need no escaping in one segment of a path.
    static let urlPathSegmentAllowed = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:")
}
