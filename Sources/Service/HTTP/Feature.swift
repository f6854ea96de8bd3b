import Database
import Domain
import Values

/// One capability of the service, with everything that the catalog must know about it. A feature is one folder and one
/// line of the catalog, and does not depend on other features. `Docs/architecture.md` explains how to add one.
struct Feature: Sendable {
    let name: String
    /// The set with which it is switched off; nil if it is always on.
    var set: FeatureSet?
    var tables: [Table] = []
    var migrations: [Migration] = []
    var endpoints: [Endpoint] = []
    /// The reaction to facts that any feature records.
    var reaction: Reaction?
    var topics: [TopicKind] = []
    var ticks: [Tick] = []
    var sweeps: [Sweep] = []
    /// Work in many small transactions, of tenants that have some.
    var longWork: [LongWork] = []
    /// The steps in which a person leaves the feature, besides the declarations of its tables.
    var personSteps: [PersonStep] = []
    /// The share of the badges that it maintains.
    var share: CountedShare?
    /// The checks of `bellhop check` for this feature: each finds contradictions in its rows.
    var audits: [Audit] = []
    /// Memberships whose keys are granted to open streams.
    var live: [LiveGrant] = []
    /// The feature's own tables that streams can subscribe to, beside the declared ones.
    var watched: [WatchedTable] = []
    /// The names of the events that its transactions publish, and of the events that streams emit themselves.
    var events: [String] = []
    /// The kinds of `LockKey` that it uses. No other feature may use them: it would wait for unrelated locks.
    var locks: [String] = []
    /// Writes the members of `GET /v1/config` that its clients need.
    var constants: (@Sendable (inout JSONWriter, Settings) -> Void)?

    /// The feature of a set that is off. It answers and does nothing, and keeps what is stored: its tables, their
    /// retention, erasure and checks.
    func off(_ set: FeatureSet) -> Feature {
        var feature = Feature(name: name, set: set, tables: tables, migrations: migrations)
        feature.endpoints = endpoints.map { $0.off(set) }
        feature.topics = topics.map { $0.off(set) }
        feature.watched = watched.map { $0.off(set) }
        feature.ticks = ticks.filter(\.isTidying)
        (feature.sweeps, feature.longWork) = (sweeps, longWork)
        (feature.personSteps, feature.share, feature.audits) = (personSteps, share, audits)
        feature.locks = locks
        return feature
    }

    /// The members of `GET /v1/config` that the feature writes.
    func constantNames(_ settings: Settings) -> [String] {
        guard let constants else { return [] }
        let body = JSONWriter.object { constants(&$0, settings) }
        guard case .object(let members)? = try? JSONValue(parsing: body) else { return [] }
        return Array(members.keys)
    }

    /// Returns a writer for constants that no setting changes: numbers under the name of a group.
    static func constants(
        _ group: StaticString, _ numbers: KeyValuePairs<StaticString, Int>
    ) -> @Sendable (inout JSONWriter, Settings) -> Void {
        { writer, _ in writer.member(group, numbers) }
    }
}

/// A check that recounts stored numbers. Returns one line per difference.
struct Audit: Sendable {
    let name: String
    let run: @Sendable (DatabaseConnection) throws -> [String]

    /// Compares the stored shares of the badges with their features' rows, also the hidden ones.
    static func badges(_ shares: [CountedShare]) -> Audit {
        Audit(name: "counts") { db in
            let stored = try BadgeLedger.stored(in: db)
            return try shares.flatMap { counted in
                differences(
                    "number of \(counted.share.column)", stored: stored.mapValues { $0[counted.share] },
                    recounted: try counted.recount(db))
            }
        }
    }

    /// Returns one line for each user whose stored number differs, ordered by user.
    static func differences(_ name: String, stored: [Owner: Int], recounted: [Owner: Int]) -> [String] {
        let owners = Set(stored.keys).union(recounted.keys).sorted { ($0.tenant, $0.userId) < ($1.tenant, $1.userId) }
        return owners.compactMap { owner in
            let (known, present) = (stored[owner] ?? 0, recounted[owner] ?? 0)
            return known == present
                ? nil
                : "\(owner.tenant)/\(owner.userId): the stored \(name) is \(known), but the actual value is \(present)"
        }
    }
}
