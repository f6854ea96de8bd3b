import Cryptography
import Foundation
import TestSupport
import Testing

/// The wrapper, tested with the vectors of the standards. Wycheproof's vectors (`WycheproofTests`) cover the
/// signatures of every scheme.
@Suite(.timed) struct CryptographyTests {
    private static func bytes(_ hex: String) -> [UInt8] {
        stride(from: 0, to: hex.count, by: 2).map { offset in
            let start = hex.index(hex.startIndex, offsetBy: offset)
            return UInt8(hex[start...].prefix(2), radix: 16) ?? 0
        }
    }

    private static func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

    /// FIPS 180-4, NIST's examples; a million letters in parts of many sizes.
    @Test func sha256_matchesItsStandardVectors_inAnyParts() {
        #expect(
            Self.hex(SHA256.hash([])) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(
            Self.hex(SHA256.hash("abc".utf8)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        var hash = SHA256()
        var (left, size) = (1_000_000, 1)
        while left > 0 {
            hash.update(repeatElement(UInt8(ascii: "a"), count: min(size, left)))
            left -= size
            size = size % 997 + 13
        }
        #expect(Self.hex(hash.finalize()) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    /// RFC 4231 §4.2, 4.3 and 4.7 (a key longer than a block); an empty key and message.
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0b, count: 20), "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xaa, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
        ([], "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
    ])
    func hmac_matchesItsStandardVectors(key: [UInt8], message: String, code: String) {
        let key = AuthenticationKey(key)
        for _ in 0..<2 { #expect(Self.hex(key.code(for: message.utf8)) == code) }
        var forged = Self.bytes(code)
        #expect(key.isValid(forged, for: message.utf8))
        #expect(!key.isValid(forged.dropLast(), for: message.utf8))
        #expect(!key.isValid([], for: message.utf8))
        forged[31] ^= 1
        #expect(!key.isValid(forged, for: message.utf8))
    }

    @Test func equality_isOfAllBytes() {
        #expect(constantTimeEqual([], []))
        #expect(constantTimeEqual([1, 2], [1, 2]))
        #expect(!constantTimeEqual([1, 2], [1, 3]))
        #expect(!constantTimeEqual([1], [1, 2]))
        #expect(!constantTimeEqual([], [1]))
    }

    /// RFC 8032 §7.1, test 2.
    @Test func ed25519_matchesItsStandardVectors() throws {
        let key = try PublicKey(
            ed25519: Self.bytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"))
        let signature = Self.bytes(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00")
        for _ in 0..<2 { #expect(key.verifies(signature, of: [0x72])) }
        #expect(!key.verifies(signature, of: [0x73]))
        #expect(!key.verifies([], of: [0x72]))
        #expect(throws: PublicKey.Invalid.self) { try PublicKey(ed25519: [1, 2, 3]) }
    }

    /// RFC 7515, A.3: the point of an ES256 key.
    private static let x = bytes("7fcdce2770f6c45d4183cbee6fdb4b7b580733357be9ef13bacf6e3c7bd15445")
    private static let y = bytes("c7f144cd1bbd9b7e872cdfedb9eeb9f4b3695d6ea90b24ad8a4623288588e5ad")

    @Test func pointsThatAreNotOnTheCurve_areNoKeys() throws {
        _ = try PublicKey(.p256, x: Self.x, y: Self.y)
        var other = Self.y
        other[31] ^= 1
        #expect(throws: PublicKey.Invalid.self) { try PublicKey(.p256, x: Self.x, y: other) }
        let zero = [UInt8](repeating: 0, count: 32)
        #expect(throws: PublicKey.Invalid.self) { try PublicKey(.p256, x: zero, y: zero) }
        #expect(throws: PublicKey.Invalid.self) {
            try PublicKey(.p256, x: [UInt8](repeating: 0xFF, count: 32), y: Self.y)
        }
        #expect(throws: PublicKey.Invalid.self) { try PublicKey(.p384, x: Self.x, y: Self.y) }
        #expect(throws: PublicKey.Invalid.self) { try PublicKey(.p256, x: [], y: []) }
    }

    /// Numbers of every shape: leading zeros and a leading one bit change the encoding.
    @Test func signaturesOfAnySize_areRefused_withoutACrash() throws {
        let key = try PublicKey(.p256, x: Self.x, y: Self.y)
        for count in 0...130 {
            for byte: UInt8 in [0x00, 0x01, 0x7F, 0x80, 0xFF] {
                #expect(!key.verifies([UInt8](repeating: byte, count: count), of: Array("message".utf8)))
            }
        }
    }

    @Test func weakOrDamagedRSAKeys_areRefused() throws {
        func key(bits: Int, last: UInt8 = 0xF1, exponent: [UInt8] = [1, 0, 1]) throws {
            let modulus = [UInt8(0x80)] + [UInt8](repeating: 0x5A, count: bits / 8 - 2) + [last]
            _ = try PublicKey(rsaModulus: modulus, exponent: exponent, .sha256, .pkcs1)
        }
        try key(bits: 2048)
        try key(bits: 16_384)
        try key(bits: 2048, exponent: [0, 0, 3])
        #expect(throws: PublicKey.Invalid.self) { try key(bits: 2040) }
        #expect(throws: PublicKey.Invalid.self) { try key(bits: 16_392) }
        #expect(throws: PublicKey.Invalid.self) { try key(bits: 2048, last: 0xF0) }
        for exponent: [UInt8] in [[], [0], [1], [2], [1, 0, 0], [4, 0, 0, 0, 1]] {
            #expect(throws: PublicKey.Invalid.self, "\(exponent)") { try key(bits: 2048, exponent: exponent) }
        }
        #expect(throws: PublicKey.Invalid.self) {
            try PublicKey(rsaModulus: [], exponent: [1, 0, 1], .sha256, .pss)
        }
    }
}
