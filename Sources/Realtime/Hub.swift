import Values

/// The index from routing keys to the streams of one shard. The cost of an event is proportional to the number of
/// streams that receive it, not to the number of connected streams.
///
/// A stream is a slot: a small, dense number that the owner of the sockets assigns. A stream is indexed by each key of
/// its scope (personal events) and by each topic that it subscribed to (topic events). The hub has a single owner and
/// no lock; each shard has its own hub.
///
/// Memory, measured with 100,000 streams of four keys each, two of them unique: 500 bytes per stream. Delivering an
/// event to one stream costs 70 ns, whether 10 or 100,000 are open; delivering to all of them costs 1.7 ns per stream.
public struct Hub {
    /// A key of the index. Tenants are numbers, so a text of one tenant cannot be mistaken for another tenant's.
    struct Route: Hashable {
        let tenant: Int32
        let isTopic: Bool
        let text: ID<Route>

        init(tenant: Int32, isTopic: Bool, text: String) {
            (self.tenant, self.isTopic, self.text) = (tenant, isTopic, ID(text))
        }
    }

    private struct Key {
        var route: Route
        var streams = SlotList()
        /// The last event whose audience had this key.
        var audienceStamp: UInt64 = 0
    }

    /// A key of a stream, and the stream's index in the list of the key.
    private struct KeyEntry {
        let key: Int32
        var place: Int32
    }

    /// The indices of keys in the entries of streams, while the entries do not change.
    private struct Places {
        /// Whether many keys are looked up. Two streams of a user may share 10,000 keys, and a search for each of them
        /// takes 50 million steps.
        let isIndexed: Bool
        private var indices: [Int32: [Int32: Int]] = [:]

        init(isIndexed: Bool) { self.isIndexed = isIndexed }

        /// Returns the index of a key of the stream.
        mutating func find(_ key: Int32, of stream: Int32, in entries: [KeyEntry]) -> Int {
            guard isIndexed, entries.count > Hub.searchedEntriesMax else {
                return entries.firstIndex { $0.key == key }!
            }
            if indices[stream] == nil {
                indices[stream] = Dictionary(uniqueKeysWithValues: zip(entries.lazy.map(\.key), entries.indices))
            }
            return indices[stream]![key]!
        }
    }

    private struct Stream {
        /// Negative if the slot is free.
        var tenant: Int32 = -1
        var scopeCount: Int32 = 0
        /// The last event that reached this stream. A stream that matches two keys gets the event only once.
        var visitStamp: UInt64 = 0
        /// The scope keys, followed by the topics.
        var entries: [KeyEntry] = []
    }

    private struct OpenTenant {
        let id: ID<Tenant>
        var streamCount = 0
    }

    private var keys: [Key] = []
    private var freeKeys: [Int32] = []
    /// The keys that at least one stream has.
    private(set) var keyNumbers: [Route: Int32] = [:]
    private var streams: [Stream] = []
    private var tenants: [OpenTenant?] = []
    private var tenantNumbers: [ID<Tenant>: Int32] = [:]
    private var stamp: UInt64 = 0

    public init() {}

    public func contains(_ slot: Int32) -> Bool {
        slot >= 0 && Int(slot) < streams.count && streams[Int(slot)].tenant >= 0
    }

    // MARK: Joining and leaving

    /// Adds a slot. From now on it receives every event that the scope may see.
    public mutating func join(
        _ slot: Int32, tenant: ID<Tenant>, scope: some Sequence<String>, topics: some Sequence<String>
    ) {
        precondition(slot >= 0 && !contains(slot), "a slot belongs to one stream at a time")
        while streams.count <= Int(slot) { streams.append(Stream()) }
        let number = retainTenant(tenant)
        streams[Int(slot)].tenant = number
        addAll(slot, scope: scope, topics: topics)
    }

    /// Frees the slot and everything stored for it.
    public mutating func leave(_ slot: Int32) {
        precondition(contains(slot), "only a stream that joined can leave")
        removeAll(slot)
        releaseTenant(streams[Int(slot)].tenant)
        streams[Int(slot)] = Stream()
    }

