import Visibility

/// Row-level security derived from the tables' policies. It applies the same rule that every statement carries a second
/// time, where no statement can omit it.
///
/// - A caller's scope opens the rows that it may read and write.
/// - A statement that names a table within a tenant, or of a user, opens only these rows, for this statement only.
/// - A statement that names a table without either (`unscoped:`) opens that table, for this statement only.
/// - Tables without any policy are the service's own records. They are open to transactions that declare to be the
///   service's, within the tenant of the statement. Tables without tenants are open to them entirely.
///
/// All settings are transaction-local. A session that sets nothing sees nothing.
public enum RowLevelSecurity {
    /// The role that contains all logins of the service as members. It has no login, owns nothing, and bypasses
    /// nothing.
    public static let role = "bellhop_service"

    /// Returns the statements that install the policies, table by table. They may be repeated.
    public static func statements(for tables: [Table]) -> [String] {
        tables.flatMap { table -> [String] in
            let names = ["all", "select", "insert", "update", "delete"]
            let dropped = names.map { "DROP POLICY IF EXISTS bellhop_\($0) ON \(table.name)" }
            let made = table.isBookkeeping ? [bookkeeping(table)] : scoped(table)
            return [
                "ALTER TABLE \(table.name) ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE \(table.name) FORCE ROW LEVEL SECURITY",
            ] + dropped + made + [
                "GRANT SELECT, INSERT, UPDATE, DELETE ON \(table.name) TO \(role)"
            ]
        }
    }

    private static func bookkeeping(_ table: Table) -> String {
        var condition = "(SELECT current_setting('\(ScopeVocabulary.service)', true) = 'on')"
        if table.hasTenants {
            var own = inTenant(table)
            if let column = table.userColumn {
                own += " AND (NOT \(isListed(table, in: ScopeVocabulary.owned)) OR \(isOfUser(column)))"
            }
            condition += " AND (\(isListed(table, in: ScopeVocabulary.unscoped)) OR (\(own)))"
        }
        return "CREATE POLICY bellhop_all ON \(table.name) USING (\(condition)) WITH CHECK (\(condition))"
    }

    /// Returns the condition that a statement lists the table in a setting.
    private static func isListed(_ table: Table, in name: String) -> String {
        "(SELECT coalesce('\(table.name)' = ANY (\(setting(name))::text[]), FALSE))"
    }

    private static func inTenant(_ table: Table) -> String {
        "\(table.tenantColumn) = (SELECT \(setting(ScopeVocabulary.tenant)))"
    }

    private static func isOfUser(_ column: String) -> String {
        "\(column) = ANY ((SELECT \(setting(ScopeVocabulary.user)))::text[])"
    }

    private static func scoped(_ table: Table) -> [String] {
        let unscopedCondition = isListed(table, in: ScopeVocabulary.unscoped)
        let writes = condition(table.write, table)
        var reads = condition(table.read, table)
        // PostgreSQL requires read access to the rows that a condition reads. So a row that may be written may also be
        // read by the statement that writes it.
        if table.needsWriting {
            let writingCondition = "(SELECT current_setting('\(ScopeVocabulary.writing)', true) = '\(table.name)')"
            reads += " OR (\(writingCondition) AND (\(writes)))"
        }
        return [
            "CREATE POLICY bellhop_select ON \(table.name) FOR SELECT USING (\(unscopedCondition) OR \(reads))",
            "CREATE POLICY bellhop_insert ON \(table.name) FOR INSERT WITH CHECK (\(unscopedCondition) OR \(writes))",
            """
            CREATE POLICY bellhop_update ON \(table.name) FOR UPDATE USING (\(unscopedCondition) OR \(writes))
            WITH CHECK (\(unscopedCondition) OR \(writes))
            """,
            "CREATE POLICY bellhop_delete ON \(table.name) FOR DELETE USING (\(unscopedCondition) OR \(writes))",
        ]
    }

    /// Returns the expression for the value of a setting. It is null if the setting was never set, or is empty, as
    /// after a transaction that set it.
    static func setting(_ setting: String) -> String { "NULLIF(current_setting('\(setting)', true), '')" }

    private static func condition(_ policy: Policy, _ table: Table) -> String {
        let owned = table.userColumn.map { "(\(isListed(table, in: ScopeVocabulary.owned)) AND \(isOfUser($0)))" }
        let alternatives =
            [isListed(table, in: ScopeVocabulary.within)] + [owned].compactMap(\.self) + conditions(policy, table)
        return "(\(inTenant(table)) AND (\(alternatives.joined(separator: " OR "))))"
    }

    /// Returns the conditions of a policy. Keys of the scope come first: they are only compared, and if they suffice,
    /// no row is looked up.
    static func conditions(_ policy: Policy, _ table: Table) -> [String] {
        policy.entries.map { entry in
            let keyCondition = entry.template.condition
            return entry.condition.map { "(\($0.text(prefix: "")) AND \(keyCondition))" } ?? keyCondition
        }
            + policy.entries.compactMap { entry in
                guard let grant = entry.grant else { return nil }
                return grant.existsClause(
                    tenant: "\(table.name).\(table.tenantColumn)",
                    comparison: grant.holder.comparison,
                    column: "\(table.name).\(entry.template.columns[0])")
            }
    }
}

extension Table {
    /// Whether the table holds the service's own records, which no caller reads or writes directly.
    var isBookkeeping: Bool { read.templates.isEmpty && write.templates.isEmpty }

    /// Whether some caller may write rows that it may not read.
    var needsWriting: Bool {
        !Set(RowLevelSecurity.conditions(write, self)).isSubset(of: RowLevelSecurity.conditions(read, self))
    }
}
