import Values

/// One access of a caller to rows of other users.
public struct RowAccess: Sendable, Hashable {
    public enum Verb: Sendable { case read, insert, update, delete }

    public let verb: Verb
    public let table: String
    /// Nil for a row that names no user, and for a read, whose rows may belong to many.
    public let user: ID<RowAccess>?
}

/// The accesses of one caller to rows of other users. The connection records them while it runs the caller's statements
/// (``DatabaseConnection/recording(into:_:)``), so that no code between can forget one.
///
/// The write policy of a table names the users of a row, by `user:{column}`. A row that names the caller is the caller's
/// own. If the policy permits writing another row, it does so by another key, such as that of the staff of a shop.
public final class RowAccesses {
    /// The state at a savepoint.
    struct Mark {
        let (count, omitted): (Int, Int)
    }

    private let user: ID<RowAccess>
    private let readable: Set<String>
    private let countMax: Int
    /// Each access once, in their order.
    public private(set) var all: [RowAccess] = []
    private var known: Set<RowAccess> = []
    /// The number of further accesses for which ``all`` had no room.
    public private(set) var omitted = 0

    /// - Parameters:
    ///   - user: The caller.
    ///   - readable: The tables whose reading is recorded.
    ///   - countMax: The maximum number of accesses; a statement may write any number of rows.
    public init(of user: ID<RowAccess>, readable: Set<String> = [], countMax: Int) {
        (self.user, self.readable, self.countMax) = (user, readable, countMax)
    }

    func noteReads(of tables: [String]) {
        for table in tables where readable.contains(table) { note(RowAccess(verb: .read, table: table, user: nil)) }
    }

    func noteWrite(_ verb: WriteTarget.Verb, of table: Table, users: [String?]) {
        let named = users.compactMap { $0.map { ID<RowAccess>($0) } }
        guard !named.contains(user) else { return }
        let verb: RowAccess.Verb =
            switch verb {
            case .insert: .insert
            case .update: .update
            case .delete: .delete
            }
        if named.isEmpty { note(RowAccess(verb: verb, table: table.name, user: nil)) }
        for user in named { note(RowAccess(verb: verb, table: table.name, user: user)) }
    }

    private func note(_ access: RowAccess) {
        guard !known.contains(access) else { return }
        guard all.count < countMax else {
            omitted += 1
            return
        }
        known.insert(access)
        all.append(access)
    }

    var mark: Mark { Mark(count: all.count, omitted: omitted) }

    /// Forgets the accesses since a savepoint that is rolled back.
    func returnTo(_ mark: Mark) {
        known.subtract(all[min(mark.count, all.count)...])
        all.removeSubrange(min(mark.count, all.count)...)
        omitted = mark.omitted
    }
}
