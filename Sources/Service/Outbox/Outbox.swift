import Database
import Values

/// The outbox: messages to other systems, such as webhooks and push messages (decision 0033).
///
/// A message is written in the transaction of its cause, and deleted in the transaction that makes it obsolete. So an
/// existing message proves that its subject is still unseen. Messages of one lane are sent one after the other, in the
/// order of their due times. A row for each lane holds when its first message may be sent, and the lease of the running
/// attempt. So the look for due messages reads only due ones. A ``Channel`` knows the content of a message and the
/// meaning of an answer.
enum Outbox {
    static let messages = Table(
        "outbox", read: ["tenant:service"], write: ["tenant:service"],
        kept: "30 days after sending, one day before; 7 days without success",
        person: .rows(by: ["number"], [.deleted("user_id")], .content("data")))

    static let lanes = Table(
        "outbox_lanes", read: [], write: [],
        person: .rows(by: ["id"], [.deletedByScan("user_id")], isExported: false))

    static let migration = Migration(
        "0001_outbox",
        sql: [
            .both(messageTable),
            // The messages about a subject. A message with a slot replaces the one before it.
            "CREATE UNIQUE INDEX outbox_slots ON outbox (tenant, user_id, slot, lane)",
            // The first message of a lane. With the state, counts read the index alone.
            "CREATE INDEX outbox_order ON outbox (tenant, lane, due_at, number, state) WHERE state = 0",
            "CREATE INDEX outbox_ends ON outbox (gives_up_at)",
            "CREATE INDEX outbox_dead ON outbox (tenant, id) WHERE state = 2",
            .both(laneTable),
            "CREATE UNIQUE INDEX outbox_lanes_names ON outbox_lanes (tenant, lane)",
            // The due lanes of a route, and the due lanes of each of its tenants.
            "CREATE INDEX outbox_lanes_due ON outbox_lanes (route, next_at)",
            "CREATE INDEX outbox_lanes_turns ON outbox_lanes (route, tenant, next_at)",
            // The lanes that were written while the clock was ahead.
            "CREATE INDEX outbox_lanes_waits ON outbox_lanes (waits_from)",
        ])

    /// The state is 0 while a message waits or is on its way, 1 once it was accepted, as long as it may be withdrawn, and
    /// 2 when it is dead. `lease` identifies the running attempt; 0 without one. The version rises when the content
    /// changes, so that the outcome of an attempt does not settle what came after it.
    private static let messageTable = """
        CREATE TABLE outbox (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            tenant TEXT NOT NULL,
            lane TEXT NOT NULL,
            route TEXT NOT NULL,
            id TEXT NOT NULL,
            user_id TEXT,
            device_id TEXT,
            type TEXT NOT NULL,
            subject TEXT NOT NULL,
            slot TEXT,
            data TEXT NOT NULL,
            state INTEGER NOT NULL,
            version INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            due_at INTEGER NOT NULL,
            patient_until INTEGER NOT NULL,
            gives_up_at INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            lease INTEGER NOT NULL,
            tried_at INTEGER,
            error TEXT,
            reason TEXT,
            settled_at INTEGER
        ) STRICT
        """

    /// A lane is here while messages wait in it. `waits_from` is the time when its times were written.
    private static let laneTable = """
        CREATE TABLE outbox_lanes (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            tenant TEXT NOT NULL,
            lane TEXT NOT NULL,
            route TEXT NOT NULL,
            user_id TEXT,
            next_at INTEGER NOT NULL,
            waits_from INTEGER NOT NULL,
            lease INTEGER NOT NULL,
            failures INTEGER NOT NULL
        ) STRICT
        """

    static let adding = Unscoped.reaction("the service sends messages about the actions of all users")
    static let sending = Unscoped.bookkeeping("the sender sends the due messages of all tenants")
    /// The tables as the sender looks at them, before it knows the tenants.
    static let allMessages: SQL = "\(messages, unscoped: sending)"
    static let allLanes: SQL = "\(lanes, unscoped: sending)"

    /// Locks users. Their messages and devices change only under this lock: a sender changes the rows of many users in one
    /// transaction, and would deadlock with requests.
    static func lock(_ owners: [Owner], in db: DatabaseConnection) throws {
        try db.lock(owners.map { LockKey.user($0.userId).name(in: $0.tenant) })
    }

