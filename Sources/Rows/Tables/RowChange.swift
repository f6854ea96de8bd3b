import Values

/// A change of one row within one tenant, as the event log stores it, with its audience and the query keys that it
/// makes stale. Both are computed once, when the change arrives.
///
/// No client receives it in this form: a stream gets what its scope may see and its subscriptions select.
public struct RowChange: Sendable, Hashable {
    public typealias Row = RowWrite.Row

    public let schema: String
    public let table: String
    public let primaryKey: [String]
    public let operation: RowOperation
    /// The rows as the feed sent them; nil for a row of another tenant.
    public let old: Row?
    public let new: Row?
    /// The keys that may see the old row; empty if this tenant had no such row.
    public let oldReaders: [String]
    public let newReaders: [String]
    /// Keys of `newReaders` that the change itself revokes. The change is delivered before the scopes of streams
    /// change, and holders that lose the row by it must not see its new version.
    public let losses: [KeyLoss]
    public let invalidations: [Invalidation]
    public let cause: InvalidationCause
    /// How long invalidations and counts are collected before they are sent.
    public let windowMilliseconds: Int
    /// The counts of an `engagement_update` with their columns; empty unless one of them changed.
    public let countColumns: [String: String]
    /// Whether only those counts changed. Then streams receive the counts and not the row.
    public let isOnlyCounts: Bool
    public let commitTimestamp: Timestamp?

    /// A query key that became stale.
    public struct Invalidation: Sendable, Hashable {
        public let key: [String]
        /// The keys that receive the query key.
        public let audience: [String]
        /// The keys that also receive the cause.
        public let causeAudience: [String]
    }

    /// The old row against which subscriptions are matched. Columns that the feed did not send are assumed to be
    /// unchanged.
    public var assumedOld: Row? {
        guard let old, let new else { return old }
        return old.completed(by: new)
    }

    /// Whether a subscription may receive the `leave` of a row whose new version its stream does not see. It may only
    /// if the old row, as the feed sent it, matches the filter. Columns that the feed did not send are compared with
    /// their current values, and a filter on them would reveal values of a row that the stream may not see.
    public func mayLeave(_ subscription: TableSubscription, seesNew: Bool) -> Bool {
        seesNew || new == nil || subscription.filter.matches(old ?? [:])
    }

    /// Returns the keys that may see the new row, for one scope.
    ///
    /// - Parameter hasKey: Whether the scope had a key before the change.
    public func newReaders(_ hasKey: (String) -> Bool) -> [String] {
        let lost = losses.filter { hasKey($0.holder) }.map(\.key)
        return lost.isEmpty ? newReaders : newReaders.filter { !lost.contains($0) }
    }

    /// All keys whose holders receive one of the invalidations.
    public var invalidationAudience: [String] { invalidations.flatMap(\.audience).withoutRepetitions }

    /// Whether any stream could receive a part of it.
    var hasAudience: Bool { !oldReaders.isEmpty || !newReaders.isEmpty || !invalidations.isEmpty }
}

extension RowChange {
    /// Creates a change of a row in one of the service's own tables, to which streams subscribe like to a declared
    /// table.
    ///
    /// - Parameters:
    ///   - readers: The keys that may see the row.
    ///   - countColumns: The counts, if only these changed.
    public init(
        ofOwn table: (schema: String, table: String), _ operation: RowOperation, recordId: String, old: Row?, new: Row?,
        readers: [String], windowMilliseconds: Int = 0, countColumns: [String: String] = [:],
        at commitTimestamp: Timestamp? = nil
    ) {
        self.init(
            schema: table.schema, table: table.table, primaryKey: ["id"], operation: operation, old: old, new: new,
            oldReaders: old == nil ? [] : readers, newReaders: new == nil ? [] : readers, losses: [],
            invalidations: [],
            cause: InvalidationCause(
                schema: table.schema, table: table.table, operation: operation, recordId: recordId, actorId: nil,
                originId: nil),
            windowMilliseconds: windowMilliseconds, countColumns: countColumns, isOnlyCounts: !countColumns.isEmpty,
            commitTimestamp: commitTimestamp)
    }
}

