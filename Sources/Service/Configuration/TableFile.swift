import Rows
import Values

/// A YAML file that declares tables.
struct TableFile {
    private let file: YAMLFile

    private static let shipped: Set = ["school", "posts", "todo"]

    /// Reads a file.
    ///
    /// - Parameter name: The name of a shipped file, or a path.
    init(named name: String) throws(Failure) {
        do {
            file =
                Self.shipped.contains(name)
                ? try YAMLFile(String(decoding: Resource.bytes("\(name).yaml"), as: UTF8.self))
                : try YAMLFile(path: name)
        } catch {
            switch error {
            case .invalid(let reason): throw Failure(.invalid, "tables.invalid", reason)
            case .unreadable(let reason):
                throw Failure(
                    .invalid, "tables.unreadable",
                    "\(reason); the bundled table files are \(Self.shipped.sorted().joined(separator: ", "))")
            }
        }
    }

    func read(reserved: ReservedNames) throws(Failure) -> TableCatalog {
        try TableCatalog(reading: file.document, reserved: reserved)
    }

    /// Returns the line of a place, or of the object in which it is missing.
    func line(of pointer: String) -> Int { file.line(of: pointer) }
}
