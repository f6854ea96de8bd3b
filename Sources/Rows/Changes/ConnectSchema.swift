import Values

/// A Kafka Connect schema as `{"schema": {…}, "payload": …}` carries it, and the columns whose values it gives a
/// meaning: days that are a date, bytes that are a decimal.
///
/// The forms are those of Debezium's "Temporal types", "Decimal types" and "Basic types"; they become what PostgreSQL's
/// `to_jsonb` writes for the same column, so that one filter fits a table however its changes arrive.
struct ConnectSchema {
    private let schema: [String: JSONValue]

    /// The schema of `{"schema", "payload"}`; nil if it carries none.
    init?(of envelope: ChangeMembers) throws(ChangeFault) {
        guard let object = try envelope.object("schema") else { return nil }
        self.init(object.members)
    }

    /// Nil if this is no schema.
    private init?(_ schema: [String: JSONValue]) {
        guard schema["type"] != nil else { return nil }
        self.schema = schema
    }

    private init?(_ value: JSONValue?) {
        guard case .object(let members) = value else { return nil }
        self.init(members)
    }

    private func text(_ name: String) -> String? {
        if case .string(let text) = schema[name] { text } else { nil }
    }

    /// The schema of one member of a struct.
    func field(_ name: String) -> ConnectSchema? {
        guard case .array(let fields) = schema["fields"] else { return nil }
        for case .object(let field) in fields where field["field"] == .string(name) { return ConnectSchema(field) }
        return nil
    }

    /// The members of a struct whose values are not what they look like, in their order, so that of several mistakes
    /// always the same one is reported.
    var translatedFields: [(name: String, schema: ConnectSchema)] {
        guard case .array(let fields) = schema["fields"] else { return [] }
        var result: [(name: String, schema: ConnectSchema)] = []
        for case .object(let field) in fields {
            guard case .string(let name) = field["field"], let schema = ConnectSchema(field), schema.isTranslated
            else { continue }
            result.append((name, schema))
        }
        return result
    }

    private var isTranslated: Bool { text("name") != nil || text("type") == "array" }

    /// The value as `to_jsonb` would write it. The elements of arrays are counted down from `elementsLeft`.
    func json(
        _ value: JSONValue, at pointer: String, _ elementsLeft: inout Int
    ) throws(ChangeFault) -> JSONValue {
        if value == .null { return value }
        if text("type") == "array", case .array(let elements) = value {
            guard let type = ConnectSchema(schema["items"]), type.isTranslated else { return value }
            elementsLeft -= elements.count
            guard elementsLeft >= 0 else {
                throw ChangeFault(
                    pointer,
                    "has too many elements: a row's arrays of such a type have at most "
                        + "\(ChangeLimits.translatedElementsMax) together")
            }
            var translated: [JSONValue] = []
            for (index, element) in elements.enumerated() {
                translated.append(try type.json(element, at: "\(pointer)/\(index)", &elementsLeft))
            }
            return .array(translated)
        }
        switch text("name") {
        case "io.debezium.time.Date", "org.apache.kafka.connect.data.Date":
            return try date(value, at: pointer)
        case "io.debezium.time.Time", "org.apache.kafka.connect.data.Time":
            return try time(value, unitsPerSecond: 1_000, at: pointer)
        case "io.debezium.time.MicroTime": return try time(value, unitsPerSecond: 1_000_000, at: pointer)
        case "io.debezium.time.NanoTime": return try time(value, unitsPerSecond: 1_000_000_000, at: pointer)
        case "io.debezium.time.Timestamp", "org.apache.kafka.connect.data.Timestamp":
            return try moment(value, unitsPerSecond: 1_000, at: pointer)
        case "io.debezium.time.MicroTimestamp": return try moment(value, unitsPerSecond: 1_000_000, at: pointer)
        case "io.debezium.time.NanoTimestamp": return try moment(value, unitsPerSecond: 1_000_000_000, at: pointer)
        case "org.apache.kafka.connect.data.Decimal": return try decimal(value, at: pointer)
        case "io.debezium.data.VariableScaleDecimal": return try variableScaleDecimal(value, at: pointer)
        case "io.debezium.data.Json": return try embedded(value, at: pointer)
        default: return value
        }
    }

    private func integer(_ value: JSONValue, at pointer: String) throws(ChangeFault) -> Int64 {
        guard case .integer(let integer) = value else {
            throw ChangeFault(pointer, "must be a whole number, as its schema says, not \(value.typeName)")
        }
        return integer
    }

    // MARK: Times

    private func date(_ value: JSONValue, at pointer: String) throws(ChangeFault) -> JSONValue {
        let days = try integer(value, at: pointer)
        let (seconds, overflow) = days.multipliedReportingOverflow(by: 86_400)
        guard !overflow, let text = ConnectSchema.civil(seconds) else { throw outOfRange(pointer) }
        return .string(String(text.prefix(10)))
    }

    private func time(
        _ value: JSONValue, unitsPerSecond: Int64, at pointer: String
    ) throws(ChangeFault) -> JSONValue {
        let units = try integer(value, at: pointer)
        // 24:00:00 is a time in PostgreSQL.
        guard units >= 0, units <= 86_400 * unitsPerSecond else { throw outOfRange(pointer) }
        if units == 86_400 * unitsPerSecond { return .string("24:00:00") }
        guard let text = ConnectSchema.civil(units / unitsPerSecond) else { throw outOfRange(pointer) }
        return .string(text.suffix(8) + ConnectSchema.fraction(units % unitsPerSecond, of: unitsPerSecond))
    }

    /// What the PostgreSQL connector writes, in milliseconds, for `infinity` and `-infinity`.
    private static let infinityMilliseconds: [Int64: String] = [
        9_223_372_036_825_200_000: "infinity", -9_223_372_036_832_400_000: "-infinity",
    ]

