import MicroHTTP
import Values

/// What the parts of streams are given: made once, by the composition root.
struct StreamDependencies: Sendable {
    let reader: TransactionReader
    let workers: WorkerPool
    /// The names of one log: see `Cursor`.
    let log: LogIdentity
    /// Which tables are declared, and who belongs where.
    let memberships: MembershipRegistry
    let revocations: RevocationList
    let admission: StreamAdmission
    let metrics: StreamMetrics
    let failures: StreamFailures
    let authenticator: Authenticator
    let topicKinds: [TopicKind]
    /// Memberships by rows of the service whose keys streams have.
    let live: [LiveMembership]
    /// Tables of the service that streams can subscribe to.
    let watched: Set<WatchedTable>
    /// The present states of the caller, which are sent again whenever they change.
    let ownStates: @Sendable (Transaction) throws -> [OwnState]
    /// Tells this process's stream names from those of the one before it, and of other replicas.
    let nonce = String(UInt32.random(in: .min ... .max), radix: 36)

    var epoch: String { log.epoch }
    var settings: Settings { reader.settings }
    var now: Timestamp { reader.clock.now() }
}
