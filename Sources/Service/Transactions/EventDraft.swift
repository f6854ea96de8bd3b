import Domain
import Realtime
import Rows
import Values

/// An event that a transaction publishes: its number comes with the log.
struct EventDraft: Sendable {
    let tenant: ID<Tenant>
    let name: String
    /// Keys of the row it is about. A key has no space: `AudienceKey` encodes it.
    let audience: [String]
    let topic: String?
    let collapse: String?
    /// What it has in common with others of its transaction; `data` has the rest then.
    var shared: SharedMembers?
    let data: [UInt8]
    /// The row's change that `data` is the JSON of.
    var change: PublishedChange?

    /// Names the state that the event carries; 0: none.
    var collapseKey: UInt64 { collapse.map { CollapseKey.of($0) } ?? 0 }
    /// As it is sent to streams.
    var bytes: Int { data.count + (shared?.members.count ?? 0) }
}

/// Members of JSON objects that several events have in common, such as a message to many: made once, and stored once.
final class SharedMembers: Sendable {
    /// Without the object's braces.
    let members: [UInt8]

    init(_ body: (inout JSONWriter) -> Void) {
        members = Array(JSONWriter.object(body).dropFirst().dropLast())
    }

    /// An object with the common members before its own.
    static func joined(_ common: [UInt8]?, _ own: some Collection<UInt8>) -> [UInt8] {
        guard let common else { return Array(own) }
        var whole: [UInt8] = []
        whole.reserveCapacity(common.count + own.count + 1)
        whole.append(UInt8(ascii: "{"))
        whole += common
        if own.count > 2 { whole.append(UInt8(ascii: ",")) }
        whole += own.dropFirst()
        return whole
    }
}

/// A row's change on its way to streams: by reference, since an event is copied often, and most have none.
final class PublishedChange: Sendable {
    let value: RowChange

    init(_ value: RowChange) { self.value = value }
}

/// The events of one transaction, until its group is about to be committed.
struct PendingEvents: Sendable {
    let now: Timestamp
    let drafts: [EventDraft]
    /// The trace that they are of; nil where it is not recorded.
    let traceparent: String?
}

/// An event of the log on its way to streams.
struct LoggedEvent: Sendable {
    let event: StreamEvent
    /// The row's change that it is about, where this process wrote it; others are read from the event's JSON.
    var change: PublishedChange?
}

extension LoggedEvent: LogEntry {
    var sequence: Int64 { event.sequence }

    /// The trace does not count: it is not what readers receive.
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

    /// A row's change, of which each stream receives its part.
    var isChange: Bool { name == Self.changeName }
    /// What replicas send one another, and no stream receives.
    var isInternal: Bool { name.hasPrefix(EventLog.internalPrefix) }

    private static let changeName = EventLog.change.description
}
