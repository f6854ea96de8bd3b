import Foundation

/// What a store does by hand to the items of its list.
protocol ListRules: Sendable {
    associatedtype Data: ListData
    /// What the user's writes and the events change of an item.
    associatedtype Change: Codable & Sendable = JSON
    /// Returns the item to store; nil if it does not belong here, or is older than the held one.
    func joined(_ newer: Data.Item, _ held: Data.Item?) -> Data.Item?
    func changed(_ item: Data.Item, by change: Change, at: Date) -> Data.Item
    /// Overlays a write that does not name its items.
    func overlaid(_ items: [Data.Item], _ write: PendingWrite<Change>) -> [Data.Item]
}

extension ListRules {
    func joined(_ newer: Data.Item, _: Data.Item?) -> Data.Item? { newer }
    func overlaid(_ items: [Data.Item], _: PendingWrite<Change>) -> [Data.Item] { items }
}

extension ListRules where Change == JSON {
    func changed(_ item: Data.Item, by change: JSON, at _: Date) -> Data.Item { item.with(change) ?? item }
}

/// An unanswered write.
struct PendingWrite<Change: Codable & Sendable>: Sendable, Encodable {
    /// The name of the answer.
    let name: String
    /// Its name in the contract.
    let write: String
    let ids: [String]
    let set: Change?
    let at: Date
}

/// A write that was answered while the list is fetched. The page may be older than the answer.
struct SettledWrite<Change: Codable & Sendable>: Sendable {
    let write: PendingWrite<Change>
    let body: JSON
    let isGone: Bool
    /// The number of events since the request.
    let place: Int
}

/// What the stores of lists share: pages, order, events, the user's unanswered writes, and what a device keeps.
///
/// What the contract says of a list is data. What is special stands as `ListRules` beside the machine of the store.
struct ListMachine<Rules: ListRules>: Sendable, Encodable {
    typealias Item = Rules.Data.Item
    typealias Pending = PendingWrite<Rules.Change>

    var rules: Rules
    let path: String
    /// The items as the service sent them.
    var stored: [Item] = []
    /// The cursor of the next page.
    var next: String?
    private(set) var pending: [Pending] = []
    private var settled: [SettledWrite<Rules.Change>] = []
    private(set) var count = 0
    private(set) var loading = Loading()
    /// The number of items that the list may have.
    var countMax = Rules.Data.list.storedMax

    private static var list: ListDescription { Rules.Data.list }

    private enum CodingKeys: CodingKey { case stored, pending }

    /// - Parameter parameters: The values of the names in the path.
    init(_ rules: Rules, _ parameters: [String: String] = [:]) {
        self.rules = rules
        path = Self.list.path(with: parameters)
    }

    private func plan(_ path: String?) -> Loading.Plan {
        let events = Self.list.events.filter { !$0.value.isOnce }.keys
        return Loading.Plan(name: Self.list.name, path: path ?? self.path, events: Set(events))
    }

    /// Loads the list. The caller takes the answer, and applies the events that came during the fetch.
    mutating func advance<OwnCommand>(_ input: FeatureInput<OwnCommand>, path: String? = nil, now: Int) -> Loading.Step
    {
        let isFetched = loading.isLoading
        let step = loading.advance(input, plan(path), now: now)
        if step.isGone { stored = [] }
        if isFetched, case .answer(Self.list.name, _, _, _) = input, step.answer == nil { settled = [] }
        if case .waiting(let items) = input { for item in items { wait(for: item, now: now) } }
        return step
    }

    /// Applies to a fetched page what came during its fetch, in its order: events, and answers to the user's writes.
    static func applySince<Machine>(
        _ step: Loading.Step, to machine: inout Machine, _ list: WritableKeyPath<Machine, Self>,
        event: (inout Machine, Loading.Event) -> Void
    ) {
        for (index, one) in step.since.enumerated() {
            machine[keyPath: list].confirmSettled { $0 == index }
            event(&machine, one)
        }
        machine[keyPath: list].confirmSettled { $0 >= step.since.count }
        machine[keyPath: list].settled = []
    }

