import Database
import Rows
import Threads
import Values

/// A reader of the current rows of tables with memberships: first the snapshot, then the changes.
struct SourceSnapshot {
    let server: SourceServer
    let intake: SourceIntake
    let tables: [TableDeclaration]
    /// The thread on which it reads.
    let thread: LoopThread

    /// Takes in all rows, part by part. Earlier data of these tables is discarded, because rows may have been deleted
    /// unseen.
    ///
    /// - Parameters:
    ///   - snapshot: The name of the snapshot at which a slot begins; nil for the current state.
    ///   - mark: The stored position. A reader that was paused while another replica continued does not overwrite its
    ///     rows.
    /// - Returns: The reasons for which rows were rejected.
    /// - Throws: ``SourcePosition/Moved`` once another position is stored.
    func read(at snapshot: String?, while mark: SourcePosition) throws -> [String] {
        guard !tables.isEmpty else { return [] }
        var rejected: [String] = []
        _ = try server.ask("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if let snapshot { _ = try server.ask("SET TRANSACTION SNAPSHOT '\(snapshot)'") }
        for table in tables {
            var items: [SourceItem] = [.change(.truncation(of: table.schema, table.name))]
            let name = "\(SourceServer.quoted(table.schema)).\(SourceServer.quoted(table.name))"
            _ = try server.ask("DECLARE rows NO SCROLL CURSOR FOR SELECT to_jsonb(t)::text FROM \(name) AS t")
            while true {
                let rows = try server.ask("FETCH \(SourceLimits.snapshotRowsMax) FROM rows")
                items += rows.map { Self.item($0.first ?? nil, of: table) }
                if !items.isEmpty {
                    rejected += try intake.writeWhenThereIsRoom(items, from: mark, to: mark, on: thread).rejected
                }
                items = []
                if rows.count < SourceLimits.snapshotRowsMax { break }
            }
            _ = try server.ask("CLOSE rows")
        }
        _ = try server.ask("COMMIT")
        return rejected
    }

    private static func item(_ text: String?, of table: TableDeclaration) -> SourceItem {
        do throws(ChangeFault) {
            let row = try SourceType.row(Array((text ?? "null").utf8)[...])
            return .change(.snapshot(of: table.schema, table.name, row))
        } catch {
            return .rejected("\(table.qualifiedName): \(error.pointer) \(error.reason)")
        }
    }
}
