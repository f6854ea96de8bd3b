import ArgumentParser
import Configuration
import Foundation
import Service

/// The settings flags of the commands that work on a service or its database.
struct SettingsFlags: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Settings as a YAML or JSON file (or BELLHOP_CONFIG).", valueName: "file"))
    var config: String?

    @Argument(
        parsing: .allUnrecognized,
        help: ArgumentHelp("Any setting of the list as --name value.", valueName: "--setting value"))
    var flags: [String] = []

    /// Reads all settings; a mistake is one clear line and exit code 78, the `EX_CONFIG` of sysexits.h.
    ///
    /// - Parameter verifiesTokens: false for work on the database alone, which needs no keys.
    func load(verifiesTokens: Bool = true) async throws -> Settings {
        try await read { try Settings(reader: $0, verifiesTokens: verifiesTokens) }
    }

    /// Reads only the address on which the service listens; mistakes as by `load`.
    func loadAddress() async throws -> Settings.Address {
        try await read { try Settings.Address(reader: $0) }
    }

    private func read<Value>(_ value: (ConfigReader) throws -> Value) async throws -> Value {
        do {
            let environment = ProcessInfo.processInfo.environment
            let file = config ?? environment["BELLHOP_CONFIG"]
            return try value(
                await SettingsLoading(flags: flags, environment: environment, file: file).reader())
        } catch {
            throw Terminal.failure("\(SettingsLoading.explain(error))", code: 78)
        }
    }
}
