import Database
import Logging
import Rows
import Synchronization
import Threads

/// A reader of an app's log, on its own thread. It acquires the slot, or stands by while another replica holds it.
final class SourceReader: Sendable {
    /// The dependencies of the reader.
    struct Parts: Sendable {
        let url: DatabaseURL
        let intake: SourceIntake
        /// Whether streams are served more slowly than changes arrive.
        let isCongested: @Sendable () -> Bool
    }

    private let parts: Parts
    private let metrics: SourceMetrics
    private let notices: SourceNotices
    private let thread = LoopThread("source")
    /// Whether the loss that is being repaired was logged.
    private let lossIsNoted = Atomic<Bool>(false)
    /// Whether a slot keeps the changes that are not read yet.
    private let hasSlot = Atomic<Bool>(false)
    /// Whether rows after the position were not published, or the server refuses to send them.
    private let hasGap = Atomic<Bool>(false)

    init(_ parts: Parts, metrics: SourceMetrics, logger: Logger) {
        (self.parts, self.metrics, notices) = (parts, metrics, SourceNotices(logger))
    }

    private var slot: String { parts.intake.slot }
    private var tables: [TableDeclaration] { parts.intake.changes.memberships.catalog.tables }
    private var membershipTables: [TableDeclaration] { tables.filter { !$0.memberships.isEmpty } }

    /// Checks whether the log can be read.
    ///
    /// - Throws: A ``SourceProblem`` that an operator must fix. A server that is away is not a problem, because the
    ///   reader retries.
    func check() throws {
        do {
            try SourceServer.check(parts.url, tables: tables, slot: slot)
        } catch let error as SourceError {
            notices.trouble("\(error)")
        }
    }

    /// The reason why changes of rows would be missed; nil once the first slot exists, also while the app's server is away.
    var obstacle: String? {
        hasSlot.load(ordering: .acquiring) ? nil : "The app's log has no slot yet, so changes of rows would be missed."
    }

    /// A stored position belongs to a slot that this or another replica has made.
    private func noteSlot() {
        guard !hasSlot.load(ordering: .acquiring), let position = try? parts.intake.position() else { return }
        if position.lsn.rawValue > 0 { hasSlot.store(true, ordering: .releasing) }
    }

    func start() {
        thread.start { [self] in run() }
    }

    /// Waits until the current part is stored, and returns when the thread has ended.
    func stop() { thread.stop() }

    private func run() {
        var pause = SourceLimits.retryPauses.first
        while !thread.isStopping {
            noteSlot()
            do {
                try readOn { pause = SourceLimits.retryPauses.first }
            } catch {
                if thread.isStopping { break }
                // Another reader was faster. Its position is read now.
                if !(error is SourcePosition.Moved) { notices.trouble("\(error)") }
            }
            metrics.isConnected.store(false, ordering: .relaxed)
            guard thread.pause(for: pause * Double.random(in: 0.5...1)) else { break }
            pause = min(pause * 2, SourceLimits.retryPauses.most)
        }
    }

    /// Reads until the connection or the service ends.
    ///
    /// - Parameter isReading: Called once the first data has arrived. An open stream alone proves little: the server
    ///   may refuse to send the first change.
    private func readOn(_ isReading: @escaping () -> Void) throws {
        let shouldStop: () -> Bool = { [thread] in thread.isStopping }
        // The connection comes first. If another server takes over in between, the connection ends, and the identity is
        // queried again.
        let server = try SourceServer.open(parts.url, shouldStop: shouldStop)
        try server.requireReadable(tables)
        let identity = try SourceServer.identity(of: parts.url, shouldStop: shouldStop)
        // Tables whose stored rows are outdated, with their states. The log was read beyond these states.
        var outdated: [String: String] = [:]
        while !thread.isStopping {
            let begun = try begin(server, identity, reading: outdated, shouldStop)
            noteSlot()
            if let (link, position) = begun {
                metrics.isConnected.store(true, ordering: .relaxed)
                let ignored = try server.reasonToIgnoreEvents()
                var session = SourceSession(
                    link: link, server: server, reader: parts, metrics: metrics, notices: notices, thread: thread,
                    from: position, tables: tables)
                do {
                    outdated = try session.run { [self] in
                        isReading()
                        notices.resetProblems()
                        notices.info("Reading the app's log.", ["slot": "\(slot)", "from": "\(position.lsn)"])
                        if let ignored { notices.ignoresEvents(ignored) }
                    }
                    if outdated.isEmpty { return }
                    continue
                } catch is SourceSession.Gap {
                    return hasGap.store(true, ordering: .relaxed)
                } catch let error as SourceError where error.isUndefinedObject {
                    // The publication did not exist when the next changes were written, so the server will never send
                    // them.
                    hasGap.store(true, ordering: .relaxed)
                    throw error
                }
            }
            _ = thread.pause(for: parts.intake.clock.pause(SourceLimits.standbyPause))
        }
    }

