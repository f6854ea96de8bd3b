import Database
import Values

/// The rows of a person in one table, as the table declares them.
struct PersonRows: Sendable {
    let table: Table
    let policy: PersonPolicy

    /// Creates them; nil for a table without rows of persons.
    init?(_ table: Table) {
        guard let policy = table.person, !policy.links.isEmpty else { return nil }
        (self.table, self.policy) = (table, policy)
    }

    static let leaving = Unscoped.bookkeeping("an erasure or an export concerns the rows of one person")

    private var scanned: [PersonLink] { policy.links.filter { !$0.isBounded } }
    private var keyColumns: SQL { SQL(unchecked: policy.key.joined(separator: ", ")) }

    /// Returns the condition that a link makes a row the person's.
    private func condition(_ link: PersonLink, _ person: ID<User>) -> SQL {
        let isMeant: SQL = "\(SQL(unchecked: link.column)) = \(person)"
        return link.condition.map { "\(isMeant) AND \(SQL(unchecked: "\($0)"))" } ?? isMeant
    }

    // MARK: Erasing

    /// Returns the step that erases the rows, except rows that a step of the feature erases; nil if there is nothing to
    /// do.
    ///
    /// - Parameter isClosed: Whether nothing can name the person any more. Otherwise rows that one statement finds are
    ///   left out. Some are counts of other rows, such as badges: without them, what appears meanwhile could not be
    ///   subtracted.
    func step(isClosed: Bool) -> PersonStep? {
        guard isClosed || policy.content != nil || scanned.contains(where: { !$0.isStep }) else { return nil }
        return PersonStep("table \(table.name)") { person, place, tx in
            // Requests and senders change rows of a user under this lock, such as rows of devices.
            try tx.lock(.user(person))
            if place == nil, isClosed {
                for link in policy.links where link.isBounded { try erase(link, of: person, "TRUE", tx) }
            }
            guard policy.content != nil || scanned.contains(where: { !$0.isStep }) else { return nil }
            let after = place.map(Self.key) ?? nil
            let last = try last(
                after: after,
                of: policy.content == nil ? ErasureLimits.scannedAtOnceMax : ErasureLimits.readAtOnceMax, tx.tenant,
                tx.db)
            let range = range(after: after, through: last)
            for link in scanned { try erase(link, of: person, range, tx) }
            if let content = policy.content { try eraseMentions(of: person, in: content, range, tx) }
            return last.map(Self.text)
        }
    }

    private func erase(_ link: PersonLink, of person: ID<User>, _ range: SQL, _ tx: Transaction) throws {
        let rows: SQL = "\(range) AND \(condition(link, person))"
        switch link.end {
        case .step: return
        case .deleted: try tx.db.run("DELETE FROM \(table, within: tx.tenant, Self.leaving) WHERE \(rows)")
        case .changed(let changes):
            let values = changes.map { change -> SQL in
                let column = SQL(unchecked: change.column)
                return switch change {
                case .null: "\(column) = NULL"
                case .empty: "\(column) = ''"
                case .pseudonym: "\(column) = \(ID<User>.erased)"
                case .next: "\(column) = \(column) + 1"
                }
            }
            let assignments = SQL.joined(values, separator: ", ")
            try tx.db.run("UPDATE \(table, within: tx.tenant, Self.leaving) SET \(assignments) WHERE \(rows)")
        }
    }

    /// Deletes rows whose content names the person.
    private func eraseMentions(of person: ID<User>, in content: String, _ range: SQL, _ tx: Transaction) throws {
        let names = PersonNames(person)
        let column = SQL(unchecked: content)
        let found = try tx.db.rows(
            """
            SELECT \(keyColumns), \(column) FROM \(table, within: tx.tenant, Self.leaving) WHERE \(range)
            """
        ) { row -> [SQLValue]? in
            names.arePerson(in: try row.bytes(policy.key.count)) ? policy.key.indices.map { row.value($0) } : nil
        }
        for key in found.compactMap(\.self) {
            try tx.db.run(
                """
                DELETE FROM \(table, within: tx.tenant, Self.leaving)
                WHERE (\(keyColumns)) = \(values: key)
                """)
        }
    }

