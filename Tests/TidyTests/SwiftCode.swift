/// Swift code without comments, string literals and regex literals. Interpolations stay, and so do line breaks, so that
/// every place keeps its line.
struct SwiftCode {
    private let bytes: [UInt8]
    private var index = 0
    private var code: [UInt8] = []
    /// The string literals open at the current position.
    private var texts: [Text] = []

    private struct Text {
        let quotes: Int
        /// The number of `#` before the quotes. They stand behind each backslash too.
        let hashes: Int
        /// The open parentheses of the interpolation; nil outside of one.
        var brackets: Int?
    }

    static func code(of bytes: [UInt8]) -> [UInt8] {
        var reader = SwiftCode(bytes)
        while reader.index < bytes.count {
            if let text = reader.texts.last, text.brackets == nil {
                reader.readText(text)
            } else {
                reader.readCode()
            }
        }
        return reader.code
    }

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
        code.reserveCapacity(bytes.count)
    }

    private func stands(_ word: StaticString, at offset: Int = 0) -> Bool {
        let (start, count) = (index + offset, word.utf8CodeUnitCount)
        // The first byte differs most of the time, so few words are compared completely.
        guard start + count <= bytes.count, bytes[start] == word.utf8Start.pointee else { return false }
        return word.withUTF8Buffer { bytes[start..<(start + count)].elementsEqual($0) }
    }

    /// Returns the number of `#` from an offset on.
    private func hashes(at offset: Int = 0) -> Int {
        bytes[(index + offset)...].prefix { $0 == UInt8(ascii: "#") }.count
    }

    /// Passes over bytes that are not code.
    private mutating func skip(_ count: Int) {
        for byte in bytes[index..<min(index + count, bytes.count)] where byte == UInt8(ascii: "\n") {
            code.append(byte)
        }
        index += count
    }

    private mutating func readText(_ text: Text) {
        if stands("\\"), hashes(at: 1) >= text.hashes {
            if stands("(", at: 1 + text.hashes) {
                texts[texts.count - 1].brackets = 1
                skip(2 + text.hashes)
            } else {
                skip(2 + text.hashes)
            }
        } else if text.quotes == 3 ? stands("\"\"\"") : stands("\""), hashes(at: text.quotes) >= text.hashes {
            texts.removeLast()
            skip(text.quotes + text.hashes)
        } else {
            skip(1)
        }
    }

    private mutating func readCode() {
        let hashes = hashes()
        if stands("//") {
            while index < bytes.count, bytes[index] != UInt8(ascii: "\n") { index += 1 }
        } else if stands("/*") {
            readComment()
        } else if stands("\"", at: hashes) {
            let quotes = stands("\"\"\"", at: hashes) ? 3 : 1
            texts.append(Text(quotes: quotes, hashes: hashes))
            skip(hashes + quotes)
            code.append(UInt8(ascii: " "))
        } else if stands("/", at: hashes), hashes > 0 || isRegexAhead {
            readRegex(hashes: hashes)
        } else {
            if let brackets = texts.last?.brackets {
                let change = bytes[index] == UInt8(ascii: "(") ? 1 : bytes[index] == UInt8(ascii: ")") ? -1 : 0
                texts[texts.count - 1].brackets = brackets + change == 0 ? nil : brackets + change
            }
            code.append(bytes[index])
            index += 1
        }
    }

    private mutating func readComment() {
        var depth = 0
        repeat {
            if stands("/*") { depth += 1 } else if stands("*/") { depth -= 1 } else { skip(1); continue }
            skip(2)
        } while depth > 0 && index < bytes.count
    }

    /// Whether a slash begins a regex literal: it follows a place where a value begins, and no space follows it.
    private var isRegexAhead: Bool {
        let before = code.last { $0 > 0x20 }
        let isValueExpected = before.map { "(,:=[{".utf8.contains($0) } ?? true
        return isValueExpected && index + 1 < bytes.count && bytes[index + 1] > 0x20
    }

    private mutating func readRegex(hashes: Int) {
        skip(hashes + 1)
        while index < bytes.count {
            if stands("\\") {
                skip(2)
            } else if stands("/"), self.hashes(at: 1) >= hashes {
                skip(1 + hashes)
                return code.append(UInt8(ascii: " "))
            } else {
                skip(1)
            }
        }
    }
}