    /// Begins the stream; returns nil while another replica has the slot.
    private func begin(
        _ server: SourceServer, _ identity: SourceIdentity, reading outdated: [String: String],
        _ shouldStop: @escaping () -> Bool
    ) throws -> (SourceConnection, SourcePosition)? {
        let found = try server.slot(named: slot)
        if found?.isActive == true {
            if try isReadByAnotherBellhop(server) { notices.noteForeignReader(of: slot) }
            return nil
        }
        var position = try parts.intake.position()
        let publication = try server.publication(of: tables)
        if try continuity(of: position, slot: found, on: server, identity, publication) != .resumes {
            guard try server.lock(slot) else { return nil }
            position = try remake(server, identity: identity, publication: publication, shouldStop)
            try server.unlock(slot)
        }
        guard var position else { return nil }
        position = try note(identity, publication, with: position)
        position = try readAgain(outdated, server, position)
        let link = try SourceConnection(parts.url, replicates: true, shouldStop: shouldStop)
        do throws(SourceError) {
            _ = try link.ask(
                """
                START_REPLICATION SLOT \(SourceServer.quoted(slot)) LOGICAL \(position.lsn) (proto_version '1', \
                publication_names '\(SourceServer.quoted(SourceServer.publication))', messages 'true')
                """)
        } catch {
            // Another reader was faster.
            if error.sqlState == "55006" { return nil }
            throw error
        }
        return (link, position)
    }

    /// Returns whether the reader of the slot belongs to another database than ours: our own replicas store a position
    /// while they hold the lock.
    private func isReadByAnotherBellhop(_ server: SourceServer) throws -> Bool {
        guard try parts.intake.position() == nil, try server.lock(slot) else { return false }
        defer { try? server.unlock(slot) }
        return try parts.intake.position() == nil
    }

    private func continuity(
        of position: SourcePosition?, slot: SourceServer.Slot?, on server: SourceServer, _ identity: SourceIdentity,
        _ publication: SourcePublication
    ) throws -> SourceContinuity {
        let continuity = SourceContinuity(
            SourcePosition.continuity(of: position, publication), slot?.state, of: identity, end: try server.end())
        return continuity == .resumes && hasGap.load(ordering: .relaxed) ? .lost(.unpublished) : continuity
    }

    /// Stores the current publication with the position, because the tables may have changed.
    private func note(
        _ identity: SourceIdentity, _ publication: SourcePublication, with known: SourcePosition
    ) throws -> SourcePosition {
        var position = known
        (position.source, position.publication) = ("\(identity)", "\(publication)")
        // The changes of a table without memberships are not taken in. If it gets some later, it has to be read again.
        let names = Set(membershipTables.map(\.qualifiedName))
        position.tables = position.tables.filter { names.contains($0.key) }
        guard position != known else { return known }
        _ = try parts.intake.writeWaitingForRoom(.init([], from: known, to: position), on: thread)
        return position
    }

