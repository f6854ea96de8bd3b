import Values

/// A fixed set of points that fills a many-dimensional cube evenly. In every dimension, each of `points` strata
/// contains exactly one point.
///
/// Sums of service times drawn this way are far less noisy than with independent draws, so a few hundred runs are
/// enough. Because the set is fixed, every replica computes the same answer for the same state. The answer for the
/// state a minute later is nearly the same, so the displayed waits do not jitter.
struct LatinHypercube: Sendable {
    static let of512 = LatinHypercube(points: 512, seed: 0x5EED_0512)
    static let of256 = LatinHypercube(points: 256, seed: 0x5EED_0256)
    static let of128 = LatinHypercube(points: 128, seed: 0x5EED_0128)

    /// The number of dimensions. Higher dimensions repeat earlier ones with the points rotated.
    static let dimensions = 256

    let points: Int
    /// The stratum of point `i` in dimension `d`, at index `i × dimensions + d`.
    let strata: [UInt16]
    /// The standard normal value at the middle of each stratum.
    let normals: [Double]

    init(points: Int, seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var strata = [UInt16](repeating: 0, count: points * Self.dimensions)
        for dimension in 0..<Self.dimensions {
            let order = (0..<UInt16(points)).shuffled(using: &random)
            for (point, stratum) in order.enumerated() { strata[point * Self.dimensions + dimension] = stratum }
        }
        self.points = points
        self.strata = strata
        normals = (0..<points).map { NormalDistribution.exceeded(with: 1 - (Double($0) + 0.5) / Double(points)) }
    }
}
