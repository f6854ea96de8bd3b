import TestSupport
import Testing
import Values

@testable import Rows

/// Attack: numbers whose spelling grows when they are read. Harm: a trap ends the process for all users, or one
/// filter costs as much as thousands.
@Suite(.timed) struct FilterNumberTests {
    private static func list(_ count: Int, _ value: (Int) -> String) -> String {
        "id=in.(\((0..<count).map(value).joined(separator: ",")))"
    }

    private static func mistake(_ text: String, _ columns: ColumnTypes? = nil) -> FilterMistake? {
        do {
            _ = try Filter(parsing: text, columns: columns)
            return nil
        } catch {
            return error
        }
    }

    /// If the zeros were written out, 120 such values would take 132 KB, more than two-byte offsets can address.
    @Test(arguments: [nil, ["id": ColumnType.numeric]])
    func in_takesExponents_withoutWritingTheirZeros(_ columns: ColumnTypes?) throws {
        let text = Self.list(120) { "\($0 + 1)e1100" }
        let filter = try Filter(parsing: text, columns: columns)
        #expect(filter.canonical.utf8.count <= text.utf8.count)
        #expect(try Filter(parsing: filter.canonical, columns: columns) == filter)
        #expect(filter.matches(["id": .string("120e1100")]) == true)
        #expect(!filter.matches(["id": .string("121e1100")]))
    }

    /// Each value is stored twice, as text and as number: 132 KB without any exponent.
    @Test func in_ofValuesThatDoNotFit_isRefused() throws {
        let mistake = try #require(
            Self.mistake(Self.list(1000) { "+\(String(repeating: "7", count: 59))\(1000 + $0)" }))
        #expect(mistake.position == 6)
        #expect(mistake.reason.contains("too many bytes"))
    }

    @Test(arguments: ["", "+", "-", "0", ".", "1e", "5e-", "1.0e"])
    func in_ofAThousandNumbers_fitsOrIsRefused(_ prefix: String) {
        for width in [4, 58, 60, 63] {
            _ = Self.mistake(
                Self.list(1000) { number in
                    prefix + "\(1000 + number)" + String(repeating: "7", count: max(0, width - prefix.count - 4))
                })
        }
    }

    @Test(arguments: [
        "1e-9223372036854775808", "1e9223372036854775807", "1e99999999999999999999", "1e+", "1e-", "1e", "1ee5",
        "1e5.0",
        "1e1000001", "1e-1000001",
    ])
    func exponentBeyondAllNumbers_isNoNumber(_ text: String) {
        #expect(DecimalDigits(text.utf8) == nil)
        #expect(Self.mistake("id=eq.\(text)", ["id": .numeric]) != nil)
        #expect(Self.mistake("id=in.(\(text))") == nil)
    }

    /// The description reads back to the same number, and is at most two bytes longer than any other spelling.
    @Test func description_isShort_andReadsBack() throws {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<2000 {
            let digits = (0..<Int.random(in: 1...30, using: &random)).map { _ in
                String(Int.random(in: 0...9, using: &random))
            }.joined()
            let text =
                ["", "-", "+"].randomElement(using: &random)! + [digits, "." + digits, digits + "."]
                .randomElement(using: &random)!
                + (Bool.random(using: &random) ? "e\(Int.random(in: -2000...2000, using: &random))" : "")
            let number = try #require(DecimalDigits(text.utf8))
            let description = number.description
            #expect(DecimalDigits(description.utf8) == number, "\(text) → \(description)")
            #expect(description.utf8.count <= text.utf8.count + 2, "\(text) → \(description)")
            if let double = number.exactDouble {
                #expect(double == Double(text), "\(text)")
                #expect(DecimalDigits(double.description.utf8) == number, "\(text)")
            }
            if let integer = number.integer { #expect(DecimalDigits("\(integer)".utf8) == number, "\(text)") }
        }
    }

    @Test(arguments: [
        ("9223372036854775807", Int64.max), ("-9223372036854775808", .min), ("9223372036854775808", nil),
        ("-9223372036854775809", nil), ("1e18", 1_000_000_000_000_000_000), ("1e19", nil), ("-0", 0), ("5.0", 5),
        ("5.5", nil), ("0.05e2", 5),
    ])
    func integer_isExact(_ text: String, _ integer: Int64?) { #expect(DecimalDigits(text.utf8)?.integer == integer) }

    @Test(arguments: [nil, ColumnType.numeric, .double, .bigint, .timestamptz])
    func longNumber_isRefused_withItsPlace(_ type: ColumnType?) throws {
        let long = String(repeating: "7", count: FilterLimits.numberBytesMax + 1)
        let columns = type.map { ["id": $0] }
        for text in ["id=eq.\(long)", "id=in.(\(long))"] {
            let mistake = try #require(Self.mistake(text, columns))
            #expect(mistake.reason == "a number or a time must have at most 128 bytes")
            #expect(mistake.position == text.utf8.count - long.utf8.count - (text.hasSuffix(")") ? 1 : 0))
        }
        // Text of the same length is compared as text.
        #expect(Self.mistake("id=eq.\(long)x") == nil)
        #expect(Self.mistake("id=eq.\(long)", ["id": .text]) == nil)
    }
}
