import MicroHTTP
import Realtime

/// The delivery of committed events to the shards of this process, in log order. It also handles the events that
/// replicas send one another.
///
/// The pump calls it with one batch at a time, so each shard receives everything in log order. Nothing here blocks.
struct EventRouter: Sendable {
    let shards: StreamShards<StreamHub>
    let log: LogIdentity
    let positions: TenantPositions
    let memberships: MembershipRegistry
    let revocations: RevocationList
    let tracer: Tracer?
    /// Further receivers of events between replicas, by event name.
    let receivers: [String: @Sendable (StreamEvent) -> Void]

    /// Delivers events to every shard, each encoded once.
    func publish(_ events: [LoggedEvent]) {
        positions.note(events)
        var rest = events[...]
        while let first = rest.first {
            // In order: events after a change of memberships are matched against the changed scopes.
            let forStreams = rest.prefix { !$0.event.isInternal }
            deliver(forStreams)
            rest = rest[forStreams.endIndex...]
            guard forStreams.isEmpty else { continue }
            receive(first.event)
            rest = rest.dropFirst()
        }
    }

    /// Ends all streams. They resume, or learn that they cannot: the events that they missed are not in the log. The
    /// next published event follows the given one.
    func restartStreams(after head: Int64) {
        let ids = log.ids
        positions.restart(after: head, ids: ids)
        shards.post(.restart(head: head, ids: ids, memberships.known))
    }

    /// Refuses a token, a session or a user from now on, and closes their streams.
    func revoke(_ revocation: Revocation) {
        revocations.insert([revocation])
        shards.post(.revoked(revocation))
    }

    /// Accepts the tokens again that a revocation has refused.
    func lift(_ revocation: Revocation) { revocations.remove(revocation) }

    private func deliver(_ events: ArraySlice<LoggedEvent>) {
        guard !events.isEmpty else { return }
        let ids = log.ids
        let encoded = events.map { EncodedEvent($0, ids: ids, tracer: tracer) }
        shards.post(contentsOf: Self.pieces(of: encoded).map(StreamMessage.events))
    }

    /// Divides the events into pieces, between which a shard sends its queued data.
    static func pieces(of events: [EncodedEvent]) -> [[EncodedEvent]] {
        var pieces: [[EncodedEvent]] = []
        var (piece, bytes): ([EncodedEvent], Int) = ([], 0)
        for encoded in events {
            let size = encoded.event.data.count
            if !piece.isEmpty, bytes + size > StreamLimits.pieceBytesMax {
                pieces.append(piece)
                (piece, bytes) = ([], 0)
            }
            piece.append(encoded)
            bytes += size
        }
        return pieces + [piece]
    }

    private func receive(_ event: StreamEvent) {
        switch event.name {
        case "\(Revocation.event)":
            if let revocation = Revocation(event) { revoke(revocation) }
        case "\(Revocation.lifted)":
            if let revocation = Revocation(event) { lift(revocation) }
        case "\(MembershipRegistry.event)":
            if let (holders, memberships) = memberships.apply(event.data) {
                shards.post(.memberships(holders, memberships))
            }
        case "\(KeyGrants.event)":
            if let change = KeyGrantChange(event) { shards.post(.grantChanged(change)) }
        default: receivers[event.name]?(event)
        }
    }
}
