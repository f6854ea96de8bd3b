import Foundation

#if canImport(CryptoKit)
    import CryptoKit
#endif

/// SHA-256 as hexadecimal text, for names in the storage that must not reveal their source.
enum Digest {
    static func of(_ text: String) -> String {
        #if canImport(CryptoKit)
            hexadecimal(SHA256.hash(data: Data(text.utf8)))
        #else
            portable(Array(text.utf8))
        #endif
    }

    private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { String(format: "%02x", $0) }.joined()
    }

    /// FIPS 180-4 §6.2, for platforms without CryptoKit: this module depends on no other.
    static func portable(_ message: [UInt8]) -> String {
        var padded = message + [0x80]
        padded += [UInt8](repeating: 0, count: (120 - padded.count % 64) % 64)
        padded += (0..<8).map { UInt8(truncatingIfNeeded: (message.count * 8) >> (56 - 8 * $0)) }
        var hash = fractions.roots
        for start in stride(from: 0, to: padded.count, by: 64) {
            var words = (0..<16).map { index in
                (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(padded[start + 4 * index + $1]) }
            }
            for index in 16..<64 {
                let (early, late) = (words[index - 15], words[index - 2])
                let one = rotated(early, 7) ^ rotated(early, 18) ^ (early >> 3)
                let other = rotated(late, 17) ^ rotated(late, 19) ^ (late >> 10)
                words.append(words[index - 16] &+ one &+ words[index - 7] &+ other)
            }
            hash = zip(hash, compressed(hash, words)).map { $0 &+ $1 }
        }
        return hexadecimal(hash.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } })
    }

    private static func compressed(_ hash: [UInt32], _ words: [UInt32]) -> [UInt32] {
        var s = hash
        for (word, constant) in zip(words, fractions.constants) {
            let high = rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)
            let one = s[7] &+ high &+ ((s[4] & s[5]) ^ (~s[4] & s[6])) &+ constant &+ word
            let low = rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)
            let other = low &+ ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]))
            s = [one &+ other, s[0], s[1], s[2], s[3] &+ one, s[4], s[5], s[6]]
        }
        return s
    }

    private static func rotated(_ word: UInt32, _ by: UInt32) -> UInt32 { word >> by | word << (32 - by) }

    /// The first 32 bits of the fractional parts of the square roots of the first 8 primes, and of the cube roots of the
    /// first 64.
    private static let fractions: (roots: [UInt32], constants: [UInt32]) = {
        let primes = (2...311).filter { number in !(2..<number).contains { number.isMultiple(of: $0) } }
        /// Returns the largest number whose power is at most the prime, shifted left by 32 bits for each factor.
        func root(of prime: Int, _ power: Int) -> UInt32 {
            var (low, high) = (UInt64(0), UInt64(1) << 37)
            while high - low > 1 {
                let middle = (low + high) / 2
                if isAtMost(middle, power, prime) { low = middle } else { high = middle }
            }
            return UInt32(truncatingIfNeeded: low)
        }
        return (primes.prefix(8).map { root(of: $0, 2) }, primes.prefix(64).map { root(of: $0, 3) })
    }()

    /// Returns whether `number`, in units of 2⁻³², to the power is at most the prime.
    private static func isAtMost(_ number: UInt64, _ power: Int, _ prime: Int) -> Bool {
        // 37 bits to the power of three need 111 bits.
        let square = number.multipliedFullWidth(by: number)
        if power == 2 { return square.high < UInt64(prime) || (square.high == UInt64(prime) && square.low == 0) }
        let high = square.high.multipliedFullWidth(by: number)
        let low = square.low.multipliedFullWidth(by: number)
        let (middle, carry) = high.low.addingReportingOverflow(low.high)
        let top = high.high + (carry ? 1 : 0)
        let limit = UInt64(prime) << 32
        return top == 0 && (middle < limit || (middle == limit && low.low == 0))
    }
}
