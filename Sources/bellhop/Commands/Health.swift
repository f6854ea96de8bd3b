import ArgumentParser
import Service

struct Health: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask the service on this machine for its health.",
        discussion: """
            For containers: exit code 0 if /healthz answers 200 within three seconds, else 1 and a line that says why. \
            Where the service listens is taken from the same flags, variables and file as by `serve`.

              BELLHOP_PORT=9000 bellhop health
              HEALTHCHECK CMD ["/usr/bin/bellhop", "health"]

            `bellhop check --url` asks any other address.
            """)

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        do {
            let address = try await settings.loadAddress()
            guard address.port != 0 else {
                throw Terminal.failure("the settings leave the port open (0): give the one that the log names")
            }
            try HealthProbe(host: address.host, port: address.port).run()
        } catch is ExitCode {
            // Docker uses 0 and 1, and reserves the others.
            throw ExitCode.failure
        }
    }
}
