import Database
import MicroHTTP
import Threads
import Values

extension ErasureFeature {
    /// `GET /v1/users/{id}/export`: the person's rows, a JSON document in each line.
    @Sendable static func export(_ call: Call, _ tables: [PersonRows]) throws -> Answer {
        let userId = try person(call)
        let walk = Locked(ExportWalk(of: userId, in: tables))
        let response = Response(
            status: 200,
            headers: [("Content-Type", "application/x-ndjson"), ("Cache-Control", "no-store, no-transform")])
        return .pieces(response) { tx in try walk.withLock { try $0.piece(tx) } }
    }
}

/// A walk over a person's rows, by the declarations of the tables. The first line names the person, and the last one
/// has the number of rows: without it, the export is not complete.
struct ExportWalk: Sendable {
    private let person: ID<User>
    private let tables: [PersonRows]
    private var table = 0
    private var place = PersonRows.Position()
    /// The columns of the table's rows, behind the columns of the key; nil for a column that is left out.
    private var columns: [Column?] = []
    private var count = 0
    private var (isBegun, isOver) = (false, false)

    init(of person: ID<User>, in tables: [PersonRows]) { (self.person, self.tables) = (person, tables) }

    /// Returns the next lines; nil behind the last one.
    mutating func piece(_ tx: Transaction) throws -> [UInt8]? {
        guard !isOver else { return nil }
        var bytes: [UInt8] = []
        if !isBegun {
            isBegun = true
            bytes += line("export") { writer in
                writer.member("userId", person)
                writer.member("tenant", tx.tenant)
                writer.member("at", tx.now)
            }
        }
        for _ in 0..<ErasureLimits.pieceStatementsMax {
            guard table < tables.count else {
                isOver = true
                return bytes + line("end") { $0.member("rows", count) }
            }
            let rows = tables[table]
            let next = try rows.forEach(of: person, from: place, tx) { row in
                count += 1
                if columns.isEmpty { columns = Self.columns(of: row, rows.policy) }
                bytes += line(rows.table.name) { Self.write(row, columns, behind: rows.policy.key.count, to: &$0) }
                return bytes.count < ErasureLimits.pieceBytes
            }
            if next == nil { (table, columns) = (table + 1, []) }
            place = next ?? PersonRows.Position()
            if bytes.count >= ErasureLimits.pieceBytes { break }
        }
        return bytes
    }

    private func line(_ kind: String, _ data: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("kind", kind)
            writer.member("data", data)
        }
        return writer.bytes + [UInt8(ascii: "\n")]
    }

    /// A column under the name that members of the API have.
    private struct Column {
        let name: String
        let isTime: Bool
        let isJSON: Bool
    }

    /// Returns the columns of the rows of a table. The first columns of a row repeat the key.
    private static func columns(of row: Row, _ policy: PersonPolicy) -> [Column?] {
        (policy.key.count..<row.count).map { index in
            let name = row.name(index)
            guard name != Table.tenantColumnDefault, !policy.hidden.contains(name) else { return nil }
            return Column(name: memberName(of: name), isTime: isTime(name), isJSON: policy.json.contains(name))
        }
    }

    private static func write(_ row: Row, _ columns: [Column?], behind start: Int, to writer: inout JSONWriter) {
        for (offset, column) in columns.enumerated() {
            guard let column else { continue }
            writer.key(column.name)
            switch row.value(start + offset) {
            case .null: writer.null()
            case .integer(let number) where column.isTime: writer.value(Timestamp(microseconds: number))
            case .integer(let number): writer.value(Int(number))
            case .real(let number): writer.value(number)
            case .text(let text) where column.isJSON:
                if text.isEmpty { writer.null() } else { writer.raw(text.utf8) }
            case .text(let text): writer.value(text)
            case .utf8(let bytes): writer.value(String(decoding: bytes, as: UTF8.self))
            case .blob(let bytes): writer.value(RFC4648.encode(bytes))
            }
        }
    }

    /// Returns `createdAt` for `created_at`.
    private static func memberName(of column: String) -> String {
        let words = column.split(separator: "_")
        return words.prefix(1).joined() + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }

    private static func isTime(_ column: String) -> Bool {
        column.hasSuffix("_at") || ["at", "since", "scheduled_start"].contains(column)
    }
}
