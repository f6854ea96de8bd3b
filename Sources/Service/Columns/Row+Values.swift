import Database
import Values

extension Row {
    func id<E>(_ index: Int) throws -> ID<E> { ID(try text(index)) }

    func optionalID<E>(_ index: Int) throws -> ID<E>? { try optionalText(index).map { ID($0) } }

    func moment(_ index: Int) throws -> Timestamp { Timestamp(microseconds: Int64(try integer(index))) }

    func optionalMoment(_ index: Int) throws -> Timestamp? {
        try optionalInteger(index).map { Timestamp(microseconds: Int64($0)) }
    }

    /// Reads a word of an enumeration.
    ///
    /// - Parameter fault: The error message if it is another word.
    func word<Word: RawRepresentable<String>>(_ index: Int, orElse fault: String) throws -> Word {
        guard let word = Word(rawValue: try text(index)) else { throw DatabaseError(.corrupt, fault) }
        return word
    }
}

extension ID: SQLBindable {
    public var sqlValue: SQLValue { .text(text) }
}

extension Timestamp: SQLBindable {
    public var sqlValue: SQLValue { .integer(microseconds) }
}
