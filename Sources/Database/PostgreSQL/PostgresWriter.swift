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
/// Made, used and released on its thread.
struct PostgresWriter {
    let queue: WriteQueue
    /// Whose turn it is to commit, among the writers of this process.
    let turn: CommitTurn
    let options: StoreOptions
    let connect: () throws(DatabaseError) -> PostgresConnection
    var connection: PostgresConnection?
    /// Distinguishes this writer's marks from all others', in this process and elsewhere.
    private let name = PostgresWriter.randomName()

    /// How often a job is begun. A lost connection, a deadlock and a lock taken elsewhere pass; what has not passed
    /// by then is answered with 503.
    private static let attemptsMax = 8
    /// How often a group is done again on a new connection.
    private static let connectionsMax = 3

    /// Works until the queue is closed and empty.
    mutating func run() {
        while let jobs = queue.take(options.batchJobsMax) { commit(jobs) }
        // Marks that stay behind are deleted by any other writer's end, a day later.
        _ = try? usableConnection().link.ask(PostgresSchema.forgetMarks, [.text(name)])
    }

    private static func randomName() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }

    /// Does all jobs, in as many groups as it takes; each is answered exactly once.
    private mutating func commit(_ jobs: [WriteJob]) {
        var waiting = jobs
        var losses = 0
        var counted = StoreMetrics()
        var isFull = false
        while !waiting.isEmpty {
            do {
                let (group, postponed) = try runGroup(&waiting, counting: &counted)
                waiting = postponed
                // Later jobs of the same lane may be answered while these wait; within a group the order stays.
                isFull = isFull || group.isFull
                if waiting.isEmpty { finish(counted, isFull: isFull) }
                group.answer(.success(()))
            } catch {
                losses += 1
                connection = nil
                let isPassing = (error as? DatabaseError)?.isTransient ?? false
                if !isPassing || losses >= Self.connectionsMax {
                    counted.batchesFailed += 1
                    counted.jobsFailed += waiting.count
                    finish(counted, isFull: (error as? DatabaseError)?.code == .full)
                    let isUndecided = (error as? DatabaseError)?.code == .undecided
                    let lost = isUndecided ? error : WriteGroup.lost(error)
                    for job in waiting { job.fail(lost) }
                    return
                }
                counted.batchesRetried += 1
                Self.pause()
            }
        }
    }

    private func finish(_ counted: StoreMetrics, isFull: Bool) {
        queue.finishBatch(isFull: isFull) { $0 = $0.adding(counted) }
    }

    /// One transaction. Nothing is answered yet.
    ///
    /// - Parameter jobs: those to begin with; what is taken along is added to them.
    /// - Returns: the group, and what is to be done in the next one.
    /// - Throws: when nothing of the group was stored.
    private mutating func runGroup(
        _ jobs: inout [WriteJob], counting counted: inout StoreMetrics
    ) throws -> (WriteGroup, postponed: [WriteJob]) {
        let connection = try usableConnection()
        connection.begin(.writing)
        var group = WriteGroup()
        var postponed: [WriteJob] = []
        do {
            let deadline = ContinuousClock.now + options.batchDuration
            try run(jobs, on: connection, into: &group, &postponed, until: deadline)
            // Commits follow one another anyway. Waiting here, and not for the counter's row, leaves the server with one
            // of each replica; and what arrives meanwhile comes along.
            while !turn.takeIfFree() {
                let mayTake = postponed.isEmpty && ContinuousClock.now < deadline
                let more = mayTake ? queue.takeMore(options.batchJobsMax) : []
                if more.isEmpty {
                    turn.take()
                    break
                }
                jobs += more
                try run(more, on: connection, into: &group, &postponed, until: deadline)
            }
            let begin = ContinuousClock.now
            try conclude(connection)
            let seconds = (ContinuousClock.now - begin) / .seconds(1)
            counted.countCommit(jobs: group.answers.count, seconds: seconds)
            counted.jobsFailed += group.failures.count
            for action in connection.takeCommitActions() { action() }
        } catch {
            connection.rollback()
            throw error
        }
        return (group, postponed)
    }

    private mutating func usableConnection() throws(DatabaseError) -> PostgresConnection {
        if let connection, connection.link.looksAlive() { return connection }
        let made = try connect()
        connection = made
        return made
    }

    private func run(
        _ jobs: [WriteJob], on connection: PostgresConnection, into group: inout WriteGroup,
        _ postponed: inout [WriteJob], until deadline: ContinuousClock.Instant
    ) throws {
        var waiting = jobs
        repeat {
            let next = dropLate(WriteJob.takeNext(&waiting), into: &group)
            guard !next.isEmpty else { continue }
            connection.waitsForLocks = group.answers.isEmpty
            do {
                try connection.enter(nil)
                group.answers += try WriteJob.run(next, on: connection)
            } catch {
                guard connection.isInTransaction else { throw error }
                let isContended = (error as? DatabaseError)?.code == .contended
                if isContended, next.count == 1, next[0].attempts + 1 < Self.attemptsMax {
                    postponed.append(next[0].begunOnceMore)
                } else {
                    group.add(failed: next, error, waiting: &waiting)
                }
            }
        } while !waiting.isEmpty && ContinuousClock.now < deadline
        postponed += waiting
    }

    /// What has waited as long as a statement may take is not begun: when everybody stands behind a lock, all are
    /// answered at once, and not one after the other.
    private func dropLate(_ jobs: [WriteJob], into group: inout WriteGroup) -> [WriteJob] {
        let late = ContinuousClock.now - options.statementTimeout
        guard jobs.contains(where: { $0.queuedAt <= late }) else { return jobs }
        group.failures += jobs.filter { $0.queuedAt <= late }.map { ($0, Self.tooLate) }
        return jobs.filter { $0.queuedAt > late }
    }

    private static let tooLate = DatabaseError(
        .unavailable, "the write has waited too long for others", cause: .busy)

    // MARK: The end of a transaction

    /// Commits, and gives the turn to the next; when the answer gets lost, asks what became of it.
    ///
    /// - Throws: when it was not stored, or nobody can say.
    private mutating func conclude(_ connection: PostgresConnection) throws {
        let mark = Self.randomName()
        do {
            defer { turn.give() }
            try connection.runGroupSteps()
            try connection.leaveMark(mark, of: name)
            try connection.commit()
        } catch {
            guard !connection.isUsable, connection.hasSentCommit, let id = connection.transactionID else { throw error }
            self.connection = nil
            guard try isStored(mark, by: id, lostBy: error) else {
                throw DatabaseError(.unavailable, "the transaction was not kept")
            }
        }
    }

    /// What became of a transaction whose COMMIT was sent and not answered.
    ///
    /// Done again it could be done twice, and answered with an error it could have been done: so the server is asked,
    /// for as long as a client would wait. The number says when the transaction has ended, and no more: after a crash
    /// or a failover it may be another's. The mark says whether it was stored.
    private mutating func isStored(_ mark: String, by id: String, lostBy error: any Error) throws -> Bool {
        let deadline = ContinuousClock.now + options.statementTimeout
        while ContinuousClock.now < deadline {
            Self.pause()
            guard let connection = try? usableConnection() else { continue }
            do throws(DatabaseError) {
                if try connection.link.ask("SELECT pg_xact_status($1::text::xid8)", [.text(id)]).first?[0]
                    == "in progress"
                {
                    continue
                }
            } catch {
                // A number of the future: the server has lost it, and the transaction with it. What the mark says counts.
                guard connection.isUsable else { continue }
            }
            if let found = try? connection.link.ask(PostgresSchema.findMark, [.text(name)]) {
                return found.first?[0] == mark
            }
        }
        throw DatabaseError(
            .undecided, "a commit was sent and not answered: \(error)", cause: (error as? DatabaseError)?.code)
    }

    /// Long enough for a server to come back or a lock to be given up; jittered, so that writers do not meet again.
    private static func pause() {
        usleep(.random(in: 20_000...100_000))
    }
}
