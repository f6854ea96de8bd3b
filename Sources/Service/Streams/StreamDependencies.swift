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
    /// Who a token speaks for. Called on reactors and workers; never blocks.
    let authenticate: @Sendable (_ token: String) -> TokenVerdict
    let topicKinds: [TopicKind]
    /// Memberships by rows of the service whose keys streams have.
    let live: [LiveMembership]
    /// Tables of the service that streams can subscribe to.
    let watched: Set<WatchedTable>
    /// The present states of the caller, which are sent again whenever they change.
    let ownStates: @Sendable (Transaction) throws -> [OwnState]
    let settings: StreamSettings
    /// Tells this process's stream names from those of the one before it, and of other replicas.
    let nonce = String(UInt32.random(in: .min ... .max), radix: 36)

    var epoch: String { log.epoch }
    var now: Timestamp { reader.clock.now() }
}

struct StreamSettings: Sendable {
    /// The cookie that opens streams, and nothing else: browsers send it with every request, so a wider use would
    /// make every write forgeable from another site.
    var cookieName = "bellhop_token"
    /// Open streams of one user: six tabs on each of three devices. Without it one user's reconnection loop takes the
    /// descriptors of all. Services have no such bound, only the server's.
    var streamsPerUserMax = 20
    var shards = 1
}
