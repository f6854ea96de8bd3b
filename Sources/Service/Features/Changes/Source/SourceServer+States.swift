import Cryptography
import Database
import Rows

extension SourceServer {
    /// Returns the state of each table with memberships, as a digest. It changes whenever the facts that the table gives
    /// may have changed without a message in the log:
    ///
    /// - the rules of its memberships in the file;
    /// - the table itself, its partitions and their files: PostgreSQL publishes no message when a partition is attached,
    ///   detached, dropped or truncated, and none when ALTER TABLE rewrites rows;
    /// - the columns of its memberships, the labels of enums, and the attributes of composite types;
    /// - whether the role may read them.
    ///
    /// A rewrite that changes no row, such as VACUUM FULL, changes the state too.
    func states(of tables: [TableDeclaration], by rules: [String: Int64]) throws(SourceError) -> [String: String] {
        guard !tables.isEmpty else { return [:] }
        let columns = tables.flatMap { table in table.membershipColumns.map { (table.schema, table.name, $0) } }
        let found = try ask(
            Self.statesQuery,
            [Self.array(columns.map(\.0)), Self.array(columns.map(\.1)), Self.array(columns.map(\.2))])
        var states: [String: String] = [:]
        for table in tables {
            let ofCatalog = found.first { $0[0] == table.schema && $0[1] == table.name }?[2] ?? "missing"
            let ofFile = table.memberships.map { "\($0.name) \(rules[$0.name] ?? 0)" }.sorted()
            let digest = SHA256.hash(([ofCatalog] + ofFile).joined(separator: "\n").utf8)
            states[table.qualifiedName] = String(digest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }, radix: 16)
        }
        return states
    }

    private static let statesQuery = """
        WITH RECURSIVE used AS (
            SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS u (schema, name, attname)
        ), tree (schema, name, id) AS (
            SELECT DISTINCT u.schema, u.name, c.oid FROM used u JOIN pg_namespace n ON n.nspname = u.schema
                JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = u.name AND c.relkind IN ('r', 'p')
            UNION SELECT t.schema, t.name, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.id
                WHERE NOT i.inhdetachpending
        )
        SELECT t.schema, t.name, md5(string_agg(concat_ws(',', t.id, pg_relation_filenode(t.id),
            has_schema_privilege(c.relnamespace, 'USAGE'), has_table_privilege(t.id, 'SELECT'), row_security_active(t.id),
            (SELECT string_agg(concat_ws(':', a.attname, a.attnum, a.atttypid, a.atttypmod, a.attgenerated,
                    (SELECT string_agg(e.enumlabel, ':' ORDER BY e.oid) FROM pg_enum e WHERE e.enumtypid = a.atttypid),
                    (SELECT string_agg(concat_ws(':', m.attname, m.atttypid), ':' ORDER BY m.attnum)
                        FROM pg_type y JOIN pg_attribute m ON m.attrelid = y.typrelid AND m.attnum > 0
                        WHERE y.oid = a.atttypid AND y.typtype = 'c')), ',' ORDER BY a.attname)
                FROM pg_attribute a JOIN used u ON u.attname = a.attname
                WHERE u.schema = t.schema AND u.name = t.name AND a.attrelid = t.id AND NOT a.attisdropped)
        ), ';' ORDER BY t.id))
        FROM tree t JOIN pg_class c ON c.oid = t.id GROUP BY t.schema, t.name
        """

    /// Returns an array of texts in PostgreSQL's notation.
    static func array(_ values: [String]) -> String {
        let quoted = values.map { value in
            "\"" + value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
        }
        return "{" + quoted.joined(separator: ",") + "}"
    }
}
