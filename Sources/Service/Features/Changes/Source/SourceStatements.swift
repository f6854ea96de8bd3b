import Database
import Rows
import Visibility

/// The statements of `bellhop source setup` in an app's database. A repeated setup brings everything to the state that
/// the file declares.
enum SourceStatements {
    private static let publication = SourceServer.publication

    /// - Parameters:
    ///   - role: The reader's role; nil grants no rights.
    ///   - senders: The roles that may call `bellhop.notify` and `bellhop.publish`, in addition to the
    ///     senders of earlier setups.
    static func setup(_ tables: [TableDeclaration], role: String?, senders: [SourceSender]) -> [String] {
        let names = tables.map(name).joined(separator: ", ")
        var statements = [
            // Objects of the app are never found by an unqualified name.
            "SET LOCAL search_path = pg_catalog, pg_temp",
            "CREATE SCHEMA IF NOT EXISTS bellhop",
            "REVOKE ALL ON SCHEMA bellhop FROM PUBLIC",
            """
            DO $$ BEGIN
                IF NOT EXISTS (SELECT 1 FROM pg_publication WHERE pubname = '\(publication)') THEN
                    CREATE PUBLICATION \(publication);
                END IF;
            END $$
            """,
            requireOwnership, keeping, say, notify, requirePrefixes, publish,
            "ALTER PUBLICATION \(publication) SET TABLE \(names)",
            // Only if something is missing: the reader takes every change of the operations for a gap.
            """
            DO $$ BEGIN
                IF EXISTS (SELECT 1 FROM pg_publication WHERE pubname = '\(publication)' AND NOT (
                    pubinsert AND pubupdate AND pubdelete AND pubtruncate AND pubviaroot)) THEN
                    ALTER PUBLICATION \(publication)
                        SET (publish = 'insert, update, delete, truncate', publish_via_partition_root = true);
                END IF;
            END $$
            """,
            "COMMENT ON SCHEMA bellhop IS 'Events of a transaction of the app: bellhop source setup --sender ROLE'",
        ]
        if let role {
            let (schemas, reader) = (Set(tables.map(\.schema)).sorted(), SourceServer.quoted(role))
            let list = (schemas + ["bellhop"]).map(SourceServer.quoted).joined(separator: ", ")
            statements += [
                "GRANT USAGE ON SCHEMA \(list) TO \(reader)", "GRANT SELECT ON \(names), bellhop.secret TO \(reader)",
            ]
            statements += tables.filter { !$0.memberships.isEmpty }.map { grantOnPartitions(of: $0, to: role) }
        }
        return statements + senders.flatMap(\.statements) + [requireSenders, revokeFromOthers]
    }

    private static func name(_ table: TableDeclaration) -> String {
        "\(SourceServer.quoted(table.schema)).\(SourceServer.quoted(table.name))"
    }

    /// Each partition of a table is read by itself, with its own rights.
    private static func grantOnPartitions(of table: TableDeclaration, to role: String) -> String {
        """
        DO $$ DECLARE part regclass; BEGIN
            FOR part IN SELECT relid FROM pg_partition_tree(\(literal(name(table)))::regclass) WHERE isleaf LOOP
                EXECUTE format('GRANT SELECT ON %s TO %I', part, \(literal(role)));
            END LOOP;
        END $$
        """
    }

    static func literal(_ text: String) -> String {
        let quoted = text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''")
        // Safe within a body that ends with $$, with and without standard_conforming_strings.
        return "E'" + quoted.replacing("\\", with: "\\\\").replacing("$", with: "\\044") + "'"
    }

    // MARK: Stored objects

