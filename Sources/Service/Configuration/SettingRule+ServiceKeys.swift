import Cryptography
import Values

/// Reads `NAME:KEY[:tenant=ID][:can=notify+publish]`, separated by commas.
///
/// A fault names the place and never the text: with parts in a wrong order, any part may be the key.
extension SettingRule {
    private static let keyNameBytesMax = 64

    /// Returns the keys of a setting, none without a value.
    static func serviceKeys(_ text: String?) throws -> [ServiceKey] {
        guard let text else { return [] }
        var keys: [ServiceKey] = []
        for (index, part) in text.split(separator: ",", omittingEmptySubsequences: false).enumerated() {
            let place = "key \(index + 1)"
            let key = try serviceKey(part.trimmed, place)
            if keys.contains(where: { $0.digest == key.digest }) {
                throw Settings.Fault("\(place) is the same as an earlier one: each needs random bytes of its own")
            }
            if let other = keys.first(where: { $0.name == key.name }), !other.hasRights(of: key) {
                throw Settings.Fault(
                    """
                    \(place) has the name \(key.name) of an earlier one, but another tenant or other capabilities: write \
                    both with the same, or give it a name of its own
                    """)
            }
            keys.append(key)
        }
        guard keys.count <= Limits.serviceKeysMax else {
            throw Settings.Fault("has more than \(Limits.serviceKeysMax) keys")
        }
        return keys
    }

    private static func serviceKey(_ text: Substring, _ place: String) throws -> ServiceKey {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 2 else {
            throw Settings.Fault("\(place) is not NAME:KEY; a key has no comma, so use hexadecimal digits or base64url")
        }
        try requireKey(parts[1].utf8, place)
        try requireKeyName(parts[0], place)
        var key = ServiceKey(name: String(parts[0]), digest: SHA256.hash(parts[1].utf8))
        for option in keyOptions(parts[2...]) {
            if option.hasPrefix("tenant="), key.tenant == nil {
                key.tenant = try tenant(ofKey: option.dropFirst("tenant=".count), place)
            } else if option.hasPrefix("can="), key.capabilities == nil {
                key.capabilities = try capabilities(option.dropFirst("can=".count), place)
            } else {
                throw Settings.Fault(
                    """
                    \(place) has a part after NAME:KEY that is not tenant=ID or can=CAPABILITY+CAPABILITY, or has one \
                    twice; a key has no colon, so use hexadecimal digits or base64url
                    """)
            }
        }
        return key
    }

    /// Joins the parts of a tenant's id with colons. A part with `=` begins an option.
    private static func keyOptions(_ parts: ArraySlice<Substring>) -> [String] {
        parts.reduce(into: []) { options, part in
            if part.contains("=") || options.last?.hasPrefix("tenant=") != true {
                options.append(String(part))
            } else {
                options[options.count - 1] += ":\(part)"
            }
        }
    }

    private static func requireKey(_ key: Substring.UTF8View, _ place: String) throws {
        let bytes = Limits.serviceKeyBytes
        guard bytes.contains(key.count) else {
            throw Settings.Fault(
                """
                \(place) has \(key.count) bytes, not \(bytes.lowerBound) to \(bytes.upperBound): make one with \
                `openssl rand -hex 32`
                """)
        }
        guard key.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Settings.Fault("\(place) may have printable ASCII only, without spaces: use hexadecimal digits")
        }
        guard !ServiceKey.isLikeToken(key) else {
            throw Settings.Fault(
                "\(place) has the three parts of a JWT, and is sent as it is: make one with `openssl rand -hex 32`")
        }
    }

    private static func requireKeyName(_ name: Substring, _ place: String) throws {
        let isName = name.utf8.allSatisfy { $0.isAlphanumeric || "-_.".utf8.contains($0) }
        guard isName, (1...keyNameBytesMax).contains(name.utf8.count) else {
            throw Settings.Fault(
                "\(place) needs a name before it of up to \(keyNameBytesMax) letters, digits, -, _ and .")
        }
        guard !Settings.serviceNames.contains(String(name)) else {
            throw Settings.Fault("\(place) has the name \(name), which belongs to the service: choose another name")
        }
    }

    private static func tenant(ofKey id: Substring, _ place: String) throws -> ID<Tenant> {
        guard Fields.isIdentifier(String(id)) else {
            throw Settings.Fault("\(place) has an invalid tenant: write its id, or leave out tenant= for all tenants")
        }
        return ID(String(id))
    }

    private static func capabilities(_ text: Substring, _ place: String) throws -> Set<Capability> {
        Set(
            try text.split(separator: "+", omittingEmptySubsequences: false).map { word in
                guard let capability = Capability(word: word) else {
                    throw Settings.Fault("\(place): \(Capability.fault(of: word))")
                }
                return capability
            })
    }
}

extension Settings {
    /// The ids of the service itself, feeds, a person at the command line, and backends whose token has no `sub`. No
    /// user has one of them.
    static let serviceNames: Set<String> = ["bellhop", "feed", "operator", "service", "service_role", "source"]

    /// The ids that no user has: those of the service, and the names of keys.
    var backendNames: Set<String> { Self.serviceNames.union(serviceKeys.map(\.name)) }

    /// - Throws: if a key is also another secret of the settings, which other systems know.
    func requireOwnServiceKeys() throws {
        for (setting, secret) in [($jwtSecret as Key, jwtSecret), ($changesSecret, changesSecret)] {
            guard let digest = secret.map({ SHA256.hash($0.utf8) }),
                let index = serviceKeys.firstIndex(where: { $0.digest == digest })
            else { continue }
            throw $serviceKeys.mistake(
                "key \(index + 1) is also the secret of \(setting.variable): make one with `openssl rand -hex 32`")
        }
    }
}
