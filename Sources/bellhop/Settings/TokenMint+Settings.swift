import Foundation
import Service
import Values

extension TokenMint {
    /// Reads the settings with which the service verifies tokens.
    static func load(_ flags: SettingsFlags) async throws -> TokenMint {
        let settings = try await flags.load()
        return try Terminal.explaining { try TokenMint(settings) }
    }

    func signed(_ token: DevelopmentToken) throws -> String {
        try Terminal.explaining {
            try sign(
                token, at: Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000)),
                id: UUID().uuidString.lowercased())
        }
    }
}

extension Terminal {
    /// Turns a mistake in the settings into one line and the exit code 78, the `EX_CONFIG` of sysexits.h.
    fileprivate static func explaining<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let mistake as Settings.Mistake {
            throw failure("\(mistake)", code: 78)
        }
    }
}
