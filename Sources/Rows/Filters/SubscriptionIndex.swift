import Values

/// One change of a row with its versions before and after, against which subscriptions are matched.
public struct RowVersions: Sendable, Hashable {
    public let tenant: ID<Tenant>
    public let schema: String
    public let table: String
    /// Exactly one of the three.
    public let event: TableSubscription.Events
    /// Nil for an insert, or if the feed does not send it.
    public let old: Filter.Row?
    /// Nil for a delete.
    public let new: Filter.Row?
}

/// A subscription whose filter matches a changed row, before or after.
///
/// **It does not decide visibility.** The caller checks for each row whether its audience and the stream's scope share
/// a key, and calls ``transition(seesOld:seesNew:)``.
public struct SubscriptionMatch: Sendable, Hashable {
    public let slot: Int32
    /// The index of the subscription in its stream's list, for ``SubscriptionIndex/subscription(_:of:)``.
    public let ordinal: Int32
    public let matchesOld: Bool
    public let matchesNew: Bool

    public func transition(seesOld: Bool, seesNew: Bool) -> RowTransition? {
        RowTransition(wasInside: matchesOld && seesOld, isInside: matchesNew && seesNew)
    }
}

/// An index from changed rows to the filtered subscriptions of many streams. The cost of a change is proportional to
/// the number of matching filters, not to the number of all filters.
///
/// A stream is a slot: a small, dense number that the owner of the streams assigns. The index has a single owner and no
/// lock.
///
/// Each filter is stored under the values of **one** of its `eq` and `in` conditions, as (tenant, schema, table,
/// column, value). Of several conditions, it uses the one whose values are the least shared at that moment. In
/// `school_id=eq.1,id=in.(…)`, where the whole school shares the first value, it uses the ids. The old and the new row
/// are looked up by each column that indexes some filter, and the filters found are evaluated in full. Filters
/// without such a condition (`points=gt.5`) are evaluated at every change of their table
/// (``FilterLimits/scannedPerTableMax``). Subscriptions without a filter always match.
///
/// Measured with UUIDs, 100 per stream: 67 bytes per id, including the filter. A change of five columns with one match
/// costs 0.4 µs with 10 streams. With 10,000 streams (1,000,000 ids), it costs 0.4 µs if its id was looked up recently
/// and 1.1 µs if not: the work is the same, but the memory is then outside the processor's caches.
///
/// If few streams may see a row, it is cheaper to check only these: ``forEachMatch(_:in:_:)`` for each stream that may
/// see it, if there are fewer of them than candidates.
public struct SubscriptionIndex {
    /// A table as changes name it. The tenant is part of it, so that a change of one tenant never visits another
    /// tenant's subscriptions.
    private struct Route: Hashable {
        let tenant: ID<Tenant>
        let schema: String
        let table: String
    }

    private struct Holder: Hashable {
        let tenant: ID<Tenant>
        let user: ID<User>
    }

    /// A column that indexes filters of a table.
    private struct Column {
        /// Distinguishes the values of this table and column from equal values of others.
        let salt: Int
        /// The type with which its values are compared. A column has one type for the lifetime of the process.
        let type: ColumnType?
        var filterCount = 0
    }

    private struct Table {
        static let free = Table(route: Route(tenant: "", schema: "", table: ""))
        let route: Route
        /// The columns of a row that are looked up.
        var columns: [String: Column] = [:]
        /// Subscriptions with a filter that no hash finds.
        var scanned: [Int32] = []
        /// The sum of their weights (``FilterLimits/scannedPerTableMax``).
        var scannedWeight = 0
        var scannedWeights: [ID<User>: Int] = [:]
        /// Subscriptions without a filter.
        var unfiltered: [Int32] = []
        var subscriptionCount = 0

        mutating func addScanned(_ weight: Int, of user: ID<User>) {
            scannedWeight += weight
            let own = (scannedWeights[user] ?? 0) + weight
            scannedWeights[user] = own == 0 ? nil : own
        }
    }

    /// The part of a subscription that matching reads. The rest is stored separately, so that more entries fit the
    /// caches.
    private struct Entry {
        let filter: Filter
        let events: TableSubscription.Events
        /// Negative if the entry is free.
        let slot: Int32
        let ordinal: Int32
        let table: Int32
        /// The last change that visited this entry. An entry that is found by the old and by the new row is evaluated
        /// once.
        var visitStamp: UInt64 = 0

