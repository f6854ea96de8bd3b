import Database
import Domain
import Logging
import Threads
import Values

/// The walk over all badges that hides the shares of features that are off, and shows the others.
///
/// It begins at the start of the service, and again an hour after its end, for what a replica with other settings has
/// written meanwhile. It looks in reads, and writes only if rows differ. Each row says what it hides. So a killed walk
/// loses nothing, and what one replica has changed does not differ for the others.
final class ShareWalk: Sendable {
    private struct Walk {
        /// The last user that was looked at.
        var place: Owner?
        /// By the clock's uptime.
        var dueAt: Duration = .zero
        /// The users whose hidden shares were changed, and those of them whose shown counts changed.
        var changed = 0
        var shown = 0
        var isLogged = false
    }

    /// The time between the end of a walk and the next one.
    static let pauseSeconds = 3600
    /// Users that a read looks at. It takes some milliseconds, and holds back the checkpoints of a file as long.
    static let rowsAtOnceMax = 2000
    /// Users of a transaction, for which their other writes wait, and some milliseconds for which all wait on SQLite. Each
    /// is a lock on PostgreSQL, which has room for some thousands.
    static let usersAtOnceMax = 500
    /// Steps of a turn. Turns are a quarter of a second apart, so at most 24,000 users a second are changed, and a million
    /// in a minute. Without a pace, writes of users would wait behind the walk all the time, and streams would get all
    /// events at once.
    static let stepsAtOnceMax = 12
    private static let pause: Duration = .milliseconds(250)

    private let hidden: BadgeShares
    private let logger: Logger
    private let walk = Locked(Walk())

    init(hiding hidden: BadgeShares, logger: Logger) { (self.hidden, self.logger) = (hidden, logger) }

    /// Whether a walk has ended, and the next one is due later.
    var isResting: Bool { walk.withLock { $0.place == nil && $0.dueAt > .zero } }

    /// Takes some steps, and then pauses.
    func turn(_ runner: TransactionRunner) throws {
        for _ in 0..<Self.stepsAtOnceMax {
            guard try step(runner) else { return }
        }
        walk.withLock { $0.dueAt = runner.clock.uptime() + Self.pause }
    }

    /// Looks at the next users, and changes those that differ.
    ///
    /// - Returns: Whether more users follow.
    func step(_ runner: TransactionRunner) throws -> Bool {
        var walk = walk.withLock { $0 }
        defer { self.walk.withLock { [walk] in $0 = walk } }
        let now = runner.clock.uptime()
        guard walk.dueAt <= now else { return false }
        let piece = try runner.store.read(isSingle: true) { [place = walk.place] db in
            try BadgeLedger.look(
                after: place, hiding: hidden, rowsMax: Self.rowsAtOnceMax, usersMax: Self.usersAtOnceMax, in: db)
        }
        if !piece.differing.isEmpty {
            if !walk.isLogged { logBeginning() }
            walk.isLogged = true
            let (shown, changed) = try change(piece, runner)
            walk.shown += shown
            walk.changed += changed
        }
        walk.place = piece.last
        guard piece.last == nil else { return true }
        if walk.isLogged { logEnd(of: walk) }
        walk = Walk(dueAt: now + .seconds(Self.pauseSeconds))
        return false
    }

    private func change(_ piece: BadgeLedger.Piece, _ runner: TransactionRunner) throws -> (shown: Int, changed: Int) {
        try runner.store.writeAndWait { [hidden] db in
            try db.lock([LockKey.tick("badges.shares").name(in: piece.tenant)])
            return try runner.write(as: .system(tenant: piece.tenant), in: db) {
                try $0.hideShares(hidden, of: piece.differing)
            }
        }
    }

    private func logBeginning() {
        let names = BadgeShare.allCases.filter { hidden.contains(BadgeShares($0)) }.map(\.column)
        logger.info(
            "The badges of users are being changed to the features that are on.",
            metadata: ["hidden": "\(names.isEmpty ? "none" : names.joined(separator: ", "))"])
    }

    private func logEnd(of walk: Walk) {
        logger.info(
            "The badges of all users show the features that are on.",
            metadata: ["users": "\(walk.changed)", "changed": "\(walk.shown)"])
    }
}
