import Cryptography
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// Wycheproof's test vectors for JSON Web Signatures (`Tests/Fixtures/Wycheproof`).
@Suite(.timed) struct WycheproofTests {
    private static let file = repository.appendingPathComponent(
        "Tests/Fixtures/Wycheproof/json_web_signature_test.json")

    /// Vectors that Wycheproof accepts and the service refuses, with the reason.
    private static let refused: [Int: String] = [
        346: "a key may be used only for the algorithm it names (RFC 8725, 3.1): PS256, not the token's PS384",
        350: "the same, with key_ops in the key",
        347: "ES521 is not an algorithm: the one for P-521 is called ES512",
        351: "the same, with key_ops in the key",
        372: "a character outside base64url, which some readers skip: a token has one spelling",
        373: "the same in the payload",
    ]

    /// Vectors that Wycheproof refuses and the service accepts, with the reason.
    private static let accepted: [Int: String] = [
        367: "should have wrong padding, but the file lost it: the bytes are those of the valid token 357",
        370: "the same",
    ]

    @Test func signatures_matchTheWycheproofVectors() throws {
        let document = try JSONValue(parsing: Array(Data(contentsOf: Self.file)))
        guard case .object(let root) = document else { return #expect(Bool(false), "no JSON object") }
        var count = 0
        for group in root.objects("testGroups") ?? [] {
            guard case .object(let key)? = group["public"] ?? group["private"] else { continue }
            for test in group.objects("tests") ?? [] {
                guard let id = test.integer("tcId"), let token = test.string("jws") else { continue }
                let isValid = test.string("result") == "valid"
                let isExpected = isValid ? Self.refused[Int(id)] == nil : Self.accepted[Int(id)] != nil
                #expect(Self.isValid(token, by: key) == isExpected, "\(id): \(test.string("comment") ?? "")")
                count += 1
            }
        }
        #expect(count == root.integer("numberOfTests").map(Int.init))
    }

    /// Verifies a token as a service with this single key does.
    private static func isValid(_ token: String, by key: [String: JSONValue]) -> Bool {
        var token = token
        return token.withUTF8 { bytes in
            guard let token = try? SignedToken(bytes) else { return false }
            if key.string("kty") == "oct" {
                guard token.algorithm == "HS256", let text = key.string("k"),
                    let secret = RFC4648.decodeURL(text.utf8)
                else { return false }
                return token.isSigned(by: AuthenticationKey(secret))
            }
            let set = JSONWriter.bytes(JSONValue.object(["keys": .array([.object(key)])]))
            guard let keys = try? KeySet(reading: Data(set)).keys, let id = try? token.keyId() else { return false }
            return keys[id]?.contains { token.isSigned(by: $0) } ?? false
        }
    }
}