    /// Replaces all topics at once, so that no event is matched against a half-replaced set. The keys of the scope, up to
    /// 10,000, are not touched.
    public mutating func replaceTopics(of slot: Int32, with topics: some Sequence<String>) {
        precondition(contains(slot), "only a stream that joined can be changed")
        let (entries, count) = (streams[Int(slot)].entries, Int(streams[Int(slot)].scopeCount))
        streams[Int(slot)].entries = Array(entries[..<count])
        var places = Places(isIndexed: false)
        for entry in entries[count...] { release(entry, of: slot, &places) }
        addTopics(slot, topics)
    }

    /// Replaces the scope at once, after a membership change or a token renewal.
    public mutating func replaceScope(of slot: Int32, with scope: some Sequence<String>) {
        precondition(contains(slot), "only a stream that joined can be changed")
        let topics = topics(of: slot)
        removeAll(slot)
        addAll(slot, scope: scope, topics: topics)
    }

    /// Adds keys to the end of the scope. The ones that it has, up to 10,000, are not touched.
    public mutating func add(_ keys: some Collection<String>, toScopeOf slot: Int32) {
        precondition(contains(slot), "only a stream that joined can be changed")
        guard !keys.isEmpty else { return }
        let stream = streams[Int(slot)]
        let (scope, topics) = (stream.entries[..<Int(stream.scopeCount)], stream.entries[Int(stream.scopeCount)...])
        stamp += 1
        for entry in scope { self.keys[Int(entry.key)].audienceStamp = stamp }
        var entries: [KeyEntry] = []
        entries.reserveCapacity(stream.entries.count + keys.count)
        entries += scope
        for text in keys { add(slot, Route(tenant: stream.tenant, isTopic: false, text: text), to: &entries) }
        streams[Int(slot)].scopeCount = Int32(entries.count)
        streams[Int(slot)].entries = entries + topics
    }

    /// Adds one key to the scope. The other keys are not touched.
    public mutating func add(_ key: String, toScopeOf slot: Int32) {
        precondition(contains(slot), "only a stream that joined can be changed")
        let number = number(of: Route(tenant: streams[Int(slot)].tenant, isTopic: false, text: key))
        let count = Int(streams[Int(slot)].scopeCount)
        guard !streams[Int(slot)].entries[..<count].contains(where: { $0.key == number }) else { return }
        let entry = KeyEntry(key: number, place: keys[Int(number)].streams.append(slot))
        streams[Int(slot)].entries.insert(entry, at: count)
        streams[Int(slot)].scopeCount += 1
    }

    /// Removes one key from the scope, if it is there.
    public mutating func remove(_ key: String, fromScopeOf slot: Int32) {
        precondition(contains(slot), "only a stream that joined can be changed")
        let route = Route(tenant: streams[Int(slot)].tenant, isTopic: false, text: key)
        let count = Int(streams[Int(slot)].scopeCount)
        guard let number = keyNumbers[route],
            let index = streams[Int(slot)].entries[..<count].firstIndex(where: { $0.key == number })
        else { return }
        let entry = streams[Int(slot)].entries.remove(at: index)
        streams[Int(slot)].scopeCount -= 1
        var places = Places(isIndexed: false)
        release(entry, of: slot, &places)
    }

    public func topics(of slot: Int32) -> [String] {
        precondition(contains(slot), "only a stream that joined has topics")
        let stream = streams[Int(slot)]
        return stream.entries[Int(stream.scopeCount)...].map { keys[Int($0.key)].route.text.text }
    }

    public func scope(of slot: Int32) -> [String] {
        precondition(contains(slot), "only a stream that joined has a scope")
        let stream = streams[Int(slot)]
        return stream.entries[..<Int(stream.scopeCount)].map { keys[Int($0.key)].route.text.text }
    }

    public func tenant(of slot: Int32) -> ID<Tenant> {
        precondition(contains(slot), "only a stream that joined has a tenant")
        return tenants[Int(streams[Int(slot)].tenant)]!.id
    }

    // MARK: Matching

