import Foundation

/// Answers queries of one statement, many of them in one conversation: what waits is sent together, each query its own
/// transaction under its own scope, and answered in order. A connection so serves as many callers as it can, and nobody
/// holds a thread while waiting.
///
/// `@unchecked Sendable`: the variables are only touched while `condition` is locked.
final class PostgresQueries: @unchecked Sendable {
    struct Job: Sendable {
        let woven: SQL.Woven
        let scope: Scope
        let complete: @Sendable (Result<RowCursor, DatabaseError>) -> Void
    }

    /// Queries of one conversation: enough to make its system calls a small part, few enough that the first is not kept
    /// waiting by the last.
    private static let togetherMax = 64
    /// As many as wait for a thread that is at work are worth another one.
    private static let waitingForOne = 16

    private let depthMax: Int
    private let timeout: Duration
    private let vocabulary: ScopeVocabulary
    private let connect: @Sendable () throws(DatabaseError) -> PostgresLink
    /// Guards the variables below; signalled when a thread is wanted or the end has come.
    private let condition = NSCondition()
    private var jobs: [Job] = []
    private var isClosed = false
    private var running: Int
    /// Threads in a conversation that goes on as it should: they will be back for more in a moment.
    private var quick = 0

    init(
        threads: Int, options: StoreOptions, vocabulary: ScopeVocabulary,
        connect: @escaping @Sendable () throws(DatabaseError) -> PostgresLink
    ) {
        self.vocabulary = vocabulary
        self.connect = connect
        depthMax = options.queueDepthMax
        timeout = options.statementTimeout + .seconds(1)
        running = threads
        for _ in 0..<threads {
            ThreadWork.startThread("postgres-queries") { [self] in
                run()
                condition.withLock {
                    running -= 1
                    condition.broadcast()
                }
            }
        }
    }

    /// Queues a query. A thread that is at work takes it along: waking another for each would make conversations of one.
    func append(_ job: Job) throws(StoreBusy) {
        // Alone: in a conversation nobody could tell whose text it was.
        if let error = job.woven.unsendable { return job.complete(.failure(error)) }
        condition.lock()
        defer { condition.unlock() }
        if isClosed || jobs.count >= depthMax { throw StoreBusy(queueDepth: jobs.count) }
        jobs.append(job)
        if jobs.count > quick * Self.waitingForOne { condition.signal() }
    }

    func close() {
        condition.withLock {
            isClosed = true
            condition.broadcast()
            while running > 0 { condition.wait() }
        }
    }

    /// The next jobs, for a thread whose last conversation was quick or not.
    private func take(wasQuick: Bool?) -> [Job]? {
        condition.lock()
        defer { condition.unlock() }
        if wasQuick == true { quick -= 1 }
        while jobs.isEmpty {
            if isClosed { return nil }
            condition.wait()
        }
        quick += 1
        let count = min(Self.togetherMax, jobs.count)
        defer { jobs.removeFirst(count) }
        return Array(jobs.prefix(count))
    }

    private func run() {
        var link: PostgresLink?
        var isQuick: Bool?
        while let jobs = take(wasQuick: isQuick) {
            isQuick = true
            // Others must not wait behind what is slow.
            let noteSlow = { [self] in
                isQuick = false
                condition.withLock {
                    quick -= 1
                    if !self.jobs.isEmpty { condition.signal() }
                }
            }
            var rest = jobs[...]
            var mayReconnect = true
            while !rest.isEmpty {
                do {
                    if link?.looksAlive() != true {
                        link = try connect()
                        mayReconnect = false
                    }
                    guard let link else { break }
                    link.isSlow = { if isQuick == true { noteSlow() } }
                    try converse(&rest, on: link)
                } catch {
                    // A connection that the server closed unseen is replaced once.
                    link = nil
                    if mayReconnect, rest.count == jobs.count {
                        mayReconnect = false
                        continue
                    }
                    for job in rest { job.complete(.failure(error)) }
                    rest = []
                }
            }
        }
    }

    /// Answers the jobs in their order, in one transaction: before each, the scope is made the caller's own. After an
    /// error those behind it are left, for another conversation.
    ///
    /// - Throws: when the connection is lost; nobody was answered then.
    private func converse(_ rest: inout ArraySlice<Job>, on link: PostgresLink) throws(DatabaseError) {
        var commands: [PostgresLink.Command] = []
        var places: [Int] = []
        var settings: [String: String] = [:]
        for job in rest {
            let target = vocabulary.settings(of: job.scope, for: job.woven)
            if let command = vocabulary.command(from: settings, to: target) { commands.append(command) }
            settings = target
            places.append(commands.count)
            commands.append(.init(text: PlacedTexts.shared.text(of: job.woven.text), values: job.woven.binds))
        }
        var failure: DatabaseError?
        do {
            _ = try link.exchange(commands, within: timeout)
        } catch {
            guard !link.isBroken else { throw error }
            failure = error
        }
        let results = link.results
        for place in places where place < results.count {
            guard let job = rest.popFirst() else { return }
            let (result, text) = (results[place], job.woven.text)
            job.complete(
                .success(
                    RowCursor { body in
                        let rows = PostgresRows(result, text: text)
                        while rows.advance() {
                            if try !body(Row(rows, hiddenColumns: 0)) { break }
                        }
                    }))
        }
        if let failure { rest.popFirst()?.complete(.failure(failure)) }
    }
}
