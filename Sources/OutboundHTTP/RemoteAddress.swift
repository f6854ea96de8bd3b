#if canImport(Glibc)
    import CCurl
    import Glibc

    /// An IP address, classified by whether it belongs to the public internet.
    ///
    /// The classification follows the registries of special-purpose addresses (RFC 6890). IPv4 addresses are public
    /// except for the listed blocks. IPv6 addresses are public only in global unicast, without the blocks that carry
    /// IPv4 addresses or are unassigned.
    public struct RemoteAddress: Sendable, Hashable, CustomStringConvertible {
        /// 4 or 16 bytes in network order.
        private let bytes: [UInt8]

        /// Reads `192.0.2.1` or `2001:db8::1`; nil for names.
        public init?(_ text: String) {
            var four = in_addr()
            var sixteen = in6_addr()
            if inet_pton(AF_INET, text, &four) == 1 {
                bytes = withUnsafeBytes(of: four, Array.init)
            } else if inet_pton(AF_INET6, text, &sixteen) == 1 {
                bytes = withUnsafeBytes(of: sixteen, Array.init)
            } else {
                return nil
            }
        }

        /// Creates the address of a socket; nil if it is not of an IP family.
        ///
        /// - Parameter length: The number of bytes at the pointer.
        init?(_ address: UnsafePointer<sockaddr>, length: Int) {
            let raw = UnsafeRawPointer(address)
            switch Int32(address.pointee.sa_family) {
            case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
                bytes = withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr, Array.init)
            case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
                bytes = withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr, Array.init)
            default: return nil
            }
        }

        /// The shortest form (RFC 5952).
        public var description: String {
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
                let family = bytes.count == 4 ? AF_INET : AF_INET6
                guard inet_ntop(family, bytes, text.baseAddress, socklen_t(INET6_ADDRSTRLEN)) != nil else {
                    preconditionFailure("an address has 4 or 16 bytes")
                }
                return String(cString: text.baseAddress.unsafelyUnwrapped)
            }
        }

        public var isPublic: Bool {
            let blocks = bytes.count == 4 ? Self.privateBlocks : Self.unusedGlobalBlocks
            guard bytes.count == 4 || Block([0x20], 3).contains(bytes) else { return false }
            return !blocks.contains { $0.contains(bytes) }
        }

        private struct Block: Sendable {
            let prefix: [UInt8]
            let bits: Int

            init(_ prefix: [UInt8], _ bits: Int) {
                (self.prefix, self.bits) = (prefix, bits)
            }

            func contains(_ bytes: [UInt8]) -> Bool {
                (0..<bits).allSatisfy { bit in
                    let mask = UInt8(0x80) >> UInt8(bit % 8)
                    return bytes[bit / 8] & mask == prefix[bit / 8] & mask
                }
            }
        }

        private static let privateBlocks = [
            Block([0], 8),  // "this network", unspecified
            Block([10], 8),
            Block([100, 64], 10),  // carrier-grade NAT
            Block([127], 8),
            Block([169, 254], 16),  // link-local, where cloud metadata services hand out credentials
            Block([172, 16], 12),
            Block([192, 0, 0], 24),
            Block([192, 0, 2], 24),  // documentation, like 198.51.100.0/24 and 203.0.113.0/24
            Block([192, 88, 99], 24),  // 6to4 relays
            Block([192, 168], 16),
            Block([198, 18], 15),  // benchmarks
            Block([198, 51, 100], 24),
            Block([203, 0, 113], 24),
            Block([224], 4),  // multicast
            Block([240], 4),  // reserved, broadcast
        ]

        /// Blocks of 2000::/3. Outside of it are ::, ::1, IPv4-mapped, NAT64, unique-local, link-local and multicast
        /// addresses.
        private static let unusedGlobalBlocks = [
            Block([0x20, 0x01, 0x00], 23),  // protocol assignments: Teredo, ORCHID, benchmarks
            Block([0x20, 0x01, 0x0D, 0xB8], 32),  // documentation
            Block([0x20, 0x02], 16),  // 6to4
            Block([0x3F, 0xFF, 0x00], 20),  // documentation
        ]
    }
#endif
