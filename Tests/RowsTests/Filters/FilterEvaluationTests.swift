import TestSupport
import Testing

@testable import Rows
@testable import Values

@Suite(.timed) struct FilterEvaluationTests {
    /// Evaluates a condition on column `a`; nil means that the row has no such column.
    private func matches(_ condition: String, _ value: JSONValue?) throws -> Bool {
        try Filter(parsing: "a=\(condition)").matches(value.map { ["a": $0, "b": .integer(1)] } ?? ["b": .integer(1)])
    }

    @Test(arguments: [
        ("eq.5", JSONValue.integer(5), true), ("eq.5.0", .integer(5), true), ("eq.+05", .integer(5), true),
        ("eq.5e0", .integer(5), true), ("eq.5", .number(5), true), ("eq.0.1", .number(0.1), true),
        ("eq.1e-1", .number(0.1), true), ("eq..5", .number(0.5), true), ("eq.-0", .integer(0), true),
        ("eq.9007199254740993", .integer(9_007_199_254_740_993), true),
        ("eq.9007199254740993", .integer(9_007_199_254_740_992), false),
        ("gt.9007199254740992.5", .integer(9_007_199_254_740_993), true),
        ("lt.9223372036854775808", .integer(.max), true), ("lte.-9223372036854775808", .integer(.min), true),
        ("gt.4.9", .integer(5), true), ("lt.-4.1", .integer(-5), true), ("gt.-5.1", .integer(-5), true),
        ("lt.10", .integer(9), true), ("gte.5", .integer(5), true), ("lte.4", .integer(5), false),
        ("neq.6", .integer(5), true), ("in.(1,5.0)", .integer(5), true), ("in.(1,5)", .number(5), true),
        ("neq.1e400", .number(1), true), ("gt.1e-400", .integer(0), false), ("lt.1e-400", .integer(0), true),
        ("eq.12345678901234567890.50", .string("12345678901234567890.5"), true),
        ("gt.9", .string("12345678901234567890"), true),
        ("lt.12345678901234567891", .string("12345678901234567890"), true),
        ("in.(12345678901234567890.0,1)", .string("12345678901234567890"), true),
        ("eq.0.1000000000000000055", .number(0.1), false), ("lt.0.1000000000000000055", .number(0.1), true),
        ("in.(05)", .integer(5), true), ("not.in.(1,2)", .integer(5), true), ("not.eq.5", .integer(5), false),
    ])
    func numbers_areComparedByValue(_ condition: String, _ value: JSONValue, _ expected: Bool) throws {
        #expect(try matches(condition, value) == expected)
    }

    @Test(arguments: [
        ("eq.5", JSONValue.string("5"), true), ("eq.5", .string("5.0"), false), ("in.(5.0)", .string("5"), false),
        ("in.(5.0)", .string("5.0"), true), ("lt.9", .string("10"), true), ("eq.abc", .string("ABC"), false),
        ("gt.Z", .string("a"), true), ("lt.é", .string("z"), true), ("eq.\"\"", .string(""), true),
        ("eq.e\u{301}", .string("\u{E9}"), false), ("in.(e\u{301})", .string("\u{E9}"), false),
        ("gte.2026-01-10T09:30:00Z", .string("2026-01-10T09:30:01Z"), true),
        ("lt.2026-01-10T09:30:00Z", .string("2026-01-10T09:30:01Z"), false), ("eq.null", .string("null"), true),
    ])
    func texts_areComparedByBytes(_ condition: String, _ value: JSONValue, _ expected: Bool) throws {
        #expect(try matches(condition, value) == expected)
    }