extension RowVersions {
    public init(_ change: RowChange, tenant: ID<Tenant>) {
        self.init(
            tenant: tenant, schema: change.schema, table: change.table, event: change.operation.subscribed,
            old: change.assumedOld, new: change.new)
    }
}

/// The tenants of a change, and its form for each of them.
public struct ChangeRouting: Sendable {
    /// The tenants of its rows: one, or two if the row moved between them.
    public let tenants: [ID<Tenant>]
    /// The change as each tenant may see it; empty for an irrelevant change.
    public let changes: [(tenant: ID<Tenant>, change: RowChange)]
    /// The reason why a relevant change reaches no receiver; nil if it has receivers, or if the row itself excludes all
    /// receivers. The row's memberships count in any case.
    public let unreached: Failure?
}

extension TableDeclaration {
    /// Routes a change to each tenant that it concerns.
    ///
    /// Must be called before ``Memberships/apply(_:of:)``.
    ///
    /// - Throws: `invalid` if the tenant of a row is unknown.
    public func routing(
        of change: RowWrite, at commitTimestamp: Timestamp?, memberships: Memberships
    ) throws(Failure) -> ChangeRouting {
        let completedOld = completedOld(change, memberships)
        let sides = try sides(of: change, completedOld: completedOld, memberships)
        var tenants: [ID<Tenant>] = []
        for tenant in [sides.old?.tenant, sides.new?.tenant].compactMap(\.self) where !tenants.contains(tenant) {
            tenants.append(tenant)
        }
        guard matters(change, completedOld: completedOld) else {
            return ChangeRouting(tenants: tenants, changes: [], unreached: nil)
        }
        let (reach, invalidations): (Reach, [Invalidation])
        do throws(Failure) {
            reach = try self.reach(sides, change.operation, memberships)
            invalidations = try self.invalidations(
                of: change, completedOld: completedOld, sides: sides, reach: reach, memberships: memberships)
        } catch {
            return ChangeRouting(tenants: tenants, changes: [], unreached: error)
        }
        let cause = cause(of: change)
        let (counted, isOnlyCounts) = changedCounts(of: change, completedOld: completedOld)
        let window = window.components.seconds * 1000 + window.components.attoseconds / 1_000_000_000_000_000
        let changes = tenants.compactMap { tenant -> (tenant: ID<Tenant>, change: RowChange)? in
            let (isOld, isNew) = (reach.old?.tenant == tenant, reach.new?.tenant == tenant)
            let routed = RowChange(
                schema: schema, table: name, primaryKey: primaryKey, operation: change.operation,
                // At least the key: a feed may send only the key of a deleted row, and nothing at all of a moved one.
                old: isOld ? change.old ?? change.new.map(keyColumns) : nil, new: isNew ? change.new : nil,
                oldReaders: isOld ? reach.old?.keys ?? [] : [], newReaders: isNew ? reach.new?.keys ?? [] : [],
                losses: isOld && isNew ? memberships.losses(by: change.operation, of: self, sides, reach.new) : [],
                invalidations: invalidations.lazy.filter { $0.tenant == tenant }.map {
                    .init(key: $0.key, audience: $0.audience, causeAudience: $0.causeAudience)
                },
                cause: cause, windowMilliseconds: Int(window), countColumns: counted, isOnlyCounts: isOnlyCounts,
                commitTimestamp: commitTimestamp)
            return routed.hasAudience ? (tenant, routed) : nil
        }
        let unreached = changes.isEmpty ? missingAudience(sides, change.operation) : nil
        return ChangeRouting(tenants: tenants, changes: changes, unreached: unreached)
    }

    private func keyColumns(of row: RowWrite.Row) -> RowWrite.Row {
        row.filter { primaryKey.contains($0.key) }
    }

    /// Returns the counts of an update if one of them changed, and whether nothing else relevant is known to have
    /// changed.
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

// MARK: - Storage in the log

extension RowChange {
    /// The rows of a change as JSON, which all streams that receive whole rows share.
    public struct EncodedRows: Sendable {
        public let old: ArraySlice<UInt8>?
        public let new: ArraySlice<UInt8>?
    }

    /// The rows of a change that was read from the log.
    public var encodedRows: EncodedRows {
        func bytes(_ row: Row?) -> ArraySlice<UInt8>? { row.map { JSONWriter.bytes(JSONValue.object($0))[...] } }
        return EncodedRows(old: bytes(old), new: bytes(new))
    }

