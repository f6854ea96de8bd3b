import ArgumentParser

struct Health: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check the health of the service on this machine.",
        discussion: """
            For containers: the exit code is 0 if /healthz answers 200 within three seconds, else 1 with the reason. \
            The address comes from the same flags, variables and file as for `serve`.

              BELLHOP_PORT=9000 bellhop health
              HEALTHCHECK CMD ["/usr/bin/bellhop", "health"]

            For any other address, use `bellhop check --url`.
            """)

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        do {
            let address = try await settings.loadAddress()
            guard address.port != 0 else {
                throw Terminal.failure(
                    "the port in the settings is 0 (any free port): pass the port that the log names with --port")
            }
            try HealthProbe(host: address.host, port: address.port).run()
        } catch is ExitCode {
            // Docker uses 0 and 1, and reserves the others.
            throw ExitCode.failure
        }
    }
}
