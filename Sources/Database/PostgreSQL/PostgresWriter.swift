import Foundation
import Threads

/// The turn to commit, among the writers of one process.
final class CommitTurn: Sendable {
    private let isTaken = Locked(false)

    /// Takes the turn; returns false if another writer has it.
    func tryTake() -> Bool {
        isTaken.withLock { isTaken in
            defer { isTaken = true }
            return !isTaken
        }
    }

    /// Waits for the turn and takes it.
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

/// One of the writing threads. It takes the waiting jobs of its lane, runs each in a savepoint, commits once, and then
/// answers all of them.
///
/// Other writers, here and on other replicas, write at the same time. A job locks the data on which it bases its writes
/// (`DatabaseConnection.lock`). The first job of a group waits for its locks, because the group holds no locks yet. A
/// later job that meets a lock held elsewhere is postponed to the next group, so that groups never wait for each other
/// in a cycle.
///
/// It is created, used and released on its thread.
struct PostgresWriter {
    let queue: WriteQueue
    /// Its number among the writers of the queue.
    let number: Int
    /// The turn to commit, among the writers of this process.
    let turn: CommitTurn
    let options: StoreOptions
    let connect: () throws(DatabaseError) -> DrivenConnection<PostgresConnection>
    var connection: DrivenConnection<PostgresConnection>?
    /// Distinguishes this writer's marks from all others, in this process and elsewhere.
    private let name = PostgresWriter.randomName()

    /// The maximum number of attempts of a job. Lost connections, deadlocks and locks held elsewhere are temporary. A
    /// job that still fails then is answered with 503.
    private static let attemptsMax = 8
    /// How often a group is repeated on a new connection.
    private static let connectionsMax = 3

    /// Works until the queue is closed and empty.
    mutating func run() {
        while let jobs = queue.take(options.batchJobsMax, by: number) { commit(jobs) }
        // Marks of killed writers remain, up to a number.
        _ = try? usableConnection().driver.link.ask(PostgresSchema.forgetMarks, [.text(name)])
    }

    private static func randomName() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }

    /// Performs jobs as one group. Each is answered exactly once, or put back to be done in a later group.
    private mutating func commit(_ jobs: [WriteJob]) {
        var jobs = jobs
        var losses = 0
        var counted = StoreMetrics()
        while true {
            do {
                let (group, postponed) = try runGroup(&jobs, counting: &counted)
                queue.putBack(postponed, by: number)
                let isEmpty = group.completions.isEmpty
                let isFull: Bool? = group.isFull ? true : isEmpty ? nil : false
                finish(counted, isFull: isFull, outcome: isEmpty && losses > 0 ? .failed : group.outcome)
                return group.answer(.success(()))
            } catch {
                losses += 1
                connection = nil
                let isTransient = (error as? DatabaseError)?.isTransient ?? false
                guard isTransient, losses < Self.connectionsMax else {
                    counted.batchesFailed += 1
                    counted.jobsFailed += jobs.count
                    let isFull = (error as? DatabaseError)?.code == .full
                    finish(counted, isFull: isFull ? true : nil, outcome: isFull ? .decided : .failed)
                    let isUndecided = (error as? DatabaseError)?.code == .undecided
                    let lost = isUndecided ? error : WriteGroup.lost(error)
                    for job in jobs { job.fail(lost) }
                    return
                }
                counted.batchesRetried += 1
                Self.pause()
            }
        }
    }

    private func finish(_ counted: StoreMetrics, isFull: Bool?, outcome: BatchOutcome) {
        queue.finishBatch(by: number, isFull: isFull, outcome: outcome) { $0 = $0.adding(counted) }
    }

    /// Runs one transaction, without answering any job.
    ///
    /// - Parameter jobs: The initial jobs. Jobs that join the group are added to them.
    /// - Returns: The group, and the jobs that are postponed to the next one.
    /// - Throws: If nothing of the group was stored.
    private mutating func runGroup(
        _ jobs: inout [WriteJob], counting counted: inout StoreMetrics
    ) throws -> (WriteGroup, postponed: [WriteJob]) {
        let connection = try usableConnection()
        connection.driver.begin(.writing)
        var group = WriteGroup()
        var postponed: [WriteJob] = []
        do {
            let deadline = ContinuousClock.now + options.batchDuration
            try run(jobs, on: connection, into: &group, &postponed, until: deadline)
            // Commits are serialized anyway. Waiting here, instead of for the counter's row, leaves the server with one
            // commit of each replica. Jobs that arrive meanwhile join the group.
            while !turn.tryTake() {
                let mayTake = postponed.isEmpty && ContinuousClock.now < deadline
                let more = mayTake ? queue.takeArrived(options.batchJobsMax, by: number) : []
                if more.isEmpty {
                    turn.take()
                    break
                }
                jobs += more
                try run(more, on: connection, into: &group, &postponed, until: deadline)
            }
            queue.finishCollecting(by: number)
            let begin = ContinuousClock.now
            try conclude(connection)
            let seconds = (ContinuousClock.now - begin) / .seconds(1)
            counted.countCommit(jobs: group.completions.count, seconds: seconds)
            counted.jobsFailed += group.failures.count
            for action in connection.db.takeCommitActions() { action() }
        } catch {
            connection.db.rollback()
            throw error
        }
        return (group, postponed)
    }

