// Not compiled on Linux, where this package's tests run: parsed there alone.
#if canImport(Security)
    import Foundation
    import Security

    /// The app's token in the Keychain, where other apps and backups do not see it.
    public struct KeychainTokens: Sendable {
        /// What the Keychain answered.
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

        /// In place of the one before; nil takes it away.
        public func keep(_ token: String?) throws {
            let removed = SecItemDelete(item as CFDictionary)
            guard removed == errSecSuccess || removed == errSecItemNotFound else { throw Refusal(status: removed) }
            guard let token else { return }
            var attributes = item
            attributes[kSecValueData] = Data(token.utf8)
            // A stream in the background needs it while the device is locked; another device never does.
            attributes[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            let added = SecItemAdd(attributes as CFDictionary, nil)
            guard added == errSecSuccess else { throw Refusal(status: added) }
        }

        /// The kept token, until the service refuses it or it runs out: then a new one, which is kept.
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
