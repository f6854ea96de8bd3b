/// The parts of the PostgreSQL schema besides the tables: the role of the service, the function that acquires locks,
/// and the policies.
enum PostgresSchema {
    /// All other statements wait behind one that waits for a table's lock. It is better to give up and be started
    /// again.
    private static let lockTimeout = "5s"

    /// The lock of a schema change, so that of replicas that start together only one applies it.
    private static let subject = "bellhop:schema"

    static func prepare(_ connection: DatabaseConnection) throws {
        try connection.run(SQL(unchecked: "SELECT pg_advisory_xact_lock(hashtextextended('\(subject)', 0))"))
        try connection.run(SQL(unchecked: "SET LOCAL lock_timeout = '\(lockTimeout)'"))
        let hasRole = try connection.exists("SELECT 1 FROM pg_roles WHERE rolname = \(RowLevelSecurity.role)")
        // Roles are shared by all databases of a server, so a migration of another database may be creating this one
        // right now.
        if !hasRole {
            try connection.run(
                SQL(
                    unchecked: """
                        DO $$ BEGIN
                            CREATE ROLE \(RowLevelSecurity.role) NOLOGIN NOBYPASSRLS;
                        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
                        END $$
                        """))
        }
        try connection.run(SQL(unchecked: takeLocks))
        try connection.run(SQL(unchecked: marks))
    }

    /// The last transaction that each writer has committed. It reveals the outcome of a transaction whose answer got
    /// lost.
    private static let marks = """
        CREATE TABLE IF NOT EXISTS write_marks (
            writer TEXT NOT NULL PRIMARY KEY, mark TEXT NOT NULL)
        """
    static let writeMark = """
        INSERT INTO write_marks (writer, mark) VALUES ($1, $2)
        ON CONFLICT (writer) DO UPDATE SET mark = excluded.mark
        """
    static let findMark = "SELECT mark FROM write_marks WHERE writer = $1"
    /// Marks of writers that were killed, which stay. Without this bound, each kill would leave one for good.
    static let marksKept = 1000
    /// Deletes a writer's own mark when it ends, and the oldest marks beyond ``marksKept``. Their order is that of the
    /// transactions that wrote them: by the server's clock, which may be set, a mark could seem old that a writer still
    /// needs.
    static let forgetMarks = """
        DELETE FROM write_marks WHERE writer = $1 OR writer IN (
            SELECT writer FROM write_marks ORDER BY age(xmin), writer OFFSET \(marksKept))
        """

    /// Acquires named locks until the transaction ends. It waits for them, or fails if another transaction holds one.
    private static let takeLocks = """
        CREATE OR REPLACE FUNCTION bellhop_hold(subjects text[], waits boolean) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE subject text;
        BEGIN
            FOREACH subject IN ARRAY subjects LOOP
                IF waits THEN
                    PERFORM pg_advisory_xact_lock(hashtextextended(subject, 0));
                ELSIF NOT pg_try_advisory_xact_lock(hashtextextended(subject, 0)) THEN
                    RAISE EXCEPTION 'another transaction holds a subject' USING ERRCODE = 'lock_not_available';
                END IF;
            END LOOP;
        END $$
        """

    /// Updates the policies if they do not match the tables. Recreating a policy locks its table for a moment.
    static func installPolicies(of tables: [Table], _ connection: DatabaseConnection) throws {
        let statements =
            RowLevelSecurity.statements(for: tables) + [
                "GRANT SELECT ON schema_migrations TO \(RowLevelSecurity.role)",
                "GRANT SELECT, INSERT, UPDATE, DELETE ON write_marks TO \(RowLevelSecurity.role)",
                "GRANT EXECUTE ON FUNCTION bellhop_hold(text[], boolean) TO \(RowLevelSecurity.role)",
            ]
        let checksum = Migration.checksum(of: statements)
        try connection.run(
            SQL(unchecked: "CREATE TABLE IF NOT EXISTS schema_policies (checksum TEXT NOT NULL PRIMARY KEY)"))
        guard try !connection.exists("SELECT 1 FROM schema_policies WHERE checksum = \(checksum)") else { return }
        for statement in statements { try connection.run(SQL(unchecked: statement)) }
        try connection.run("DELETE FROM schema_policies")
        try connection.run("INSERT INTO schema_policies (checksum) VALUES (\(checksum))")
    }
}
