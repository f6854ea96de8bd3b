import Domain
import Values

/// Requests between users: made, answered or withdrawn, published to both sides, and counted in the recipient's badge.
enum RequestsFeature {
    static let feature = Feature(
        name: "requests", tables: [requests], migrations: migrations, endpoints: endpoints, ticks: [pruning],
        events: ["request:created", "request:updated", "request:removed"],
        constants: { writer, _ in
            writer.member("userRequests") { $0.member("openMax", RequestLimits.openMax) }
        })
}
