import Database
import Rows

extension Finding {
    /// Returns a finding for each membership with facts that an earlier rule gave.
    static func outdatedMemberships(_ settings: Settings, in store: DatabaseStore) throws -> [Finding] {
        let memberships = MembershipRegistry(settings.tables)
        try store.read { try memberships.reload(in: $0) }
        return memberships.known.memberships.outdated.map { found in
            .warning(
                "memberships",
                """
                \(found.rows) rows of \(found.schema).\(found.table) give no keys, because the rule of \(found.membership) \
                has changed
                """,
                settings.source == nil
                    ? "send all rows of the table again, and a DELETE for each that is gone"
                    : "start the service, which reads the table again")
        }
    }
}
