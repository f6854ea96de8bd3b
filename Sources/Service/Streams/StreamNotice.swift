import Database
import Realtime
import Rows
import Values

/// The events that are not of the log as they are: a stream's own, and what it receives of changed rows, encoded.
enum StreamNotice {
    /// Why the server ends a stream.
    enum ClosingReason: String {
        case expired, revoked, shutdown, unavailable, slow
    }

    static func expiring(at expiresAt: Timestamp) -> [UInt8] {
        event("stream:expiring") { $0.member("expiresAt", expiresAt) }
    }

    /// The last event. `retry` tells EventSource, which does not read the data, the same as `retryAfterMs`.
    static func closing(_ reason: ClosingReason, retryAfterMilliseconds: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        SSE.appendRetry(milliseconds: retryAfterMilliseconds, to: &bytes)
        return bytes
            + event("stream:closing") {
                $0.member("reason", reason.rawValue)
                $0.member("retryAfterMs", retryAfterMilliseconds)
            }
    }

    /// - Parameter cursor: nil where it must not move.
    static func resync(_ reason: ResyncReason, at cursor: Cursor?) -> [UInt8] {
        event("stream:resync", at: cursor) { $0.member("reason", reason.rawValue) }
    }

    /// Of a wide scope the first keys are listed; `GET /v1/me` has all.
    static func scope(of caller: Caller) -> [UInt8] {
        event("stream:scope") { writer in
            writer.member("scope", Array(caller.scope.keys.sorted().prefix(StreamLimits.listedKeysMax)))
            writer.member("keyCount", caller.scope.keys.count)
            writer.member("omittedKeys", caller.omittedKeys)
        }
    }

    /// The queries that became stale within one window.
    static func invalidation(_ batch: Coalescer.Batch, at cursor: Cursor?) -> [UInt8] {
        event("query:invalidate", at: cursor) { writer in
            writer.key("keys")
            writer.array { writer in for key in batch.keys { writer.array(key) } }
            writer.member("causes", batch.causes)
            writer.member("causesComplete", batch.isComplete)
        }
    }

    /// The counts of watched rows.
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
        var bytes: [UInt8] = []
        SSE.append(name, data: JSONWriter.object(members), id: cursor, traceparent: traceparent, to: &bytes)
        return bytes
    }
}