    /// Returns the change as the log stores it, and the parts of these bytes that are its rows.
    public func encoded() -> (bytes: [UInt8], rows: EncodedRows) {
        var places: (old: Range<Int>?, new: Range<Int>?)
        let bytes = JSONWriter.object { write(membersTo: &$0, &places) }
        return (bytes, EncodedRows(old: places.old.map { bytes[$0] }, new: places.new.map { bytes[$0] }))
    }

    private func write(
        membersTo writer: inout JSONWriter, _ places: inout (old: Range<Int>?, new: Range<Int>?)
    ) {
        writer.member("schema", schema)
        writer.member("table", table)
        writer.member("type", operation.eventName)
        writer.member("primaryKey", primaryKey)
        if let old { places.old = writer.member("oldRecord", row: old) }
        if let new { places.new = writer.member("record", row: new) }
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

    /// Reads a stored change; nil for bytes that no version of the service wrote.
    public init?(reading data: [UInt8]) {
        guard let value = try? JSONValue(parsing: data, depthMax: ChangeLimits.depthMax + 2),
            case .object(let members) = value, let schema = members.string("schema"),
            let table = members.string("table"),
            let operation = RowOperation.allCases.first(where: { $0.eventName == members.string("type") }),
            let primaryKey = members.strings("primaryKey"), let oldReaders = members.strings("oldReaders"),
            let newReaders = members.strings("readers"), let invalidations = members.objects("invalidations"),
            let cause = members.object("cause"), let window = members.integer("windowMs")
        else { return nil }
        self.schema = schema
        self.table = table
        self.operation = operation
        self.primaryKey = primaryKey
        self.oldReaders = oldReaders
        self.newReaders = newReaders
        old = members.object("oldRecord")
        new = members.object("record")
        losses = (members.objects("losses") ?? []).compactMap(KeyLoss.init(reading:))
        self.invalidations = invalidations.compactMap(Invalidation.init(reading:))
        self.cause = InvalidationCause(
            schema: schema, table: table, operation: operation, recordId: cause.string("recordId"),
            actorId: cause.string("actorId"), originId: cause.string("originId"))
        windowMilliseconds = Int(window)
        countColumns = (members.object("counts") ?? [:]).compactMapValues { value in
            if case .string(let column) = value { column } else { nil }
        }
        isOnlyCounts = members["isOnlyCounts"] == .bool(true)
        commitTimestamp = members.integer("commitTimestamp").map { Timestamp(microseconds: $0) }
    }
}

extension JSONWriter {
    /// Writes a row, and returns its place in the bytes.
    fileprivate mutating func member(_ name: StaticString, row: RowChange.Row) -> Range<Int> {
        key(name)
        let start = bytes.count
        value(JSONValue.object(row))
        return start..<bytes.count
    }
}

extension RowChange.Invalidation: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("key", key)
        writer.member("audience", audience)
        writer.member("causeAudience", causeAudience)
    }

    fileprivate init?(reading members: [String: JSONValue]) {
        guard let key = members.strings("key"), let audience = members.strings("audience"),
            let causeAudience = members.strings("causeAudience")
        else { return nil }
        self.init(key: key, audience: audience, causeAudience: causeAudience)
    }
}

extension KeyLoss: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("holder", holder)
        writer.member("key", key)
    }

    fileprivate init?(reading members: [String: JSONValue]) {
        guard let holder = members.string("holder"), let key = members.string("key") else { return nil }
        self.init(holder: holder, key: key)
    }
}

extension InvalidationCause: JSONObjectWritable {
    /// `{"table": "attendance", "type": "INSERT", "recordId": "a1", "actorId": "t1", "originId": null}`
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("schema", schema)
        writer.member("table", table)
        writer.member("type", operation.eventName)
        writer.member("recordId", recordId)
        writer.member("actorId", actorId)
        writer.member("originId", originId)
    }
}

extension RowOperation {
    /// The name in events, such as `INSERT`.
    public var eventName: String { rawValue.uppercased() }

    /// The subscription events that include this operation.
    public var subscribed: TableSubscription.Events {
        switch self {
        case .insert: .insert
        case .update: .update
        case .delete: .delete
        }
    }
}
