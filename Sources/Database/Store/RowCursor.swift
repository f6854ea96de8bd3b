/// The rows of one query. It is valid only inside the callback that receives it.
public struct RowCursor {
    /// The rows of the query for the service's own records that ran with this query, in the same snapshot.
    public let records: [(number: Int, text: String)]
    let run: ((Row) throws -> Bool) throws -> Void

    init(
        records: [(number: Int, text: String)] = [], run: @escaping ((Row) throws -> Bool) throws -> Void
    ) {
        (self.records, self.run) = (records, run)
    }

    /// Returns the first row mapped to a value, or nil without a row.
    public func row<Value>(_ map: (Row) throws -> Value) throws -> Value? {
        var value: Value?
        try run { row in
            value = try map(row)
            return false
        }
        return value
    }

    /// Returns all rows, each mapped to a value.
    public func rows<Value>(_ map: (Row) throws -> Value) throws -> [Value] {
        var values: [Value] = []
        try run { row in
            values.append(try map(row))
            return true
        }
        return values
    }
}

extension DatabaseConnection {
    /// Returns the rows of a query for the service's own records, whose columns are a number and a text.
    public func records(_ sql: SQL) throws -> [(number: Int, text: String)] {
        try rows(sql) { (try $0.integer(0), try $0.text(1)) }
    }
}