    private func moment(
        _ value: JSONValue, unitsPerSecond: Int64, at pointer: String
    ) throws(ChangeFault) -> JSONValue {
        let units = try integer(value, at: pointer)
        if let infinity = ConnectSchema.infinityMilliseconds[units] { return .string(infinity) }
        var (seconds, rest) = units.quotientAndRemainder(dividingBy: unitsPerSecond)
        if rest < 0 {
            seconds -= 1
            rest += unitsPerSecond
        }
        guard let text = ConnectSchema.civil(seconds) else { throw outOfRange(pointer) }
        return .string(text + ConnectSchema.fraction(rest, of: unitsPerSecond))
    }

    private func outOfRange(_ pointer: String) -> ChangeFault {
        ChangeFault(pointer, "is a time that cannot be written: it lies outside the day, or the years 1 to 9999")
    }

    /// `2018-06-20T15:13:16`: as PostgreSQL writes a moment that has no time zone.
    private static func civil(_ seconds: Int64) -> String? {
        guard Timestamp.writableSeconds.contains(seconds) else { return nil }
        return String(Timestamp(microseconds: seconds * 1_000_000).rfc3339.prefix(19))
    }

    /// `.945104` without zeros at its end, empty for none.
    private static func fraction(_ units: Int64, of unitsPerSecond: Int64) -> String {
        guard units > 0 else { return "" }
        var digits = String(units + unitsPerSecond).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        return "." + digits
    }

    // MARK: Decimals and JSON

    private func decimal(_ value: JSONValue, at pointer: String) throws(ChangeFault) -> JSONValue {
        // `decimal.handling.mode` may have made a string or a double of it.
        guard case .string(let text) = value else { return value }
        guard case .object(let parameters) = schema["parameters"], case .string(let scaleText) = parameters["scale"],
            let scale = Int(scaleText)
        else { throw ChangeFault(pointer, "is a decimal whose schema tells no scale") }
        return try ConnectSchema.decimal(text, scale: scale, at: pointer)
    }

    private func variableScaleDecimal(_ value: JSONValue, at pointer: String) throws(ChangeFault) -> JSONValue {
        guard case .object(let members) = value else { return value }
        guard case .integer(let scale) = members["scale"], case .string(let text) = members["value"] else {
            throw ChangeFault(pointer, "must have a scale and a value, as its schema says")
        }
        return try ConnectSchema.decimal(text, scale: Int(scale), at: pointer)
    }

    /// A whole number in two's complement, highest byte first, in base64, divided by 10^scale.
    private static func decimal(_ base64: String, scale: Int, at pointer: String) throws(ChangeFault) -> JSONValue {
        guard let bytes = RFC4648.decode(base64), !bytes.isEmpty else {
            throw ChangeFault(pointer, "must be a decimal's bytes in base64")
        }
        guard bytes.count <= ChangeLimits.decimalBytesMax else {
            throw ChangeFault(pointer, "is a decimal of more than \(ChangeLimits.decimalBytesMax) bytes")
        }
        guard (-ChangeLimits.decimalScaleMax...ChangeLimits.decimalScaleMax).contains(scale) else {
            throw ChangeFault(pointer, "is a decimal whose scale is beyond \(ChangeLimits.decimalScaleMax)")
        }
        var (digits, isNegative) = decimalDigits(bytes)
        if scale > 0 {
            let missing = max(0, scale + 1 - digits.count)
            digits.insert(contentsOf: repeatElement(48, count: missing), at: 0)
            digits.insert(UInt8(ascii: "."), at: digits.count - scale)
        } else if digits != [48] {
            digits.append(contentsOf: repeatElement(48, count: -scale))
        }
        if isNegative { digits.insert(UInt8(ascii: "-"), at: 0) }
        return ExactNumber.value(String(decoding: digits, as: UTF8.self))
    }

    /// The digits of a whole number in two's complement, without its sign: nine at a time, by dividing 32-bit words.
    private static func decimalDigits(_ bytes: [UInt8]) -> (digits: [UInt8], isNegative: Bool) {
        let isNegative = bytes[0] & 0x80 != 0
        let padding = [UInt8](repeating: isNegative ? 0xFF : 0, count: (4 - bytes.count % 4) % 4)
        let extended = padding + bytes
        var words = stride(from: 0, to: extended.count, by: 4).map { start in
            extended[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        if isNegative {
            var carry = true
            for index in words.indices.reversed() {
                let (sum, overflow) = (~words[index]).addingReportingOverflow(carry ? 1 : 0)
                words[index] = sum
                carry = overflow
            }
        }
        var reversedDigits: [UInt8] = []
        var first = 0
        while first < words.count {
            guard words[first] != 0 else {
                first += 1
                continue
            }
            var rest: UInt64 = 0
            for index in first..<words.count {
                let part = rest << 32 | UInt64(words[index])
                words[index] = UInt32(part / 1_000_000_000)
                rest = part % 1_000_000_000
            }
            for _ in 0..<9 {
                reversedDigits.append(48 + UInt8(rest % 10))
                rest /= 10
            }
        }
        while reversedDigits.last == 48 { reversedDigits.removeLast() }
        return (reversedDigits.isEmpty ? [48] : reversedDigits.reversed(), isNegative)
    }

    private func embedded(_ value: JSONValue, at pointer: String) throws(ChangeFault) -> JSONValue {
        guard case .string(let text) = value else { return value }
        do {
            return try JSONValue(
                parsingExactly: Array(text.utf8)[...], depthMax: ChangeLimits.embeddedDepthMax)
        } catch {
            throw ChangeFault(pointer, "must be JSON as text, as its schema says: \(error.detail)")
        }
    }
}
