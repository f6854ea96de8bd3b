/// The rows of one query. It is valid only inside the callback that receives it.
public struct RowCursor {
    /// The result of the position query that ran with this query, in the same snapshot.
    public let position: Int?
    let run: ((Row) throws -> Bool) throws -> Void

    init(position: Int? = nil, run: @escaping ((Row) throws -> Bool) throws -> Void) {
        (self.position, self.run) = (position, run)
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
