import ArgumentParser
import BellhopClient
import Foundation

struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fill a running service with believable life and keep it moving.",
        discussion: """
            Works through the HTTP API as a backend, a shop's staff and its customers would, with tokens it mints \
            from BELLHOP_JWT_SECRET: users and their visits, a barber shop with bookings that move, walk-ins, a queue.

              bellhop demo                        until Ctrl-C, an act about every two seconds
              bellhop demo --acts 200 --pace 0    as fast as it goes, then stop
              bellhop listen --subject ada --topics queue:demo-shop      in another terminal
            """)

    @OptionGroup var service: ServiceAccess

    @Option(help: "Seconds between two acts.")
    var pace = 2.0

    @Option(help: "Stop after so many acts.")
    var acts: Int?

    @Option(help: "Seed of all choices; the same seed makes the same choices.")
    var seed: UInt64 = 1

    @Option(help: "Tenant that the life happens in.")
    var tenant = "default"

    func run() async throws {
        let secret = try Token.requireSecret()
        let stage = Stage(baseURL: service.baseURL, secret: secret, tenant: tenant, seed: seed)
        do {
            try await stage.prepare()
            var done = 0
            while done < acts ?? .max {
                try await stage.act()
                done += 1
                if pace > 0 { try await Task.sleep(for: .seconds(pace)) }
            }
        } catch let failure as BellhopClient.TransportFailure {
            throw Terminal.failure("\(failure) (\(service.baseURL)); start it with `bellhop serve`")
        } catch let refusal as Stage.Refusal {
            throw Terminal.failure("\(refusal)")
        }
    }

    func validate() throws {
        guard pace >= 0, pace <= 3600 else { throw ValidationError("--pace must lie between 0 and 3600 seconds.") }
    }
}