        static let free = Entry(filter: .all, events: [], slot: -1, ordinal: 0, table: -1)

        func match(_ change: RowVersions) -> SubscriptionMatch? {
            guard events.contains(change.event) else { return nil }
            let matches = filter.matches(old: change.old, new: change.new)
            guard matches.old || matches.new else { return nil }
            return SubscriptionMatch(slot: slot, ordinal: ordinal, matchesOld: matches.old, matchesNew: matches.new)
        }
    }

    /// The rest of a subscription, which matching does not read.
    private struct Registration {
        let subscription: TableSubscription
        var home: Home

        static let free = Registration(subscription: TableSubscription(id: "", table: ""), home: .unfiltered(0))
        var isScanned: Bool { if case .scanned = home { true } else { false } }
    }

    /// The location of an entry: under the values of the condition at this index of its filter, or at this index of a
    /// list of its table.
    private enum Home {
        case indexed(condition: Int)
        case scanned(Int)
        case unfiltered(Int)
    }

    private var tables: [Table] = []
    private var freeTables: [Int32] = []
    private var tableNumbers: [Route: Int32] = [:]
    private var entries: [Entry] = []
    /// Indexed by the same numbers as `entries`.
    private var registrations: [Registration] = []
    private var freeEntries: [Int32] = []
    /// The entries of each slot, in the order of its list.
    private var slots: [[Int32]] = []
    /// The user of each slot's stream, while it has subscriptions.
    private var users: [ID<User>] = []
    private var buckets = KeyBuckets()
    private var stamp: UInt64 = 0
    /// Reused for each change, so that a change with a single match allocates nothing.
    private var hashes: [UInt64] = []
    private var candidates: [Int32] = []
    private var matches: [SubscriptionMatch] = []
    private let valuesMax: Int
    private let scannedPerTableMax: Int
    private let scannedPerUserMax: Int
    private let bytesPerUserMax: Int
    /// The holder of each slot's subscriptions, and their bytes.
    private var holdings: [Int32: (holder: Holder, bytes: Int)] = [:]
    private var bytesOfHolders: [Holder: Int] = [:]
    /// Values in all stored filters.
    public private(set) var valueCount = 0

    public init(
        valuesMax: Int = FilterLimits.valuesPerIndexMax, scannedPerTableMax: Int = FilterLimits.scannedPerTableMax,
        scannedPerUserMax: Int = FilterLimits.scannedPerUserMax, bytesPerUserMax: Int = FilterLimits.bytesPerUserMax
    ) {
        self.valuesMax = valuesMax
        self.scannedPerTableMax = scannedPerTableMax
        self.scannedPerUserMax = scannedPerUserMax
        self.bytesPerUserMax = bytesPerUserMax
    }

    public var subscriptionCount: Int { entries.count - freeEntries.count }
    /// The number of tables with at least one subscription. No others are stored.
    public var tableCount: Int { tableNumbers.count }
    /// The reserved bytes of the hash tables, without the filters.
    public var bucketBytes: Int { buckets.byteCount }

    // MARK: Subscribing

    /// Replaces all subscriptions of a stream at once, so that no change is matched against a half-replaced list.
    ///
    /// - Parameter user: The user of the stream, until the next call.
    /// - Throws: ``Failure``: `invalid` if the list exceeds the limits of a stream, `rateLimited` if it exceeds the
    ///   limits of a user, `unavailable` if the index is full. Then nothing is changed.
    public mutating func replace(
        _ slot: Int32, tenant: ID<Tenant>, user: ID<User>, with subscriptions: [TableSubscription]
    ) throws(Failure) {
        precondition(slot >= 0, "a slot number must not be negative")
        try requireRoom(for: subscriptions, slot: slot, tenant: tenant, user: user)
        remove(slot)
        guard !subscriptions.isEmpty else { return }
        while slots.count <= Int(slot) {
            slots.append([])
            users.append("")
        }
        users[Int(slot)] = user
        let (holder, bytes) = (Holder(tenant: tenant, user: user), subscriptions.storedBytes)
        holdings[slot] = (holder, bytes)
        bytesOfHolders[holder, default: 0] += bytes
        var numbers: [Int32] = []
        numbers.reserveCapacity(subscriptions.count)
        for (ordinal, subscription) in subscriptions.enumerated() {
            numbers.append(add(subscription, slot: slot, ordinal: Int32(ordinal), tenant: tenant))
        }
        slots[Int(slot)] = numbers
    }

