import Values

/// A finished operation of a trace.
struct Span: Sendable {
    /// The kinds, with the numbers of OTLP.
    enum Kind: Int, Sendable {
        case `internal` = 1, server, client, producer
    }

    enum Attribute: Sendable {
        case text(String)
        case number(Int)
    }

    let name: String
    let context: TraceContext
    /// Nil for the first operation of a trace.
    let parent: UInt64?
    let kind: Kind
    let start: Timestamp
    let end: Timestamp
    var attributes: KeyValuePairs<StaticString, Attribute> = [:]
    var isFailed = false
}

extension Span: JSONWritable {
    /// Writes the span in OTLP's JSON encoding (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): ids
    /// in hexadecimal, and 64-bit numbers as texts.
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("traceId", context.traceId)
            writer.member("spanId", TraceContext.text(context.spanId))
            if let parent { writer.member("parentSpanId", TraceContext.text(parent)) }
            writer.member("name", name)
            writer.member("kind", kind.rawValue)
            writer.member("startTimeUnixNano", "\(start.microseconds)000")
            writer.member("endTimeUnixNano", "\(end.microseconds)000")
            writer.member("attributes", attributes) { $0.attribute($1.key, $1.value) }
            // 0 is unset; 2 is an error.
            writer.member("status") { if isFailed { $0.member("code", 2) } }
        }
    }
}

extension JSONWriter {
    /// Writes an attribute of a span, or of its resource.
    mutating func attribute(_ name: StaticString, _ attribute: Span.Attribute) {
        member("key", name.description)
        member("value") { writer in
            switch attribute {
            case .text(let text): writer.member("stringValue", text)
            case .number(let number): writer.member("intValue", "\(number)")
            }
        }
    }
}
