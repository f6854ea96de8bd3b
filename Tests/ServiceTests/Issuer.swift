import Foundation
import JWTKit
import TestSupport
import Testing
import Values

/// A key set in a file, as an issuer publishes it, with what signs for it.
struct Issuer {
    private struct Claims: JWTPayload {
        var sub = "u1"
        var exp: Int
        func verify(using _: some JWTAlgorithm) {}
    }

    private let directory: TemporaryDirectory
    private let keys = JWTKeyCollection()
    private var published: [String] = []

    init() throws { directory = try TemporaryDirectory() }

    var file: URL { URL(fileURLWithPath: directory.file("jwks.json")) }

    /// - Parameter more: further members of the key, as JSON.
    mutating func add(_ id: String, more: String = "") async throws {
        let key = ES256PrivateKey()
        await keys.add(ecdsa: key, kid: JWKIdentifier(string: id))
        let point = try #require(key.publicKey.parameters)
        func encoded(_ text: String) -> String {
            text.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
                .replacingOccurrences(of: "=", with: "")
        }
        let (x, y) = (encoded(point.x), encoded(point.y))
        published.append(#"{"kty":"EC","crv":"P-256","kid":"\#(id)","alg":"ES256","x":"\#(x)","y":"\#(y)"\#(more)}"#)
        try publish()
    }

    /// Leaves out all keys that were added before.
    mutating func withdraw() { published = [] }

    /// - Parameter others: what stands in the set before the keys, as JSON.
    func publish(beside others: [String] = []) throws {
        try Data(#"{"keys":[\#((others + published).joined(separator: ","))]}"#.utf8).write(to: file)
    }

    func token(_ id: String, at now: Timestamp) async throws -> String {
        try await keys.sign(Claims(exp: Int(now.seconds + 600)), kid: JWKIdentifier(string: id))
    }
}