    // MARK: Exporting

    /// A position in a walk over the person's rows: first the rows of each link that has an index, then the rows that a
    /// scan finds.
    struct Position {
        var pass = 0
        var key: [SQLValue]?
    }

    /// Passes the next rows of the person to the body, each once.
    ///
    /// - Parameter body: Receives a row, behind the columns of the key, and returns whether to continue.
    /// - Returns: where to continue; nil at the end of the table
    func forEach(
        of person: ID<User>, from position: Position, _ tx: Transaction, _ body: (Row) throws -> Bool
    ) throws -> Position? {
        let indexed = policy.links.filter(\.isBounded)
        let isScan = position.pass == indexed.count
        let links = isScan ? scanned : [indexed[position.pass]]
        let end =
            isScan ? try last(after: position.key, of: ErasureLimits.scannedAtOnceMax, tx.tenant, tx.db) : nil
        let isMeant = SQL.joined(links.map { "(\(condition($0, person)))" as SQL }, separator: " OR ")
        // Rows of earlier passes are not repeated.
        let earlier = indexed.prefix(position.pass).map { "NOT coalesce(\(condition($0, person)), FALSE)" as SQL }
        let rows = SQL.joined(
            ["\(range(after: position.key, through: end)) AND (\(isMeant))"] + earlier, separator: " AND ")
        if let last = try read(rows, tx, body) { return Position(pass: position.pass, key: last) }
        if let end { return Position(pass: position.pass, key: end) }
        let next = position.pass + 1
        return next < indexed.count + (scanned.isEmpty ? 0 : 1) ? Position(pass: next) : nil
    }

    /// Returns the key of the last row if there may be more.
    private func read(_ rows: SQL, _ tx: Transaction, _ body: (Row) throws -> Bool) throws -> [SQLValue]? {
        var (count, last, continues): (Int, [SQLValue]?, Bool) = (0, nil, true)
        try tx.db.forEach(
            """
            SELECT \(keyColumns), \(SQL(unchecked: table.name)).* FROM \(table, within: tx.tenant, Self.leaving)
            WHERE \(rows) ORDER BY \(keyColumns) LIMIT \(ErasureLimits.exportedAtOnceMax)
            """
        ) { row in
            count += 1
            last = policy.key.indices.map { row.value($0) }
            continues = try body(row)
            return continues
        }
        return continues && count < ErasureLimits.exportedAtOnceMax ? nil : last
    }

    // MARK: The order of the key

    /// Returns the key of the last of the next rows of the tenant; nil if fewer are left.
    private func last(
        after key: [SQLValue]?, of count: Int, _ tenant: ID<Tenant>, _ db: DatabaseConnection
    ) throws -> [SQLValue]? {
        try db.row(
            """
            SELECT \(keyColumns) FROM \(table, within: tenant, Self.leaving)
            WHERE \(range(after: key, through: nil))
            ORDER BY \(keyColumns) LIMIT 1 OFFSET \(count - 1)
            """
        ) { row in policy.key.indices.map { row.value($0) } }
    }

    private func range(after key: [SQLValue]?, through last: [SQLValue]?) -> SQL {
        SQL.all([
            key.map { "(\(keyColumns)) > \(values: $0)" }, last.map { "(\(keyColumns)) <= \(values: $0)" },
        ])
    }

    /// Writes a key as JSON.
    static func text(_ key: [SQLValue]) -> String {
        let bytes = JSONWriter.bytes(
            JSONValue.array(
                key.map { value in
                    switch value {
                    case .integer(let number): .integer(number)
                    case .text(let text): .string(text)
                    case .null, .real, .utf8, .blob: .null
                    }
                }))
        return String(decoding: bytes, as: UTF8.self)
    }

    static func key(_ text: String) -> [SQLValue]? {
        guard case .array(let values)? = try? JSONValue(parsing: Array(text.utf8)) else { return nil }
        return values.map { value in
            switch value {
            case .integer(let number): .integer(number)
            case .string(let text): .text(text)
            default: .null
            }
        }
    }
}
