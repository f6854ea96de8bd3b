/// What all stores of a bell want of the stream, as one: their topics together, and their tables under names that no two
/// stores share.
struct Wishes {
    private struct Wish {
        let prefix: String
        var topics: [String] = []
        var tables: [JSON] = []
        var answer: (@MainActor (ServiceAnswer) -> Void)?

        /// What is said to this one: of tables of its own that were refused, the first.
        func answer(in all: TablesMachine.Answer) -> ServiceAnswer {
            let problem = tables.lazy.compactMap { all.refused[prefix + ($0["id"].string ?? "")] }.first
            let status = problem?["status"].int ?? all.status
            return ServiceAnswer(status: status, headers: [:], body: (problem ?? all.body).data)
        }
    }

    /// As many topics as a stream may have (`stream.topicsMax` of `/v1/config`); of more, the oldest wishes count.
    private static let topicsMax = 100

    private var all: [ObjectIdentifier: Wish] = [:]
    private var order: [ObjectIdentifier] = []
    private var count = 0

    var topics: [String] {
        var seen: Set<String> = []
        let topics = order.flatMap { all[$0]?.topics ?? [] }.filter { seen.insert($0).inserted }
        return Array(topics.prefix(Wishes.topicsMax))
    }

    var tables: [JSON] {
        order.compactMap { all[$0] }.flatMap { wish in
            wish.tables.map { $0.with(["id": .string(wish.prefix + ($0["id"].string ?? ""))]) }
        }
    }

    /// Returns whether a stream has room for the topics of one, in place of its own before.
    func hasRoom(for topics: [String], of key: ObjectIdentifier? = nil) -> Bool {
        let others = all.filter { $0.key != key }.flatMap { $0.value.topics }
        return Set(others + topics).count <= Wishes.topicsMax
    }

    /// The topics of one, in place of its own before.
    mutating func set(_ key: ObjectIdentifier, topics: [String]) {
        enter(key)
        all[key]?.topics = topics
    }

    /// The tables of one, in place of its own before; who waited for an answer to those hears that they are superseded.
    mutating func set(
        _ key: ObjectIdentifier, tables: [JSON], answer: @escaping @MainActor (ServiceAnswer) -> Void
    ) {
        enter(key)
        all[key]?.tables = tables
        all[key]?.answer = answer
    }

    mutating func remove(_ key: ObjectIdentifier) -> Bool {
        order.removeAll { $0 == key }
        guard let wish = all.removeValue(forKey: key) else { return false }
        return !wish.topics.isEmpty || !wish.tables.isEmpty
    }

    /// Those who wait for what the service says to the tables, each with what it says to its own.
    mutating func takeAnswers(_ answer: TablesMachine.Answer) -> [(@MainActor (ServiceAnswer) -> Void, ServiceAnswer)] {
        let waiting = order.compactMap { key in
            all[key].flatMap { wish in wish.answer.map { ($0, wish.answer(in: answer)) } }
        }
        for key in all.keys { all[key]?.answer = nil }
        return waiting
    }

    /// An event's data as a store sees it, with the names that it gave; nil where it is of another's table.
    ///
    /// - Parameter key: nil for the app, which sees what is of any store.
    func seen(by key: ObjectIdentifier?, _ name: String, _ data: JSON) -> JSON? {
        let prefixes = key.map { all[$0].map { [$0.prefix] } ?? [] } ?? all.values.map(\.prefix)
        return TablesMachine.seen(by: prefixes, name, data)
    }

    private mutating func enter(_ key: ObjectIdentifier) {
        guard all[key] == nil else { return }
        count += 1
        all[key] = Wish(prefix: "s\(count).")
        order.append(key)
    }
}
