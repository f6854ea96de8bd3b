#if canImport(Glibc)
    import Values

    /// The address of a request of the service: `http` or `https`, read strictly by RFC 3986.
    ///
    /// Programs disagree about unusual addresses: whether `%2F` ends a host, which number `127.1` is, what a backslash
    /// separates. Then the host that the service checks is not the host to which libcurl connects. So this type refuses
    /// each address that has more than one reading.
    public struct OutboundURL: Sendable {
        /// The reason why a text is no address.
        public struct Invalid: Error, CustomStringConvertible {
            public let description: String
        }

        /// Bytes of an address. Push services and webhooks have at most some hundred.
        static let bytesMax = 2048

        /// The address as it was given.
        public let text: String
        public let isEncrypted: Bool
        /// In lower case. An IPv6 address has brackets, and its shortest form.
        public let host: String
        /// The port; nil for the one of the scheme.
        public let port: Int?
        /// Begins with a slash. Equal paths are written equally (RFC 3986 §6.2.2).
        public let path: String
        /// Nil without a `?`.
        public let query: String?

        public init(_ text: String) throws(Invalid) {
            guard text.utf8.count <= Self.bytesMax else {
                throw Invalid(description: "must have at most \(Self.bytesMax) bytes")
            }
            let bytes = Array(text.utf8)
            let scheme = bytes.prefix { $0 != UInt8(ascii: ":") }
            let isEncrypted = String(decoding: scheme, as: UTF8.self).lowercased() == "https"
            guard isEncrypted || String(decoding: scheme, as: UTF8.self).lowercased() == "http",
                bytes.dropFirst(scheme.count).starts(with: "://".utf8)
            else { throw Invalid(description: "must begin with https:// or http://") }
            let rest = bytes.dropFirst(scheme.count + 3)
            let authority = rest.prefix { !"/?#".utf8.contains($0) }
            guard !authority.contains(UInt8(ascii: "@")) else {
                throw Invalid(description: "must not contain a user or password")
            }
            guard !rest.contains(UInt8(ascii: "#")) else { throw Invalid(description: "must not contain a fragment") }
            let (host, port) = try Self.split(authority)
            let tail = rest.dropFirst(authority.count)
            let path = tail.prefix { $0 != UInt8(ascii: "?") }
            (self.text, self.isEncrypted, self.host) = (text, isEncrypted, host)
            self.port = port == (isEncrypted ? 443 : 80) ? nil : port
            self.path = try Self.path(path)
            query = path.count < tail.count ? try Self.normalized(tail.dropFirst(path.count + 1), and: "/?") : nil
        }

        /// The scheme, the host and the port (RFC 6454 §6.2).
        public var origin: String {
            "\(isEncrypted ? "https" : "http")://\(host)\(port.map { ":\($0)" } ?? "")"
        }

        /// The address in its normal form (RFC 3986 §6.2). Two addresses with the same form lead to the same place.
        public var canonical: String { "\(origin)\(path)\(query.map { "?\($0)" } ?? "")" }

        /// The address of a host that is a number; nil for a name.
        public var address: RemoteAddress? { RemoteAddress(host.filter { $0 != "[" && $0 != "]" }) }

        /// Whether the host is the one of a pattern: a host, or `*.` and a domain.
        public func isHost(matching pattern: String) -> Bool {
            let pattern = pattern.lowercased()
            guard pattern.hasPrefix("*.") else { return host == pattern }
            return host.hasSuffix(pattern.dropFirst()) && host.utf8.count > pattern.utf8.count - 1
        }

        // MARK: The authority

        private static func split(_ authority: ArraySlice<UInt8>) throws(Invalid) -> (host: String, port: Int?) {
            let isBracketed = authority.first == UInt8(ascii: "[")
            let end =
                isBracketed
                ? authority.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } ?? authority.endIndex
                : authority.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
            let host = String(decoding: authority[..<end], as: UTF8.self)
            let name = isBracketed ? try literal(host) : try self.name(host)
            guard end < authority.endIndex else { return (name, nil) }
            return (name, try port(authority[end...]))
        }

        /// Reads a colon and a number without leading zeros.
        private static func port(_ bytes: ArraySlice<UInt8>) throws(Invalid) -> Int {
            let digits = bytes.dropFirst()
            guard bytes.first == UInt8(ascii: ":"), (1...5).contains(digits.count), digits.first != UInt8(ascii: "0"),
                digits.allSatisfy(\.isDigit), let port = Int(String(decoding: digits, as: UTF8.self)), port < 65_536
            else { throw Invalid(description: "must have a port of 1 to 65535, or none") }
            return port
        }

        /// Reads an IPv6 address in brackets, without a zone.
        private static func literal(_ text: String) throws(Invalid) -> String {
            let inner = text.dropFirst().dropLast()
            guard text.hasSuffix("]"), inner.contains(":"), let address = RemoteAddress(String(inner)) else {
                throw Invalid(description: "must have an IPv6 address between brackets")
            }
            return "[\(address)]"
        }

        /// Reads a name of DNS or an IPv4 address of four decimal numbers.
        ///
        /// The underscore is no part of a host's name, but container networks have such names.
        private static func name(_ text: String) throws(Invalid) -> String {
            let text = text.lowercased()
            let labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            let isName = labels.allSatisfy { label in
                (1...63).contains(label.count)
                    && label.allSatisfy { $0.isAlphanumeric || "-_".utf8.contains($0) }
                    && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
            }
            guard isName, text.utf8.count <= 253 else {
                throw Invalid(description: "must have a host name of letters, digits, hyphens and dots")
            }
            // Some programs read each of 2130706433, 127.1, 0x7f.0.0.1 and 0177.0.0.1 as 127.0.0.1.
            let isNumber = labels.last.map { $0.allSatisfy(\.isDigit) || $0.starts(with: "0x".utf8) } ?? false
            guard !isNumber || RemoteAddress(text) != nil else {
                throw Invalid(description: "must have an IPv4 address of four decimal numbers, or a name")
            }
            return text
        }

        // MARK: The path

        private static func path(_ bytes: ArraySlice<UInt8>) throws(Invalid) -> String {
            let path = try normalized(bytes, and: "/")
            let hasDots = path.split(separator: "/").contains { $0 == "." || $0 == ".." }
            guard !hasDots else { throw Invalid(description: "must not have . or .. in its path") }
            return path.isEmpty ? "/" : path
        }

        /// Returns characters of a path or a query in their normal form: what needs no encoding is decoded.
        private static func normalized(_ bytes: ArraySlice<UInt8>, and others: String) throws(Invalid) -> String {
            var (result, index) = ([UInt8](), bytes.startIndex)
            result.reserveCapacity(bytes.count)
            while index < bytes.endIndex {
                let byte = bytes[index]
                if byte == UInt8(ascii: "%") {
                    let digits = bytes[index...].dropFirst().prefix(2)
                    guard digits.count == 2, digits.allSatisfy(\.isHexadecimal),
                        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16),
                        value >= 0x20, value != 0x7F
                    else { throw Invalid(description: "must have % only before two digits of a printable character") }
                    if isUnreserved(value) {
                        result.append(value)
                    } else {
                        result += Array("%\(String(decoding: digits, as: UTF8.self).uppercased())".utf8)
                    }
                    index += 3
                    continue
                }
                guard isUnreserved(byte) || "!$&'()*+,;=:@".utf8.contains(byte) || others.utf8.contains(byte) else {
                    throw Invalid(description: "must percent-encode what RFC 3986 allows in no path or query")
                }
                result.append(byte)
                index += 1
            }
            return String(decoding: result, as: UTF8.self)
        }

        private static func isUnreserved(_ byte: UInt8) -> Bool {
            byte.isAlphanumeric || "-._~".utf8.contains(byte)
        }
    }
#endif
