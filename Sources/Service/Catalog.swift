import Database
import Visibility

/// The features of the service: one line each. Whatever lists routes, tables or upkeep starts here.
enum Catalog {
    /// - Parameter parts: nil lists what there is without serving it.
    static func features(servedBy parts: ServingParts? = nil) -> [Feature] {
        [
            MetaFeature.feature(parts?.report),
            BadgesFeature.feature(conversations: ConversationsFeature.unread),
            NotificationsFeature.feature,
            PreferencesFeature.feature,
            ShopsFeature.feature,
            DJFeature.feature,
            ChallengesFeature.feature(parts?.boards),
            StreamsFeature.feature(parts?.streams),
            ChangesFeature.feature(parts?.tables),
            ExplainFeature.feature(parts.map(ExplainFeature.Surroundings.init)),
            ConsoleFeature.feature,
            ConversationsFeature.feature,
            RequestsFeature.feature,
            PostsFeature.feature,
        ]
    }

    /// The core's own tables: of the service, not of users.
    static let coreTables = [
        BadgeLedger.badges, EventLog.events, EventLog.routes, EventLog.epochs, EventLog.counter, Idempotency.answers,
        Tenants.tenants, ServiceSecrets.secrets, RateSharing.counts, TableRegister.facts,
    ]

    static let migrations =
        [
            Tenants.migration, ServiceSecrets.migration, EventLog.migrations[0], BadgeLedger.migration,
            Idempotency.migration,
        ]
        + features().flatMap(\.migrations) + [EventLog.migrations[1], RateSharing.migration, TableRegister.migration]

    static var tables: [Table] { coreTables + features().flatMap(\.tables) }

    /// Two templates of different meaning that could make one key: each would open the other's rows. Empty, or the
    /// service does not start.
    static var ambiguities: [String] {
        let templates = tables.flatMap { $0.read.templates + $0.write.templates }
        var found: Set<String> = []
        for (index, left) in templates.enumerated() {
            for right in templates[(index + 1)...] where left.shape != right.shape && left.mayEqual(right) {
                found.insert("\(left) and \(right)")
            }
        }
        return found.sorted()
    }
}

extension AudienceTemplate {
    /// The text with its columns' names left out: `user:{owner_id}` and `user:{user_id}` mean the same.
    fileprivate var shape: String {
        description.split(separator: ":").map { $0.hasPrefix("{") ? "{}" : String($0) }.joined(separator: ":")
    }
}
