import MicroHTTP
import Realtime
import Rows
import Values

/// The row subscriptions of one shard's streams, and the invalidations and counts that wait for the end of their
/// window.
///
/// It belongs to its shard and has one owner.
struct RowSubscriptions {
    /// The counts of rows, by primary key.
    typealias RecordCounts = [ID<RowChange>: [String: JSONValue]]

    /// Counts of watched rows that wait for one stream.
    struct Counts {
        /// In monotonic milliseconds.
        var dueAt: Int64
        /// The latest counts, by record.
        var updates: RecordCounts
    }

    private(set) var index: SubscriptionIndex
    var coalescer = Coalescer()
    /// The waiting counts, by slot.
    private var counts: [Int32: Counts] = [:]
    /// The time when the first of them are due.
    private var countsDueAt: Int64?
    /// Changes up to these events are not delivered as rows, because the stream has read them from the log.
    private var floors: [Int32: Int64] = [:]
    private(set) var watchedTables = WatchedTables()

    init(shards: Int) {
        index = SubscriptionIndex(
            valuesMax: FilterLimits.valuesPerIndexMax / max(1, shards),
            bytesPerUserMax: max(FilterLimits.bytesPerUserOfShardMin, FilterLimits.bytesPerUserMax / max(1, shards)))
    }

    // MARK: Subscriptions

    /// Replaces the subscriptions of a stream.
    ///
    /// - Parameter floor: The event up to which the stream has received the changes for its subscriptions.
    /// - Throws: The failures of `SubscriptionIndex.replace`. Then nothing is changed.
    mutating func replace(
        _ slot: Int32, of owner: Owner, with subscriptions: [TableSubscription], floor: Int64?
    ) throws(Failure) {
        try index.replace(slot, tenant: owner.tenant, user: owner.userId, with: subscriptions)
        watchedTables.replace(slot, tenant: owner.tenant, with: subscriptions)
        counts[slot] = nil
        floors[slot] = subscriptions.isEmpty ? nil : floor
    }

    mutating func remove(_ slot: Int32) {
        index.remove(slot)
        coalescer.remove(slot)
        watchedTables.remove(slot)
        counts[slot] = nil
        floors[slot] = nil
    }

    /// Records that the stream has received the rows up to this event.
    mutating func noteDelivered(through sequence: Int64, to slot: Int32) {
        if let floor = floors[slot] { floors[slot] = max(floor, sequence) }
    }

    /// Whether the stream has not received an event's row yet.
    func isNew(_ sequence: Int64, to slot: Int32) -> Bool { floors[slot].map { sequence > $0 } ?? true }

    mutating func forEachMatch(
        _ row: RowVersions, candidatesMax: Int, _ body: (SubscriptionMatch) -> Void
    ) -> Bool {
        index.forEachMatch(row, candidatesMax: candidatesMax, body)
    }

    // MARK: Waiting deliveries

    /// In monotonic milliseconds.
    var nextDue: Int64? {
        guard let countsDueAt else { return coalescer.nextDue }
        return min(countsDueAt, coalescer.nextDue ?? .max)
    }

    /// Adds the counts of a row for a stream that watches it.
    mutating func offer(_ values: [String: JSONValue], of record: String, to slot: Int32, dueAt: Int64) {
        guard !values.isEmpty else { return }
        counts[slot, default: Counts(dueAt: dueAt, updates: [:])].updates[ID(record)] = values
        // Once the counts fill an event, they wait no longer.
        if counts[slot]?.updates.count ?? 0 >= StreamLimits.countsPerEventMax { counts[slot]?.dueAt = 0 }
        countsDueAt = min(countsDueAt ?? .max, counts[slot]?.dueAt ?? dueAt)
    }

    /// Updates the waiting counts of a row that is delivered now, so that they do not restore an older state.
    ///
    /// - Parameter values: The current counts; nil for a row that has left.
    mutating func refresh(_ values: [String: JSONValue]?, of record: String, to slot: Int32) {
        guard let waiting = counts[slot]?.updates[ID(record)] else { return }
        counts[slot]?.updates[ID(record)] = values.map { waiting.merging($0) { old, new in new } }
        if counts[slot]?.updates.isEmpty == true { counts[slot] = nil }
    }

    /// Returns the counts whose window has not ended.
    func counts(waitingFor slot: Int32) -> RecordCounts { counts[slot]?.updates ?? [:] }

    mutating func takeCounts(at now: Int64) -> [(slot: Int32, updates: RecordCounts)] {
        guard let countsDueAt, countsDueAt <= now else { return [] }
        let due = counts.filter { $0.value.dueAt <= now }
        for slot in due.keys { counts[slot] = nil }
        self.countsDueAt = counts.values.lazy.map(\.dueAt).min()
        return due.map { ($0.key, $0.value.updates) }
    }
}

/// The tables to which a shard's streams subscribe. Changes of other tables are not even parsed.
struct WatchedTables {
    private struct Watch: Hashable {
        let tenant: ID<Tenant>
        let topic: String
    }

    /// The number of streams that subscribe to each table.
    private var streamCounts: [Watch: Int] = [:]
    private var watchesOfSlot: [Int32: [Watch]] = [:]

    mutating func replace(_ slot: Int32, tenant: ID<Tenant>, with subscriptions: [TableSubscription]) {
        remove(slot)
        guard !subscriptions.isEmpty else { return }
        let watched = Set(
            subscriptions.map { Watch(tenant: tenant, topic: EventLog.topic(schema: $0.schema, table: $0.table)) })
        for watch in watched { streamCounts[watch, default: 0] += 1 }
        watchesOfSlot[slot] = Array(watched)
    }

