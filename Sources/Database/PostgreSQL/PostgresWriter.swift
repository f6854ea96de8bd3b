import Foundation
import Threads

/// Whose turn it is to commit, among the writers of one process.
final class CommitTurn: Sendable {
    private let isTaken = Monitor(false)

    /// False if another writer has it.
    func takeIfFree() -> Bool {
        isTaken.withLock { isTaken in
            defer { isTaken = true }
            return !isTaken
        }
    }

    /// Waits for it.
    func take() {
        isTaken.wait { isTaken in
            defer { isTaken = true }
            return isTaken ? nil : ()
        }
    }

    func give() {
        isTaken.withLock { $0 = false }
        isTaken.signal()
    }
}

/// One of the threads that write: takes what waits in its lane, runs each job in a savepoint, commits once, then answers
/// all.
///
/// Other writers, here and on other replicas, write at the same time. What a job decides upon it locks
/// (`Connection.lock`); the first job of a group waits for what it needs, since the group has no locks yet; a later one
/// that meets something locked elsewhere is put off to the next group, so that groups never wait for each other in a
/// circle.
///
/// Made, used and let go on its thread.
final class PostgresWriter {
    private let queue: WriteQueue
    /// Whose turn it is to commit, among the writers of this process.
    private let turn: CommitTurn
    private let options: StoreOptions
    private let connect: () throws(DatabaseError) -> PostgresConnection
    private var connection: PostgresConnection?
    /// Tells this writer's marks from all others', in this process and elsewhere.
    private let name = PostgresWriter.randomName()

    /// A job with how often it was begun.
    private struct Attempt {
        let job: WriteJob
        var count = 0
    }

    private struct Group {
        var answers: [@Sendable (WriteJob.Outcome) -> Void] = []
        var failures: [(job: WriteJob, error: any Error)] = []
        /// To be done in the next group.
        var postponed: [Attempt] = []
    }

    /// How often a job is begun. A lost connection, a deadlock and a lock taken elsewhere pass; what has not passed
    /// by then is answered with 503.
    private static let attemptsMax = 8
    /// How often a group is done again on a new connection.
    private static let connectionsMax = 3

    init(
        queue: WriteQueue, turn: CommitTurn, options: StoreOptions,
        connect: @escaping () throws(DatabaseError) -> PostgresConnection
    ) {
        self.queue = queue
        self.turn = turn
        self.options = options
        self.connect = connect
    }

    /// Works until the queue is closed and empty.
    func run() {
        while let jobs = queue.take(options.batchJobsMax) { commit(jobs.map { Attempt(job: $0) }) }
        // Marks that stay behind are deleted by any other writer's end, a day later.
        _ = try? usableConnection().askServer(PostgresSchema.forgetMarks, [.text(name)])
    }

