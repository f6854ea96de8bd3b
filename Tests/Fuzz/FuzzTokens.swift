import Configuration
import Cryptography
import Foundation
import Logging
import Values

@testable import Service

/// Verifies a token. The first line of the input is the token's head and the second its claims, and both are signed.
/// Without a second line, the input is the whole token. An accepted token must have a valid signature and claims that
/// Foundation reads the same way.
let readToken: FuzzTarget = { input in
    let lines = input.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
    var token = input
    if lines.count == 2 {
        let signed = RFC4648.encodeURL(lines[0]) + "." + RFC4648.encodeURL(lines[1])
        token = Array((signed + "." + RFC4648.encodeURL(tokenSecret.code(for: signed.utf8))).utf8)
    }
    let verdict = token.withUnsafeBufferPointer { token in
        try? tokens.verdict(on: token, at: tokenMoment)
    }
    guard case .known(let principal)? = verdict else { return }
    require(lines.count == 2 || isSigned(token), "an accepted token without a valid signature")
    let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let claims = RFC4648.decodeURL(parts[1]).flatMap { try? JSONSerialization.jsonObject(with: Data($0)) }
    guard let claims = claims as? [String: Any] else { return require(false, "the claims are no object") }
    let expiry = (claims["exp"] as? NSNumber)?.doubleValue
    require(expiry ?? 0 > 1_700_000_000, "an accepted token without an expiry, or after it")
    let subject = claims["sub"] as? String ?? ""
    require(subject.utf8.elementsEqual(principal.caller.userId.text.utf8), "the subject differs")
}

private let secretText = "a secret that only the fuzzer knows, long enough"
private let tokenSecret = AuthenticationKey(secretText.utf8)

/// The time at which the tokens of the seeds are valid.
private let tokenMoment = Timestamp(microseconds: 1_700_000_000_000_000)

private let tokens: Authenticator = {
    let provider = InMemoryProvider(
        values: [AbsoluteConfigKey(["jwtSecret"]): ConfigValue(.string(secretText), isSecret: true)])
    do {
        return try Authenticator(
            settings: Settings(reader: ConfigReader(provider: provider)),
            clock: Clock(now: { tokenMoment }, uptime: { .zero }), revocations: RevocationList(), generation: { 0 },
            scoped: { $0 }, metrics: MetricsRegistry(), logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() })
    } catch {
        fatalError("\(error)")
    }
}()

private func isSigned(_ token: [UInt8]) -> Bool {
    guard let end = token.lastIndex(of: UInt8(ascii: ".")), let code = RFC4648.decodeURL(token[(end + 1)...]) else {
        return false
    }
    return tokenSecret.isValid(code, for: token[..<end])
}
