import Foundation
import Synchronization
import Threads

/// The registry of a running service's metrics. It is created first, so that each part can register its own.
final class MetricsRegistry: Sendable {
    private let collectors = Locked([@Sendable (inout MetricsText) -> Void]())

    /// Registers metrics.
    ///
    /// - Parameter collect: Writes whole families with their current values. It is called for each scrape, on any
    ///   thread.
    func register(_ collect: @escaping @Sendable (inout MetricsText) -> Void) {
        collectors.withLock { $0.append(collect) }
    }

    /// Returns the page that Prometheus scrapes.
    func page() -> String {
        var text = MetricsText()
        for collect in collectors.withLock({ $0 }) { collect(&text) }
        return text.text
    }
}

/// A writer of the text format of Prometheus (version 0.0.4).
struct MetricsText {
    private(set) var text = ""

    enum Kind: String {
        case counter, gauge, histogram
    }

    mutating func family(_ name: String, _ kind: Kind, _ help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    mutating func sample(_ name: String, _ labels: [(String, String)], _ value: Double) {
        text += name
        if !labels.isEmpty {
            text += "{" + labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }.joined(separator: ",") + "}"
        }
        text += " " + (value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)") + "\n"
    }

    /// Writes a family with a sample for each value of a label.
    mutating func family(
        _ name: String, _ kind: Kind, _ help: String, by label: String, samples: some Sequence<(String, Int)>
    ) {
        family(name, kind, help)
        for (text, value) in samples { sample(name, [(label, text)], Double(value)) }
    }

    /// Writes a family with one sample.
    mutating func single(_ name: String, _ kind: Kind, _ help: String, value: Double) {
        family(name, kind, help)
        sample(name, [], value)
    }

    mutating func single(_ name: String, _ kind: Kind, _ help: String, value: some BinaryInteger) {
        single(name, kind, help, value: Double(value))
    }

    mutating func single(_ name: String, _ kind: Kind, _ help: String, value: borrowing Atomic<Int>) {
        single(name, kind, help, value: Double(value.load(ordering: .relaxed)))
    }

    /// Writes a histogram.
    ///
    /// - Parameter counts: One count for each bound, not cumulative, and one for values above all bounds.
    mutating func histogram(
        _ name: String, _ labels: [(String, String)] = [], bounds: [Double], counts: [Int], sum: Double
    ) {
        var total = 0
        for (bound, count) in zip(bounds, counts) {
            total += count
            sample(name + "_bucket", labels + [("le", "\(bound)")], Double(total))
        }
        total += counts.last ?? 0
        sample(name + "_bucket", labels + [("le", "+Inf")], Double(total))
        sample(name + "_sum", labels, sum)
        sample(name + "_count", labels, Double(total))
    }

    private static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
            .replacingOccurrences(of: "\n", with: "\\n")
    }
}
