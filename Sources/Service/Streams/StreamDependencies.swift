import MicroHTTP
import Realtime
import Values

/// What the parts of streams are given: made once, by the composition root.
struct StreamDependencies: Sendable {
    let reader: TransactionReader
    let workers: WorkerPool
    /// The log that streams are served from: see `EventIDs`.
    let log: LogIdentity
    /// Which tables are declared, and who belongs where.
    let memberships: MembershipRegistry
    let revocations: RevocationList
    let admission: StreamAdmission
    let metrics: StreamMetrics
    let failures: StreamFailures
    let authenticator: Authenticator
    let tickets: TicketSeal
    let topicKinds: [TopicKind]
    /// Memberships by rows of the service whose keys streams have.
    let live: [LiveMembership]
    let tables: SubscribableTables
    /// The present states of the caller, which are sent again whenever they change.
    let ownStates: @Sendable (Transaction) throws -> [OwnState]
    let names = StreamNames()

    var ids: EventIDs { log.ids }
    var settings: Settings { reader.settings }
    var now: Timestamp { reader.clock.now() }
}
