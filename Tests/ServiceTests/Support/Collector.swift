import BellhopClient
import Foundation
import TestSupport
import Testing

/// An OTLP/HTTP collector that parses the spans it receives.
final class Collector: Sendable {
    struct CollectedSpan: Sendable {
        let name: String
        let traceId: String
        let id: String
        let parent: String?
        let json: JSON

        func attribute(_ name: String) -> String? {
            let value = json["attributes"].array?.first { $0["key"].string == name }?["value"]
            return value?["stringValue"].string ?? value?["intValue"].string
        }
    }

    let receiver: ScriptedReceiver

    /// - Parameter reply: the reply to each request, by its number; the first request is 1.
    init(_ reply: @escaping @Sendable (Int) -> ScriptedReceiver.Reply = { _ in .status(200) }) throws {
        let count = Collected<Bool>()
        receiver = try ScriptedReceiver { _ in
            count.append(true)
            return reply(count.all.count)
        }
    }

    var url: String { "http://127.0.0.1:\(receiver.port)/v1/traces" }

    /// All received spans, in order.
    var spans: [CollectedSpan] {
        receiver.deliveries.all.flatMap { delivery -> [CollectedSpan] in
            guard let json = try? JSON(parsing: Data(delivery.body)) else { return [] }
            let scopes = (json["resourceSpans"].array ?? []).flatMap { $0["scopeSpans"].array ?? [] }
            return scopes.flatMap { $0["spans"].array ?? [] }.map { span in
                CollectedSpan(
                    name: span["name"].string ?? "", traceId: span["traceId"].string ?? "",
                    id: span["spanId"].string ?? "", parent: span["parentSpanId"].string, json: span)
            }
        }
    }

    /// Waits until the spans of a trace satisfy a condition, and returns them.
    func spans(of traceId: String, until isComplete: ([CollectedSpan]) -> Bool) async throws -> [CollectedSpan] {
        var found: [CollectedSpan] = []
        try await eventually("the trace is collected") {
            found = spans.filter { $0.traceId == traceId }
            return isComplete(found)
        }
        return found
    }
}
