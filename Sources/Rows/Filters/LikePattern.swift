import Values

/// A pattern of `like` and `ilike` as in SQL: `%` matches any run of characters, `_` exactly one, and `\` makes the
/// next one literal. A character is a Unicode scalar; `*` has no special meaning.
///
/// A text is read at most twice, whatever the pattern. Its two ends are compared in place. The runs between two `%` are
/// searched with the Shift-And automaton, which follows up to 64 characters at once in a machine word and never goes
/// back (Baeza-Yates and Gonnet, "A New Approach to Text Searching", 1992).
public struct LikePattern: Sendable, Hashable {
    /// The pattern as written, in UTF-8.
    let bytes: [UInt8]
    let isCaseInsensitive: Bool
    /// The required beginning of the text; the whole pattern if there is no `%`.
    private let prefix: [Token]
    /// The runs between two `%`, in order.
    private let runs: [Run]
    /// Nil if there is no `%`.
    private let suffix: [Token]?

    private enum Token: Sendable, Hashable {
        case scalar(Unicode.Scalar)
        case any
    }

    public static func == (left: LikePattern, right: LikePattern) -> Bool {
        left.bytes == right.bytes && left.isCaseInsensitive == right.isCaseInsensitive
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(bytes)
        hasher.combine(isCaseInsensitive)
    }

    /// The reason why a text is not a pattern.
    enum Malformed: Error, Sendable, Hashable {
        case endsWithEscape
        case runTooLong(Int)

        var reason: String {
            switch self {
            case .endsWithEscape: "the pattern ends with a backslash, which must be followed by a character"
            case .runTooLong(let count):
                "the pattern has \(count) characters between two '%'; at most \(FilterLimits.patternRunMax) can be "
                    + "searched in one pass"
            }
        }
    }