    /// Removes all subscriptions of the slot, if it has any.
    public mutating func remove(_ slot: Int32) {
        guard slot >= 0, Int(slot) < slots.count else { return }
        let numbers = slots[Int(slot)]
        slots[Int(slot)] = []
        for number in numbers { removeEntry(number) }
        guard let (holder, bytes) = holdings.removeValue(forKey: slot) else { return }
        let left = bytesOfHolders[holder, default: 0] - bytes
        bytesOfHolders[holder] = left == 0 ? nil : left
    }

    public func subscriptions(of slot: Int32) -> [TableSubscription] {
        guard slot >= 0, Int(slot) < slots.count else { return [] }
        return slots[Int(slot)].map { registrations[Int($0)].subscription }
    }

    public func subscription(_ match: SubscriptionMatch) -> TableSubscription {
        registrations[Int(slots[Int(match.slot)][Int(match.ordinal)])].subscription
    }

    private func requireRoom(
        for subscriptions: [TableSubscription], slot: Int32, tenant: ID<Tenant>, user: ID<User>
    ) throws(Failure) {
        try TableSubscription.requireWithinLimits(of: subscriptions, at: "/tables")
        let freedBytes = holdings[slot]?.bytes ?? 0
        let bytes =
            (bytesOfHolders[Holder(tenant: tenant, user: user)] ?? 0) - freedBytes + subscriptions.storedBytes
        guard bytes <= bytesPerUserMax else {
            throw Failure(
                .rateLimited, "subscriptions.too_many",
                "The subscriptions of all your streams exceed \(bytesPerUserMax) bytes in total. Use fewer values, or "
                    + "close another stream first.",
                retryAfterSeconds: 30)
        }
        let added = subscriptions.reduce(0) { $0 + $1.filter.valueCount }
        let own = slot < slots.count ? slots[Int(slot)] : []
        let freed = own.reduce(0) { $0 + entries[Int($1)].filter.valueCount }
        guard valueCount - freed + added <= valuesMax else {
            throw Failure(
                .unavailable, "subscriptions.full",
                "The service has reached its limit of filter values. Try again later.",
                retryAfterSeconds: 30)
        }
        var scanned: [Route: Int] = [:]
        for subscription in subscriptions where Self.isScanned(subscription.filter) {
            let route = Route(tenant: tenant, schema: subscription.schema, table: subscription.table)
            scanned[route, default: 0] += subscription.filter.scanWeight
        }
        for (route, weight) in scanned {
            var (others, usersOthers) = (0, 0)
            if let number = tableNumbers[route] {
                let freed = own.reduce(0) {
                    let isFreed = entries[Int($1)].table == number && registrations[Int($1)].isScanned
                    return isFreed ? $0 + entries[Int($1)].filter.scanWeight : $0
                }
                others = tables[Int(number)].scannedWeight - freed
                usersOthers = (tables[Int(number)].scannedWeights[user] ?? 0) - freed
            }
            guard usersOthers + weight <= scannedPerUserMax else {
                throw Failure(
                    .rateLimited, "subscriptions.too_many",
                    "Your streams have too many filters on the table '\(route.table)' without an eq or in condition. "
                        + "Use eq or in, or close another stream first.",
                    retryAfterSeconds: 30)
            }
            guard others + weight <= scannedPerTableMax else {
                throw Failure(
                    .unavailable, "subscriptions.full",
                    "The service has reached its limit of filters without an eq or in condition on the table "
                        + "'\(route.table)'. Use eq or in, or try again later.",
                    retryAfterSeconds: 30)
            }
        }
    }

    private static func isScanned(_ filter: Filter) -> Bool {
        !filter.conditions.isEmpty && !filter.conditions.contains(where: \.isIndexable)
    }

