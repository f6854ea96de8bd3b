import Database
import Rows

/// A problem that prevents reading an app's log, with the operator's remedy, in one line.
struct SourceProblem: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = "source: \(description)" }
}

/// The app's PostgreSQL, and the requirements for reading its log.
struct SourceServer {
    /// The publication, which selects the tables whose log is read.
    static let publication = "bellhop"
    static let versionMin = 140_000

    let connection: SourceConnection

    func ask(_ text: String, _ values: [String?] = []) throws(SourceError) -> [[String?]] {
        try connection.ask(text, values)
    }

    func value(_ text: String, _ values: [String?] = []) throws(SourceError) -> String? {
        try ask(text, values).first?.first ?? nil
    }

    /// Returns the identity of the log.
    ///
    /// - Throws: A ``SourceProblem`` if an intermediary does not support replication.
    static func identity(of url: DatabaseURL, shouldStop: @escaping () -> Bool) throws -> SourceIdentity {
        do throws(SourceError) {
            let link = try SourceConnection(url, replicates: true, shouldStop: shouldStop)
            let row = try link.ask("IDENTIFY_SYSTEM").first ?? []
            if row.count >= 4, let system = row[0], let timeline = row[1], let database = row[3] {
                return SourceIdentity(system: system, database: database, timeline: timeline)
            }
        } catch {
            guard let state = error.sqlState, !error.isTransient else { throw error }
            switch state {
            case "42501", "28000", "28P01", "3D000": throw SourceProblem(loginRemedy(error))
            default: break
            }
        }
        throw SourceProblem(
            """
            a pooler is in between, which does not support replication: use the database's own host and port (Supabase: the \
            direct connection, db.PROJECT.supabase.co:5432)
            """)
    }

    private static func loginRemedy(_ error: SourceError) -> String {
        error.sqlState == "42501"
            ? "the role lacks REPLICATION: run ALTER ROLE name REPLICATION (RDS: GRANT rds_replication TO name)"
            : "the login was rejected (\(error)): correct the user, password or database in the URL, or the server's pg_hba.conf"
    }

    /// Opens an ordinary connection.
    static func open(_ url: DatabaseURL, shouldStop: @escaping () -> Bool) throws -> SourceServer {
        do throws(SourceError) {
            return SourceServer(connection: try SourceConnection(url, shouldStop: shouldStop))
        } catch {
            if error.isTransient { throw error }
            throw SourceProblem(loginRemedy(error))
        }
    }

    // MARK: Checks

    /// Checks whether a log can be read.
    ///
    /// - Throws: A ``SourceProblem`` that an operator must fix, or a `SourceError` if the server is away.
    static func check(_ url: DatabaseURL, tables: [TableDeclaration], slot name: String) throws {
        let server = try open(url) { false }
        try server.requireReadable(tables)
        _ = try identity(of: url) { false }
        _ = try server.slot(named: name)
    }

    /// Checks all requirements.
    ///
    /// - Throws: The first ``SourceProblem`` found.
    func requireReadable(_ tables: [TableDeclaration]) throws {
        guard connection.serverVersion >= Self.versionMin else {
            throw SourceProblem(
                "PostgreSQL 14 or later is required, but the server is version \(connection.serverVersion / 10_000): upgrade it"
            )
        }
        if try value("SELECT pg_is_in_recovery()") == "t" {
            throw SourceProblem("the server is a standby: use the URL of the primary")
        }
        let level = try value("SHOW wal_level") ?? ""
        guard level == "logical" else {
            throw SourceProblem(
                """
                wal_level is \(level): run ALTER SYSTEM SET wal_level = logical and restart the server (RDS: \
                rds.logical_replication = 1 in the parameter group)
                """)
        }
        let mayReplicate = try value(
            """
            SELECT rolsuper OR rolreplication OR EXISTS (SELECT 1 FROM pg_roles r
                WHERE r.rolname = 'rds_replication' AND pg_has_role(current_user, r.oid, 'member'))
            FROM pg_roles WHERE rolname = current_user
            """)
        guard mayReplicate == "t" else {
            throw SourceProblem(
                "the role lacks REPLICATION: run ALTER ROLE name REPLICATION (RDS: GRANT rds_replication TO name)")
        }
        try requirePublication(of: tables)
        for table in tables where !table.memberships.isEmpty { try requireSelect(on: table) }
    }

