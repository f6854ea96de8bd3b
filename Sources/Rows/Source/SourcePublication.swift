/// The entries of a publication that publish the tables.
///
/// PostgreSQL numbers each entry once. An entry that is removed and added again has a new number, and the rows in
/// between were not published. The number is the only sign of that gap.
///
/// An operation that is left out and published again has no entry. The only sign of that gap is the number of the
/// transaction that last changed the publication itself (`xmin`). Changes of entries do not change this number.
public struct SourcePublication: Sendable, Hashable {
    private let entries: [String: String]

    /// The name under which the last change of the publication is kept. The names of tables contain a point.
    private static let changeName = "publication"

    /// - Parameters:
    ///   - id: The publication's number.
    ///   - change: The transaction that last changed the publication's operations; nil for one that does not exist.
    ///   - entries: The entry number of each table. A table that is published by FOR ALL TABLES has no entry.
    ///   - tables: The names of the tables that are read.
    public init(id: String, change: String? = nil, entries: [String: String], of tables: [String]) {
        var all = Dictionary(tables.map { ($0, "\(id)/\(entries[$0] ?? "all")") }) { $1 }
        all[Self.changeName] = change.map { "\(id)/\($0)" }
        self.entries = all
    }

    /// Parses the form of ``description``.
    public init(_ text: String) {
        var entries: [String: String] = [:]
        for line in text.split(separator: "\n") {
            guard let space = line.lastIndex(of: " ") else { continue }
            entries[String(line[..<space])] = String(line[line.index(after: space)...])
        }
        self.entries = entries
    }

    /// Returns whether every table in both states was published without a gap since the earlier one. A line that the
    /// earlier state lacks is no gap.
    public func continues(_ earlier: SourcePublication) -> Bool {
        entries.allSatisfy { table, entry in earlier.entries[table].map { $0 == entry } ?? true }
    }
}

extension SourcePublication: CustomStringConvertible {
    /// The form that is stored with a position: a line per table, such as `public.tasks 16400/16450`, and a line with the
    /// last change of the publication.
    public var description: String { entries.sorted { $0.key < $1.key }.map { "\($0) \($1)" }.joined(separator: "\n") }
}
