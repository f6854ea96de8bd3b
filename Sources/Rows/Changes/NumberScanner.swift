/// A scanner for the numbers and strings of a JSON document, without reading it.
enum NumberScanner {
    /// Shorter numbers without an exponent are exact always: 15 digits, or a sign and 14 digits and a point.
    static let alwaysExactBytesMax = 15

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
        if number.count <= alwaysExactBytesMax {
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
