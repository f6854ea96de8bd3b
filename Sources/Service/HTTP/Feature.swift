import Database
import Values

/// One capability of the service: all that the catalog must know of it. A feature is one folder and one line of the
/// catalog; it knows no other feature. `Docs/architecture.md` walks through adding one.
struct Feature: Sendable {
    let name: String
    var tables: [Table] = []
    var migrations: [Migration] = []
    var endpoints: [Endpoint] = []
    /// What it does when a fact is recorded, by whichever feature.
    var reaction: Reaction?
    var topics: [TopicKind] = []
    var ticks: [Tick] = []
    /// What `bellhop check` asks of the feature: every way in which its rows contradict each other.
    var audits: [Audit] = []
    /// Memberships whose keys open streams have.
    var live: [LiveMembership] = []
    /// Tables of its own that streams can subscribe to, beside those that are declared.
    var watched: [WatchedTable] = []
    /// The names of the events that its transactions publish, and of those that streams send of themselves.
    var events: [String] = []
    /// The kinds of `LockKey` that it makes. No other feature may make them: it would wait for locks that mean nothing
    /// to it.
    var locks: [String] = []
    /// Writes the members of `GET /v1/config` that its clients go by.
    var constants: (@Sendable (inout JSONWriter, Settings) -> Void)?

    /// Constants that no setting changes: numbers under the name of a group.
    static func constants(
        _ group: StaticString, _ numbers: KeyValuePairs<StaticString, Int>
    ) -> @Sendable (inout JSONWriter, Settings) -> Void {
        { writer, _ in writer.member(group, numbers) }
    }
}

/// A way to recount what is stored. Returns one line for each difference.
struct Audit: Sendable {
    let name: String
    let run: @Sendable (Connection) throws -> [String]

    /// One line for each user whose stored number differs, in the order of the users.
    static func differences(_ name: String, stored: [Owner: Int], recounted: [Owner: Int]) -> [String] {
        let owners = Set(stored.keys).union(recounted.keys).sorted { ($0.tenant, $0.userId) < ($1.tenant, $1.userId) }
        return owners.compactMap { owner in
            let (known, present) = (stored[owner] ?? 0, recounted[owner] ?? 0)
            return known == present
                ? nil : "\(owner.tenant)/\(owner.userId): \(name) is stored as \(known), and is \(present)"
        }
    }
}
