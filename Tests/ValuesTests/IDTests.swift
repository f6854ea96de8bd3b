import TestSupport
import Testing

@testable import Values

@Suite(.timed) struct IDTests {
    /// Equality, ordering and hashing of texts that look alike follow their bytes.
    @Test func ids_areTheirBytes() {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let letters = [
            "a", "K", "\u{212A}", "\u{E9}", "e\u{301}", "\u{C5}", "\u{212B}", "A\u{30A}", "Ω", "\u{2126}", ";",
            "\u{37E}",
        ]
        func bytes(_ id: ID<User>) -> [UInt8] { Array(id.text.utf8) }
        let ids = (0..<400).map { _ in
            ID<User>(
                (0..<Int.random(in: 0...12, using: &random)).map { _ in letters.randomElement(using: &random) ?? "" }
                    .joined())
        }
        for left in ids {
            for right in ids.shuffled(using: &random).prefix(50) {
                #expect((left == right) == (bytes(left) == bytes(right)), "seed \(seed): \(left), \(right)")
                #expect(
                    (left < right) == bytes(left).lexicographicallyPrecedes(bytes(right)),
                    "seed \(seed): \(left), \(right)")
                #expect(!(left < right && right < left) && (left == right || left < right || right < left))
            }
        }
        #expect(Set(ids).count == Set(ids.map(bytes)).count, "seed \(seed)")
        #expect(Set<ID<Tenant>>(["Müller", "Mu\u{308}ller", "Klinik", "\u{212A}linik"]).count == 4)
    }
}
