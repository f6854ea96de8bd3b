import ArgumentParser
import Foundation

/// The option for the address of a running service.
struct ServiceAccess: ParsableArguments {
    @Option(help: "URL of the running service (or BELLHOP_URL).")
    var url: String?

    var baseURL: String {
        let environment = ProcessInfo.processInfo.environment
        return Self.address(url ?? environment["BELLHOP_URL"] ?? "127.0.0.1:\(environment["BELLHOP_PORT"] ?? "8080")")
    }

    /// Returns the URL for an address as people write it, such as `localhost:8080`.
    static func address(_ text: String) -> String {
        text.contains("://") ? text : "http://" + text
    }
}