    /// Spellings of one moment: databases write `+00:00`, clients write `Z`, and users write any of these.
    @Test(arguments: [
        "2026-01-10T09:30:00Z", "2026-01-10T09:30:00.000Z", "2026-01-10 09:30:00+00", "2026-01-10T11:30:00.0+02:00",
        "2026-01-10T04:00:00-0530", "2026-01-10T09:30", "2026-01-10T09:30:00.0000001Z",
    ])
    func times_areComparedAsMoments(_ text: String) throws {
        let row = JSONValue.string("2026-01-10T09:30:00+00:00")
        for condition in ["eq.", "gte.", "lte.", "in.(x,", "not.neq.", "not.isdistinct."] {
            let full = "\(condition)\(text)\(condition.hasPrefix("in") ? ")" : "")"
            #expect(try matches(full, row), "\(full)")
        }
        #expect(try !matches("eq.\(text)", .string("2026-01-11T09:30:00+00:00")))
        #expect(try matches("gt.\(text)", .string("2026-01-10T10:30:00.5+01:00")))
        #expect(try matches("lt.\(text)", .string("2026-01-10")))
    }

    @Test func emptySet_containsNothing_andItsNegationEverything() throws {
        for value in [JSONValue.integer(5), .null, .string(""), .array([]), nil] {
            #expect(try !matches("in.()", value))
            #expect(try matches("not.in.()", value))
        }
    }

    /// The clients of the source write UUIDs in upper case, databases in lower case.
    @Test func uuid_isCaseInsensitive() throws {
        let (lower, upper) = ("9b2f3c1e-4c1a-4d2b-8e3f-0a1b2c3d4e5f", "9B2F3C1E-4C1A-4D2B-8E3F-0A1B2C3D4E5F")
        for condition in ["eq.", "in.(", "not.neq.", "gte.", "not.isdistinct."] {
            for (own, row) in [(lower, upper), (upper, lower), (upper, upper)] {
                let text = "\(condition)\(own)\(condition.hasSuffix("(") ? ")" : "")"
                #expect(try matches(text, .string(row)), "\(text) \(row)")
            }
        }
        #expect(try !matches("eq.\(upper)x", .string(lower + "x")))
        #expect(try !matches("eq.\(upper.dropLast())G", .string(lower.dropLast() + "g")))
        #expect(try Filter(parsing: "id=eq.\(upper)") == Filter(parsing: "id=eq.\(lower)"))
    }

    @Test(arguments: [
        ("eq.true", JSONValue.bool(true), true), ("eq.t", .bool(true), true), ("eq.FALSE", .bool(false), true),
        ("neq.true", .bool(false), true), ("in.(on)", .bool(true), true), ("lt.true", .bool(false), true),
        ("is.true", .bool(true), true), ("is.false", .bool(true), false), ("not.is.true", .bool(false), true),
        ("eq.0", .bool(false), true), ("eq.maybe", .bool(true), false), ("not.eq.maybe", .bool(true), false),
        ("in.(maybe)", .bool(true), false), ("not.in.(maybe)", .bool(true), false), ("is.unknown", .bool(true), false),
        ("not.is.unknown", .bool(true), true),
    ])
    func booleans_areComparedWithWords(_ condition: String, _ value: JSONValue, _ expected: Bool) throws {
        #expect(try matches(condition, value) == expected)
    }

    /// A comparison with NULL does not match, negated or not, except with `is` and `isdistinct`.
    @Test(arguments: [
        ("eq.null", false), ("neq.5", false), ("not.eq.5", false), ("lt.5", false), ("not.lt.5", false),
        ("in.(null,5)", false), ("not.in.(5)", false), ("like.%", false), ("not.like.x", false), ("is.null", true),
        ("not.is.null", false), ("is.unknown", true), ("is.true", false), ("not.is.true", true), ("not.is.false", true),
        ("isdistinct.5", true), ("not.isdistinct.5", false),
    ])
    func null_isUnknownToEverything_butIsAndIsDistinct(_ condition: String, _ expected: Bool) throws {
        #expect(try matches(condition, .null) == expected)
    }

    @Test(arguments: [
        "eq.5", "not.eq.5", "is.null", "not.is.null", "isdistinct.5", "not.isdistinct.5", "not.in.(5)", "not.like.x",
    ])
    func missingColumn_doesNotMatch_negatedOrNot(_ condition: String) throws {
        #expect(try !matches(condition, nil))
    }

    /// The row's value cannot be compared with the filter's value: neither the condition nor its negation matches.
    @Test(arguments: [
        ("eq.abc", JSONValue.integer(5)), ("lt.abc", .integer(5)), ("in.(abc)", .integer(5)), ("like.%", .integer(5)),
        ("is.true", .string("true")), ("is.unknown", .integer(1)), ("isdistinct.abc", .integer(5)),
        ("eq.5", .array([.integer(5)])), ("in.(5)", .object([:])), ("isdistinct.5", .array([])),
        ("eq.0x5", .integer(5)), ("eq.nan", .number(1)),
    ])
    func otherKind_matchesNeitherTheConditionNorItsOpposite(_ condition: String, _ value: JSONValue) throws {
        #expect(try !matches(condition, value))
        #expect(try !matches("not.\(condition)", value))
        #expect(try matches("not.is.null", value))
    }

    @Test(arguments: [
        ("like.hel%", "hello", true), ("like.hel%", "Hello", false), ("ilike.HEL%", "hello", true),
        ("like.%llo", "hello", true), ("like.h_llo", "hello", true), ("like.h_llo", "hllo", false),
        ("like.%ell%", "hello", true), ("like.hello", "hello", true), ("like.hello", "hello!", false),
        ("like.%", "", true), ("like._", "é", true), ("like._", "🙂", true), ("like.__", "🙂", false),
        ("like.50\\%", "50%", true), ("like.50\\%", "500", false), ("like.a\\_b", "a_b", true),
        ("like.a%a", "a", false), ("like.a%a", "aa", true), ("like.%a%b%", "xbxaxb", true), ("like.*", "abc", false),
        ("ilike.ÄÖ%", "äöü", true), ("ilike.İ", "İ", true), ("not.like.a%", "b", true), ("not.like.a%", "ab", false),
        ("ilike.%ÖL_é%", "xxöl🙂Éyy", true), ("like.%é%🙂%", "aébc🙂", true), ("like.%é%🙂%", "a🙂bcé", false),
        ("ilike.%K@[%", "xk@[", true), ("ilike.%`%", "@", false), ("like.%ß", "Straße", false), ("like.%ß", "ß", true),
        ("like.日_語%", "日本語です", true), ("ilike.%A_C%", "xxaбcxx", true), ("like.%_b_%", "abc", true),
        ("like.%_b_%", "bc", false),
    ])
    func like_matchesAsSQL(_ condition: String, _ text: String, _ expected: Bool) throws {
        #expect(try matches(condition, .string(text)) == expected)
    }

    /// The recursive definition of LIKE: slow but obviously correct.
    private func plainLike(_ pattern: ArraySlice<Character>, _ text: ArraySlice<Character>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        switch first {
        case "%":
            return (0...text.count).contains { plainLike(pattern.dropFirst(), text.dropFirst($0)) }
        case "_": return !text.isEmpty && plainLike(pattern.dropFirst(), text.dropFirst())
        default: return text.first == first && plainLike(pattern.dropFirst(), text.dropFirst())
        }
    }

    @Test func randomPattern_matchesAsTheDefinitionSays() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        func word(_ letters: String, _ count: ClosedRange<Int>) -> String {
            String((0..<Int.random(in: count, using: &random)).map { _ in letters.randomElement(using: &random)! })
        }
        for round in 0..<effort(quick: 4_000, full: 20_000, long: 200_000) {
            let pattern = word("aé%_%", 0...8)
            let text = word("aaé", 0...10)
            let compiled = try LikePattern(Array(pattern.utf8), isCaseInsensitive: false)
            #expect(
                compiled.matches(text) == .some(plainLike(Array(pattern)[...], Array(text)[...])),
                "seed \(seed), round \(round): '\(text)' like '\(pattern)'")
        }
    }

    /// A pattern that makes a backtracking matcher take exponential time is answered in one pass.
    @Test func hostilePattern_isEvaluatedInOnePass() throws {
        let text = String(repeating: "a", count: FilterLimits.searchedBytesMax - 1)
        let pattern = String(repeating: "%a", count: 500) + "%b%"
        #expect(try !matches("like.\(pattern)", .string(text)))
        let runs = "%" + String(repeating: "a", count: 63) + "b%"
        #expect(try !matches("like.\(runs)", .string(text)))
        #expect(try matches("ilike.\(runs)", .string(text + "B")))
        // Above the size limit, the result of a search is unknown, while prefixes and suffixes are still compared.
        #expect(try !matches("like.%a%", .string(text + "aa")))
        #expect(try !matches("not.like.%a%", .string(text + "aa")))
        #expect(try matches("like.a%a", .string(text + "aa")))
    }

    /// `in` equals the OR of `eq` over its values, for every kind of row.
    @Test func in_isTheOrOfEq() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        for round in 0..<effort(quick: 4_000, full: 20_000, long: 200_000) {
            let values = (0..<Int.random(in: 1...5, using: &random)).map { _ in RandomFilters.value(&random) }
            let row: Filter.Row = ["a": RandomFilters.json(&random)]
            let within = try Filter(parsing: "a=in.(\(values.joined(separator: ",")))").matches(row)
            let any = try values.contains { try Filter(parsing: "a=eq.\($0)").matches(row) }
            #expect(within == any, "seed \(seed), round \(round): \(values) \(row)")
        }
    }

    @Test func mismatch_namesTheConditionAndTheReason() throws {
        let filter = try Filter(parsing: "id=in.(1,2),name=eq.x")
        #expect(filter.mismatch(in: ["id": .integer(1), "name": .string("x")]) == nil)
        let cases: [(Filter.Row, String, FilterMismatch.Reason)] = [
            (["id": .integer(3)], "id", .differs), (["id": .integer(1)], "name", .missing),
            (["id": .null, "name": .string("x")], "id", .null), (["id": .array([])], "id", .incomparable),
        ]
        for (row, column, reason) in cases {
            let mismatch = try #require(filter.mismatch(in: row))
            #expect(mismatch.column == column)
            #expect(mismatch.reason == reason)
        }
    }
}
