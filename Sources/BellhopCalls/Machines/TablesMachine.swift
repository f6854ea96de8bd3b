/// The row subscriptions of a stream. They are put again on each new stream and when they change.
///
/// Refused tables are left out, so that one wrong table does not block the others. Each owner learns the result for its
/// own tables.
package struct TablesMachine: Sendable, Hashable {
    package enum Input: Sendable {
        /// - Parameter lastEventId: the last event of an earlier stream; rows that changed since are sent first.
        case want([JSON], lastEventId: String?)
        /// - Parameter since: the last event of the previous stream.
        case ready(streamId: String, since: String?)
        case lost
        case timer
        /// The answer to the put of that number.
        case answer(count: Int, status: Int, body: JSON, retryAfterMilliseconds: Int)
    }

    package enum Action: Sendable, Hashable {
        case timer(at: Int?)
        case put(streamId: String, count: Int, tables: [JSON], lastEventId: String?)
        case answered(Outcome)
    }

    /// The result for the tables.
    package struct Outcome: Sendable, Hashable {
        package let status: Int
        package let body: JSON
        /// Why the service refused a table, by the table's id.
        package let refused: [String: JSON]
    }

    private struct RefusedTable: Sendable, Hashable, Encodable {
        package let table: JSON
        package let problem: JSON
    }

    /// Delay between two tries, if the service could not answer.
    private static let retryMilliseconds = 5000

    private var streamId: String?
    private var tables: [JSON] = []
    /// Changes after this event were missed.
    private var since: String?
    /// The tables that the stream has accepted.
    private var taken: [JSON] = []
    private var refused: [String: RefusedTable] = [:]
    private var asked: [JSON]?
    private var count = 0
    /// Maximum number of new tables per put while bisecting for the refused one; nil means all.
    private var limit: Int?
    /// The answer to the present tables, once it is complete.
    private var response: Response?

    private struct Response: Sendable, Hashable {
        package let status: Int
        package let body: JSON
    }

    package init() {}

    package mutating func receive(_ input: Input, now: Int) -> [Action] {
        switch input {
        case .want(let tables, let lastEventId): return want(tables, lastEventId)
        case .ready(let streamId, let since):
            // A new stream has no tables, and may accept tables that the previous one refused.
            (self.streamId, self.since) = (streamId, since.flatMap { $0.isEmpty ? nil : $0 })
            (taken, refused, asked, limit, response) = ([], [:], nil, nil, nil)
            return tables.isEmpty ? [] : put()
        case .lost:
            (streamId, asked) = (nil, nil)
            return [.timer(at: nil)]
        case .timer: return put()
        case .answer(let count, let status, let body, let wait):
            guard count == self.count, let asked else { return [] }
            self.asked = nil
            return handleAnswer(to: asked, status: status, body: body, wait: wait, at: now)
        }
    }

    private mutating func want(_ wanted: [JSON], _ lastEventId: String?) -> [Action] {
        // If the stream already has these tables, the stored answer is returned.
        guard wanted != tables else { return response.map { [outcome($0)] } ?? [] }
        tables = wanted
        refused = refused.filter { wanted.contains($0.value.table) }
        // Changes that an unanswered earlier put asked for are still missed.
        since = response != nil ? lastEventId : since ?? lastEventId
        (limit, response) = (nil, nil)
        guard streamId == nil else { return put() }
        since = nil
        return []
    }

    /// The tables that are not refused.
    private var left: [JSON] { tables.filter { refused[TablesMachine.id($0)] == nil } }

    private static func id(_ table: JSON) -> String { table["id"].string ?? "" }

    private mutating func put() -> [Action] {
        guard let streamId else { return [] }
        var room = limit ?? .max
        let wanted = left.filter { table in
            if taken.contains(table) { return true }
            room -= 1
            return room >= 0
        }
        if wanted == taken, wanted.isEmpty || since == nil { return finish(200, .null) }
        asked = wanted
        count += 1
        let missed = wanted.isEmpty ? nil : since
        return [.timer(at: nil), .put(streamId: streamId, count: count, tables: wanted, lastEventId: missed)]
    }

    private mutating func finish(_ status: Int, _ body: JSON) -> [Action] {
        limit = nil
        let response = Response(status: status, body: body)
        self.response = response
        if status == 200 { since = nil }
        return [outcome(response)]
    }

    private func outcome(_ response: Response) -> Action {
        .answered(Outcome(status: response.status, body: response.body, refused: refused.mapValues(\.problem)))
    }

    private mutating func handleAnswer(to asked: [JSON], status: Int, body: JSON, wait: Int, at now: Int)
        -> [Action]
    {
        if status == 0 || status >= 500 || status == 429 {
            return [.timer(at: now + max(TablesMachine.retryMilliseconds, wait))]
        }
        if status == 200 {
            taken = asked
            limit = limit.map { $0 * 2 }
            return asked.count < left.count ? put() : finish(status, body)
        }
        return [400, 403, 413, 422].contains(status) ? without(asked, status, body) : finish(status, body)
    }

    /// Marks the tables that the service names as refused. If it names no table, halves the number of new tables to
    /// find the refused one.
    private mutating func without(_ asked: [JSON], _ status: Int, _ body: JSON) -> [Action] {
        let refusal = Refusal(body)
        let errors = refusal.errors
        let before = refused.count
        for (index, table) in asked.enumerated() {
            let place = "/tables/\(index)"
            let own = errors.first { error in
                let pointer = error.pointer ?? ""
                return pointer == place || pointer.hasPrefix("\(place)/")
            }
            if let own { refuse(table, status: status, refusal, at: own) }
        }
        if refused.count > before { return put() }
        // The service no longer knows the event, so the changes since are not sent.
        if since != nil, errors.contains(where: { $0.pointer == "/lastEventId" }) {
            since = nil
            return put()
        }
        let fresh = asked.filter { !taken.contains($0) }
        let unknown = fresh.isEmpty ? asked : fresh
        if unknown.count > 1 {
            if fresh.isEmpty { taken = [] }
            limit = unknown.count / 2
            return put()
        }
        guard let first = unknown.first else { return finish(status, body) }
        // The total is too large: if one table does not fit, the tables behind it do not fit either.
        let isFull = errors.contains { $0.pointer == "/tables" }
        let behind = left.drop { $0 != first }.filter { !taken.contains($0) }
        for table in isFull ? behind : unknown { refuse(table, status: status, refusal, at: errors.first) }
        return put()
    }

    private mutating func refuse(_ table: JSON, status: Int, _ refusal: Refusal, at place: Refusal.Place?) {
        let problem: JSON = [
            "status": .integer(Int64(status)), "code": .string(refusal.code ?? "http.\(status)"),
            "detail": .string((place == nil ? refusal.detail : place?.detail) ?? ""),
        ]
        refused[TablesMachine.id(table)] = RefusedTable(
            table: table, problem: place.map { problem.with(["pointer": JSON($0.pointer)]) } ?? problem)
    }

    /// Returns an event's data with the ids that the owner of these prefixes chose, or nil if it concerns other tables.
    package static func seen(by prefixes: [String], _ name: String, _ data: JSON) -> JSON? {
        guard name == "table:change", let ids = data["subscriptionIds"].array else { return data }
        let own = ids.compactMap(\.string).compactMap { id in
            prefixes.first { id.hasPrefix($0) }.map { JSON.string(String(id.dropFirst($0.count))) }
        }
        // `.none` instead of `nil`, which would be read as JSON null.
        return own.isEmpty ? .none : .some(data.with(["subscriptionIds": .array(own)]))
    }
}

extension TablesMachine: Encodable {
    private enum CodingKeys: CodingKey { case streamId, tables, since, taken, refused }
}
