import Values

/// The filter of a subscription: conditions on a row's columns. A row must meet all of them.
///
/// ```
/// filter = [ cond *( "," cond ) ]           AND; there is no OR: that is two subscriptions
/// cond   = column "=" [ "not." ] op "." value
/// op     = eq neq lt lte gt gte in like ilike is isdistinct
/// ```
/// The grammar is that of Supabase Realtime (`id=in.(1,2),status=not.eq."on hold"`), without `match` and `imatch`.
///
/// **A condition is true, false, or unknown**, as in SQL, and a row matches only if every condition is true:
/// - NULL makes every comparison unknown, negated or not. So does a value of a kind as which the filter's value cannot
///   be read (``FilterValue``). `is` and `isdistinct` are for NULL; `in.()` is the empty set, which contains nothing.
/// - A text of more than 8 KiB is unknown to a `like` that would have to search it (`%word%`).
/// - A missing column makes every condition unknown, including `is.null`: an incomplete row says nothing about the
///   column.
///
/// The words `null`, `true` and so on are values only for `is`. For all other operators they are texts: `in.(null)` is
/// the text "null".
public struct Filter: Sendable, Hashable {
    /// A row in the form in which changes carry it.
    public typealias Row = [String: JSONValue]

    /// The first condition is stored inline. Most filters have only one, and a change then finds it without following a
    /// list.
    private let first: FilterCondition?
    private let others: [FilterCondition]

    public var conditions: [FilterCondition] { (first.map { [$0] } ?? []) + others }

    /// A filter that every row matches.
    public static let all = Filter(conditions: [])

    init(conditions: [FilterCondition]) {
        self.first = conditions.first
        self.others = Array(conditions.dropFirst())
    }

    /// The canonical spelling. Parsing it gives an equal filter.
    public var canonical: String { conditions.map(\.canonical).joined(separator: ",") }

    /// The number of values in all conditions, which determines the memory of the filter.
    public var valueCount: Int { conditions.reduce(0) { $0 + $1.test.valueCount } }

    /// The approximate memory of the conditions in bytes.
    var storedBytes: Int { conditions.reduce(0) { $0 + $1.column.utf8.count + $1.test.storedBytes } }

    /// The number of conditions that search texts. Each of them costs more than all other conditions together.
    var searchCount: Int {
        conditions.count { if case .like(let pattern) = $0.test { pattern.isSearch } else { false } }
    }

    /// The number of filters that this filter counts as where all filters have to be evaluated.
    var scanWeight: Int { 1 + searchCount * FilterLimits.searchWeight }

    public func matches(_ row: Row) -> Bool {
        guard let first else { return true }
        return first.truth(in: row) == true && others.allSatisfy { $0.truth(in: row) == true }
    }

    /// Matches both rows of a change at once. A column that did not change is evaluated once.
    public func matches(old: Row?, new: Row?) -> (old: Bool, new: Bool) {
        var result = (old: old != nil, new: new != nil)
        guard let first else { return result }
        first.evaluate(old, new, &result)
        for condition in others where result.old || result.new { condition.evaluate(old, new, &result) }
        return result
    }

    /// Returns the first condition that the row does not fulfil, and the reason; nil if the row matches.
    public func mismatch(in row: Row) -> FilterMismatch? {
        for condition in conditions {
            let truth = condition.truth(in: row)
            if truth == true { continue }
            let reason: FilterMismatch.Reason =
                switch row[condition.column] {
                case nil: .missing
                case .null?: .null
                case .some: truth == nil ? .incomparable : .differs
                }
            return FilterMismatch(condition: condition.canonical, column: condition.column, reason: reason)
        }
        return nil
    }
}

/// One condition of a filter, on one column.
public struct FilterCondition: Sendable, Hashable {
    public let column: String
    let isNegated: Bool
    public let test: Test

    public enum Test: Sendable, Hashable {
        case compare(Comparison, FilterValue)
        case within(FilterValueSet)
        // Stored indirectly, because the other cases have half its size and every entry of an index contains one.
        indirect case like(LikePattern)
        case identity(Identity)
        case isDistinct(FilterValue)

        var valueCount: Int { if case .within(let set) = self { set.count } else { 1 } }

        /// The bytes that a value takes besides its text: for the condition, its parts, and its place in the index.
        private static let valueBytes = 64

        var storedBytes: Int {
            switch self {
            case .compare(_, let value), .isDistinct(let value): value.bytes.count + Self.valueBytes
            case .within(let set): set.storedBytes + set.count * Self.valueBytes
            // Its characters stand there a second time, as words of memory.
            case .like(let pattern): pattern.bytes.count * 9 + Self.valueBytes
            case .identity: Self.valueBytes
            }
        }
    }

    public enum Comparison: String, Sendable, CaseIterable {
        case eq, neq, lt, lte, gt, gte
    }

    /// The operands of `is`.
    public enum Identity: String, Sendable, CaseIterable {
        case null, `true`, `false`, unknown
    }

    /// The declared type of the column, if its values are compared by it.
    var type: ColumnType? {
        switch test {
        case .compare(_, let value), .isDistinct(let value): value.type
        case .within(let set): set.type
        case .like, .identity: nil
        }
    }

