import Values

/// A syntax error in a filter, with its position.
public struct FilterMistake: Error, Sendable, Hashable {
    /// The byte (UTF-8, from 0) at which the mistake begins.
    public let position: Int
    public let reason: String
    /// The text at the position, shortened.
    let excerpt: String

    /// A message for people: `unknown operator 'foo' (at byte 3: 'foo.5')`.
    public var detail: String {
        excerpt.isEmpty ? "\(reason) (at byte \(position), the end)" : "\(reason) (at byte \(position): '\(excerpt)')"
    }
}

extension Failure {
    /// Returns the failure of a request. `pointer` names the member with the filter.
    public static func filter(_ mistake: FilterMistake, at pointer: String) -> Failure {
        .invalid(pointer, mistake.detail)
    }
}

extension Filter {
    /// Parses the grammar of ``Filter``. Spaces around names, operators and values are tolerated.
    ///
    /// - Parameter columns: The table's columns, if they are declared. Then other columns are refused, and so are
    ///   values and operators that do not fit the column's type.
    public init(parsing text: String, columns: ColumnTypes? = nil) throws(FilterMistake) {
        var parser = FilterParser(text, columns: columns)
        self.init(conditions: try parser.filter())
    }
}

/// The parser behind ``Filter/init(parsing:)``: one pass over the bytes, without recursion.
private struct FilterParser {
    private let bytes: [UInt8]
    private let columns: ColumnTypes?
    private var index = 0

    init(_ text: String, columns: ColumnTypes?) {
        bytes = Array(text.utf8)
        self.columns = columns
    }

    private var byte: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpaces() {
        while let byte, FilterBytes.isSpace(byte) { index += 1 }
    }

    /// Creates a mistake that quotes forty characters: enough to recognize the place without repeating a large filter.
    private func mistake(at position: Int, _ reason: String) -> FilterMistake {
        let rest = String(decoding: bytes[min(position, bytes.count)...].prefix(160), as: UTF8.self)
        return FilterMistake(position: position, reason: reason, excerpt: String(rest.prefix(40)))
    }

    mutating func filter() throws(FilterMistake) -> [FilterCondition] {
        guard bytes.count <= FilterLimits.filterBytesMax else {
            throw mistake(
                at: FilterLimits.filterBytesMax,
                "a filter must have at most \(FilterLimits.filterBytesMax) bytes, but this one has \(bytes.count)")
        }
        if let place = bytes.firstIndex(of: 0) { throw mistake(at: place, "a filter must not contain NUL") }
        skipSpaces()
        guard byte != nil else { return [] }
        var conditions: [FilterCondition] = []
        while true {
            skipSpaces()
            guard let first = byte, first != UInt8(ascii: ",") else {
                throw mistake(at: index, "a condition is missing: there is one comma too many")
            }
            guard conditions.count < FilterLimits.conditionsMax else {
                throw mistake(at: index, "a filter must have at most \(FilterLimits.conditionsMax) conditions")
            }
            conditions.append(try condition())
            guard byte != nil else { return conditions }
            // Every value ends before a comma or at the end.
            index += 1
        }
    }

    private mutating func condition() throws(FilterMistake) -> FilterCondition {
        let column = try column()
        let type = columns?[column]
        skipSpaces()
        var isNegated = false
        var place = index
        var name = try operatorName()
        if name == "not" {
            isNegated = true
            place = index
            name = try operatorName()
        }
        skipSpaces()
        return FilterCondition(column: column, isNegated: isNegated, test: try test(name, type, at: place))
    }

    /// Reads up to and including the `=`.
    private mutating func column() throws(FilterMistake) -> String {
        let start = index
        while let byte, byte != UInt8(ascii: "=") {
            guard !FilterBytes.isReserved(byte) else {
                throw mistake(at: start, "a condition must have the form column=operator.value")
            }
            guard byte >= 0x20, byte != 0x7F else {
                throw mistake(at: index, "a column name must not contain control characters")
            }
            index += 1
        }
        guard byte != nil else { throw mistake(at: start, "a condition must have the form column=operator.value") }
        let name = trimmed(start..<index)
        index += 1
        guard !name.isEmpty else { throw mistake(at: start, "the column name is missing before '='") }
        guard name.count <= FilterLimits.columnBytesMax else {
            throw mistake(at: start, "a column name must have at most \(FilterLimits.columnBytesMax) bytes")
        }
        let column = String(decoding: name, as: UTF8.self)
        if column == "or" || column == "and", byte == UInt8(ascii: "(") {
            throw mistake(
                at: start, "conditions can only be joined by commas (AND); for OR, use two subscriptions")
        }
        if columns?[column] == nil { try refuse(column, at: start) }
        return column
    }

