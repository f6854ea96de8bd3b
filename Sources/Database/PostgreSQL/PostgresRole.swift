/// The check of the service's role on a server: it must not be able to bypass the policies.
enum PostgresRole {
    /// The oldest supported server. Transaction ids can be queried from version 13 on (`pg_current_xact_id`), and the
    /// grants here rely on role inheritance as in version 14.
    private static let versionMin = 140_000

    static func check(_ link: PostgresLink, access: StoreOptions.Access) throws(DatabaseError) {
        let found = try link.ask(
            """
            SELECT current_setting('server_version_num'), current_user,
                (SELECT string_agg(rolname, ', ') FROM pg_roles
                 WHERE (rolsuper OR rolbypassrls) AND pg_has_role(current_user, oid, 'MEMBER')),
                (SELECT string_agg(DISTINCT owner.rolname, ', ') FROM pg_class AS relation
                 JOIN pg_roles AS owner ON owner.oid = relation.relowner
                 WHERE relation.oid = to_regclass('schema_migrations')
                    AND pg_has_role(current_user, owner.oid, 'MEMBER'))
            """)
        guard let row = found.first, let version = row[0].flatMap({ Int($0) }), let user = row[1] else {
            throw DatabaseError(.other, "the server did not report its version and user")
        }
        guard version >= versionMin else {
            throw DatabaseError(
                .cannotOpen, "PostgreSQL 14 or newer is required, but the server is version \(version / 10_000)")
        }
        // Only the service itself must be unable to bypass the policies. `bellhop migrate` runs as the owner.
        guard access == .exclusive else { return }
        if let excessPrivilege = row[2] {
            throw refusal(user, "is or can become \(excessPrivilege), which bypasses row-level security")
        }
        if let owner = row[3] {
            throw refusal(user, "owns the tables or can become their owner, \(owner), and could remove the policies")
        }
    }

    private static func refusal(_ user: String, _ reason: String) -> DatabaseError {
        DatabaseError(
            .role,
            """
            the service must not connect as \(user), which \(reason). Create a login that owns nothing, as an \
            administrator: CREATE ROLE bellhop LOGIN PASSWORD '…' IN ROLE \(RowLevelSecurity.role); then use it in \
            the URL. `bellhop migrate`, run as the owner, creates the role \(RowLevelSecurity.role)
            """)
    }
}
