import Cryptography
import TestSupport
import Testing

/// Encryption, derived keys and agreed secrets, tested with the vectors of the standards.
@Suite(.timed) struct EncryptionTests {
    /// The GCM specification (McGrew and Viega), test cases 4 and 16.
    @Test(arguments: [
        (
            "feffe9928665731c6d6a8f9467308308",
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa05"
                + "1ba30b396a0aac973d58e091", "5bc94fbc3221a5db94fae95ae7121a47"
        ),
        (
            "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838"
                + "c5f61e6393ba7a0abcc9f662", "76fc6ece0f4e1768cddf8853bb2d551b"
        ),
    ])
    func aesGCM_matchesItsStandardVectors(key: String, sealed: String, tag: String) throws {
        let cipher = try #require(AESGCM(bytes(key)))
        let nonce = bytes("cafebabefacedbaddecaf888")
        let context = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2")
        let message = bytes(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
                + "b16aedf5aa0de657ba637b39")
        #expect(cipher.seal(message, nonce: nonce, context: context) == bytes(sealed + tag))
        #expect(cipher.open(bytes(sealed + tag), nonce: nonce, context: context) == message)
    }

    @Test func damagedBytes_areNotOpened() throws {
        let cipher = try #require(AESGCM(AESGCM.randomBytes(32)))
        let nonce = AESGCM.randomBytes(AESGCM.nonceBytes)
        for message in [[], Array("token".utf8)] {
            let sealed = cipher.seal(message, nonce: nonce, context: [1])
            #expect(cipher.open(sealed, nonce: nonce, context: [1]) == message)
            #expect(cipher.open(sealed, nonce: nonce, context: [2]) == nil)
            #expect(cipher.open(sealed, nonce: nonce) == nil)
            #expect(cipher.open(sealed.dropLast(), nonce: nonce, context: [1]) == nil)
            for index in sealed.indices {
                var damaged = sealed
                damaged[index] ^= 1
                #expect(cipher.open(damaged, nonce: nonce, context: [1]) == nil)
            }
        }
        #expect(cipher.open([], nonce: nonce) == nil)
        #expect(AESGCM([1, 2, 3]) == nil)
        #expect(AESGCM.randomBytes(16) != AESGCM.randomBytes(16))
    }

    /// RFC 5869, A.1 to A.3.
    @Test(arguments: [
        (
            "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9",
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
        ),
        (
            "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
        ),
    ])
    func hkdf_matchesItsStandardVectors(secret: String, salt: String, purpose: String, key: String) {
        let derived = HKDF.derive(from: bytes(secret), salt: bytes(salt), purpose: bytes(purpose), count: 42)
        #expect(derived == bytes(key))
    }

    /// RFC 8291, appendix A: the keys of the two sides and the secret that they share.
    @Test func sharedSecret_matchesItsStandardVector() throws {
        let sender = try PrivateKey(p256: bytes("c9f58f89813e9f8e872e71f42aa64e1757c9254dcc62b72ddc010bb4043ea11c"))
        let receiver = try PrivateKey(p256: bytes("ab5757a70dd4a53e553a6bbf71ffefea2874ec07a6b379e3c48f895a02dc33de"))
        #expect(
            hex(sender.publicPoint)
                == "04fe33f4ab0dea71914db55823f73b54948f41306d920732dbb9a59a53286482200e597a7b7bc260ba1c227998580992e93973"
                + "002f3012a28ae8f06bbb78e5ec0f")
        #expect(
            hex(receiver.publicPoint)
                == "042571b2becdfde360551aaf1ed0f4cd366c11cebe555f89bcb7b186a53339173168ece2ebe018597bd30479b86e3c8f8eced5"
                + "77ca59187e9246990db682008b0e")
        let secret = try sender.sharedSecret(with: receiver.publicPoint)
        #expect(hex(secret) == "932acbd63208387133837b0cd995911c3441eb66000998614a592727aef6912b")
        #expect(try receiver.sharedSecret(with: sender.publicPoint) == secret)
    }

    @Test func pointsThatAreNotOnTheCurve_shareNoSecret() throws {
        let key = PrivateKey()
        var point = PrivateKey().publicPoint
        _ = try key.sharedSecret(with: point)
        point[64] ^= 1
        #expect(throws: PrivateKey.Invalid.self) { try key.sharedSecret(with: point) }
        #expect(throws: PrivateKey.Invalid.self) { try key.sharedSecret(with: []) }
        #expect(throws: PrivateKey.Invalid.self) { try key.sharedSecret(with: [UInt8](repeating: 0, count: 65)) }
        #expect(throws: PrivateKey.Invalid.self) {
            try key.sharedSecret(with: [4] + [UInt8](repeating: 0xFF, count: 64))
        }
    }

    @Test func signatures_areVerifiedByTheirPublicKey() throws {
        let key = PrivateKey()
        let scalar = try #require(key.scalar)
        let same = try PrivateKey(p256: scalar)
        #expect(same.publicPoint == key.publicPoint && same.algorithm == .es256)
        let point = key.publicPoint
        let publicKey = try PublicKey(.p256, x: Array(point[1..<33]), y: Array(point[33...]))
        for count in [0, 1, 1000] {
            let message = [UInt8](repeating: 7, count: count)
            let signature = same.sign(message)
            #expect(signature.count == 64)
            #expect(publicKey.verifies(signature, of: message))
            #expect(!publicKey.verifies(signature, of: message + [0]))
        }
    }

    @Test func numbersOutOfRange_areNoKeys() {
        let order = bytes("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
        for scalar in [[], [UInt8](repeating: 0, count: 32), [UInt8](repeating: 0xFF, count: 32), order] {
            #expect(throws: PrivateKey.Invalid.self) { try PrivateKey(p256: scalar) }
        }
    }
}

private func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.map { UInt8($0 > 96 ? $0 - 87 : $0 - 48) }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String(0x100 | Int($0), radix: 16).dropFirst() }.joined()
}
