import Database
import Rows
import Visibility

/// The statements that `bellhop source setup` runs in an app's database. Running them again updates everything to match
/// the file.
enum SourceStatements {
    private static let publication = SourceServer.publication

    /// Returns the statements.
    ///
    /// - Parameter role: The role that reads; nil grants no rights.
    static func setup(_ tables: [TableDeclaration], role: String?) -> [String] {
        let names = tables.map(name).joined(separator: ", ")
        var statements = [
            "CREATE SCHEMA IF NOT EXISTS bellhop",
            """
            DO $$ BEGIN
                IF NOT EXISTS (SELECT 1 FROM pg_publication WHERE pubname = '\(publication)') THEN
                    CREATE PUBLICATION \(publication);
                END IF;
            END $$
            """,
            "ALTER PUBLICATION \(publication) SET TABLE \(names)",
            """
            ALTER PUBLICATION \(publication)
                SET (publish = 'insert, update, delete, truncate', publish_via_partition_root = true)
            """,
            notify, requirePrefixes, publish,
            """
            COMMENT ON SCHEMA bellhop IS 'Events of one''s own transaction: GRANT USAGE to those who may send them'
            """,
        ]
        if let role {
            let schemas = Set(tables.map(\.schema)).sorted().map(SourceServer.quoted).joined(separator: ", ")
            statements += [
                "GRANT USAGE ON SCHEMA \(schemas) TO \(SourceServer.quoted(role))",
                "GRANT SELECT ON \(names) TO \(SourceServer.quoted(role))",
            ]
        }
        return statements
    }

    private static func name(_ table: TableDeclaration) -> String {
        "\(SourceServer.quoted(table.schema)).\(SourceServer.quoted(table.name))"
    }

    /// Writes into the log, but into no table. A rollback also removes the message.
    private static let notify = """
        CREATE OR REPLACE FUNCTION bellhop.notify(
            user_id text, type text, data jsonb DEFAULT '{}', tenant text DEFAULT NULL)
        RETURNS void LANGUAGE sql VOLATILE AS $$
            SELECT pg_logical_emit_message(true, 'bellhop', jsonb_build_object(
                'kind', 'notify', 'id', gen_random_uuid(), 'userId', user_id, 'type', type, 'data', data,
                'tenant', tenant)::text)
        $$
        """

    /// A key without a prefix is held by nobody. The transaction that names one fails, as `POST /v1/publish` does.
    private static let requirePrefixes = """
        CREATE OR REPLACE FUNCTION bellhop.require_prefixes(keys text[])
        RETURNS text[] LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
        DECLARE
            unheld text := (SELECT one FROM unnest(keys) AS one WHERE one <> 'everyone' AND strpos(one, ':') = 0 LIMIT 1);
        BEGIN
            IF unheld IS NOT NULL THEN
                RAISE EXCEPTION 'bellhop.publish: nobody holds the key "%"', unheld
                    USING ERRCODE = '22023', HINT = format('Did you mean user:%s?', unheld);
            END IF;
            RETURN keys;
        END
        $$
        """

    private static let publish = """
        CREATE OR REPLACE FUNCTION bellhop.publish(
            event text, "to" text[] DEFAULT NULL, topic text DEFAULT NULL, data jsonb DEFAULT 'null',
            collapse text DEFAULT NULL, tenant text DEFAULT NULL)
        RETURNS void LANGUAGE sql VOLATILE AS $$
            SELECT pg_logical_emit_message(true, 'bellhop', (
                jsonb_build_object('kind', 'publish', 'event', event, 'data', data, 'tenant', tenant)
                || CASE WHEN "to" IS NULL THEN '{}' ELSE jsonb_build_object('to', bellhop.require_prefixes("to")) END
                || CASE WHEN topic IS NULL THEN '{}' ELSE jsonb_build_object('topic', topic) END
                || CASE WHEN collapse IS NULL THEN '{}' ELSE jsonb_build_object('collapse', collapse) END)::text)
        $$
        """
}

extension SourceServer {
    /// Returns the remarks that an operator should know before the log is read; obstacles come first.
    ///
    /// - Throws: A ``SourceProblem`` if the setup would do harm.
    func remarks(of tables: [TableDeclaration]) throws -> [String] {
        guard connection.serverVersion >= Self.versionMin else {
            throw SourceProblem("PostgreSQL 14 or later is needed, and this is an earlier one: upgrade it")
        }
        var found: [String] = []
        let settings =
            try ask(
                """
                SELECT current_setting('wal_level'), current_setting('max_slot_wal_keep_size'),
                    current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots),
                    current_setting('max_wal_senders')::int
                """
            ).first ?? []
        if settings.first != "logical" {
            found.append(
                "wal_level is \(settings[0] ?? ""): ALTER SYSTEM SET wal_level = logical and restart the server")
        }
        if settings[1] == "-1" {
            found.append(
                """
                max_slot_wal_keep_size is unlimited: while Bellhop is away, its slot may fill the disk; \
                ALTER SYSTEM SET max_slot_wal_keep_size = '10GB'
                """)
        }
        if settings[2].flatMap({ Int($0) }) ?? 0 < 1 {
            found.append("no replication slot is free: raise max_replication_slots")
        }
        if settings[3] == "0" {
            found.append("max_wal_senders is 0: raise it to as many as there are replicas, and one more")
        }
        for table in tables { found += try remarks(of: table) }
        return found
    }

    private func remarks(of table: TableDeclaration) throws -> [String] {
        let row = try ask(
            """
            SELECT c.relreplident, EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')
            """, [table.schema, table.name]
        ).first
        guard let row else {
            throw SourceProblem("there is no table \(table.qualifiedName): mend the file, or make it first")
        }
        let remedy = "ALTER TABLE \(table.qualifiedName) REPLICA IDENTITY FULL"
        switch (row[0], row[1]) {
        case ("f", _): return []
        case ("n", _), ("d", "f"):
            throw SourceProblem(
                """
                \(table.qualifiedName) has no replica identity: its UPDATEs and DELETEs would fail once it is published; \
                add a primary key, or \(remedy)
                """)
        default:
            let deciding = Set(table.audience.select.flatMap { $0.template.columns + $0.when.columns })
                .subtracting(table.primaryKey).sorted()
            let missed = deciding.isEmpty ? "" : " (\(deciding.joined(separator: ", ")))"
            return [
                """
                \(table.qualifiedName): old rows come with their key alone, so who could see a row before\(missed) is not \
                known: deletes and moves may reach nobody; \(remedy)
                """
            ]
        }
    }
}
