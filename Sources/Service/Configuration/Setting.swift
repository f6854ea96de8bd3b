import Configuration

/// One setting. Its declaration says everything about it once: the name, the group, the help, the default and the
/// bounds. The flag, the variable, `--help`, the reference and the completions of shells come from it.
///
/// ```swift
/// @Setting(.network, "Port to listen on.", default: 8080, in: 0...65_535) public var port: Int
/// ```
///
/// The name is that of the property. `$port` is the declaration, for messages that name the setting.
///
/// `@unchecked Sendable`: the value and the name are set while the settings are read, before other threads know them.
@propertyWrapper
public final class Setting<Value: Sendable>: Settings.Key, @unchecked Sendable {
    private let parse: (String?) throws -> Value
    private var value: Value?

    /// Declares a setting with a rule of its own for its text.
    ///
    /// - Parameters:
    ///   - name: Nil for the name of the property.
    ///   - fallback: The default as a text, if any.
    ///   - parse: Returns the value of a text, or throws a ``Settings/Fault``. The text is nil if the setting has neither a
    ///     value nor a default.
    init(
        _ group: Settings.Group, _ help: String, named name: String? = nil, fallback: String? = nil,
        isSecret: Bool = false, bounds: ClosedRange<Int>? = nil, parse: @escaping (String?) throws -> Value
    ) {
        self.parse = parse
        super.init(group, help, named: name, fallback: fallback, isSecret: isSecret, bounds: bounds)
    }

    public var wrappedValue: Value {
        guard let value else { preconditionFailure("\(name) is used before the settings are read") }
        return value
    }

    public var projectedValue: Setting<Value> { self }

    override func read(_ values: SettingsReader) throws {
        let text = values.text(self)
        isSet = text != nil
        value = try reportingFaults { try parse(text ?? fallback) }
    }
}

extension Setting<Int> {
    convenience init(_ group: Settings.Group, _ help: String, default fallback: Int, in bounds: ClosedRange<Int>) {
        self.init(group, help, fallback: "\(fallback)", bounds: bounds) { text in
            guard let number = Int(text ?? ""), bounds.contains(number) else {
                throw Settings.Fault(
                    "\(text ?? "") is not a whole number between \(bounds.lowerBound) and \(bounds.upperBound)")
            }
            return number
        }
    }
}

extension Setting<Bool> {
    convenience init(
        _ group: Settings.Group, _ help: String, named name: String? = nil, default fallback: Bool = false
    ) {
        self.init(group, help, named: name, fallback: "\(fallback)") { text in
            switch text?.lowercased() {
            case "true", "yes", "1", "on": return true
            case "false", "no", "0", "off": return false
            default: throw Settings.Fault("\(text ?? "") is not true or false")
            }
        }
    }
}

extension Setting<String> {
    convenience init(
        _ group: Settings.Group, _ help: String, named name: String? = nil, default fallback: String,
        check: @escaping (String) throws -> Void = { _ in }
    ) {
        self.init(group, help, named: name, fallback: fallback) { text in
            try check(text ?? "")
            return text ?? ""
        }
    }
}

extension Setting<String?> {
    convenience init(
        _ group: Settings.Group, _ help: String, named name: String? = nil, isSecret: Bool = false,
        check: @escaping (String) throws -> Void = { _ in }
    ) {
        self.init(group, help, named: name, isSecret: isSecret) { text in
            if let text { try check(text) }
            return text
        }
    }
}

extension Setting {
    /// Declares a setting with several parts, separated by commas.
    convenience init<Part>(
        _ group: Settings.Group, _ help: String, default fallback: String? = nil, isSecret: Bool = false,
        part: @escaping (String) throws -> Part
    ) where Value == [Part] {
        self.init(group, help, fallback: fallback, isSecret: isSecret) { text in
            let parts = SettingRule.parts(of: text)
            // Only a setting without a default may be empty. Without a claim of the tenant, for example, all users would
            // be of one tenant.
            guard !parts.isEmpty || (fallback ?? "").isEmpty else { throw Settings.Fault("must not be empty") }
            return try parts.map(part)
        }
    }

