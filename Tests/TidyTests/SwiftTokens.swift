import Glibc

/// The tokens of Swift code: words and single characters of punctuation, with their lines. Comments are left out. A
/// string literal is one `"`, and the code of its interpolations follows it.
struct SwiftTokens {
    struct Token {
        /// Bytes of the text.
        let start: Int
        let end: Int
        /// The first byte, which identifies punctuation.
        let byte: UInt8
        /// Counted from 1.
        let line: Int
    }

    let text: [UInt8]
    private(set) var tokens: [Token] = []
    private var index = 0
    private var line = 1
    /// The string literals open at the current position, with their open parentheses if it is in an interpolation.
    private var literals: [(quotes: Int, hashes: Int, parentheses: Int?)] = []

    private static let word = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

    init(_ code: String) {
        let text = Array(code.utf8) + [0]
        self.text = text
        tokens.reserveCapacity(text.count / 5)
        text.withUnsafeBufferPointer { buffer in
            // `strspn` and its siblings read the text, because a loop over bytes takes many times as long in a debug build.
            buffer.withMemoryRebound(to: CChar.self) { start in
                while index < buffer.count - 1 { readNext(start.baseAddress!, buffer) }
            }
        }
    }

    func isWord(_ token: Token, _ word: StaticString) -> Bool {
        guard token.byte == word.utf8Start.pointee, token.end - token.start == word.utf8CodeUnitCount else {
            return false
        }
        return text.withUnsafeBufferPointer {
            memcmp($0.baseAddress! + token.start, word.utf8Start, token.end - token.start)
        }
            == 0
    }

    func string(_ token: Token) -> String { String(decoding: text[token.start..<token.end], as: UTF8.self) }

    private mutating func append(to end: Int) {
        tokens.append(Token(start: index, end: end, byte: text[index], line: line))
        index = end
    }

    private mutating func skip(to end: Int) {
        while index < end {
            if text[index] == UInt8(ascii: "\n") { line += 1 }
            index += 1
        }
    }

    private mutating func readNext(_ start: UnsafePointer<CChar>, _ bytes: UnsafeBufferPointer<UInt8>) {
        if let literal = literals.last, literal.parentheses == nil {
            readLiteral(literal.quotes, literal.hashes, start, bytes)
            return
        }
        let byte = bytes[index]
        let next = bytes[index + 1]
        switch byte {
        case UInt8(ascii: " "): index += strspn(start + index, " ")
        case UInt8(ascii: "\n"): (index, line) = (index + 1, line + 1)
        case UInt8(ascii: "/") where next == UInt8(ascii: "/"): index += strcspn(start + index, "\n")
        case UInt8(ascii: "/") where next == UInt8(ascii: "*"): skipComment(bytes)
        case UInt8(ascii: "/") where beginsRegex(next): skipRegex(bytes)
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            append(to: index + strspn(start + index, Self.word))
        case UInt8(ascii: "`"): append(to: index + 2 + strcspn(start + index + 1, "`"))
        case UInt8(ascii: "\""): openLiteral(hashes: 0, bytes)
        case UInt8(ascii: "#"):
            let hashes = strspn(start + index, "#")
            if bytes[index + hashes] == UInt8(ascii: "\"") {
                openLiteral(hashes: hashes, bytes)
            } else {
                append(to: index + 1)
            }
        case UInt8(ascii: "("), UInt8(ascii: ")"):
            if let open = literals.last?.parentheses {
                let left = open + (byte == UInt8(ascii: "(") ? 1 : -1)
                literals[literals.count - 1].parentheses = left
                if left == 0 {
                    literals[literals.count - 1].parentheses = nil
                    index += 1
                    return
                }
            }
            append(to: index + 1)
        default: append(to: index + 1)
        }
    }

    private mutating func skipComment(_ bytes: UnsafeBufferPointer<UInt8>) {
        var depth = 0
        repeat {
            let pair = (bytes[index], bytes[index + 1])
            switch pair {
            case (UInt8(ascii: "/"), UInt8(ascii: "*")): (depth, index) = (depth + 1, index + 2)
            case (UInt8(ascii: "*"), UInt8(ascii: "/")): (depth, index) = (depth - 1, index + 2)
            default: skip(to: index + 1)
            }
        } while depth > 0 && index < bytes.count - 1
    }

    /// Whether a slash begins a regular expression. An operand stands before the slash of a division.
    private func beginsRegex(_ next: UInt8) -> Bool {
        guard let before = tokens.last?.byte, next != UInt8(ascii: " "), next != UInt8(ascii: ")") else { return false }
        return "(,=:[".utf8.contains(before)
    }

    private mutating func skipRegex(_ bytes: UnsafeBufferPointer<UInt8>) {
        index += 1
        while bytes[index] != UInt8(ascii: "/"), bytes[index] != UInt8(ascii: "\n"), index < bytes.count - 1 {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        index += 1
    }

    private mutating func openLiteral(hashes: Int, _ bytes: UnsafeBufferPointer<UInt8>) {
        let first = index + hashes
        let isLong =
            bytes[first + 1] == UInt8(ascii: "\"") && bytes[first + 2] == UInt8(ascii: "\"")
        let quotes = isLong ? 3 : 1
        literals.append((quotes, hashes, nil))
        tokens.append(Token(start: first, end: first + 1, byte: UInt8(ascii: "\""), line: line))
        index = first + quotes
    }

    private mutating func readLiteral(
        _ quotes: Int, _ hashes: Int, _ start: UnsafePointer<CChar>, _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        index += strcspn(start + index, "\\\"\n")
        guard index < bytes.count - 1 else { return }
        switch bytes[index] {
        case UInt8(ascii: "\n"): skip(to: index + 1)
        case UInt8(ascii: "\\"):
            guard strspn(start + index + 1, "#") >= hashes else {
                index += 1
                return
            }
            index += 1 + hashes
            if bytes[index] == UInt8(ascii: "(") { literals[literals.count - 1].parentheses = 1 }
            skip(to: index + 1)
        default:
            let end = index + quotes
            if strspn(start + index, "\"") >= quotes, strspn(start + end, "#") >= hashes {
                literals.removeLast()
                index = end + hashes
            } else {
                index += 1
            }
        }
    }
}
