import Database
import Threads
import Values

/// Erasures of persons, and exports of their stored data.
///
/// An erasure runs in small transactions. The row of the erasure names the next step and its place, and is stored with
/// the effects of each transaction. So a killed process continues where it was, and replicas take turns.
enum ErasureFeature {
    /// The dependencies of the endpoints.
    struct Parts: Sendable {
        let seal: PersonSeal
        let router: EventRouter
        let gate: ErasureGate
    }

    /// Creates the feature.
    ///
    /// - Parameters:
    ///   - parts: Nil lists the feature without serving it, for `bellhop routes` and `policies`.
    ///   - tables: the tables of the service
    ///   - steps: the steps of other features, which come before the steps of the tables
    static func feature(_ parts: Parts?, tables: [Table], steps: [PersonStep]) -> Feature {
        let rows = tables.compactMap { PersonRows($0) }
        let plan = parts.map { ErasurePlan(steps, rows, seal: $0.seal) }
        return Feature(
            name: "erasure", tables: [erasures], migrations: migrations,
            endpoints: endpoints(parts, exported: rows.filter(\.policy.isExported)),
            ticks: [pruning],
            longWork: plan.map { plan in
                [LongWork(name: "erasures", due: { due(at: $0) }) { try plan.run($0, $1) }]
            } ?? [])
    }

    /// The name of the first step of a round on PostgreSQL, which waits for the transactions that began before it.
    static let closingStep = "closing"
    /// The name of the step that erases the person from the event log.
    static let logStep = "events"
    /// The name of the last step, which removes the traces from the files of SQLite: from between the rows of the
    /// database, and from its write-ahead log.
    static let fileStep = "file"

    /// Returns when a file may be rewritten: now if that takes about a second, and otherwise in one hour of the day.
    static func rewriteTime(ofBytes size: Int, hour: Int, at now: Timestamp) -> Timestamp {
        let passed = now.seconds % 86_400 - Int64(hour) * 3600
        if size <= ErasureLimits.rewrittenAtOnceBytesMax || (0..<3600).contains(passed) { return now }
        return now.adding(seconds: passed < 0 ? -passed : 86_400 - passed)
    }
}

/// The order of an erasure.
///
/// 1. A pass: the steps of the features, then the tables that are looked through.
/// 2. It waits for the next round. On SQLite a round begins at most once a minute, and ends all erasures that wait.
///    Rounds of a large file that must be rewritten begin in one hour of the day.
/// 3. Transactions that name the person are refused from now on (``ErasureGate``). On PostgreSQL it waits for
///    transactions that began before. A second pass erases what appeared meanwhile, the rows of all tables, and the
///    person in the event log.
/// 4. On SQLite, the file is rewritten once for all erasures of the round, if rows of one of them were found. Its
///    write-ahead log is emptied.
struct ErasurePlan: Sendable {
    /// The steps of the first pass, and the steps of the last one.
    private let steps: (first: [PersonStep], last: [PersonStep])
    private let seal: PersonSeal
    /// When the next round may begin, by the uptime of the process. One thread runs all erasures.
    private let nextRound = Locked<Duration?>(nil)
    /// How often a read has kept the present round from emptying the write-ahead log.
    private let busyCheckpoints = Locked(0)
    private let pauses = ErasurePauses()

    init(_ features: [PersonStep], _ rows: [PersonRows], seal: PersonSeal) {
        steps = (
            features + rows.compactMap { $0.step(isClosed: false) },
            features + rows.compactMap { $0.step(isClosed: true) }
        )
        self.seal = seal
    }

    private enum Outcome {
        case worked
        /// A round may begin.
        case waits
        /// Only the files are left.
        case reachedFiles
    }

    /// Performs the next steps of the erasures of a tenant.
    func run(_ runner: TransactionRunner, _ tenant: ID<Tenant>) throws {
        switch try write(runner, tenant, { try advance($0) }) {
        case .worked: return
        case .waits: try beginRound(runner, tenant)
        case .reachedFiles: try endRound(runner, tenant)
        }
    }

    private func write<Value: Sendable>(
        _ runner: TransactionRunner, _ tenant: ID<Tenant>, _ body: @escaping @Sendable (Transaction) throws -> Value
    ) throws -> Value {
        try runner.store.writeAndWait { db in
            try db.lock([LockKey.tick("erasures").name(in: tenant)])
            return try runner.write(as: .system(tenant: tenant), in: db, isErasing: true, body)
        }
    }

    // MARK: Passes

