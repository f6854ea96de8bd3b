import Database
import Values

/// A check of a PostgreSQL server with the service's own queries.
struct ServerCheck {
    private let settings: Settings
    private let replicas: Int

    init(_ settings: Settings, replicas: Int) {
        (self.settings, self.replicas) = (settings, replicas)
    }

    func examine(_ report: (Finding) -> Void) {
        do {
            try withStore(report) { store in
                let version = try store.read { try $0.row("SHOW server_version") { try $0.text(0) } } ?? ""
                report(.good("database", "\(settings.database) answers (PostgreSQL \(version))"))
                let pending = try store.pendingMigrations(Catalog.migrations)
                report(migrations(pending))
                if pending.isEmpty { try Finding.outdatedMemberships(settings, in: store).forEach(report) }
                let trips = try roundTrips(of: store)
                report(Self.latency(trips.map(\.seconds).sorted()))
                if let quickest = trips.min(by: { $0.seconds < $1.seconds }) {
                    report(Self.clock(secondsAhead: quickest.secondsAhead, of: "the database"))
                }
                report(try connections(store))
            }
        } catch {
            let isAway = Operations.isTemporary(error)
            report(
                .fault(
                    "database", "\(settings.database): \(Operations.reason(of: error))",
                    Self.remedy(ofRefusalBy: settings.database, group: "bellhop_service")
                        ?? (isAway ? "start it, or see to the network between" : "correct what it says")))
        }
        if let address = settings.databaseListen { report(listening(at: address)) }
    }

    /// Returns the remedy for a login that the server refuses; nil if the server does not answer, or accepts it.
    ///
    /// - Parameter group: The role whose rights a new login needs, if any.
    static func remedy(ofRefusalBy url: DatabaseURL, group: String?) -> String? {
        LoginRefusal(of: url).flatMap { remedy(of: $0, group: group) }
    }

    static func remedy(of refusal: LoginRefusal, group: String?) -> String? {
        func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
        let member = group.map { " IN ROLE \($0)" } ?? ""
        let role = "CREATE ROLE \(quoted(refusal.user)) LOGIN PASSWORD '…'\(member)"
        switch refusal.sqlState {
        case "3D000":
            let next = group == nil ? "" : "; then run bellhop migrate as its owner"
            return "create it as an administrator: CREATE DATABASE \(quoted(refusal.database))\(next)"
        case "28000":
            return """
                if the role is missing, create it as an administrator: \(role); otherwise allow its login in pg_hba.conf
                """
        case "28P01":
            return "correct the password; if the role is missing, create it as an administrator: \(role)"
        case "42501":
            let grant = "GRANT CONNECT ON DATABASE \(quoted(refusal.database)) TO \(quoted(refusal.user))"
            return "allow it as an administrator: \(grant)"
        case "53300": return "raise max_connections, or the connection limit of the role or the database"
        case "57P03": return "wait until the server has started"
        default: return nil
        }
    }

    /// Works with the store as the service opens it, or read-only if the service must not use this role.
    private func withStore(_ report: (Finding) -> Void, _ work: (DatabaseStore) throws -> Void) throws {
        do {
            try Operations.withStore(settings, .exclusive) { store in
                report(.good("role", "row-level security applies to the service's login"))
                try work(store)
            }
        } catch let error as DatabaseError where error.code == .role {
            report(.fault("role", error.detail, "connect as a login that owns nothing (Docs/operations.md, Two roles)"))
            try Operations.withStore(settings, .readOnly, work)
        }
    }

    private func migrations(_ pending: [String]) -> Finding {
        pending.isEmpty
            ? .good("migrations", "all are applied")
            : .fault("migrations", "\(pending.count) are not applied", "run bellhop migrate as the owner of the tables")
    }

    // MARK: Time

    private struct RoundTrip {
        let seconds: Double
        /// By how much this machine's clock is ahead of the server's, with an error of half the round trip.
        let secondsAhead: Double
    }

    private func roundTrips(of store: DatabaseStore) throws -> [RoundTrip] {
        // Excludes the cost of connecting and of preparing the statement.
        func ask() throws -> RoundTrip {
            let (begun, before) = (ContinuousClock.now, Clock.system.now())
            let theirs = try store.read(isSingle: true) {
                try $0.integer("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")
            }
            let seconds = (.now - begun) / .seconds(1)
            let middle = Double(before.microseconds) / 1e6 + seconds / 2
            return RoundTrip(seconds: seconds, secondsAhead: middle - Double(theirs ?? 0) / 1e6)
        }
        _ = try ask()
        return try (0..<DoctorLimits.roundTrips).map { _ in try ask() }
    }

