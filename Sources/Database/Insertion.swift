/// A statement that inserts rows, in the forms in which it is run: of 1, 2, 4 and so on up to 64 rows at once.
///
/// Powers of two: few different texts, whatever the number of rows. They are made once, for as long as the process runs.
public struct Insertion: Sendable {
    /// 64 rows: some hundred binds, of which PostgreSQL takes 65,535 and SQLite 32,766.
    private static let rowsAtOnceBits = 6

    private let columns: Int
    /// By the logarithm of the number of rows; without binds.
    private let forms: [SQL]

    /// - Parameters:
    ///   - into: what stands before VALUES, and names `columns` columns.
    ///   - rest: what follows the rows, such as ON CONFLICT and RETURNING. Neither has values of its own.
    public init(_ into: SQL, columns: Int, _ rest: SQL = "") {
        precondition(columns > 0 && into.binds.isEmpty && rest.binds.isEmpty, "the rows alone have values")
        self.columns = columns
        let row = "(" + Array(repeating: "?", count: columns).joined(separator: ", ") + ")"
        forms = (0...Self.rowsAtOnceBits).map { bits in
            let rows = SQL(unchecked: Array(repeating: row, count: 1 << bits).joined(separator: ", "))
            return "\(into) VALUES \(rows) \(rest)"
        }
    }

    /// The statements that insert rows whose values stand one after the other; none for no rows.
    public func statements(of values: [SQLValue]) -> [SQL] {
        precondition(values.count % columns == 0, "a row has \(columns) values")
        var statements: [SQL] = []
        var rest = values[...]
        while !rest.isEmpty {
            let rows = rest.count / columns
            let bits = min(Self.rowsAtOnceBits, Int.bitWidth - 1 - rows.leadingZeroBitCount)
            var statement = forms[bits]
            statement.binds = Array(rest.prefix(columns << bits))
            statements.append(statement)
            rest = rest.dropFirst(columns << bits)
        }
        return statements
    }
}