    /// Refuses existing objects of another owner: the owner could change the functions later, and the administrator's
    /// setup would run them.
    private static let requireOwnership = """
        DO $$ DECLARE other record; BEGIN
            SELECT thing.kind, thing.name, owner.rolname AS owner INTO other FROM (
                SELECT 'schema' AS kind, nspname::text AS name, nspowner AS owner FROM pg_namespace WHERE nspname = 'bellhop'
                UNION ALL SELECT 'publication', pubname, pubowner FROM pg_publication WHERE pubname = '\(publication)'
                UNION ALL SELECT 'function', p.oid::regprocedure::text, p.proowner
                    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'bellhop'
                UNION ALL SELECT 'relation', c.oid::regclass::text, c.relowner
                    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'bellhop'
            ) AS thing JOIN pg_roles owner ON owner.oid = thing.owner
            WHERE owner.rolname <> current_user AND NOT owner.rolsuper LIMIT 1;
            IF FOUND THEN
                RAISE EXCEPTION 'the % % belongs to %, which could change it later: run the setup as %, or DROP it first',
                    other.kind, other.name, other.owner, other.owner;
            END IF;
            SELECT role.rolname AS name INTO other FROM pg_namespace n, aclexplode(n.nspacl) AS entry
                JOIN pg_roles role ON role.oid = entry.grantee
                WHERE n.nspname = 'bellhop' AND entry.privilege_type = 'CREATE' AND entry.grantee <> n.nspowner LIMIT 1;
            IF FOUND THEN
                RAISE EXCEPTION '% may create functions in the schema bellhop: REVOKE CREATE ON SCHEMA bellhop FROM %',
                    other.name, quote_ident(other.name);
            END IF;
        END $$
        """

    /// Creates the secret that precedes each message, and the list of roles that may send. The database's default
    /// privileges may grant rights on new tables; these are revoked.
    private static let keeping = """
        DO $$ DECLARE grantee text; BEGIN
            IF to_regclass('bellhop.secret') IS NULL THEN
                CREATE TABLE bellhop.secret (
                    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), value text NOT NULL);
                CREATE TABLE bellhop.senders (role name NOT NULL, tenant text, UNIQUE (role, tenant));
                FOR grantee IN SELECT DISTINCT coalesce(quote_ident(role.rolname), 'PUBLIC')
                    FROM pg_class c, aclexplode(c.relacl) AS entry LEFT JOIN pg_roles role ON role.oid = entry.grantee
                    WHERE c.oid IN ('bellhop.secret'::regclass, 'bellhop.senders'::regclass)
                        AND entry.grantee <> c.relowner
                LOOP
                    EXECUTE format('REVOKE ALL ON bellhop.secret, bellhop.senders FROM %s', grantee);
                END LOOP;
                INSERT INTO bellhop.secret (value)
                    VALUES (replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));
                COMMENT ON TABLE bellhop.senders IS
                    'Sessions of these roles may send events of these tenants only; null means all tenants';
            END IF;
        END $$
        """

    /// Setups of earlier versions let every role with USAGE on the schema call the functions. A failing call would roll
    /// back the app's own transaction, so the administrator must decide first.
    private static let requireSenders = """
        DO $$ DECLARE other text; BEGIN
            SELECT coalesce(role.rolname, 'PUBLIC') INTO other
                FROM pg_namespace n, aclexplode(n.nspacl) AS entry LEFT JOIN pg_roles role ON role.oid = entry.grantee
                WHERE n.nspname = 'bellhop' AND entry.privilege_type = 'USAGE' AND entry.grantee <> n.nspowner
                    AND NOT EXISTS (SELECT 1 FROM bellhop.senders s WHERE s.role = role.rolname)
                    AND NOT EXISTS (SELECT 1 FROM pg_class c, aclexplode(c.relacl) AS reader
                        WHERE c.oid = 'bellhop.secret'::regclass AND reader.grantee = entry.grantee) LIMIT 1;
            IF FOUND THEN
                RAISE EXCEPTION '% can already send events: add --sender %, or REVOKE USAGE ON SCHEMA bellhop FROM %',
                    other, other, quote_ident(other);
            END IF;
        END $$
        """

