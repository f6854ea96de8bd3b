import Domain
import Foundation
import Rows
import Synchronization
import Values

/// What one route has answered. Counted without a lock: reactors meet here at every request.
final class EndpointMetrics: Sendable {
    /// Upper bounds of the duration's buckets, in seconds.
    static let bounds: [Double] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
    static let statuses = [
        200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 428, 429, 431, 500, 503,
    ]

    let method: String
    let route: String
    /// One for each of `statuses`, and one for all others.
    private let counts = Counters(count: statuses.count + 1)
    private let buckets = Counters(count: bounds.count + 1)
    private let nanoseconds = Atomic<UInt64>(0)
    private let bytes = Atomic<UInt64>(0)

    init(method: String, route: String) {
        self.method = method
        self.route = route
    }

    func count(status: Int, bytes bodyBytes: Int, nanoseconds duration: UInt64) {
        counts.add(1, at: Self.statuses.firstIndex(of: status) ?? Self.statuses.count)
        let seconds = Double(duration) / 1e9
        buckets.add(1, at: Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count)
        nanoseconds.wrappingAdd(duration, ordering: .relaxed)
        bytes.wrappingAdd(UInt64(bodyBytes), ordering: .relaxed)
    }

    func writeRequests(to text: inout MetricsText) {
        for (index, count) in counts.values.enumerated() where count > 0 {
            let status = index < Self.statuses.count ? "\(Self.statuses[index])" : "other"
            text.sample("bellhop_http_requests_total", labels + [("status", status)], Double(count))
        }
    }

    func writeDurations(to text: inout MetricsText) {
        let values = buckets.values
        guard values.contains(where: { $0 > 0 }) else { return }
        text.histogram(
            "bellhop_http_request_duration_seconds", labels, bounds: Self.bounds, counts: values.map(Int.init),
            sum: Double(nanoseconds.load(ordering: .relaxed)) / 1e9)
    }

    func writeBytes(to text: inout MetricsText) {
        let bytes = bytes.load(ordering: .relaxed)
        if bytes > 0 { text.sample("bellhop_http_response_bytes_total", labels, Double(bytes)) }
    }

    private var labels: [(String, String)] { [("method", method), ("route", route)] }
}

/// A fixed number of atomic counters.
///
/// `@unchecked Sendable`: the memory is made once and never replaced; every access is atomic.
private final class Counters: @unchecked Sendable {
    private let storage: UnsafeMutableBufferPointer<Atomic<UInt64>>

    init(count: Int) {
        storage = .allocate(capacity: count)
        for index in 0..<count { storage.initializeElement(at: index, to: Atomic(0)) }
    }

    deinit {
        storage.deinitialize()
        storage.deallocate()
    }

    func add(_ amount: UInt64, at index: Int) { storage[index].wrappingAdd(amount, ordering: .relaxed) }

    var values: [UInt64] { storage.indices.map { storage[$0].load(ordering: .relaxed) } }
}

/// Writes the text format of Prometheus (version 0.0.4).
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

    /// A family with one sample.
    mutating func single(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        family(name, kind, help)
        sample(name, [], value)
    }

    /// - Parameter counts: one for each bound, not cumulated, and one for what is above all.
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