    /// Locks the work of senders. It comes before the locks of users.
    static func lockSenders(in db: DatabaseConnection) throws {
        try db.lock([LockKey.tick("outbox").name(in: "")])
    }
}

/// The place of a message in an order: messages with one lane are sent one after the other.
struct OutboxLane: Sendable, Hashable {
    /// Unique in the tenant.
    let name: String
    /// The way to the receiver: the name of a channel, and for several receivers of one channel a blank and a further
    /// name. A receiver that is away delays its route only.
    let route: String
}

/// A message to be added to the outbox.
struct OutboxDraft: Sendable {
    let lane: OutboxLane
    /// Nil for messages about a customer without an account.
    let userId: ID<User>?
    var device: String?
    let type: String
    let subject: String
    /// A message with the same slot in the same lane is replaced; nil for a message that stands alone.
    var slot: String?
    /// The id that every attempt of the message carries.
    var id = ""
    let dueAt: Timestamp
    /// A user with a stream has until then to see the subject. It is right to send earlier if the user has no stream.
    var patientUntil: Timestamp?
    /// A JSON object, or nothing.
    var data: [UInt8] = []
}

/// What takes the place of a message about a subject that was seen.
struct OutboxWithdrawal: Sendable {
    let type: String
    let subject: String
    let slot: String
    var id = ""
    let dueAt: Timestamp
    var data: [UInt8] = []
}

/// A message whose attempt begins.
struct OutboxAttempt: Sendable {
    let number: Int
    let laneId: Int
    let tenant: ID<Tenant>
    let lane: OutboxLane
    /// Nil for messages about a customer without an account.
    let userId: ID<User>?
    let device: String
    let type: String
    let subject: String
    let id: String
    let data: [UInt8]
    /// 1 for the first attempt.
    let attempt: Int
    /// How many attempts in this lane failed since the last success.
    let failures: Int
    let version: Int
    let createdAt: Timestamp
    let givesUpAt: Timestamp
    /// Identifies the attempt in the rows of the message and of its lane.
    var lease = 0

    var owner: Owner? { userId.map { Owner(tenant: tenant, userId: $0) } }
    /// The condition on the row that no later attempt was begun. Another replica begins one if this one exceeds its lease.
    var isLatest: SQL { "number = \(number) AND lease = \(lease)" }
    /// The condition on the row that neither a later attempt was begun nor its message changed.
    var isUnchanged: SQL { "\(isLatest) AND version = \(version)" }
}

/// What an answer to an attempt means.
enum OutboxOutcome: Sendable, Equatable {
    case accepted
    /// The receiver is busy, down or out of reach, which other messages will meet, too.
    case failed(reason: String, retryAfterSeconds: Int?)
    /// The receiver does not accept this message now. It is tried again, and says nothing about others.
    case rejected(reason: String, retryAfterSeconds: Int?)
    /// The receiver never accepts this message.
    case refused(reason: String)
    /// A setting is wrong. The message is tried again after a pause, because an operator may mend it.
    ///
    /// - Parameter isGeneral: Whether other messages of the route fail for the same reason.
    case misconfigured(reason: String, isGeneral: Bool)
    /// The destination does not exist any more.
    ///
    /// - Parameter since: The time from which the receiver knows it.
    case gone(reason: String, since: Timestamp?)
    /// The message may not have left: the service stops, or the message waited too long for its connection.
    case interrupted

    var reason: String? {
        switch self {
        case .accepted, .interrupted: nil
        case .failed(let reason, _), .rejected(let reason, _), .refused(let reason), .misconfigured(let reason, _),
            .gone(let reason, _):
            reason
        }
    }
}

/// The stored result of an attempt.
enum OutboxResult: Sendable, Equatable {
    case accepted
    /// - Parameter isAsked: Whether the receiver asked for this pause. It holds for whatever comes next in the lane.
    case retry(reason: String, afterSeconds: Double, isAsked: Bool)
    /// It is not tried again.
    case ended(reason: String, OutboxEnd)
    /// The destination is removed, with all its messages.
    case removed(reason: String)
    case interrupted
}

/// Why a message is not tried again.
enum OutboxEnd: Sendable, Equatable {
    /// The receiver never accepts it.
    case refused
    /// It was not accepted in its time.
    case expired
}
