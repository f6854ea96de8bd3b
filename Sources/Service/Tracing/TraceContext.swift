/// The position of an operation in a distributed trace, as one service passes it to the next: W3C Trace Context, level
/// 1 (https://www.w3.org/TR/trace-context/).
struct TraceContext: Sendable, Hashable {
    private let high: UInt64
    private let low: UInt64
    let spanId: UInt64
    /// Whether the spans of the trace are recorded. The service that begins a trace decides, and all others follow.
    let isSampled: Bool

    private init(high: UInt64, low: UInt64, spanId: UInt64, isSampled: Bool) {
        (self.high, self.low, self.spanId, self.isSampled) = (high, low, spanId, isSampled)
    }

    /// Returns the first operation of a new trace.
    static func root(isSampled: Bool) -> TraceContext {
        TraceContext(high: randomID(), low: randomID(), spanId: randomID(), isSampled: isSampled)
    }

    /// An operation that this one causes.
    var child: TraceContext { TraceContext(high: high, low: low, spanId: Self.randomID(), isSampled: isSampled) }

    /// The same operation, recorded or not.
    func with(isSampled: Bool) -> TraceContext {
        TraceContext(high: high, low: low, spanId: spanId, isSampled: isSampled)
    }

    /// Reads a `traceparent`.
    ///
    /// Later versions may append fields, which are ignored as the standard requires; version `ff` is invalid.
    ///
    /// - Returns: Nil if malformed. The header then counts as not sent.
    init?(_ traceparent: some Collection<UInt8>) {
        let bytes = Array(traceparent.prefix(Self.length + 1))
        guard bytes.count >= Self.length, let version = Self.number(bytes[0..<2]), version != 0xFF,
            bytes.count == Self.length || version > 0 && bytes[Self.length] == Self.dash,
            bytes[2] == Self.dash, bytes[35] == Self.dash, bytes[52] == Self.dash,
            let high = Self.number(bytes[3..<19]), let low = Self.number(bytes[19..<35]), high != 0 || low != 0,
            let spanId = Self.number(bytes[36..<52]), spanId != 0, let flags = Self.number(bytes[53..<55])
        else { return nil }
        self.init(high: high, low: low, spanId: spanId, isSampled: flags & 1 == 1)
    }

    /// The header value for the next service, in the version that every service reads.
    var traceparent: String { "00-\(traceId)-\(Self.text(spanId))-\(isSampled ? "01" : "00")" }
    var traceId: String { Self.text(high) + Self.text(low) }

    /// Returns an id as sixteen hexadecimal digits.
    static func text(_ id: UInt64) -> String {
        let digits = String(id, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    private static let length = 55
    private static let dash = UInt8(ascii: "-")

    /// Returns a random id. All zeros is an invalid id.
    private static func randomID() -> UInt64 { .random(in: 1 ... .max) }

    /// Reads hexadecimal digits. The standard does not allow upper-case ones.
    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for byte in digits {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return number
    }
}
