/// Finds the items of a delivery without reading them, so that one malformed item costs itself and not the others.
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

    /// The items: the elements of an array, or the body as a whole. A body whose items cannot be told apart, or that
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
                guard let end = DeliveryScanner.endOfString(bytes[...], from: index) else {
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
            case let byte where DeliveryScanner.startsNumber(byte):
                let end = DeliveryScanner.endOfNumber(bytes[...], from: index)
                if DeliveryScanner.isLong(bytes[index..<end]) { item.hasLongNumber = true }
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

    // MARK: What the reader of numbers needs as well

    /// The index behind the closing quote; nil if there is none.
    static func endOfString(_ bytes: ArraySlice<UInt8>, from start: Int) -> Int? {
        var index = start + 1
        while index < bytes.endIndex {
            switch bytes[index] {
            case UInt8(ascii: "\""): return index + 1
            case UInt8(ascii: "\\"): index += 2
            default: index += 1
            }
        }
        return nil
    }

    static func startsNumber(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "-") || (byte >= 48 && byte <= 57) }

    static func endOfNumber(_ bytes: ArraySlice<UInt8>, from start: Int) -> Int {
        var index = start + 1
        while index < bytes.endIndex {
            switch bytes[index] {
            case 48...57, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "e"),
                UInt8(ascii: "E"):
                index += 1
            default: return index
            }
        }
        return index
    }

    /// True if a reader may round the number: it is no 64-bit integer, and too long for every double.
    static func isLong(_ number: ArraySlice<UInt8>) -> Bool {
        if number.count <= ExactNumber.alwaysExactBytesMax {
            return number.contains { $0 | 0x20 == UInt8(ascii: "e") }
        }
        // Nanoseconds and ids of 64 bits are common, and each would cost its item a copy.
        return number.count > 20 || Int64(String(decoding: number, as: UTF8.self)) == nil
    }

    static func hasLongNumber(_ document: ArraySlice<UInt8>) -> Bool {
        var index = document.startIndex
        while index < document.endIndex {
            let byte = document[index]
            if byte == UInt8(ascii: "\"") {
                index = endOfString(document, from: index) ?? document.endIndex
            } else if startsNumber(byte) {
                let end = endOfNumber(document, from: index)
                if isLong(document[index..<end]) { return true }
                index = end
            } else {
                index += 1
            }
        }
        return false
    }
}
