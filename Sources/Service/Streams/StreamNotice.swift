import Database
import Realtime
import Rows
import Values

/// The encoder of events that are not taken from the log unchanged: a stream's own notices, and the events made from
/// row changes.
enum StreamNotice {
    /// The reason why the server ends a stream.
    enum ClosingReason: String {
        case expired, revoked, shutdown, unavailable, slow
    }

    static func expiring(at expiresAt: Timestamp) -> [UInt8] {
        event("stream:expiring") { $0.member("expiresAt", expiresAt) }
    }

    /// Returns the last event. EventSource does not read the data, so `retry` repeats `retryAfterMs` for it.
    static func closing(_ reason: ClosingReason, retryAfterMilliseconds: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        SSE.appendRetry(milliseconds: retryAfterMilliseconds, to: &bytes)
        return bytes
            + event("stream:closing") {
                $0.member("reason", reason.rawValue)
                $0.member("retryAfterMs", retryAfterMilliseconds)
            }
    }

    /// Returns a resync event.
    ///
    /// - Parameter cursor: Nil if the client's cursor must not move.
    static func resync(_ reason: ResyncReason, at cursor: Cursor?) -> [UInt8] {
        event("stream:resync", at: cursor) { $0.member("reason", reason.rawValue) }
    }

    /// Returns a scope event. For a wide scope it lists the first keys; `GET /v1/me` returns all.
    static func scope(of caller: Caller) -> [UInt8] {
        event("stream:scope") { writer in
            writer.member("scope", Array(caller.scope.keys.sorted().prefix(StreamLimits.listedKeysMax)))
            writer.member("keyCount", caller.scope.keys.count)
            writer.member("omittedKeys", caller.omittedKeys)
        }
    }

    /// Returns the queries that became stale within one window.
    static func invalidation(_ batch: Coalescer.Batch, at cursor: Cursor?) -> [UInt8] {
        event("query:invalidate", at: cursor) { writer in
            writer.key("keys")
            writer.array { writer in for key in batch.keys { writer.array(key) } }
            writer.member("causes", batch.causes)
            writer.member("causesComplete", batch.isComplete)
        }
    }

    /// Returns the counts of watched rows.
    static func engagement(_ updates: RowSubscriptions.RecordCounts, at cursor: Cursor?) -> [UInt8] {
        event("engagement_update", at: cursor) { writer in
            let records = updates.sorted { $0.key < $1.key }
            writer.member("postIds", records.map(\.key))
            writer.member("updates") { writer in
                for (record, counts) in records {
                    writer.key(record.text)
                    writer.value(JSONValue.object(counts))
                }
            }
        }
    }

    static func event(
        _ name: String, at cursor: Cursor? = nil, traceparent: String? = nil, _ members: (inout JSONWriter) -> Void
    ) -> [UInt8] {
        SSE.encode(name, data: JSONWriter.object(members), id: cursor, traceparent: traceparent)
    }
}
