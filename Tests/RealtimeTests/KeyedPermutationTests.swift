import Realtime
import TestSupport
import Testing

@Suite(.timed) struct KeyedPermutationTests {
    /// The test vector of the paper.
    @Test func example_matchesThePaper() {
        let key: [UInt8] = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27]
        let permutation = KeyedPermutation(key: key)
        #expect(permutation.seal(0x3b72_6574_7475_432d).bits == 0x8c6f_a548_454e_028b)
        #expect(permutation.open(OpaqueID(bits: 0x8c6f_a548_454e_028b)) == 0x3b72_6574_7475_432d)
    }

    @Test func everyNumber_roundTripsThroughOneID() throws {
        let permutation = KeyedPermutation()
        let numbers: [UInt64] = Array(0..<10_000) + [.max, .max - 1, 1 << 63]
        let ids = numbers.map(permutation.seal)
        #expect(Set(ids).count == numbers.count)
        #expect(ids.map(permutation.open) == numbers)
        for id in ids { #expect(OpaqueID(id.text.utf8) == id) }
    }

    /// Consecutive numbers get ids without visible order. Of two neighbours, each is as often the larger. Each bit of
    /// the ids is set half of the time.
    @Test func ids_revealNeitherOrderNorDistance() {
        let permutation = KeyedPermutation(key: Array(1...16))
        let ids = (0..<4_096).map { permutation.seal($0).bits }
        let rises = zip(ids, ids.dropFirst()).count { $0.0 < $0.1 }
        #expect((1_900...2_200).contains(rises))
        for bit in 0..<64 {
            let set = ids.count { $0 & (1 << UInt64(bit)) != 0 }
            #expect((1_850...2_250).contains(set), "bit \(bit)")
        }
        // Flipping one bit of the number changes about half of the bits of the id.
        for bit in 0..<64 {
            let changed = (ids[7] ^ permutation.seal(7 ^ (1 << UInt64(bit))).bits).nonzeroBitCount
            #expect((12...52).contains(changed), "bit \(bit)")
        }
    }
}
