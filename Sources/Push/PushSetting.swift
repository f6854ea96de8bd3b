import OutboundHTTP

/// A setting of a provider. The service adds it to its own, and reads it from flags, variables and files.
public struct PushSetting: Sendable {
    /// In camelCase, as in a settings file.
    public let name: String
    /// One line.
    public let help: String
    public let isSecret: Bool

    init(_ name: String, _ help: String, isSecret: Bool = false) {
        (self.name, self.help, self.isSecret) = (name, help, isSecret)
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

    func isMissing(neededBy other: PushSetting, _ meaning: String) -> Mistake {
        mistake("is missing: \(other.name) needs \(meaning)")
    }

    /// Reads another address of a provider.
    static func address(_ text: String) throws(Fault) -> String {
        let url: OutboundURL
        do { url = try OutboundURL(text) } catch { throw Fault("\(error): use a URL such as https://push.example") }
        guard url.query == nil else { throw Fault("must not contain a query (?)") }
        return text.hasSuffix("/") ? String(text.dropLast()) : text
    }
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

    /// Requires the setting that turns a provider on, if another one of it is set.
    public func requireFirst(of settings: [PushSetting]) throws {
        guard let first = settings.first, texts[first.name] == nil,
            let other = settings.first(where: { texts[$0.name] != nil })
        else { return }
        throw other.mistake("needs \(first.name), which is missing")
    }

    /// Returns the text of a setting.
    ///
    /// - Parameter meaning: What the text is, if another setting needs it.
    func text(_ setting: PushSetting, neededBy other: PushSetting, _ meaning: String) throws -> String {
        guard let text = texts[setting.name] else { throw setting.isMissing(neededBy: other, meaning) }
        return text
    }
}
