import Foundation

/// Rows that are on the screen, kept up to date by filters on the service. Rows that the user scrolls past are not
/// subscribed to, invisible rows cost nothing, and nothing is subscribed to in the background.
public struct VisibleRowsMachine: ShownMachine {
    /// The table, and the columns to deliver.
    public struct Table: Sendable, Hashable {
        public var schema = "public"
        public var table: String
        public var column = "id"
        public var event = "UPDATE"
        public var select: [String]?

        public init(_ table: String) {
            self.table = table
        }

        /// A text that identifies this table with its columns.
        var name: String { "\([schema, table, column, event] + (select ?? []))" }
    }

    /// Limits with the defaults of `/v1/config`, until it has answered.
    public struct Limits: Sendable, Hashable {
        public var valuesMax = 1000
        public var perStreamMax = 100
        public var valuesPerStreamMax = 10_000
        public var filterBytesMax = 65_536

        public init() {}

        /// The limits of `/v1/config`.
        struct Published: Decodable {
            let valuesMax, perStreamMax, valuesPerStreamMax, filterBytesMax: Int?
        }

        mutating func take(_ published: Published) {
            valuesMax = published.valuesMax ?? valuesMax
            perStreamMax = published.perStreamMax ?? perStreamMax
            valuesPerStreamMax = published.valuesPerStreamMax ?? valuesPerStreamMax
            filterBytesMax = published.filterBytesMax ?? filterBytesMax
        }
    }

    private struct Configuration: Decodable { let subscriptions: Limits.Published }

    public let table: Table
    public private(set) var ids: [String] = []
    /// The rows as last sent by the service, by id.
    public var rows: [String: JSON] { filters.rows }
    /// Whether the service has accepted the current filters.
    public var isPut: Bool { filters.isPut }
    public var problem: JSON { filters.problem }
    private var filters = FiltersMachine()
    /// The rows of an earlier start that no event has changed.
    private var restored: Set<String> = []
    private var limits: Limits
    private var isPaused = false
    private var isStopped = false
    private var placed: [JSON] = []
    private var changedAt: Int?
    private var warned = Int.max

    /// While the user scrolls, the visible rows change with every frame. They are put once they have been stable for
    /// this long…
    private static let restMilliseconds = 250
    /// … or have been changing for this long, because users want to see counts during continuous scrolling too.
    private static let restMillisecondsMax = 1000

    private struct Level {
        let above: Int
        let code: String
        let text: String
    }

    /// Above these numbers of ids on one screen, the app should page the list or subscribe to a topic for it
    /// (R-ENG-E-4).
    private static let levels = [
        Level(
            above: 1000, code: "visible-rows.batch",
            text: "So many rows need a topic of their own: subscribe to it instead."),
        Level(
            above: 300, code: "visible-rows.many", text: "More rows than fit on one screen: name only the visible ones."
        ),
    ]

    public init(_ table: Table, limits: Limits = Limits()) {
        self.table = table
        self.limits = limits
    }