    /// Returns the finding about the latency.
    ///
    /// - Parameter seconds: The duration of each round trip, in ascending order.
    static func latency(_ seconds: [Double]) -> Finding {
        let (median, most) = (seconds[seconds.count / 2], seconds[seconds.count - 1])
        let text =
            "a query takes \(MachineCheck.milliseconds(median)) (median), \(MachineCheck.milliseconds(most)) (maximum)"
        return median > DoctorLimits.roundTripSecondsHigh
            ? .warning(
                "round trip", text,
                "run the service near its database: in the same zone, without a slow proxy in between")
            : .good("round trip", text)
    }

    static func clock(secondsAhead: Double, of other: String) -> Finding {
        let difference = abs(secondsAhead)
        let rounded = (difference * 1000).rounded() / 1000
        let text = "this clock is \(rounded) s \(secondsAhead < 0 ? "behind" : "ahead of") the clock of \(other)"
        let remedy = "synchronize the clocks with NTP (timedatectl status)"
        if difference > DoctorLimits.clockSecondsHigh { return .fault("clock", text, remedy) }
        return difference > DoctorLimits.clockSecondsLow ? .warning("clock", text, remedy) : .good("clock", text)
    }

    // MARK: Connections

    /// Compares the size of all replicas' pools with the limits of the server, this role and this database.
    private func connections(_ store: DatabaseStore) throws -> Finding {
        let row = try store.read(isSingle: true) { db in
            try db.row(
                """
                SELECT CAST(current_setting('max_connections') AS bigint)
                        - CAST(current_setting('superuser_reserved_connections') AS bigint),
                    (SELECT count(*) FROM pg_stat_activity
                     WHERE backend_type = 'client backend' AND usename IS DISTINCT FROM current_user),
                    (SELECT CAST(rolconnlimit AS bigint) FROM pg_roles WHERE rolname = current_user),
                    (SELECT CAST(datconnlimit AS bigint) FROM pg_database WHERE datname = current_database())
                """
            ) { (try $0.integer(0), try $0.integer(1), try $0.integer(2), try $0.integer(3)) }
        }
        guard let (most, others, ofRole, ofDatabase) = row else {
            return .warning("connections", "the server did not report its limit", "check max_connections")
        }
        let limits = [most - others] + [ofRole, ofDatabase].filter { $0 >= 0 }
        return Self.connections(
            each: settings.connectionsOfReplica, replicas: replicas, free: limits.min() ?? 0,
            isPooled: settings.databasePooled)
    }

    /// Returns the finding about connections.
    ///
    /// - Parameter free: The connections that other clients leave free.
    static func connections(each: Int, replicas: Int, free: Int, isPooled: Bool) -> Finding {
        let needed = each * replicas
        let text = "\(replicas) replicas × \(each) connections; \(free) are available"
        if needed <= free { return .good("connections", text) }
        if isPooled {
            return .warning(
                "connections", text,
                "this limit applies to the pooler: its pool must be smaller than the available number")
        }
        return .fault(
            "connections", text,
            """
            raise max_connections, put PgBouncer in front, or lower \(Settings.variable(\.$databaseConnections)) and \
            \(Settings.variable(\.$databaseWriters))
            """)
    }

    private func listening(at address: DatabaseURL) -> Finding {
        do {
            try Operations.withStore(settings, .readOnly, at: address) { store in
                _ = try store.read(isSingle: true) { try $0.exists("SELECT 1") }
            }
            return .good("notifications", "\(address) answers")
        } catch {
            return .warning(
                "notifications", "\(address): \(Operations.reason(of: error))",
                Self.remedy(ofRefusalBy: address, group: "bellhop_service")
                    ?? """
                    correct \(Settings.variable(\.$databaseListen)): until then, events of other replicas arrive only once per \
                    second
                    """
            )
        }
    }
}

extension Settings {
    /// The maximum number of connections of one replica to PostgreSQL: for reads and writes, LISTEN, and the pump.
    var connectionsOfReplica: Int { databaseConnections + databaseWriters + 2 }
}
