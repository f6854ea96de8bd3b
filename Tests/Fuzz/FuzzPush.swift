import Cryptography
import Foundation
import Values

@testable import Push

/// Reads an answer of a push service. The first byte names the service, the next three are the status, and the rest is
/// the body. A reason must be a word that the database and the metrics take, and a time one that can be written.
let readPushAnswer: FuzzTarget = { input in
    guard input.count >= 4, let status = Int(String(decoding: input[1..<4], as: UTF8.self)), status >= 100 else {
        return
    }
    let body = Array(input[4...])
    switch input[0] {
    case UInt8(ascii: "a"): check(services.apns.outcome(status: status, retryAfterSeconds: 4, body: body), status)
    case UInt8(ascii: "f"): check(services.fcm.outcome(status: status, retryAfterSeconds: 4, body: body), status)
    case UInt8(ascii: "w"): check(services.webPush.outcome(status: status, retryAfterSeconds: 4), status)
    default: checkToken(body)
    }
}

private let services: (apns: APNs, fcm: FCM, webPush: WebPush) = {
    guard let account = try? FCM.Account(json: account(rsaKey())) else { fatalError("openssl makes no key") }
    let key = PrivateKey()
    return (
        APNs(.init(key: key, keyId: "k", team: "t", topic: "app")), FCM(account),
        WebPush(.init(key: key, contact: "mailto:ops@example.com"))
    )
}()

private func account(_ pem: String) -> [UInt8] {
    JSONWriter.object { writer in
        writer.member("project_id", "demo")
        writer.member("private_key", pem)
        writer.member("client_email", "bellhop@demo.example")
        writer.member("token_uri", "https://oauth.example/token")
    }
}

private func rsaKey() -> String {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = ["genpkey", "-algorithm", "RSA"]
    (process.standardOutput, process.standardError) = (output, FileHandle.nullDevice)
    do { try process.run() } catch { fatalError("openssl cannot be started: \(error)") }
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return String(decoding: text, as: UTF8.self)
}

private func check(_ outcome: PushOutcome, _ status: Int) {
    switch outcome {
    case .accepted: require((200..<300).contains(status), "accepted with \(status)")
    case .interrupted: require(false, "an answer that is none")
    case .gone(let reason, let since):
        checkWord(reason)
        // A time of five digits of the year has no text.
        if let since { require(since.rfc3339.utf8.count == 24 && since.seconds >= 0, "the time \(since)") }
    case .refused(let reason), .misconfigured(let reason), .mismatched(let reason), .failed(let reason, _):
        checkWord(reason)
    }
}

private func checkWord(_ reason: String) {
    let isWord = reason.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
    require(isWord && (1...PushReason.bytesMax).contains(reason.utf8.count), "the reason \(reason)")
}

private func checkToken(_ body: [UInt8]) {
    guard let token = FCM.accessToken(body) else { return }
    require((0...86_400).contains(token.seconds), "a token of \(token.seconds) s")
    // The token stands in a header.
    require(token.text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a token that ends the header")
}
