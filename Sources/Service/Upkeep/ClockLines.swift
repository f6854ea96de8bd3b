import Database
import Threads
import Values

/// The store of ``ClockLine``: a process that starts again on the same machine continues with the proven clock.
final class ClockLines: Sendable {
    static let lines = ServiceTable("clock_lines", person: .nothing("times of machines"))

    static let migration = Migration(
        "0001_clock_lines",
        sql: [
            """
            CREATE TABLE clock_lines (
                boot TEXT NOT NULL PRIMARY KEY,
                difference INTEGER NOT NULL,
                stands_since INTEGER NOT NULL,
                is_proven INTEGER NOT NULL,
                reached INTEGER NOT NULL
            ) STRICT
            """
        ])

    /// Runs of machines that are remembered. Without this limit, each start of a machine would leave a row for ever.
    private static let linesMax = 64
    /// Seconds between two looks.
    static let everySeconds = 60
    /// Seconds after which a reached time is stored again. A machine that starts with an earlier time is wrong.
    private static let reachedSeconds: Int64 = 900

    private let clock: Clock
    private let steady: SteadyClock
    private let stored = Locked<(line: ClockLine, reached: Timestamp)?>(nil)

    init(_ clock: Clock, _ steady: SteadyClock) { (self.clock, self.steady) = (clock, steady) }

    /// Returns the line of this run of the machine, and the latest proven time of all runs.
    static func read(boot: String?, in db: DatabaseConnection) throws -> (line: ClockLine?, reached: Timestamp?) {
        let line = try db.row(
            """
            SELECT difference, stands_since, is_proven FROM \(lines) WHERE boot = \(boot ?? "")
            """
        ) { row in
            ClockLine(
                difference: Int64(try row.integer(0)), since: .microseconds(Int64(try row.integer(1))),
                isProven: try row.bool(2))
        }
        let reached = try db.integer("SELECT max(reached) FROM \(lines) WHERE is_proven = 1")
        return (line, reached.map { Timestamp(microseconds: Int64($0)) })
    }

    /// Compares the clock with that of a database server, and stores the changes.
    func look(in store: DatabaseStore) throws {
        if clock.isSystem, store.engine == .postgreSQL {
            let server = try store.read(isSingle: true) { db in
                try db.integer("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
            }
            if let server { steady.note(server: Timestamp(microseconds: Int64(server))) }
        }
        let (line, now) = (steady.line, clock.now())
        guard let boot = clock.boot, isNew(line, at: now) else { return }
        try store.writeAndWait { db in
            try db.run(
                """
                INSERT INTO \(Self.lines) (boot, difference, stands_since, is_proven, reached)
                VALUES (\(boot), \(Int(line.difference)), \(Int(line.since / .microseconds(1))), \(line.isProven), \(now))
                ON CONFLICT (boot) DO UPDATE SET difference = excluded.difference,
                    stands_since = excluded.stands_since, is_proven = excluded.is_proven, reached = excluded.reached
                """)
            try db.run(
                """
                DELETE FROM \(Self.lines) WHERE boot IN (
                    SELECT boot FROM \(Self.lines) ORDER BY reached DESC, boot LIMIT \(Self.linesMax) OFFSET \(Self.linesMax))
                """)
        }
        stored.withLock { $0 = (line, now) }
    }

    private func isNew(_ line: ClockLine, at now: Timestamp) -> Bool {
        guard let last = stored.withLock({ $0 }) else { return true }
        return line.isProven != last.line.isProven || abs(line.difference - last.line.difference) > ClockLine.slack
            || line.isProven && last.reached.adding(seconds: Self.reachedSeconds) <= now
    }
}
