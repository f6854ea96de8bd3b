import Values

/// Begins spans, and receives ended ones. There is no tracer if nothing is traced.
final class Tracer: Sendable {
    private let share: Double
    private let clock: Clock
    private let exporter: SpanExporter

    init(share: Double, clock: Clock, exporter: SpanExporter) {
        (self.share, self.clock, self.exporter) = (share, clock, exporter)
    }

    /// Begins the span of a request, as a part of the sender's trace if the request names one.
    ///
    /// A sender can exclude its requests from recording. It cannot have more than the share recorded, because any
    /// client can send the header. Backends are exempt once the caller is known; see ``OpenSpan/recorded``.
    func begin(request traceparent: TraceContext?) -> OpenSpan {
        let isInShare = Double.random(in: 0..<1) < share
        guard let traceparent else { return OpenSpan(.root(isSampled: isInShare), parent: nil, of: self) }
        return OpenSpan(
            traceparent.child.with(isSampled: traceparent.isSampled && isInShare), parent: traceparent.spanId,
            of: self, isRequested: traceparent.isSampled)
    }

    /// Begins the span of an effect of an event that a traced transaction published.
    ///
    /// - Returns: Nil if the trace is not recorded.
    func begin(behind traceparent: String) -> OpenSpan? {
        guard let cause = TraceContext(traceparent.utf8), cause.isSampled else { return nil }
        return OpenSpan(cause.child, parent: cause.spanId, of: self)
    }

    var now: Timestamp { clock.now() }

    fileprivate func record(_ span: Span) { exporter.add(span) }
}

/// An operation of a trace that has begun.
final class OpenSpan: Sendable {
    let context: TraceContext
    private let parent: UInt64?
    private let start: Timestamp
    private let tracer: Tracer
    /// Whether its sender records the trace.
    private let isRequested: Bool

    fileprivate init(
        _ context: TraceContext, parent: UInt64?, of tracer: Tracer, since start: Timestamp? = nil,
        isRequested: Bool = false
    ) {
        (self.context, self.parent, self.tracer, self.isRequested) = (context, parent, tracer, isRequested)
        self.start = start ?? tracer.now
    }

    /// The same operation, recorded if its sender records the trace. For senders that may decide about recording.
    var recorded: OpenSpan {
        guard isRequested, !context.isSampled else { return self }
        return OpenSpan(context.with(isSampled: true), parent: parent, of: tracer, since: start)
    }

    /// Begins a child span. Returns nil if the trace is not recorded.
    func beginChild() -> OpenSpan? {
        context.isSampled ? OpenSpan(context.child, parent: context.spanId, of: tracer) : nil
    }

    /// Returns another operation with the same start and the same parent.
    func beginSibling() -> OpenSpan { OpenSpan(context.child, parent: parent, of: tracer, since: start) }

    /// Ends the operation now.
    ///
    /// - Parameter duration: The duration, if it is known more precisely than by the wall clock.
    func end(
        _ name: String, _ kind: Span.Kind = .internal, isFailed: Bool = false, duration: Duration? = nil,
        attributes: KeyValuePairs<StaticString, Span.Attribute> = [:]
    ) {
        guard context.isSampled else { return }
        let now = tracer.now
        let start = duration.map { Timestamp(microseconds: now.microseconds - Int64($0 / .microseconds(1))) } ?? start
        tracer.record(
            Span(
                name: name, context: context, parent: parent, kind: kind, start: start, end: now,
                attributes: attributes, isFailed: isFailed))
    }
}
