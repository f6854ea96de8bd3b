import Database

extension Row {
    /// Returns the value of a column of any type.
    func value(_ index: Int) throws -> SQLValue {
        if let number = try? integer(index) { return .integer(Int64(number)) }
        if let number = try? real(index) { return .real(number) }
        if let text = try? text(index) { return .text(text) }
        if let blob = try? blob(index) { return .blob(blob) }
        return try optionalText(index).map { .text($0) } ?? .null
    }
}