    /// Calls `body` once for each stream that receives the event. The body must not change the hub.
    public mutating func forEachMatch(_ event: StreamEvent, _ body: (Int32) -> Void) {
        guard let tenant = tenantNumbers[event.tenant] else { return }
        stamp += 1
        guard let topic = event.topic else {
            for text in event.audience {
                guard let key = keyNumbers[Route(tenant: tenant, isTopic: false, text: text)] else { continue }
                visit(keys[Int(key)].streams, body)
            }
            return
        }
        guard let topicKey = keyNumbers[Route(tenant: tenant, isTopic: true, text: topic)] else { return }
        for text in event.audience {
            guard let key = keyNumbers[Route(tenant: tenant, isTopic: false, text: text)] else { continue }
            keys[Int(key)].audienceStamp = stamp
        }
        keys[Int(topicKey)].streams.forEach { slot in
            if maySee(slot) { body(slot) }
        }
    }

    /// Calls `body` for each stream whose scope has the key, such as all streams of a user. The body must not change
    /// the hub.
    public func forEachStream(tenant: ID<Tenant>, key text: String, _ body: (Int32) -> Void) {
        guard let tenant = tenantNumbers[tenant],
            let key = keyNumbers[Route(tenant: tenant, isTopic: false, text: text)]
        else { return }
        keys[Int(key)].streams.forEach(body)
    }

    /// Scope keys, resolved to numbers of the hub, for queries about many streams. Keys without any stream are left
    /// out.
    public struct Keys {
        fileprivate let numbers: [Int32]
        /// The total length of the keys' lists: an upper bound of the number of streams with one of the keys.
        public let streamCount: Int

        public func union(_ other: Keys) -> Keys {
            Keys(numbers: numbers + other.numbers, streamCount: streamCount + other.streamCount)
        }
    }

    public func find(_ keys: [String], tenant: ID<Tenant>) -> Keys {
        guard let tenant = tenantNumbers[tenant] else { return Keys(numbers: [], streamCount: 0) }
        let numbers = keys.compactMap { keyNumbers[Route(tenant: tenant, isTopic: false, text: $0)] }
        return Keys(numbers: numbers, streamCount: numbers.reduce(0) { $0 + self.keys[Int($1)].streams.count })
    }

    /// Whether the stream's scope has one of the keys.
    public func hasKey(_ slot: Int32, anyOf keys: Keys) -> Bool {
        guard !keys.numbers.isEmpty else { return false }
        let stream = streams[Int(slot)]
        return stream.entries[..<Int(stream.scopeCount)].contains { keys.numbers.contains($0.key) }
    }

    /// Returns the streams whose scope has one of the keys, each once.
    public mutating func streams(withAnyOf keys: Keys) -> [Int32] {
        stamp += 1
        var slots: [Int32] = []
        for key in keys.numbers { visit(self.keys[Int(key)].streams) { slots.append($0) } }
        return slots
    }

    private mutating func visit(_ list: SlotList, _ body: (Int32) -> Void) {
        let stamp = stamp
        streams.withUnsafeMutableBufferPointer { streams in
            list.forEach { slot in
                guard streams[Int(slot)].visitStamp != stamp else { return }
                streams[Int(slot)].visitStamp = stamp
                body(slot)
            }
        }
    }

    private func maySee(_ slot: Int32) -> Bool {
        let count = Int(streams[Int(slot)].scopeCount)
        for index in 0..<count
        where keys[Int(streams[Int(slot)].entries[index].key)].audienceStamp == stamp {
            return true
        }
        return false
    }

    // MARK: Keys

    private mutating func addAll(_ slot: Int32, scope: some Sequence<String>, topics: some Sequence<String>) {
        let tenant = streams[Int(slot)].tenant
        var entries: [KeyEntry] = []
        entries.reserveCapacity(scope.underestimatedCount + topics.underestimatedCount)
        stamp += 1
        for text in scope { add(slot, Route(tenant: tenant, isTopic: false, text: text), to: &entries) }
        streams[Int(slot)].scopeCount = Int32(entries.count)
        streams[Int(slot)].entries = entries
        addTopics(slot, topics)
    }

    /// Adds the topics of a stream that has no topics yet.
    private mutating func addTopics(_ slot: Int32, _ topics: some Sequence<String>) {
        let tenant = streams[Int(slot)].tenant
        var entries: [KeyEntry] = []
        swap(&entries, &streams[Int(slot)].entries)
        stamp += 1
        for text in topics { add(slot, Route(tenant: tenant, isTopic: true, text: text), to: &entries) }
        // Copies to the exact capacity. There are many idle streams, and growth would leave half of the capacity
        // unused.
        streams[Int(slot)].entries = Array(entries[...])
    }