    /// Declares a setting with one of several words.
    convenience init(
        _ group: Settings.Group, _ help: String, default fallback: Value
    ) where Value: RawRepresentable<String> & CaseIterable {
        self.init(group, help, fallback: fallback.rawValue) { text in
            guard let word = Value(rawValue: text ?? "") else {
                throw Settings.Fault(
                    "\(text ?? "") is not one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            return word
        }
    }
}

extension Settings {
    /// The groups of settings, as `--help` shows them.
    enum Group: String {
        case network = "Network"
        case features = "Features"
        case storage = "Storage"
        case tokens = "Tokens"
        case streams = "Streams"
        case limits = "Limits"
        case tables = "Tables"
        case webhooks = "Webhooks"
        case push = "Push"
        case texts = "Texts"
        case threads = "Threads"
        case operation = "Operation"
    }

    /// The declaration of a setting without the type of its value.
    ///
    /// `@unchecked Sendable`: see ``Setting``.
    public class Key: @unchecked Sendable {
        /// In camelCase, as in a settings file. Flags and variables are derived from it.
        public private(set) var name: String
        public let group: String
        /// The default, if any.
        public let fallback: String?
        public let isSecret: Bool
        /// One line, with the bounds of a number.
        public let help: String
        /// Whether a flag, a variable or the file has a value for it.
        fileprivate(set) var isSet = false

        fileprivate init(
            _ group: Group, _ help: String, named name: String?, fallback: String?, isSecret: Bool,
            bounds: ClosedRange<Int>?
        ) {
            self.name = name ?? ""
            self.group = group.rawValue
            self.help = help + (bounds.map { " \($0.lowerBound) to \($0.upperBound)." } ?? "")
            (self.fallback, self.isSecret) = (fallback, isSecret)
        }

        /// `rateLimitUser` → `--rate-limit-user`.
        public var flag: String { "--" + words.joined(separator: "-") }

        /// `rateLimitUser` → `BELLHOP_RATE_LIMIT_USER`.
        public var variable: String { "BELLHOP_" + words.joined(separator: "_").uppercased() }

        private var words: [String] {
            var words: [String] = [""]
            var last: Character = "."
            for character in name {
                if character.isUppercase && last.isLowercase { words.append("") }
                words[words.count - 1] += character.lowercased()
                last = character
            }
            return words
        }

        /// Returns a mistake in this setting. It gives the name as in a file and as a variable, because containers use
        /// only variables.
        func mistake(_ problem: String) -> Mistake {
            Mistake(description: "\(name) (\(variable)): \(problem)", setting: name)
        }

        /// Runs a rule, and throws its fault as a mistake in this setting.
        func reportingFaults<Result>(_ rule: () throws -> Result) throws -> Result {
            do {
                return try rule()
            } catch let fault as Fault {
                throw mistake(fault.problem)
            }
        }

        /// Takes the name of the property, unless the declaration has given another one.
        fileprivate func take(_ property: String) {
            if name.isEmpty { name = String(property.drop { $0 == "_" }) }
        }

        func read(_: SettingsReader) throws {}
    }

    /// The reason why a text is not a value of its setting.
    struct Fault: Error {
        let problem: String

        init(_ problem: String) { self.problem = problem }
    }

    /// An invalid setting, described in one line.
    public struct Mistake: Error, CustomStringConvertible, Sendable {
        public let description: String
        /// Nil if no single setting is responsible.
        var setting: String?
    }

    /// Gives the declarations the names of their properties, and returns them in order.
    static func named(_ settings: Settings) -> [Key] {
        Mirror(reflecting: settings).children.flatMap { property, value in
            // The declarations of a list have names.
            if let keys = value as? [Key] { return keys }
            guard let key = value as? Key, let property else { return [] }
            key.take(property)
            return [key]
        }
    }
}

/// A reader of the texts of settings. It reads all values as texts, whatever their type in a file, so that a mistake is
/// reported and not replaced by the default.
struct SettingsReader {
    /// Returns the text of a setting; nil if it is not set.
    let text: (Settings.Key) -> String?

    /// - Parameter ignored: Settings that are treated as not set.
    init(reader: ConfigReader, ignored: Set<String> = []) {
        text = { ignored.contains($0.name) ? nil : Self.text(of: $0, in: reader) }
    }

    init(texts: [String: String]) {
        text = { texts[$0.name] }
    }

    private static func text(of key: Settings.Key, in reader: ConfigReader) -> String? {
        let path = ConfigKey(key.name)
        if let text = reader.string(forKey: path, isSecret: key.isSecret) {
            return text.isEmpty ? nil : text
        }
        if let number = reader.int(forKey: path) { return "\(number)" }
        if let flag = reader.bool(forKey: path) { return "\(flag)" }
        if let texts = reader.stringArray(forKey: path) { return texts.joined(separator: ",") }
        return nil
    }
}
