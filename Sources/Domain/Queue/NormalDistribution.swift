#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The standard normal distribution, accurate far into the upper tail, where a service that runs very late lies.
enum NormalDistribution {
    /// The probability of a value above `z`.
    static func upperTail(_ z: Double) -> Double {
        0.5 * erfc(z * 0.707_106_781_186_547_5)
    }

    /// The value exceeded with `probability`: the inverse of ``upperTail(_:)``.
    ///
    /// Acklam's rational approximation (relative error below 1.2e-9), which holds down to the smallest normal
    /// probability.
    static func exceeded(with probability: Double) -> Double {
        let p = min(max(probability, 1e-300), 1 - 1e-16)
        if p < 0.02425 { return -tail((-2 * log(p)).squareRoot()) }
        if p > 0.97575 { return tail((-2 * log(1 - p)).squareRoot()) }
        return -central(p - 0.5)
    }

    private static func tail(_ q: Double) -> Double {
        let numerator =
            ((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q
                - 2.549732539343734e+00) * q + 4.374664141464968e+00) * q + 2.938163982698783e+00
        let denominator =
            (((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q
                + 3.754408661907416e+00) * q + 1
        return numerator / denominator
    }

    private static func central(_ q: Double) -> Double {
        let r = q * q
        let numerator =
            (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r
                + 1.383577518672690e+02) * r - 3.066479806614716e+01) * r + 2.506628277459239e+00) * q
        let denominator =
            ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r
                + 6.680131188771972e+01) * r - 1.328068155288572e+01) * r + 1
        return numerator / denominator
    }
}
