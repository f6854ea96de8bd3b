import Realtime
import Rows
import Values

/// An event that a transaction publishes. The log assigns its number.
struct EventDraft: Sendable {
    let tenant: ID<Tenant>
    let name: String
    /// The keys of the row. A key contains no space, because `AudienceKey` encodes it.
    let audience: [String]
    let topic: String?
    let collapse: String?
    /// The members that it shares with other events of its transaction; `data` then has the others.
    var shared: SharedMembers?
    let data: [UInt8]
    /// The row change whose JSON is `data`.
    var change: PublishedChange?

    /// The key of the state that the event carries; 0 without a state.
    var collapseKey: UInt64 { collapse.map { CollapseKey.of($0) } ?? 0 }
    /// The size as sent to streams.
    var bytes: Int { data.count + (shared?.members.count ?? 0) }
}

/// Members of JSON objects that several events share, such as a message to many users. They are encoded once, and
/// stored once.
final class SharedMembers: Sendable {
    /// Without the braces of the object.
    let members: [UInt8]

    init(_ body: (inout JSONWriter) -> Void) { members = JSONWriter.members(body) }

    /// Returns an object with the shared members before its own.
    static func joined(_ common: [UInt8]?, _ own: some BidirectionalCollection<UInt8>) -> [UInt8] {
        guard let common else { return Array(own) }
        var writer = JSONWriter(reserving: common.count + own.count + 1)
        writer.object { writer in
            writer.members(common)
            writer.members(of: own)
        }
        return writer.bytes
    }
}

/// A row change on its way to streams. It is a reference, because events are copied often, and most are not row
/// changes.
final class PublishedChange: Sendable {
    let value: RowChange
    /// Parts of the event's JSON; nil if the change was read from the log.
    let rows: RowChange.EncodedRows?

    init(_ value: RowChange, _ rows: RowChange.EncodedRows? = nil) { (self.value, self.rows) = (value, rows) }
}

/// The events of one transaction, until its group is about to be committed.
struct PendingEvents: Sendable {
    let now: Timestamp
    let drafts: [EventDraft]
    /// The trace of the events; nil if it is not recorded.
    let traceparent: String?
}

/// An event of the log on its way to streams.
struct LoggedEvent: Sendable {
    let event: StreamEvent
    /// The row change of the event, if this process wrote it; otherwise it is parsed from the event's JSON.
    var change: PublishedChange?
}

extension LoggedEvent: LogEntry {
    var sequence: Int64 { event.sequence }
    var isErased: Bool { event.isErased }

    /// Returns whether readers receive the same. The trace is not compared, because readers do not depend on it.
    func isSame(as other: LoggedEvent) -> Bool {
        let (one, two) = (event, other.event)
        return one.sequence == two.sequence && one.tenant == two.tenant && one.name == two.name
            && one.topic == two.topic && one.collapse == two.collapse && one.data == two.data
            && Set(one.audience) == Set(two.audience)
    }
}

extension LoggedEvent {
    init(_ draft: EventDraft, sequence: Int64, traceparent: String?) {
        self.init(event: StreamEvent(draft, sequence: sequence, traceparent: traceparent), change: draft.change)
    }
}

extension StreamEvent {
    init(_ draft: EventDraft, sequence: Int64, traceparent: String?) {
        self.init(
            sequence: sequence, tenant: draft.tenant, name: draft.name, audience: draft.audience, topic: draft.topic,
            collapse: draft.collapseKey,
            data: SharedMembers.joined(draft.shared?.members, draft.data), traceparent: traceparent)
    }

    /// Whether it is a row change. Each stream receives its own part of one.
    var isChange: Bool { name == Self.changeName }
    /// Whether its content was erased.
    var isErased: Bool { name == EventLog.erasedName }
    /// Whether it is an event between replicas, which no stream receives.
    var isInternal: Bool { name.hasPrefix(EventLog.internalPrefix) }

    private static let changeName = EventLog.change.description
}