    func publication(of tables: [TableDeclaration]) throws(SourceError) -> SourcePublication {
        let bySchema = """
            UNION ALL SELECT p.oid, n.nspname, NULL, s.oid, p.xmin FROM pg_publication p
            JOIN pg_publication_namespace s ON s.pnpubid = p.oid JOIN pg_namespace n ON n.oid = s.pnnspid
            WHERE p.pubname = $1
            """
        let rows = try ask(
            """
            SELECT p.oid, n.nspname, c.relname, r.oid, p.xmin FROM pg_publication p
            LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid
            LEFT JOIN pg_class c ON c.oid = r.prrelid LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE p.pubname = $1 \(connection.serverVersion >= 150_000 ? bySchema : "")
            """, [Self.publication])
        var entries: [String: String] = [:]
        for table in tables {
            let ofTable = rows.first { $0[1] == table.schema && $0[2] == table.name }
            let ofSchema = rows.first { $0[1] == table.schema && $0[2] == nil }
            entries[table.qualifiedName] = (ofTable ?? ofSchema)?[3]
        }
        return SourcePublication(
            id: rows.first?[0] ?? "none", change: rows.first?[4], entries: entries, of: tables.map(\.qualifiedName))
    }

    /// Checks that no other table inherits from the tables. PostgreSQL returns its rows with the rows of the parent,
    /// and publishes them under its own name, so their memberships would never be known.
    func requireNoHeirs(of tables: [TableDeclaration]) throws {
        let found = try ask(
            """
            SELECT format('%I.%I', own.schema, own.name), format('%I.%I', nh.nspname, heir.relname)
            FROM unnest($1::text[], $2::text[]) AS own (schema, name)
            JOIN pg_namespace n ON n.nspname = own.schema
            JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = own.name AND c.relkind = 'r'
            JOIN pg_inherits i ON i.inhparent = c.oid
            JOIN pg_class heir ON heir.oid = i.inhrelid JOIN pg_namespace nh ON nh.oid = heir.relnamespace
            ORDER BY 1, i.inhseqno LIMIT 1
            """, [Self.array(tables.map(\.schema)), Self.array(tables.map(\.name))])
        guard let names = found.first, let table = names[0], let heir = names[1] else { return }
        throw SourceProblem(
            """
            the table \(heir) inherits from \(table), and its rows are not read: use partitions instead, or run \
            ALTER TABLE \(heir) NO INHERIT \(table)
            """)
    }

    /// Checks that all rows of the tables are published.
    ///
    /// - Throws: A ``SourceProblem`` if rows of a table would be missed.
    func requirePublication(of tables: [TableDeclaration]) throws {
        try requireNoHeirs(of: tables)
        let remedy = "run bellhop source setup with this table file"
        let found = try ask(
            "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot FROM pg_publication WHERE pubname = $1",
            [Self.publication])
        guard let publication = found.first else {
            throw SourceProblem("the publication \(Self.publication) does not exist: \(remedy)")
        }
        guard publication == ["t", "t"] else {
            throw SourceProblem(
                "the publication \(Self.publication) lacks operations, or lists partitions one by one: \(remedy)"
            )
        }
        let published = try ask(
            "SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = $1", [Self.publication]
        ).compactMap(\.first)
        let missing = tables.map(\.qualifiedName).filter { !published.contains($0) }
        guard missing.isEmpty else {
            throw SourceProblem(
                "the publication \(Self.publication) lacks \(missing.joined(separator: ", ")): \(remedy)")
        }
    }

    /// Checks that the role may read a table and all its partitions.
    private func requireSelect(on table: TableDeclaration) throws {
        if let obstacle = try parts(of: table).lazy.compactMap(\.obstacle).first { throw SourceProblem(obstacle) }
    }

    /// A table, or one of its partitions, to which no further partitions belong.
    struct Part {
        let name: String
        let quotedName: String
        /// Whether it stores rows itself. A partitioned table does not.
        let storesRows: Bool
        let isReadable: Bool
        /// Whether row-level security applies to the role.
        let hidesRows: Bool