    /// Refuses an unusable column name. For a table without declared columns, every name is allowed except one that
    /// other systems would read as an expression.
    private func refuse(_ column: String, at start: Int) throws(FilterMistake) {
        if column.contains("->") {
            throw mistake(at: start, "a filter compares columns; paths into JSON are not supported")
        }
        if column.contains("::") {
            throw mistake(at: start, "casts are not supported: a column is compared by its declared type")
        }
        guard let columns else { return }
        let names = columns.keys.sorted().prefix(20).joined(separator: ", ")
        throw mistake(at: start, "the table has no column '\(column.prefix(40))'; the declared columns are \(names)")
    }

    /// Reads up to and including the `.`.
    private mutating func operatorName() throws(FilterMistake) -> String {
        let start = index
        while let byte, byte >= UInt8(ascii: "a"), byte <= UInt8(ascii: "z") { index += 1 }
        let name = String(decoding: bytes[start..<index], as: UTF8.self)
        guard !name.isEmpty else {
            throw mistake(at: start, "the operator is missing: use one of \(Self.operators), followed by '.'")
        }
        guard byte == UInt8(ascii: ".") else {
            throw mistake(at: start, "the operator '\(name.prefix(40))' must be followed by '.' and a value")
        }
        index += 1
        return name
    }

    private static let operators = "eq, neq, lt, lte, gt, gte, in, like, ilike, is, isdistinct"

    private mutating func test(
        _ name: String, _ type: ColumnType?, at place: Int
    ) throws(FilterMistake) -> FilterCondition.Test {
        if type == .json, name != "is" {
            throw mistake(at: place, "a column of this type supports only 'is.null'")
        }
        switch name {
        case "in": return .within(try set(of: type))
        case "is": return .identity(try identity(of: type))
        case "isdistinct": return .isDistinct(try value(of: type))
        case "like", "ilike":
            guard type == nil || type == .text else {
                throw mistake(at: place, "'\(name)' compares text, but the column is of type \(type?.rawValue ?? "")")
            }
            return .like(try pattern(isCaseInsensitive: name == "ilike"))
        case "match", "imatch":
            throw mistake(
                at: place,
                "'\(name)' is not supported, because the cost of a regular expression has no bound; use like or ilike")
        case "not": throw mistake(at: place, "'not.' occurs twice")
        default:
            guard let comparison = FilterCondition.Comparison(rawValue: name) else {
                throw mistake(at: place, "unknown operator '\(name.prefix(40))'; use one of \(Self.operators)")
            }
            return .compare(comparison, try value(of: type))
        }
    }

    private mutating func set(of type: ColumnType?) throws(FilterMistake) -> FilterValueSet {
        let start = index
        if let set = FilterValueSet(try list(of: type), as: type) { return set }
        throw mistake(at: start, "the values of 'in' have too many bytes; split them into two subscriptions")
    }

    private mutating func value(of type: ColumnType?) throws(FilterMistake) -> FilterValue {
        let start = index
        return try value(try scalar(), of: type, at: start)
    }

    private func value(_ text: [UInt8], of type: ColumnType?, at start: Int) throws(FilterMistake) -> FilterValue {
        if text.count > FilterLimits.numberBytesMax, type.map(\.isNumberOrTime) ?? (DecimalDigits(text) != nil) {
            throw mistake(at: start, "a number or a time must have at most \(FilterLimits.numberBytesMax) bytes")
        }
        guard let type else { return FilterValue(text) }
        if let value = FilterValue(text, as: type) { return value }
        throw mistake(at: start, "this is not a valid value: the column is of type \(type.rawValue)")
    }

    private mutating func identity(of type: ColumnType?) throws(FilterMistake) -> FilterCondition.Identity {
        let start = index
        let word = String(decoding: try scalar(), as: UTF8.self).lowercased()
        guard let identity = FilterCondition.Identity(rawValue: word) else {
            throw mistake(at: start, "'is' takes null, true, false or unknown")
        }
        guard identity == .null || type == nil || type == .boolean else {
            throw mistake(
                at: start, "'is.\(word)' requires a boolean column, but the column is of type \(type?.rawValue ?? "")")
        }
        return identity
    }

    private mutating func pattern(isCaseInsensitive: Bool) throws(FilterMistake) -> LikePattern {
        let start = index
        let text = try scalar()
        do {
            return try LikePattern(text, isCaseInsensitive: isCaseInsensitive)
        } catch {
            throw mistake(at: start, error.reason)
        }
    }