    /// Performs some steps in a transaction.
    private func advance(_ tx: Transaction) throws -> Outcome {
        let end = ContinuousClock.now + ErasureLimits.transactionDuration
        repeat {
            guard var erasure = try ErasureFeature.findDue(tx) else { return .worked }
            if erasure.stage == .waiting { return .waits }
            if erasure.step == ErasureFeature.fileStep { return .reachedFiles }
            if erasure.step == ErasureFeature.closingStep {
                try awaitEarlierTransactions(&erasure, tx)
                try ErasureFeature.store(erasure, tx)
                return .worked
            }
            guard let person = erasure.encryptedId.flatMap({ seal.decrypt($0, of: tx.tenant) }) else {
                throw DatabaseError(.corrupt, "an erasure names a person that cannot be decrypted: request it again")
            }
            let before = tx.db.changedRowCount
            var continues = true
            if erasure.step == ErasureFeature.logStep {
                continues = try eraseEvents(of: person, &erasure, tx)
            } else {
                try perform(of: person, &erasure, tx)
                let changed = tx.db.changedRowCount - before
                erasure.changed += changed
                // The counts and the events of a step are stored at the end of its transaction, and the next step may
                // have to erase them.
                continues = changed == 0
            }
            try ErasureFeature.store(erasure, tx)
            guard continues, tx.db.engine.isOwnFile else { return .worked }
        } while ContinuousClock.now < end
        return .worked
    }

    /// Waits until all replicas know which person they must not name, and until older transactions have ended.
    private func awaitEarlierTransactions(_ erasure: inout ErasureFeature.Erasure, _ tx: Transaction) throws {
        erasure.nextAt = tx.now.adding(seconds: ErasureLimits.lookSeconds)
        let place = erasure.place ?? ""
        if let running = RunningTransactions(place) {
            guard try running.haveEnded(in: tx.db) else { return }
            (erasure.step, erasure.place, erasure.nextAt) = (steps.last[0].name, nil, tx.now)
        } else if pauses.isOver("\(ErasureFeature.closingStep) \(place)", ErasureLimits.closingPauseSeconds, tx.uptime)
        {
            (erasure.place, erasure.nextAt) = (try RunningTransactions(in: tx.db).text, tx.now)
        }
    }

    private func perform(of person: ID<User>, _ erasure: inout ErasureFeature.Erasure, _ tx: Transaction) throws {
        let steps = erasure.stage == .first ? steps.first : steps.last
        // An unknown name is that of another version, whose steps may differ: all are repeated.
        let index = steps.firstIndex { $0.name == erasure.step } ?? 0
        let isKnown = steps[index].name == erasure.step
        erasure.place = try steps[index].run(person, isKnown ? erasure.place : nil, tx)
        if erasure.place != nil {
            erasure.step = steps[index].name
        } else if index + 1 < steps.count {
            erasure.step = steps[index + 1].name
        } else if erasure.stage == .first {
            // The log is erased once, by the second pass.
            (erasure.stage, erasure.step) = (.waiting, "")
            if erasure.changed > 0 { erasure.nextAt = ErasureFeature.rewriteTime(tx) }
        } else {
            erasure.step = ErasureFeature.logStep
        }
    }

    /// Erases the person from the log, after all other events about the person.
    ///
    /// - Returns: whether the same transaction may continue
    private func eraseEvents(
        of person: ID<User>, _ erasure: inout ErasureFeature.Erasure, _ tx: Transaction
    ) throws -> Bool {
        guard erasure.place != nil else {
            // Events of writes that share a commit get their numbers at its end. So the end of the log is read in the
            // next transaction.
            erasure.place = "0"
            return false
        }
        guard let end = erasure.logEnd else {
            erasure.logEnd = try EventLog.newestSequence(in: tx.db)
            guard !tx.db.engine.isOwnFile else { return true }
            // Replicas compare the newest event that they have published with the log. It must be a later one.
            tx.publish(EventLog.marker, audience: [], data: EncodedJSON.emptyObject.bytes)
            return false
        }
        if !tx.db.engine.isOwnFile,
            !pauses.isOver("\(ErasureFeature.logStep) \(end)", ErasureLimits.logPauseSeconds, tx.uptime)
        {
            erasure.nextAt = tx.now.adding(seconds: ErasureLimits.lookSeconds)
            return false
        }
        let before = tx.db.changedRowCount
        let place = try EventLog.erase(
            PersonNames(person), tenant: tx.tenant, after: erasure.place.flatMap { Int64($0) } ?? 0, through: end,
            in: tx.db)
        erasure.changed += tx.db.changedRowCount - before
        erasure.place = place.map { "\($0)" }
        if place == nil { (erasure.step, erasure.logEnd) = (ErasureFeature.fileStep, nil) }
        return true
    }

