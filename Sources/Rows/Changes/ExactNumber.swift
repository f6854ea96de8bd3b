import Values

/// Numbers as text, and whether ``JSONValue`` represents them to their last digit.
///
/// Databases have numbers that neither an `Int64` nor a `Double` represents: `numeric`, unsigned 64-bit integers. A
/// reader of JSON rounds them silently, and a rounded key is another row's key. So a number that would be rounded
/// becomes a string of exactly the digits that were written.
enum ExactNumber {
    /// Longer ones are never exact; this bound saves the conversion, whose time grows faster than the digits.
    private static let everExactBytesMax = 40

    /// The value of a JSON number's text: an integer, a double, or a string where both would round.
    static func value(_ text: String) -> JSONValue {
        if let integer = Int64(text) { return .integer(integer) }
        guard text.utf8.count <= everExactBytesMax, !isInteger(text), let double = Double(text), double.isFinite,
            digits(text) == digits(double.description)
        else { return .string(text) }
        return .number(double)
    }

    private static func isInteger(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 == UInt8(ascii: "-") || ($0 >= 48 && $0 <= 57) }
    }

    /// A decimal number taken apart: `-0.00120e5` has the digits 12 and the exponent 2 of 0.12 × 10².
    private struct Digits: Equatable {
        var significant: [UInt8] = []
        var exponent = 0
    }

    private static func digits(_ text: String) -> Digits {
        var result = Digits()
        var pointSeen = false
        var leading = true
        var exponentText = ""
        var inExponent = false
        for byte in text.utf8 {
            switch byte {
            case 48...57 where inExponent: exponentText.append(Character(Unicode.Scalar(byte)))
            case UInt8(ascii: "-") where inExponent: exponentText.append("-")
            case 48...57:
                if leading, byte == 48 {
                    if pointSeen { result.exponent -= 1 }
                } else {
                    leading = false
                    result.significant.append(byte)
                    if !pointSeen { result.exponent += 1 }
                }
            case UInt8(ascii: "."): pointSeen = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"): inExponent = true
            default: break
            }
        }
        while result.significant.last == 48 { result.significant.removeLast() }
        guard !result.significant.isEmpty else { return Digits() }
        result.exponent = result.exponent &+ (Int(exponentText) ?? 0)
        return result
    }

    /// Puts the numbers of a JSON document that would be rounded into quotes.
    ///
    /// Only text that is a JSON number is touched; whatever else is wrong with the document its reader finds.
    static func quotingInexact(_ document: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(document.count + 16)
        var index = document.startIndex
        while index < document.endIndex {
            let byte = document[index]
            if byte == UInt8(ascii: "\"") {
                let end = NumberScanner.endOfString(document, from: index) ?? document.endIndex
                result.append(contentsOf: document[index..<end])
                index = end
            } else if NumberScanner.startsNumber(byte) {
                let end = NumberScanner.endOfNumber(document, from: index)
                let token = document[index..<end]
                index = end
                let text = String(decoding: token, as: UTF8.self)
                if isNumber(token), case .string = value(text) {
                    result.append(UInt8(ascii: "\""))
                    result.append(contentsOf: token)
                    result.append(UInt8(ascii: "\""))
                } else {
                    result.append(contentsOf: token)
                }
            } else {
                result.append(byte)
                index += 1
            }
        }
        return result
    }

    /// The grammar of RFC 8259: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
    private static func isNumber(_ token: ArraySlice<UInt8>) -> Bool {
        var rest = token
        func isDigit(_ byte: UInt8) -> Bool { byte >= 48 && byte <= 57 }
        if rest.first == UInt8(ascii: "-") { rest.removeFirst() }
        let whole = rest.prefix(while: isDigit)
        guard let first = whole.first, first != 48 || whole.count == 1 else { return false }
        rest = rest.dropFirst(whole.count)
        if rest.first == UInt8(ascii: ".") {
            rest.removeFirst()
            let fraction = rest.prefix(while: isDigit)
            guard !fraction.isEmpty else { return false }
            rest = rest.dropFirst(fraction.count)
        }
        if let letter = rest.first, letter | 0x20 == UInt8(ascii: "e") {
            rest.removeFirst()
            if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest.removeFirst() }
            let exponent = rest.prefix(while: isDigit)
            guard !exponent.isEmpty else { return false }
            rest = rest.dropFirst(exponent.count)
        }
        return rest.isEmpty
    }
}

extension JSONValue {
    /// Reads one document in which no number is rounded: see ``ExactNumber``.
    init(parsingExactly bytes: ArraySlice<UInt8>, depthMax: Int) throws(Failure) {
        let hasLongNumber = NumberScanner.hasLongNumber(bytes)
        try self.init(
            parsing: hasLongNumber ? ExactNumber.quotingInexact(bytes) : Array(bytes), depthMax: depthMax)
    }
}
