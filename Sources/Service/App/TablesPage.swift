import Rows
import Values

/// A file of declared tables, read and checked as at the start of the service.
public struct TablesPage: Sendable {
    /// The mistakes in the file, with their places.
    public struct Mistakes: Error {
        /// The line is nil if the file as a whole cannot be read. The pointer is a JSON pointer:
        /// `/tables/3/audience/select/0`.
        public let list: [(line: Int?, pointer: String, detail: String)]
        /// The total number; only the first ones are listed.
        public let detail: String
    }

    public let tables: [TableDeclaration]
    /// The app's own topics.
    public let topics: [TopicDeclaration]
    /// The rules of who may contact whom.
    public let contacts: ContactPolicy

    /// Reads a file.
    ///
    /// - Parameter name: A path, or the name of a shipped file (`school`, `posts`, `todo`).
    public init(named name: String) throws(Mistakes) {
        let file: TableFile
        do throws(Failure) {
            file = try TableFile(named: name)
        } catch {
            throw Mistakes(list: [(nil, "", error.detail)], detail: error.detail)
        }
        do throws(Failure) {
            let catalog = try file.read(reserved: Catalog.reserved)
            (tables, topics, contacts) = (catalog.tables, catalog.topics, catalog.contacts)
        } catch {
            let list = error.fields.map { (file.line(of: $0.pointer) as Int?, $0.pointer, $0.detail) }
            throw Mistakes(list: list, detail: error.detail)
        }
    }
}
