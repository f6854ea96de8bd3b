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
    private static let togetherMax = 32

    private let depthMax: Int
    private let threads: Int
    private let timeout: Duration
    private let vocabulary: ScopeVocabulary
    private let connect: @Sendable () throws(DatabaseError) -> PostgresLink
    /// Guards the variables below; signalled when a job arrives or the end has come.
    private let condition = NSCondition()
    private var jobs: [Job] = []
    private var isClosed = false
    private var running = 0

    init(
        threads: Int, options: StoreOptions, vocabulary: ScopeVocabulary,
        connect: @escaping @Sendable () throws(DatabaseError) -> PostgresLink
    ) {
        self.threads = threads
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

    func append(_ job: Job) throws(StoreBusy) {
        condition.lock()
        defer { condition.unlock() }
        if isClosed || jobs.count >= depthMax { throw StoreBusy(queueDepth: jobs.count) }
        jobs.append(job)
        condition.signal()
    }

    func close() {
        condition.withLock {
            isClosed = true
            condition.broadcast()
            while running > 0 { condition.wait() }
        }
    }

    private func take() -> [Job]? {
        condition.lock()
        defer { condition.unlock() }
        while jobs.isEmpty {
            if isClosed { return nil }
            condition.wait()
        }
        // A fair part: the other threads' connections work at the same time.
        let count = min(Self.togetherMax, (jobs.count + threads - 1) / threads)
        defer { jobs.removeFirst(count) }
        return Array(jobs.prefix(count))
    }

    private func run() {
        var link: PostgresLink?
        while let jobs = take() {
            var rest = jobs[...]
            var wasIdle = true
            while !rest.isEmpty {
                do {
                    if link?.looksAlive() != true {
                        link = try connect()
                        wasIdle = false
                    }
                    guard let link else { break }
                    try answer(&rest, on: link)
                } catch {
                    // A connection that the server closed unseen is replaced once.
                    link = nil
                    if wasIdle, rest.count == jobs.count {
                        wasIdle = false
                        continue
                    }
                    for job in rest { job.complete(.failure(error)) }
                    rest = []
                }
            }
        }
    }

    /// Answers the jobs in their order; those that are not yet answered when the connection is lost are left.
    private func answer(_ rest: inout ArraySlice<Job>, on link: PostgresLink) throws(DatabaseError) {
        let conversation = rest.map { job -> [PostgresLink.Command] in
            let settings = vocabulary.command(
                for: vocabulary.settings(of: job.scope, for: job.woven).map { ($0.key, $0.value) })
            return [settings, .init(text: PlacedTexts.shared.text(of: job.woven.text), values: job.woven.binds)]
        }
        try link.converse(conversation, within: timeout) { result in
            guard let job = rest.popFirst() else { return }
            let text = job.woven.text
            job.complete(
                result.map { results in
                    RowCursor { body in
                        let rows = PostgresRows(results[results.count - 1], text: text)
                        while rows.advance() {
                            if try !body(Row(rows, hiddenColumns: 0)) { break }
                        }
                    }
                })
        }
    }
}
