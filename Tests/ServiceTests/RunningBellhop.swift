import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

/// The built service on a free port, by the clocks of the system.
struct RunningBellhop {
    let process: BellhopProcess
    let baseURL: String
    /// A client without a token, whose connections those of all identities share.
    let anyone: BellhopClient

    /// - Parameters:
    ///   - settings: variables, without `BELLHOP_`.
    ///   - wrapper: a command that runs another one, and becomes it.
    init(_ file: String, settings: [String: String] = [:], through wrapper: [String] = []) throws {
        let own = [
            "JWT_SECRET": TestService.secret, "PORT": "0", "DATABASE": "sqlite:\(file)", "RATE_LIMIT_USER": "0",
            "RATE_LIMIT_SERVICE": "0", "REACTORS": "1", "SHARDS": "1",
        ]
        process = try BellhopProcess(["serve"], settings: own.merging(settings) { $1 }, through: wrapper)
        baseURL = "http://127.0.0.1:\(try process.awaitPort())"
        anyone = BellhopClient(baseURL: baseURL)
    }

    /// With a token that was issued a day ago, and lives for days.
    func client(as identity: TestService.Identity) -> BellhopClient {
        let now = Int64(Date().timeIntervalSince1970)
        let lifetime: [String: JSON] = [
            "sub": .string(identity.subject), "iat": .integer(now - 86_400), "exp": .integer(now + 10 * 86_400),
        ]
        return anyone.with(token: TestService.sign(lifetime.merging(identity.claims) { $1 }))
    }

    func stop() -> (status: Int32, text: String) {
        process.terminate()
        return process.finish()
    }
}
