import CMicroHTTPD

/// A client's connection, from its acceptance to its end. It owns the request that is under way: libmicrohttpd drops some
/// whose heads it refuses without a word of it, but it announces the end of every connection.
///
/// It belongs to its reactor's thread, and to that reactor's list.
final class Connection {
    /// What is waited for.
    enum Phase { case head, body, answer, sending, nextRequest }

    let handle: OpaquePointer
    private(set) var request: Request?
    /// Whether its client may be sending what nobody has read, so that an answer would not survive a plain closing.
    var lingers = false
    /// Where it stands in the reactor's list.
    var place = 0
    /// Requests that are over.
    private var completedCount: UInt32 = 0
    /// The phase that it was last seen in, of which request, and since when.
    private var seen: (phase: Phase, completedCount: UInt32, since: UInt64)

    init(_ handle: OpaquePointer, acceptedAt: UInt64) {
        self.handle = handle
        seen = (.head, 0, acceptedAt)
    }

    func begin(_ request: Request) { self.request = request }

    /// The request is over; nil: there is none.
    func end() -> Request? {
        guard let ended = request else { return nil }
        request = nil
        completedCount &+= 1
        return ended
    }

    var phase: Phase {
        guard let request else { return completedCount == 0 ? .head : .nextRequest }
        return switch request.state {
        case .receiving: request.connection == nil ? .head : .body
        case .waiting, .readyToRunAgain, .answerReady: .answer
        case .answered: .sending
        }
    }

    /// Whether it has never completed a request's head.
    var isNew: Bool { completedCount == 0 && phase == .head }

    /// Since when it is in its phase, as far as was seen; looked at about once a second, since a look at each change would
    /// cost each request something.
    func look(_ now: UInt64) -> (phase: Phase, since: UInt64) {
        let phase = phase
        if seen.phase != phase || seen.completedCount != completedCount { seen = (phase, completedCount, now) }
        return (phase, seen.since)
    }
}
