import Database
import Rows
import Threads
import Values

/// A reader of the current rows of tables with memberships: first the snapshot, then the changes.
struct SourceSnapshot {
    /// What becomes of the stored rows of a table.
    enum Earlier {
        /// They are removed first: changes were missed, so any of them may be gone.
        case removed
        /// Rows that the snapshot lacks are removed at the end. All changes were seen, so users keep the keys that a
        /// needless read finds again.
        case compared
    }

    let server: SourceServer
    let intake: SourceIntake
    let tables: [TableDeclaration]
    /// The thread on which it reads.
    let thread: LoopThread
    let earlier: Earlier

    /// Takes in all rows, part by part.
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
        _ = try server.ask("SET LOCAL statement_timeout = '\(SourceLimits.snapshotSecondsMax)s'")
        var types = SourceTypes(server)
        for table in tables {
            let truncation = SourceItem.change(
                .truncation(of: table.schema, table.name, isResnapshot: true))
            let seen = earlier == .compared ? AcceptedRows() : nil
            var part = Part(mark: mark, seen: seen, seen == nil ? [truncation] : [])
            if let relation = try server.relation(table) {
                rejected += try read(table, try types.rows(of: relation), &part)
            }
            if seen != nil { part.add(truncation, bytes: 0) }
            rejected += try store(&part)
        }
        _ = try server.ask("COMMIT")
        return rejected
    }

    private func read(_ table: TableDeclaration, _ rows: SourceRows, _ part: inout Part) throws -> [String] {
        var rejected: [String] = []
        let columns = rows.relation.columns.map { SourceServer.quoted($0.name) }.joined(separator: ", ")
        for stored in try server.parts(of: table) where stored.storesRows && stored.obstacle == nil {
            // COPY reads the stored rows. It plans no query and accepts no view, so that no code of the app runs.
            try server.connection.copyOut("COPY \(stored.quotedName) (\(columns)) TO STDOUT") { line in
                part.add(Self.item(line, rows), bytes: line.count)
                if part.isFull { rejected += try store(&part) }
            }
        }
        return rejected
    }

    /// Rows that are stored at once.
    private struct Part {
        let mark: SourcePosition
        let seen: AcceptedRows?
        var items: [SourceItem]
        private var bytes = 0

        init(mark: SourcePosition, seen: AcceptedRows?, _ items: [SourceItem]) {
            (self.mark, self.seen, self.items) = (mark, seen, items)
        }

        var isFull: Bool { items.count >= SourceLimits.snapshotRowsMax || bytes >= SourceLimits.batchBytesMax }

        mutating func add(_ item: SourceItem, bytes count: Int) {
            items.append(item)
            bytes += count
        }

        mutating func takeItems() -> [SourceItem] {
            defer { (items, bytes) = ([], 0) }
            return items
        }
    }

    private func store(_ part: inout Part) throws -> [String] {
        let items = part.takeItems()
        guard !items.isEmpty else { return [] }
        return try intake.writeWaitingForRoom(
            .init(items, from: part.mark, to: part.mark, seen: part.seen), on: thread
        ).rejected
    }

    private static func item(_ line: ArraySlice<UInt8>, _ rows: SourceRows) -> SourceItem {
        do throws(ChangeFault) {
            return .change(try rows.snapshot(ofLine: line))
        } catch {
            return .rejected("\(rows.relation.schema).\(rows.relation.name): \(error.pointer) \(error.reason)")
        }
    }
}

extension SourceServer {
    /// Returns a table and its columns, as the log would describe them; nil if the table does not exist.
    fileprivate func relation(_ table: TableDeclaration) throws -> SourceRelation? {
        let rows = try ask(
            """
            SELECT a.attname, a.atttypid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
                AND a.attgenerated = '' ORDER BY a.attnum
            """, [table.schema, table.name])
        guard !rows.isEmpty else { return nil }
        return SourceRelation(
            id: 0, schema: table.schema, name: table.name,
            columns: rows.map { row in
                .init(name: row[0] ?? "", isOfOldRows: false, type: row[1].flatMap { UInt32($0) } ?? 0)
            })
    }
}
