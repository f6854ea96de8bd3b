import Database
import Values

@testable import Service

extension TestService {
    /// Applies every rule that deletes rows because of their age, until nothing is left to do.
    func forget() async throws {
        let runner = app.runner
        // The numbers of ended minutes become entries, which have an age too.
        try await run(AuditFeature.endingMinutes)
        for tick in Catalog.features().flatMap(\.ticks) where tick.isByAge { try await run(tick) }
        for sweep in Catalog.features().flatMap(\.sweeps) where sweep.isOn(runner.settings) {
            var (place, isOver) = (String?.none, false)
            while !isOver, let age = runner.clock.age() {
                place = try await app.store.write { [place] db in
                    try runner.write(as: .system(tenant: "default"), in: db) { try sweep.step(age, place, $0) }
                }
                isOver = place == nil
            }
        }
        let (now, age) = (runner.clock.now(), runner.clock.age())
        try await app.store.write { db in
            for pruning in [Idempotency.pruning, Ticker.events(runner.settings)] { _ = try pruning.prune(age, db) }
            if let age { _ = try Outbox.prune(age, at: now, in: db) }
        }
    }
}