    /// Adds the stream to a key that appears for the first time in this round.
    private mutating func add(_ slot: Int32, _ route: Route, to entries: inout [KeyEntry]) {
        let key = number(of: route)
        guard keys[Int(key)].audienceStamp != stamp else { return }
        keys[Int(key)].audienceStamp = stamp
        entries.append(KeyEntry(key: key, place: keys[Int(key)].streams.append(slot)))
    }

    private mutating func removeAll(_ slot: Int32) {
        let entries = streams[Int(slot)].entries
        streams[Int(slot)].entries = []
        streams[Int(slot)].scopeCount = 0
        var places = Places(isIndexed: entries.count > Self.searchedEntriesMax)
        for entry in entries { release(entry, of: slot, &places) }
    }

    /// Up to this number of entries, looking through them costs less than an index.
    private static let searchedEntriesMax = 64

    /// Removes the stream from a key's list. Removes the key too if this was its last stream.
    private mutating func release(_ entry: KeyEntry, of slot: Int32, _ places: inout Places) {
        let key = Int(entry.key)
        if let moved = keys[key].streams.remove(at: entry.place), moved != slot {
            let index = places.find(entry.key, of: moved, in: streams[Int(moved)].entries)
            streams[Int(moved)].entries[index].place = entry.place
        }
        if keys[key].streams.isEmpty {
            keyNumbers[keys[key].route] = nil
            keys[key].route = Route(tenant: -1, isTopic: false, text: "")
            freeKeys.append(entry.key)
        }
    }

    private mutating func number(of route: Route) -> Int32 {
        // In one access, so that the key is hashed once.
        Self.resolve(&keyNumbers[route, default: -1], as: route, &keys, &freeKeys)
    }

    /// Returns the number of a key, which is negative if it is new.
    private static func resolve(
        _ number: inout Int32, as route: Route, _ keys: inout [Key], _ freeKeys: inout [Int32]
    ) -> Int32 {
        guard number < 0 else { return number }
        if let free = freeKeys.popLast() {
            number = free
            keys[Int(free)] = Key(route: route)
        } else {
            number = Int32(keys.count)
            keys.append(Key(route: route))
        }
        return number
    }

    private mutating func retainTenant(_ id: ID<Tenant>) -> Int32 {
        if let number = tenantNumbers[id] {
            tenants[Int(number)]!.streamCount += 1
            return number
        }
        let number = tenants.firstIndex { $0 == nil } ?? tenants.count
        if number == tenants.count { tenants.append(nil) }
        tenants[number] = OpenTenant(id: id, streamCount: 1)
        tenantNumbers[id] = Int32(number)
        return Int32(number)
    }

    private mutating func releaseTenant(_ number: Int32) {
        tenants[Int(number)]!.streamCount -= 1
        guard tenants[Int(number)]!.streamCount == 0 else { return }
        tenantNumbers[tenants[Int(number)]!.id] = nil
        tenants[Int(number)] = nil
    }
}

/// The streams of one key. Most keys have one stream (a user's own), so the first stream is stored without an
/// allocation.
private struct SlotList {
    private var first: Int32 = -1
    private var rest: [Int32] = []

    var isEmpty: Bool { first < 0 }
    var count: Int { first < 0 ? 0 : rest.count + 1 }

    /// Appends a slot, and returns its index.
    mutating func append(_ slot: Int32) -> Int32 {
        guard first >= 0 else {
            first = slot
            return 0
        }
        rest.append(slot)
        return Int32(rest.count)
    }

    /// Fills the gap with the last slot, and returns the slot that moved (the removed slot itself if it was the last).
    mutating func remove(at place: Int32) -> Int32? {
        guard let last = rest.popLast() else {
            first = -1
            return nil
        }
        if place == 0 {
            first = last
        } else if Int(place) <= rest.count {
            rest[Int(place) - 1] = last
        }
        return last
    }

    func forEach(_ body: (Int32) -> Void) {
        guard first >= 0 else { return }
        body(first)
        for slot in rest { body(slot) }
    }
}