    mutating func remove(_ slot: Int32) {
        for watch in watchesOfSlot.removeValue(forKey: slot) ?? [] {
            let count = streamCounts[watch, default: 1]
            streamCounts[watch] = count > 1 ? count - 1 : nil
        }
    }

    /// Whether any stream subscribes to the table of a change.
    func contains(_ event: StreamEvent) -> Bool {
        guard !streamCounts.isEmpty, let topic = event.topic else { return false }
        return streamCounts[Watch(tenant: event.tenant, topic: topic)] != nil
    }
}

/// The encoder of one change, used by a shard or by the reader of the log. It encodes the change once for all streams
/// that receive the same.
struct RowChangeEncoder {
    let change: PublishedChange
    /// The versions that subscriptions are matched against.
    let row: RowVersions
    /// Nil for a change that is sent out of its place in the log.
    let cursor: Cursor?
    private let traceparent: String?
    private lazy var wholeRows = change.rows ?? change.value.encodedRows
    private var encoded: [RowDelivery.Part: SharedBytes] = [:]

    init(_ change: PublishedChange, of event: StreamEvent, cursor: Cursor?) {
        self.change = change
        self.cursor = cursor
        traceparent = event.traceparent
        row = RowVersions(change.value, tenant: event.tenant)
    }

    /// Returns the counts that a selection includes.
    func counts(_ selection: ColumnSelection?) -> [String: JSONValue] {
        var values: [String: JSONValue] = [:]
        for (name, column) in change.value.countColumns where selection?.columns.contains(column) ?? true {
            values[name] = change.value.new?[column]
        }
        return values
    }

    /// Whether a subscription receives only the counts.
    func isOnlyCounts(_ transition: RowTransition) -> Bool { change.value.isOnlyCounts && transition == .update }

    /// Returns a `table:change` event.
    mutating func event(_ part: RowDelivery.Part) -> SharedBytes {
        if let bytes = encoded[part] { return bytes }
        let (record, oldRecord) = part.transition.rows(
            old: change.value.old, new: change.value.new, selection: part.selection,
            primaryKey: change.value.primaryKey)
        let whole = part.isWhole ? wholeRows : nil
        let change = change
        let bytes = StreamNotice.event("table:change", at: cursor, traceparent: traceparent) { writer in
            writer.member("subscriptionIds", part.subscriptionIds)
            writer.member("schema", change.value.schema)
            writer.member("table", change.value.table)
            writer.member("type", change.value.operation.eventName)
            writer.member("change", part.transition.rawValue)
            writer.member("record", record, encoded: whole?.new)
            writer.member("oldRecord", oldRecord, encoded: whole?.old)
            writer.member("commitTimestamp", change.value.commitTimestamp)
        }
        let shared = SharedBytes(bytes)
        encoded[part] = shared
        return shared
    }
}

extension JSONWriter {
    /// Writes a row, or null.
    ///
    /// - Parameter encoded: The row as JSON, if it is known.
    fileprivate mutating func member(_ name: StaticString, _ row: RowChange.Row?, encoded: ArraySlice<UInt8>?) {
        if row != nil, let encoded {
            member(name, json: encoded)
        } else {
            member(name, row.map(JSONValue.object))
        }
    }
}

/// The most recent row changes that a shard has delivered, for streams whose replay ends shortly before.
struct RecentChanges {
    private var changes: [EncodedEvent] = []
    private var bytes = 0
    /// All changes after this event are stored.
    private var since: Int64

    init(since head: Int64) {
        since = head
    }

    mutating func append(_ change: EncodedEvent) {
        changes.append(change)
        bytes += change.event.data.count
        guard bytes > StreamLimits.recentChangesBytesMax else { return }
        // Drops half of them at once, so that this is not done for each change.
        let dropped = changes.prefix((changes.count + 1) / 2)
        since = dropped.last?.event.sequence ?? since
        bytes -= dropped.reduce(0) { $0 + $1.event.data.count }
        changes.removeFirst(dropped.count)
    }

    /// Whether all changes after an event are stored.
    func reach(_ sequence: Int64) -> Bool { sequence >= since }

    func after(_ sequence: Int64) -> ArraySlice<EncodedEvent> {
        changes.drop { $0.event.sequence <= sequence }
    }
}

/// The delivery of one change to one stream: its subscriptions by selection, which all have the same transition.
struct RowDelivery {
    struct Part: Hashable {
        let transition: RowTransition
        let selection: ColumnSelection?
        var subscriptionIds: [ID<TableSubscription>]

        /// Whether it receives all columns of the rows.
        var isWhole: Bool { selection == nil && transition != .leave }
    }

    private(set) var parts: [Part] = []

    /// Adds a subscription, unless it must not receive the leave of the row.
    mutating func add(
        _ subscription: TableSubscription, _ transition: RowTransition, of change: RowChange, seesNew: Bool
    ) {
        guard transition != .leave || change.mayLeave(subscription, seesNew: seesNew) else { return }
        let place = parts.firstIndex { $0.transition == transition && $0.selection == subscription.selection }
        if let place {
            parts[place].subscriptionIds.append(ID(subscription.id))
        } else {
            parts.append(
                Part(transition: transition, selection: subscription.selection, subscriptionIds: [ID(subscription.id)]))
        }
    }
}
