import Rows
import TestSupport
import Testing
import Values

/// Standard Webhooks 1.0.0, with its reference vector.
@Suite(.timed) struct WebhookSignatureTests {
    static let secretText = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    static let id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    static let timestamp = "1614265330"
    static let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    static let body = Array(#"{"test": 2432232314}"#.utf8)
    static let now = Timestamp(microseconds: 1_614_265_330_000_000)

    private func verify(
        id: String? = id, timestamp: String? = timestamp, signatures: String? = signature, body: [UInt8] = body,
        secrets: [String] = [secretText], now: Timestamp = now
    ) throws -> Result<String, WebhookSignature.Refusal> {
        let secrets = try secrets.map { try WebhookSignature.Secret($0) }
        return Result { () throws(WebhookSignature.Refusal) in
            try WebhookSignature.verify(
                .init(id: id, timestamp: timestamp, signatures: signatures), body: body, secrets: secrets, now: now,
                hmac: ReferenceSHA256.hmac)
        }
    }

    @Test func referenceHash_isSHA256() {
        func text(_ bytes: [UInt8]) -> String {
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        #expect(
            text(ReferenceSHA256.hash(Array("abc".utf8)))
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        // RFC 4231, test case 2.
        #expect(
            text(ReferenceSHA256.hmac(Array("Jefe".utf8), Array("what do ya want for nothing?".utf8)))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    }

    @Test func referenceVector_isAuthentic() throws {
        #expect(try verify() == .success(Self.id))
        #expect(try verify(secrets: [String(Self.secretText.dropFirst(6))]) == .success(Self.id))
    }

    @Test func signature_matchesTheReferenceVector() throws {
        let secret = try WebhookSignature.Secret(Self.secretText)
        let signed = WebhookSignature.sign(
            id: Self.id, seconds: 1_614_265_330, body: Self.body, secret: secret, hmac: ReferenceSHA256.hmac)
        #expect(signed == Self.signature)
    }

    @Test func alteredMessage_isRefused() throws {
        #expect(try verify(id: "msg_other") == .failure(.wrongSignature))
        #expect(try verify(timestamp: "1614265331") == .failure(.wrongSignature))
        #expect(try verify(body: Self.body + [0x20]) == .failure(.wrongSignature))
        #expect(try verify(body: []) == .failure(.wrongSignature))
        #expect(try verify(secrets: ["whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]) == .failure(.wrongSignature))
        #expect(try verify(secrets: []) == .failure(.wrongSignature))
        let other = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA="
        #expect(try verify(signatures: other) == .failure(.wrongSignature))
    }

    @Test func oneOfSeveralSignaturesAndSecrets_isEnough() throws {
        let wrong = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        #expect(try verify(signatures: "\(wrong) v1a,xyz \(Self.signature)") == .success(Self.id))
        let secrets = ["whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", Self.secretText]
        #expect(try verify(secrets: secrets) == .success(Self.id))
        let many = [String](repeating: wrong, count: WebhookSignature.signaturesMax - 1) + [Self.signature]
        #expect(try verify(signatures: many.joined(separator: " ")) == .success(Self.id))
        #expect(try verify(signatures: ([wrong] + many).joined(separator: " ")) == .failure(.tooManySignatures))
        let late = [String](repeating: secrets[0], count: WebhookSignature.secretsMax) + [Self.secretText]
        #expect(try verify(secrets: late) == .failure(.wrongSignature))
    }

    @Test func delivery_isAccepted_upToFiveMinutesAfterItsTime() throws {
        #expect(try verify(now: Self.now.adding(seconds: 300)) == .success(Self.id))
        #expect(try verify(now: Self.now.adding(seconds: 301)) == .failure(.tooOld))
        #expect(try verify(now: Self.now.adding(seconds: -300)) == .success(Self.id))
        #expect(try verify(now: Self.now.adding(seconds: -301)) == .failure(.tooNew))
    }

    @Test func missingAndMalformedHeaders_areNamed() throws {
        #expect(try verify(id: nil) == .failure(.missingID))
        #expect(try verify(id: "") == .failure(.missingID))
        // Without this check, `a.1` with `2.body` would have the signature of `a` with `1.2.body`.
        #expect(try verify(id: "msg.1") == .failure(.badID))
        #expect(try verify(id: "msg 1") == .failure(.badID))
        #expect(try verify(timestamp: nil) == .failure(.missingTimestamp))
        for timestamp in ["-1614265330", "1614265330.0", "0x1", " 1614265330", "99999999999999999999", "+1"] {
            #expect(try verify(timestamp: timestamp) == .failure(.badTimestamp))
        }
        #expect(try verify(signatures: nil) == .failure(.missingSignature))
        for signatures in ["v1", "v1,", "v1,***", "v2,AAAA", "   ", "v1;AAAA", "V1,AAAA"] {
            let refusal = try verify(signatures: signatures)
            #expect(refusal == .failure(.noKnownSignature) || refusal == .failure(.wrongSignature), "\(signatures)")
        }
        for refusal in WebhookSignature.Refusal.allCases {
            #expect(refusal.failure.kind == .unauthenticated)
            #expect(refusal.failure.detail.hasSuffix("."))
        }
    }

    @Test(arguments: ["", "whsec_", "whsec_****", "whsec_AAAA", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS"])
    func unusableSecret_isRefused_andNotShown(text: String) {
        do throws(Failure) {
            _ = try WebhookSignature.Secret(text)
            Issue.record("\(text) was accepted")
        } catch {
            #expect(text.count < 8 || !error.detail.contains(text.dropFirst(6)))
        }
    }

    @Test func secret_isInNoDescription() throws {
        let secret = try WebhookSignature.Secret(Self.secretText)
        #expect("\(secret)" == "a webhook's secret")
        #expect(String(reflecting: [secret]).contains("49") == false)
    }

    @Test func comparison_isOfAllBytes() {
        #expect(WebhookSignature.isEqual([], []))
        #expect(WebhookSignature.isEqual([1, 2, 3], [1, 2, 3]))
        #expect(!WebhookSignature.isEqual([1, 2, 3], [1, 2, 4]))
        #expect(!WebhookSignature.isEqual([1, 2, 3], [0, 2, 3]))
        #expect(!WebhookSignature.isEqual([1, 2, 3], [1, 2]))
    }

    @Test func randomDeliveries_areAuthentic_untilOneBitChanges() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let secret = try WebhookSignature.Secret(Self.secretText)
        for _ in 0..<200 {
            let length = Int.random(in: 0...300, using: &random)
            let body = (0..<length).map { _ in UInt8.random(in: 0 ... .max, using: &random) }
            let signature = WebhookSignature.sign(
                id: "msg_1", seconds: 1_614_265_330, body: body, secret: secret, hmac: ReferenceSHA256.hmac)
            #expect(try verify(id: "msg_1", signatures: signature, body: body) == .success("msg_1"), "seed \(seed)")
            guard !body.isEmpty else { continue }
            var changed = body
            changed[Int.random(in: 0..<body.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            #expect(
                try verify(id: "msg_1", signatures: signature, body: changed) == .failure(.wrongSignature),
                "seed \(seed)")
        }
    }
}

/// SHA-256 (FIPS 180-4) and HMAC (RFC 2104) in plain Swift: the hash function that the tests pass to the signature
/// check.
enum ReferenceSHA256 {
    private static let constants: [UInt32] = [
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
        0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
        0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
        0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
        0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
        0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
        0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2,
    ]

    static func hash(_ message: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [
            0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
        ]
        var padded = message + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        for shift in stride(from: 56, through: 0, by: -8) {
            padded.append(UInt8(truncatingIfNeeded: UInt64(message.count * 8) >> UInt64(shift)))
        }
        func rotated(_ word: UInt32, _ bits: UInt32) -> UInt32 { word >> bits | word << (32 - bits) }
        for block in stride(from: 0, to: padded.count, by: 64) {
            var words = (0..<16).map { index in
                padded[(block + index * 4)..<(block + index * 4 + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            }
            for index in 16..<64 {
                let (first, second) = (words[index - 15], words[index - 2])
                let small = rotated(first, 7) ^ rotated(first, 18) ^ first >> 3
                let large = rotated(second, 17) ^ rotated(second, 19) ^ second >> 10
                words.append(words[index - 16] &+ small &+ words[index - 7] &+ large)
            }
            var work = state
            for index in 0..<64 {
                let (one, two, three) = (work[4], work[5], work[6])
                let sum = rotated(one, 6) ^ rotated(one, 11) ^ rotated(one, 25)
                let choice = one & two ^ ~one & three
                let first = work[7] &+ sum &+ choice &+ constants[index] &+ words[index]
                let head = rotated(work[0], 2) ^ rotated(work[0], 13) ^ rotated(work[0], 22)
                let majority = work[0] & work[1] ^ work[0] & work[2] ^ work[1] & work[2]
                work = [first &+ head &+ majority] + work[0..<3] + [work[3] &+ first] + work[4..<7]
            }
            for index in 0..<8 { state[index] &+= work[index] }
        }
        return state.flatMap { word in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) } }
    }

    static func hmac(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        var block = key.count > 64 ? hash(key) : key
        block += [UInt8](repeating: 0, count: 64 - block.count)
        return hash(block.map { $0 ^ 0x5c } + hash(block.map { $0 ^ 0x36 } + message))
    }
}
