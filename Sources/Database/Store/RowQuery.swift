/// A query and the mapping of its rows, to be read together with others.
public struct RowQuery<Value> {
    let sql: SQL
    let map: (Row) throws -> Value

    public init(_ sql: SQL, _ map: @escaping (Row) throws -> Value) { (self.sql, self.map) = (sql, map) }
}

extension DatabaseConnection {
    /// Returns the rows of several queries. On PostgreSQL this takes one round trip.
    public func rows<each Value>(_ queries: repeat RowQuery<each Value>) throws -> (repeat [each Value]) {
        let results = (repeat RowQueryResult(each queries))
        var (statements, adders): ([SQL], [(Row) throws -> Void]) = ([], [])
        for result in repeat each results {
            statements.append(result.query.sql)
            adders.append(result.add)
        }
        try perform(statements) { place, row in
            try adders[place](row)
            return true
        }
        return (repeat (each results).values)
    }
}

/// The rows that a query has returned so far.
private final class RowQueryResult<Value> {
    let query: RowQuery<Value>
    private(set) var values: [Value] = []

    init(_ query: RowQuery<Value>) { self.query = query }

    func add(_ row: Row) throws { values.append(try query.map(row)) }
}
