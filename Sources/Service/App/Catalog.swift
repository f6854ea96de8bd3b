import Configuration
import Database
import Domain
import MicroHTTP
import Rows
import Visibility

/// The features of the service, one line each. Every list of routes, tables or upkeep starts here.
enum Catalog {
    /// Returns the features.
    ///
    /// - Parameters:
    ///   - sets: The sets that are on. A feature of another set answers 404 and keeps what is stored.
    ///   - dependencies: Nil lists the features without serving them.
    static func features(
        on sets: Set<FeatureSet> = Set(FeatureSet.allCases), servedBy dependencies: Dependencies? = nil
    ) -> [Feature] {
        let features = [
            BadgesFeature.feature(conversations: ConversationsFeature.unread),
            NotificationsFeature.feature,
            PreferencesFeature.feature,
            ShopsFeature.feature,
            DJFeature.feature,
            ChallengesFeature.feature(dependencies?.boards),
            StreamsFeature.feature(dependencies?.streams),
            ChangesFeature.feature(dependencies?.changes),
            SourcePosition.feature,
            ExplainFeature.feature(dependencies?.explain),
            ConversationsFeature.feature,
            RequestsFeature.feature,
            PostsFeature.feature,
            PublishFeature.feature(dependencies?.publish),
            WebhooksFeature.feature,
            PushFeature.feature,
            ClientLibraryFeature.feature,
            ConsoleFeature.feature,
            AuditFeature.feature,
        ].map { feature in
            guard let set = feature.set, !sets.contains(set) else { return feature }
            return feature.off(set)
        }
        // These features know the tables, steps and constants of the others.
        return features + [
            ErasureFeature.feature(
                dependencies?.erasure, tables: coreTables + features.flatMap(\.tables),
                steps: [MembershipRegistry.personStep] + features.flatMap(\.personSteps)),
            MetaFeature.feature(
                dependencies?.report, sets: sets, description: dependencies?.description,
                constants: features.compactMap(\.constants)),
        ]
    }

    /// The core's own tables, which belong to no feature.
    static let coreTables = [
        BadgeLedger.badges, EventLog.events, EventLog.routes, EventLog.shared.table, EventLog.epochs.table,
        EventLog.counter.table,
        Idempotency.answers,
        Tenants.tenants, Backends.backends, ServiceSecrets.secrets.table, RateSharing.counts, MembershipRegistry.facts,
        ClockLines.lines.table, Outbox.messages, Outbox.lanes,
    ]

    /// The migrations in the order in which a new database applies them. An older one applies the migrations that it
    /// lacks. So each changes only tables of its own feature, which declares its migrations in order.
    static let migrations =
        [
            Tenants.migration, Backends.migration, ServiceSecrets.migration, BadgeLedger.migration,
            Idempotency.migration, RateSharing.migration, MembershipRegistry.migration, ClockLines.migration,
            EventLog.migration, Outbox.migration,
        ] + features().flatMap(\.migrations)

    /// The checks of `bellhop check`.
    static let audits = [Audit.badges(features().compactMap(\.share))] + features().flatMap(\.audits)

    static let tables = coreTables + features().flatMap(\.tables)

    /// The names that a file of tables cannot declare.
    static let reserved = ReservedNames(
        templates: tables.flatMap { $0.read.templates + $0.write.templates },
        topics: [StreamTopics.personal] + features().flatMap(\.topics).map(\.prefix), claims: Claims.templates)

    /// The prefixes of the service's own event names, which apps cannot use.
    static let eventPrefixes = Set(
        (features().flatMap(\.events) + [EventLog.internalPrefix]).map { $0.prefix { $0 != ":" } })

    /// Returns what a service with these sets leaves out of its description.
    static func filter(on sets: Set<FeatureSet>, _ settings: Settings) -> DescriptionFilter {
        let off = others(than: sets)
        return DescriptionFilter(
            operations: Set(
                off.flatMap(\.endpoints).map { .init(method: $0.method.rawValue.lowercased(), pattern: $0.pattern) }),
            events: Set(off.flatMap(\.events)),
            constants: Set(off.flatMap { $0.constantNames(settings) }))
    }

