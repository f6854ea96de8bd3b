// Not compiled on Linux, where this package's tests run; only its syntax is checked there.
#if canImport(Security)
    import Foundation
    import Security

    /// Stores the app's token in the Keychain, where other apps and backups cannot read it.
    public struct KeychainTokens: Sendable {
        /// The Keychain's error.
        public struct Refusal: Error, Sendable, Hashable {
            public let status: OSStatus
        }

        public let service: String
        public let account: String

        public init(service: String, account: String = "bellhop") {
            self.service = service
            self.account = account
        }

        private var item: [CFString: Any] {
            [kSecClass: kSecClassGenericPassword, kSecAttrService: service, kSecAttrAccount: account]
        }

        public func token() throws -> String? {
            var query = item
            query[kSecReturnData] = true
            query[kSecMatchLimit] = kSecMatchLimitOne
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            if status == errSecItemNotFound { return nil }
            guard status == errSecSuccess, let data = found as? Data else { throw Refusal(status: status) }
            return String(decoding: data, as: UTF8.self)
        }

        /// Replaces the stored token; nil deletes it.
        public func keep(_ token: String?) throws {
            let removed = SecItemDelete(item as CFDictionary)
            guard removed == errSecSuccess || removed == errSecItemNotFound else { throw Refusal(status: removed) }
            guard let token else { return }
            var attributes = item
            attributes[kSecValueData] = Data(token.utf8)
            // A stream in the background needs the token while the device is locked; another device must never get it.
            attributes[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            let added = SecItemAdd(attributes as CFDictionary, nil)
            guard added == errSecSuccess else { throw Refusal(status: added) }
        }

        /// Returns a provider that uses the stored token until it is refused or expires, then requests and stores a new
        /// one.
        public func provider(
            renew: @escaping @Sendable () async throws -> String?
        ) -> BellhopClient.TokenProvider {
            BellhopClient.TokenProvider(renewing: { needsNew in
                if !needsNew, let token = try token() { return token }
                let token = try await renew()
                try keep(token)
                return token
            })
        }
    }
#endif
