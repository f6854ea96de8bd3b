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
    /// The one before, for the next.
    private var spare: Request?
    private var bodiless: BodilessResponse?
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

    /// Begins a request, in the place of the one before if nobody has that any more.
    func begin(_ target: UnsafeBufferPointer<UInt8>, receivedAt: UInt64) -> Request {
        let request = spare ?? Request()
        spare = nil
        request.begin(target, receivedAt: receivedAt)
        self.request = request
        return request
    }

    /// An answer of these fields without a body; nil without memory.
    func bodilessResponse(_ fields: HeaderFields) -> OpaquePointer? {
        // Nothing of the one before is on its way any more: a connection has one request at a time.
        if let bodiless { bodiless.replace(by: fields) } else { bodiless = BodilessResponse(fields) }
        return bodiless?.handle
    }

    /// A request that is over.
    func release(_ request: consuming Request) {
        if isKnownUniquelyReferenced(&request) { spare = request }
    }

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