/// The declarations of one file that have a body of statements: functions, initializers, subscripts and computed
/// properties.
struct SwiftFunctions {
    struct Function: Equatable {
        let name: String
        /// The line of the keyword, from 1.
        let line: Int
        /// The lines from the keyword to the closing brace.
        let lines: Int
    }

    private(set) var all: [Function] = []
    private let code: [UInt8]
    private var index = 0
    private var line = 1

    private static let keywords: Set = ["func", "init", "deinit", "subscript", "var"]

    init(_ text: String) {
        code = SwiftCode.code(of: Array(text.utf8))
        var previous: UInt8 = 0
        while index < code.count {
            let byte = code[index]
            guard Self.isWord(byte) else {
                if byte == UInt8(ascii: "\n") { line += 1 }
                previous = byte
                index += 1
                continue
            }
            let start = index
            while index < code.count, Self.isWord(code[index]) { index += 1 }
            let word = String(decoding: code[start..<index], as: UTF8.self)
            // `self.init(…)` and `` `init` `` declare nothing.
            if Self.keywords.contains(word), previous != UInt8(ascii: "."), previous != UInt8(ascii: "`") {
                if let function = function(word, from: index) { all.append(function) }
            }
            previous = byte
        }
    }

    /// Returns the function whose keyword ends at an index; nil if it has no body.
    private func function(_ keyword: String, from start: Int) -> Function? {
        guard let open = bodyStart(of: keyword, from: start) else { return nil }
        var (end, depth) = (open, 0)
        repeat {
            if code[end] == UInt8(ascii: "{") { depth += 1 }
            if code[end] == UInt8(ascii: "}") { depth -= 1 }
            end += 1
        } while depth > 0 && end < code.count
        let breaks = code[start..<end].count { $0 == UInt8(ascii: "\n") }
        let named = code[start...].drop { $0 == 0x20 }.prefix { $0 > 0x20 && !"(<:{".utf8.contains($0) }
        let name = keyword == "func" || keyword == "var" ? String(decoding: named, as: UTF8.self) : keyword
        return Function(name: name, line: line, lines: breaks + 1)
    }

    /// Returns the index of the brace that opens a body. Before it come the parameters, the effects, the result and the
    /// requirements, in any number of lines. A default value may contain closures, so braces in parentheses do not
    /// count.
    private func bodyStart(of keyword: String, from start: Int) -> Int? {
        var (index, depth) = (start, 0)
        var previous: UInt8 = 0
        while index < code.count {
            let byte = code[index]
            switch byte {
            case UInt8(ascii: "("), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: ")"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "{") where depth == 0: return index
            case UInt8(ascii: "}") where depth == 0, UInt8(ascii: ";") where depth == 0: return nil
            // A variable with a value, or the requirement of a protocol.
            case UInt8(ascii: "=") where depth == 0 && keyword == "var" && previous != UInt8(ascii: "="): return nil
            case UInt8(ascii: "\n") where depth == 0 && isDeclarationAhead(from: index): return nil
            default: break
            }
            if depth < 0 { return nil }
            previous = byte
            index += 1
        }
        return nil
    }

    /// Whether the next line begins another declaration or statement instead of continuing a signature.
    private func isDeclarationAhead(from index: Int) -> Bool {
        let rest = code[index...].drop { $0 <= 0x20 }
        guard let first = rest.first else { return true }
        // A signature continues with a brace, an arrow, or one of these words.
        if first == UInt8(ascii: "{") || first == UInt8(ascii: "-") || first == UInt8(ascii: ")") { return false }
        let word = String(decoding: rest.prefix { Self.isWord($0) }, as: UTF8.self)
        return !["where", "throws", "rethrows", "async"].contains(word)
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        (65...90).contains(byte) || (97...122).contains(byte) || (48...57).contains(byte) || byte == UInt8(ascii: "_")
    }
}
