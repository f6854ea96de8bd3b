/// Queries whose data is stale: what a `query:invalidate` event asks a client to fetch again.
public struct QueryInvalidation: Sendable, Hashable {
    /// A row's change that made keys stale.
    public struct Cause: Sendable, Hashable {
        public let table: String
        /// `INSERT`, `UPDATE` or `DELETE`.
        public let type: String
        public let recordId: String?
        public let actorId: String?
        public let originId: String?
    }

    /// Such as `["leaderboard", "c1"]`.
    public let keys: [[String]]
    public let causes: [Cause]
    /// False where a cause is not this client's to know, or there were too many.
    public let areCausesComplete: Bool

    /// Nil for any other event.
    public init?(_ event: ServerSentEvent) {
        guard event.name == "query:invalidate" else { return nil }
        let json = event.json
        keys = (json["keys"].array ?? []).map { ($0.array ?? []).compactMap(\.string) }
        causes = (json["causes"].array ?? []).compactMap { cause in
            guard let table = cause["table"].string, let type = cause["type"].string else { return nil }
            return Cause(
                table: table, type: type, recordId: cause["recordId"].string, actorId: cause["actorId"].string,
                originId: cause["originId"].string)
        }
        areCausesComplete = json["causesComplete"].bool ?? false
    }
}

/// The rows that this client has changed itself a moment ago, whose echo it need not fetch (`SCH FR-005`).
///
/// Time is given in, as seconds of any clock that does not go back.
public struct OwnMutations: Sendable {
    /// How long an echo is expected.
    public static let seconds = 2.0

    private struct Row: Hashable {
        let table: String
        let recordId: String
    }

    private var rows: [Row: Double] = [:]

    public init() {}

    public mutating func note(table: String, recordId: String, at seconds: Double) {
        rows = rows.filter { seconds - $0.value < Self.seconds }
        rows[Row(table: table, recordId: recordId)] = seconds
    }

    /// Whether an invalidation has nothing but own changes: then it may be ignored.
    ///
    /// One foreign cause, or one that is not known, makes it news.
    public func isEcho(_ invalidation: QueryInvalidation, at seconds: Double) -> Bool {
        guard invalidation.areCausesComplete, !invalidation.causes.isEmpty else { return false }
        return invalidation.causes.allSatisfy { cause in
            guard let recordId = cause.recordId, let noted = rows[Row(table: cause.table, recordId: recordId)] else {
                return false
            }
            return seconds - noted < Self.seconds
        }
    }
}
