import ArgumentParser
import BellhopClient
import Foundation

/// The option for the address of a running service.
struct ServiceAccess: ParsableArguments {
    @Option(help: "The running service (or BELLHOP_URL).")
    var url: String?

    var baseURL: String {
        let environment = ProcessInfo.processInfo.environment
        return url ?? environment["BELLHOP_URL"] ?? "http://127.0.0.1:\(environment["BELLHOP_PORT"] ?? "8080")"
    }
}