    private mutating func confirmSettled(_ isMeant: (_ place: Int) -> Bool) {
        for one in settled where isMeant(one.place) { confirm(one) }
    }

    mutating func refresh() -> [FeatureAction] { loading.refresh(plan(nil)) }

    /// Takes a first page.
    mutating func take(_ page: LoadedPage<Item>) { (stored, next) = (page.items, page.next) }

    // MARK: Kept state

    /// The items to keep on the device; nil while there are none.
    var kept: [Item]? {
        guard loading.isLoaded else { return nil }
        return Array(Self.list.isAscending ? stored.suffix(Self.list.keptMax) : stored.prefix(Self.list.keptMax))
    }

    /// Shows what the device has kept. Returns false if the service has answered.
    mutating func restore(_ items: [Item]) -> Bool {
        guard loading.restore() else { return false }
        stored = merged(items, stored)
        return true
    }

    // MARK: Events

    /// Applies an event as the contract says. Returns false if that is done by hand, or if it is another list's event.
    @discardableResult
    mutating func apply(_ event: FeatureEvent, named store: String? = nil, now: Int) -> Bool {
        guard let change = Self.list.events[event.name], change.kind != .byHand else { return false }
        if let member = change.in, event.data[member].string != store { return false }
        let value = change.of.map { event.data[$0] } ?? event.data
        let by = change.by.map { event.data[$0] } ?? .null
        let ids = Set(by.string.map { [$0] } ?? by.strings)
        switch change.kind {
        case .upsert: if let item: Item = value.model() { put(item) }
        case .add: if let item: Item = value.model(), find(Rules.Data.key(item)) == nil { put(item) }
        case .remove: remove(ids)
        case .patch:
            let members = change.set.map { picked(event.data, $0) } ?? value
            if let set: Rules.Change = members.model() { self.change(ids, by: set, at: Moment.date(now)) }
        case .patchEach:
            for (id, members) in value.object ?? [:] {
                if let set: Rules.Change = members.model() { self.change([id], by: set, at: Moment.date(now)) }
            }
        case .byHand: break
        }
        return true
    }

    func find(_ id: String) -> Item? { stored.first { Rules.Data.key($0) == id } }

    /// Adds an item, or replaces it.
    mutating func put(_ newer: Item) {
        if let item = rules.joined(newer, find(Rules.Data.key(newer))) { merge([item]) }
    }

    mutating func remove(_ ids: Set<String>) { stored.removeAll { ids.contains(Rules.Data.key($0)) } }

    private mutating func change(_ ids: Set<String>, by set: Rules.Change, at: Date) {
        for index in stored.indices where ids.contains(Rules.Data.key(stored[index])) {
            stored[index] = rules.changed(stored[index], by: set, at: at)
        }
    }

    /// Adds items, which replace those of the same keys.
    mutating func merge(_ newer: [Item]) { stored = merged(stored, newer) }

    private func merged(_ items: [Item], _ newer: [Item]) -> [Item] { Self.merged(items, newer, countMax) }

    /// Returns both in the list's order; of an item in both, the newer one.
    static func merged(_ items: [Item], _ newer: [Item], _ countMax: Int) -> [Item] {
        let keys = Set(newer.map(Rules.Data.key))
        let all = (newer + items.filter { !keys.contains(Rules.Data.key($0)) }).sorted(by: Rules.Data.precedes)
        return Array(Self.list.isAscending ? all.suffix(countMax) : all.prefix(countMax))
    }

    private func picked(_ members: JSON, _ names: [String]) -> JSON {
        .object((members.object ?? [:]).filter { names.contains($0.key) })
    }

    // MARK: Pages

    private var moreName: String { Self.list.more.replacingOccurrences(of: "{next}", with: next ?? "") }

    func fetchMore() -> [FeatureAction] {
        next.map { [.fetch(path: "\(path)&cursor=\($0.pathSegment)", as: moreName)] } ?? []
    }

