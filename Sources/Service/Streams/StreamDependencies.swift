import MicroHTTP
import Realtime
import Values

/// The dependencies of the stream components. The composition root creates them once.
struct StreamDependencies: Sendable {
    let reader: TransactionReader
    let workers: WorkerPool
    /// The log from which streams are served; see `EventIDs`.
    let log: LogIdentity
    /// The declared tables, and the memberships.
    let memberships: MembershipRegistry
    let revocations: RevocationList
    let admission: StreamAdmission
    let metrics: StreamMetrics
    let failures: StreamFailures
    let authenticator: Authenticator
    let tickets: TicketSeal
    let topicKinds: [TopicKind]
    /// Grants by rows of the service whose keys streams have.
    let live: [LiveGrant]
    let tables: SubscribableTables
    /// Events that a resuming stream skips.
    let withheld: WithheldEvents
    /// Returns the current states of the caller, which are sent again whenever they change.
    let ownStates: @Sendable (Transaction) throws -> [OwnState]
    let names = StreamNames()

    var ids: EventIDs { log.ids }
    var settings: Settings { reader.settings }
    var now: Timestamp { reader.clock.now() }
    /// The time that judges tokens.
    var machineNow: Timestamp { reader.clock.machine() }
}
