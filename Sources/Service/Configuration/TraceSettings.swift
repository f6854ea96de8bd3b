import Foundation
import OutboundHTTP
import Values

/// The destination of spans, and the sampling of requests.
struct TraceSettings: Sendable {
    let url: String
    /// A header besides the content type that identifies the sender to a collector.
    typealias Header = (name: String, value: String)
    let headers: [Header]
    /// The share of requests that begin a trace, among requests without a sender's trace.
    let share: Double

    /// Returns nil if no address is set. Then nothing is traced.
    init?(_ settings: Settings) {
        guard let url = settings.tracesEndpoint else { return nil }
        self.url = url
        headers = settings.tracesHeaders
        share = Double(settings.tracesPercent) / 100
    }

    static func header(_ text: String) throws -> Header {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        // Percent-encoded as in OpenTelemetry's own variable, so that a value may contain a space or a comma.
        let value = parts.last?.removingPercentEncoding ?? ""
        let isHeader =
            parts.count == 2 && !parts[0].isEmpty && !value.isEmpty
            && parts[0].utf8.allSatisfy { "-_".utf8.contains($0) || $0.isAlphanumeric }
            && value.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        guard isHeader else {
            // The text is left out, because it may be a secret.
            throw Settings.Fault("must be Name=value pairs separated by commas; write a space as %20")
        }
        return (parts[0], value)
    }

    static func checkEndpoint(_ url: String) throws {
        let address = try SettingRule.outboundURL(url, suchAs: "http://collector:4318/v1/traces")
        guard address.path != "/"
        else { throw Settings.Fault("must be the complete URL, such as http://collector:4318/v1/traces") }
    }
}
