import Threads

/// A pipeline for single-statement queries. Waiting queries with the same text are sent together, each under its own
/// caller's scope, and answered in order. So one connection serves as many callers as it can, and no thread waits
/// meanwhile.
///
/// Only queries with equal texts are batched. A query of a locked table delays only queries of the same table.
final class PostgresQueries: Sendable {
    struct Job: Sendable {
        let woven: SQL.Woven
        /// A query for the service's own records that runs before it, in the same transaction.
        let records: SQL.Woven?
        /// The hash of the texts.
        let kind: Int
        let scope: Scope
        let complete: @Sendable (Result<RowCursor, any Error>) -> Void
        let queuedAt = ContinuousClock.now
    }

    /// The maximum number of queries in a batch. It is large enough to amortize the system calls, and small enough that
    /// the first query does not wait long for the last.
    private static let batchMax = 64
    /// When this many queries wait for each active thread, another thread is worth starting.
    private static let waitingForOne = 16

    private let depthMax: Int
    private let statementTimeout: Duration
    /// The threads that one kind of query may occupy, so that other kinds find a free one.
    private let slowMax: Int
    private let vocabulary: ScopeVocabulary
    /// Settings that are repeated for each transaction on a pooler's connections.
    private let sessionSettings: [(name: String, value: String)]
    private let connect: @Sendable () throws(DatabaseError) -> PostgresLink
    private let threads: [LoopThread]
    /// Signalled when a thread is needed, or the end has come.
    private let state = Locked(State())

    private struct State {
        var jobs: [Job] = []
        var isClosed = false
        /// Threads in a batch that proceeds normally. They will soon take more.
        var quick = 0
        /// Threads in a slow batch, by its kind.
        var slow: [Int: Int] = [:]

        mutating func take(_ kind: Int) -> [Job] {
            quick += 1
            var taken: [Job] = []
            jobs.removeAll { job in
                guard job.kind == kind, taken.count < PostgresQueries.batchMax else { return false }
                taken.append(job)
                return true
            }
            return taken
        }

        mutating func end(_ round: PipelineRound) {
            guard round.isSlow else { return quick -= 1 }
            let left = slow[round.kind, default: 1] - 1
            slow[round.kind] = left > 0 ? left : nil
        }
    }

    init(
        threads: Int, options: StoreOptions, vocabulary: ScopeVocabulary,
        connect: @escaping @Sendable () throws(DatabaseError) -> PostgresLink
    ) {
        self.vocabulary = vocabulary
        self.connect = connect
        depthMax = options.queueDepthMax
        statementTimeout = options.statementTimeout
        sessionSettings = options.isPooled ? PostgresLink.sessionSettings(options) : []
        slowMax = max(1, threads / 2)
        self.threads = (0..<threads).map { _ in LoopThread("postgres-queries") }
        for thread in self.threads { thread.start { [self] in run() } }
    }

    /// Queues a query. An active thread picks it up. Waking another thread for each query would make batches of one.
    func append(_ job: Job) throws(StoreBusy) {
        // Fails alone, because in a batch it would be unknown whose text it was.
        if let error = job.woven.unsendable { return job.complete(.failure(error)) }
        try state.withLock { state throws(StoreBusy) in
            if state.isClosed || state.jobs.count >= depthMax { throw StoreBusy(queueDepth: state.jobs.count) }
            state.jobs.append(job)
            if state.jobs.count > state.quick * Self.waitingForOne { self.state.signal() }
        }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        state.broadcast()
        for thread in threads { thread.join() }
    }

    /// The state of a thread's batch, from its beginning until the next one is taken.
    private struct PipelineRound {
        let kind: Int
        var isSlow = false
    }

    /// Returns the next jobs of one kind, for a thread that has finished a batch. Returns an empty list at the end.
    private func take(after last: PipelineRound?) -> [Job] {
        var last = last
        return state.wait { state in
            if let ended = last {
                state.end(ended)
                last = nil
                // Jobs of its kind were held back while it was slow.
                if ended.isSlow, !state.jobs.isEmpty { self.state.signal() }
            }
            if let kind = state.jobs.first(where: { state.slow[$0.kind, default: 0] < slowMax })?.kind {
                return state.take(kind)
            }
            return state.isClosed && state.jobs.isEmpty ? [] : nil
        }
    }

