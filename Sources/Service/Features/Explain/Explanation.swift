import Realtime
import Rows
import Values

/// Whether a user receives an event, with each fact that decides it.
struct Explanation: JSONWritable {
    /// The effect of the change on a subscription; without a transition it receives nothing.
    private typealias Watched = (subscription: TableSubscription, transition: RowTransition?, reason: String)

    private let event: StreamEvent
    private let cursor: Cursor
    private let caller: Caller
    private let ownKeys: Set<String>
    private let origins: [String: KeyOrigin]
    private let topics: [String]
    private let change: RowChange?
    private let subscriptions: [TableSubscription]

    init(
        of event: StreamEvent, at cursor: Cursor, to caller: Caller, topics: [String],
        subscriptions: [TableSubscription], memberships: Memberships, stored: [String: String]
    ) {
        self.event = event
        self.cursor = cursor
        self.caller = caller
        self.topics = topics
        self.subscriptions = subscriptions
        origins = memberships.origins(of: caller.holder).merging(stored.mapValues { .granted(by: $0) }) { known, _ in
            known
        }
        ownKeys = memberships.keys(of: caller.holder).union(stored.keys)
        change = event.isChange ? RowChange(reading: event.data) : nil
    }

    // MARK: The decision

    private var isSameTenant: Bool { event.tenant == caller.tenant }

    private func ownKey(of audience: [String]) -> String? {
        isSameTenant ? audience.first(where: ownKeys.contains) : nil
    }

    private var verdict: (isDelivered: Bool, reason: String) {
        guard isSameTenant else {
            return (
                false, "The event belongs to the tenant \(event.tenant), but the token belongs to \(caller.tenant)."
            )
        }
        if let change { return verdict(on: change) }
        guard let key = ownKey(of: event.audience) else {
            return (false, "The token has none of the keys of the event's audience.")
        }
        if let topic = event.topic, !topics.contains(where: topic.hasBytes) {
            return (false, "The token has the key \(key), but the stream must also subscribe to the topic \(topic).")
        }
        return (true, "The token has the key \(key).")
    }

    private func verdict(on change: RowChange) -> (isDelivered: Bool, reason: String) {
        let watched = subscriptions.map { watch($0, change) }
        if let receiving = watched.first(where: { $0.transition != nil }) {
            return (true, "The subscription \(receiving.subscription.id) receives it: \(receiving.reason)")
        }
        for stale in change.invalidations {
            guard let key = ownKey(of: stale.audience) else { continue }
            return (true, "The token has the key \(key), which receives the invalidation of \(stale.key).")
        }
        if let other = watched.first { return (false, "The subscription \(other.subscription.id): \(other.reason)") }
        guard ownKey(of: change.oldReaders + change.newReaders) != nil else {
            return (false, "The token has no key that may read the row or receive its invalidations.")
        }
        return (
            false,
            "The row is visible, but no subscription matches it, and the token receives none of its invalidations."
        )
    }

    private func watch(_ subscription: TableSubscription, _ change: RowChange) -> Watched {
        func no(_ reason: String) -> Watched { (subscription, nil, reason) }
        guard subscription.schema == change.schema, subscription.table == change.table else {
            return no("It subscribes to \(subscription.schema).\(subscription.table).")
        }
        guard subscription.events.contains(change.operation.subscribed) else {
            return no("It does not subscribe to \(change.operation.eventName).")
        }
        let (seesOld, seesNew) = (ownKey(of: change.oldReaders), ownKey(of: change.newReaders))
        let transition = subscription.transition(
            change.operation.subscribed, old: change.assumedOld, new: change.new, seesOld: seesOld != nil,
            seesNew: seesNew != nil)
        if let transition, transition != .leave || change.mayLeave(subscription, seesNew: seesNew != nil) {
            return (
                subscription, transition,
                "the key \(seesNew ?? seesOld ?? "") may read the row, and the filter matches."
            )
        }
        guard seesOld != nil || seesNew != nil else { return no("The token has no key that may read the row.") }
        let seen = (seesNew != nil ? change.new : nil) ?? change.assumedOld ?? [:]
        guard let mismatch = subscription.filter.mismatch(in: seen) else {
            return no("The filter matches a row that the token may not read.")
        }
        return no("The condition \(mismatch.condition) excludes the row: \(mismatch.column) is \(mismatch.reason).")
    }

    // MARK: Writing

    func write(to writer: inout JSONWriter) {
        let (isDelivered, reason) = verdict
        writer.object { writer in
            writer.member("delivered", isDelivered)
            writer.member("reason", reason)
            writer.member("event") { writer in
                writer.member("id", cursor.text)
                writer.member("name", event.name)
                writer.member("topic", event.isChange ? nil : event.topic)
                writer.member("audience", event.audience)
            }
            writer.member("caller") { writer in
                writer.member("tenant", caller.tenant)
                writer.member("userId", caller.userId)
                writer.member("role", caller.role)
            }
            writer.member("keys", keys) { write(key: $1, to: &$0) }
            guard let change else { return }
            writer.member("invalidations", change.invalidations) { write($1, to: &$0) }
            writer.member("row") { writeRow(change, to: &$0) }
            writer.member("subscriptions", subscriptions.map { watch($0, change) }) { writer, watched in
                writer.member("id", watched.subscription.id)
                writer.member("change", watched.transition?.rawValue)
                writer.member("reason", watched.reason)
            }
        }
    }

    /// Every key that could make the event receivable or the row visible.
    private var keys: some Sequence<String> {
        var audience = event.audience
        if let change {
            audience += change.oldReaders + change.newReaders + change.invalidations.flatMap(\.causeAudience)
        }
        return Set(audience).sorted().prefix(ExplainLimits.keysMax)
    }

    private func write(key: String, to writer: inout JSONWriter) {
        let (origin, membership): (String?, String?) =
            switch origins[key] {
            case nil: (nil, nil)
            case .claimed: ("claim", nil)
            case .granted(let membership): ("membership", membership)
            case .refuted(let membership): ("refuted", membership)
            }
        writer.member("key", key)
        writer.member("granted", isSameTenant && ownKeys.contains(key))
        writer.member("origin", origin)
        writer.member("membership", membership)
    }

    private func write(_ stale: RowChange.Invalidation, to writer: inout JSONWriter) {
        let key = ownKey(of: stale.audience)
        writer.member("key", stale.key)
        writer.member("received", key != nil)
        writer.member("by", key)
        writer.member("causeReceived", key != nil && ownKey(of: stale.causeAudience) != nil)
        writer.member("audience", stale.audience)
    }

    private func writeRow(_ change: RowChange, to writer: inout JSONWriter) {
        writer.member("schema", change.schema)
        writer.member("table", change.table)
        writer.member("type", change.operation.eventName)
        writer.member("recordId", change.cause.recordId)
        writer.member("seenBefore", ownKey(of: change.oldReaders))
        writer.member("seenAfter", ownKey(of: change.newReaders))
        writer.member("readersBefore", change.oldReaders)
        writer.member("readersAfter", change.newReaders)
    }
}