    private static func randomName() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }

    /// Does all jobs, in as many groups as it takes; each is answered exactly once.
    private func commit(_ jobs: [Attempt]) {
        var waiting = jobs
        var losses = 0
        var counted = StoreMetrics()
        while !waiting.isEmpty {
            do {
                let group = try runGroup(&waiting, counting: &counted)
                waiting = group.postponed
                // Later jobs of the same lane may be answered while these wait; within a group the order holds.
                if waiting.isEmpty { finish(counted) }
                answer(group)
            } catch {
                losses += 1
                connection = nil
                let isPassing = (error as? DatabaseError)?.isTransient ?? false
                if !isPassing || losses >= Self.connectionsMax {
                    counted.batchesFailed += 1
                    counted.jobsFailed += waiting.count
                    finish(counted)
                    let isUndecided = (error as? DatabaseError)?.code == .undecided
                    let lost = isUndecided ? error : Self.lost(error)
                    for attempt in waiting { attempt.job.fail(lost) }
                    return
                }
                counted.batchesRetried += 1
                Self.pause()
            }
        }
    }

    private func finish(_ counted: StoreMetrics) {
        queue.finishBatch { $0 = $0.adding(counted) }
    }

    private func answer(_ group: Group) {
        for answer in group.answers { answer(.committed) }
        for failure in group.failures { failure.job.fail(failure.error) }
    }

    /// One transaction. Nothing is answered yet.
    ///
    /// - Parameter jobs: those to begin with; what is taken along is added to them.
    /// - Throws: when nothing of the group was stored.
    private func runGroup(_ jobs: inout [Attempt], counting counted: inout StoreMetrics) throws -> Group {
        let connection = try usableConnection()
        connection.begin(.writing)
        var group = Group()
        do {
            let deadline = ContinuousClock.now + options.batchDuration
            try run(jobs, on: connection, into: &group, until: deadline)
            // Commits follow one another anyway. Waiting here, and not for the counter's row, leaves the server with one
            // of each replica; and what arrives meanwhile comes along.
            while !turn.takeIfFree() {
                let mayTake = group.postponed.isEmpty && ContinuousClock.now < deadline
                let more = mayTake ? queue.takeMore(options.batchJobsMax).map { Attempt(job: $0) } : []
                if more.isEmpty {
                    turn.take()
                    break
                }
                jobs += more
                try run(more, on: connection, into: &group, until: deadline)
            }
            let begin = ContinuousClock.now
            try conclude(connection)
            let seconds = Double((ContinuousClock.now - begin).nanoseconds) / 1e9
            counted.countCommit(jobs: group.answers.count, seconds: seconds)
            counted.jobsFailed += group.failures.count
            for action in connection.takeCommitActions() { action() }
        } catch {
            connection.rollback()
            throw error
        }
        return group
    }

    private func usableConnection() throws(DatabaseError) -> PostgresConnection {
        if let connection, connection.looksAlive() { return connection }
        let made = try connect()
        connection = made
        return made
    }

    private func run(
        _ jobs: [Attempt], on connection: PostgresConnection, into group: inout Group,
        until deadline: ContinuousClock.Instant
    ) throws {
        for (index, var attempt) in jobs.enumerated() {
            if index > 0, ContinuousClock.now >= deadline {
                group.postponed += jobs[index...]
                return
            }
            // What has waited as long as a statement may take is not begun: when everybody stands behind a lock, all are
            // told at once, and not one after the other.
            guard ContinuousClock.now - attempt.job.queuedAt < options.statementTimeout else {
                group.failures.append((attempt.job, Self.tooLate))
                continue
            }
            attempt.count += 1
            connection.waitsForSubjects = group.answers.isEmpty
            do {
                try connection.enter(nil)
                group.answers.append(try connection.savepoint { try attempt.job.run(connection) })
            } catch {
                guard connection.isInTransaction else { throw error }
                if (error as? DatabaseError)?.code == .contended, attempt.count < Self.attemptsMax {
                    group.postponed.append(attempt)
                } else {
                    group.failures.append((attempt.job, error))
                }
            }
        }
    }

    private static let tooLate = DatabaseError(
        .unavailable, "the write has waited too long for others", cause: .busy)

    // MARK: The end of a transaction

    /// Commits, and gives the turn to the next; when the answer gets lost, asks what became of it.
    ///
    /// - Throws: when it was not stored, or nobody can say.
    private func conclude(_ connection: PostgresConnection) throws {
        let mark = Self.randomName()
        do {
            defer { turn.give() }
            try connection.runGroupSteps()
            try connection.leaveMark(mark, of: name)
            try connection.commit()
        } catch {
            guard !connection.isUsable, connection.hasSentCommit, let id = connection.transactionID else { throw error }
            self.connection = nil
            guard try isKept(mark, by: id, lostBy: error) else {
                throw DatabaseError(.unavailable, "the transaction was not kept")
            }
        }
    }

    /// What became of a transaction whose COMMIT was sent and not answered.
    ///
    /// Done again it could be done twice, and answered with an error it could have been done: so the server is asked,
    /// for as long as a client would wait. The number tells when the transaction has ended, and no more: after a crash
    /// or a failover it may be another's. The mark says whether it was stored.
    private func isKept(_ mark: String, by id: String, lostBy error: any Error) throws -> Bool {
        let deadline = ContinuousClock.now + options.statementTimeout
        while ContinuousClock.now < deadline {
            Self.pause()
            guard let connection = try? usableConnection() else { continue }
            do throws(DatabaseError) {
                if try connection.askServer("SELECT pg_xact_status($1::text::xid8)", [.text(id)]).first?[0]
                    == "in progress"
                {
                    continue
                }
            } catch {
                // A number of the future: the server has lost it, and the transaction with it. What the mark says counts.
                guard connection.isUsable else { continue }
            }
            if let found = try? connection.askServer(PostgresSchema.findMark, [.text(name)]) {
                return found.first?[0] == mark
            }
        }
        throw DatabaseError(
            .undecided, "a commit was sent and not answered: \(error)", cause: (error as? DatabaseError)?.code)
    }

    private static func lost(_ error: any Error) -> DatabaseError {
        let cause = error as? DatabaseError
        return DatabaseError(
            .unavailable, "nothing of this group of writes was kept: \(cause?.detail ?? "\(error)")",
            cause: cause?.code)
    }

    /// Long enough for a server to come back or a lock to be given up; jittered, so that writers do not meet again.
    private static func pause() {
        usleep(.random(in: 20_000...100_000))
    }
}
