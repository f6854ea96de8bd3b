/// By which entries of a publication tables are read.
///
/// An entry has a number, which PostgreSQL gives once: one that is taken out and put back has another, and rows of the time
/// between were not published. Nothing else tells of it.
public struct SourcePublication: Sendable, Hashable {
    private let entries: [String: String]

    /// - Parameters:
    ///   - id: the publication's number.
    ///   - entries: the number of each table's entry; none for a table that is published as one of all.
    ///   - tables: the names of the tables that are read.
    public init(id: String, entries: [String: String], of tables: [String]) {
        self.entries = Dictionary(tables.map { ($0, "\(id)/\(entries[$0] ?? "all")") }) { $1 }
    }

    /// Reads what ``description`` wrote.
    public init(_ text: String) {
        var entries: [String: String] = [:]
        for line in text.split(separator: "\n") {
            guard let space = line.lastIndex(of: " ") else { continue }
            entries[String(line[..<space])] = String(line[line.index(after: space)...])
        }
        self.entries = entries
    }

    /// Whether a table that both have was published all the time since an earlier state.
    public func continues(_ earlier: SourcePublication) -> Bool {
        entries.allSatisfy { table, entry in earlier.entries[table].map { $0 == entry } ?? true }
    }
}

extension SourcePublication: CustomStringConvertible {
    /// As it is stored with a position: a line for each table, such as `public.tasks 16400/16450`.
    public var description: String { entries.sorted { $0.key < $1.key }.map { "\($0) \($1)" }.joined(separator: "\n") }
}
