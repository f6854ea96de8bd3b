import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

/// A key set in a file, as an issuer publishes it, with the private keys that sign its tokens.
struct Issuer {
    private let directory: TemporaryDirectory
    private var keys: [String: IssuerKey] = [:]
    private var published: [String] = []

    init() throws { directory = try TemporaryDirectory() }

    var file: URL { URL(fileURLWithPath: directory.file("jwks.json")) }

    /// - Parameter more: further members of the key, as JSON.
    mutating func add(_ id: String, more: String = "") throws {
        let key = IssuerKey()
        keys[id] = key
        let (x, y) = (TestService.base64URL(key.point.x), TestService.base64URL(key.point.y))
        published.append(#"{"kty":"EC","crv":"P-256","kid":"\#(id)","alg":"ES256","x":"\#(x)","y":"\#(y)"\#(more)}"#)
        try publish()
    }

    /// Removes all earlier keys from the published set.
    mutating func withdraw() { published = [] }

    /// - Parameter others: further entries of the set, before the keys, as JSON.
    func publish(beside others: [String] = []) throws {
        try Data(#"{"keys":[\#((others + published).joined(separator: ","))]}"#.utf8).write(to: file)
    }

    /// Returns a token of `u1` that is valid for ten minutes.
    func token(_ id: String, at now: Timestamp, _ claims: [String: JSON] = [:]) throws -> String {
        let key = try #require(keys[id])
        let head = #"{"alg":"ES256","typ":"JWT","kid":"\#(id)"}"#
        let payload = JSON.object(claims.merging(["sub": "u1", "exp": .integer(now.seconds + 600)]) { $1 })
        let signed = TestService.base64URL(Data(head.utf8)) + "." + TestService.base64URL(payload.data)
        return signed + "." + TestService.base64URL(key.signature(of: signed.utf8))
    }
}