    /// Takes a further page. Returns false for another answer. What the list holds is not older than the page.
    mutating func takeMore(_ name: String, _ answer: ClassifiedAnswer) -> Bool {
        guard name == moreName, answer.isTaken else { return false }
        let page = answer.page(of: Item.self)
        stored = merged(page.items, stored)
        next = stored.count < countMax ? page.next : nil
        return true
    }

    // MARK: The user's writes

    /// Sends a write, which shows until it is answered.
    mutating func send(
        _ write: String, _ ids: [String], _ set: Rules.Change?, body: JSON? = nil, now: Int
    ) -> [FeatureAction] {
        guard let what = Self.list.writes[write] else { return [] }
        let name = newName(what.name)
        pending.append(Pending(name: name, write: write, ids: ids, set: set, at: Moment.date(now)))
        let place = what.path.replacingOccurrences(of: "{id}", with: (ids.first ?? "").pathSegment)
        return [.send(what.method, place, body, as: name)]
    }

    /// Returns a new name of an answer.
    mutating func newName(_ prefix: String) -> String {
        count += 1
        return "\(prefix)-\(count)"
    }

    /// Shows the change of a write that an earlier start made.
    private mutating func wait(for item: OutboxItem, now: Int) {
        for (write, what) in Self.list.writes {
            guard let ids = item.match(what.method, what.path.replacingOccurrences(of: "{id}", with: "*")) else {
                continue
            }
            let set: Rules.Change? = (what.set ?? item.body ?? .null).model()
            guard set != nil || what.isRemoval else { continue }
            let at = item.createdAt ?? Moment.date(now)
            pending.append(Pending(name: item.answerName, write: write, ids: ids, set: set, at: at))
        }
    }

    /// The items with the unanswered writes.
    var shown: [Item] { pending.reduce(stored, overlaid) }

    private func overlaid(_ items: [Item], _ write: Pending) -> [Item] {
        if Self.list.writes[write.write]?.isRemoval == true {
            return items.filter { !write.ids.contains(Rules.Data.key($0)) }
        }
        guard !write.ids.isEmpty else { return rules.overlaid(items, write) }
        return items.map { item in
            guard let set = write.set, write.ids.contains(Rules.Data.key(item)) else { return item }
            return rules.changed(item, by: set, at: write.at)
        }
    }

    /// Confirms or reverts a write; nil if the answer is another one's.
    mutating func settle(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction]? {
        guard let index = pending.firstIndex(where: { $0.name == name }) else { return nil }
        let write = pending.remove(at: index)
        guard let what = Self.list.writes[write.write] else { return nil }
        let isGone = answer.status == 404 && what.removesMissing
        guard answer.isTaken || isGone else { return [refused(write.ids, answer)] }
        let one = SettledWrite(write: write, body: answer.body, isGone: isGone, place: loading.sinceCount)
        if loading.isLoading { settled.append(one) }
        confirm(one)
        return isGone ? [] : answer.badgesEvent
    }

    private mutating func confirm(_ one: SettledWrite<Rules.Change>) {
        let write = one.write
        guard let what = Self.list.writes[write.write] else { return }
        let members = what.members.isEmpty ? .null : picked(one.body, what.members)
        if one.isGone {
            remove(Set(write.ids))
        } else if let member = what.answer, let item: Item = one.body[member].model() {
            put(item)
        } else if let set: Rules.Change = members.object?.isEmpty == false ? members.model() : nil {
            change(Set(write.ids), by: set, at: write.at)
        } else {
            stored = overlaid(stored, write)
        }
    }

    /// Reports a refusal to the app.
    func refused(_ ids: [String], _ answer: ClassifiedAnswer) -> FeatureAction {
        let refusal = Self.list.refused
        let meant = refusal?.areSeveral == true ? JSON.array(ids.map(JSON.string)) : JSON(ids.first)
        let data: JSON = .object([refusal?.member ?? "": meant, "problem": answer.problem])
        return .publish(name: refusal?.event ?? "", data: data)
    }
}
