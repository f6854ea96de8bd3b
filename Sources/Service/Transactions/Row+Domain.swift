import Database
import Rows
import Values

extension Row {
    func moment(_ index: Int) throws -> Timestamp { Timestamp(microseconds: Int64(try integer(index))) }

    func optionalMoment(_ index: Int) throws -> Timestamp? {
        try optionalInteger(index).map { Timestamp(microseconds: Int64($0)) }
    }
}
