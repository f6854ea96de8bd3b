import PostgresServer
import TestSupport
import Testing

@testable import Service

@Suite(.timed) struct OutboxSimulationTests {
    @Test func receiversShowWhatIsUnseen_andTheTotal_underAnySchedule() throws {
        let service = try TestService.start(at: TestService.morning)
        let clock = ManualClock(service.clock.now)
        let settings = try TestService.settings(
            [
                "database": service.database.url, "jwtSecret": TestService.secret, "pushContent": "full",
                "webhookURL": "http://127.0.0.1:1/", "webhookSecrets": WebhookProbe.secrets[0],
                "webhookPrivate": "true",
            ].merging(PushProbe.phones(service.directory)) { $1 }.merging(PushProbe.browsers) { $1 })
        let base = service.app.runner.reader
        let reader = TransactionReader(
            store: base.store, clock: clock.clock, settings: settings, log: base.log, positions: base.positions,
            reactions: [WebhooksFeature.feature.reaction, PushFeature.feature.reaction].compactMap { $0 },
            tables: base.tables, limiter: base.limiter)
        // A server of PostgreSQL takes many times as long for each.
        let runs = effort(quick: 100, full: 1_000, long: 60_000) / (PostgresServer.isTheStore ? 20 : 1)
        let failure = Schedule.failure(seed: randomSeed(), runs: runs, repetitionsMax: 5_000) {
            OutboxSimulation.run($0, reader, clock)
        }
        #expect(failure == nil, "\(failure ?? "")")
    }
}
