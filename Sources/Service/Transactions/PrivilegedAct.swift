import Database
import Values

/// A request of a privileged caller, for the audit log. The dispatcher makes one for each, before the handler runs.
struct PrivilegedAct: Sendable {
    let privilege: Privilege
    let actor: ID<User>
    /// The name of the endpoint.
    let action: String
    /// Nil for a command.
    let requestId: String?
    /// Whether it is noted even if it touches no row of another user: the endpoint is open to certain roles only, or the
    /// caller is a backend.
    var isAlwaysNoted: Bool
    var isCounted: Bool
    /// The tables whose reading is noted; nil for a write.
    var readable: Set<String>?
    /// The user that the request concerns; nil if its rows name their users.
    var subject: ID<User>?

    /// Returns an empty record of the rows of others that the act touches; nil if the act is only counted.
    func accesses(of caller: Caller) -> RowAccesses? {
        isCounted
            ? nil : RowAccesses(of: ID(caller.userId.text), readable: readable ?? [], countMax: Limits.auditedUsersMax)
    }

    /// Returns the act as a read; nil if the settings do not ask for reads.
    ///
    /// - Parameter isRoleBound: Whether the endpoint is open to certain roles only, so that each answer is noted.
    func reading(as caller: Caller, _ reader: TransactionReader, isRoleBound: Bool) -> PrivilegedAct? {
        guard reader.settings.auditReads else { return nil }
        var act = self
        (act.isAlwaysNoted, act.isCounted) = (isRoleBound, false)
        let keys = caller.scope.keys.filter(Privilege.opens)
        act.readable = Set(reader.tables.filter { $0.opensOthers(to: keys) }.map(\.name))
        return act
    }

    /// Returns the notes of a transaction.
    ///
    /// - Parameter accesses: What the acts did to rows of others.
    static func notes(of acts: [PrivilegedAct], _ accesses: RowAccesses?, _ tx: Transaction) -> [AuditNotes] {
        guard let first = acts.first else { return [] }
        guard let accesses else {
            return Dictionary(grouping: acts, by: \.action).values.map { acts in
                AuditNotes(tenant: tx.tenant, at: tx.now, .count(acts[0], acts.count))
            }
        }
        var items = accesses.all.map(AuditNotes.Item.init)
        if accesses.omitted > 0 { items.append(AuditNotes.Item(outcome: .accepted, count: accesses.omitted)) }
        let isRead = first.readable != nil
        if items.isEmpty, first.isAlwaysNoted { items.append(AuditNotes.Item(outcome: isRead ? .shown : .accepted)) }
        for index in items.indices where items[index].userId == nil { items[index].userId = first.subject }
        return items.isEmpty ? [] : [AuditNotes(tenant: tx.tenant, at: tx.now, .each(first, items))]
    }
}

/// The notes that a transaction leaves for the audit log.
struct AuditNotes: Sendable {
    enum Kind: Sendable {
        /// An entry for each item.
        case each(PrivilegedAct, [Item])
        /// A number of requests, which the entry of their minute counts.
        case count(PrivilegedAct, Int)
        /// No entry, but backends of the tenant to store (``Backends``).
        case seenBackends
        /// The entries of all minutes before this moment.
        case endOfMinutes(before: Timestamp)
        /// The entries of all minutes of one caller that is about to be erased.
        case endOfCounts(of: ID<User>)
        /// The entry of a deletion of expired entries, with their number.
        case retention(AuditCut, Int)
    }

    /// What an act did to the rows of one user in one table.
    struct Item: Sendable {
        var outcome: AuditOutcome
        var table: String?
        var userId: ID<User>?
        var count = 1
    }

    let tenant: ID<Tenant>
    let at: Timestamp
    let kind: Kind
    /// The persons that the entries do not name: only their digests are stored.
    var erased: Set<ID<User>> = []

    init(tenant: ID<Tenant>, at: Timestamp, _ kind: Kind) {
        (self.tenant, self.at, self.kind) = (tenant, at, kind)
    }
}

/// What an act did.
enum AuditOutcome: String, Sendable, CaseIterable, MemberValue {
    /// Rows were inserted, or replaced by an upsert.
    case stored
    case changed
    case removed
    /// Rows were read.
    case shown
    /// The operation was performed; it wrote no row that belongs to one user.
    case accepted
}

extension AuditNotes.Item {
    fileprivate init(_ access: RowAccess) {
        outcome =
            switch access.verb {
            case .insert: .stored
            case .update: .changed
            case .delete: .removed
            case .read: .shown
            }
        (table, userId) = (access.table, access.user.map { ID($0.text) })
    }
}