    init(_ bytes: [UInt8], isCaseInsensitive: Bool) throws(Malformed) {
        var pieces: [[Token]] = [[]]
        var isEscaped = false
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            let token: Token
            switch scalar {
            case "\\" where !isEscaped:
                isEscaped = true
                continue
            case "%" where !isEscaped:
                pieces.append([])
                continue
            case "_" where !isEscaped: token = .any
            default: token = .scalar(isCaseInsensitive ? LikePattern.folded(scalar) : scalar)
            }
            isEscaped = false
            pieces[pieces.count - 1].append(token)
        }
        guard !isEscaped else { throw .endsWithEscape }
        self.bytes = bytes
        self.isCaseInsensitive = isCaseInsensitive
        self.prefix = pieces[0]
        self.suffix = pieces.count > 1 ? pieces[pieces.count - 1] : nil
        var runs: [Run] = []
        for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
            guard piece.count <= FilterLimits.patternRunMax else { throw .runTooLong(piece.count) }
            runs.append(Run(piece))
        }
        self.runs = runs
    }

    /// Returns the lower case if it is a single character; others (`İ`) stay unchanged.
    private static func folded(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        if scalar.isASCII {
            return scalar.value >= 65 && scalar.value <= 90 ? Unicode.Scalar(UInt8(scalar.value) | 0x20) : scalar
        }
        let mapping = scalar.properties.lowercaseMapping.unicodeScalars
        guard let first = mapping.first, mapping.count == 1 else { return scalar }
        return first
    }

    /// Whether it has to search a text, in addition to comparing its two ends.
    var isSearch: Bool { !runs.isEmpty }

    /// Returns whether the text matches; nil for a text too long to be searched (``FilterLimits/searchedBytesMax``).
    func matches(_ text: String) -> Bool? {
        guard !isSearch || text.utf8.count <= FilterLimits.searchedBytesMax else { return nil }
        return text.withUTF8Bytes { utf8 in
            var rest = ScalarReader(utf8)
            for token in prefix {
                guard let scalar = rest.popFirst(), accepts(token, scalar) else { return false }
            }
            guard let suffix else { return rest.isEmpty }
            for token in suffix.reversed() {
                guard let scalar = rest.popLast(), accepts(token, scalar) else { return false }
            }
            return runs.allSatisfy { $0.search(&rest, isCaseInsensitive: isCaseInsensitive) }
        }
    }

    private func accepts(_ token: Token, _ scalar: Unicode.Scalar) -> Bool {
        switch token {
        case .any: true
        case .scalar(let own): own == (isCaseInsensitive ? LikePattern.folded(scalar) : scalar)
        }
    }

    /// A run between two `%`. For each character it has the places of the run where it may stand (bit n: place n).
    private struct Run: Sendable, Hashable {
        /// Ascending, for binary search.
        private let scalars: [Unicode.Scalar]
        private let masks: [UInt64]
        /// The places of `_`, where every character may stand.
        private let open: UInt64
        private let accepting: UInt64

        init(_ tokens: [Token]) {
            var places: [Unicode.Scalar: UInt64] = [:]
            var open: UInt64 = 0
            for (place, token) in tokens.enumerated() {
                switch token {
                case .any: open |= 1 << UInt64(place)
                case .scalar(let scalar): places[scalar, default: 0] |= 1 << UInt64(place)
                }
            }
            let sorted = places.sorted { $0.key < $1.key }
            self.scalars = sorted.map(\.key)
            self.masks = sorted.map(\.value)
            self.open = open
            self.accepting = 1 << UInt64(tokens.count - 1)
        }

        /// Advances to the end of the first match of the run; returns false without a match.
        func search(_ rest: inout ScalarReader, isCaseInsensitive: Bool) -> Bool {
            // Most characters are ASCII. For these, building a table of all masks costs less than repeated binary
            // searches.
            withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 128) { ascii in
                ascii.initialize(repeating: open)
                for (scalar, mask) in zip(scalars, masks) where scalar.isASCII {
                    ascii[Int(scalar.value)] |= mask
                    if isCaseInsensitive, scalar.properties.isLowercase { ascii[Int(scalar.value) & ~0x20] |= mask }
                }
                var state: UInt64 = 0
                while let scalar = rest.popFirst() {
                    let accepted =
                        scalar.isASCII
                        ? ascii[Int(scalar.value)] : mask(of: isCaseInsensitive ? LikePattern.folded(scalar) : scalar)
                    state = (state << 1 | 1) & accepted
                    if state & accepting != 0 { return true }
                }
                return false
            }
        }

        private func mask(of scalar: Unicode.Scalar) -> UInt64 {
            let place = scalars.partitioningIndex { $0 >= scalar }
            return place < scalars.count && scalars[place] == scalar ? masks[place] | open : open
        }
    }
}

/// A reader of the characters of a text, from both ends.
private struct ScalarReader {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var start = 0
    private var end: Int

    /// Creates a reader. The bytes belong to a `String`, so they are well formed.
    init(_ utf8: UnsafeBufferPointer<UInt8>) {
        bytes = utf8
        end = utf8.count
    }

    var isEmpty: Bool { start == end }

    mutating func popFirst() -> Unicode.Scalar? {
        guard start < end else { return nil }
        let first = bytes[start]
        let count = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
        let scalar = scalar(at: start, count: count)
        start += count
        return scalar
    }

    mutating func popLast() -> Unicode.Scalar? {
        guard start < end else { return nil }
        var place = end - 1
        while place > start, bytes[place] & 0xC0 == 0x80 { place -= 1 }
        let scalar = scalar(at: place, count: end - place)
        end = place
        return scalar
    }

    private func scalar(at place: Int, count: Int) -> Unicode.Scalar {
        let first = bytes[place]
        guard count > 1, place + count <= bytes.count else { return Unicode.Scalar(first) }
        var value = UInt32(first) & (0x7F >> UInt32(count))
        for offset in 1..<count { value = value << 6 | UInt32(bytes[place + offset] & 0x3F) }
        return Unicode.Scalar(value) ?? "\u{FFFD}"
    }
}
