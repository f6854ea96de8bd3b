import Logging
import OutboundHTTP
import Threads
import Values

/// An exporter of spans to a collector by OTLP/HTTP, in JSON (https://opentelemetry.io/docs/specs/otlp/#otlphttp). It
/// uses its own thread, so nothing ever waits for it.
final class SpanExporter: Sendable {
    private struct State {
        var waiting: [Span] = []
        var exported = 0
        /// Spans that exceeded the limit of waiting ones.
        var overflowed = 0
        /// Spans that the collector refused, or for which it was away too long.
        var refused = 0
    }

    private let settings: TraceSettings
    private let replica: String
    private let clock: Clock
    private let logger: Logger
    private let client = OutboundClient(allowsPrivate: true, timeoutSeconds: TraceLimits.timeoutSeconds)
    private let thread = LoopThread("traces")
    private let state: Locked<State>

    /// Creates an exporter.
    ///
    /// - Parameter replica: Distinguishes this process from other processes of the service.
    init(_ settings: TraceSettings, replica: String, clock: Clock, metrics: MetricsRegistry, logger: Logger) {
        (self.settings, self.replica, self.clock, self.logger) = (settings, replica, clock, logger)
        let state = Locked(State())
        self.state = state
        metrics.register { text in
            let state = state.withLock { $0 }
            text.single(
                "bellhop_spans_exported_total", .counter, "Spans accepted by the collector.", value: state.exported)
            text.family(
                "bellhop_spans_dropped_total", .counter, "Dropped spans, by reason.",
                by: "reason", samples: [("overflow", state.overflowed), ("collector", state.refused)])
        }
    }

    func add(_ span: Span) {
        let count = state.withLock { state in
            guard state.waiting.count < TraceLimits.waitingMax else {
                state.overflowed += 1
                return 0
            }
            state.waiting.append(span)
            return state.waiting.count
        }
        if count == TraceLimits.batchMax { thread.wake() }
    }

    func start() {
        thread.start { [self] in
            while thread.wait(atMost: clock.pause(TraceLimits.pause)) { sendAll() }
            // The remaining spans are sent when the service stops, unless the collector is away.
            sendAll(isLast: true)
        }
    }

    /// Sends the remaining spans, and returns when the thread has ended.
    func stop() { thread.stop() }

    private func sendAll(isLast: Bool = false) {
        while true {
            let batch = state.withLock { state in
                let batch = Array(state.waiting.prefix(TraceLimits.batchMax))
                state.waiting.removeFirst(batch.count)
                return batch
            }
            guard !batch.isEmpty else { return }
            let isTaken = send(batch, attemptsMax: isLast ? 1 : TraceLimits.attemptsMax)
            state.withLock { state in
                if isTaken { state.exported += batch.count } else { state.refused += batch.count }
            }
            if !isTaken, isLast || thread.isStopping { return }
        }
    }

    /// Sends a batch.
    ///
    /// - Returns: Whether the collector has accepted it.
    private func send(_ batch: [Span], attemptsMax: Int) -> Bool {
        let post = OutboundPost(url: settings.url, headers: settings.headers, body: body(batch))
        for attempt in 1...attemptsMax {
            let outcome = client.post(post)
            var pause = 1 << (attempt - 1)
            switch outcome {
            case .answered(200..<300, _): return true
            // These answers allow a retry (the standard's “retryable response codes”).
            case .answered(429, let seconds), .answered(502...504, let seconds): pause = max(pause, seconds ?? 0)
            case .failed(let failure) where failure != .stopped: break
            default: return giveUp(batch, outcome)
            }
            let wait = clock.pause(.seconds(min(pause, TraceLimits.retrySecondsMax)))
            guard attempt < attemptsMax, thread.pause(for: wait) else { return giveUp(batch, outcome) }
        }
        return false
    }

    private func giveUp(_ batch: [Span], _ outcome: OutboundOutcome) -> Bool {
        let reason =
            switch outcome {
            case .answered(let status, _): "status_\(status)"
            case .failed(let failure): failure.rawValue
            }
        logger.warning(
            "Spans were dropped, because the collector does not accept them.",
            metadata: ["spans": .stringConvertible(batch.count), "reason": "\(reason)"])
        return false
    }

    /// Returns an `ExportTraceServiceRequest`.
    private func body(_ spans: [Span]) -> [UInt8] {
        let resource: KeyValuePairs<StaticString, Span.Attribute> = [
            "service.name": .text("bellhop"), "service.version": .text(BellhopVersion.text),
            "service.instance.id": .text(replica),
        ]
        return JSONWriter.object { writer in
            writer.member("resourceSpans", CollectionOfOne(spans)) { writer, spans in
                writer.member("resource") { writer in
                    writer.member("attributes", resource) { $0.attribute($1.key, $1.value) }
                }
                writer.member("scopeSpans", CollectionOfOne(spans)) { writer, spans in
                    writer.member("scope") { writer in
                        writer.member("name", "bellhop")
                        writer.member("version", BellhopVersion.text)
                    }
                    writer.member("spans", spans)
                }
            }
        }
    }
}