    /// Returns the shares of the badges that features of other sets maintain.
    static func hiddenShares(on sets: Set<FeatureSet>) -> BadgeShares {
        others(than: sets).compactMap(\.share).reduce(into: []) { $0.insert(BadgeShares($1.share)) }
    }

    /// Returns the features of other sets, as they are while they are on.
    private static func others(than sets: Set<FeatureSet>) -> [Feature] {
        features().filter { $0.set.map { !sets.contains($0) } ?? false }
    }

    /// Returns the events of the log that belong to sets that are off.
    static func withheld(on sets: Set<FeatureSet>) -> WithheldEvents {
        let off = others(than: sets)
        let (hasRows, hasPublish) = (sets.contains(.rows), sets.contains(.publish))
        return WithheldEvents(
            names: Set(off.flatMap(\.events)), tables: topics(of: off),
            ownTables: hasRows ? nil : topics(of: features()), ownPrefixes: hasPublish ? nil : eventPrefixes)
    }

    /// Returns the topics of the changes of the features' own tables.
    private static func topics(of features: [Feature]) -> Set<String> {
        Set(features.flatMap(\.watched).map { EventLog.topic(schema: $0.schema, table: $0.table) })
    }

    /// Names that two parts both claim. If it is not empty, the service does not start.
    static let ambiguities = ambiguousTemplates + sharedNames

    /// Ends the process if the catalog has mistakes. Tests find them first.
    static func requireSound() {
        precondition(ambiguities.isEmpty, "the catalog is ambiguous: \(ambiguities)")
        let undeclared = undeclared(tables)
        precondition(undeclared.isEmpty, "tables do not declare how a person leaves them: \(undeclared)")
    }

    /// Returns the tables that do not declare how a person leaves them. They would keep persons after their erasure.
    static func undeclared(_ tables: [Table]) -> [String] { tables.filter { $0.person == nil }.map(\.name) }

    /// Pairs of templates with different meanings that could make the same key. Each would open the other's rows.
    private static var ambiguousTemplates: [String] {
        // Many tables have the same few templates. Each pair is compared once, because this runs at every start.
        let templates = Set(tables.flatMap { $0.read.templates + $0.write.templates })
            .sorted { $0.description < $1.description }
        var found: Set<String> = []
        for (index, left) in templates.enumerated() {
            for right in templates[(index + 1)...] where left.mayEqual(right) && left.shape != right.shape {
                found.insert("\(left) and \(right)")
            }
        }
        return found.sorted()
    }

    /// Kinds of locks and names of events that are listed twice.
    private static var sharedNames: [String] {
        let features = features()
        return [LockKey.coreKinds + features.flatMap(\.locks), features.flatMap(\.events)].flatMap { names in
            Dictionary(grouping: names, by: \.self).filter { $0.value.count > 1 }.keys.sorted()
        }
    }
}

extension Settings {
    /// Reads the settings, with the reserved names of all features, which the file of tables cannot declare.
    ///
    /// - Parameter verifiesTokens: False for work on the database alone, which needs no keys.
    public convenience init(reader: ConfigReader, verifiesTokens: Bool = true) throws {
        try self.init(reader: reader, reserved: Catalog.reserved, verifiesTokens: verifiesTokens)
    }

    /// Reads the settings, continues after each invalid one, and returns all mistakes.
    public static func examine(reader: ConfigReader) -> (settings: Settings?, mistakes: [Mistake]) {
        var mistakes: [Mistake] = []
        var ignored: Set<String> = []
        while true {
            do {
                // An unusable key is a mistake, but the resulting lack of a key is not.
                let isVerifying = ignored.isDisjoint(with: [
                    Settings.key(\.$jwtSecret).name, Settings.key(\.$jwks).name, Settings.key(\.$jwtIssuer).name,
                    Settings.key(\.$issuersFile).name,
                ])
                return (
                    try Settings(
                        reader: reader, reserved: Catalog.reserved, verifiesTokens: isVerifying, ignored: ignored),
                    mistakes
                )
            } catch {
                let mistake = error as? Mistake ?? Mistake(description: "\(error)")
                // The same setting again: the settings that depend on it cannot be checked.
                if let name = mistake.setting, ignored.contains(name) { return (nil, mistakes) }
                mistakes.append(mistake)
                guard let name = mistake.setting else { return (nil, mistakes) }
                ignored.insert(name)
            }
        }
    }
}
