import Values

/// The formats of table changes. Each is recognized by its shape. A sender can name a format to have deliveries of
/// other formats refused.
public enum ChangeFormat: String, Sendable, Hashable, CaseIterable {
    /// `{"type": "INSERT", "table", "schema", "record", "old_record"}`: a Supabase Database Webhook.
    case supabaseWebhook = "supabase-webhook"
    /// `{"topic", "event": "postgres_changes", "ref", "payload": {"ids", "data": {…}}}`: a Supabase Realtime frame.
    case supabaseRealtime = "supabase-realtime"
    /// `{"event", "payload": {"id", "operation", "table", "schema", "record", "old_record"}}`: a message of
    /// `realtime.broadcast_changes()`.
    case broadcastChanges = "broadcast-changes"
    /// `{"before", "after", "source", "op", "ts_ms"}`, bare or inside `{"schema", "payload"}`.
    case debezium
    /// CloudEvents 1.0, binary (`ce-` headers), structured or batched, around one of the forms above.
    case cloudEvents = "cloudevents"
    /// A JSON array of any of these. If no format is named, an array may contain every format.
    case batch

    /// Returns the format of an item, recognized by its shape, or nil for an unknown one. Never ``batch``.
    static func recognize(_ item: [String: JSONValue]) -> ChangeFormat? {
        if item["specversion"] != nil { return .cloudEvents }
        if isDebezium(item) { return .debezium }
        if case .string(let event) = item["event"] {
            if event == "postgres_changes" { return .supabaseRealtime }
            guard case .object(let payload) = item["payload"] else { return nil }
            if payload["operation"] != nil { return .broadcastChanges }
            if event == "broadcast", case .object(let inner) = payload["payload"], inner["operation"] != nil {
                return .broadcastChanges
            }
            return nil
        }
        if item["type"] != nil, item["table"] != nil { return .supabaseWebhook }
        return nil
    }

    private static func isDebezium(_ item: [String: JSONValue]) -> Bool {
        if item["op"] != nil, item["source"] != nil { return true }
        guard let payload = item["payload"], item["event"] == nil, item.keys.contains("schema") else { return false }
        switch payload {
        case .null: return true
        case .object(let members): return members["op"] != nil || members["source"] != nil
        default: return false
        }
    }

    /// Reads an item of any format; nil for a tombstone.
    static func read(_ item: ChangeMembers) throws(ChangeFault) -> TableChange? {
        switch recognize(item.members) {
        case .supabaseWebhook: try SupabaseChange.read(item, kindAt: "type", format: .supabaseWebhook)
        case .supabaseRealtime: try RealtimeFrame.read(item)
        case .broadcastChanges: try BroadcastChange.read(item)
        case .debezium: try DebeziumEvent.read(item)
        case .cloudEvents: try CloudEvent(members: item).change()
        case .batch, nil: throw ChangeFault(item.pointer, unrecognized)
        }
    }

    /// The reason for the rejection of an item of no known format.
    static let unrecognized =
        "has an unknown format; supported are a Supabase Database Webhook, a Realtime postgres_changes frame, a "
        + "broadcast_changes message, a Debezium event and a CloudEvent"
}