    private mutating func add(
        _ subscription: TableSubscription, slot: Int32, ordinal: Int32, tenant: ID<Tenant>
    ) -> Int32 {
        let table = tableNumber(Route(tenant: tenant, schema: subscription.schema, table: subscription.table))
        let number = freeEntries.popLast() ?? Int32(entries.count)
        let home: Home
        if let condition = leastShared(of: subscription.filter, table: table) {
            home = .indexed(condition: condition)
            let salt = retainColumn(subscription.filter.conditions[condition], of: table)
            subscription.filter.conditions[condition].forEachKey { key in
                buckets.insert(number, under: Self.hash(key, salt: salt))
            }
        } else if subscription.filter.conditions.isEmpty {
            home = .unfiltered(tables[Int(table)].unfiltered.count)
            tables[Int(table)].unfiltered.append(number)
        } else {
            home = .scanned(tables[Int(table)].scanned.count)
            tables[Int(table)].scanned.append(number)
            tables[Int(table)].addScanned(subscription.filter.scanWeight, of: users[Int(slot)])
        }
        tables[Int(table)].subscriptionCount += 1
        valueCount += subscription.filter.valueCount
        if Int(number) == entries.count {
            entries.append(.free)
            registrations.append(.free)
        }
        entries[Int(number)] = Entry(
            filter: subscription.filter, events: subscription.events, slot: slot, ordinal: ordinal, table: table)
        registrations[Int(number)] = Registration(subscription: subscription, home: home)
        return number
    }

    private mutating func removeEntry(_ number: Int32) {
        let entry = entries[Int(number)]
        let home = registrations[Int(number)].home
        entries[Int(number)] = .free
        registrations[Int(number)] = .free
        freeEntries.append(number)
        valueCount -= entry.filter.valueCount
        switch home {
        case .indexed(let place):
            let condition = entry.filter.conditions[place]
            let salt = releaseColumn(condition.column, of: entry.table)
            condition.forEachKey { key in buckets.remove(number, under: Self.hash(key, salt: salt)) }
        case .scanned(let place):
            tables[Int(entry.table)].addScanned(-entry.filter.scanWeight, of: users[Int(entry.slot)])
            if let moved = tables[Int(entry.table)].scanned.removeFillingGap(at: place) {
                registrations[Int(moved)].home = .scanned(place)
            }
        case .unfiltered(let place):
            if let moved = tables[Int(entry.table)].unfiltered.removeFillingGap(at: place) {
                registrations[Int(moved)].home = .unfiltered(place)
            }
        }
        tables[Int(entry.table)].subscriptionCount -= 1
        releaseTable(entry.table)
        if freeEntries.count == entries.count {
            entries = []
            registrations = []
            freeEntries = []
        }
    }

    /// Returns the condition to index the filter by, or nil if the filter has no indexable one. It is the one whose
    /// most shared value is shared by the fewest; of equal ones, the one with the fewest values.
    private func leastShared(of filter: Filter, table: Int32) -> Int? {
        let places = filter.conditions.indices.filter { filter.conditions[$0].isIndexable }
        guard places.count > 1 else { return places.first }
        var best: (place: Int, cost: (shared: Int, values: Int))?
        for place in places {
            let condition = filter.conditions[place]
            var cost = (shared: 0, values: condition.test.valueCount)
            if let salt = tables[Int(table)].columns[condition.column]?.salt {
                condition.forEachKey { key in
                    cost.shared = max(cost.shared, buckets.count(under: Self.hash(key, salt: salt)))
                }
            }
            if let known = best, known.cost <= cost { continue }
            best = (place, cost)
        }
        return best?.place
    }

    /// Returns a hash that is seeded per process, so that a client cannot choose values that collide.
    private static func hash(_ key: UnsafeBufferPointer<UInt8>, salt: Int) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(salt)
        hasher.combine(bytes: UnsafeRawBufferPointer(key))
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    private mutating func tableNumber(_ route: Route) -> Int32 {
        if let number = tableNumbers[route] { return number }
        let number: Int32
        if let free = freeTables.popLast() {
            number = free
            tables[Int(free)] = Table(route: route)
        } else {
            number = Int32(tables.count)
            tables.append(Table(route: route))
        }
        tableNumbers[route] = number
        return number
    }

    private mutating func releaseTable(_ number: Int32) {
        guard tables[Int(number)].subscriptionCount == 0 else { return }
        tableNumbers[tables[Int(number)].route] = nil
        tables[Int(number)] = .free
        freeTables.append(number)
    }

    /// Returns the column's salt, and counts the filter.
    private mutating func retainColumn(_ condition: FilterCondition, of table: Int32) -> Int {
        var hasher = Hasher()
        hasher.combine(table)
        hasher.combine(condition.column)
        let salt = hasher.finalize()
        let new = Column(salt: salt, type: condition.type)
        tables[Int(table)].columns[condition.column, default: new].filterCount += 1
        return salt
    }

    private mutating func releaseColumn(_ name: String, of table: Int32) -> Int {
        guard var column = tables[Int(table)].columns[name] else { return 0 }
        column.filterCount -= 1
        tables[Int(table)].columns[name] = column.filterCount == 0 ? nil : column
        return column.salt
    }

