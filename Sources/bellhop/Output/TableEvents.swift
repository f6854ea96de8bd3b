import BellhopClient

/// Summaries of events about rows, for `bellhop listen` and `bellhop demo --school`.
enum TableEvents {
    /// One line; nil for other events.
    static func summary(_ event: ServerSentEvent) -> String? {
        let json = event.json
        switch event.name {
        case "query:invalidate":
            guard let keys = json["keys"].array else { return nil }
            return [staleKeys(keys), causes(json)].filter { !$0.isEmpty }.joined(separator: "  ← ")
        case "table:change":
            guard let change = json["change"].string, let table = json["table"].string else { return nil }
            let row = change == "leave" ? json["oldRecord"] : json["record"]
            return "\(table) \(change)s: \(columns(row))"
        case "engagement_update":
            guard let updates = json["updates"].object else { return nil }
            return updates.sorted { $0.key < $1.key }.map { "\($0.key): \(columns($0.value))" }.joined(separator: "; ")
        default: return nil
        }
    }

    /// `leaderboard/3a  attendance-calendar ×6`: keys of one kind are counted when there are many.
    private static func staleKeys(_ keys: [JSON]) -> String {
        let paths = keys.map { key in (key.array ?? []).compactMap(\.string) }
        var kinds: [String] = []
        for kind in paths.compactMap(\.first) where !kinds.contains(kind) { kinds.append(kind) }
        return kinds.map { kind in
            let same = paths.filter { $0.first == kind }
            return same.count > 2
                ? "\(kind) ×\(same.count)" : same.map { $0.joined(separator: "/") }.joined(separator: "  ")
        }.joined(separator: "  ")
    }

    /// `attendance ×6`; empty where the receiver may not see the rows.
    private static func causes(_ json: JSON) -> String {
        let causes = json["causes"].array ?? []
        var tables: [String] = []
        for table in causes.compactMap({ $0["table"].string }) where !tables.contains(table) { tables.append(table) }
        let counted = tables.map { table in
            let count = causes.count { $0["table"].string == table }
            return count > 1 ? "\(table) ×\(count)" : table
        }
        guard json["causesComplete"].bool == false else { return counted.joined(separator: ", ") }
        return counted.isEmpty ? "cause not visible" : counted.joined(separator: ", ") + ", …"
    }

    private static func columns(_ row: JSON) -> String {
        (row.object ?? [:]).sorted { $0.key < $1.key }.map { name, value in
            "\(name) \(value.string ?? value.text)"
        }.joined(separator: ", ")
    }
}
