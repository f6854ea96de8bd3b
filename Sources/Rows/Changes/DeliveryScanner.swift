import Values

/// A scanner that separates the items of a delivery without parsing them, so that one malformed item does not reject
/// the others.
///
/// It knows only as much JSON as is needed to find the end of an item: strings, and the nesting of brackets.
struct DeliveryScanner {
    let bytes: [UInt8]
    private(set) var isArray = false
    var index = 0

    private func malformed(_ what: String) -> Failure {
        Failure(.malformed, "request.malformed_json", "The body is not valid JSON: \(what) at byte \(index).")
    }

    /// Returns the byte ranges of the items: the elements of an array, or the whole body. A body whose items cannot be
    /// separated, or that has too many, is refused as a whole.
    mutating func items() throws(Failure) -> [Range<Int>] {
        skipSpace()
        guard index < bytes.count else { throw malformed("unexpected end of the document") }
        isArray = bytes[index] == UInt8(ascii: "[")
        guard isArray else {
            let item = try item()
            skipSpace()
            guard index == bytes.count else { throw malformed("unexpected content after the document") }
            return [item]
        }
        index += 1
        var items: [Range<Int>] = []
        skipSpace()
        if index < bytes.count, bytes[index] == UInt8(ascii: "]") {
            index += 1
        } else {
            while true {
                guard items.count < ChangeLimits.itemsMax else {
                    throw Failure(
                        .tooLarge, "changes.too_many",
                        "A delivery can have at most \(ChangeLimits.itemsMax) changes. Split it: the next change begins at byte "
                            + "\(index).")
                }
                items.append(try item())
                skipSpace()
                guard index < bytes.count else { throw malformed("unexpected end of the document") }
                let byte = bytes[index]
                guard byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") else {
                    throw malformed("expected a comma or a closing bracket")
                }
                index += 1
                if byte == UInt8(ascii: "]") { break }
                skipSpace()
            }
        }
        skipSpace()
        guard index == bytes.count else { throw malformed("unexpected content after the document") }
        return items
    }

    private mutating func item() throws(Failure) -> Range<Int> {
        let start = index
        var depth = 0
        repeat {
            guard index < bytes.count else { throw malformed("unexpected end of the document") }
            switch bytes[index] {
            case UInt8(ascii: "\""): try skipString()
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                index += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                guard depth > 0 else { throw malformed("expected a value") }
                depth -= 1
                index += 1
            case UInt8(ascii: ",") where depth == 0: throw malformed("expected a value")
            case UInt8(ascii: "-") where depth == 0, 48...57 where depth == 0:
                while index < bytes.count, "+-.0123456789eE".utf8.contains(bytes[index]) { index += 1 }
            case _ where depth == 0:
                // A word, valid or not, up to where an array's next element could begin.
                while index < bytes.count, !" \n\r\t,]}[{\"".utf8.contains(bytes[index]) { index += 1 }
            default: index += 1
            }
        } while depth > 0
        return start..<index
    }

    private mutating func skipString() throws(Failure) {
        var end = index + 1
        while end < bytes.count {
            end = bytes.withUnsafeBufferPointer { $0.endOfPlainText(from: end) }
            guard end < bytes.count, bytes[end] != UInt8(ascii: "\"") else { break }
            end += bytes[end] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard end < bytes.count else { throw malformed("an unterminated string that begins") }
        index = end + 1
    }

    private mutating func skipSpace() {
        while index < bytes.count {
            switch bytes[index] {
            case 0x20, 0x0A, 0x0D, 0x09: index += 1
            default: return
            }
        }
    }
}
