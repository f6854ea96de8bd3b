import Values

/// A Kafka Connect schema of `{"schema": {…}, "payload": …}`, and the columns whose values need it for their meaning:
/// days that are a date, bytes that are a decimal.
///
/// The types come from Debezium's "Temporal types", "Decimal types" and "Basic types". They are converted to the
/// form that PostgreSQL's `to_jsonb` writes for the same column. So the same filter fits a table, whichever format
/// delivers its changes.
struct ConnectSchema {
    private let schema: [String: JSONValue]

    /// Creates the schema of `{"schema", "payload"}`, or nil without a schema.
    init?(of envelope: ChangeMembers) throws(ChangeFault) {
        guard let object = try envelope.object("schema") else { return nil }
        self.init(object.members)
    }

    /// Creates a schema; nil if the object is not one.
    private init?(_ schema: [String: JSONValue]?) {
        guard let schema, schema["type"] != nil else { return nil }
        self.schema = schema
    }

    /// Returns the schema of one member of a struct.
    func field(_ name: String) -> ConnectSchema? {
        ConnectSchema(schema.objects("fields")?.first { $0.string("field") == name })
    }

    /// The members of a struct whose values must be converted. They are in order, so that of several mistakes always
    /// the same one is reported.
    var translatedFields: [(name: String, schema: ConnectSchema)] {
        (schema.objects("fields") ?? []).compactMap { field in
            guard let name = field.string("field"), let schema = ConnectSchema(field), schema.isTranslated
            else { return nil }
            return (name, schema)
        }
    }

    private var isTranslated: Bool { schema.string("name") != nil || schema.string("type") == "array" }

    /// Returns the value in the form of `to_jsonb`. Elements of arrays are subtracted from `elementsLeft`.
    func json(
        _ value: JSONValue, at pointer: String, _ elementsLeft: inout Int
    ) throws(ChangeFault) -> JSONValue {
        if value == .null { return value }
        if schema.string("type") == "array", case .array(let elements) = value {
            guard let type = ConnectSchema(schema.object("items")), type.isTranslated else { return value }
            elementsLeft -= elements.count
            guard elementsLeft >= 0 else {
                throw ChangeFault(
                    pointer,
                    "has too many elements: all arrays of this kind in a row may have at most "
                        + "\(ChangeLimits.translatedElementsMax) in total")
            }
            var translated: [JSONValue] = []
            for (index, element) in elements.enumerated() {
                translated.append(try type.json(element, at: "\(pointer)/\(index)", &elementsLeft))
            }
            return .array(translated)
        }
        switch schema.string("name") {
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
            throw ChangeFault(pointer, "must be a whole number according to its schema, not \(value.typeName)")
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
        // PostgreSQL accepts 24:00:00 as a time.
        guard units >= 0, units <= 86_400 * unitsPerSecond else { throw outOfRange(pointer) }
        if units == 86_400 * unitsPerSecond { return .string("24:00:00") }
        guard let text = ConnectSchema.civil(units / unitsPerSecond) else { throw outOfRange(pointer) }
        return .string(text.suffix(8) + ConnectSchema.fraction(units % unitsPerSecond, of: unitsPerSecond))
    }

    /// The values, in milliseconds, that the PostgreSQL connector writes for `infinity` and `-infinity`.
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
        ChangeFault(pointer, "is a time outside the day or outside the years 1 to 9999")
    }

    /// Returns `2018-06-20T15:13:16`, PostgreSQL's form of a timestamp without time zone.
    private static func civil(_ seconds: Int64) -> String? {
        guard Timestamp.writableSeconds.contains(seconds) else { return nil }
        return String(Timestamp(microseconds: seconds * 1_000_000).rfc3339.prefix(19))
    }

    /// Returns `.945104` without trailing zeros; empty for zero.
    private static func fraction(_ units: Int64, of unitsPerSecond: Int64) -> String {
        guard units > 0 else { return "" }
        var digits = String(units + unitsPerSecond).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        return "." + digits
    }

    // MARK: Decimals and JSON

    private func decimal(_ value: JSONValue, at pointer: String) throws(ChangeFault) -> JSONValue {
        // `decimal.handling.mode` may have converted it to a string or a double.
        guard case .string(let text) = value else { return value }
        guard let scale = schema.object("parameters")?.string("scale").flatMap({ Int($0) }) else {
            throw ChangeFault(pointer, "is a decimal without a scale in its schema")
        }
        return try ConnectSchema.decimal(text, scale: scale, at: pointer)
    }

    private func variableScaleDecimal(_ value: JSONValue, at pointer: String) throws(ChangeFault) -> JSONValue {
        guard case .object(let members) = value else { return value }
        guard let scale = members.integer("scale"), let text = members.string("value") else {
            throw ChangeFault(pointer, "must have a scale and a value according to its schema")
        }
        return try ConnectSchema.decimal(text, scale: Int(scale), at: pointer)
    }

    /// Converts a two's complement integer, highest byte first, in base64, divided by 10^scale.
    private static func decimal(_ base64: String, scale: Int, at pointer: String) throws(ChangeFault) -> JSONValue {
        guard let bytes = RFC4648.decode(base64), !bytes.isEmpty else {
            throw ChangeFault(pointer, "must be the bytes of a decimal in base64")
        }
        guard bytes.count <= ChangeLimits.decimalBytesMax else {
            throw ChangeFault(pointer, "is a decimal with more than \(ChangeLimits.decimalBytesMax) bytes")
        }
        guard (-ChangeLimits.decimalScaleMax...ChangeLimits.decimalScaleMax).contains(scale) else {
            throw ChangeFault(pointer, "is a decimal with a scale above \(ChangeLimits.decimalScaleMax)")
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
        return .exactNumber(String(decoding: digits, as: UTF8.self))
    }

    /// Returns the digits of a two's complement integer, without its sign. It computes nine digits at a time with
    /// 32-bit words.
    private static func decimalDigits(_ bytes: [UInt8]) -> (digits: [UInt8], isNegative: Bool) {
        let isNegative = bytes[0] & 0x80 != 0
        let inversion: UInt8 = isNegative ? 0xFF : 0
        let magnitude = repeatElement(0, count: (4 - bytes.count % 4) % 4) + bytes.map { $0 ^ inversion }
        // Nine digits each, the lowest first.
        var groups: [UInt64] = []
        func shift(by bits: UInt64, adding value: UInt64) {
            var carry = value
            for index in groups.indices {
                (carry, groups[index]) = (groups[index] << bits + carry).quotientAndRemainder(dividingBy: 1_000_000_000)
            }
            while carry > 0 {
                groups.append(carry % 1_000_000_000)
                carry /= 1_000_000_000
            }
        }
        for start in stride(from: 0, to: magnitude.count, by: 4) {
            shift(by: 32, adding: magnitude[start..<start + 4].reduce(0) { $0 << 8 | UInt64($1) })
        }
        // The inversion of a negative number is one less than its magnitude.
        if isNegative { shift(by: 0, adding: 1) }
        guard let first = groups.last else { return ([48], isNegative) }
        let rest = groups.dropLast().reversed().map { String($0 + 1_000_000_000).dropFirst() }
        return (Array((String(first) + rest.joined()).utf8), isNegative)
    }

    private func embedded(_ value: JSONValue, at pointer: String) throws(ChangeFault) -> JSONValue {
        guard case .string(let text) = value else { return value }
        do {
            return try JSONValue(
                parsing: Array(text.utf8), depthMax: ChangeLimits.embeddedDepthMax, isExact: true)
        } catch {
            throw ChangeFault(pointer, "must be a string of JSON according to its schema: \(error.detail)")
        }
    }
}
