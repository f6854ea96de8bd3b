/// What PostgreSQL needs beside the tables: the role of the service, the function that takes locks, the policies.
enum PostgresSchema {
    /// Everything waits behind a statement that waits for a table's lock: better to give up, and be started again.
    private static let lockTimeout = "5s"

    /// Locked by whoever changes the schema, so that replicas that start together do it once.
    private static let subject = "bellhop:schema"

    static func prepare(_ connection: Connection) throws {
        try connection.run(SQL(unchecked: "SELECT pg_advisory_xact_lock(hashtextextended('\(subject)', 0))"))
        try connection.run(SQL(unchecked: "SET LOCAL lock_timeout = '\(lockTimeout)'"))
        let hasRole = try connection.exists("SELECT 1 FROM pg_roles WHERE rolname = \(RowLevelSecurity.role)")
        // Roles belong to all databases of a server: another one may be making it in this moment.
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

    /// The last transaction that each writer has committed: what becomes of one whose answer got lost is asked here.
    private static let marks = """
        CREATE TABLE IF NOT EXISTS write_marks (
            writer TEXT NOT NULL PRIMARY KEY, mark TEXT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT now())
        """
    static let leaveMark = """
        INSERT INTO write_marks (writer, mark) VALUES ($1, $2)
        ON CONFLICT (writer) DO UPDATE SET mark = excluded.mark, at = excluded.at
        """
    static let findMark = "SELECT mark FROM write_marks WHERE writer = $1"
    /// A writer's own at its end, and those of writers that ended otherwise.
    static let forgetMarks = "DELETE FROM write_marks WHERE writer = $1 OR at < now() - interval '1 day'"

    /// Locks names until the transaction ends: waiting for them, or failing if another transaction has one.
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

    /// Brings the policies to what the tables say, if they are not: making one anew locks its table for a moment.
    static func installPolicies(of tables: [Table], _ connection: Connection) throws {
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
