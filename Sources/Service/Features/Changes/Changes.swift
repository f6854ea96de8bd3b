import Rows
import Values

/// Table changes: rows of apps whose data is stored elsewhere, accepted from their feeds and published as events.
enum ChangesFeature {
    /// What the endpoint works with.
    struct Parts: Sendable {
        let memberships: MembershipRegistry
        let metrics: ChangeMetrics
        /// Whether streams are served more slowly than changes come: then no more are taken.
        let isCongested: @Sendable () -> Bool
    }

    /// - Parameter parts: nil lists tables and routes without serving them, for `bellhop routes` and `policies`.
    static func feature(_ parts: Parts?) -> Feature {
        Feature(
            name: "changes", tables: [deliveries], migrations: [migration], endpoints: endpoints(parts),
            ticks: [tidying],
            constants: { writer, settings in
                writer.member("changes") { writer in
                    writer.member("bodyBytesMax", ChangeLimits.bodyBytesMax)
                    writer.member("itemsMax", ChangeLimits.itemsMax)
                    writer.member("itemBytesMax", ChangeLimits.itemBytesMax)
                    writer.member("duplicatesKnownSeconds", Int(ChangeDeduplication.deliverySeconds))
                    writer.member("tables", settings.tables.tables.count)
                }
            })
    }
}
