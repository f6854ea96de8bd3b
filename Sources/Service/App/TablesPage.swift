import Rows
import Values

/// A file of declared tables, read and checked as the start of the service does.
public struct TablesPage: Sendable {
    /// What is wrong with the file, and where.
    public struct Mistakes: Error {
        /// Line nil: the file as a whole cannot be read. The pointer is one of JSON: `/tables/3/audience/select/0`.
        public let list: [(line: Int?, pointer: String, detail: String)]
        /// How many there are; a page of them is listed.
        public let detail: String
    }

    public let tables: [TableDeclaration]

    /// - Parameter name: a file, or one that is shipped (`school`, `posts`, `todo`).
    public init(named name: String) throws(Mistakes) {
        let file: TableFile
        do throws(Failure) {
            file = try TableFile(named: name)
        } catch {
            throw Mistakes(list: [(nil, "", error.detail)], detail: error.detail)
        }
        do throws(Failure) {
            tables = try file.read(reserved: Catalog.reserved).tables
        } catch {
            let list = error.fields.map { (file.line(of: $0.pointer) as Int?, $0.pointer, $0.detail) }
            throw Mistakes(list: list, detail: error.detail)
        }
    }
}
