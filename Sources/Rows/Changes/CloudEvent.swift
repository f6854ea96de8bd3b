import Values

/// A CloudEvent 1.0 whose data is a table change: in one of the other formats, or as Debezium's own CloudEvent, whose
/// attributes `iodebezium…` replace the envelope.
struct CloudEvent {
    /// The attributes, and `data` or `data_base64`. In binary mode the attributes come from headers and are all texts.
    let members: ChangeMembers

    func change() throws(ChangeFault) -> TableChange? {
        guard members.value("specversion") == .string("1.0") else {
            throw members.fault("specversion", "must be \"1.0\"")
        }
        let id = try attribute("id")
        let source = try attribute("source")
        _ = try attribute("type")
        let time = try members.timestamp("time")
        let data = try data()
        guard var change = try change(of: data) else { return nil }
        if members.value("iodebeziumop") == nil {
            // A source is a URI reference and contains no spaces.
            let deduplicationID = "cloudevents:\(source) \(id)"
            guard deduplicationID.utf8.count <= ChangeLimits.deduplicationIDBytesMax else {
                throw members.fault(
                    "id",
                    "is too long: source and id may have \(ChangeLimits.deduplicationIDBytesMax - 13) bytes in total")
            }
            change.deduplicationID = deduplicationID
        }
        change.commitTimestamp = change.commitTimestamp ?? time
        change.actorID = try members.identifier("authid")
        change.originID = try members.identifier("originid")
        change.format = .cloudEvents
        return change
    }

    private func attribute(_ name: String) throws(ChangeFault) -> String {
        let text = try members.required(name, members.string)
        guard !text.isEmpty else { throw members.fault(name, "must not be empty") }
        // The specification forbids them, and a database may be unable to store them.
        guard text.hasNoControls else { throw members.fault(name, "must not contain control characters") }
        return text
    }

    // MARK: Data

    private func data() throws(ChangeFault) -> ChangeMembers {
        if let type = try members.string("datacontenttype"), !CloudEvent.isJSON(type) {
            throw members.fault("datacontenttype", "must be JSON")
        }
        guard let encoded = try members.string("data_base64") else {
            return try members.required("data", members.object)
        }
        guard members.value("data") == nil else {
            throw members.fault("data_base64", "must not be sent together with data")
        }
        guard let bytes = RFC4648.decode(encoded) else { throw members.fault("data_base64", "must be base64") }
        let value: JSONValue
        do throws(Failure) {
            value = try JSONValue(parsing: bytes, depthMax: ChangeLimits.depthMax, isExact: true)
        } catch {
            throw members.fault("data_base64", error.detail)
        }
        guard case .object(let data) = value else {
            throw members.fault("data_base64", "must be a JSON object, not \(value.typeName)")
        }
        return ChangeMembers(members: data, pointer: "\(members.pointer)/data_base64")
    }

    /// Accepts `application/json` and `application/vnd.example+json; charset=utf-8`.
    static func isJSON(_ mediaType: String) -> Bool {
        let type = mediaType.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
        return type.hasSuffix("/json") || type.hasSuffix("+json")
    }

    private func change(of data: ChangeMembers) throws(ChangeFault) -> TableChange? {
        if members.value("iodebeziumop") != nil, ChangeFormat.recognize(data.members) == nil || isEnvelopeLess(data) {
            return try debezium(data).change()
        }
        if ChangeFormat.recognize(data.members) == .cloudEvents {
            throw ChangeFault(data.pointer, "must not be a CloudEvent inside a CloudEvent")
        }
        return try ChangeFormat.read(data)
    }

    // MARK: Debezium's converter

    /// Returns true for `{"schema", "payload": {"before", "after"}}`, which has no `op` of its own.
    private func isEnvelopeLess(_ data: ChangeMembers) -> Bool {
        guard case .object(let payload) = data.members["payload"] else { return false }
        return payload["op"] == nil
    }

    /// Restores the envelope. The attributes are the members of the envelope and its source in lower case, and all of
    /// them are texts.
    private func debezium(_ data: ChangeMembers) throws(ChangeFault) -> DebeziumEvent {
        var rows = data
        var schema: ConnectSchema?
        if data.members["payload"] != nil {
            rows = try data.required("payload", data.object)
            schema = try ConnectSchema(of: data)
        }
        guard rows.members.keys.contains("before") || rows.members.keys.contains("after") else {
            throw ChangeFault(rows.pointer, "must have before or after, like Debezium's CloudEvents")
        }
        var source: [String: JSONValue] = [:]
        var renamed: [String: JSONValue] = [:]
        for (name, value) in members.members where name.hasPrefix(CloudEvent.debeziumPrefix) {
            let short = String(name.dropFirst(CloudEvent.debeziumPrefix.utf8.count))
            if let original = CloudEvent.sourceNames[short] { renamed[original] = value } else { source[short] = value }
        }
        // Older converters preserve capitals. They also send `txid` beside `txId`, where it is the id of the
        // transaction's attributes.
        source.merge(renamed) { original, _ in original }
        var event = rows.members
        event["op"] = source["op"]
        event["source"] = .object(source)
        return DebeziumEvent(
            event: ChangeMembers(members: event, pointer: rows.pointer),
            source: ChangeMembers(members: source, pointer: members.pointer), schema: schema)
    }

    private static let debeziumPrefix = "iodebezium"
    /// Attributes have no capitals and no underscores. This maps them to the original names.
    private static let sourceNames = [
        "txid": "txId", "tsms": "ts_ms", "tsus": "ts_us", "commitlsn": "commit_lsn", "changelsn": "change_lsn",
        "eventserialno": "event_serial_no", "rsid": "rs_id",
    ]
}
