import Foundation
import Values

/// The destination of spans, and the sampling of requests.
struct TraceSettings: Sendable {
    let url: String
    /// Headers besides the content type that identify the sender to a collector.
    let headers: [(name: String, value: String)]
    /// The share of requests that begin a trace, among requests without a sender's trace.
    let share: Double

    /// Reads the settings.
    ///
    /// - Returns: Nil if no address is set. Then nothing is traced, but the other settings are checked nevertheless.
    init?(_ values: SettingsReader) throws {
        share = Double(try values.int("tracesPercent", in: 0...100)) / 100
        headers = try values.list("tracesHeaders").map { text throws(Settings.Mistake) in
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            // Percent-encoded as in OpenTelemetry's own variable, so that a value may contain a space or a comma.
            let value = parts.last?.removingPercentEncoding ?? ""
            let isHeader =
                parts.count == 2 && !parts[0].isEmpty && !value.isEmpty
                && parts[0].utf8.allSatisfy { "-_".utf8.contains($0) || $0.isAlphanumeric }
                && value.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            guard isHeader else {
                // The text is left out, because it may be a secret.
                throw Settings.Mistake(
                    "tracesHeaders", "must be Name=value pairs separated by commas; write a space as %20")
            }
            return (parts[0], value)
        }
        guard let url = values.optionalText("tracesEndpoint") else { return nil }
        let isPlain = url.utf8.count <= 2048 && url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isPlain, let parts = URLComponents(string: url), ["http", "https"].contains(parts.scheme?.lowercased()),
            parts.host?.isEmpty == false, parts.user == nil, parts.fragment == nil, parts.path.count > 1
        else {
            throw Settings.Mistake(
                "tracesEndpoint", "must be the complete URL, such as http://collector:4318/v1/traces")
        }
        self.url = url
    }
}