    // MARK: Rounds

    /// Begins a round for all erasures that wait, of all tenants, or lets them wait for it.
    private func beginRound(_ runner: TransactionRunner, _ tenant: ID<Tenant>) throws {
        let now = runner.clock.uptime()
        let isOwnFile = runner.store.engine.isOwnFile
        if isOwnFile, let next = nextRound.withLock({ $0 }), now < next {
            let pause = (next - now).components.seconds + 1
            return try write(runner, tenant) { try ErasureFeature.storePause(seconds: pause, $0) }
        }
        try write(runner, tenant) { tx in
            try ErasureFeature.storeRound(waits: !isOwnFile, tx)
            tx.afterCommit { runner.gate.lookAgain() }
        }
        nextRound.withLock { $0 = now + .seconds(ErasureLimits.roundSeconds) }
        busyCheckpoints.withLock { $0 = 0 }
    }

    /// Removes the last traces from the files, for all erasures of the round.
    private func endRound(_ runner: TransactionRunner, _ tenant: ID<Tenant>) throws {
        let isComplete = try write(runner, tenant) { tx in
            guard tx.db.engine.isOwnFile else { return true }
            if try ErasureFeature.hasPass(tx) {
                try ErasureFeature.storePauseAtFile(tx)
                return false
            }
            // The file has grown, and is rewritten in another hour.
            let time = ErasureFeature.rewriteTime(tx)
            if time > tx.now {
                try ErasureFeature.storeWaiting(until: time, onlyChanged: true, tx)
                tx.afterCommit { runner.gate.lookAgain() }
            }
            return true
        }
        guard isComplete else { return }
        do {
            if runner.store.engine.isOwnFile {
                let isChanged = try runner.store.read { try ErasureFeature.hasChanges(in: $0) }
                if isChanged {
                    try runner.store.rewrite()
                    try write(runner, tenant) { try ErasureFeature.storeRewritten($0) }
                }
                try runner.store.checkpoint()
            }
            // Requests that were counted before would be stored behind the end.
            try runner.shareRates()
            try write(runner, tenant) { tx in
                try ErasureFeature.storeDone(tx)
                tx.afterCommit { runner.gate.lookAgain() }
            }
        } catch let error as DatabaseError {
            // A read uses the write-ahead log. Most end soon, and the file is already rewritten.
            let isShort = busyCheckpoints.withLock { count in
                count += 1
                return error.code == .busy && count <= ErasureLimits.busyCheckpointsMax
            }
            if isShort { return try write(runner, tenant) { try ErasureFeature.storePauseAtFile($0) } }
            // A long read, or a disk without room for the copies.
            try write(runner, tenant) { tx in
                try ErasureFeature.storeWaiting(
                    until: tx.now.adding(seconds: ErasureLimits.retrySeconds), onlyChanged: false, tx)
                tx.afterCommit { runner.gate.lookAgain() }
            }
            if error.code != .busy { throw ErasureDelay(reason: error) }
        }
    }
}

extension DatabaseEngine {
    /// Whether the rows are in a file of this process, with one writer. Its erasures then end in rounds, because the
    /// file keeps deleted rows until it is rewritten. Steps share a transaction.
    ///
    /// On a server, an erasure waits for the transactions of other replicas, and until they have published the events that
    /// it erases. A transaction has the locks of one step only, because together they could deadlock.
    fileprivate var isOwnFile: Bool { self == .sqlite }
}

/// The reason why erasures wait although their rows are erased.
struct ErasureDelay: Error, CustomStringConvertible {
    let reason: DatabaseError

    var description: String {
        "erasures wait, because the database file cannot be rewritten: \(reason.reason). They continue by themselves."
    }
}

/// The pauses of erasures, in which other replicas become aware of something.
///
/// They are measured by the uptime of this process. The time that dates rows may be set, or may differ between the
/// replicas that take turns, and a pause that ended early would leave traces of a person. A process that has not seen a
/// pause from its beginning waits for all of it.
final class ErasurePauses: Sendable {
    /// When each pause was seen first.
    private let seen = Locked([String: Duration]())
    /// Pauses that are remembered: many more than there are rounds at the same time.
    private static let seenMax = 1000

    /// Returns whether a pause has lasted long enough. The first call for a name begins it.
    func isOver(_ name: String, _ seconds: Int64, _ uptime: Duration) -> Bool {
        seen.withLock { seen in
            guard let first = seen[name] else {
                if seen.count >= Self.seenMax { seen = [:] }
                seen[name] = uptime
                return false
            }
            return uptime - first >= .seconds(seconds)
        }
    }
}
