import Database
import Values

/// Work that comes round by itself, in a write transaction for each tenant.
struct Tick: Sendable {
    let name: String
    let everySeconds: Int
    /// One statement that looks whether there is anything to do, for any tenant: for what comes round so often that most
    /// of the time there is not. Nil: it is always done.
    let isDue: (@Sendable (Connection, _ now: Timestamp) throws -> Bool)?
    let body: @Sendable (Transaction) throws -> Void

    init(
        name: String, everySeconds: Int, isDue: (@Sendable (Connection, _ now: Timestamp) throws -> Bool)? = nil,
        body: @escaping @Sendable (Transaction) throws -> Void
    ) {
        self.name = name
        self.everySeconds = everySeconds
        self.isDue = isDue
        self.body = body
    }
}
