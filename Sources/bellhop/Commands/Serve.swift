import ArgumentParser
import Foundation
import Logging
import Service
import UnixSignals

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the service until it is stopped.",
        discussion: """
            SIGTERM or SIGINT stops it cleanly: streams are closed with a reason, writes are finished. A second one stops \
            it at once.

              bellhop serve --port 9000 --database sqlite:/var/lib/bellhop/bellhop.sqlite
              BELLHOP_PORT=0 bellhop serve        any free port; the log names it
              bellhop serve --config bellhop.yaml


            """ + SettingsLoading.helpText)

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        // A peer that leaves must be an error of one write, not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        let settings = try await settings.load()
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let logger = Logger(label: "bellhop")
        let app: App
        do {
            app = try App(settings: settings, logger: logger, clock: .system)
            try app.start()
        } catch {
            // sysexits.h: 75 for what passes, such as a database that is away; 78 for what an operator must correct.
            let passes = Operations.passes(error)
            throw Terminal.failure("cannot start: \(SettingsLoading.explain(error))", code: passes ? 75 : 78)
        }
        let (untilStopped, stop) = AsyncStream<Void>.makeStream()
        let watcher = Task {
            var isStopping = false
            for await _ in signals {
                if isStopping { Foundation.exit(130) }
                isStopping = true
                stop.finish()
            }
        }
        for await _ in untilStopped {}
        await app.shutdown()
        watcher.cancel()
    }
}
