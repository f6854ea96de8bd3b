/// The rows that statements add to some tables, less the ones that they remove. A row that takes the place of another
/// counts as added, because the engines do not report the difference.
public final class RowTally {
    public private(set) var added = 0
    private let tables: Set<String>

    public init(of tables: Set<String>) { self.tables = tables }

    func note(_ sql: SQL, changed: Int) {
        guard changed > 0, let table = sql.target?.table.name ?? sql.unscoped.first, tables.contains(table) else {
            return
        }
        if sql.text.utf8.starts(with: "INSERT".utf8) { added += changed }
        if sql.text.utf8.starts(with: "DELETE".utf8) { added -= changed }
    }
}
