/// The options of the command line.
struct Options: Sendable {
    var customers = 20_000
    /// Only every n-th customer asks for an estimate.
    var stride = 5
    var seeds = 8
    var mean = 25.0
    var variation = 0.4
    var isCalibrated = false
    /// Compares the estimates as computed, not as shown in whole minutes.
    var isExact = false
    var jsonPath: String?

    struct Mistake: Error, CustomStringConvertible {
        var description: String
    }

    init(_ arguments: some Sequence<String>) throws(Mistake) {
        var arguments = arguments.makeIterator()
        while let name = arguments.next() {
            switch name {
            case "--calibrated":
                isCalibrated = true
                continue
            case "--exact":
                isExact = true
                continue
            default: break
            }
            guard let value = arguments.next() else { throw Mistake(description: "\(name) needs a value") }
            switch name {
            case "--customers": customers = try positive(Int(value), name)
            case "--every": stride = try positive(Int(value), name)
            case "--seeds": seeds = try positive(Int(value), name)
            case "--mean": mean = try positive(Double(value), name)
            case "--variation": variation = try positive(Double(value), name)
            case "--json": jsonPath = value
            default: throw Mistake(description: "unknown option \(name)")
            }
        }
    }

    private func positive<Number: Comparable & Numeric>(_ number: Number?, _ name: String) throws(Mistake) -> Number {
        guard let number, number > 0 else { throw Mistake(description: "\(name) needs a number above 0") }
        return number
    }
}
