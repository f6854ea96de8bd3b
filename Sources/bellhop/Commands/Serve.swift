import ArgumentParser
import Foundation
import Logging
import Service
import UnixSignals

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the service until it is stopped.",
        discussion: """
            SIGTERM or SIGINT stops it cleanly: it closes streams with a reason and finishes writes. After SIGTERM, it \
            first continues to serve for drainSeconds, while /readyz answers 503. A second signal stops it at once. SIGHUP is ignored.

              bellhop serve --port 9000 --database sqlite:/var/lib/bellhop/bellhop.sqlite
              BELLHOP_PORT=0 bellhop serve        any free port, named in the log
              bellhop serve --config bellhop.yaml


            """ + SettingsLoading.helpText)

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        // A disconnected peer must fail one write, and not end the process.
        signal(SIGPIPE, SIG_IGN)
        // The same applies to a file that has reached its size limit.
        signal(SIGXFSZ, SIG_IGN)
        // SIGHUP must not end the streams, whether a closed terminal sends it or an operator that expects a reload.
        signal(SIGHUP, SIG_IGN)
        let settings = try await settings.load()
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let output = LogOutput.standardError(settings.logFormat)
        LoggingSystem.bootstrap { output.handler(label: $0) }
        let logger = Logger(label: "bellhop")
        let app: App
        do {
            app = try App(settings: settings, logger: logger, clock: .system, patience: App.startPatience)
            try await start(app)
        } catch {
            // sysexits.h: 75 for temporary errors, such as an unreachable database or a port in use; 78 for errors that
            // an operator must correct.
            let isTemporary = Operations.isTemporary(error)
            let remedy = isTemporary ? Operations.loginRemedy(settings) : nil
            let code: Int32 = isTemporary && remedy == nil ? 75 : 78
            let reason = [SettingsLoading.explain(error), remedy].compactMap(\.self).joined(separator: "; ")
            guard settings.logFormat == .json else { throw Terminal.failure("cannot start: \(reason)", code: code) }
            logger.critical("Bellhop cannot start.", metadata: ["reason": "\(reason)"])
            throw ExitCode(code)
        }
        let (firstSignal, stop) = AsyncStream<UnixSignal>.makeStream()
        let watcher = Task {
            var isStopping = false
            for await signal in signals {
                if isStopping { Foundation.exit(130) }
                isStopping = true
                stop.yield(signal)
                stop.finish()
            }
        }
        // With Control-C there is no load balancer that must notice the shutdown, so it does not drain.
        var drainSeconds = 0
        for await signal in firstSignal where signal == .sigterm { drainSeconds = settings.drainSeconds }
        await app.shutdown(drainSeconds: drainSeconds)
        output.stop()
        watcher.cancel()
    }

    /// If one part fails to start, the started parts are stopped: the process must not exit under their threads.
    private func start(_ app: App) async throws {
        do {
            try app.start()
        } catch {
            await app.shutdown()
            throw error
        }
    }
}
