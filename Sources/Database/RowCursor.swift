/// The rows of one query, for whoever turns them into values. Valid inside the callback it is given to.
public struct RowCursor {
    /// What the statement that was asked beside the query has answered, in the state that the rows are of.
    public let position: Int?
    let run: ((Row) throws -> Bool) throws -> Void

    init(position: Int? = nil, run: @escaping ((Row) throws -> Bool) throws -> Void) {
        (self.position, self.run) = (position, run)
    }

    /// The first row turned into a value, or nil without one.
    public func row<Value>(_ map: (Row) throws -> Value) throws -> Value? {
        var value: Value?
        try run { row in
            value = try map(row)
            return false
        }
        return value
    }

    /// All rows, each turned into a value.
    public func rows<Value>(_ map: (Row) throws -> Value) throws -> [Value] {
        var values: [Value] = []
        try run { row in
            values.append(try map(row))
            return true
        }
        return values
    }
}
