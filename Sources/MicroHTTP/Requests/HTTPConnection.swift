/// A client's connection, from acceptance to its end. It owns the current request, because libmicrohttpd silently drops
/// some requests whose heads it refuses, but announces the end of every connection.
///
/// It belongs to its reactor's thread, and to that reactor's list.
final class HTTPConnection {
    /// The step for which the connection waits.
    enum Phase { case head, body, answer, sending, nextRequest }

    let handle: OpaquePointer
    private(set) var request: Request?
    /// The previous request object, for reuse by the next request.
    private var spare: Request?
    private var bodiless: BodilessResponse?
    /// Whether the client may be sending bytes that nothing reads. A plain close would then destroy the answer.
    var lingers = false
    /// The index in the reactor's list.
    var place = 0
    private var completedCount: UInt32 = 0
    /// The last observed phase, the number of the request in it, the number of its suspensions, and the time since when.
    private var seen: (phase: Phase, completedCount: UInt32, suspension: UInt32, since: UInt64)

    init(_ handle: OpaquePointer, acceptedAt: UInt64) {
        self.handle = handle
        seen = (.head, 0, 0, acceptedAt)
    }

    /// Begins a request. It reuses the previous request object if nothing else refers to it.
    func begin(_ target: UnsafeBufferPointer<UInt8>, receivedAt: UInt64) -> Request {
        let request = spare ?? Request()
        spare = nil
        request.begin(target, receivedAt: receivedAt)
        self.request = request
        return request
    }

    /// Returns a response with these fields and no body; nil if memory is short.
    func bodilessResponse(_ fields: HeaderFields) -> OpaquePointer? {
        // The previous response has left completely, because a connection has one request at a time.
        if let bodiless { bodiless.replace(by: fields) } else { bodiless = BodilessResponse(fields) }
        return bodiless?.handle
    }

    /// Takes back a finished request.
    func release(_ request: consuming Request) {
        guard isKnownUniquelyReferenced(&request) else { return }
        // A connection that waits for its next request takes no memory for the last one.
        request.releaseBody()
        spare = request
    }

    /// Ends the current request and returns it, if there is one.
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

    /// Whether the connection has never completed the head of a request.
    var isNew: Bool { completedCount == 0 && phase == .head }

    /// Returns the current phase and since when it was observed. It is polled about once a second, because recording
    /// each change would add a cost to each request.
    func look(_ now: UInt64) -> (phase: Phase, since: UInt64) {
        // Each piece of an answer is preceded by a suspension, and has its own time to be sent.
        let (phase, suspension) = (phase, request?.suspension ?? 0)
        if (seen.phase, seen.completedCount, seen.suspension) != (phase, completedCount, suspension) {
            seen = (phase, completedCount, suspension, now)
        }
        return (phase, seen.since)
    }
}
