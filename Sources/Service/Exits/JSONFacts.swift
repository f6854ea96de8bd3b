#if DEBUG
    /// The facts that a JSON text states about its shape, such as "`/badges/total` is an integer with two digits" or
    /// "`/badges` has these members". A text without a new fact teaches a schema nothing that an earlier one did not.
    ///
    /// A fact is a hash. Words are facts of their own, because they may be values of an enumeration. Other texts differ
    /// only by their length and their punctuation, such as a time without a fraction.
    struct JSONFacts {
        private(set) var facts: [UInt64] = []
        private let bytes: UnsafeBufferPointer<UInt8>
        private var index = 0

        /// Reads a text.
        ///
        /// - Parameter group: What the facts are about.
        /// - Returns: Nil if the text is not JSON.
        static func of(_ bytes: UnsafeBufferPointer<UInt8>, about group: UInt64) -> [UInt64]? {
            var reader = JSONFacts(bytes: bytes)
            guard reader.value(at: group, depth: 0) != nil else { return nil }
            reader.skipSpace()
            return reader.index == bytes.count ? reader.facts : nil
        }

        private init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

        private static let depthMax = 64
        /// The facts of words with more bytes differ only by the length.
        private static let wordBytesMax = 32

        static func mix(_ hash: UInt64, _ value: UInt64) -> UInt64 {
            let mixed = (hash ^ value) &* 0x9E37_79B9_7F4A_7C15
            return mixed ^ (mixed >> 29)
        }

        private mutating func skipSpace() {
            while index < bytes.count, bytes[index] == 0x20 || bytes[index] &- 9 < 5 { index += 1 }
        }

        private mutating func take(_ byte: UInt8) -> Bool {
            skipSpace()
            guard index < bytes.count, bytes[index] == byte else { return false }
            index += 1
            return true
        }

        /// Reads a value, and returns its kind.
        private mutating func value(at place: UInt64, depth: Int) -> UInt64? {
            skipSpace()
            guard index < bytes.count, depth < Self.depthMax else { return nil }
            let kind: UInt64
            switch bytes[index] {
            case 0x7B:
                guard let members = object(at: place, depth: depth) else { return nil }
                facts.append(Self.mix(place, members))
                return 1
            case 0x5B:
                guard let count = array(at: place, depth: depth) else { return nil }
                facts.append(Self.mix(place, 3 &+ UInt64(count < 2 ? count : 2)))
                return 2
            case 0x22:
                guard let text = string() else { return nil }
                (kind, index) = (text.shape, text.end)
                facts.append(Self.mix(place, kind))
                return 3
            default:
                guard let literal = literal() else { return nil }
                facts.append(Self.mix(place, literal))
                return literal
            }
        }

        private mutating func object(at place: UInt64, depth: Int) -> UInt64? {
            index += 1
            var members: UInt64 = 0x6D65_6D62
            if take(0x7D) { return members }
            repeat {
                skipSpace()
                guard index < bytes.count, bytes[index] == 0x22, let name = string() else { return nil }
                index = name.end
                guard take(0x3A) else { return nil }
                // A name with digits is an id, not a member of a schema.
                let member = name.isWord ? name.shape : 0x6964
                guard let kind = value(at: Self.mix(place, member), depth: depth + 1) else { return nil }
                members = Self.mix(Self.mix(members, member), kind < 4 ? kind : 0)
            } while take(0x2C)
            return take(0x7D) ? members : nil
        }

        private mutating func array(at place: UInt64, depth: Int) -> Int? {
            index += 1
            if take(0x5D) { return 0 }
            var count = 0
            repeat {
                guard value(at: Self.mix(place, 0x5B5D), depth: depth + 1) != nil else { return nil }
                count += 1
            } while take(0x2C)
            return take(0x5D) ? count : nil
        }

        /// Reads the string that begins here.
        private func string() -> (shape: UInt64, isWord: Bool, end: Int)? {
            var place = index + 1
            var (word, punctuation): (UInt64, UInt64) = (0xCBF2_9CE4_8422_2325, 0)
            var isWord = true
            while place < bytes.count {
                let byte = bytes[place]
                if byte == 0x22 {
                    let count = UInt64(place - index - 1)
                    let shape =
                        isWord && count <= UInt64(Self.wordBytesMax)
                        ? word : Self.mix(punctuation, count < 64 ? count : 64 &+ UInt64(count.leadingZeroBitCount))
                    return (shape, isWord, place + 1)
                }
                if byte < 0x20 { return nil }
                let letter = byte | 0x20
                let isLetter = letter >= 0x61 && letter <= 0x7A
                let isPart = isLetter || byte == 0x5F || byte == 0x3A || byte == 0x2E
                if isWord, !isPart { isWord = false }
                word = (word ^ UInt64(byte)) &* 0x100_0000_01B3
                if !isLetter, byte < 0x30 || (byte > 0x39 && byte < 0x80) {
                    punctuation = Self.mix(punctuation, UInt64(byte))
                }
                place += byte == 0x5C ? 2 : 1
            }
            return nil
        }

        private mutating func literal() -> UInt64? {
            let start = index
            var hash: UInt64 = 0xCBF2_9CE4_8422_2325
            while index < bytes.count {
                var byte = bytes[index]
                guard byte > 0x20, byte != 0x2C, byte != 0x5D, byte != 0x7D else { break }
                // 0 and 1 are often limits. Of other numbers, only the number of digits counts.
                if byte >= 0x32, byte <= 0x39 { byte = 0x39 }
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
                index += 1
            }
            return index > start ? hash : nil
        }
    }
#endif
