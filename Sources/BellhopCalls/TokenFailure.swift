/// Why there is no token for a call or a stream.
public struct TokenFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// `token.none`: the app has no token. `token.failed`: its provider threw. `token.slow`: its provider did not answer in
    /// 30 seconds. `token.wrong`: it is no token. `token.expired`: its life is over.
    public let code: String
    /// What the app's provider threw, or the fault of the token.
    public let detail: String?

    package init(code: String, detail: String? = nil) { (self.code, self.detail) = (code, detail) }

    public var description: String {
        "there is no token for the call: \([code, detail].compactMap(\.self).joined(separator: ": "))"
    }
}

extension BellhopClient.TokenProvider {
    /// Returns the app's token; nil only for ``none``, whose calls have no token.
    ///
    /// - Throws: What the app's provider throws, and a ``TokenFailure`` if it returns no token.
    func checked(_ spent: SpentToken? = nil) async throws -> String? {
        guard let given = try await token(spent), !given.isEmpty else {
            if isFixed { return nil }
            throw TokenFailure(code: "token.none")
        }
        // RFC 6750 §2.1. Other characters would end the header or begin another one.
        let allowed = given.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard allowed else {
            throw TokenFailure(
                code: "token.wrong", detail: "A token has visible ASCII characters only, without spaces or line breaks."
            )
        }
        return given
    }
}

/// A token that is no longer valid, and the service's answer that refused it.
package struct SpentToken: Sendable {
    package let token: String
    package var answer: ServiceAnswer?
}

/// The service did not name the identity of a token. A call that waits for the token receives the answer as its own.
struct UnidentifiedToken: Error {
    package let answer: ServiceAnswer
}
