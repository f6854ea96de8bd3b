import Database
import Rows
import Synchronization
import Threads
import Values

/// One stream of an app's log from a position on. It gathers the received messages, and takes them in part by part.
///
/// It reports to the server only how far the log is stored here, so the server retains everything that could be lost.
/// The session belongs to the reader's thread.
struct SourceSession {
    let link: SourceConnection
    let server: SourceServer
    let intake: SourceIntake
    let metrics: SourceMetrics
    let notices: SourceNotices
    let thread: LoopThread
    let clock: Clock
    let tables: [TableDeclaration]
    /// Whether streams are served more slowly than changes come.
    let isCongested: @Sendable () -> Bool
    private var decoder: SourceDecoder
    private var known: SourcePosition
    private var waiting: [SourceDecoder.Piece] = []
    private var (waitingItems, waitingBytes) = (0, 0)
    private var received: LSN
    private var confirmed: LSN
    private var logEnd: LSN
    private var statusAt = ContinuousClock.now
    private var storedAt: Duration
    private var isStatusWanted = false
    /// Bytes of the largest frame so far: libpq keeps as much memory until the connection ends.
    private var largestFrame = 0
    /// The time of the last check of the publication.
    private var publicationAskedAt: Duration
    private var isMissingRows = false
    /// The time of the last look at the catalog; nil before the first.
    private var statesAskedAt: Duration?
    /// Tables whose stored rows are outdated, with their states, and the end of the log after these were read.
    private var outdated: (states: [String: String], end: LSN)?
    /// Called once, when the first data has arrived.
    private var onFirstData: (() -> Void)?

    init(
        link: SourceConnection, server: SourceServer, reader: borrowing SourceReader.Parts, metrics: SourceMetrics,
        notices: SourceNotices, thread: LoopThread, from position: SourcePosition,
        tables: [TableDeclaration]
    ) {
        (self.link, self.server, self.metrics, self.notices, self.thread) = (link, server, metrics, notices, thread)
        self.tables = tables
        (intake, isCongested, clock) = (reader.intake, reader.isCongested, reader.intake.runner.clock)
        decoder = SourceDecoder(server, reader.intake.changes.memberships.catalog, from: position, clock: clock)
        known = position
        (received, confirmed, logEnd) = (position.lsn, position.lsn, position.lsn)
        storedAt = clock.uptime()
        publicationAskedAt = storedAt
    }

    /// Reads and stores until the thread stops.
    ///
    /// - Parameter onFirstData: Called once the first data has arrived.
    /// - Returns: The states of tables that must be read again before the stream continues.
    /// - Throws: If the stream ends, or a part cannot be stored. Earlier parts stay stored.
    mutating func run(_ onFirstData: @escaping () -> Void) throws -> [String: String] {
        self.onFirstData = onFirstData
        // The heartbeat returns through the log, even if the log contains nothing else.
        try server.beat()
        while !thread.isStopping {
            try requirePublication()
            try lookForOutdatedTables()
            let hasMore = try gather()
            if !waiting.isEmpty {
                try waitForStreams()
                try storeWaiting()
                if let states = try takeOutdated() { return states }
                if try shouldReplaceConnection() { return [:] }
                continue
            }
            try moveIfIdle()
            if try shouldReplaceConnection() { return [:] }
            if let states = try takeOutdated() { return states }
            try sendHeartbeatIfDue()
            noteLag(of: nil)
            try sendStatusIfDue()
            if !hasMore { try link.waitForFrame() }
        }
        return [:]
    }

    // MARK: Reading

    /// Takes the received frames, up to the size of a part.
    ///
    /// - Returns: Whether there may be more.
    private mutating func gather() throws -> Bool {
        defer { received = max(received, decoder.reached.lsn) }
        for _ in 0..<SourceLimits.framesAtOnceMax {
            guard waitingItems < SourceLimits.batchItemsMax, waitingBytes < SourceLimits.batchBytesMax else {
                return true
            }
            guard let frame = try link.receive() else { return false }
            largestFrame = max(largestFrame, frame.count)
            switch try ReplicationFrame(reading: frame) {
            case .data(let end, let message):
                logEnd = max(logEnd, end)
                let (before, unsigned) = (decoder.transactions, decoder.unsigned)
                if let piece = try decoder.take(message) {
                    waiting.append(piece)
                    waitingItems += piece.items.count
                    waitingBytes += piece.bytes
                }
                metrics.add(decoder.transactions - before, to: metrics.transactions)
                if decoder.unsigned > unsigned {
                    metrics.add(1, to: metrics.unsigned)
                    notices.unsigned()
                }
            case .keepalive(let place, let wantsReply):
                (received, logEnd) = (max(received, place), max(logEnd, place))
                if wantsReply {
                    // A server that shuts down waits until everything that it sent is confirmed.
                    decoder.note(sentUpTo: place)
                    isStatusWanted = true
                }
            }
        }
        return true
    }

    /// Returns whether the connection must be replaced to release memory. This happens only between transactions,
    /// because the server would send an unfinished transaction again from its beginning.
    private mutating func shouldReplaceConnection() throws -> Bool {
        guard largestFrame > SourceLimits.frameBytesKept, decoder.isBetweenTransactions else { return false }
        if decoder.reached != known { try store([], to: decoder.reached) }
        return true
    }

    /// Waits for the streams. Meanwhile it sends statuses, so that the server does not end the connection.
    private mutating func waitForStreams() throws {
        while isCongested(), !thread.isStopping {
            try sendStatusIfDue()
            _ = thread.pause(for: SourceLimits.congestionPause)
        }
    }

