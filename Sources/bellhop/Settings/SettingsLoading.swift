import ArgumentParser
import Configuration
import Foundation
import Service
import SystemPackage
import Values
import Yams

/// The settings flags of commands that work on a service or its database.
struct SettingsFlags: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("YAML or JSON file with settings (or BELLHOP_CONFIG).", valueName: "file"))
    var config: String?

    @Argument(
        parsing: .allUnrecognized,
        help: ArgumentHelp("Any setting of `bellhop serve --help`, as --name value.", valueName: "--setting value"))
    var flags: [String] = []

    /// Reads all settings. A mistake is reported in one line, with exit code 78, the `EX_CONFIG` of sysexits.h.
    ///
    /// - Parameter verifiesTokens: false for commands that only use the database and need no keys.
    func load(verifiesTokens: Bool = true) async throws -> Settings {
        try await read { try Settings(reader: $0, verifiesTokens: verifiesTokens) }
    }

    /// Reads all settings, and returns the mistake of each wrong one.
    func examine() async throws -> (settings: Settings?, mistakes: [Settings.Mistake]) {
        try await read(rejectsUnknown: false) { Settings.examine(reader: $0) }
    }

    /// Returns a line for each flag, variable or name in the file that is no setting.
    func unknownNames() throws -> [String] { try reportingMistakes { try loading.unknownNames() } }

    private var loading: SettingsLoading {
        SettingsLoading(flags: flags, environment: ProcessInfo.processInfo.environment, file: file)
    }

    /// Reads only the address on which the service listens; reports mistakes as `load` does.
    func loadAddress() async throws -> (host: String, port: Int) {
        try await read { try Settings.address(reader: $0) }
    }

    /// Reads only the feature sets that are on.
    func loadFeatures() async throws -> Set<FeatureSet> { try await read { try Settings.features(reader: $0) } }

    /// The settings file, if there is one.
    var file: String? { config ?? ProcessInfo.processInfo.environment["BELLHOP_CONFIG"] }

    private func read<Value>(
        rejectsUnknown: Bool = true, _ value: (ConfigReader) throws -> Value
    ) async throws -> Value {
        do {
            return try value(await loading.reader(rejectsUnknown: rejectsUnknown))
        } catch {
            throw Terminal.failure("\(SettingsLoading.explain(error))", code: 78)
        }
    }

    private func reportingMistakes<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            throw Terminal.failure("\(SettingsLoading.explain(error))", code: 78)
        }
    }
}

/// Loads settings from flags, environment and file; the first one with a value wins. Unknown settings are errors: a
/// misspelt limit must not be silently ignored.
struct SettingsLoading {
    let flags: [String]
    let environment: [String: String]
    let file: String?

    /// Variables that belong to the commands, not to the service.
    static let commandVariables: Set<String> = ["BELLHOP_CONFIG", "BELLHOP_TOKEN", "BELLHOP_URL"]

    /// - Parameter rejectsUnknown: false to ignore unknown settings, for a command that reports them itself.
    func reader(rejectsUnknown: Bool = true) async throws -> ConfigReader {
        try checkFlags()
        let unknown = rejectsUnknown ? try unknownNames() : []
        guard unknown.isEmpty else { throw ValidationError(unknown.joined(separator: " | ")) }
        let secrets = Set(Settings.catalog.filter(\.isSecret).map(\.variable))
        var providers: [any ConfigProvider] = [
            CommandLineArgumentsProvider(arguments: ["bellhop"] + separatedFlags),
            EnvironmentVariablesProvider(environmentVariables: environment, secretsSpecifier: .specific(secrets))
                .prefixKeys(with: "bellhop"),
        ]
        if let file { providers.append(try await provider(of: file)) }
        return ConfigReader(providers: providers)
    }

    /// Splits `--port=80` into `--port 80`, the only form that swift-configuration reads.
    private var separatedFlags: [String] {
        flags.flatMap { flag -> [String] in
            guard flag.hasPrefix("--"), let equals = flag.firstIndex(of: "=") else { return [flag] }
            return [String(flag[..<equals]), String(flag[flag.index(after: equals)...])]
        }
    }

    private func checkFlags() throws {
        var seen: Set<String> = []
        var rest = separatedFlags[...]
        while let flag = rest.popFirst() {
            // A word that is no flag has no value, so the next word is read as a flag.
            guard flag.hasPrefix("--") else { continue }
            guard seen.insert(flag).inserted else { throw ValidationError("\(flag) is given twice") }
            guard let value = rest.first, !value.hasPrefix("--") else {
                // An unknown flag is reported by its name.
                guard isKnown(flag) else { continue }
                throw ValidationError("\(flag) requires a value")
            }
            rest.removeFirst()
        }
    }

    private func isKnown(_ flag: String) -> Bool { Settings.catalog.contains { $0.flag == flag } }

