import BellhopClient
import Foundation
import TestSupport
import Testing

/// `Tests/VisibilityMatrix.md`: the texts that users enter, and who may see them.
struct VisibilityMatrix: Sendable {
    /// A text that its owner enters, and the callers that may see it.
    struct Mark: Sendable, Hashable, CustomStringConvertible {
        let name: String
        let creator: VisibilityWorld.Caller?
        /// The operation that enters the text: `POST /v1/posts`; nil if ``VisibilityWorld`` enters it in its own way.
        let operation: String?
        /// The members in which the body differs from the contract's example, as JSON. `TEXT` stands for the text.
        let members: String
        let readers: Set<VisibilityWorld.Caller>
        let tables: Set<String>

        var description: String { name }
        /// What answers are searched for.
        var text: String { "mark-\(name.lowercased())-end" }

        /// Reads the cells of a row.
        init(_ cells: [String]) throws {
            try #require(cells.count == 5, "\(cells)")
            name = cells[0]
            let quoted = Self.quoted(cells[1])
            creator = VisibilityWorld.Caller(rawValue: String(cells[1].prefix { $0 != ":" }))
            (operation, members) = (quoted.first, quoted.dropFirst().first ?? "{}")
            readers = try Set(
                cells[2].split(separator: ", ").flatMap { name -> [VisibilityWorld.Caller] in
                    if name == "everyone of A" { return VisibilityWorld.Caller.allCases.filter(\.readsA) }
                    return [try #require(VisibilityWorld.Caller(rawValue: String(name)), "\(name) is no caller")]
                })
            tables = Set(Self.quoted(cells[3]))
            try #require(operation == nil || creator != nil, "\(cells[1]) names no caller")
        }

        /// Returns the body: the contract's example with the row's members.
        func body() throws -> JSON? {
            let filled = members.replacingOccurrences(of: "TEXT", with: "\"\(text)\"")
            return try operation.flatMap {
                try ContractDocument.shared.get().body($0, with: JSON(parsing: filled).object ?? [:])
            }
        }

        fileprivate static func quoted(_ text: String) -> [String] {
            text.split(separator: "`", omittingEmptySubsequences: false).enumerated()
                .filter { $0.offset % 2 == 1 }.map { String($0.element) }
        }
    }

    static let shared = Result { try VisibilityMatrix() }

    /// In the order of the rows, in which they are entered.
    let marks: [Mark]
    /// The tables that have no text of a user.
    let tablesWithoutTexts: Set<String>

    private init() throws {
        let file = repository.appendingPathComponent("Tests/VisibilityMatrix.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst()
        marks = try rows.map { row in
            try Mark(
                row.dropFirst().dropLast().split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) })
        }
        let others = text.components(separatedBy: "\n\n").first { $0.hasPrefix("No text of a user is in ") }
        tablesWithoutTexts = Set(Mark.quoted(try #require(others)))
    }
}
