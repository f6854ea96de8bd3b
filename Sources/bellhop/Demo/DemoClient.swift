import BellhopClient

/// A client of the service that calls it on behalf of any person of `bellhop demo`.
struct DemoClient: Sendable {
    /// An answer of the service with which the demo cannot continue.
    struct Refusal: Error, CustomStringConvertible {
        let description: String
    }

    private let client: BellhopClient
    private let secret: String
    private let tenant: String?

    /// - Parameter tenant: nil leaves it out of the tokens.
    init(baseURL: String, secret: String, tenant: String?) {
        client = BellhopClient(baseURL: baseURL)
        self.secret = secret
        self.tenant = tenant
    }

    /// A client that sends the token.
    func with(_ token: DevelopmentToken) -> BellhopClient {
        var token = token
        token.tenant = tenant
        return client.with(token: token.signed(with: secret))
    }

    @discardableResult
    static func expect(_ answer: ServiceAnswer, _ what: String) throws -> ServiceAnswer {
        guard answer.isSuccess else { throw Refusal(description: "could not \(what): \(answer.problem)") }
        return answer
    }
}