    public mutating func receive(_ input: FeatureInput<VisibleRowsCommand>, now: Int) -> [FeatureAction] {
        switch input {
        case .start: return [.fetch(path: "/v1/config", as: "config")]
        case .command(.apply(let row)):
            if let id = row.id(table.column), ids.contains(id) {
                filters.update(id, row)
                restored.remove(id)
            }
            return []
        case .command(.show(let ids)): return show(ids, now: now)
        case .command(.pause):
            filters.leave()
            isPaused = true
        case .command(.resume): isPaused = false
        case .command(.stop): (isStopped, ids, filters.rows, filters.since) = (true, [], [:], nil)
        case .lifecycle(let isForeground): filters.lifecycle(isForeground)
        case .connection(let isLive):
            filters.connect(isLive)
            return []
        case .user:
            let placed = placed
            self = VisibleRowsMachine(table, limits: limits)
            self.placed = placed
        case .timer(let name):
            changedAt = nil
            return put(isForced: name == "retry")
        case .restore:
            if let kept = input.restored(Kept.self) { restore(kept) }
            return []
        case .event(let event): return handle(event)
        case .answer(let name, let status, let body, let retryAfterSeconds):
            return answered(
                name, ClassifiedAnswer(status: status, body: body, retryAfterSeconds: retryAfterSeconds), now: now)
        default: return []
        }
        return put()
    }

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let ids: [String]
        let rows: [String: JSON]
        /// The last event of the stream that the rows include.
        let since: String?
    }

    public var kept: (any Encodable & Sendable)? {
        ids.isEmpty ? nil : Kept(ids: ids, rows: rows, since: filters.since ?? filters.lastEventId)
    }

    /// Shows rows of an earlier start until the filters are live: from then on, rows that the app fetches are newer.
    private mutating func restore(_ kept: Kept) {
        guard !isPut else { return }
        let fresh = kept.rows.filter { rows[$0.key] == nil && (ids.isEmpty || ids.contains($0.key)) }
        restored = Set(fresh.keys)
        filters.rows.merge(fresh) { newer, _ in newer }
        // The rows of the last screen, until the app has said which rows it shows.
        if ids.isEmpty { ids = kept.ids }
        if placed.isEmpty { filters.since = filters.since ?? kept.since }
    }

    private mutating func show(_ requested: [String], now: Int) -> [FeatureAction] {
        var seen: Set<String> = []
        ids = requested.filter { seen.insert($0).inserted }
        filters.rows = rows.filter { seen.contains($0.key) }
        isStopped = false
        // Reported when the level is crossed, not at every step of a scroll.
        let level = VisibleRowsMachine.levels.first { ids.count > $0.above }
        var actions: [FeatureAction] = []
        if let level, level.above != warned {
            let data: JSON = [
                "above": .integer(Int64(level.above)), "code": .string(level.code), "text": .string(level.text),
                "count": .integer(Int64(ids.count)),
            ]
            actions.append(.publish(name: "visible-rows:warning", data: data))
        }
        warned = level?.above ?? .max
        // The first rows of a screen are put without delay.
        if placed.isEmpty, changedAt == nil { return actions + put() }
        let began = changedAt ?? now
        changedAt = began
        let at = min(now + VisibleRowsMachine.restMilliseconds, began + VisibleRowsMachine.restMillisecondsMax)
        return actions + [.timer(name: "rest", at: at)]
    }

    private mutating func put(isForced: Bool = false) -> [FeatureAction] {
        let tables = isPaused || isStopped || !filters.isForeground ? [] : subscriptions
        guard tables != placed || isForced else { return [] }
        placed = tables
        return [filters.place(tables)]
    }

    private mutating func handle(_ event: FeatureEvent) -> [FeatureAction] {
        filters.note(event, isPlaced: !placed.isEmpty)
        if event.name == "stream:ready" { return placed.isEmpty ? [] : put(isForced: true) }
        if let update = event.engagement {
            for (id, counts) in update.updates where ids.contains(id) {
                filters.update(id, counts)
                restored.remove(id)
            }
        }
        if let change = RowChange(event), let key = change.key(table.column), ids.contains(key),
            change.subscriptionIds.contains(where: { $0.hasPrefix("\(table.table):") })
        {
            filters.change(key, change)
            restored.remove(key)
        }
        return []
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer, now: Int) -> [FeatureAction] {
        if name == "config", answer.isTaken {
            if let configuration = answer.model(Configuration.self) { limits.take(configuration.subscriptions) }
            return put()
        }
        guard name == "tables" else { return [] }
        let actions = filters.answered(answer, isPlaced: !placed.isEmpty, now: now)
        if answer.isTaken, isPut {
            filters.rows = rows.filter { !restored.contains($0.key) }
            restored = []
        }
        guard answer.isFinal, answer.status != 404 else { return actions }
        return [.publish(name: "visible-rows:refused", data: ["problem": problem])]
    }

    /// Filters, each within the service's limits for the number of values and of bytes.
    private var subscriptions: [JSON] {
        var chunks: [[String]] = []
        var bytes = Int.max / 2
        for id in ids.prefix(limits.valuesPerStreamMax) {
            let value = VisibleRowsMachine.quoted(id)
            let more = value.utf8.count + 1
            if bytes + more > limits.filterBytesMax || (chunks.last?.count ?? 0) >= limits.valuesMax {
                if chunks.count >= limits.perStreamMax { break }
                chunks.append([])
                bytes = "\(table.column)=in.()".utf8.count
            }
            chunks[chunks.count - 1].append(value)
            bytes += more
        }
        return chunks.enumerated().map { index, values in
            var members: [String: JSON] = [
                "id": .string("\(table.table):\(index)"), "schema": .string(table.schema),
                "table": .string(table.table), "event": .string(table.event),
                "filter": .string("\(table.column)=in.(\(values.joined(separator: ",")))"),
            ]
            if let select = table.select { members["select"] = .array(select.map(JSON.string)) }
            return .object(members)
        }
    }

    /// Returns a value in the filter grammar: plain, or quoted if one of its characters would end it.
    private static func quoted(_ value: String) -> String {
        let isSpecial = value.contains { ",()\"\\".contains($0) }
        let hasEdges = value.first?.isWhitespace ?? true || value.last?.isWhitespace ?? true
        guard isSpecial || hasEdges else { return value }
        let escaped = value.map { "\"\\".contains($0) ? "\\\($0)" : "\($0)" }.joined()
        return "\"\(escaped)\""
    }

    public struct Snapshot: Sendable, Hashable {
        /// The ids of the shown rows.
        public let ids: [String]
        /// The rows as last sent by the service, by id. Tables of the app may have any columns.
        public let rows: [String: JSON]
        /// Whether the service has accepted the current filters.
        public let isLive: Bool
        public let problem: Bellhop.Problem?
    }

    public var snapshot: Snapshot {
        Snapshot(ids: ids, rows: rows, isLive: isPut, problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey { case ids, filters }
}

/// The commands of the user or the app.
public enum VisibleRowsCommand: Sendable, Hashable {
    /// Changes a row by the user's own write.
    case apply(row: JSON)
    case show(ids: [String])
    case pause
    case resume
    case stop
}
