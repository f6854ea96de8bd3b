/// The combined subscriptions of all stores of a bell: the union of their topics, and their tables under ids that no
/// two stores share.
struct CombinedSubscriptions {
    typealias Callback = @MainActor (ServiceAnswer) -> Void

    /// The answer to tables that were replaced or removed before the service answered. bellhop.js gives the same answer.
    static let superseded = ServiceAnswer(
        status: 0, headers: [:], body: JSON.object(["code": "tables.superseded"]).data)

    /// Answers tables that were replaced or removed. The answer comes later, as that of the service would, because the
    /// store is still performing the actions of its machine.
    static func supersede(_ callback: Callback?) {
        guard let callback else { return }
        Task { @MainActor in callback(superseded) }
    }

    private struct StoreSubscriptions {
        let prefix: String
        var topics: [String] = []
        var tables: [JSON] = []
        var answer: Callback?

        /// Returns the part of the answer that concerns this store: the first refusal of one of its own tables, if
        /// there is one.
        func answer(in all: TablesMachine.Outcome) -> ServiceAnswer {
            let problem = tables.lazy.compactMap { all.refused[prefix + ($0["id"].string ?? "")] }.first
            let status = problem?["status"].int ?? all.status
            return ServiceAnswer(status: status, headers: [:], body: (problem ?? all.body).data)
        }
    }

    private var all: [ObjectIdentifier: StoreSubscriptions] = [:]
    private var order: [ObjectIdentifier] = []
    private var count = 0

    /// Beyond the limit, the oldest subscriptions win.
    var topics: [String] {
        var seen: Set<String> = []
        let topics = order.flatMap { all[$0]?.topics ?? [] }.filter { seen.insert($0).inserted }
        return Array(topics.prefix(Topics.countMax))
    }

    var tables: [JSON] {
        order.compactMap { all[$0] }.flatMap { own in
            own.tables.map { $0.with(["id": .string(own.prefix + ($0["id"].string ?? ""))]) }
        }
    }

    /// Returns whether a stream has room for these topics, if they replace the store's present ones.
    func hasRoom(for topics: [String], of key: ObjectIdentifier? = nil) -> Bool {
        let others = all.filter { $0.key != key }.flatMap { $0.value.topics }
        return Set(others + topics).count <= Topics.countMax
    }

    /// Replaces the topics of a store.
    mutating func set(_ key: ObjectIdentifier, topics: [String]) {
        enter(key)
        all[key]?.topics = topics
    }

    /// Replaces the tables of a store, and the callback for the answer to them.
    ///
    /// - Returns: The callback of the earlier tables if it is unanswered. The caller passes it to
    ///   ``supersede(_:)``.
    mutating func set(_ key: ObjectIdentifier, tables: [JSON], answer: @escaping Callback) -> Callback? {
        enter(key)
        let earlier = all[key]?.answer
        all[key]?.tables = tables
        all[key]?.answer = answer
        return earlier
    }

    /// Removes everything of a store.
    ///
    /// - Returns: Whether the stream changes, and the callback of the tables if it is unanswered. The caller
    ///   passes it to ``supersede(_:)``.
    mutating func remove(_ key: ObjectIdentifier) -> (isChange: Bool, unanswered: Callback?) {
        order.removeAll { $0 == key }
        guard let own = all.removeValue(forKey: key) else { return (false, nil) }
        return (!own.topics.isEmpty || !own.tables.isEmpty, own.answer)
    }

    /// Removes the callbacks that wait for the answer to the tables, and returns each with its own part of the answer.
    mutating func takeAnswers(_ answer: TablesMachine.Outcome) -> [(Callback, ServiceAnswer)] {
        let waiting = order.compactMap { key in
            all[key].flatMap { own in own.answer.map { ($0, own.answer(in: answer)) } }
        }
        for key in all.keys { all[key]?.answer = nil }
        return waiting
    }

    /// Returns an event's data with the ids that the store chose, or nil if the event concerns another store's table.
    ///
    /// - Parameter key: nil for the app, which receives the events of all stores.
    func seen(by key: ObjectIdentifier?, _ name: String, _ data: JSON) -> JSON? {
        let prefixes = key.map { all[$0].map { [$0.prefix] } ?? [] } ?? all.values.map(\.prefix)
        return TablesMachine.seen(by: prefixes, name, data)
    }

    private mutating func enter(_ key: ObjectIdentifier) {
        guard all[key] == nil else { return }
        count += 1
        all[key] = StoreSubscriptions(prefix: "s\(count).")
        order.append(key)
    }
}