        /// The reason why the role cannot read all rows, with the remedy; nil if it can.
        var obstacle: String? {
            if !isReadable {
                return
                    "the role may not read \(name), which defines memberships: run GRANT SELECT ON \(name) TO name"
            }
            return hidesRows
                ? "row-level security hides rows of \(name) from the role: run ALTER ROLE name BYPASSRLS" : nil
        }
    }

    /// Returns a table and its partitions. Each partition is read by itself.
    func parts(of table: TableDeclaration) throws(SourceError) -> [Part] {
        try ask(
            """
            SELECT n.nspname || '.' || c.relname, quote_ident(n.nspname) || '.' || quote_ident(c.relname),
                c.relkind = 'r',
                has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
                row_security_active(c.oid)
            FROM pg_class root JOIN pg_namespace r ON r.oid = root.relnamespace,
                LATERAL (SELECT root.oid AS id UNION
                    SELECT t.relid FROM pg_partition_tree(root.oid) t WHERE t.isleaf) part
                JOIN pg_class c ON c.oid = part.id JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE r.nspname = $1 AND root.relname = $2
            """, [table.schema, table.name]
        ).map { row in
            Part(
                name: row[0] ?? table.qualifiedName, quotedName: row[1] ?? "", storesRows: row[2] == "t",
                isReadable: row[3] == "t", hidesRows: row[4] == "t")
        }
    }

    // MARK: Slots

    struct Slot {
        let isActive: Bool
        let state: SourceContinuity.Slot
    }

    /// Returns the slot.
    ///
    /// - Throws: A ``SourceProblem`` if the slot belongs to another program.
    func slot(named name: String) throws -> Slot? {
        let rows = try ask(
            """
            SELECT plugin, database = current_database(), active, wal_status = 'lost', confirmed_flush_lsn
            FROM pg_replication_slots WHERE slot_name = $1
            """, [name])
        guard let row = rows.first else { return nil }
        guard row[0] == "pgoutput", row[1] == "t" else {
            throw SourceProblem(
                """
                the slot \(name) belongs to another program (\(row[0] ?? "physical replication"), \
                \(row[1] == "t" ? "this database" : "another database")): set sourceSlot to another name
                """)
        }
        return Slot(
            isActive: row[2] == "t",
            state: SourceContinuity.Slot(isLost: row[3] == "t", confirmed: row[4].flatMap { LSN($0) }))
    }

    /// Returns the end of the server's log. Nothing after it was ever sent.
    func end() throws -> LSN { try place("pg_current_wal_flush_lsn()") }

    /// Returns the place at which the next record of the log is written.
    func insertPlace() throws -> LSN { try place("pg_current_wal_insert_lsn()") }

    private func place(_ function: String) throws -> LSN {
        guard let end = try value("SELECT \(function)").flatMap({ LSN($0) }) else {
            throw SourceProblem(
                "the server did not report the end of its log: check that the URL names a PostgreSQL server")
        }
        return end
    }

    /// Acquires the right of this replica to create the slot, until the connection ends.
    func lock(_ slot: String) throws(SourceError) -> Bool {
        try value("SELECT pg_try_advisory_lock(hashtextextended('bellhop source ' || $1, 0))", [slot]) == "t"
    }

    func unlock(_ slot: String) throws(SourceError) {
        _ = try ask("SELECT pg_advisory_unlock(hashtextextended('bellhop source ' || $1, 0))", [slot])
    }

    func drop(_ slot: String) throws(SourceError) { _ = try ask("SELECT pg_drop_replication_slot($1)", [slot]) }

    /// Writes a heartbeat into the log. The statement takes a transaction number, so that the server sends the message
    /// at once. Otherwise the message would wait until another transaction flushes it to disk.
    func beat() throws(SourceError) {
        _ = try ask("SELECT pg_current_xact_id(), pg_logical_emit_message(false, '\(Self.heartbeat)', '')")
    }

    static let heartbeat = "bellhop.heartbeat"

    static func quoted(_ name: String) -> String {
        "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }
}
