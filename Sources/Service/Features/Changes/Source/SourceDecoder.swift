import Database
import Rows
import Values

/// A decoder of log messages into items, each with its position.
struct SourceDecoder {
    /// The items of one message, which are taken in together or not at all.
    struct Piece {
        let items: [SourceItem]
        let position: SourcePosition
        let bytes: Int
        let committedAt: Timestamp
    }

    /// The position before which everything has been received.
    private(set) var reached: SourcePosition
    /// The number of completed transactions.
    private(set) var transactions = 0
    /// Whether the source's heartbeat has arrived since this was last checked.
    private(set) var hasHeartbeat = false
    /// Messages that neither `bellhop.notify` nor `bellhop.publish` wrote.
    private(set) var unsigned = 0
    private var secret: SourceSecret
    private let tables: TableCatalog
    /// Nil for a table that the file does not declare.
    private var relations: [UInt32: SourceRows?] = [:]
    private var types: SourceTypes
    private var transaction: (at: LSN, committedAt: Timestamp, number: Int)?

    init(_ server: SourceServer, _ tables: TableCatalog, from position: SourcePosition, clock: Clock) {
        (types, self.tables, reached) = (SourceTypes(server), tables, position)
        secret = SourceSecret(server, clock)
    }

    var isBetweenTransactions: Bool { transaction == nil }

    mutating func takeHeartbeat() -> Bool {
        defer { hasHeartbeat = false }
        return hasHeartbeat
    }

    /// Records that the server has sent everything before a position.
    mutating func note(sentUpTo place: LSN) {
        guard transaction == nil, place > reached.lsn else { return }
        (reached.lsn, reached.taken) = (place, 0)
    }

    /// Decodes a message. Returns nil if it was taken in before, or contains nothing.
    mutating func take(_ bytes: ArraySlice<UInt8>) throws -> Piece? {
        switch try ReplicationMessage(reading: bytes) {
        case .begin(let place, let committedAt): transaction = (place, committedAt, 0)
        case .commit(let end):
            transaction = nil
            transactions += 1
            note(sentUpTo: end)
        case .relation(let relation): try note(relation)
        case .origin, .type: break
        case .insert(let relation, let new):
            return try piece(bytes) { [try $0.row(relation, .insert, old: nil, new: new, at: $1)] }
        case .update(let relation, let old, let new):
            return try piece(bytes) { [try $0.row(relation, .update, old: old, new: new, at: $1)] }
        case .delete(let relation, let old):
            return try piece(bytes) { [try $0.row(relation, .delete, old: old, new: nil, at: $1)] }
        case .truncate(let relations):
            return try piece(bytes) { decoder, moment in
                try relations.map { try decoder.rows(of: $0).map { .change($0.truncation(committedAt: moment)) } }
            }
        case .message(true, _, "bellhop", let content):
            return try piece(bytes) { decoder, _ in [try decoder.message(content)] }
        case .message(true, _, _, _): return try piece(bytes) { _, _ in [] }
        case .message(false, let place, let prefix, _):
            guard prefix == SourceServer.heartbeat else { break }
            note(sentUpTo: place)
            hasHeartbeat = true
        }
        return nil
    }

    /// Returns nil for a message without the secret.
    private mutating func message(_ content: ArraySlice<UInt8>) throws(SourceError) -> SourceItem? {
        guard let message = try secret.message(in: content) else {
            unsigned += 1
            return nil
        }
        do throws(Failure) {
            return .message(try SourceMessage(reading: message))
        } catch {
            return .rejected(SourceIntake.reason(of: error, in: "message"))
        }
    }

    /// Returns the items of the transaction's next message, unless it was taken in before.
    private mutating func piece(
        _ bytes: ArraySlice<UInt8>, _ items: (inout SourceDecoder, Timestamp) throws -> [SourceItem?]
    ) throws -> Piece? {
        guard let (place, committedAt, number) = transaction else {
            throw ReplicationFault(kind: nil, place: 0, reason: "a change arrived outside a transaction")
        }
        transaction?.number += 1
        guard !reached.includes(place, number + 1) else { return nil }
        let items = try items(&self, committedAt).compactMap(\.self)
        (reached.lsn, reached.taken) = (place, number + 1)
        if items.isEmpty { return nil }
        return Piece(items: items, position: reached, bytes: bytes.count, committedAt: committedAt)
    }

    // MARK: Rows

    private func rows(of relation: UInt32) throws -> SourceRows? {
        guard let rows = relations[relation] else {
            throw ReplicationFault(
                kind: nil, place: 0, reason: "a row belongs to the unknown relation \(relation)")
        }
        return rows
    }

    private mutating func row(
        _ relation: UInt32, _ kind: TableChange.Kind, old: SourceTuple?, new: SourceTuple?, at moment: Timestamp
    ) throws -> SourceItem? {
        guard let known = try rows(of: relation) else { return nil }
        func change(_ rows: SourceRows) throws(ChangeFault) -> SourceItem {
            .change(try rows.change(kind, old: old, new: new, committedAt: moment))
        }
        do throws(ChangeFault) {
            return try change(known)
        } catch {
            // The columns of one of the app's composite types may have changed, so the types are queried again.
            let rows = try types.refreshedRows(of: known.relation) ?? known
            relations[relation] = rows
            do throws(ChangeFault) {
                return try change(rows)
            } catch {
                let name = "\(rows.relation.schema).\(rows.relation.name)"
                return .rejected("\(name): \(error.pointer) \(error.reason)")
            }
        }
    }

    private mutating func note(_ relation: SourceRelation) throws {
        guard tables.find(schema: relation.schema, table: relation.name) != nil else {
            relations[relation.id] = .some(nil)
            return
        }
        relations[relation.id] = try types.rows(of: relation)
    }
}

/// The types of columns, from the app's catalogs, for reading the values of tables.
struct SourceTypes {
    private let server: SourceServer
    private var found: [UInt32: SourceType] = [:]

    init(_ server: SourceServer) { self.server = server }

    mutating func rows(of relation: SourceRelation) throws(SourceError) -> SourceRows {
        let unknown = Set(relation.columns.map(\.type)).filter { SourceType.known[$0] == nil && found[$0] == nil }
        if found.count + unknown.count > SourceLimits.typesMax { found = [:] }
        if !unknown.isEmpty {
            let list = "{" + unknown.sorted().map(String.init).joined(separator: ",") + "}"
            found.merge(SourceTypeCatalog.types(of: try server.ask(SourceTypeCatalog.query, [list]))) { $1 }
        }
        return SourceRows(relation, types: found)
    }

    /// Queries the types again. Returns nil if all types are PostgreSQL's own, which never change.
    mutating func refreshedRows(of relation: SourceRelation) throws(SourceError) -> SourceRows? {
        let own = relation.columns.map(\.type).filter { SourceType.known[$0] == nil }
        guard !own.isEmpty else { return nil }
        for type in own { found[type] = nil }
        return try rows(of: relation)
    }
}