    /// Records that the batch is slow, so that other jobs do not wait behind it.
    private func noteSlow(_ round: inout PipelineRound) {
        guard !round.isSlow else { return }
        round.isSlow = true
        let kind = round.kind
        let isWanted = state.withLock { state in
            state.quick -= 1
            state.slow[kind, default: 0] += 1
            return !state.jobs.isEmpty
        }
        if isWanted { state.signal() }
    }

    private func run() {
        var link: PostgresLink?
        var round: PipelineRound?
        while true {
            let jobs = take(after: round)
            if jobs.isEmpty { return }
            var present = PipelineRound(kind: jobs[0].kind)
            var rest = jobs[...]
            var mayReconnect = true
            while !rest.isEmpty {
                do {
                    if link?.isAlive() != true {
                        noteSlow(&present)
                        link = try connect()
                        mayReconnect = false
                    }
                    guard let link else { break }
                    link.onSlow = { [self] in noteSlow(&present) }
                    defer { link.onSlow = nil }
                    try runPipeline(&rest, on: link)
                } catch {
                    // A connection that the server closed unnoticed is replaced once.
                    link = nil
                    if mayReconnect, rest.count == jobs.count {
                        mayReconnect = false
                        continue
                    }
                    for job in rest { job.complete(.failure(error)) }
                    rest = []
                }
            }
            round = present
        }
    }

    /// Answers the jobs in order, in one transaction. Before each job, the scope is set to that of its caller. After an
    /// error, the remaining jobs are left for another batch, unless they have waited too long by then.
    ///
    /// - Throws: If the connection is lost. Then no job was answered.
    private func runPipeline(_ rest: inout ArraySlice<Job>, on link: PostgresLink) throws(DatabaseError) {
        while let job = rest.first, ContinuousClock.now - job.queuedAt >= statementTimeout {
            rest.removeFirst()
            job.complete(.failure(DatabaseError(.unavailable, "the query waited too long", cause: .busy)))
        }
        var (commands, settings) = rest.first.map(opening(of:)) ?? ([], [:])
        let opening = commands.count
        var places: [Int] = []
        var previous: Job?
        for job in rest {
            var target = job.scope.predicates.settings(ofQuery: job.kind) {
                vocabulary.settings(of: job.scope, for: job.woven).merging(sessionSettings) { $1 }
            }
            if let fence = job.woven.fence { vocabulary.enter(fence, in: &target) }
            // Consecutive queries of the same caller are common.
            let isSame = job.woven.fence == nil && job.scope.predicates === previous?.scope.predicates
            if !isSame, let command = vocabulary.command(from: settings, to: target) {
                commands.append(command)
            }
            (settings, previous) = (target, job)
            places.append(commands.count)
            commands.append(.init(text: PlacedTexts.text(of: job.woven.text), values: job.woven.binds))
        }
        if places.isEmpty { return }
        try link.forgetIfFull()
        var failure: DatabaseError?
        do {
            _ = try link.exchange(commands)
        } catch {
            guard !link.isBroken else { throw error }
            failure = error
        }
        let results = link.results
        let records = opening > 0 && results.count >= opening ? Self.records(in: results[opening - 1]) : []
        for place in places where place < results.count {
            guard let job = rest.popFirst() else { return }
            let (result, text) = (results[place], job.woven.text)
            job.complete(
                .success(
                    RowCursor(records: records) { body in try result.forEach(text: text, body) }))
        }
        if let failure { rest.popFirst()?.complete(.failure(failure)) }
    }

    private static func records(in result: PostgresResult) -> [(number: Int, text: String)] {
        var found: [(number: Int, text: String)] = []
        try? result.forEach(text: "records") { row in
            found.append((try row.integer(0), try row.text(1)))
            return true
        }
        return found
    }

    /// Returns the commands before queries with records: their transaction sees one snapshot, and returns its records.
    private func opening(of job: Job) -> (commands: [PostgresLink.Command], settings: [String: String]) {
        guard let records = job.records else { return ([], [:]) }
        var settings = vocabulary.settings(of: job.scope, for: records).merging(sessionSettings) { $1 }
        if let fence = records.fence { vocabulary.enter(fence, in: &settings) }
        return (
            [
                Self.repeatableRead, vocabulary.command(from: [:], to: settings),
                .init(text: PlacedTexts.text(of: records.text), values: records.binds),
            ].compactMap(\.self), settings
        )
    }

    private static let repeatableRead = PostgresLink.Command(
        text: "SET LOCAL transaction_isolation = 'repeatable read'")
}
