import Visibility

/// A change of one row as the event log keeps it for the people of one tenant: whom it concerns and what it makes
/// stale, worked out once, when it came in.
///
/// Nothing in it is for a client as it stands: each stream is told what its scope may see and its subscriptions ask
/// for.
public struct RoutedChange: Sendable, Hashable {
    public typealias Row = RowWrite.Row

    public let schema: String
    public let table: String
    public let primaryKey: [String]
    public let operation: RowOperation
    /// The rows as the feed told them; of a row that is another tenant's, nothing.
    public let old: Row?
    public let new: Row?
    /// Scopes that hold one of these see the row as it was; none: there was none in this tenant.
    public let oldReaders: [String]
    public let newReaders: [String]
    /// Keys of `newReaders` that the change itself takes from their holders: it is told before scopes follow, and who
    /// loses the row by it must not see what it has become.
    public let losses: [KeyLoss]
    public let invalidations: [Invalidation]
    public let cause: InvalidationCause
    /// How long invalidations and counts are gathered.
    public let windowMilliseconds: Int
    /// The counts of an `engagement_update` and the columns they stand in; empty unless one of them changed.
    public let countColumns: [String: String]
    /// Nothing but those counts changed: whoever watches the row is told the counts, and not the row.
    public let isOnlyCounts: Bool
    public let commitTimestamp: Timestamp?

    /// A query key that became stale.
    public struct Invalidation: Sendable, Hashable {
        public let key: [String]
        /// Scopes that share one of these hear the key.
        public let audience: [String]
        /// Scopes that share one of these hear the cause as well.
        public let causeAudience: [String]
    }

    /// The row before the change, as subscriptions are asked about it: of a column that the feed does not tell nothing
    /// is known, and it is taken to have been as it is now.
    public var comparedOld: Row? {
        guard let old, let new else { return old }
        return old.completed(by: new)
    }

    /// Whether a subscription may be told that a row has left whose present state its stream does not see: only if what
    /// the feed tells of the old row says that it was theirs. Columns that it does not tell are compared as they are now,
    /// and a filter on them would ask about a row that is not theirs.
    public func mayLeave(_ subscription: TableSubscription, seesNew: Bool) -> Bool {
        seesNew || new == nil || subscription.filter.matches(old ?? [:])
    }

    /// By which keys a scope sees the row as it is.
    ///
    /// - Parameter holds: whether the scope, as it was before the change, holds a key.
    public func newReaders(of holds: (String) -> Bool) -> [String] {
        let lost = losses.filter { holds($0.holder) }.map(\.key)
        return lost.isEmpty ? newReaders : newReaders.filter { !lost.contains($0) }
    }

    /// All keys by which a stream can hear an invalidation.
    public var invalidationAudience: [String] {
        var keys: [String] = []
        var seen: Set<String> = []
        for key in invalidations.lazy.flatMap(\.audience) where seen.insert(key).inserted { keys.append(key) }
        return keys
    }

    /// Whether anybody could ever be told of it.
    public var concernsAnybody: Bool { !oldReaders.isEmpty || !newReaders.isEmpty || !invalidations.isEmpty }
}

/// Where a change goes.
public struct Routing: Sendable {
    /// The tenants whose rows it is about: one, or two where the row moved between them.
    public let tenants: [String]
    /// What it means to each of them; none for a change that does not matter.
    public let changes: [(tenant: String, change: RoutedChange)]
}

extension TableDeclaration {
    /// What a change means to each tenant that it concerns.
    ///
    /// Ask before ``Memberships/apply(_:of:)`` sees the change.
    ///
    /// - Throws: `invalid`, where the tenant of a row cannot be told.
    public func routing(
        of change: RowWrite, at commitTimestamp: Timestamp?, memberships: Memberships
    ) throws(Failure) -> Routing {
        let completedOld = completedOld(change, memberships)
        let sides = try sides(of: change, completedOld: completedOld, memberships)
        var tenants: [String] = []
        for tenant in [sides.old?.tenant, sides.new?.tenant].compactMap(\.self) where !tenants.contains(tenant) {
            tenants.append(tenant)
        }
        guard matters(change, completedOld: completedOld) else { return Routing(tenants: tenants, changes: []) }
        let reach = reach(sides, change.operation, memberships)
        let invalidations = invalidations(
            of: change, completedOld: completedOld, sides: sides, reach: reach, memberships: memberships)
        let cause = cause(of: change)
        let (counted, isOnlyCounts) = changedCounts(of: change, completedOld: completedOld)
        let window = window.components.seconds * 1000 + window.components.attoseconds / 1_000_000_000_000_000
        let changes = tenants.compactMap { tenant -> (tenant: String, change: RoutedChange)? in
            let (isOld, isNew) = (reach.old?.tenant == tenant, reach.new?.tenant == tenant)
            let routed = RoutedChange(
                schema: schema, table: name, primaryKey: primaryKey, operation: change.operation,
                // The key at least: of a deleted row a feed may tell nothing else, and of a moved one nothing at all.
                old: isOld ? change.old ?? change.new.map(keyColumns) : nil, new: isNew ? change.new : nil,
                oldReaders: isOld ? reach.old?.keys ?? [] : [], newReaders: isNew ? reach.new?.keys ?? [] : [],
                losses: isOld && isNew ? memberships.losses(by: change.operation, of: self, sides, reach.new) : [],
                invalidations: invalidations.lazy.filter { $0.tenant == tenant }.map {
                    .init(key: $0.key, audience: $0.audience, causeAudience: $0.causeAudience)
                },
                cause: cause, windowMilliseconds: Int(window), countColumns: counted, isOnlyCounts: isOnlyCounts,
                commitTimestamp: commitTimestamp)
            return routed.concernsAnybody ? (tenant, routed) : nil
        }
        return Routing(tenants: tenants, changes: changes)
    }

