import Visibility

/// Row-level security as the tables' policies ask for it: the same rule that every statement carries, once more where no
/// statement can leave it out.
///
/// - A caller's scope opens what it may see and write.
/// - A statement that names a table without a scope (`Unscoped`) opens that table, for itself alone.
/// - Tables without any policy are the service's own records: open to the service's transactions, which say so.
///
/// Everything is set transaction-locally; a session that sets nothing sees nothing.
public enum RowLevelSecurity {
    /// The role that all logins of the service are members of. It has no login, owns nothing, and passes by nothing.
    public static let role = "bellhop_service"

    /// What makes it so, table by table; may be run again.
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
        let serviceCondition = "(SELECT current_setting('\(ScopeVocabulary.service)', true) = 'on')"
        return "CREATE POLICY bellhop_all ON \(table.name) USING (\(serviceCondition)) WITH CHECK (\(serviceCondition))"
    }

    private static func scoped(_ table: Table) -> [String] {
        let unscopedCondition = "(SELECT '\(table.name)' = ANY (\(setting(ScopeVocabulary.unscoped))::text[]))"
        let writes = condition(table.write, table)
        var reads = condition(table.read, table)
        // PostgreSQL asks for the right to read what a condition looks at; whoever may write a row may look at it in
        // the statement that writes it.
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

    /// What is in a setting: null when it was never set, and when it is empty, as it is after a transaction that set it.
    static func setting(_ setting: String) -> String { "NULLIF(current_setting('\(setting)', true), '')" }

    private static func condition(_ policy: Policy, _ table: Table) -> String {
        guard !policy.templates.isEmpty else { return "FALSE" }
        let tenantCondition = "\(table.tenantColumn) = (SELECT \(setting(ScopeVocabulary.tenant)))"
        return "(\(tenantCondition) AND (\(conditions(policy, table).joined(separator: " OR "))))"
    }

    /// The keys that the scope brings come first: they are compared, and nothing is looked up, where they suffice.
    static func conditions(_ policy: Policy, _ table: Table) -> [String] {
        policy.entries.map { entry in
            let keyCondition = entry.template.condition
            return entry.condition.map { "(\($0.text(prefix: "")) AND \(keyCondition))" } ?? keyCondition
        }
            + policy.entries.compactMap { entry in
                guard let membership = entry.membership else { return nil }
                return membership.question(
                    tenant: "\(table.name).\(table.tenantColumn)",
                    comparison: membership.holder.comparison,
                    column: "\(table.name).\(entry.template.columns[0])")
            }
    }
}

extension Table {
    /// The service's own records, which no caller reads or writes as such.
    var isBookkeeping: Bool { read.templates.isEmpty && write.templates.isEmpty }

    /// Whether somebody may write rows that they may not read.
    var needsWriting: Bool {
        !Set(RowLevelSecurity.conditions(write, self)).isSubset(of: RowLevelSecurity.conditions(read, self))
    }
}
