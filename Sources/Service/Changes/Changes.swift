/// Table changes: rows of apps whose data lives elsewhere, taken in from their feeds and told as events.
enum ChangesFeature {
    /// - Parameter tables: nil lists tables and routes without serving them, for `bellhop routes` and `policies`.
    static func feature(_ tables: TableRegister?) -> Feature {
        Feature(
            name: "changes", tables: [deliveries], migrations: [migration], endpoints: endpoints(tables),
            reactions: [], topics: [], ticks: [tidying])
    }
}
