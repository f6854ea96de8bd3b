import Database
import Realtime
import Rows
import Values

/// Whether somebody receives an event, and each thing that decides.
struct Explanation: JSONWritable {
    private struct Key: JSONWritable {
        let key: String
        let isHeld: Bool
        let origin: KeyOrigin?

        func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("key", key)
                writer.member("held", isHeld)
                switch origin {
                case nil:
                    writer.member("origin", String?.none)
                    writer.member("membership", String?.none)
                case .claimed?:
                    writer.member("origin", "claim")
                    writer.member("membership", String?.none)
                case .granted(let membership)?:
                    writer.member("origin", "membership")
                    writer.member("membership", membership)
                case .refuted(let membership)?:
                    writer.member("origin", "refuted")
                    writer.member("membership", membership)
                }
            }
        }
    }

    private struct StaleKey: JSONWritable {
        let invalidation: RowChange.Invalidation
        /// The key by which it is received.
        let by: String?
        let isCauseTold: Bool

        func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("key", invalidation.key)
                writer.member("heard", by != nil)
                writer.member("by", by)
                writer.member("causeTold", isCauseTold)
                writer.member("audience", invalidation.audience)
            }
        }
    }

    private struct Watched: JSONWritable {
        let subscription: TableSubscription
        let transition: RowTransition?
        let reason: String

        func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("id", subscription.id)
                writer.member("change", transition?.rawValue)
                writer.member("reason", reason)
            }
        }
    }

    private let event: StreamEvent
    private let cursor: Cursor
    private let caller: Caller
    private let held: Set<String>
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
        held = memberships.keys(of: caller.holder).union(stored.keys)
        change = event.isChange ? RowChange(reading: event.data) : nil
    }

    // MARK: The decision

    private var isTenants: Bool { event.tenant == caller.tenant }

    private func heldKey(of audience: [String]) -> String? { isTenants ? audience.first(where: held.contains) : nil }

    private var verdict: (isDelivered: Bool, reason: String) {
        guard isTenants else {
            return (false, "The event is of tenant \(event.tenant), and the token of \(caller.tenant).")
        }
        if let change { return verdict(on: change) }
        guard let key = heldKey(of: event.audience) else {
            return (false, "The token holds none of the keys of the event's audience.")
        }
        if let topic = event.topic, !topics.contains(topic) {
            return (false, "The token holds \(key), but the stream must have named the topic \(topic).")
        }
        return (true, "The token holds \(key).")
    }

    private func verdict(on change: RowChange) -> (isDelivered: Bool, reason: String) {
        let watched = subscriptions.map { watch($0, change) }
        if let told = watched.first(where: { $0.transition != nil }) {
            return (true, "The subscription \(told.subscription.id) is told: \(told.reason)")
        }
        if let stale = staleKeys(change).first(where: { $0.by != nil }), let key = stale.by {
            return (true, "The token holds \(key), which hears that \(stale.invalidation.key) is stale.")
        }
        if let other = watched.first { return (false, "The subscription \(other.subscription.id): \(other.reason)") }
        guard heldKey(of: change.oldReaders + change.newReaders) != nil else {
            return (false, "The token holds no key by which the row is seen or one of its query keys is heard.")
        }
        return (false, "The row is visible, but no subscription asks for it and none of its query keys is theirs.")
    }

    private func staleKeys(_ change: RowChange) -> [StaleKey] {
        change.invalidations.map { invalidation in
            let by = heldKey(of: invalidation.audience)
            return StaleKey(
                invalidation: invalidation, by: by,
                isCauseTold: by != nil && heldKey(of: invalidation.causeAudience) != nil)
        }
    }

    private func watch(_ subscription: TableSubscription, _ change: RowChange) -> Watched {
        func no(_ reason: String) -> Watched { Watched(subscription: subscription, transition: nil, reason: reason) }
        guard subscription.schema == change.schema, subscription.table == change.table else {
            return no("It asks for \(subscription.schema).\(subscription.table).")
        }
        guard subscription.events.contains(change.operation.subscribed) else {
            return no("It does not ask for \(change.operation.eventName).")
        }
        let (seesOld, seesNew) = (heldKey(of: change.oldReaders), heldKey(of: change.newReaders))
        let transition = subscription.transition(
            change.operation.subscribed, old: change.comparedOld, new: change.new, seesOld: seesOld != nil,
            seesNew: seesNew != nil)
        if let transition, transition != .leave || change.mayLeave(subscription, seesNew: seesNew != nil) {
            return Watched(
                subscription: subscription, transition: transition,
                reason: "the row is seen by \(seesNew ?? seesOld ?? ""), and the filter matches.")
        }
        guard seesOld != nil || seesNew != nil else { return no("The token holds no key by which the row is seen.") }
        let seen = (seesNew != nil ? change.new : nil) ?? change.comparedOld ?? [:]
        guard let mismatch = subscription.filter.mismatch(in: seen) else {
            return no("The filter matches a row that the token does not see.")
        }
        return no("The filter's \(mismatch.condition) keeps the row out: \(mismatch.column) is \(mismatch.reason).")
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
            writer.member("keys", keys)
            guard let change else { return }
            writer.member("invalidations", staleKeys(change))
            writer.member("row") { writeRow(change, to: &$0) }
            writer.member("subscriptions", subscriptions.map { watch($0, change) })
        }
    }

    /// Every key by which the event could be received or the row be seen.
    private var keys: [Key] {
        var audience = event.audience
        if let change {
            audience += change.oldReaders + change.newReaders + change.invalidations.flatMap(\.causeAudience)
        }
        return Set(audience).sorted().prefix(ExplainLimits.keysMax).map { key in
            Key(key: key, isHeld: isTenants && held.contains(key), origin: origins[key])
        }
    }

    private func writeRow(_ change: RowChange, to writer: inout JSONWriter) {
        writer.member("schema", change.schema)
        writer.member("table", change.table)
        writer.member("type", change.operation.eventName)
        writer.member("recordId", change.cause.recordId)
        writer.member("seenBefore", heldKey(of: change.oldReaders))
        writer.member("seenAfter", heldKey(of: change.newReaders))
        writer.member("readersBefore", change.oldReaders)
        writer.member("readersAfter", change.newReaders)
    }
}
