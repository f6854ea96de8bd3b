#if canImport(Glibc)
    import CCurl
    import Glibc

    /// An address of the internet protocols, judged by whether it is somebody's on the public internet.
    ///
    /// By the registries of special-purpose addresses (RFC 6890): IPv4 is public but for what is listed; IPv6 is not public
    /// but for global unicast, from which blocks that carry IPv4 addresses or belong to nobody are taken out.
    public struct RemoteAddress: Sendable, Hashable {
        /// 4 or 16, in network order.
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

        /// The address of a socket; nil for another family than those of the internet.
        ///
        /// - Parameter length: the bytes behind the pointer.
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
            Block([0], 8),  // this network, unspecified
            Block([10], 8),
            Block([100, 64], 10),  // behind a carrier's translation
            Block([127], 8),
            Block([169, 254], 16),  // link-local, where clouds answer with credentials
            Block([172, 16], 12),
            Block([192, 0, 0], 24),
            Block([192, 0, 2], 24),  // documentation, as the next but two and three
            Block([192, 88, 99], 24),  // 6to4 relays
            Block([192, 168], 16),
            Block([198, 18], 15),  // benchmarks
            Block([198, 51, 100], 24),
            Block([203, 0, 113], 24),
            Block([224], 4),  // multicast
            Block([240], 4),  // reserved, broadcast
        ]

        /// Of 2000::/3. Outside of it lie ::, ::1, IPv4-mapped, NAT64, unique-local, link-local and multicast.
        private static let unusedGlobalBlocks = [
            Block([0x20, 0x01, 0x00], 23),  // protocols: Teredo, ORCHID, benchmarks
            Block([0x20, 0x01, 0x0D, 0xB8], 32),  // documentation
            Block([0x20, 0x02], 16),  // 6to4
            Block([0x3F, 0xFF, 0x00], 20),  // documentation
        ]
    }
#endif
