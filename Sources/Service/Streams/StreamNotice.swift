import MicroHTTP
import Realtime
import Values

/// The events by which a stream speaks of itself, encoded.
enum StreamNotice {
    /// Why the server ends a stream.
    enum ClosingReason: String {
        case expired, revoked, shutdown, unavailable, slow
    }

    static func expiring(at expiresAt: Timestamp) -> SharedBytes {
        event("stream:expiring", JSONWriter.object { $0.member("expiresAt", expiresAt) })
    }

    /// The last event. `retry` tells EventSource, which does not read the data, the same as `retryAfterMs`.
    static func closing(_ reason: ClosingReason, retryAfterMilliseconds: Int) -> SharedBytes {
        var bytes: [UInt8] = []
        SSE.appendRetry(milliseconds: retryAfterMilliseconds, to: &bytes)
        SSE.append(
            "stream:closing",
            data: JSONWriter.object {
                $0.member("reason", reason.rawValue)
                $0.member("retryAfterMs", retryAfterMilliseconds)
            }, to: &bytes)
        return SharedBytes(bytes)
    }

    /// - Parameter cursor: nil where it must not move.
    static func resync(_ reason: ResyncReason, at cursor: Cursor? = nil) -> SharedBytes {
        var bytes: [UInt8] = []
        appendResync(reason, at: cursor, to: &bytes)
        return SharedBytes(bytes)
    }

    static func appendResync(_ reason: ResyncReason, at cursor: Cursor?, to bytes: inout [UInt8]) {
        let data = JSONWriter.object { $0.member("reason", reason.rawValue) }
        SSE.append("stream:resync", data: data, id: cursor, to: &bytes)
    }

    static func scope(_ keys: [String]) -> SharedBytes {
        event("stream:scope", JSONWriter.object { $0.member("scope", keys) })
    }

    private static func event(_ name: String, _ data: [UInt8]) -> SharedBytes {
        var bytes: [UInt8] = []
        SSE.append(name, data: data, to: &bytes)
        return SharedBytes(bytes)
    }
}