    // MARK: Values

    /// Reads one value and stops at the comma after it, or at the end.
    private mutating func scalar() throws(FilterMistake) -> [UInt8] {
        guard byte == UInt8(ascii: "\"") else { return try plainScalar() }
        let value = try quoted()
        skipSpaces()
        guard byte == nil || byte == UInt8(ascii: ",") else {
            throw mistake(at: index, "only a comma may follow a quoted value")
        }
        return value
    }

    /// Reads up to a comma outside of parentheses. Quotes and closing parentheses inside belong to the value
    /// (`5" tall`, `x)`), as with Supabase.
    private mutating func plainScalar() throws(FilterMistake) -> [UInt8] {
        let start = index
        var opened: [Int] = []
        while let byte {
            switch byte {
            case UInt8(ascii: ",") where opened.isEmpty: return try bounded(trimmed(start..<index), at: start)
            case UInt8(ascii: "("): opened.append(index)
            case UInt8(ascii: ")"): _ = opened.popLast()
            default: break
            }
            index += 1
        }
        if let place = opened.last { throw mistake(at: place, "a parenthesis is not closed; quote the value") }
        return try bounded(trimmed(start..<index), at: start)
    }

    /// Reads from the opening quote to after the closing one.
    private mutating func quoted() throws(FilterMistake) -> [UInt8] {
        let start = index
        index += 1
        var value: [UInt8] = []
        while let byte {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return try bounded(value[...], at: start)
            case UInt8(ascii: "\\"):
                guard let escaped = self.byte else { throw mistake(at: start, "the closing quotation mark is missing") }
                value.append(escaped)
                index += 1
            default: value.append(byte)
            }
        }
        throw mistake(at: start, "the closing quotation mark is missing")
    }

    /// Reads `(v,v,…)` and stops at the comma after it, or at the end.
    private mutating func list(of type: ColumnType?) throws(FilterMistake) -> [FilterValue] {
        guard byte == UInt8(ascii: "(") else {
            throw mistake(at: index, "the values of 'in' must be in parentheses: in.(1,2)")
        }
        let start = index
        index += 1
        var values: [FilterValue] = []
        skipSpaces()
        if byte == UInt8(ascii: ")") {
            index += 1
            try requireEnd()
            return []
        }
        while true {
            skipSpaces()
            guard values.count < FilterLimits.valuesMax else {
                throw mistake(at: index, "'in' takes at most \(FilterLimits.valuesMax) values")
            }
            let place = index
            values.append(try value(try listed(openedAt: start), of: type, at: place))
            skipSpaces()
            guard let closing = byte else { throw mistake(at: start, "the parenthesis of 'in' is not closed") }
            index += 1
            if closing == UInt8(ascii: ")") { break }
            guard closing == UInt8(ascii: ",") else {
                throw mistake(at: index - 1, "only a comma or ')' may follow a quoted value")
            }
        }
        try requireEnd()
        return values
    }

    private mutating func requireEnd() throws(FilterMistake) {
        skipSpaces()
        guard byte == nil || byte == UInt8(ascii: ",") else {
            throw mistake(at: index, "only a comma may follow ')'")
        }
    }

    private mutating func listed(openedAt opening: Int) throws(FilterMistake) -> [UInt8] {
        if byte == UInt8(ascii: "\"") { return try quoted() }
        let start = index
        while let byte, byte != UInt8(ascii: ","), byte != UInt8(ascii: ")") {
            guard !FilterBytes.isReserved(byte) else {
                throw mistake(at: index, "a value of 'in' that contains this character must be quoted")
            }
            index += 1
        }
        guard byte != nil else { throw mistake(at: opening, "the parenthesis of 'in' is not closed") }
        let value = trimmed(start..<index)
        guard !value.isEmpty else {
            throw mistake(at: start, "a value of 'in' is missing; write the empty string as \"\"")
        }
        return try bounded(value, at: start)
    }

    private func bounded(_ value: ArraySlice<UInt8>, at position: Int) throws(FilterMistake) -> [UInt8] {
        guard value.count <= FilterLimits.valueBytesMax else {
            throw mistake(at: position, "a value must have at most \(FilterLimits.valueBytesMax) bytes")
        }
        return Array(value)
    }

    private func trimmed(_ range: Range<Int>) -> ArraySlice<UInt8> {
        var rest = bytes[range]
        while let last = rest.last, FilterBytes.isSpace(last) { rest.removeLast() }
        return rest.drop(while: FilterBytes.isSpace)
    }
}
