import Rows
import TestSupport
import Values

/// Random filters and rows over a few columns and values, so that they often match.
enum RandomFilters {
    static let columns = ["id", "school_id", "points", "name", "flag"]
    static let texts = [
        "1", "2", "3", "5", "5.0", "05", "5e0", "-1", "0.1", "1e-1", "true", "t", "FALSE", "on", "null", "", " a",
        "a,b",
        "(x)", "q\"q", "b\\s", "é", "e\u{301}", "abc", "ABC", "2026-01-10T09:30:00Z", "9007199254740993", "1e400", "%_",
        "9B2F3C1E-4C1A-4D2B-8E3F-0A1B2C3D4E5F", "9b2f3c1e-4c1a-4d2b-8e3f-0a1b2c3d4e5f",
    ]

    static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    static func value(_ random: inout SeededGenerator) -> String {
        let text = texts[Int.random(in: 0..<texts.count, using: &random)]
        let isPlain = !text.isEmpty && !text.hasPrefix(" ") && !text.contains(where: { ",()\"\\".contains($0) })
        return isPlain && Bool.random(using: &random) ? text : quoted(text)
    }

    static func condition(_ random: inout SeededGenerator) -> String {
        let column = columns[Int.random(in: 0..<columns.count, using: &random)]
        let negation = Int.random(in: 0..<4, using: &random) == 0 ? "not." : ""
        let test =
            switch Int.random(in: 0..<12, using: &random) {
            case 0: "eq.\(value(&random))"
            case 1: "neq.\(value(&random))"
            case 2: "lt.\(value(&random))"
            case 3: "lte.\(value(&random))"
            case 4: "gt.\(value(&random))"
            case 5: "gte.\(value(&random))"
            case 6: "is.\(["null", "true", "false", "unknown"][Int.random(in: 0..<4, using: &random)])"
            case 7: "isdistinct.\(value(&random))"
            case 8:
                "\(Bool.random(using: &random) ? "like" : "ilike")."
                    + ["a%", "%b%", "_", "%", "A_c", "\"%,%\""][Int.random(in: 0..<6, using: &random)]
            default:
                "in.("
                    + (0..<Int.random(in: 1...6, using: &random)).map { _ in value(&random) }.joined(separator: ",")
                    + ")"
            }
        return "\(column)=\(negation)\(test)"
    }

    static func text(_ random: inout SeededGenerator) -> String {
        (0..<Int.random(in: 0...3, using: &random)).map { _ in condition(&random) }.joined(separator: ",")
    }

    static func json(_ random: inout SeededGenerator) -> JSONValue {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2...4: return .integer([1, 2, 3, 5, -1, 9_007_199_254_740_993][Int.random(in: 0..<6, using: &random)])
        case 5: return .number([0.1, 5, -1, 1.5, 9_007_199_254_740_992][Int.random(in: 0..<5, using: &random)])
        case 6: return Bool.random(using: &random) ? .array([.integer(5)]) : .object(["a": .integer(5)])
        default: return .string(texts[Int.random(in: 0..<texts.count, using: &random)])
        }
    }

    static func row(_ random: inout SeededGenerator) -> Filter.Row {
        var row: Filter.Row = [:]
        for column in columns where Int.random(in: 0..<6, using: &random) > 0 { row[column] = json(&random) }
        return row
    }
}
