import Realtime
import Threads
import Values

/// The newest event of each tenant, up to the last event that this process has published.
///
/// Clients receive these numbers as positions (`Event-Position`, the id of `stream:ready`). The number of the newest
/// event of all tenants would reveal whether other tenants are active.
final class TenantPositions: Sendable {
    /// The position of one tenant.
    struct Known: Sendable {
        /// The newest event of the tenant up to `head`, or an event after which the tenant had none.
        let position: Int64
        /// The last published event of all tenants.
        let head: Int64
        /// The encoder of the log to which the numbers belong.
        let ids: EventIDs
    }

    /// Tenants with a number of their own. Above this count, all get the current head as their position. Without this
    /// limit, the service keeps a number for every tenant that was ever active.
    static let tenantsMax = 100_000

    private struct State {
        var ids: EventIDs
        var head: Int64
        /// The position of tenants without a number of their own: they had no event between it and `head`.
        var base: Int64
        var newest: [ID<Tenant>: Int64] = [:]

        func position(of tenant: ID<Tenant>) -> Int64 { newest[tenant] ?? base }
    }

    private let state: Locked<State>

    /// Creates the positions.
    ///
    /// - Parameter head: The newest event when the service started.
    init(head: Int64, ids: EventIDs) {
        state = Locked(State(ids: ids, head: head, base: head))
    }

    func known(of tenant: ID<Tenant>) -> Known {
        state.withLock { Known(position: $0.position(of: tenant), head: $0.head, ids: $0.ids) }
    }

    /// Returns the position of a tenant in a stream whose shard has handled all events up to `head`. Returns `head`
    /// itself if the shard has yet to handle a newer event of the tenant, or if it still has another log.
    func position(of tenant: ID<Tenant>, upTo head: Int64, in ids: EventIDs) -> Int64 {
        state.withLock { state in
            guard state.ids.epoch == ids.epoch else { return head }
            return min(state.position(of: tenant), head)
        }
    }

    /// Records events, in order, before the shards receive them.
    func note(_ events: [LoggedEvent]) {
        guard let last = events.last else { return }
        state.withLock { state in
            for logged in events { state.newest[logged.event.tenant] = logged.event.sequence }
            state.head = last.event.sequence
            guard state.newest.count > Self.tenantsMax else { return }
            (state.newest, state.base) = ([:], state.head)
        }
    }

    /// Continues after an event. The events before it may be unknown.
    func restart(after head: Int64, ids: EventIDs) {
        state.withLock { $0 = State(ids: ids, head: head, base: head) }
    }
}