    private func keyColumns(of row: RowWrite.Row) -> RowWrite.Row {
        row.filter { primaryKey.contains($0.key) }
    }

    /// The counts of an update of which one changed, and whether nothing else of it is known to matter.
    private func changedCounts(
        of change: RowWrite, completedOld old: RowWrite.Row
    ) -> (columns: [String: String], isAll: Bool) {
        guard change.operation == .update, !counts.isEmpty, let new = change.new,
            counts.values.contains(where: { isChanged($0, by: change, from: old) })
        else { return ([:], false) }
        let counted = Set(counts.values)
        let others = (columns.isEmpty ? Array(new.keys) : columns).filter { !counted.contains($0) }
        let isAll = !(others + audienceColumns).contains { isChanged($0, by: change, from: old) }
        return (counts.filter { new[$0.value] != nil }, isAll)
    }
}

// MARK: - In the log

extension RoutedChange: JSONWritable {
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("schema", schema)
            writer.member("table", table)
            writer.member("type", operation.eventName)
            writer.member("primaryKey", primaryKey)
            if let old { writer.member("oldRecord", JSONValue.object(old)) }
            if let new { writer.member("record", JSONValue.object(new)) }
            writer.member("oldReaders", oldReaders)
            writer.member("readers", newReaders)
            if !losses.isEmpty { writer.member("losses", losses) }
            writer.member("invalidations", invalidations)
            writer.member("cause", cause)
            writer.member("windowMs", windowMilliseconds)
            if !countColumns.isEmpty {
                writer.member("counts", JSONValue.object(countColumns.mapValues(JSONValue.string)))
                writer.member("isOnlyCounts", isOnlyCounts)
            }
            if let commitTimestamp { writer.member("commitTimestamp", Int(commitTimestamp.microseconds)) }
        }
    }

    /// Nil for what no version of the service has written.
    public init?(reading data: [UInt8]) {
        guard let value = try? JSONValue(parsing: data, depthMax: ChangeLimits.depthMax + 2),
            case .object(let members) = value, let schema = members.text("schema"),
            let table = members.text("table"),
            let operation = RowOperation.allCases.first(where: { $0.eventName == members.text("type") }),
            let primaryKey = members.texts("primaryKey"), let oldReaders = members.texts("oldReaders"),
            let newReaders = members.texts("readers"), case .array(let invalidations)? = members["invalidations"],
            case .object(let cause)? = members["cause"], case .integer(let window)? = members["windowMs"]
        else { return nil }
        self.schema = schema
        self.table = table
        self.operation = operation
        self.primaryKey = primaryKey
        self.oldReaders = oldReaders
        self.newReaders = newReaders
        old = members.object("oldRecord")
        new = members.object("record")
        if case .array(let losses)? = members["losses"] {
            self.losses = losses.compactMap(KeyLoss.init(reading:))
        } else {
            losses = []
        }
        self.invalidations = invalidations.compactMap(Invalidation.init(reading:))
        self.cause = InvalidationCause(
            schema: schema, table: table, operation: operation, recordId: cause.text("recordId"),
            actorId: cause.text("actorId"), originId: cause.text("originId"))
        windowMilliseconds = Int(window)
        countColumns = (members.object("counts") ?? [:]).compactMapValues { value in
            if case .string(let column) = value { column } else { nil }
        }
        isOnlyCounts = members["isOnlyCounts"] == .bool(true)
        if case .integer(let microseconds)? = members["commitTimestamp"] {
            commitTimestamp = Timestamp(microseconds: microseconds)
        } else {
            commitTimestamp = nil
        }
    }
}

extension RoutedChange.Invalidation: JSONWritable {
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("key", key)
            writer.member("audience", audience)
            writer.member("causeAudience", causeAudience)
        }
    }

    fileprivate init?(reading value: JSONValue) {
        guard case .object(let members) = value, let key = members.texts("key"),
            let audience = members.texts("audience"), let causeAudience = members.texts("causeAudience")
        else { return nil }
        self.init(key: key, audience: audience, causeAudience: causeAudience)
    }
}

extension KeyLoss: JSONWritable {
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("holder", holder)
            writer.member("key", key)
        }
    }

    fileprivate init?(reading value: JSONValue) {
        guard case .object(let members) = value, let holder = members.text("holder"), let key = members.text("key")
        else { return nil }
        self.init(holder: holder, key: key)
    }
}

extension InvalidationCause: JSONWritable {
    /// `{"table": "attendance", "type": "INSERT", "recordId": "a1", "actorId": "t1", "originId": null}`
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("schema", schema)
            writer.member("table", table)
            writer.member("type", operation.eventName)
            writer.member("recordId", recordId)
            writer.member("actorId", actorId)
            writer.member("originId", originId)
        }
    }
}

extension RowOperation {
    /// As events name it: `INSERT`.
    public var eventName: String { rawValue.uppercased() }

    /// As subscriptions ask for it.
    public var subscribed: TableSubscription.Events {
        switch self {
        case .insert: .insert
        case .update: .update
        case .delete: .delete
        }
    }
}

extension [String: JSONValue] {
    fileprivate func text(_ name: String) -> String? {
        if case .string(let text)? = self[name] { text } else { nil }
    }

    fileprivate func texts(_ name: String) -> [String]? {
        guard case .array(let values)? = self[name] else { return nil }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    fileprivate func object(_ name: String) -> [String: JSONValue]? {
        if case .object(let members)? = self[name] { members } else { nil }
    }
}
