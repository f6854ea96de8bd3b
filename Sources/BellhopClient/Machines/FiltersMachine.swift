/// The filters on rows that a store has put on the stream: whether the service has accepted them, and which changes were
/// missed.
struct FiltersMachine: Sendable, Encodable {
    /// The rows as last sent by the service, by id.
    var rows: [String: JSON] = [:]
    private(set) var isForeground = true
    /// Whether the service has accepted the filters on the present stream.
    private(set) var isPut = false
    private(set) var problem: JSON = .null
    private(set) var lastEventId: String?
    /// The event after which changes were missed.
    var since: String?
    private var failures = 0

    private enum CodingKeys: CodingKey { case rows, isPut, problem, since }

    /// A copy for another user.
    var forAnotherUser: FiltersMachine {
        var other = FiltersMachine()
        other.isForeground = isForeground
        return other
    }

    /// Notes the last event; changes after it are requested when the filters are put again.
    mutating func leave() { since = since ?? lastEventId }

    /// Notes that the stream is live, or that it is gone.
    mutating func connect(_ isLive: Bool) {
        guard !isLive else { return }
        isPut = false
        leave()
    }

    mutating func lifecycle(_ isForeground: Bool) {
        if !isForeground { leave() }
        self.isForeground = isForeground
    }

    /// Notes an event. A new stream has no filters, so placed ones have missed changes.
    mutating func note(_ event: FeatureEvent, isPlaced: Bool) {
        if event.name == "stream:ready", isPlaced { leave() }
        if !event.id.isEmpty { lastEventId = event.id }
    }

    mutating func place(_ tables: [JSON]) -> FeatureAction {
        isPut = false
        return .tables(tables, lastEventId: tables.isEmpty ? nil : since, as: "tables")
    }

    /// Applies a change of a row.
    mutating func change(_ key: String, _ change: RowChange) {
        rows[key] = change.record.map { (rows[key] ?? .null).with($0) }
    }

    /// Changes these members of a row.
    mutating func update(_ key: String, _ members: JSON) {
        rows[key] = (rows[key] ?? .null).with(members.object ?? [:])
    }

    /// Takes the answer to the filters.
    mutating func answered(_ answer: ClassifiedAnswer, isPlaced: Bool, now: Int) -> [FeatureAction] {
        if answer.isTaken {
            isPut = isPlaced
            if isPut { since = nil }
            (failures, problem) = (0, .null)
            return []
        }
        // The stream is gone: the filters are put on the next one.
        if answer.status == 0 || answer.status == 404 {
            isPut = false
            return []
        }
        problem = answer.placedProblem
        if answer.isFinal { return [] }
        failures += 1
        let wait = ClassifiedAnswer.waitMilliseconds(failures: failures, retryAfterSeconds: answer.retryAfterSeconds)
        return [.timer(name: "retry", at: now + wait)]
    }
}

/// The parts of `table:change` that machines need. The members beside the row may be absent.
struct RowChange: Decodable {
    let subscriptionIds: [String]
    /// The new row; nil if the row was removed.
    let record: [String: JSON]?
    private let oldRecord: [String: JSON]?

    init?(_ event: FeatureEvent) {
        guard event.name == "table:change", let change = event.data.model(RowChange.self) else { return nil }
        self = change
    }

    /// The row's id, which is the value of this column.
    func key(_ column: String) -> String? { (record ?? oldRecord).flatMap { JSON.object($0).id(column) } }
}

extension FeatureEvent {
    /// The new counts of rows, if the event has some.
    var engagement: Bellhop.EngagementUpdate? {
        if case .engagementUpdate(let update) = typed { return update }
        // An event of the feed's store, about the user's own likes.
        return name == "post:engaged" ? data.model() : nil
    }
}

extension JSON {
    /// The id that a row has in this column.
    func id(_ column: String) -> String? { self[column].string ?? self[column].int.map(String.init) }
}