    private mutating func usableConnection() throws(DatabaseError) -> DrivenConnection<PostgresConnection> {
        if let connection, connection.driver.link.isAlive() { return connection }
        let made = try connect()
        connection = made
        return made
    }

    private func run(
        _ jobs: [WriteJob], on connection: DrivenConnection<PostgresConnection>, into group: inout WriteGroup,
        _ postponed: inout [WriteJob], until deadline: ContinuousClock.Instant
    ) throws {
        var waiting = jobs
        repeat {
            let next = failExpired(WriteJob.takeNext(&waiting), into: &group)
            guard !next.isEmpty else { continue }
            connection.driver.waitsForLocks = group.completions.isEmpty
            do {
                try connection.db.enter(nil)
                group.completions += try WriteJob.run(next, on: connection.db)
            } catch {
                guard connection.driver.isInTransaction else { throw error }
                let isContended = (error as? DatabaseError)?.code == .contended
                if isContended, next.count == 1, next[0].attempts + 1 < Self.attemptsMax {
                    postponed.append(next[0].retried)
                } else {
                    group.add(failed: next, error, waiting: &waiting)
                }
            }
        } while !waiting.isEmpty && ContinuousClock.now < deadline
        postponed += waiting
    }

    /// Fails the jobs that have waited for as long as a statement may take. If all jobs wait for one lock, they are
    /// answered at once, and not one after the other.
    private func failExpired(_ jobs: [WriteJob], into group: inout WriteGroup) -> [WriteJob] {
        let late = ContinuousClock.now - options.statementTimeout
        guard jobs.contains(where: { $0.queuedAt <= late }) else { return jobs }
        group.failures += jobs.filter { $0.queuedAt <= late }.map { ($0, Self.tooLate) }
        return jobs.filter { $0.queuedAt > late }
    }

    private static let tooLate = DatabaseError(
        .unavailable, "the write waited too long for other writes", cause: .busy)

    // MARK: The end of a transaction

    /// Commits, and passes the turn on. If the answer gets lost, queries the outcome.
    ///
    /// - Throws: If the transaction was not stored, or its outcome is unknown.
    private mutating func conclude(_ connection: DrivenConnection<PostgresConnection>) throws {
        let mark = Self.randomName()
        do {
            defer { turn.give() }
            try connection.db.runGroupSteps()
            try connection.driver.writeMark(mark, of: name)
            try connection.db.commit()
        } catch {
            guard !connection.driver.isUsable, connection.driver.hasSentCommit, let id = connection.driver.transactionID
            else { throw error }
            self.connection = nil
            guard try isStored(mark, by: id, lostBy: error) else {
                throw DatabaseError(.unavailable, "the transaction was not committed")
            }
        }
    }

    /// Returns whether a transaction was stored whose COMMIT was sent and not answered.
    ///
    /// A retry could perform it twice, and an error could be reported for a performed one. So the server is queried,
    /// for as long as a client would wait. The transaction id only shows when the transaction has ended; after a crash
    /// or a failover it may belong to another one. The mark shows whether the transaction was stored.
    private mutating func isStored(_ mark: String, by id: String, lostBy error: any Error) throws -> Bool {
        let deadline = ContinuousClock.now + options.statementTimeout
        while ContinuousClock.now < deadline {
            Self.pause()
            guard let connection = try? usableConnection() else { continue }
            do throws(DatabaseError) {
                if try connection.driver.link.ask("SELECT pg_xact_status($1::text::xid8)", [.text(id)]).first?[0]
                    == "in progress"
                {
                    continue
                }
            } catch {
                // An id of the future: the server has lost it, and the transaction with it. Only the mark counts.
                guard connection.driver.isUsable else { continue }
            }
            if let found = try? connection.driver.link.ask(PostgresSchema.findMark, [.text(name)]) {
                return found.first?[0] == mark
            }
        }
        throw DatabaseError(
            .undecided, "a commit was sent, but the server did not answer: \(error)",
            cause: (error as? DatabaseError)?.code)
    }

    /// Pauses long enough for a server to return or a lock to be released, with jitter, so that writers do not collide
    /// again.
    private static func pause() {
        usleep(.random(in: 20_000...100_000))
    }
}