    /// Only the owner and senders call the functions, whatever the default privileges of the database grant.
    private static let revokeFromOthers = """
        DO $$ DECLARE entry record; BEGIN
            FOR entry IN SELECT p.oid::regprocedure AS name, coalesce(quote_ident(role.rolname), 'PUBLIC') AS grantee
                FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace,
                    aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS acl
                    LEFT JOIN pg_roles role ON role.oid = acl.grantee
                WHERE n.nspname = 'bellhop' AND acl.grantee <> p.proowner AND (p.proname = 'say'
                    OR NOT EXISTS (SELECT 1 FROM bellhop.senders s WHERE s.role = role.rolname))
            LOOP
                EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', entry.name, entry.grantee);
            END LOOP;
        END $$
        """

    // MARK: Functions

    /// Writes into the log only, not into a table: a transaction that is rolled back sends no event.
    ///
    /// A session's role is that of SET ROLE, otherwise of its login: a SECURITY DEFINER function of the app does not
    /// change it.
    private static let say = """
        CREATE OR REPLACE FUNCTION bellhop.say(message jsonb, of_tenant text) RETURNS void
        LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        DECLARE
            sender name := coalesce(nullif(current_setting('role'), 'none'), session_user);
            content text := (message || jsonb_build_object('tenant', of_tenant))::text;
        BEGIN
            IF octet_length(content) > \(SourceLimits.messageBytesMax) THEN
                RAISE EXCEPTION 'bellhop: the event has % bytes; at most \(SourceLimits.messageBytesMax) are accepted',
                    octet_length(content) USING ERRCODE = 'program_limit_exceeded';
            END IF;
            IF sender <> current_user AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = sender) AND (
                SELECT count(*) > 0 AND count(*) FILTER (
                    WHERE s.tenant IS NULL OR s.tenant = coalesce(of_tenant, 'default')) = 0
                FROM bellhop.senders s JOIN pg_roles r ON r.rolname = s.role
                WHERE pg_has_role(sender, r.oid, 'USAGE'))
            THEN
                RAISE EXCEPTION 'bellhop: the role % may not send events of the tenant %', sender, coalesce(of_tenant, 'default')
                    USING ERRCODE = 'insufficient_privilege', HINT = 'bellhop source setup --sender ROLE=TENANT';
            END IF;
            PERFORM pg_logical_emit_message(true, 'bellhop', (SELECT value FROM bellhop.secret) || content);
        END $$
        """

    private static let notify = """
        CREATE OR REPLACE FUNCTION bellhop.notify(
            user_id text, type text, data jsonb DEFAULT '{}', tenant text DEFAULT NULL) RETURNS void
        LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
            SELECT bellhop.say(jsonb_build_object(
                'kind', 'notify', 'id', gen_random_uuid(), 'userId', user_id, 'type', type, 'data', data), tenant)
        $$
        """

    /// No caller holds a key without a prefix. A transaction that names one fails, like such a `POST /v1/publish`.
    private static let requirePrefixes = """
        CREATE OR REPLACE FUNCTION bellhop.require_prefixes(keys text[])
        RETURNS text[] LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
        DECLARE
            unheld text := (SELECT one FROM unnest(keys) AS one WHERE one <> 'everyone' AND strpos(one, ':') = 0 LIMIT 1);
        BEGIN
            IF unheld IS NOT NULL THEN
                RAISE EXCEPTION 'bellhop.publish: the key "%" matches no user', unheld
                    USING ERRCODE = '22023', HINT = format('Did you mean user:%s?', unheld);
            END IF;
            RETURN keys;
        END
        $$
        """