    // MARK: Storing

    private mutating func storeWaiting() throws {
        let pieces = waiting
        (waiting, waitingItems, waitingBytes) = ([], 0, 0)
        guard let last = pieces.last else { return }
        // Includes the message that came after it: the end of its transaction.
        let end = decoder.isBetweenTransactions ? decoder.reached : last.position
        do {
            try store(pieces.flatMap(\.items), to: end)
        } catch let error where !Self.isTemporary(error) {
            // One of them is invalid. Each is stored on its own, so that the error affects only itself.
            for piece in pieces { try storeSeparately(piece) }
        }
        noteLag(of: last)
    }

    private mutating func storeSeparately(_ piece: SourceDecoder.Piece) throws {
        do {
            try store(piece.items, to: piece.position)
        } catch let error where !Self.isTemporary(error) {
            try store([.rejected("cannot be stored: \(error)")], to: piece.position)
        }
    }

    /// Whether another attempt, from the position stored by then, may succeed.
    private static func isTemporary(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return true }
        return error.isTransient || error.code == .undecided || error.cause?.isTransient ?? false
    }

    private mutating func store(_ items: [SourceItem], to position: SourcePosition) throws {
        let intake = intake
        let outcome = try intake.writeWaitingForRoom(
            .init(items, from: known, to: position), on: thread, meanwhile: { try sendStatusIfDue() })
        known = position
        if position.taken == 0 { confirmed = position.lsn }
        storedAt = clock.uptime()
        noteReading()
        metrics.add(outcome.taken, to: metrics.rows)
        metrics.add(outcome.rejected.count, to: metrics.rejected)
        notices.rejected(outcome.rejected)
        try sendStatus()
    }

    /// Stores the received position if nothing else does: after a heartbeat, and when the server asks.
    private mutating func moveIfIdle() throws {
        let hasHeartbeat = decoder.takeHeartbeat()
        guard hasHeartbeat || isStatusWanted, decoder.isBetweenTransactions else { return }
        isStatusWanted = false
        if decoder.reached != known { try store([], to: decoder.reached) } else { try sendStatus() }
        if hasHeartbeat { noteReading() }
    }

    private mutating func noteReading() {
        onFirstData?()
        onFirstData = nil
    }

    /// The error for rows that were not published for a while, and are published again.
    struct Gap: Error, CustomStringConvertible {
        let description = "some rows of the app were not published"
    }

    /// Checks at intervals whether the tables are still published. If some are not, the others are still read.
    ///
    /// - Throws: ``Gap`` once all tables are published again.
    private mutating func requirePublication() throws {
        let now = clock.uptime()
        guard now - publicationAskedAt >= SourceLimits.publicationPause else { return }
        publicationAskedAt = now
        do {
            try server.requirePublication(of: tables)
        } catch let problem as SourceProblem {
            notices.noteMissedRows("\(problem)")
            isMissingRows = true
            return
        }
        let publication = try server.publication(of: tables)
        let isSame = known.publication.map { publication.continues(SourcePublication($0)) } ?? true
        if isMissingRows || !isSame { throw Gap() }
    }

    /// Checks at intervals whether the stored rows of tables with memberships are outdated: the catalog or the file have
    /// changed since they were read, or another replica's file has taken their rules away.
    private mutating func lookForOutdatedTables() throws {
        let now = clock.uptime()
        guard outdated == nil, statesAskedAt.map({ now - $0 >= SourceLimits.statesPause }) ?? true else { return }
        statesAskedAt = now
        let declared = tables.filter { !$0.memberships.isEmpty }
        let registry = intake.changes.memberships
        var states = try server.states(of: declared, by: registry.rules)
        let unruled = registry.known.memberships.outdated.isEmpty ? [] : try intake.outdatedTables()
        states = states.filter { known.tables[$0.key] != $0.value || unruled.contains($0.key) }
        guard !states.isEmpty else { return }
        // Whatever the catalog hides now was written before this place.
        outdated = (states, try server.insertPlace())
        try server.beat()
    }

    /// Returns the states of the outdated tables once the log up to the look at them is stored. An earlier message would
    /// restore a row that was removed without one.
    private mutating func takeOutdated() throws -> [String: String]? {
        guard let outdated, decoder.isBetweenTransactions, decoder.reached.lsn >= outdated.end else { return nil }
        if decoder.reached != known { try store([], to: decoder.reached) }
        return outdated.states
    }

    private mutating func sendHeartbeatIfDue() throws {
        guard clock.uptime() - storedAt >= SourceLimits.heartbeatPause else { return }
        storedAt = clock.uptime()
        try server.beat()
    }

    // MARK: Reporting

    private mutating func sendStatusIfDue() throws {
        if isStatusWanted || ContinuousClock.now - statusAt >= SourceLimits.statusPause { try sendStatus() }
    }

    private mutating func sendStatus() throws {
        let since2000 = clock.now().microseconds - 946_684_800_000_000
        try link.send(ReplicationFrame.status(received: received, stored: confirmed, microseconds: since2000))
        statusAt = .now
    }

    private func noteLag(of piece: SourceDecoder.Piece?) {
        let bytes = logEnd > known.lsn ? logEnd.rawValue - known.lsn.rawValue : 0
        metrics.lagBytes.store(Int(clamping: bytes), ordering: .relaxed)
        let milliseconds = piece.map { max(0, clock.now().microseconds - $0.committedAt.microseconds) / 1000 } ?? 0
        metrics.lagMilliseconds.store(Int(milliseconds), ordering: .relaxed)
    }
}
