import Values

/// A scanner that finds the items of a delivery without reading them, so that one malformed item does not reject the
/// others.
///
/// It knows of JSON only what it takes to find an item's end: strings, and how deep the brackets are.
struct DeliveryScanner {
    struct Item {
        var bytes: Range<Int>
        /// True if a reader might round some number.
        var hasLongNumber = false
    }

    let bytes: [UInt8]
    private(set) var isArray = false
    private var index = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    private func malformed(_ what: String) -> Failure {
        Failure(.malformed, "request.malformed_json", "The body is not valid JSON: \(what) at byte \(index).")
    }

    /// The items: the elements of an array, or the body as a whole. A body whose items cannot be separated, or that
    /// has too many, is refused as a whole.
    mutating func items() throws(Failure) -> [Item] {
        skipSpace()
        guard index < bytes.count else { throw malformed("the document ends too early") }
        isArray = bytes[index] == UInt8(ascii: "[")
        guard isArray else {
            let item = try item()
            skipSpace()
            guard index == bytes.count else { throw malformed("something follows the document") }
            return [item]
        }
        index += 1
        var items: [Item] = []
        skipSpace()
        if index < bytes.count, bytes[index] == UInt8(ascii: "]") {
            index += 1
        } else {
            while true {
                guard items.count < ChangeLimits.itemsMax else {
                    throw Failure(
                        .tooLarge, "changes.too_many",
                        "A delivery has at most \(ChangeLimits.itemsMax) changes; split it. The next begins at byte "
                            + "\(index).")
                }
                items.append(try item())
                skipSpace()
                guard index < bytes.count else { throw malformed("the document ends too early") }
                let byte = bytes[index]
                guard byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") else {
                    throw malformed("a comma or a closing bracket was expected")
                }
                index += 1
                if byte == UInt8(ascii: "]") { break }
                skipSpace()
            }
        }
        skipSpace()
        guard index == bytes.count else { throw malformed("something follows the document") }
        return items
    }

    private mutating func item() throws(Failure) -> Item {
        let start = index
        var item = Item(bytes: start..<start)
        var depth = 0
        repeat {
            guard index < bytes.count else { throw malformed("the document ends too early") }
            switch bytes[index] {
            case UInt8(ascii: "\""):
                guard let end = NumberScanner.endOfString(bytes[...], from: index) else {
                    throw malformed("a string that does not end, and begins")
                }
                index = end
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                index += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                guard depth > 0 else { throw malformed("a value was expected") }
                depth -= 1
                index += 1
            case let byte where NumberScanner.startsNumber(byte):
                let end = NumberScanner.endOfNumber(bytes[...], from: index)
                if NumberScanner.isLong(bytes[index..<end]) { item.hasLongNumber = true }
                index = end
            case UInt8(ascii: ",") where depth == 0: throw malformed("a value was expected")
            default:
                if depth == 0 { skipWord() } else { index += 1 }
            }
        } while depth > 0
        item.bytes = start..<index
        return item
    }

    /// A word at the top level, valid or not, up to where an array's next element could begin.
    private mutating func skipWord() {
        while index < bytes.count, !" \n\r\t,]}[{\"".utf8.contains(bytes[index]) { index += 1 }
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
