import Foundation

/// The rows of a table that match a filter, kept up to date while a screen watches them.
///
/// The app fetches the rows from its own backend and loads them here. Rows of events win over loaded rows: an answer may
/// be older than an event that arrived meanwhile, and a later change comes as another event.
public struct RowsMachine: ShownMachine {
    /// The table, the filter, and the columns to deliver.
    public struct Query: Sendable, Hashable {
        public var schema = "public"
        public var table: String
        /// A filter of PostgREST's grammar, such as `list_id=eq.7`.
        public var filter: String
        public var event = "*"
        /// The column of the ids.
        public var column = "id"
        /// Nil for all columns. The column of the ids is always delivered.
        public var select: [String]?

        public init(_ table: String, filter: String) {
            precondition(!filter.isEmpty, "rows need a filter, such as list_id=eq.7")
            (self.table, self.filter) = (table, filter)
        }

        /// A text that identifies this query.
        var name: String { "\([schema, table, filter, event, column] + (select ?? []))" }
    }

    public let query: Query
    /// The rows by id.
    public var rows: [String: JSON] { filters.rows }
    /// Whether the service has accepted the filter on the present stream.
    public var isPut: Bool { filters.isPut }
    /// Whether changes were missed, so that the app must fetch the rows again.
    public private(set) var isStale = false
    public var problem: JSON { filters.problem }
    private var filters = FiltersMachine()
    /// Whether the app has loaded the rows.
    private var isLoaded = false
    /// The rows that events have changed or removed since the last gap.
    private var changed: Set<String> = []
    private var isWatched = false
    private var isPlaced = false

    public init(_ query: Query) { self.query = query }

    public mutating func receive(_ input: FeatureInput<RowsCommand>, now: Int) -> [FeatureAction] {
        switch input {
        case .watch(let isWatched):
            if !isWatched { filters.leave() }
            self.isWatched = isWatched
        case .lifecycle(let isForeground): filters.lifecycle(isForeground)
        case .connection(let isLive):
            filters.connect(isLive)
            return []
        case .command(.apply(let row)):
            if let id = row.id(query.column) { filters.update(id, row) }
            return []
        case .command(.load(let rows)):
            load(rows)
            return []
        case .user:
            var other = RowsMachine(query)
            (other.isWatched, other.isPlaced, other.filters) = (isWatched, isPlaced, filters.forAnotherUser)
            self = other
            return []
        case .restore:
            if let kept = input.restored(Kept.self) { restore(kept) }
            return []
        case .timer: return put(isForced: true)
        case .event(let event): return handle(event)
        case .answer("tables", let status, let body, let retryAfterSeconds):
            let answer = ClassifiedAnswer(status: status, body: body, retryAfterSeconds: retryAfterSeconds)
            return filters.answered(answer, isPlaced: isPlaced, now: now)
        default: return []
        }
        return put()
    }

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let rows: [String: JSON]
        /// The last event of the stream that the rows include.
        let since: String?
    }

    public var kept: (any Encodable & Sendable)? {
        rows.isEmpty ? nil : Kept(rows: rows, since: filters.since ?? filters.lastEventId)
    }

    /// Shows rows of an earlier start. The service sends the changes since; the app loads the rows as well, because it
    /// may have forgotten some of the changes.
    private mutating func restore(_ kept: Kept) {
        guard !isLoaded else { return }
        filters.rows = kept.rows.filter { !changed.contains($0.key) }.merging(rows) { _, newer in newer }
        (filters.since, isStale) = (filters.since ?? kept.since, true)
    }

    private mutating func put(isForced: Bool = false) -> [FeatureAction] {
        let isNeeded = isWatched && filters.isForeground
        guard isNeeded != isPlaced || (isForced && isNeeded) else { return [] }
        isPlaced = isNeeded
        guard isNeeded else { return [filters.place([])] }
        var table: [String: JSON] = [
            "id": "rows", "schema": .string(query.schema), "table": .string(query.table),
            "event": .string(query.event), "filter": .string(query.filter),
        ]
        if let select = query.select {
            let columns = select.contains(query.column) ? select : [query.column] + select
            table["select"] = .array(columns.map(JSON.string))
        }
        return [filters.place([.object(table)])]
    }

    private mutating func load(_ loaded: [JSON]) {
        var next = rows.filter { changed.contains($0.key) }
        for row in loaded {
            guard let key = row.id(query.column) else { continue }
            // A row that an event has removed stays removed.
            guard changed.contains(key) else {
                next[key] = row
                continue
            }
            if let known = rows[key] { next[key] = row.with(known.object ?? [:]) }
        }
        (filters.rows, isStale, isLoaded) = (next, false, true)
    }

    private mutating func handle(_ event: FeatureEvent) -> [FeatureAction] {
        filters.note(event, isPlaced: isPlaced)
        if event.name == "stream:ready" { return isPlaced ? put(isForced: true) : [] }
        if event.name == "stream:resync" { (isStale, changed, filters.since) = (true, [], nil) }
        if let update = event.engagement {
            for (key, counts) in update.updates where rows[key] != nil { filters.update(key, counts) }
        }
        if let change = RowChange(event), let key = change.key(query.column), change.subscriptionIds.contains("rows") {
            filters.change(key, change)
            changed.insert(key)
        }
        return []
    }

    public struct Snapshot: Sendable, Hashable {
        /// The rows by id.
        public let rows: [String: JSON]
        /// Whether the service has accepted the filter on the present stream.
        public let isLive: Bool
        /// Whether changes were missed: fetch the rows again, and call `load`.
        public let isStale: Bool
        public let problem: Bellhop.Problem?

        /// Returns the rows as models of the app, in no particular order. Throws the error of the first row that is no
        /// such model.
        public func decode<Row: Decodable>(as type: Row.Type = Row.self) throws -> [Row] {
            let decoder = Bellhop.decoder
            return try rows.values.map { try decoder.decode(type, from: $0.data) }
        }
    }

    public var snapshot: Snapshot {
        Snapshot(rows: rows, isLive: isPut, isStale: isStale, problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey { case isStale, filters }
}

/// The commands of the user or the app.
public enum RowsCommand: Sendable, Hashable {
    /// Changes a row by the user's own write.
    case apply(row: JSON)
    case load(rows: [JSON])
}
