import BellhopClient

/// Speaks to the service as whoever a play of `bellhop demo` needs.
struct Speaker: Sendable {
    /// The service answered what the play cannot go on from.
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

    func speaking(_ token: DevelopmentToken) -> BellhopClient {
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
