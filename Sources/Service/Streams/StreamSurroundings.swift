import Database
import Domain
import MicroHTTP

/// What the streams are given by the service around them; made once, by the application.
struct StreamSurroundings: Sendable {
    let store: Store
    let workers: WorkerPool
    /// The names of one log: see `Cursor`.
    let log: LogIdentity
    /// Which tables there are, and who belongs where.
    let tables: TableRegister
    let now: @Sendable () -> Timestamp
    /// Who a token speaks for. Called on reactors and workers; never blocks.
    let authenticate: @Sendable (_ token: String) -> TokenVerdict
    /// Runs the body in one read transaction as the caller, on the calling thread, which may block.
    let read: @Sendable (_ caller: Caller, _ body: (Transaction) throws -> Void) throws -> Void
    let topicKinds: [TopicKind]
    /// What streams hold by rows of the service.
    let live: [LiveMembership]
    /// Tables of the service that streams can subscribe to.
    let watched: Set<WatchedTable>
    /// The present states of the caller, as `StreamDirectory.tell` sends them later on.
    let ownStates: @Sendable (Transaction) throws -> [OwnState]
    let settings: StreamSettings

    var epoch: String { log.epoch }
}

/// What an authenticator says of a token.
enum TokenVerdict: Sendable {
    case caller(Caller)
    case refused(Failure)
    /// The answer is not known yet (a signature is being verified, keys are being fetched): start what is missing, and
    /// call `resume` when asking again will get an answer.
    case pending(@Sendable (_ resume: @escaping @Sendable () -> Void) -> Void)
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
