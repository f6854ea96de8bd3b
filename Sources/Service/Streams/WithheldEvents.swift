import Realtime

/// The events of sets that are off. They were stored while the sets were on, and a stream that resumes skips them.
struct WithheldEvents: Sendable {
    /// The names of the service's own events.
    let names: Set<String>
    /// The topics of the service's own tables whose set is off.
    let tables: Set<String>
    /// The topics of all of the service's own tables, if the set of the app's tables is off; nil if it is on.
    let ownTables: Set<String>?
    /// The prefixes of the service's own events, if the set of the app's events is off; nil if it is on.
    let ownPrefixes: Set<Substring>?

    func contains(_ event: StreamEvent) -> Bool {
        if event.isChange {
            let table = event.topic ?? ""
            return tables.contains(table) || ownTables.map { !$0.contains(table) } ?? false
        }
        return names.contains(event.name)
            || ownPrefixes.map { !$0.contains(event.name.prefix { $0 != ":" }) } ?? false
    }

    var isEmpty: Bool { names.isEmpty && tables.isEmpty && ownTables == nil && ownPrefixes == nil }
}
