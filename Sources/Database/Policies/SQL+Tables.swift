import Threads
import Values

extension SQL {
    /// The tables that a statement names, and the rows of them that it may touch.
    struct Tables: Sendable {
        var target: WriteTarget?
        /// The tables that the statement names without a scope, and the tables that it names with a scope.
        var unscoped: [String] = []
        var scoped: [String] = []
        /// The tenant in which the statement stays; nil if no table is named within a tenant, or of a user.
        var fence: Fence?
    }

    /// The tables of a statement in one reference, because statements are copied often.
    final class TablesReference: Sendable {
        let value: Tables
        /// What was last made of a text with these tables. Most such texts are created once and used for ever.
        private let made = Locked<FencedText?>(nil)

        init(_ value: Tables) { self.value = value }

        func fenced(_ text: String, make: () -> FencedText) -> FencedText {
            if let made = made.withLock(\.self), made.source.hasBytes(of: text) { return made }
            let new = make()
            made.withLock { $0 = new }
            return new
        }
    }

    var target: WriteTarget? { tables?.value.target }
    var fence: Fence? { Fence.of(tables, boundTo: tenant) }

    /// Changes the tables of this statement alone.
    mutating func name(_ change: (inout Tables) -> Void) {
        var changed = tables?.value ?? Tables()
        change(&changed)
        tables = TablesReference(changed)
    }
}

/// A statement, before or after its policy is woven in.
protocol StatementWithTables {
    var tables: SQL.TablesReference? { get }
}

extension StatementWithTables {
    /// The tables that are named without a scope, and the ones that are read under a scope.
    var unscoped: [String] { tables?.value.unscoped ?? [] }
    var scoped: [String] { tables?.value.scoped ?? [] }
}

extension SQL: StatementWithTables {}
extension SQL.Woven: StatementWithTables {}

/// The tenant, or the user of a tenant, in whose rows a statement stays.
struct Fence: Sendable {
    var tenant: ID<Tenant>
    var user: ID<User>?
    /// The names of the tables in which it may touch all rows of the tenant.
    var within: [String] = []
    /// The names of the tables in which it may touch the rows of the user.
    var owned: [String] = []
    /// The parameters that are bound to the tenant later, in ascending order, among all parameters of the text.
    var places: [Int] = []

    /// - Parameter tenant: The tenant of a statement whose text was created without it.
    static func of(_ tables: SQL.TablesReference?, boundTo tenant: ID<Tenant>?) -> Fence? {
        guard var fence = tables?.value.fence, let tenant else { return tables?.value.fence }
        (fence.tenant, fence.places) = (tenant, [])
        return fence
    }

    /// Joins another fence. All fences of a statement name the same tenant, and at most one user.
    mutating func join(_ other: Fence, of text: @autoclosure () -> String) {
        precondition(tenant == other.tenant, "a statement must stay in one tenant: \(text())")
        precondition(
            user == nil || other.user == nil || user == other.user,
            "a statement must stay in the rows of one user: \(text())")
        user = user ?? other.user
        within += other.within
        owned += other.owned
        places += other.places
    }
}

extension ID where Entity == Tenant {
    /// The tenant of a statement whose text is created once. Each use binds the real one
    /// (``Database/SQL/binding(within:_:)``, ``Database/Insertion``). No row belongs to it.
    public static let boundLater: ID = "\u{0}"

    var isBoundLater: Bool { text.utf8.first == 0 }
}

/// The table that a statement writes, the rows that it may touch, and the position after the name.
struct WriteTarget: Sendable {
    enum Verb: Sendable {
        case insert, update, delete
    }

    enum Rows: Sendable {
        case of(Scope)
        /// All rows of the tenant of the statement's fence.
        case ofTenant
        /// The rows of the user of the statement's fence.
        case ofUser
    }

    let verb: Verb
    let table: Table
    let rows: Rows
    /// The UTF-8 offset after the table's name.
    var textOffset: Int
    /// The number of binds before the position.
    var bindOffset: Int
}