    // MARK: Matching

    /// Calls `body` once for each subscription whose filter matches the old or the new row, in the order of slots and
    /// of each slot's list. So all matches of a stream are consecutive. The body must not change the index.
    ///
    /// - Parameter candidatesMax: The maximum number of filters to evaluate. Filters that both rows find count twice.
    /// - Returns: False if there are more candidates. Then `body` is not called.
    @discardableResult
    public mutating func forEachMatch(
        _ change: RowVersions, candidatesMax: Int = .max, _ body: (SubscriptionMatch) -> Void
    ) -> Bool {
        guard findMatches(change, candidatesMax: candidatesMax) else { return false }
        for match in matches { body(match) }
        return true
    }

    /// Does the same as ``forEachMatch(_:candidatesMax:_:)`` for a single stream.
    public func forEachMatch(_ change: RowVersions, in slot: Int32, _ body: (SubscriptionMatch) -> Void) {
        guard slot >= 0, Int(slot) < slots.count, let table = table(of: change) else { return }
        for number in slots[Int(slot)] where entries[Int(number)].table == table {
            if let match = entries[Int(number)].match(change) { body(match) }
        }
    }

    /// Fills `matches`, unless there are more candidates; then it returns false.
    private mutating func findMatches(_ change: RowVersions, candidatesMax: Int) -> Bool {
        // Moved out of the index while it is filled. Otherwise the method that fills it would receive a copy of the
        // index.
        var hashes = hashes
        self.hashes = []
        hashes.removeAll(keepingCapacity: true)
        defer { self.hashes = hashes }
        candidates.removeAll(keepingCapacity: candidates.capacity <= Self.reservedMax)
        matches.removeAll(keepingCapacity: matches.capacity <= Self.reservedMax)
        guard let table = table(of: change) else { return true }
        appendHashes(change, table: Int(table), to: &hashes)
        let count = hashes.reduce(tables[Int(table)].unfiltered.count + tables[Int(table)].scanned.count) {
            $0 + buckets.count(under: $1)
        }
        guard count <= candidatesMax else { return false }
        candidates += tables[Int(table)].unfiltered
        candidates += tables[Int(table)].scanned
        for hash in hashes { buckets.append(under: hash, to: &candidates) }
        stamp += 1
        var isSorted = true
        for candidate in candidates {
            guard entries[Int(candidate)].visitStamp != stamp else { continue }
            entries[Int(candidate)].visitStamp = stamp
            guard let match = entries[Int(candidate)].match(change) else { continue }
            if let last = matches.last, match.precedes(last) { isSorted = false }
            matches.append(match)
        }
        if !isSorted { matches.sort { $0.precedes($1) } }
        return true
    }

    /// The number of elements for which the lists above keep memory. Otherwise one change that reaches every stream
    /// would occupy memory for good.
    private static let reservedMax = 4096

    private func table(of change: RowVersions) -> Int32? {
        tableNumbers[Route(tenant: change.tenant, schema: change.schema, table: change.table)]
    }

    /// Appends the hashes of all values, old and new, that may lead to filters of the table.
    private func appendHashes(_ change: RowVersions, table: Int, to hashes: inout [UInt64]) {
        let rowColumns = max(change.new?.count ?? 0, change.old?.count ?? 0)
        // Iterates over the smaller set: a client may name any number of columns that no row has.
        guard tables[table].columns.count > rowColumns else {
            for (name, column) in tables[table].columns {
                Self.appendHashes(change.old?[name], change.new?[name], column, to: &hashes)
            }
            return
        }
        for (name, new) in change.new ?? [:] {
            guard let column = tables[table].columns[name] else { continue }
            Self.appendHashes(change.old?[name], new, column, to: &hashes)
        }
        for (name, old) in change.old ?? [:] where change.new?[name] == nil {
            guard let column = tables[table].columns[name] else { continue }
            Self.appendHashes(old, nil, column, to: &hashes)
        }
    }

    private static func appendHashes(
        _ old: JSONValue?, _ new: JSONValue?, _ column: Column, to hashes: inout [UInt64]
    ) {
        if let new { FilterKey.with(new, as: column.type) { hashes.append(hash($0, salt: column.salt)) } }
        guard let old, !(new.map(old.isSame) ?? false) else { return }
        FilterKey.with(old, as: column.type) { hashes.append(hash($0, salt: column.salt)) }
    }
}
