import Database

/// Requests between users: asked, answered, withdrawn, each told to both sides, and to the badge of whom they wait for.
enum RequestsFeature {
    static let feature = Feature(
        name: "requests", tables: [requests], migrations: migrations, endpoints: endpoints, reactions: [], topics: [],
        ticks: [forgetting])
}