    /// Whether an index can find this condition by its values: a non-negated `eq` or `in`.
    var isIndexable: Bool {
        guard !isNegated else { return false }
        switch test {
        case .compare(.eq, _), .within: return true
        default: return false
        }
    }

    /// Calls `body` once with each key (``FilterKey``) that a row fulfilling this condition can have.
    func forEachKey(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        switch test {
        case .within(let set): set.forEachKey(body)
        case .compare(.eq, let value):
            value.bytes.withUnsafeBufferPointer(body)
            guard value.type == nil else { return }
            if let number = value.number?.canonical, !number.utf8.elementsEqual(value.bytes) {
                number.withUTF8Bytes(body)
            }
            if let word = value.boolean.map({ $0 ? "true" : "false" }), !word.utf8.elementsEqual(value.bytes) {
                word.withUTF8Bytes(body)
            }
        default: return
        }
    }
}

/// The reason why a row does not match: the condition in its canonical spelling, and the problem with the row's value.
public struct FilterMismatch: Sendable, Hashable {
    public enum Reason: String, Sendable {
        /// The row has no such column.
        case missing
        /// The column is NULL.
        case null
        /// The column's value is of a kind as which the filter's value cannot be read, or too long to be searched.
        case incomparable
        case differs
    }

    public let condition: String
    public let column: String
    public let reason: Reason
}

// MARK: - Evaluation

extension FilterCondition {
    /// Returns one of SQL's three truth values; nil is unknown.
    func truth(in row: Filter.Row) -> Bool? { truth(of: row[column]) }

    /// Returns the truth for the column's value; nil means that the row lacks the column.
    func truth(of value: JSONValue?) -> Bool? {
        guard let value else { return isEmptySet ? isNegated : nil }
        guard let plain = holds(for: value) else { return nil }
        return plain != isNegated
    }

    /// Sets a result to false if its row does not fulfil this condition.
    func evaluate(_ old: Filter.Row?, _ new: Filter.Row?, _ result: inout (old: Bool, new: Bool)) {
        let before = old?[column]
        let after = new?[column]
        let truth = truth(of: after)
        if let before, let after, before.isSame(as: after) {
            result.old = result.old && truth == true
        } else {
            result.old = result.old && self.truth(of: before) == true
        }
        result.new = result.new && truth == true
    }

    /// Whether this is `in.()`, for which the column does not matter.
    private var isEmptySet: Bool { if case .within(let set) = test { set.count == 0 } else { false } }

    /// Evaluates without the negation; nil is unknown.
    private func holds(for value: JSONValue) -> Bool? {
        switch test {
        case .compare(let comparison, let own): own.order(of: value).map(comparison.accepts)
        case .within(let set): set.contains(value)
        case .like(let pattern): if case .string(let text) = value { pattern.matches(text) } else { nil }
        case .identity(let identity): identity.holds(for: value)
        case .isDistinct(let own): value == .null ? true : own.order(of: value).map { $0 != .equal }
        }
    }
}

extension FilterCondition.Comparison {
    func accepts(_ order: FilterOrder) -> Bool {
        switch self {
        case .eq: order == .equal
        case .neq: order != .equal
        case .lt: order == .less
        case .lte: order != .greater
        case .gt: order == .greater
        case .gte: order != .less
        }
    }
}

extension FilterCondition.Identity {
    /// Evaluates `is`. `true`, `false` and `unknown` are for booleans; `unknown` is the NULL of a boolean.
    func holds(for value: JSONValue) -> Bool? {
        switch (self, value) {
        case (.null, _): value == .null
        case (.unknown, .null): true
        case (_, .null): false
        case (.unknown, .bool): false
        case (.true, .bool(let flag)): flag
        case (.false, .bool(let flag)): !flag
        default: nil
        }
    }
}

// MARK: - Canonical text

extension FilterCondition {
    public var canonical: String {
        let operation: String
        let operand: String
        switch test {
        case .compare(let comparison, let value): (operation, operand) = (comparison.rawValue, Self.quoted(value.bytes))
        case .within(let set): (operation, operand) = ("in", "(\(set.values.map(Self.quoted).joined(separator: ",")))")
        case .like(let pattern):
            (operation, operand) = (pattern.isCaseInsensitive ? "ilike" : "like", Self.quoted(pattern.bytes))
        case .identity(let identity): (operation, operand) = ("is", identity.rawValue)
        case .isDistinct(let value): (operation, operand) = ("isdistinct", Self.quoted(value.bytes))
        }
        return "\(column)=\(isNegated ? "not." : "")\(operation).\(operand)"
    }

    /// Returns the text in quotes only if the grammar requires them.
    private static func quoted(_ bytes: [UInt8]) -> String {
        let isPlain =
            !bytes.contains(where: FilterBytes.isReserved)
            && bytes.first.map { !FilterBytes.isSpace($0) } ?? false
            && bytes.last.map { !FilterBytes.isSpace($0) } ?? false
        if isPlain { return String(decoding: bytes, as: UTF8.self) }
        var quoted: [UInt8] = [UInt8(ascii: "\"")]
        for byte in bytes {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { quoted.append(UInt8(ascii: "\\")) }
            quoted.append(byte)
        }
        quoted.append(UInt8(ascii: "\""))
        return String(decoding: quoted, as: UTF8.self)
    }
}
