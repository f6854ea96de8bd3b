import Values

/// The routes on which a reader finds its events in the log (``EventLog``): the keys and the topics of a stream.
struct EventRoutes: Sendable {
    private let keys: Set<String>
    /// Compared by their bytes. Keys are ASCII.
    private let topics: Set<ID<EventRoutes>>

    init(keys: Set<String> = [], topics: [String] = []) {
        self.keys = keys
        self.topics = Set(topics.map { ID($0) })
    }

    var count: Int { keys.count + topics.count }

    /// The routes in the form of the log.
    var texts: [String] { keys + topics.map { "#" + $0.text } }

    /// Whether an event has one of the routes.
    func contains(topic: String?, audience: [String]) -> Bool {
        if let topic {
            if topics.contains(ID(topic)) { return true }
            guard EventLog.isTable(topic) else { return false }
        }
        return audience.contains { keys.contains($0) }
    }
}