    /// Recreates the slot, reads the snapshot at which it begins, and stores the position. Called under the lock.
    private func remake(
        _ server: SourceServer, identity: SourceIdentity, publication: SourcePublication,
        _ shouldStop: @escaping () -> Bool
    ) throws -> SourcePosition? {
        let (known, found) = (try parts.intake.position(), try server.slot(named: slot))
        let continuity = try continuity(of: known, slot: found, on: server, identity, publication)
        // Another replica has created the slot meanwhile.
        if continuity == .resumes { return known }
        if found?.isActive == true { return nil }
        if case .lost(let loss) = continuity { note(loss) }
        // Stored before the slot is touched. If a slot exists while its mark is stored, its start is unknown.
        let mark = SourcePosition.making(isFirst: continuity == .begins)
        _ = try parts.intake.writeWaitingForRoom(.init([], from: known, to: mark), on: thread)
        if found != nil { try server.drop(slot) }
        let states = try server.states(of: membershipTables, by: parts.intake.changes.memberships.rules)
        let link = try SourceConnection(parts.url, replicates: true, shouldStop: shouldStop)
        let made = try link.ask("CREATE_REPLICATION_SLOT \(SourceServer.quoted(slot)) LOGICAL pgoutput EXPORT_SNAPSHOT")
        guard let row = made.first, row.count >= 3, let start = row[1].flatMap({ LSN($0) }), let snapshot = row[2]
        else {
            throw SourceProblem("the server created a slot but did not report its start position")
        }
        let state = SourceSnapshot(
            server: server, intake: parts.intake, tables: membershipTables, thread: thread, earlier: .removed)
        notices.rejected(try state.read(at: snapshot, while: mark))
        let position = SourcePosition(
            source: "\(identity)", lsn: start, tables: states, publication: "\(publication)")
        // Rows were missed.
        let restartStreams = parts.intake.changes.restartStreams
        _ = try parts.intake.writeWaitingForRoom(
            .init([], from: mark, to: position), on: thread,
            also: { if continuity != .begins { try restartStreams($0) } })
        lossIsNoted.store(false, ordering: .relaxed)
        hasGap.store(false, ordering: .relaxed)
        if !membershipTables.isEmpty {
            notices.info("The app's tables with memberships have been read.", ["tables": "\(membershipTables.count)"])
        }
        withExtendedLifetime(link) {}
        return position
    }

    /// Logs a loss once, however often creating the slot fails.
    private func note(_ loss: SourceContinuity.Loss) {
        guard !lossIsNoted.exchange(true, ordering: .relaxed) else { return }
        metrics.add(1, to: metrics.slotsLost)
        notices.error(
            "The position in the app's log was lost. All streams resync, and tables with memberships are read again.",
            ["slot": "\(slot)", "reason": "\(loss.rawValue)"])
    }

    /// Reads tables with memberships whose stored rows are outdated. The log may still deliver changes of them that are
    /// older than this read, followed by the newer ones.
    ///
    /// - Parameter outdated: Their states, from before the stored position. If the log were read on from an earlier one,
    ///   it could restore rows that were removed without a message.
    private func readAgain(
        _ outdated: [String: String], _ server: SourceServer, _ known: SourcePosition
    ) throws -> SourcePosition {
        let tables = membershipTables.filter { outdated[$0.qualifiedName] != nil }
        guard !tables.isEmpty else { return known }
        // Its rows give no keys, but the log is read on.
        for table in tables {
            for obstacle in try server.parts(of: table).compactMap(\.obstacle) { notices.noteUnreadRows(obstacle) }
        }
        let state = SourceSnapshot(
            server: server, intake: parts.intake, tables: tables, thread: thread, earlier: .compared)
        notices.rejected(try state.read(at: nil, while: known))
        var position = known
        position.tables.merge(outdated) { $1 }
        _ = try parts.intake.writeWaitingForRoom(.init([], from: known, to: position), on: thread)
        metrics.add(tables.count, to: metrics.tablesRead)
        notices.info(
            "Tables with memberships were read again, because their rows or the file had changed without a message in the log.",
            ["tables": "\(tables.map(\.qualifiedName).joined(separator: ", "))"])
        return position
    }
}
