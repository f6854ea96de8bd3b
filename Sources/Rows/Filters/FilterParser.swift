import Values

/// Where and why a text is no filter.
public struct FilterMistake: Error, Sendable, Hashable {
    /// The byte (UTF-8, from 0) at which the mistake begins.
    public let position: Int
    public let reason: String
    /// What stands there, shortened.
    let excerpt: String

    /// For people: `unknown operator 'foo' (at byte 3: 'foo.5')`.
    public var detail: String {
        excerpt.isEmpty ? "\(reason) (at byte \(position), the end)" : "\(reason) (at byte \(position): '\(excerpt)')"
    }
}

extension Failure {
    /// The mistake as the answer to a request; `pointer` names the member with the filter.
    public static func filter(_ mistake: FilterMistake, at pointer: String) -> Failure {
        .invalid(pointer, mistake.detail)
    }
}

extension Filter {
    /// Reads the grammar of ``Filter``; spaces around names, operators and values are tolerated.
    public init(parsing text: String) throws(FilterMistake) {
        var parser = FilterParser(text)
        self.init(conditions: try parser.filter())
    }
}

/// The reader behind ``Filter/init(parsing:)``: one pass over the bytes, without recursion.
private struct FilterParser {
    private let bytes: [UInt8]
    private var index = 0

    init(_ text: String) {
        bytes = Array(text.utf8)
    }

    private var byte: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpaces() {
        while let byte, FilterBytes.isSpace(byte) { index += 1 }
    }

    /// Quotes forty characters: enough to recognize the place without repeating a large filter.
    private func mistake(at position: Int, _ reason: String) -> FilterMistake {
        let rest = String(decoding: bytes[min(position, bytes.count)...].prefix(160), as: UTF8.self)
        return FilterMistake(position: position, reason: reason, excerpt: String(rest.prefix(40)))
    }

    mutating func filter() throws(FilterMistake) -> [FilterCondition] {
        guard bytes.count <= FilterLimits.filterBytesMax else {
            throw mistake(
                at: FilterLimits.filterBytesMax,
                "a filter has at most \(FilterLimits.filterBytesMax) bytes, and this one \(bytes.count)")
        }
        if let place = bytes.firstIndex(of: 0) { throw mistake(at: place, "a filter cannot hold NUL") }
        skipSpaces()
        guard byte != nil else { return [] }
        var conditions: [FilterCondition] = []
        while true {
            skipSpaces()
            guard let first = byte, first != UInt8(ascii: ",") else {
                throw mistake(at: index, "a condition is missing: there is a comma too many")
            }
            guard conditions.count < FilterLimits.conditionsMax else {
                throw mistake(at: index, "a filter has at most \(FilterLimits.conditionsMax) conditions")
            }
            conditions.append(try condition())
            guard byte != nil else { return conditions }
            // Every value ends before a comma or at the end.
            index += 1
        }
    }

    private mutating func condition() throws(FilterMistake) -> FilterCondition {
        let column = try column()
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
        return FilterCondition(column: column, isNegated: isNegated, test: try test(name, at: place))
    }

    /// Reads up to and including the `=`.
    private mutating func column() throws(FilterMistake) -> String {
        let start = index
        while let byte, byte != UInt8(ascii: "=") {
            guard !FilterBytes.isReserved(byte) else {
                throw mistake(at: start, "a condition is written column=operator.value")
            }
            guard byte >= 0x20, byte != 0x7F else {
                throw mistake(at: index, "a column's name cannot hold control characters")
            }
            index += 1
        }
        guard byte != nil else { throw mistake(at: start, "a condition is written column=operator.value") }
        let name = trimmed(start..<index)
        index += 1
        guard !name.isEmpty else { throw mistake(at: start, "a column's name is missing before '='") }
        guard name.count <= FilterLimits.columnBytesMax else {
            throw mistake(at: start, "a column's name has at most \(FilterLimits.columnBytesMax) bytes")
        }
        let column = String(decoding: name, as: UTF8.self)
        if column == "or" || column == "and", byte == UInt8(ascii: "(") {
            throw mistake(
                at: start, "conditions can only be joined by commas, which mean AND; for OR make two subscriptions")
        }
        return column
    }

    /// Reads up to and including the `.`.
    private mutating func operatorName() throws(FilterMistake) -> String {
        let start = index
        while let byte, byte >= UInt8(ascii: "a"), byte <= UInt8(ascii: "z") { index += 1 }
        let name = String(decoding: bytes[start..<index], as: UTF8.self)
        guard !name.isEmpty else {
            throw mistake(at: start, "an operator is missing: one of \(Self.operators), each with '.' after it")
        }
        guard byte == UInt8(ascii: ".") else {
            throw mistake(at: start, "after the operator '\(name.prefix(40))' a '.' and a value are missing")
        }
        index += 1
        return name
    }

