import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A client of one Bellhop service: request calls, and a stream that reconnects by itself. An app that shows live state
/// uses a `Bell`.
///
/// ```swift
/// let client = BellhopClient(baseURL: url, token: .fixed(token))
/// let badges = try await client.get("/v1/badges").json
/// for try await event in client.events(topics: ["queue:s1"]) { print(event.name, event.data) }
/// ```
public struct BellhopClient: Sendable {
    /// A call that could not be made or got no answer. An answer of any status is not a transport failure.
    public enum TransportFailure: Error, Sendable, CustomStringConvertible {
        case unusableURL(String)
        case unreachable(String)

        public var description: String {
            switch self {
            case .unusableURL(let text): "“\(text)” is not a valid URL"
            case .unreachable(let reason): "the service cannot be reached: \(reason)"
            }
        }
    }

    public let baseURL: String
    public let token: TokenProvider
    /// Sent as `X-Client-Id` with every call, so that this client recognizes the echoes of its own changes
    /// (`R-SCH-FR-005`).
    public let clientID: String
    private let session: URLSession

    /// - Parameters:
    ///   - baseURL: scheme, host and port, such as `http://127.0.0.1:8080`.
    ///   - timeoutSeconds: for a whole call. Without it, a hung server would hang its caller.
    ///   - connectionsMax: maximum number of concurrent calls; further calls wait.
    public init(
        baseURL: String, token: TokenProvider = .none, clientID: String = UUID().uuidString.lowercased(),
        timeoutSeconds: Double = 30, connectionsMax: Int = 64
    ) {
        self.baseURL = baseURL.hasSuffix("/") ? String(baseURL.dropLast()) : baseURL
        self.token = token
        self.clientID = clientID
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.timeoutIntervalForRequest = timeoutSeconds
        configuration.httpMaximumConnectionsPerHost = connectionsMax
        session = URLSession(configuration: configuration)
    }

    public init(baseURL: URL, token: TokenProvider = .none) {
        self.init(baseURL: baseURL.absoluteString, token: token)
    }

    private init(_ other: BellhopClient, token: TokenProvider) {
        self.baseURL = other.baseURL
        self.token = token
        self.clientID = other.clientID
        self.session = other.session
    }

    /// Returns a client of the same service that shares the connections and uses another token.
    public func with(token: String?) -> BellhopClient {
        BellhopClient(self, token: token.map(TokenProvider.fixed) ?? .none)
    }

    package func with(_ token: TokenProvider) -> BellhopClient {
        BellhopClient(self, token: token)
    }

    public func get(_ path: String, headers: [String: String] = [:]) async throws -> ServiceAnswer {
        try await send("GET", path, headers: headers)
    }

    public func post(_ path: String, _ body: JSON? = nil, headers: [String: String] = [:]) async throws -> ServiceAnswer
    {
        try await send("POST", path, body, headers: headers)
    }

    public func put(_ path: String, _ body: JSON? = nil, headers: [String: String] = [:]) async throws -> ServiceAnswer
    {
        try await send("PUT", path, body, headers: headers)
    }

    public func patch(_ path: String, _ body: JSON? = nil, headers: [String: String] = [:]) async throws
        -> ServiceAnswer
    {
        try await send("PATCH", path, body, headers: headers)
    }

    public func delete(_ path: String, headers: [String: String] = [:]) async throws -> ServiceAnswer {
        try await send("DELETE", path, headers: headers)
    }

    /// Sends one call, with an optional JSON body.
    public func send(
        _ method: String, _ path: String, _ body: JSON? = nil, headers: [String: String] = [:]
    ) async throws -> ServiceAnswer {
        var headers = headers
        if body != nil { headers["Content-Type"] = headers["Content-Type"] ?? "application/json" }
        return try await send(method, path, bytes: body?.data, headers: headers)
    }

    /// Sends one call with a body of any kind. The given headers override the client's own.
    ///
    /// A call that is refused for its token (401) is retried once if the provider has another token. Without a
    /// token the call is not sent, and throws what the provider threw, or a ``TokenFailure``.
    public func send(
        _ method: String, _ path: String, bytes: Data?, headers: [String: String] = [:]
    ) async throws -> ServiceAnswer {
        let bearer: String?
        do {
            bearer = try await token.checked()
        } catch let unknown as UnidentifiedToken {
            guard unknown.answer.status != 0 else {
                throw TransportFailure.unreachable(Refusal(unknown.answer.body).detail ?? "")
            }
            return unknown.answer
        }
        let answer = try await once(method, path, body: bytes, headers: headers, bearer: bearer)
        guard answer.status == 401, let bearer, !token.isFixed else { return answer }
        // Without another token the refusal is the answer.
        let spent = SpentToken(token: bearer, answer: answer)
        guard let fresh = try? await token.checked(spent), fresh != bearer else { return answer }
        return try await once(method, path, body: bytes, headers: headers, bearer: fresh)
    }

    /// Sends one call; returns status 0 if there was no answer.
    package func attempt(
        _ method: String, _ path: String, _ body: JSON? = nil, headers: [String: String] = [:]
    ) async -> ServiceAnswer {
        do {
            return try await send(method, path, body, headers: headers)
        } catch {
            var problem: [String: JSON] = ["detail": .string("\(error)")]
            problem["code"] = (error as? TokenFailure).map { .string($0.code) }
            return ServiceAnswer(status: 0, headers: [:], body: JSON.object(problem).data)
        }
    }

    private func once(
        _ method: String, _ path: String, body bytes: Data?, headers: [String: String], bearer: String?
    ) async throws -> ServiceAnswer {
        var request = try request(method, path, headers: headers, bearer: bearer)
        request.httpBody = bytes
        let call = CallTask()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let task = session.dataTask(with: request) { data, response, error in
                    continuation.resume(with: ServiceAnswer.result(data, response, error))
                }
                call.start(task)
            }
        } onCancel: {
            call.cancel()
        }
    }

    func request(_ method: String, _ path: String, headers: [String: String], bearer: String?) throws -> URLRequest {
        guard let url = URL(string: baseURL + path), url.scheme != nil, url.host != nil else {
            throw TransportFailure.unusableURL(baseURL + path)
        }
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.setValue(clientID, forHTTPHeaderField: "X-Client-Id")
        if let bearer { request.setValue("Bearer \(bearer)", forHTTPHeaderField: "Authorization") }
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }
}

/// The task of one call, which may be cancelled before it exists.
private final class CallTask: Sendable {
    private let state = Guarded<(task: URLSessionDataTask?, isCancelled: Bool)>((nil, false))

    func start(_ task: URLSessionDataTask) {
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        // A task that is never resumed does not report back, and its caller would wait forever.
        task.resume()
        if isCancelled { task.cancel() }
    }

    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}
