import Database
import Values

/// Erasures of persons, and exports of what is stored about them.
///
/// An erasure runs in small transactions. The row of the erasure names the next step and its place, and is stored with
/// the effects of each transaction. So a killed process continues where it was, and replicas take turns.
enum ErasureFeature {
    /// The dependencies of the endpoints.
    struct Parts: Sendable {
        let seal: PersonSeal
        let router: EventRouter
    }

    /// Creates the feature.
    ///
    /// - Parameters:
    ///   - parts: Nil lists the feature without serving it, for `bellhop routes` and `policies`.
    ///   - tables: the tables of the service
    ///   - steps: the steps of other features, which come before the steps of the tables
    static func feature(_ parts: Parts?, tables: [Table], steps: [PersonStep]) -> Feature {
        let rows = tables.compactMap { PersonRows($0) }
        let plan = ErasurePlan(steps: steps + rows.map(\.step), rows: rows)
        return Feature(
            name: "erasure", tables: [erasures], migrations: [migration],
            endpoints: endpoints(parts, exported: rows.filter(\.policy.isExported)),
            ticks: [pruning],
            longWork: [LongWork(name: "erasures", due: { due(at: $0) }) { try plan.run($0, $1) }])
    }

    /// The name of the step that erases the person from the event log.
    static let logStep = "events"
    /// The names of the steps that remove the last traces: from between the rows in the file of SQLite, and from its
    /// write-ahead log.
    static let rewriteStep = "file"
    static let checkpointStep = "log"

    /// Returns when a file may be rewritten: now if that takes about a second, and otherwise in one hour of the day.
    static func rewriteTime(ofBytes size: Int, hour: Int, at now: Timestamp) -> Timestamp {
        let passed = now.seconds % 86_400 - Int64(hour) * 3600
        if size <= ErasureLimits.rewrittenAtOnceBytesMax || (0..<3600).contains(passed) { return now }
        return now.adding(seconds: passed < 0 ? -passed : 86_400 - passed)
    }
}

/// The order of an erasure: the steps of the features, the declarations of the tables, the event log, the files.
struct ErasurePlan: Sendable {
    let steps: [PersonStep]
    let rows: [PersonRows]

    /// Performs the next step of an erasure of a tenant.
    func run(_ runner: TransactionRunner, _ tenant: ID<Tenant>) throws {
        func write<Value: Sendable>(_ body: @escaping @Sendable (Transaction) throws -> Value) throws -> Value {
            try runner.store.writeAndWait { db in
                try db.lock([LockKey.tick("erasures").name(in: tenant)])
                return try runner.write(as: .system(tenant: tenant), in: db, body)
            }
        }
        let bytes = runner.store.engine == .sqlite ? runner.store.sizeBytes : 0
        guard let erased = try write({ try advance($0, bytes: bytes) }) else { return }
        // Only now: the row of the erasure no longer names the person.
        do {
            if erased.step == ErasureFeature.rewriteStep {
                try runner.store.rewrite()
                try write(ErasureFeature.storeRewritten)
            }
            try runner.store.checkpoint()
            try write { try ErasureFeature.storeDone(erased.mark, $0) }
        } catch let error as DatabaseError {
            // A long read, or a full disk.
            try write { tx in
                guard var erasure = try ErasureFeature.find(erased.mark, tx) else { return }
                erasure.nextAt = tx.now.adding(seconds: ErasureLimits.retrySeconds)
                try ErasureFeature.store(erasure, tx)
            }
            if error.code != .busy { throw error }
        }
    }

    /// Performs one step in a transaction.
    ///
    /// - Returns: An erasure with nothing left but the files.
    private func advance(_ tx: Transaction, bytes: Int) throws -> ErasureFeature.Erasure? {
        guard var erasure = try ErasureFeature.findDue(tx) else { return nil }
        guard let person = erasure.userId else { return erasure }
        if erasure.step == ErasureFeature.logStep {
            try eraseEvents(of: person, &erasure, tx)
            if erasure.step == ErasureFeature.rewriteStep {
                erasure.nextAt = ErasureFeature.rewriteTime(ofBytes: bytes, hour: tx.settings.erasureHour, at: tx.now)
            }
        } else {
            // An unknown name is that of another version, whose steps may differ: all are repeated.
            let index = steps.firstIndex { $0.name == erasure.step } ?? 0
            let isKnown = steps[index].name == erasure.step
            let place = try steps[index].run(person, isKnown ? erasure.place : nil, tx)
            erasure.place = place
            erasure.step =
                place != nil
                ? steps[index].name : index + 1 < steps.count ? steps[index + 1].name : ErasureFeature.logStep
        }
        try ErasureFeature.store(erasure, tx)
        return nil
    }

    /// Erases the person from the log, after all other events about the person.
    private func eraseEvents(of person: ID<User>, _ erasure: inout ErasureFeature.Erasure, _ tx: Transaction) throws {
        guard erasure.place != nil else {
            // Events of writes that share a commit get their numbers at its end. So the end of the log is read in the
            // next transaction.
            erasure.place = "0"
            return
        }
        guard let end = erasure.logEnd else {
            erasure.logEnd = try EventLog.newestSequence(in: tx.db)
            guard tx.db.engine == .postgreSQL else { return }
            // Replicas compare the newest event that they have published with the log. It must be a later one.
            tx.publish(EventLog.marker, audience: [], data: EncodedJSON.emptyObject.bytes)
            erasure.nextAt = tx.now.adding(seconds: ErasureLimits.logPauseSeconds)
            return
        }
        let place = try EventLog.erase(
            PersonNames(person), tenant: tx.tenant, after: erasure.place.flatMap { Int64($0) } ?? 0, through: end,
            in: tx.db)
        erasure.place = place.map { "\($0)" }
        guard place == nil else { return }
        // Rows that appeared meanwhile, such as a notification that a backend was just creating.
        let hasMore = try erasure.passes < ErasureLimits.passesMax && rows.contains { try $0.hasRows(of: person, tx) }
        erasure.step = hasMore ? "" : ErasureFeature.rewriteStep
        erasure.logEnd = nil
        erasure.passes += 1
    }
}