    private static let publish = """
        CREATE OR REPLACE FUNCTION bellhop.publish(
            event text, "to" text[] DEFAULT NULL, topic text DEFAULT NULL, data jsonb DEFAULT 'null',
            collapse text DEFAULT NULL, tenant text DEFAULT NULL) RETURNS void
        LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
            SELECT bellhop.say(
                jsonb_build_object('kind', 'publish', 'event', event, 'data', data)
                || CASE WHEN "to" IS NULL THEN '{}' ELSE jsonb_build_object('to', bellhop.require_prefixes("to")) END
                || CASE WHEN topic IS NULL THEN '{}' ELSE jsonb_build_object('topic', topic) END
                || CASE WHEN collapse IS NULL THEN '{}' ELSE jsonb_build_object('collapse', collapse) END, tenant)
        $$
        """
}

/// A role of the app's database that may call `bellhop.notify` and `bellhop.publish`.
public struct SourceSender: Sendable, Hashable {
    let role: String
    /// Nil means every tenant.
    let tenants: [String]?

    /// Parses `app`, which sends events of every tenant, or `app=A,B`, which sends events of tenants A and B. Returns
    /// nil for anything else.
    public init?(_ text: String) {
        let halves = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        // PUBLIC stands for every role.
        guard let role = halves.first, !role.isEmpty, role.lowercased() != "public" else { return nil }
        self.role = role
        guard halves.count == 2 else {
            tenants = nil
            return
        }
        let tenants = halves[1].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard !tenants.contains("") else { return nil }
        self.tenants = tenants
    }

    var statements: [String] {
        let (name, role) = (SourceStatements.literal(role), SourceServer.quoted(role))
        let values = (tenants?.map(SourceStatements.literal) ?? ["NULL"]).map { "(\(name), \($0))" }
        return [
            "GRANT USAGE ON SCHEMA bellhop TO \(role)",
            "GRANT EXECUTE ON FUNCTION bellhop.notify, bellhop.publish TO \(role)",
            "DELETE FROM bellhop.senders WHERE role = \(name)",
            "INSERT INTO bellhop.senders (role, tenant) VALUES \(values.joined(separator: ", "))",
        ]
    }
}

extension SourceServer {
    /// Returns the remarks that an operator should know before the log is read; obstacles come first.
    ///
    /// - Throws: A ``SourceProblem`` if the setup would do harm.
    func remarks(of tables: [TableDeclaration]) throws -> [String] {
        guard connection.serverVersion >= Self.versionMin else {
            throw SourceProblem("PostgreSQL 14 or later is required, but the server is older: upgrade it")
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
                "wal_level is \(settings[0] ?? ""): run ALTER SYSTEM SET wal_level = logical and restart the server")
        }
        if settings[1] == "-1" {
            found.append(
                """
                max_slot_wal_keep_size is unlimited: while Bellhop is stopped, its slot can fill the disk; run \
                ALTER SYSTEM SET max_slot_wal_keep_size = '10GB'
                """)
        }
        if settings[2].flatMap({ Int($0) }) ?? 0 < 1 {
            found.append("no replication slot is free: raise max_replication_slots")
        }
        if settings[3] == "0" {
            found.append("max_wal_senders is 0: raise it to the number of replicas plus one")
        }
        try requireNoHeirs(of: tables)
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
            throw SourceProblem(
                "the table \(table.qualifiedName) does not exist: correct the table file, or create the table first")
        }
        let remedy = "ALTER TABLE \(table.qualifiedName) REPLICA IDENTITY FULL"
        switch (row[0], row[1]) {
        case ("f", _): return []
        case ("n", _), ("d", "f"):
            throw SourceProblem(
                """
                \(table.qualifiedName) has no replica identity, so its UPDATEs and DELETEs would fail once it is published: \
                add a primary key, or run \(remedy)
                """)
        default:
            let decidingColumns = Set(table.audience.select.flatMap { $0.template.columns + $0.when.columns })
                .subtracting(table.primaryKey).sorted()
            let missed = decidingColumns.isEmpty ? "" : " (\(decidingColumns.joined(separator: ", ")))"
            return [
                """
                \(table.qualifiedName): old rows contain only their key, so the previous readers of a row\(missed) are not \
                known, and deletes and moves may reach no user: run \(remedy)
                """
            ]
        }
    }
}
