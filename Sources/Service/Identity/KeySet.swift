import Cryptography
import Foundation
import Values

/// The public keys of a published key set (RFC 7517) that can verify tokens.
///
/// Each key is read by itself. Issuers also publish keys for other purposes and of kinds that this code does not know.
/// An unusable key must not invalidate the others, nor keep a withdrawn key in use by causing the whole set to be
/// refused.
struct KeySet: Sendable {
    /// The reason why a document or a key cannot be used, for the log.
    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    /// The source document: equal bytes mean equal keys.
    let document: Data
    /// The keys by id. The id of a key without one is its position in the set. An issuer may give several keys the same
    /// id.
    private(set) var keys: [String: [SigningKey]] = [:]
    private(set) var usedCount = 0
    private(set) var skippedCount = 0
    /// The first keys that were skipped, and why.
    private(set) var skipped: [String] = []

    /// - Throws: if the document is not a key set.
    init(reading document: Data) throws(Unusable) {
        guard document.count <= Limits.keySetBytesMax else { throw Unusable(description: "the document is too large") }
        let value: JSONValue
        do throws(Failure) {
            value = try JSONValue(parsing: Array(document))
        } catch {
            throw Unusable(description: "it is not valid JSON")
        }
        guard case .object(let members) = value, case .array(let published)? = members["keys"] else {
            throw Unusable(description: "it is not a key set: the list of keys is missing")
        }
        self.document = document
        for (index, key) in published.enumerated() {
            do throws(Unusable) {
                try add(key, at: index)
            } catch {
                skippedCount += 1
                if skipped.count < Limits.skippedKeysLoggedMax { skipped.append("key \(index): \(error)") }
            }
        }
    }

    private mutating func add(_ key: JSONValue, at index: Int) throws(Unusable) {
        guard case .object(let members) = key else { throw Unusable(description: "it is not an object") }
        var id = "\(index)"
        if let named = members["kid"] {
            guard case .string(let text) = named else { throw Unusable(description: "its kid is not a string") }
            id = text
        }
        guard usedCount < Limits.signingKeysMax else { throw Unusable(description: "there are too many keys") }
        keys[id, default: []].append(try SigningKey(members))
        usedCount += 1
    }
}

/// A public key with the one algorithm that it may be used with (RFC 8725 §3.1).
struct SigningKey: Sendable {
    let algorithm: String
    let publicKey: PublicKey

    /// - Throws: if the key is not for verifying signatures, of an unknown kind, or damaged. Private parts are not
    ///   read.
    init(_ jwk: [String: JSONValue]) throws(KeySet.Unusable) {
        if let use = jwk["use"], use != .string("sig") {
            throw KeySet.Unusable(description: "its use must be sig")
        }
        if let operations = jwk["key_ops"] {
            guard case .array(let names) = operations, names.contains(.string("verify")) else {
                throw KeySet.Unusable(description: "its key_ops must contain verify")
            }
        }
        algorithm = try Self.algorithm(of: jwk)
        do {
            publicKey = try Self.publicKey(of: jwk, algorithm)
        } catch {
            throw (error as? KeySet.Unusable) ?? KeySet.Unusable(description: "it is damaged or too small to be secure")
        }
    }

    /// Returns the algorithm that a key names, otherwise its type's default. A published set must not contain a shared
    /// secret.
    private static func algorithm(of jwk: [String: JSONValue]) throws(KeySet.Unusable) -> String {
        let (type, curve) = (jwk.string("kty"), jwk.string("crv"))
        let fitting: [String] =
            switch (type, curve) {
            case ("RSA"?, _): ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
            case ("EC"?, "P-256"?): ["ES256"]
            case ("EC"?, "P-384"?): ["ES384"]
            case ("EC"?, "P-521"?): ["ES512"]
            case ("OKP"?, "Ed25519"?): ["EdDSA"]
            default: []
            }
        guard let usual = fitting.first else {
            throw KeySet.Unusable(
                description: "its key type is not supported (\(type ?? "no kty"), \(curve ?? "no crv"))")
        }
        guard let named = jwk["alg"] else { return usual }
        guard case .string(let name) = named, fitting.contains(usualName(of: name)) else {
            throw KeySet.Unusable(description: "its alg is not supported or does not match its kty")
        }
        return usualName(of: name)
    }

    /// Returns the name of an algorithm in RFC 8037, for that of RFC 9864.
    static func usualName(of algorithm: String) -> String { algorithm == "Ed25519" ? "EdDSA" : algorithm }

    private static func publicKey(of jwk: [String: JSONValue], _ algorithm: String) throws -> PublicKey {
        switch algorithm {
        case "ES256": try point(jwk, on: .p256)
        case "ES384": try point(jwk, on: .p384)
        case "ES512": try point(jwk, on: .p521)
        case "EdDSA": try PublicKey(ed25519: bytes(jwk, "x"))
        default:
            try PublicKey(
                rsaModulus: bytes(jwk, "n"), exponent: bytes(jwk, "e"), digest(of: algorithm),
                algorithm.hasPrefix("PS") ? .pss : .pkcs1)
        }
    }

    private static func digest(of algorithm: String) -> Digest {
        switch algorithm.suffix(3) {
        case "256": .sha256
        case "384": .sha384
        default: .sha512
        }
    }

    private static func point(_ jwk: [String: JSONValue], on curve: PublicKey.Curve) throws -> PublicKey {
        let (x, y) = (try bytes(jwk, "x"), try bytes(jwk, "y"))
        guard x.count == curve.coordinateBytes, y.count == curve.coordinateBytes else {
            throw KeySet.Unusable(description: "its coordinates must have \(curve.coordinateBytes) bytes")
        }
        return try PublicKey(curve, x: x, y: y)
    }

    private static func bytes(_ jwk: [String: JSONValue], _ name: String) throws(KeySet.Unusable) -> [UInt8] {
        guard let text = jwk.string(name), let bytes = RFC4648.decodeURL(text.utf8), !bytes.isEmpty else {
            throw KeySet.Unusable(description: "its \(name) is missing or invalid")
        }
        return bytes
    }
}