    /// Returns a line for each flag, variable or name in the file that is no setting.
    func unknownNames() throws -> [String] {
        var lines: [String] = []
        var rest = separatedFlags[...]
        while let flag = rest.popFirst() {
            if !isKnown(flag) { lines.append(unknown("flag", flag, among: Settings.catalog.map(\.flag))) }
            if flag.hasPrefix("--"), let value = rest.first, !value.hasPrefix("--") { rest.removeFirst() }
        }
        let variables = Settings.catalog.map(\.variable)
        for name in environment.keys.sorted()
        where name.hasPrefix("BELLHOP_") && !variables.contains(name) && !Self.commandVariables.contains(name) {
            lines.append(unknown("variable", name, among: variables))
        }
        guard let file, let root = try Self.content(of: file) else { return lines }
        let names = Settings.catalog.map(\.name)
        for name in try Self.keys(of: root, at: "") where !names.contains(name) {
            lines.append(unknown("setting", name, among: names) + " (in \(file))")
        }
        return lines
    }

    /// Returns the content of a settings file; nil if the file is empty.
    private static func content(of file: String) throws -> Node? {
        do {
            // JSON is a subset of YAML, so one reader serves both. Only names matter, so scalars need no types.
            guard let root = try Yams.compose(yaml: try text(of: file), .basic) else { return nil }
            guard root.mapping != nil else {
                throw ValidationError("the settings file \(file) must contain names and values, such as port: 9000")
            }
            return root
        } catch let error as YamlError {
            throw ValidationError("the settings file \(file) is not valid YAML: \(error)")
        }
    }

    private func provider(of file: String) async throws -> any ConfigProvider {
        guard try Self.content(of: file) != nil else { return InMemoryProvider(name: file, values: [:]) }
        do {
            return try await FileProvider<YAMLSnapshot>(filePath: FilePath(file))
        } catch {
            throw ValidationError("the settings file \(file): \(error)")
        }
    }

    /// Returns the names of the secrets in a settings file, and of database URLs with a password.
    static func secrets(in file: String) -> [String] {
        guard let text = try? text(of: file), let root = try? Yams.compose(yaml: text, .basic) else { return [] }
        let secret = Set(Settings.catalog.filter(\.isSecret).map(\.name))
        return (root.mapping ?? [:]).compactMap { key, value in
            guard let name = key.string else { return nil }
            let text = value.string ?? "-"
            // In a database URL, the password is the secret.
            if text.hasPrefix("postgres") { return text.contains(/:[^@\/]+@|password=/) ? name : nil }
            return secret.contains(name) && !text.isEmpty && !text.hasPrefix("sqlite:") ? name : nil
        }
    }

    private static func text(of file: String) throws -> String {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: file, isDirectory: &isFolder) else {
            throw ValidationError("the settings file \(file) does not exist")
        }
        guard !isFolder.boolValue else { throw ValidationError("the settings file \(file) is a folder") }
        guard let data = FileManager.default.contents(atPath: file) else {
            throw ValidationError("the settings file \(file) cannot be read by this user")
        }
        guard let text = String(validating: data, as: UTF8.self) else {
            throw ValidationError("the settings file \(file) is not UTF-8 text")
        }
        return text
    }

    private static func keys(of node: Node, at path: String) throws -> [String] {
        guard let mapping = node.mapping else { return [path] }
        return try mapping.flatMap { key, value in
            try keys(of: value, at: (path.isEmpty ? "" : path + ".") + (key.string ?? ""))
        }
    }

    private func unknown(_ kind: String, _ name: String, among known: [String]) -> String {
        "unknown \(kind) \(name); \(known.hint(for: name, else: "`bellhop serve --help` lists all settings"))"
    }

    /// Runs work on a database, and reports a failure in one line with exit code 1.
    static func explainingFailure<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let mistake as Settings.Mistake {
            throw Terminal.failure("\(mistake)", code: 78)
        } catch {
            throw Terminal.failure("\(explain(error))")
        }
    }

    static func explain(_ error: any Error) -> String {
        Operations.reason(of: error).split(separator: "\n").joined(separator: " ")
    }

    /// The catalogue of all settings, as `--help` shows it.
    static var helpText: String {
        var lines = [
            "A setting is read from its flag, else its variable, else the file (the flag's name in "
                + "camelCase), else its default, shown in brackets. Put secrets into variables or the file: other users of "
                + "the machine can see flags."
        ]
        var group = ""
        for key in Settings.catalog {
            if key.group != group {
                group = key.group
                lines += ["", "\(group.uppercased()):"]
            }
            let fallback = (key.fallback.map { " [\($0)]" } ?? "") + (key.isSecret ? " secret" : "")
            lines += Terminal.wrap("\(key.flag)  (\(key.variable))\(fallback)", indent: 2, rest: 6)
            lines += Terminal.wrap(key.help, indent: 6)
        }
        return lines.joined(separator: "\n")
    }
}
