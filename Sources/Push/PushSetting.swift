import OutboundHTTP

/// A setting of a provider. The service adds it to its own, and reads it from flags, variables and files.
public struct PushSetting: Sendable {
    /// In camelCase, as in a settings file.
    public let name: String
    /// One line.
    public let help: String
    public let isSecret: Bool
    /// What the provider needs from this setting, if it cannot work without it.
    let need: String?

    init(_ name: String, _ help: String, isSecret: Bool = false, need: String? = nil) {
        (self.name, self.help, self.isSecret, self.need) = (name, help, isSecret, need)
    }

    /// The reason why a text is not a value of its setting.
    public struct Fault: Error {
        let problem: String

        public init(_ problem: String) { self.problem = problem }
    }

    /// An invalid setting.
    public struct Mistake: Error {
        /// The name of the setting.
        public let setting: String
        public let problem: String
    }

    func mistake(_ problem: String) -> Mistake { Mistake(setting: name, problem: problem) }

}

/// The values of the providers' settings.
public struct PushSettingValues {
    /// Whether providers may be at private addresses, also without TLS.
    let allowsPrivate: Bool
    private let texts: [String: String]
    private let read: (String) throws -> String

    /// - Parameters:
    ///   - texts: The texts of the settings that are set, by name.
    ///   - read: Returns the content of a file, or throws a ``PushSetting/Fault``.
    public init(_ texts: [String: String], allowsPrivate: Bool, read: @escaping (String) throws -> String) {
        (self.texts, self.allowsPrivate, self.read) = (texts, allowsPrivate, read)
    }

    /// Returns the value of a setting; nil if it is not set.
    ///
    /// - Parameter rule: Returns the value of a text, or throws a ``PushSetting/Fault``.
    func value<Value>(_ setting: PushSetting, _ rule: (String) throws -> Value) throws -> Value? {
        guard let text = texts[setting.name] else { return nil }
        do { return try rule(text) } catch let fault as PushSetting.Fault { throw setting.mistake(fault.problem) }
    }

    /// Returns the value that stands in the file of a setting; nil if none is set.
    ///
    /// - Parameter rule: Returns the value of the content, or throws a ``PushSetting/Fault`` about the file.
    func value<Value>(inFileOf setting: PushSetting, _ rule: (String) throws -> Value) throws -> Value? {
        try value(setting) { path in
            let text = try read(path)
            do { return try rule(text) } catch let fault as PushSetting.Fault {
                throw PushSetting.Fault("\(path) \(fault.problem)")
            }
        }
    }

    /// Requires all settings of a provider or none. The first one turns it on.
    public func requireWhole(_ settings: [PushSetting]) throws {
        guard let first = settings.first, let some = settings.first(where: { texts[$0.name] != nil }) else { return }
        guard texts[first.name] != nil else { throw some.mistake("needs \(first.name), which is missing") }
        for setting in settings where texts[setting.name] == nil {
            if let need = setting.need { throw setting.mistake("is missing: \(first.name) needs \(need)") }
        }
    }

    /// Returns the text of a setting; nil if it is not set.
    func text(_ setting: PushSetting) -> String? { texts[setting.name] }

    /// Returns another address of a provider, without a slash at its end; nil if it is not set.
    func address(_ setting: PushSetting) throws -> String? {
        try value(setting) { text in
            let url: OutboundURL
            do { url = try OutboundURL(text) } catch {
                throw PushSetting.Fault("\(error): use a URL such as https://push.example")
            }
            guard url.query == nil else { throw PushSetting.Fault("must not contain a query (?)") }
            if let problem = problem(of: url) { throw PushSetting.Fault(problem) }
            return text.hasSuffix("/") ? String(text.dropLast()) : text
        }
    }

    /// Returns the reason why the service may not send to an address. A provider's credentials would go there in clear, or
    /// to a machine of the own network.
    func problem(of url: OutboundURL) -> String? {
        if allowsPrivate { return nil }
        guard url.isEncrypted else { return "must begin with https://, unless pushPrivate allows private networks" }
        guard url.address?.isPublic ?? true else {
            return "\(url.host) is a private address: set pushPrivate to allow it"
        }
        return nil
    }
}