    private static let operators = "eq, neq, lt, lte, gt, gte, in, like, ilike, is, isdistinct"

    private mutating func test(_ name: String, at place: Int) throws(FilterMistake) -> FilterCondition.Test {
        switch name {
        case "in": return .within(FilterValueSet(try list()))
        case "is": return .identity(try identity())
        case "isdistinct": return .isDistinct(FilterValue(try scalar()))
        case "like", "ilike": return .like(try pattern(isCaseInsensitive: name == "ilike"))
        case "match", "imatch":
            throw mistake(
                at: place, "'\(name)' takes a regular expression, whose cost has no bound; use like or ilike")
        case "not": throw mistake(at: place, "'not.' stands twice")
        default:
            guard let comparison = FilterCondition.Comparison(rawValue: name) else {
                throw mistake(at: place, "unknown operator '\(name.prefix(40))'; known are \(Self.operators)")
            }
            return .compare(comparison, FilterValue(try scalar()))
        }
    }

    private mutating func identity() throws(FilterMistake) -> FilterCondition.Identity {
        let start = index
        let word = String(decoding: try scalar(), as: UTF8.self).lowercased()
        guard let identity = FilterCondition.Identity(rawValue: word) else {
            throw mistake(at: start, "'is' takes null, true, false or unknown")
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

    /// Reads one value and stops at the comma behind it, or at the end.
    private mutating func scalar() throws(FilterMistake) -> [UInt8] {
        guard byte == UInt8(ascii: "\"") else { return try plainScalar() }
        let value = try quoted()
        skipSpaces()
        guard byte == nil || byte == UInt8(ascii: ",") else {
            throw mistake(at: index, "after a quoted value only a comma can follow")
        }
        return value
    }

    /// What stands there up to a comma outside of parentheses. Quotes and closing parentheses inside belong
    /// to the value (`5" tall`, `x)`), as with Supabase.
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

    /// Reads from the quote to behind the closing one.
    private mutating func quoted() throws(FilterMistake) -> [UInt8] {
        let start = index
        index += 1
        var value: [UInt8] = []
        while let byte {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return try bounded(value[...], at: start)
            case UInt8(ascii: "\\"):
                guard let escaped = self.byte else { throw mistake(at: start, "a quoted value does not end") }
                value.append(escaped)
                index += 1
            default: value.append(byte)
            }
        }
        throw mistake(at: start, "a quoted value does not end")
    }

    /// Reads `(v,v,…)` and stops at the comma behind it, or at the end.
    private mutating func list() throws(FilterMistake) -> [[UInt8]] {
        guard byte == UInt8(ascii: "(") else {
            throw mistake(at: index, "'in' takes its values in parentheses: in.(1,2)")
        }
        let start = index
        index += 1
        var values: [[UInt8]] = []
        while true {
            skipSpaces()
            guard values.count < FilterLimits.valuesMax else {
                throw mistake(at: index, "'in' takes at most \(FilterLimits.valuesMax) values")
            }
            values.append(try listed(openedAt: start))
            skipSpaces()
            guard let closing = byte else { throw mistake(at: start, "the parenthesis of 'in' is not closed") }
            index += 1
            if closing == UInt8(ascii: ")") { break }
            guard closing == UInt8(ascii: ",") else {
                throw mistake(at: index - 1, "after a quoted value only a comma or ')' can follow")
            }
        }
        skipSpaces()
        guard byte == nil || byte == UInt8(ascii: ",") else {
            throw mistake(at: index, "after ')' only a comma can follow")
        }
        return values
    }

    private mutating func listed(openedAt opening: Int) throws(FilterMistake) -> [UInt8] {
        if byte == UInt8(ascii: "\"") { return try quoted() }
        let start = index
        while let byte, byte != UInt8(ascii: ","), byte != UInt8(ascii: ")") {
            guard !FilterBytes.isReserved(byte) else {
                throw mistake(at: index, "inside 'in' this character must stand in a quoted value")
            }
            index += 1
        }
        guard byte != nil else { throw mistake(at: opening, "the parenthesis of 'in' is not closed") }
        let value = trimmed(start..<index)
        guard !value.isEmpty else {
            throw mistake(at: start, "a value of 'in' is missing; the empty text is written \"\"")
        }
        return try bounded(value, at: start)
    }

    private func bounded(_ value: ArraySlice<UInt8>, at position: Int) throws(FilterMistake) -> [UInt8] {
        guard value.count <= FilterLimits.valueBytesMax else {
            throw mistake(at: position, "a value has at most \(FilterLimits.valueBytesMax) bytes")
        }
        return Array(value)
    }

    private func trimmed(_ range: Range<Int>) -> ArraySlice<UInt8> {
        var rest = bytes[range]
        while let last = rest.last, FilterBytes.isSpace(last) { rest.removeLast() }
        return rest.drop(while: FilterBytes.isSpace)
    }
}
