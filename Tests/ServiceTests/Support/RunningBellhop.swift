import BellhopClient
import Foundation

/// The built service on a free port, with the system's clocks.
struct RunningBellhop {
    let process: BellhopProcess
    let baseURL: String
    /// A client without a token. Clients of all identities share its connections.
    let anyone: BellhopClient

    /// - Parameters:
    ///   - settings: variables without the prefix `BELLHOP_`.
    ///   - wrapper: a command that replaces itself with the service.
    init(_ file: String, settings: [String: String] = [:], through wrapper: [String] = []) throws {
        let own = [
            "JWT_SECRET": TestService.secret, "PORT": "0", "DATABASE": "sqlite:\(file)", "RATE_LIMIT_USER": "0",
            "RATE_LIMIT_SERVICE": "0", "REACTORS": "1", "SHARDS": "1",
        ]
        process = try BellhopProcess(["serve"], settings: own.merging(settings) { $1 }, through: wrapper)
        baseURL = "http://127.0.0.1:\(try process.awaitPort())"
        anyone = BellhopClient(baseURL: baseURL)
    }

    /// Returns a client whose token was issued a day ago and is valid for days.
    func client(as identity: TestService.Identity) -> BellhopClient {
        let now = Int64(Date().timeIntervalSince1970)
        let lifetime: [String: JSON] = [
            "sub": .string(identity.subject), "iat": .integer(now - 86_400), "exp": .integer(now + 10 * 86_400),
        ]
        return anyone.with(
            token: identity.token ?? TestService.sign(lifetime.merging(identity.claims) { $1 }))
    }

    func stop() -> (status: Int32, text: String) {
        process.terminate()
        return process.finish()
    }
}
