import Values

/// A record of what one caller does to rows of other users. The connection fills it while it runs the caller's
/// statements (``DatabaseConnection/recording(into:_:)``), so that no code between can forget an act.
///
/// The write policy of a table names the users of a row, by `user:{column}`. A row that names the caller is the caller's
/// own. If the policy permits writing another row, it does so by another key, such as that of the staff of a shop.
public final class Oversight {
    public enum Verb: Sendable { case read, insert, update, delete }

    public struct Act: Sendable, Hashable {
        public let verb: Verb
        public let table: String
        /// Nil for a row that names no user, and for a read, whose rows may belong to many.
        public let user: ID<Oversight>?
    }

    /// The state at a savepoint.
    struct Mark {
        let (acts, omitted): (Int, Int)
    }

    private let user: ID<Oversight>
    private let readable: Set<String>
    private let actsMax: Int
    /// Each act once, in their order.
    public private(set) var acts: [Act] = []
    private var known: Set<Act> = []
    /// The number of further written rows of which there was no room for the user.
    public private(set) var omitted = 0

    /// - Parameters:
    ///   - user: The caller.
    ///   - readable: The tables whose reading is recorded.
    ///   - actsMax: The maximum number of acts; a statement may write any number of rows.
    public init(of user: ID<Oversight>, readable: Set<String> = [], actsMax: Int) {
        (self.user, self.readable, self.actsMax) = (user, readable, actsMax)
    }

    func noteReads(of tables: [String]) {
        for table in tables where readable.contains(table) { note(Act(verb: .read, table: table, user: nil)) }
    }

    func noteWrite(_ verb: WriteTarget.Verb, of table: Table, users: [String?]) {
        let named = users.compactMap { $0.map { ID<Oversight>($0) } }
        guard !named.contains(user) else { return }
        let verb: Verb =
            switch verb {
            case .insert: .insert
            case .update: .update
            case .delete: .delete
            }
        if named.isEmpty { note(Act(verb: verb, table: table.name, user: nil)) }
        for user in named { note(Act(verb: verb, table: table.name, user: user)) }
    }

    private func note(_ act: Act) {
        guard !known.contains(act) else { return }
        guard acts.count < actsMax else {
            omitted += 1
            return
        }
        known.insert(act)
        acts.append(act)
    }

    var mark: Mark { Mark(acts: acts.count, omitted: omitted) }

    /// Forgets the acts since a savepoint that is rolled back.
    func returnTo(_ mark: Mark) {
        known.subtract(acts[min(mark.acts, acts.count)...])
        acts.removeSubrange(min(mark.acts, acts.count)...)
        omitted = mark.omitted
    }
}
