import Cryptography
import OutboundHTTP
import TestSupport
import Testing
import Values

@testable import Push

private let now = Timestamp(microseconds: 1_800_000_000_000_000)

func message(
    _ content: PushMessage.Content = .alert(title: "New message", body: "Ada wrote to you", isSilent: false),
    tag: String = "n1", withdrawn: [String] = []
) -> PushMessage {
    PushMessage(
        content, badge: 7, tag: tag, data: Array(#"{"id":"n1"}"#.utf8), withdrawn: withdrawn, secondsToLive: 3600)
}

private func members(_ bytes: [UInt8]) throws -> [String: JSONValue] {
    guard case .object(let members) = try JSONValue(parsing: bytes) else {
        throw Failure(.malformed, "test", "it is no object")
    }
    return members
}

private func header(_ name: String, of post: OutboundPost) -> String? {
    post.headers.first { $0.name == name }?.value
}

/// Returns the claims of a token that a key has signed.
private func claims(of token: String, _ key: PrivateKey) throws -> [String: JSONValue] {
    let parts = token.split(separator: ".").map(String.init)
    try #require(parts.count == 3)
    let signature = try #require(RFC4648.decodeURL(parts[2].utf8))
    let point = key.publicPoint
    let publicKey = try PublicKey(.p256, x: Array(point[1..<33]), y: Array(point[33...]))
    #expect(publicKey.verifies(signature, of: Array("\(parts[0]).\(parts[1])".utf8)))
    return try members(try #require(RFC4648.decodeURL(parts[1].utf8)))
}

/// Names that apps choose and that become headers.
@Suite(.timed) struct HeaderTests {
    @Test(arguments: ["conversation:caf\u{E9}", "a b", "a\u{7F}", String(repeating: "a", count: 65)])
    func collapseId_isAHeader_whateverTheTag(_ tag: String) {
        let id = APNs.collapseId(tag)
        #expect(id != tag && (1...64).contains(id.utf8.count) && id.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        #expect(APNs.collapseId("conversation:cafe") == "conversation:cafe")
    }
}

@Suite(.timed) struct WebPushTests {
    private static let receiver =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"

    static func subscription(_ endpoint: String = "https://push.example.net/push/J1") throws
        -> WebPushSubscription
    {
        try WebPushSubscription(
            endpoint: endpoint, key: try #require(RFC4648.decodeURL(receiver.utf8)),
            secret: try #require(RFC4648.decodeURL("BTBZMqHH6r4Tts7J_aSIgg".utf8)))
    }

    /// RFC 8291 §5.
    @Test func encryption_matchesTheExampleOfItsStandard() throws {
        let key = try PrivateKey(
            p256: try #require(RFC4648.decodeURL("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw".utf8)))
        let body = WebPush.encrypted(
            Array("When I grow up, I want to be a watermelon".utf8), for: try Self.subscription(), key: key,
            salt: try #require(RFC4648.decodeURL("DGv6ra1nlYgDCS1FRnbzlw".utf8)))
        #expect(
            RFC4648.encodeURL(body)
                == "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8"
                + "wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
    }

    @Test func requests_areSignedForThePushService_andNamedByTheirTag() throws {
        let key = PrivateKey()
        let webPush = WebPush(WebPush.Account(key: key, contact: "mailto:ops@example.com"))
        let post = webPush.request(message(), to: try Self.subscription(), at: now)
        #expect(post.url == "https://push.example.net/push/J1" && post.contentType == "application/octet-stream")
        #expect(header("ttl", of: post) == "3600" && header("content-encoding", of: post) == "aes128gcm")
        #expect(header("topic", of: post)?.count == 32)
        let parts = try #require(header("authorization", of: post)).split(separator: " ").map(String.init)
        #expect(parts[0] == "vapid" && parts[2] == "k=\(RFC4648.encodeURL(key.publicPoint))")
        let claims = try claims(of: String(parts[1].dropFirst(2).dropLast()), key)
        #expect(claims.string("aud") == "https://push.example.net" && claims.string("sub") == "mailto:ops@example.com")
        #expect(try #require(claims.integer("exp")) - now.seconds <= 24 * 3600)
        let again = webPush.request(message(), to: try Self.subscription(), at: now)
        #expect(header("authorization", of: again) == header("authorization", of: post))
        #expect(again.body != post.body, "each message has a key and a salt of its own")
    }

    /// RFC 7515 §4.1.4: `kid` is a text. Push services with a strict library refuse null.
    @Test func signature_namesNoKey_becauseThePairHasNoId() throws {
        let webPush = WebPush(WebPush.Account(key: PrivateKey(), contact: "mailto:ops@example.com"))
        let post = webPush.request(message(), to: try Self.subscription(), at: now)
        let token = try #require(header("authorization", of: post)).dropFirst("vapid t=".count)
        let head = try members(try #require(RFC4648.decodeURL(token.prefix { $0 != "." }.utf8)))
        #expect(head.keys.sorted() == ["alg", "typ"])
    }

    @Test func subscriptionsWithWrongKeys_areRefused_withTheirPlace() throws {
        let key = try #require(RFC4648.decodeURL(Self.receiver.utf8))
        let secret = [UInt8](repeating: 1, count: 16)
        for (key, secret, pointer) in [
            (Array(key.dropLast()), secret, "/subscription/keys/p256dh"),
            ([2] + key.dropFirst(), secret, "/subscription/keys/p256dh"),
            (key.dropLast() + [key[64] ^ 1], secret, "/subscription/keys/p256dh"),
            (key, Array(secret.dropLast()), "/subscription/keys/auth"),
        ] {
            let failure = #expect(throws: Failure.self) {
                try WebPushSubscription(endpoint: "https://a.example/", key: key, secret: secret)
            }
            #expect(failure?.fields.map(\.pointer) == [pointer])
        }
    }

    @Test(arguments: [
        (201, PushOutcome.accepted), (410, .gone(reason: "status_410", since: nil)),
        (404, .gone(reason: "status_404", since: nil)), (403, .mismatched(reason: "status_403")),
        (401, .mismatched(reason: "status_401")), (400, .refused(reason: "status_400")),
        (406, .failed(reason: "status_406", retryAfterSeconds: 9)),
        (502, .failed(reason: "status_502", retryAfterSeconds: 9)),
        (413, .refused(reason: "status_413")), (429, .failed(reason: "status_429", retryAfterSeconds: 9)),
        (502, .failed(reason: "status_502", retryAfterSeconds: 9)),
    ])
    func answers_areUnderstood(status: Int, outcome: PushOutcome) {
        let webPush = WebPush(WebPush.Account(key: PrivateKey(), contact: "mailto:a@example.com"))
        #expect(webPush.outcome(status: status, retryAfterSeconds: 9) == outcome)
    }
}

@Suite(.timed) struct APNsTests {
    private let key = PrivateKey()

    private var apns: APNs { APNs(APNs.Account(key: key, keyId: "K1", team: "T1", topic: "com.example.app")) }

    private func request(_ message: PushMessage, _ apns: APNs, at time: Timestamp = now) -> OutboundPost {
        apns.request(message, to: APNs.Address(token: "ab01"), at: time)
    }

    @Test func alerts_haveTextNumberAndTag() throws {
        let post = request(message(), apns)
        #expect(post.url == "https://api.push.apple.com/3/device/ab01")
        #expect(header("apns-topic", of: post) == "com.example.app" && header("apns-push-type", of: post) == "alert")
        #expect(header("apns-priority", of: post) == "10" && header("apns-collapse-id", of: post) == "n1")
        #expect(header("apns-expiration", of: post) == "\(now.seconds + 3600)")
        let payload = try members(post.body)
        let aps = try #require(payload.object("aps"))
        #expect(aps.object("alert")?.string("body") == "Ada wrote to you")
        #expect(aps.integer("badge") == 7 && aps.string("sound") == "default")
        #expect(payload.object("bellhop")?.object("data")?.string("id") == "n1")
        let silent = try members(request(message(.alert(title: "a", body: "b", isSilent: true)), apns).body)
        #expect(silent.object("aps")?["sound"] == nil)
    }

    @Test func badgesAndWithdrawals_showNothing() throws {
        let badge = request(message(.badge, tag: ""), apns)
        #expect(String(decoding: badge.body, as: UTF8.self).hasPrefix(#"{"aps":{"badge":7},"#))
        #expect(header("apns-push-type", of: badge) == "alert" && header("apns-priority", of: badge) == "5")
        #expect(header("apns-collapse-id", of: badge) == nil)
        let withdrawal = request(message(.withdrawal, withdrawn: ["n1", "n2"]), apns)
        #expect(header("apns-push-type", of: withdrawal) == "background")
        #expect(header("apns-priority", of: withdrawal) == "5" && header("apns-collapse-id", of: withdrawal) == nil)
        let payload = try members(withdrawal.body)
        #expect(payload.object("aps")?.integer("content-available") == 1)
        #expect(payload.object("bellhop")?.strings("withdrawn") == ["n1", "n2"])
    }

    @Test func sandboxAndOtherApps_haveTheirOwnAddressAndTopic() {
        let app = PushApp(id: "com.example.two", isSandbox: true)
        let post = apns.request(message(), to: APNs.Address(token: "ab", of: app), at: now)
        #expect(post.url == "https://api.sandbox.push.apple.com/3/device/ab")
        #expect(header("apns-topic", of: post) == "com.example.two")
    }

    @Test func longTags_andLongTexts_fit() throws {
        let tag = String(repeating: "ü", count: 60)
        let body = String(repeating: "\u{1F600}\u{1}", count: 5000)
        let post = request(message(.alert(title: body, body: body, isSilent: false), tag: tag), apns)
        #expect(try #require(header("apns-collapse-id", of: post)).utf8.count <= 64)
        #expect(post.body.count <= PushLimits.payloadBytesMax)
        let alert = try #require(try members(post.body).object("aps")?.object("alert"))
        #expect(try #require(alert.string("body")).hasSuffix("…"))
    }

    /// Apple refuses a token that is older than an hour, and a second new one within 20 minutes.
    @Test func providerToken_isRenewedAfterFortyMinutes() throws {
        let apns = apns
        func token(after minutes: Int64) -> String? {
            header("authorization", of: request(message(), apns, at: now.adding(minutes: minutes)))
        }
        let first = try #require(token(after: 0))
        let claims = try claims(of: String(first.dropFirst("bearer ".count)), key)
        #expect(claims.string("iss") == "T1" && claims.integer("iat") == now.seconds)
        #expect(token(after: 39) == first)
        let second = token(after: 40)
        #expect(second != first && token(after: 79) == second)
        #expect(token(after: 0) != second, "the clock was set back")
    }

    @Test func expiredProviderToken_isMadeAnew() {
        let apns = apns
        let first = header("authorization", of: request(message(), apns))
        let outcome = apns.outcome(
            status: 403, retryAfterSeconds: nil, body: Array(#"{"reason":"ExpiredProviderToken"}"#.utf8))
        #expect(outcome == .failed(reason: "ExpiredProviderToken", retryAfterSeconds: nil))
        #expect(header("authorization", of: request(message(), apns)) != first)
    }

    /// Apple accepts one new token in 20 minutes. So a late answer about a former token must not end the new one.
    @Test func lateRefusalOfAFormerProviderToken_leavesTheNewOne() {
        let apns = apns
        func authorization() -> String? { header("authorization", of: request(message(), apns)) }
        let first = authorization()
        func refuse() {
            let body = Array(#"{"reason":"ExpiredProviderToken"}"#.utf8)
            let outcome = apns.outcome(status: 403, retryAfterSeconds: nil, body: body, used: first)
            #expect(outcome == .failed(reason: "ExpiredProviderToken", retryAfterSeconds: nil))
        }
        refuse()
        let second = authorization()
        #expect(second != first)
        refuse()
        #expect(authorization() == second)
    }

    @Test(arguments: [
        (200, "", PushOutcome.accepted),
        (
            410, #"{"reason":"Unregistered","timestamp":1800000000000}"#,
            .gone(reason: "Unregistered", since: Timestamp(microseconds: 1_800_000_000_000_000))
        ),
        (410, "", .gone(reason: "status_410", since: nil)),
        (410, #"{"timestamp":-9223372036854775808}"#, .gone(reason: "status_410", since: nil)),
        (410, #"{"timestamp":-1}"#, .gone(reason: "status_410", since: nil)),
        (410, #"{"timestamp":9223372036854775807}"#, .gone(reason: "status_410", since: nil)),
        (413, #"{"reason":"a\u0000b"}"#, .refused(reason: "status_413")),
        (413, #"{"reason":"<b>"}"#, .refused(reason: "status_413")),
        (413, #"{"reason":""}"#, .refused(reason: "status_413")),
        (413, "{\"reason\":\"\(String(repeating: "a", count: 65))\"}", .refused(reason: "status_413")),
        (
            410, #"{"reason":"ExpiredToken","timestamp":1800000000000}"#,
            .gone(reason: "ExpiredToken", since: Timestamp(microseconds: 1_800_000_000_000_000))
        ),
        (400, #"{"reason":"BadDeviceToken"}"#, .mismatched(reason: "BadDeviceToken")),
        (400, #"{"reason":"DeviceTokenNotForTopic"}"#, .mismatched(reason: "DeviceTokenNotForTopic")),
        (400, #"{"reason":"BadTopic"}"#, .mismatched(reason: "BadTopic")),
        (400, #"{"reason":"TopicDisallowed"}"#, .mismatched(reason: "TopicDisallowed")),
        (400, #"{"reason":"MissingTopic"}"#, .misconfigured(reason: "MissingTopic")),
        (400, #"{"reason":"BadCollapseId"}"#, .refused(reason: "BadCollapseId")),
        (400, #"{"reason":"BadExpirationDate"}"#, .refused(reason: "BadExpirationDate")),
        (400, #"{"reason":"BadPriority"}"#, .refused(reason: "BadPriority")),
        (400, #"{"reason":"BadMessageId"}"#, .refused(reason: "BadMessageId")),
        (400, #"{"reason":"InvalidPushType"}"#, .refused(reason: "InvalidPushType")),
        (400, #"{"reason":"DuplicateHeaders"}"#, .refused(reason: "DuplicateHeaders")),
        (400, #"{"reason":"PayloadEmpty"}"#, .refused(reason: "PayloadEmpty")),
        (400, #"{"reason":"MissingDeviceToken"}"#, .refused(reason: "MissingDeviceToken")),
        (400, #"{"reason":"IdleTimeout"}"#, .failed(reason: "IdleTimeout", retryAfterSeconds: nil)),
        (403, #"{"reason":"MissingProviderToken"}"#, .misconfigured(reason: "MissingProviderToken")),
        (403, #"{"reason":"BadCertificateEnvironment"}"#, .misconfigured(reason: "BadCertificateEnvironment")),
        (403, #"{"reason":"BadEnvironmentKeyIdInToken"}"#, .misconfigured(reason: "BadEnvironmentKeyIdInToken")),
        (403, #"{"reason":"Forbidden"}"#, .misconfigured(reason: "Forbidden")),
        (404, #"{"reason":"BadPath"}"#, .misconfigured(reason: "BadPath")),
        (405, #"{"reason":"MethodNotAllowed"}"#, .refused(reason: "MethodNotAllowed")),
        (
            429, #"{"reason":"TooManyProviderTokenUpdates"}"#,
            .failed(reason: "TooManyProviderTokenUpdates", retryAfterSeconds: 4)
        ),
        (500, #"{"reason":"InternalServerError"}"#, .failed(reason: "InternalServerError", retryAfterSeconds: 4)),
        (503, #"{"reason":"Shutdown"}"#, .failed(reason: "Shutdown", retryAfterSeconds: 4)),
        (413, #"{"reason":"PayloadTooLarge"}"#, .refused(reason: "PayloadTooLarge")),
        (403, #"{"reason":"InvalidProviderToken"}"#, .misconfigured(reason: "InvalidProviderToken")),
        (429, #"{"reason":"TooManyRequests"}"#, .failed(reason: "TooManyRequests", retryAfterSeconds: 4)),
        (503, "<html>", .failed(reason: "status_503", retryAfterSeconds: 4)),
    ])
    func answers_areUnderstood(status: Int, body: String, outcome: PushOutcome) {
        #expect(apns.outcome(status: status, retryAfterSeconds: 4, body: Array(body.utf8)) == outcome)
    }
}

@Suite(.timed) struct PushKeyRingTests {
    private static let (new, old) = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))

    @Test func secrets_areOpenedByTheirKey_atTheirPlaceOnly() throws {
        let ring = try #require(PushKeyRing([Self.old]))
        let secret = Array("token".utf8)
        let sealed = ring.seal(secret, context: [1])
        #expect(ring.open(sealed, context: [1]) == secret && !ring.isOld(sealed))
        #expect(ring.open(sealed, context: [2]) == nil)
        #expect(ring.seal(secret, context: [1]) != sealed)
        let rotated = try #require(PushKeyRing([Self.new, Self.old]))
        #expect(rotated.open(sealed, context: [1]) == secret && rotated.isOld(sealed))
        #expect(!rotated.isOld(rotated.seal(secret, context: [1])))
        #expect(try #require(PushKeyRing([Self.new])).open(sealed, context: [1]) == nil)
        for count in 0..<sealed.count { #expect(ring.open(Array(sealed.prefix(count)), context: [1]) == nil) }
    }

    @Test func unusableRings_areRefused() {
        #expect(PushKeyRing([]) == nil)
        #expect(PushKeyRing([[1, 2, 3]]) == nil)
        #expect(PushKeyRing([Self.new, Self.new]) == nil)
    }
}

@Suite(.timed) struct FCMTests {
    /// A service account whose key openssl(1) makes for this process.
    static let account = Result {
        let key = try ChildProcess(["openssl", "genpkey", "-algorithm", "RSA"], dropsErrors: true).finish()
        return try FCM.Account(json: Self.file(key: key.text))
    }

    private static func file(key: String, project: String = "demo", keyId: String? = "k1") -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("project_id", project)
            if let keyId { writer.member("private_key_id", keyId) }
            writer.member("private_key", key)
            writer.member("client_email", "bellhop@demo.example")
            writer.member("token_uri", "https://oauth.example/token")
        }
    }

    private func fcm() throws -> FCM { FCM(try Self.account.get()) }

    @Test func unusableAccounts_areRefused_withTheReason() throws {
        let curve = try ChildProcess(
            ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], dropsErrors: true)
        for (json, reason) in [
            (Array("{".utf8), "is not a JSON object"), (Array("[]".utf8), "is not a JSON object"),
            (Array("{}".utf8), "has no private_key"), (Self.file(key: "none"), "has no RSA key in private_key"),
            (Self.file(key: curve.finish().text), "has no RSA key in private_key"),
        ] {
            let error = #expect(throws: FCM.Account.Invalid.self) { try FCM.Account(json: json) }
            #expect(error?.description.hasPrefix(reason) == true, "\(error?.description ?? "none")")
        }
    }

    @Test func accessIsAskedFor_withASignedAssertion() throws {
        let post = try fcm().accessRequest(at: now)
        #expect(post.url == "https://oauth.example/token" && post.contentType == "application/x-www-form-urlencoded")
        let form = String(decoding: post.body, as: UTF8.self)
        let assertion = try #require(form.components("&assertion=").last)
        let claims = try members(try #require(RFC4648.decodeURL(assertion.split(separator: ".")[1].utf8)))
        #expect(claims.string("iss") == "bellhop@demo.example" && claims.string("aud") == "https://oauth.example/token")
        #expect(claims.integer("exp") == now.seconds + 3600)
    }

    /// RFC 7515 §4.1.4: `kid` is a text, or absent.
    @Test(arguments: ["k1", nil]) func assertion_namesItsKey_ifTheFileDoes(keyId: String?) throws {
        let key = try ChildProcess(["openssl", "genpkey", "-algorithm", "RSA"], dropsErrors: true).finish()
        let fcm = FCM(try FCM.Account(json: Self.file(key: key.text, keyId: keyId)))
        let form = String(decoding: fcm.accessRequest(at: now).body, as: UTF8.self)
        let assertion = try #require(form.components("&assertion=").last)
        let head = try members(try #require(RFC4648.decodeURL(assertion.prefix { $0 != "." }.utf8)))
        #expect(head.string("kid") == keyId && head.keys.contains("kid") == (keyId != nil))
    }

    @Test func alerts_haveTextNumberAndTag() throws {
        let post = try fcm().request(message(), to: FCM.Address(token: "t1"), accessToken: "a1")
        #expect(post.url == "https://fcm.googleapis.com/v1/projects/demo/messages:send")
        #expect(header("authorization", of: post) == "Bearer a1")
        let fcm = try #require(try members(post.body).object("message"))
        #expect(fcm.string("token") == "t1" && fcm.object("notification")?.string("title") == "New message")
        let shown = try #require(fcm.object("android")?.object("notification"))
        #expect(shown.string("tag") == "n1" && shown.integer("notification_count") == 7)
        #expect(fcm.object("data")?.string("badge") == "7")
    }

    @Test func badgesAndWithdrawals_areData() throws {
        for content in [PushMessage.Content.badge, .withdrawal] {
            let post = try fcm().request(
                message(content, withdrawn: ["n1", "n2"]), to: FCM.Address(token: "t1"), accessToken: "a1")
            let fcm = try #require(try members(post.body).object("message"))
            #expect(fcm["notification"] == nil && fcm.object("android")?.string("priority") == "normal")
            #expect(fcm.object("data")?.string("badge") == "7")
            if case .withdrawal = content {
                #expect(fcm.object("data")?.string("withdrawn") == #"["n1","n2"]"#)
            }
        }
    }

    @Test(arguments: [
        (200, "", PushOutcome.accepted),
        (
            404, #"{"error":{"status":"NOT_FOUND","details":[{"errorCode":"UNREGISTERED"}]}}"#,
            .gone(reason: "UNREGISTERED", since: nil)
        ),
        (
            400,
            #"{"error":{"status":"INVALID_ARGUMENT","details":[{"fieldViolations":[{"field":"message.token"}]}]}}"#,
            .gone(reason: "INVALID_ARGUMENT", since: nil)
        ),
        (400, #"{"error":{"status":"a\u0000b"}}"#, .refused(reason: "status_400")),
        (400, #"{"error":{"status":"INVALID_ARGUMENT"}}"#, .refused(reason: "INVALID_ARGUMENT")),
        // An invalid token: the error of FCM, and no field.
        (
            400,
            #"""
            {"error":{"code":400,"message":"The registration token is not a valid FCM registration token",
            "status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError",
            "errorCode":"INVALID_ARGUMENT"}]}}
            """#,
            .gone(reason: "INVALID_ARGUMENT", since: nil)
        ),
        // A malformed request: FCM names the field.
        (
            400,
            #"""
            {"error":{"code":400,"message":"Invalid JSON payload received.","status":"INVALID_ARGUMENT","details":[
            {"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.android.ttl",
            "description":"Invalid duration"}]}]}}
            """#,
            .refused(reason: "INVALID_ARGUMENT")
        ),
        (
            401, #"{"error":{"status":"UNAUTHENTICATED","details":[{"errorCode":"THIRD_PARTY_AUTH_ERROR"}]}}"#,
            .misconfigured(reason: "THIRD_PARTY_AUTH_ERROR")
        ),
        (401, #"{"error":{"status":"UNAUTHENTICATED"}}"#, .failed(reason: "UNAUTHENTICATED", retryAfterSeconds: nil)),
        (500, #"{"error":{"status":"INTERNAL"}}"#, .failed(reason: "INTERNAL", retryAfterSeconds: 4)),
        (403, #"{"error":{"status":"PERMISSION_DENIED"}}"#, .misconfigured(reason: "PERMISSION_DENIED")),
        (
            403, #"{"error":{"details":[{"errorCode":"SENDER_ID_MISMATCH"}]}}"#,
            .mismatched(reason: "SENDER_ID_MISMATCH")
        ),
        (404, #"{"error":{"status":"NOT_FOUND"}}"#, .misconfigured(reason: "NOT_FOUND")),
        (429, "", .failed(reason: "status_429", retryAfterSeconds: 4)),
        (503, "x", .failed(reason: "status_503", retryAfterSeconds: 4)),
    ])
    func answers_areUnderstood(status: Int, body: String, outcome: PushOutcome) throws {
        #expect(try fcm().outcome(status: status, retryAfterSeconds: 4, body: Array(body.utf8)) == outcome)
    }

    @Test func exceededQuota_waitsForAMinute_ifGoogleDoesNotSayHowLong() throws {
        let body = Array(#"{"error":{"details":[{"errorCode":"QUOTA_EXCEEDED"}]}}"#.utf8)
        #expect(
            try fcm().outcome(status: 429, retryAfterSeconds: nil, body: body)
                == .failed(reason: "QUOTA_EXCEEDED", retryAfterSeconds: 60))
    }

    @Test func accessTokens_areSharedAndRenewed() {
        let (access, answers) = (FCMAccess(), Collected<String>())
        func need(at time: Timestamp) -> String {
            let need = access.need(at: time) { answer in
                if case .token(let token) = answer { answers.append(token) } else { answers.append("none") }
            }
            switch need {
            case .token(let token): return token
            case .ask: return "ask"
            case .wait: return "wait"
            case .refused: return "refused"
            }
        }
        #expect(need(at: now) == "ask" && need(at: now) == "wait")
        access.received(.token("a"), seconds: 3600, at: now)
        #expect(answers.all == ["a", "a"])
        #expect(need(at: now.adding(seconds: 3299)) == "a" && need(at: now.adding(seconds: 3300)) == "ask")
        access.received(.failure(.failed(reason: "x", retryAfterSeconds: nil)), at: now)
        #expect(answers.all == ["a", "a", "none"] && need(at: now.adding(seconds: 3300)) == "ask")
        access.received(.token("b"), seconds: 3600, at: now.adding(seconds: 3300))
        access.noteServed()
        // The first refusal may be an early end of the token, the second one of an unused token is not.
        #expect(access.discard())
        #expect(need(at: now.adding(seconds: 3301)) == "ask")
        access.received(.token("c"), seconds: 3600, at: now.adding(seconds: 3301))
        #expect(access.discard())
        #expect(need(at: now.adding(seconds: 3301)) == "ask")
        access.received(.token("d"), seconds: 3600, at: now.adding(seconds: 3301))
        #expect(!access.discard())
    }

    /// Two requests with one token are refused. The second answer is late and must not end the new token.
    @Test func lateRefusalOfAFormerAccessToken_leavesTheNewOne() {
        let access = FCMAccess()
        func isKnown(_ text: String) -> Bool {
            if case .token(text) = access.need(at: now, { _ in }) { true } else { false }
        }
        access.received(.token("a"), seconds: 3600, at: now)
        access.noteServed()
        #expect(access.discard("a"))
        access.received(.token("b"), seconds: 3600, at: now)
        #expect(access.discard("a") && isKnown("b"))
        #expect(access.discard("a") && isKnown("b"), "the new one is not misconfigured, either")
        #expect(access.discard("b") && !isKnown("b"))
    }
}

extension String {
    /// Returns the parts between the occurrences of a separator.
    fileprivate func components(_ separator: String) -> [String] {
        var (parts, rest) = ([String](), self[...])
        while let range = rest.firstRange(of: separator) {
            parts.append(String(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [String(rest)]
    }
}
